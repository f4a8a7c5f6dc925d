//! The system calls that neither `std` nor `socket2` offers in the form needed here: readiness (epoll), wake-up (eventfd),
//! the clock, socket options by number, and the processor that a thread runs on.

use crate::limits::{DATAGRAM_QUEUE_OCTETS, IPV6_MINIMUM_MTU};
use engine::{Instant, Span};
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

/// The result of a system call as a `Result`: -1 means that errno holds the error.
///
/// # Errors
///
/// The error that errno holds, if `result` is negative.
pub(crate) fn check(result: libc::c_int) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Sends messages until one fails, without waiting, in one system call: sendmmsg(2). Returns its result. The function of that name in
/// musl makes one call for each message, because lengths in its headers are shorter than the kernel's. Here the octets behind these
/// lengths are zero, so on a little-endian processor the kernel reads the same numbers.
///
/// # Safety
///
/// The headers must be zero where nothing was set, and the memory that they point at must be valid during the call.
pub(crate) unsafe fn send_messages(socket: RawFd, headers: &mut [libc::mmsghdr]) -> libc::c_int {
    const { assert!(cfg!(any(target_env = "gnu", target_endian = "little"))) };
    // SAFETY: `headers` is a slice of that length; the caller vouches for what they point at.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            socket,
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            libc::MSG_DONTWAIT as libc::c_uint,
        )
    };
    sent as libc::c_int
}

/// Sets a socket option whose value is an int.
///
/// # Errors
///
/// The error of setsockopt(2).
pub(crate) fn set_option(socket: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value is an int that lives through the call, and its size is given.
    let result = unsafe {
        libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<i32>() as libc::socklen_t)
    };
    check(result).map(|_| ())
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

/// Asks for a receive buffer of `octets`. `force`: tries to exceed the system's limit. Returns true if the process may do that.
pub(crate) fn set_receive_buffer(socket: RawFd, octets: i32, force: bool) -> bool {
    if force && set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, octets).is_ok() {
        return true;
    }
    // The kernel cuts the size down to net.core.rmem_max. A smaller buffer is not an error.
    let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, octets);
    false
}

/// Datagrams that the kernel dropped because the socket's receive queue was full or its filter rejected them (wraps around).
pub(crate) fn receive_drops(socket: RawFd) -> u32 {
    receive_queue(socket).drops
}

/// The state of a socket's receive queue, as the kernel reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiveQueue {
    /// Octets that the kernel counts, with its own overhead: those that wait, and the unreleased ones.
    pub(crate) used: u32,
    /// Octets of datagrams that were read already. The kernel does not tell; [`UnreleasedOctets`](super::unreleased::UnreleasedOctets) does.
    pub(crate) unreleased: u32,
    /// Octets that may wait.
    pub(crate) size: u32,
    /// Datagrams dropped so far, because the queue was full or by a filter (wraps around).
    pub(crate) drops: u32,
}

impl ReceiveQueue {
    /// Estimated number of datagrams that wait, if all are small.
    pub(crate) fn waiting(&self) -> f64 {
        f64::from(self.used.saturating_sub(self.unreleased)) / DATAGRAM_QUEUE_OCTETS
    }

    /// Estimated number of datagrams that can wait now, if all are small.
    pub(crate) fn capacity(&self) -> f64 {
        f64::from(self.size.saturating_sub(self.unreleased)) / DATAGRAM_QUEUE_OCTETS
    }
}

/// Asks the kernel for the state of a socket's receive queue.
pub(crate) fn receive_queue(socket: RawFd) -> ReceiveQueue {
    const FIELDS: usize = 16;
    let mut info = [0u32; FIELDS];
    let mut length = (FIELDS * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: `info` has room for `length` octets; the kernel writes at most that many and updates `length`.
    unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, info.as_mut_ptr().cast(), &mut length)
    };
    ReceiveQueue {
        used: info[libc::SK_MEMINFO_RMEM_ALLOC as usize],
        unreleased: 0,
        size: info[libc::SK_MEMINFO_RCVBUF as usize],
        drops: info[libc::SK_MEMINFO_DROPS as usize],
    }
}

