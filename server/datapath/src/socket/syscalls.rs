//! The system calls of workers: wake-up (eventfd), the clock, the processor that a thread runs on, the receive queue.

use crate::limits::IPV6_MINIMUM_MTU;
use engine::Instant;
use kernel::syscalls::{SocketMemory, check, set_option, socket_memory};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;
use std::time::Duration;

/// The time of CLOCK_BOOTTIME, which never goes back, and goes on while the machine is suspended. CLOCK_MONOTONIC stands still
/// then: entries of the cache would be given out after a night with what was left of their TTL (RFC 2181 section 8). Both
/// clocks are read in user space (vDSO) and cost the same. Waits are relative, so they need no clock: one that the suspend
/// interrupts ends late by a second at most (`limits::WAIT_MS`), and the turn after it sees the true time.
///
/// Workers hand the time to their machines. It is not comparable with [`std::time::Instant`], which is CLOCK_MONOTONIC.
pub fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills. The clock exists since Linux 2.6.39, so the call cannot
    // fail; if it did, `time` would stay zero.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    Instant(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Nanoseconds of CLOCK_REALTIME, the clock of the kernel's time stamps.
pub(crate) fn wall_clock_ns() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_epoch.map_or(0, |time| time.as_nanos() as u64)
}

/// Sleeps until a time of [`now`]. A signal ends the sleep early.
pub(crate) fn sleep_until(end: Instant) {
    let time = libc::timespec { tv_sec: (end.0 / 1_000_000_000) as _, tv_nsec: (end.0 % 1_000_000_000) as _ };
    // SAFETY: `time` is a valid timespec that lives through the call, and no remaining time is asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_BOOTTIME,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// Pins a running thread to one processor.
///
/// # Errors
///
/// EINVAL: the machine has no such processor, or the process may not use it. Otherwise the error of pthread_setaffinity_np(3).
pub fn pin<T>(thread: &JoinHandle<T>, processor: usize) -> io::Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: cpu_set_t is an array of integers, for which all zeros is a valid value (the empty set).
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `processor` is below CPU_SETSIZE, so the bit lies inside the set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the handle keeps the thread's identity valid (it is joined or detached only when the handle goes),
    // and the set is a valid cpu_set_t of the size given.
    let code = unsafe {
        libc::pthread_setaffinity_np(
            thread.as_pthread_t() as libc::pthread_t,
            size_of::<libc::cpu_set_t>(),
            &set,
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// The clock of a thread's CPU time in user mode and in the kernel. Other threads of the process can read it.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// The clock of the calling thread; `None` if the kernel has none.
    pub fn of_this_thread() -> Option<ThreadClock> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the handle of the calling thread is valid, and `clock` lives through the call, which fills it.
        let code = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        (code == 0).then_some(ThreadClock(clock))
    }

    /// CPU time of the thread so far; `None` if the thread has ended.
    pub fn time(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec that the call fills. A clock whose thread has ended is an error.
        let code = unsafe { libc::clock_gettime(self.0, &mut time) };
        (code == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// Gives the calling thread only processor time that no other thread wants (SCHED_IDLE). A thread that wakes up takes the processor
/// from it at once; a low priority (nice) would let it finish its time slice of some milliseconds.
///
/// # Errors
///
/// The error of sched_setscheduler(2). EPERM: a sandbox may forbid it.
pub fn run_when_idle() -> io::Result<()> {
    let priority: libc::c_int = 0;
    // The system call, as musl has no function for it: its own always fails, because POSIX means the whole process.
    // SAFETY: 0 stands for the calling thread, and the kernel's sched_param is an int, which the call only reads.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority) };
    check(result as libc::c_int).map(drop)
}

/// Lets clients send data with the SYN to a listening TCP socket (Fast Open, RFC 7413). At most `pending` such connections
/// may wait for the end of their handshake. Beyond that, and if net.ipv4.tcp_fastopen does not allow Fast Open, the kernel
/// makes ordinary connections.
///
/// # Errors
///
/// The error of setsockopt(2) for TCP_FASTOPEN: the socket is no TCP socket that can listen.
pub fn fast_open(socket: BorrowedFd<'_>, pending: u32) -> io::Result<()> {
    let pending = i32::try_from(pending).unwrap_or(i32::MAX);
    set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN, pending)
}

/// Makes the kernel ignore ICMP messages about the path's MTU, and allow fragments. EDNS bounds the size of DNS messages (RFC
/// 9715), and a forged "fragmentation needed" must not change anything. Old kernels without these options work too.
pub(crate) fn ignore_path_mtu(socket: RawFd, ipv6: bool) {
    if ipv6 {
        let _ = set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT);
        let _ = set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU, IPV6_MINIMUM_MTU);
    } else {
        let _ = set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT);
    }
}

/// The state of a socket's receive queue, as the kernel reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiveQueue {
    /// Octets that the kernel counts, with its own overhead. They include datagrams that were read already, up to a quarter of `size`: the
    /// kernel releases those later (`udp_rmem_release` in net/ipv4/udp.c).
    pub(crate) used: u32,
    /// Octets that may wait.
    pub(crate) size: u32,
    /// Datagrams dropped so far, because the queue was full or by a filter (wraps around).
    pub(crate) drops: u32,
}

impl ReceiveQueue {
    /// True if the queue is about to overflow.
    pub(crate) fn is_half_full(&self) -> bool {
        self.used > self.size / 2
    }
}

/// Asks the kernel for the state of a socket's receive queue.
pub(crate) fn receive_queue(socket: RawFd) -> ReceiveQueue {
    let SocketMemory { used, size, drops } = socket_memory(socket);
    ReceiveQueue { used, size, drops }
}

/// An eventfd: a counter in the kernel whose increment wakes a sleeping worker.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    /// A counter that wakes an epoll instance.
    ///
    /// # Errors
    ///
    /// The error of eventfd(2): the process may have no more open files.
    pub(crate) fn new() -> io::Result<EventFd> {
        // SAFETY: no pointers are involved.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and nothing else owns it.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    pub(crate) fn notify(&self) {
        let one = 1u64;
        // SAFETY: an eventfd takes exactly the eight octets of `one`. A failure (EAGAIN: the counter is at its
        // maximum) leaves the descriptor readable, and that is enough.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: an eventfd gives exactly eight octets, for which `count` has room. EAGAIN (nothing to clear) is fine.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
