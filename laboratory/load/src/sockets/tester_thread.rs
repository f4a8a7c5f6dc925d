//! The threads of a load: waits, exact to the nanosecond, for readiness or an instant; the core that a thread runs on; and
//! the CPU time that it has used.

use super::query_sender::Port;
use kernel::epoll::Epoll;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use std::io;
use std::mem::zeroed;
use std::num::NonZero;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// An event that a [`Waiter`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The port of this index has messages.
    Port(usize),
    /// Another descriptor is readable.
    Other,
}

/// The token of descriptors that are no ports.
const OTHER: u64 = u64::MAX;

/// A wait for messages at ports, for other descriptors, or until some time has passed.
pub struct Waiter(Epoll);

impl Waiter {
    /// A waiter for ports, which it reports by their index, and for other descriptors. The kernel removes a descriptor that is
    /// closed.
    ///
    /// # Errors
    ///
    /// The error of epoll_create1(2) or epoll_ctl(2): the process may have no more open files, or one descriptor is given twice.
    pub fn new<'a>(
        ports: impl IntoIterator<Item = &'a Port>,
        others: &[BorrowedFd<'_>],
    ) -> io::Result<Waiter> {
        let mut count = others.len();
        let poll = Epoll::new(crate::limits::TESTER_EVENTS)?;
        let registry = poll.registry()?;
        for (index, port) in ports.into_iter().enumerate() {
            registry.add(port.descriptor(), libc::EPOLLIN, index as u64)?;
            count += 1;
        }
        for other in others {
            registry.add(other.as_raw_fd(), libc::EPOLLIN, OTHER)?;
        }
        debug_assert!(count > 0);
        Ok(Waiter(poll))
    }

    /// Waits for at most `nanoseconds` (0: does not wait). Returns the number of events; 0 also if a signal has interrupted the wait.
    pub fn wait(&mut self, nanoseconds: u64) -> usize {
        self.0.wait_nanoseconds(nanoseconds);
        self.0.ready()
    }

    /// True if the port of an event of the last wait has an error ([`Port::next_error`]).
    pub fn has_error(&self, index: usize) -> bool {
        self.0.event(index).1 & libc::EPOLLERR as u32 != 0
    }

    /// An event of the last wait.
    pub fn ready(&self, index: usize) -> Ready {
        match self.0.event(index).0 {
            OTHER => Ready::Other,
            port => Ready::Port(port as usize),
        }
    }
}

/// A guard that makes the calling thread's timers exact: by default the kernel may delay them by 50 us. Dropping it restores
/// the default.
#[derive(Debug)]
pub struct PreciseTimers(());

impl PreciseTimers {
    /// Makes the timers exact from now on.
    pub fn new() -> PreciseTimers {
        // Without exact timers the load goes on, and its record has the delays.
        let _ = set_current_timer_slack(NonZero::new(1));
        PreciseTimers(())
    }
}

impl Default for PreciseTimers {
    fn default() -> PreciseTimers {
        PreciseTimers::new()
    }
}

impl Drop for PreciseTimers {
    fn drop(&mut self) {
        let _ = set_current_timer_slack(None);
    }
}

/// A guard that pins the calling thread to one processor until it is dropped.
pub struct Pinned(CpuSet);

impl Pinned {
    /// Pins the thread from now on.
    ///
    /// # Errors
    ///
    /// The error of sched_getaffinity(2) or sched_setaffinity(2). EINVAL: the machine has no such processor, or the process may not use
    /// it.
    pub fn new(processor: usize) -> io::Result<Pinned> {
        if processor >= CpuSet::MAX_CPU {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (before, mut set) = (sched_getaffinity(None)?, CpuSet::new());
        set.set(processor);
        sched_setaffinity(None, &set)?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The processors that the thread had may be gone.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// The CPU time that a thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Time in which it was ready to run and had no core. Zero if the kernel does not report it (schedstat).
    pub waited: Duration,
}

impl Usage {
    /// The usage of the calling thread so far.
    pub fn now() -> Usage {
        let (user, system) = resources(libc::RUSAGE_THREAD);
        // proc(5): time on a core, time waiting for one, turns; in nanoseconds.
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let waited = statistics.split_ascii_whitespace().nth(1).and_then(|figure| figure.parse().ok());
        Usage { user, system, waited: Duration::from_nanos(waited.unwrap_or(0)) }
    }

    /// CPU time of the child processes that have ended and were waited for.
    pub fn of_children() -> Usage {
        let (user, system) = resources(libc::RUSAGE_CHILDREN);
        Usage { user, system, waited: Duration::ZERO }
    }

    /// The usage since `before`.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            waited: self.waited.saturating_sub(before.waited),
        }
    }

    /// The sum of two threads' usage.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            user: self.user + other.user,
            system: self.system + other.system,
            waited: self.waited + other.waited,
        }
    }
}

/// CPU time in user mode and in the kernel, from getrusage(2) for `who`.
fn resources(who: libc::c_int) -> (Duration, Duration) {
    // SAFETY: rusage consists of integers; all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: `usage` is a valid rusage that the call fills. A failure leaves it zero.
    unsafe { libc::getrusage(who, &mut usage) };
    let time = |value: libc::timeval| Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    (time(usage.ru_utime), time(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn a_wait_ends_when_its_time_has_passed_or_something_comes() {
        let ports =
            ["127.0.0.1", "127.0.0.1"].map(|address| Port::bind(address.parse().unwrap(), true).unwrap());
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut waiter = Waiter::new(&ports, &[other.as_fd()]).unwrap();
        let start = std::time::Instant::now();
        assert_eq!(waiter.wait(3_000_000), 0);
        assert!(start.elapsed() >= Duration::from_millis(3));
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"x", ports[1].address().unwrap()).unwrap();
        assert_eq!(waiter.wait(60_000_000_000), 1);
        assert_eq!(waiter.ready(0), Ready::Port(1));
        sender.send_to(b"x", other.local_addr().unwrap()).unwrap();
        assert_eq!(waiter.wait(60_000_000_000), 2);
        assert!((0..2).any(|index| waiter.ready(index) == Ready::Other));
    }

    #[test]
    fn a_thread_is_pinned_while_the_value_lives() {
        let cores = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let list = |text: String| {
            text.lines().find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
        };
        let before = list(cores());
        let pinned = Pinned::new(0).unwrap();
        assert_eq!(list(cores()).unwrap(), "0");
        drop(pinned);
        assert_eq!(list(cores()), before);
        assert!(Pinned::new(1 << 20).is_err());
    }

    #[test]
    fn work_is_seen_as_cpu_time() {
        let before = Usage::now();
        let mut value = 1u64;
        for step in 0..200_000_000u64 {
            value = std::hint::black_box(value.wrapping_mul(step | 1));
        }
        let used = Usage::now().since(before);
        assert!(used.user + used.system > Duration::ZERO);
        assert_eq!(used.plus(used).user, 2 * used.user);
    }
}
