//! Timer with the precision of the kernel (timerfd_create(2)): the timers of tokio have one of a millisecond, ten queries at
//! 10,000 queries per second.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use tokio::net::unix::pipe::Receiver;

/// A timer of one thread.
pub struct Timer {
    /// The descriptor is read as a pipe is: tokio's type for any descriptor cannot be made without `unsafe`.
    descriptor: Receiver,
    /// The instant for which it is set.
    set: Option<u64>,
}

impl Timer {
    /// A timer in the runtime of the calling thread.
    ///
    /// # Errors
    ///
    /// The error of timerfd_create(2): the process may have no more open files.
    pub fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Timer { descriptor: Receiver::from_owned_fd_unchecked(descriptor)?, set: None })
    }

    /// Waits until `instant`, or less. Instants and `now` are in nanoseconds since any time.
    pub async fn wait(&mut self, now: u64, instant: u64) {
        if self.set != Some(instant) {
            // A value of zero would stop the timer.
            let left = instant.saturating_sub(now).max(1);
            let it_value =
                Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
            let value = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            // The descriptor and the value are valid, so this cannot fail.
            let _ = timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &value);
            self.set = Some(instant);
        }
        if self.descriptor.readable().await.is_ok() {
            // The count of expirations has 8 octets. A read of fewer than the buffer tells tokio that no more is there.
            let _ = self.descriptor.try_read(&mut [0; 16]);
        }
        self.set = None;
    }
}
