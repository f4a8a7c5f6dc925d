//! The clock of the answers that a client has not read: HTTPS and QUIC keep them until the client's windows are open.
//!
//! It runs for all answers that waited when it began, as the clock of TCP does, and begins anew for the others when the client has taken
//! these. So neither a new request nor an octet that is read now and then stops it, and each answer must be read within two timeouts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The clock of one connection. Only its own thread uses it.
#[derive(Default)]
pub(crate) struct Unread(Mutex<Clock>);

#[derive(Default)]
struct Clock {
    since: Option<Instant>,
    /// Number of times that the clock began.
    round: u32,
    /// Answers that waited when it began.
    waiting: usize,
    /// Answers that came later.
    later: usize,
}

impl Unread {
    /// Notes an answer that waits to be read. Returns the round that [`Unread::leave`] expects.
    pub(crate) fn enter(&self) -> u32 {
        let mut clock = self.clock();
        if clock.since.is_some() {
            clock.later += 1;
            return clock.round.wrapping_add(1);
        }
        clock.since = Some(Instant::now());
        clock.waiting = 1;
        clock.round
    }

    /// Notes that an answer was read, or is given up.
    pub(crate) fn leave(&self, round: u32) {
        let mut clock = self.clock();
        if round != clock.round {
            clock.later -= 1;
            return;
        }
        clock.waiting -= 1;
        if clock.waiting == 0 {
            clock.round = clock.round.wrapping_add(1);
            clock.waiting = std::mem::take(&mut clock.later);
            clock.since = (clock.waiting > 0).then(Instant::now);
        }
    }

    /// Time since which the same answers wait.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.clock().since
    }

    /// True if the same answers wait for this time already.
    pub(crate) fn is_overdue(&self, now: Instant, limit: Duration) -> bool {
        self.since().is_some_and(|since| now.saturating_duration_since(since) >= limit)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_for_the_answers_that_waited_when_it_began() {
        let unread = Unread::default();
        assert_eq!(unread.since(), None);
        let first = unread.enter();
        let began = unread.since();
        let later = [(); 2].map(|()| unread.enter());
        unread.leave(later[0]);
        assert!(began.is_some() && unread.since() == began, "the first one waits");
        unread.leave(first);
        assert!(unread.since() > began, "it begins anew for the other one");
        let latest = unread.enter();
        unread.leave(later[1]);
        unread.leave(latest);
        assert_eq!(unread.since(), None);
        unread.leave(unread.enter());
        assert_eq!(unread.since(), None);
    }
}
