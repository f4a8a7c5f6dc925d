//! The write queue of a connection: answers that wait to be written. They are framed, so that length and message leave in one
//! write (RFC 7766 section 8), together with all other waiting answers. An empty queue owns no memory.

use crate::limits::WRITE_QUEUE_OCTETS;
use datapath::framing::Encoder;
use std::time::{Duration, Instant};

/// The writing side of a connection.
#[derive(Default)]
pub struct Outbound(Option<Box<Queue>>);

struct Queue {
    encoder: Encoder,
    /// Octets that passed through the encoder so far: an upper bound for the size of its buffer.
    passed: usize,
    /// Time at which the kernel took no more octets, and the number of the octets waiting then that still wait.
    blocked: Option<(Instant, usize)>,
}

impl Outbound {
    /// Adds an answer. Returns false if too many octets wait already.
    //= RFC 7858 section 3.3: requirement 74
    pub fn push(&mut self, message: &[u8]) -> bool {
        let new = || Box::new(Queue { encoder: Encoder::new(WRITE_QUEUE_OCTETS), passed: 0, blocked: None });
        let queue = self.0.get_or_insert_with(new);
        queue.passed += 2 + message.len();
        queue.encoder.add(message)
    }

    /// The octets that wait to be written.
    pub fn pending(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |queue| queue.encoder.pending())
    }

    /// True if no octets wait to be written.
    pub fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    /// Removes the first `octets` waiting octets: they were written.
    pub fn advance(&mut self, octets: usize) {
        if let Some(queue) = &mut self.0 {
            queue.encoder.advance(octets);
            queue.blocked =
                queue.blocked.filter(|(_, wait)| *wait > octets).map(|(since, wait)| (since, wait - octets));
        }
        if self.is_empty() {
            self.0 = None;
        }
    }

    /// Starts the timer, because the kernel takes no more octets. It runs for all octets that wait now, so a client that reads
    /// an octet now and then does not stop it.
    pub fn block(&mut self, now: Instant) {
        if let Some(queue) = &mut self.0 {
            queue.blocked.get_or_insert((now, queue.encoder.pending().len()));
        }
    }

    /// True if the octets that waited when the timer started were not written within `limit`.
    pub fn is_overdue(&self, now: Instant, limit: Duration) -> bool {
        self.blocked_since().is_some_and(|since| now.saturating_duration_since(since) >= limit)
    }

    /// Time at which the timer started.
    pub fn blocked_since(&self) -> Option<Instant> {
        self.0.as_ref()?.blocked.map(|(since, _)| since)
    }

    /// Upper bound for the octets of the buffers: the encoder's buffer grows in powers of two.
    pub fn octets(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.passed.next_power_of_two().min(WRITE_QUEUE_OCTETS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_answers_leave_in_one_write_and_no_memory_stays() {
        let mut outbound = Outbound::default();
        assert!(outbound.push(b"one") && outbound.push(b"three"));
        assert_eq!(outbound.pending(), b"\0\x03one\0\x05three");
        assert_eq!(outbound.octets(), 16);
        outbound.advance(4);
        assert_eq!(outbound.pending(), b"e\0\x05three");
        outbound.advance(8);
        assert!(outbound.is_empty());
        assert_eq!(outbound.octets(), 0);
    }

    #[test]
    fn a_queue_has_an_end() {
        let mut outbound = Outbound::default();
        for _ in 0..3 {
            assert!(outbound.push(&[0; 65_535]));
        }
        assert!(outbound.push(&[0; 60_000]));
        assert!(!outbound.push(&[0; 65_535]));
        assert_eq!(outbound.octets(), WRITE_QUEUE_OCTETS);
    }

    #[test]
    fn the_clock_runs_for_what_waited_when_the_kernel_took_no_more() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut outbound = Outbound::default();
        outbound.push(&[0; 98]);
        assert!(!outbound.is_overdue(start + 9 * second, second));
        outbound.block(start);
        outbound.push(&[0; 98]);
        outbound.advance(99);
        outbound.block(start + second);
        assert!(outbound.is_overdue(start + second, second));
        outbound.advance(1);
        outbound.block(start + second);
        assert!(!outbound.is_overdue(start + second, second));
        assert!(outbound.is_overdue(start + 2 * second, second));
        outbound.advance(100);
        assert!(!outbound.is_overdue(start + 9 * second, second));
    }
}
