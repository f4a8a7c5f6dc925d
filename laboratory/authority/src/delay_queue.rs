//! Queue of queries whose answers are delayed. It keeps the queries, not the answers: a query is short, and its
//! answer depends on nothing else. All memory is reserved when the queue is made; only as much is touched as queries
//! ever waited at one time.

use crate::limits;
use engine::{Client, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The queue, ordered by due time.
pub(crate) struct DelayQueue {
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    slots: Vec<DelayedQuery>,
    /// Unused slots that were in use before. The last one freed is reused first, so that few are touched.
    free: Vec<u32>,
    capacity: usize,
}

/// A query that waits.
pub(crate) struct DelayedQuery {
    pub client: Client,
    length: u16,
    octets: [u8; limits::DELAYED_QUERY],
}

impl DelayedQuery {
    pub fn query(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

impl DelayQueue {
    /// A queue for up to `capacity` queries.
    pub fn new(capacity: usize) -> DelayQueue {
        DelayQueue {
            due: BinaryHeap::with_capacity(capacity),
            slots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            capacity,
        }
    }

    /// Keeps a query until `due`. Returns false if the queue is full or the query is too long.
    pub fn push(&mut self, due: Instant, client: &Client, query: &[u8]) -> bool {
        if query.len() > limits::DELAYED_QUERY {
            return false;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.capacity => {
                let octets = [0; limits::DELAYED_QUERY];
                self.slots.push(DelayedQuery { client: *client, length: 0, octets });
                (self.slots.len() - 1) as u32
            }
            None => return false,
        };
        let waiting = &mut self.slots[slot as usize];
        waiting.client = *client;
        waiting.length = query.len() as u16;
        waiting.octets[..query.len()].copy_from_slice(query);
        self.due.push(Reverse((due, slot)));
        true
    }

    /// Due time of the first query.
    pub fn deadline(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Removes and returns a query that is due.
    pub fn take(&mut self, now: Instant) -> Option<&DelayedQuery> {
        let Reverse((due, slot)) = *self.due.peek()?;
        if due > now {
            return None;
        }
        self.due.pop();
        self.free.push(slot);
        Some(&self.slots[slot as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> Client {
        Client::udp(([127, 0, 0, 1], port).into())
    }

    #[test]
    fn queries_leave_by_time_and_not_by_arrival() {
        let mut delayed = DelayQueue::new(8);
        for (due, port) in [(30, 3), (10, 1), (20, 2), (40, 4)] {
            assert!(delayed.push(Instant(due), &client(port), &[port as u8; 20]));
        }
        assert_eq!(delayed.deadline(), Some(Instant(10)));
        let mut left = Vec::new();
        while let Some(waiting) = delayed.take(Instant(30)) {
            assert_eq!(waiting.query(), [waiting.client.port as u8; 20]);
            left.push(waiting.client.port);
        }
        assert_eq!(left, [1, 2, 3]);
        assert_eq!(delayed.deadline(), Some(Instant(40)));
    }

    #[test]
    fn no_more_wait_than_there_is_room_for_and_places_are_used_again() {
        let mut delayed = DelayQueue::new(3);
        for round in 0..5 {
            for port in 0..3 {
                assert!(delayed.push(Instant(round), &client(port), b"x"));
            }
            assert!(!delayed.push(Instant(round), &client(9), b"x"));
            for _ in 0..3 {
                assert!(delayed.take(Instant(round)).is_some());
            }
            assert!(delayed.take(Instant(round)).is_none());
        }
        assert!(!delayed.push(Instant(0), &client(1), &[0; limits::DELAYED_QUERY + 1]));
        assert!(delayed.push(Instant(0), &client(1), &[0; limits::DELAYED_QUERY]));
    }
}