/// Takes the pending error of a socket (SO_ERROR), if there is one.
pub(crate) fn take_error(socket: RawFd) -> Option<io::Error> {
    let mut error: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `error` is an int, and `length` says so.
    let result = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &mut length)
    };
    match (result, error) {
        (0, 0) => None,
        (0, code) => Some(io::Error::from_raw_os_error(code)),
        _ => Some(io::Error::last_os_error()),
    }
}

/// The entry of a descriptor for [`wait_readable`].
pub(crate) fn readable(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

/// Waits until one of a few descriptors is readable, for `span` at most. Their `revents` say which one. Unlike [`Epoll::wait`]
/// it is exact to the nanosecond, as far as the kernel's timers are. An interrupted wait counts as a wait without events.
pub(crate) fn wait_readable(descriptors: &mut [libc::pollfd], span: Span) {
    let span = libc::timespec {
        tv_sec: (span.0 / 1_000_000_000) as _,
        tv_nsec: (span.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `descriptors` is a slice of that length, `span` lives through the call, and no signal mask is given.
    let result = unsafe {
        libc::ppoll(
            descriptors.as_mut_ptr(),
            descriptors.len() as libc::nfds_t,
            &raw const span,
            std::ptr::null(),
        )
    };
    if result < 0 {
        descriptors.iter_mut().for_each(|descriptor| descriptor.revents = 0);
    }
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

/// An epoll instance with room for the events of one wait. It is level-triggered, except for descriptors that were added with
/// EPOLLET.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Epoll {
    /// An epoll instance that returns up to `capacity` events at a time.
    ///
    /// # Errors
    ///
    /// The error of epoll_create1(2): the process may have no more open files.
    pub(crate) fn new(capacity: usize) -> io::Result<Epoll> {
        // SAFETY: no pointers are involved.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and nothing else owns it.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        Ok(Epoll { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; capacity.max(1)], ready: 0 })
    }

    /// Another handle of the instance, for the code that adds and changes descriptors.
    ///
    /// # Errors
    ///
    /// The error of fcntl(2) for a duplicate of the descriptor: the process may have no more open files.
    pub(crate) fn registry(&self) -> io::Result<EpollRegistry> {
        Ok(EpollRegistry(self.epoll.try_clone()?))
    }

    /// Waits for at most `timeout_ms` (0: does not wait). An interrupted wait counts as a wait without events.
    pub(crate) fn wait(&mut self, timeout_ms: i32) {
        // SAFETY: `events` has room for as many events as the call is told.
        let result = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as i32,
                timeout_ms,
            )
        };
        self.ready = result.max(0) as usize;
    }

    /// Waits for at most `nanoseconds` (0: does not wait). An interrupted wait counts as a wait without events.
    pub(crate) fn wait_nanoseconds(&mut self, nanoseconds: u64) {
        let time = libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as _,
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        };
        // SAFETY: `events` has room for as many events as the call is told; `time` lives through the call; no signal mask is
        // given, so its size does not matter.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                &raw const time,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            // Before Linux 5.11 the wait is in milliseconds. The caller repeats a wait that ends too early.
            return self.wait((nanoseconds / 1_000_000).min(1000) as i32);
        }
        self.ready = result.max(0) as usize;
    }

    /// Number of events of the last wait.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// The token and the readiness bits of one event of the last wait.
    pub(crate) fn event(&self, index: usize) -> (u64, u32) {
        let event = self.events[..self.ready][index];
        (event.u64, event.events)
    }
}

/// Adds, changes and removes the descriptors of an [`Epoll`].
pub(crate) struct EpollRegistry(OwnedFd);

impl EpollRegistry {
    /// Reports a descriptor from now on, with `token`, if one of the events in `interest` (EPOLLIN and others) happens.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): EEXIST if the descriptor is reported already, ENOSPC beyond the limit of the user
    /// (fs.epoll.max_user_watches).
    pub(crate) fn add(&self, descriptor: RawFd, interest: i32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, interest, token)
    }

    /// Changes the events and the token of a descriptor.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): ENOENT if the descriptor is not reported.
    pub(crate) fn change(&self, descriptor: RawFd, interest: i32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, interest, token)
    }

    /// Reports a descriptor no more.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): ENOENT if the descriptor is not reported.
    pub(crate) fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor.as_raw_fd(), 0, 0)
    }

    fn control(&self, what: i32, descriptor: RawFd, interest: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: token };
        // SAFETY: `event` is a valid epoll_event that lives through the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, descriptor, &mut event) }).map(|_| ())
    }
}
