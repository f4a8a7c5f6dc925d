//! The pause of a worker between two turns, while a connection to an upstream is busy. Such a connection is written to once in
//! `limits::WRITE_PAUSE`, so a turn before that could not send the queries of its clients anyway. Without the pause, each datagram of a client and
//! each reply had a wake-up, a receive and a send of its own, which cost more than the six messages of a resolution.
//!
//! The pause delays all that the worker has to do. So there is none after a turn that has left something in a queue, and none while most
//! answers need no connection: answers out of the cache, or of upstreams that are asked over UDP.

use crate::limits::{ANSWERS_PER_QUERY, TURN_PAUSE_ANSWERS};
use engine::Instant;

/// The decision of one worker on its pauses.
#[derive(Debug, Default)]
pub(super) struct WriteCoalescing {
    /// Answers to clients, of late.
    answers: u64,
    /// Queries over connections to upstreams, of late.
    queries: u64,
    /// The turn has read as much as it may from one queue.
    has_left_some: bool,
}

impl WriteCoalescing {
    /// Records a receive from a queue. `is_full`: there may be more in it.
    #[inline]
    pub(super) fn note_receive(&mut self, is_full: bool) {
        self.has_left_some |= is_full;
    }

    /// Records the end of a turn with so many answers to clients, and so many queries over connections. Returns the end of the pause,
    /// if there is one. `busy_until`: time before which the connection that was written to last is not written to again.
    #[inline]
    pub(super) fn next(
        &mut self,
        answers: u64,
        queries: u64,
        busy_until: Instant,
        now: Instant,
    ) -> Option<Instant> {
        self.answers += answers;
        self.queries += queries;
        if self.answers > TURN_PAUSE_ANSWERS {
            self.answers /= 2;
            self.queries /= 2;
        }
        let has_left_some = std::mem::take(&mut self.has_left_some);
        let is_worthwhile = !has_left_some && self.queries * ANSWERS_PER_QUERY >= self.answers;
        (is_worthwhile && busy_until > now).then_some(busy_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000_000);
    const BUSY_UNTIL: Instant = Instant(NOW.0 + 1);

    #[test]
    fn a_worker_pauses_while_a_connection_is_busy() {
        let mut pause = WriteCoalescing::default();
        assert_eq!(pause.next(10, 20, BUSY_UNTIL, NOW), Some(BUSY_UNTIL));
        assert_eq!(pause.next(10, 20, NOW, NOW), None);
    }

    #[test]
    fn a_turn_that_has_left_something_in_a_queue_has_no_pause_after_it() {
        let mut pause = WriteCoalescing::default();
        pause.note_receive(true);
        pause.note_receive(false);
        assert_eq!(pause.next(64, 128, BUSY_UNTIL, NOW), None);
        pause.note_receive(false);
        assert_eq!(pause.next(10, 20, BUSY_UNTIL, NOW), Some(BUSY_UNTIL));
    }

    #[test]
    fn answers_out_of_the_cache_do_not_wait_for_a_few_that_are_not() {
        let mut pause = WriteCoalescing::default();
        for _ in 0..100 {
            pause.next(2 * ANSWERS_PER_QUERY, 1, BUSY_UNTIL, NOW);
        }
        assert_eq!(pause.next(0, 1, BUSY_UNTIL, NOW), None);
        // When all answers need a connection again, the pauses come back.
        assert!((0..100).any(|_| pause.next(5, 10, BUSY_UNTIL, NOW).is_some()));
    }
}
