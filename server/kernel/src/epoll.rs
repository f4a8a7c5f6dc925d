//! Readiness of descriptors (epoll(7), poll(2)).

use crate::syscalls::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An epoll instance with room for the events of one wait. It is level-triggered, except for descriptors that were added with
/// EPOLLET.
pub struct Epoll {
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
    pub fn new(capacity: usize) -> io::Result<Epoll> {
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
    pub fn registry(&self) -> io::Result<EpollRegistry> {
        Ok(EpollRegistry(self.epoll.try_clone()?))
    }

    /// Waits for at most `timeout_ms` (0: does not wait). An interrupted wait counts as a wait without events.
    pub fn wait(&mut self, timeout_ms: i32) {
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
    pub fn wait_nanoseconds(&mut self, nanoseconds: u64) {
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
    #[inline]
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// The token and the readiness bits of one event of the last wait.
    #[inline]
    pub fn event(&self, index: usize) -> (u64, u32) {
        let event = self.events[..self.ready][index];
        (event.u64, event.events)
    }
}

/// Adds, changes and removes the descriptors of an [`Epoll`].
pub struct EpollRegistry(OwnedFd);

impl EpollRegistry {
    /// Reports a descriptor from now on, with `token`, if one of the events in `interest` (EPOLLIN and others) happens.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): EEXIST if the descriptor is reported already, ENOSPC beyond the limit of the user
    /// (fs.epoll.max_user_watches).
    pub fn add(&self, descriptor: RawFd, interest: i32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, interest, token)
    }

    /// Changes the events and the token of a descriptor.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): ENOENT if the descriptor is not reported.
    pub fn change(&self, descriptor: RawFd, interest: i32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, interest, token)
    }

    /// Reports a descriptor no more.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): ENOENT if the descriptor is not reported.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor.as_raw_fd(), 0, 0)
    }

    fn control(&self, what: i32, descriptor: RawFd, interest: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: token };
        // SAFETY: `event` is a valid epoll_event that lives through the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, descriptor, &mut event) }).map(|_| ())
    }
}

/// A few descriptors, and the wait until one of them is readable. Their owner keeps them open.
pub struct ReadableWait(Vec<libc::pollfd>);

impl ReadableWait {
    /// A wait for these descriptors.
    pub fn new(descriptors: impl IntoIterator<Item = RawFd>) -> ReadableWait {
        let entry = |descriptor| libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        ReadableWait(descriptors.into_iter().map(entry).collect())
    }

    /// Waits for at most `nanoseconds`, exactly, as far as the kernel's timers are exact. A signal ends the wait early.
    pub fn wait(&mut self, nanoseconds: u64) {
        let span = libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as _,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the entries are a slice of that length, `span` lives through the call, and no signal mask is given.
        unsafe {
            libc::ppoll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, &raw const span, std::ptr::null())
        };
    }
}
