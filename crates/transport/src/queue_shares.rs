//! The shares of client networks in the queue of answers to a stream thread.
//!
//! While the queue is less than three quarters full, everybody may put into it. Beyond that a network may hold at most a sixteenth of it, so
//! one that asks for more large answers than its connections take loses its own, and not those of others. Networks are told apart by
//! a keyed hash: two in [`CELLS`] share one account.

use crate::limits::{QUEUED_ANSWER_OCTETS, QUEUED_ANSWERS};
use engine::ClientNetwork;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Accounts of networks.
const CELLS: usize = 1024;

/// What an answer counts at least: its place in the queue.
const PLACE_OCTETS: usize = QUEUED_ANSWER_OCTETS / QUEUED_ANSWERS;

/// Octets beyond which a network has a share only.
const FREE_OCTETS: usize = QUEUED_ANSWER_OCTETS / 4 * 3;

/// Octets of a network's share: 256 small answers, or 16 of the largest.
const SHARE_OCTETS: usize = QUEUED_ANSWER_OCTETS / 16;

/// The octets of the answers in a queue, by client network.
pub(crate) struct QueueShares {
    all: AtomicUsize,
    cells: Box<[AtomicUsize]>,
    key: RandomState,
}

impl QueueShares {
    pub(crate) fn new() -> QueueShares {
        let cells = (0..CELLS).map(|_| AtomicUsize::new(0)).collect();
        QueueShares { all: AtomicUsize::new(0), cells, key: RandomState::new() }
    }

    /// Counts an answer of so many octets. Returns false if there is no room for it.
    pub(crate) fn put(&self, network: ClientNetwork, octets: usize) -> bool {
        let octets = octets.max(PLACE_OCTETS);
        let all = self.all.fetch_add(octets, Ordering::Relaxed) + octets;
        let of_network = self.cell(network).fetch_add(octets, Ordering::Relaxed) + octets;
        let has_room = all <= FREE_OCTETS || all <= QUEUED_ANSWER_OCTETS && of_network <= SHARE_OCTETS;
        if !has_room {
            self.take(network, octets);
        }
        has_room
    }

    /// Counts an answer less.
    pub(crate) fn take(&self, network: ClientNetwork, octets: usize) {
        let octets = octets.max(PLACE_OCTETS);
        self.all.fetch_sub(octets, Ordering::Relaxed);
        self.cell(network).fetch_sub(octets, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn have_one_account(&self, one: ClientNetwork, other: ClientNetwork) -> bool {
        std::ptr::eq(self.cell(one), self.cell(other))
    }

    fn cell(&self, network: ClientNetwork) -> &AtomicUsize {
        &self.cells[self.key.hash_one(network) as usize % CELLS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u32) -> ClientNetwork {
        ClientNetwork::of(std::net::Ipv4Addr::from(number).to_ipv6_mapped(), 0)
    }

    #[test]
    fn a_network_with_large_answers_leaves_room_for_those_of_others() {
        for octets in [60_000, 100] {
            let shares = QueueShares::new();
            let taken = (0..QUEUED_ANSWERS).filter(|_| shares.put(network(1), octets)).count();
            assert_eq!(taken, FREE_OCTETS / octets.max(PLACE_OCTETS));
            for other in (2..102).filter(|&other| !shares.have_one_account(network(1), network(other))) {
                assert!((0..8).all(|_| shares.put(network(other), 100)), "{other}");
            }
            assert!(!shares.put(network(1), octets));
            (0..taken).for_each(|_| shares.take(network(1), octets));
            assert!(shares.put(network(1), octets));
        }
    }

    #[test]
    fn the_queue_has_an_end() {
        let shares = QueueShares::new();
        let put = (0..2 * QUEUED_ANSWERS as u32).filter(|&number| shares.put(network(number), 100)).count();
        assert_eq!(put, QUEUED_ANSWERS);
    }
}
