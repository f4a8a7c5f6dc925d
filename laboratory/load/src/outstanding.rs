//! Outstanding queries: a ring of slots, one for each of the last queries of a thread.
//!
//! The sender fills a slot before the query leaves; the receiver completes it. Both are lock-free, because a slot is
//! two words and the second one is written last. A slot is overwritten when its query is three timeouts old.

use std::sync::atomic::{AtomicU64, Ordering};

/// State of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The kernel did not accept it.
    Unsent,
    /// No reply has come yet.
    Outstanding,
    /// A reply has come in time.
    InTime,
    /// A reply has come too late.
    Late,
}

/// One of the last queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The query's state.
    pub state: State,
    /// Sending time, in nanoseconds since the origin of the plan.
    pub sent: u64,
    /// The address in the query name; of listed queries, the index in the list.
    pub address: [u8; 4],
    /// True if the name was queried before.
    pub again: bool,
}

struct Words {
    /// Address in 32 bits, repeated name in 1 bit, the lower 31 bits of the query's number.
    what: AtomicU64,
    /// Sending time in 62 bits, state in 2 bits.
    when: AtomicU64,
}

const NUMBER: u64 = (1 << 31) - 1;

/// The ring of slots.
pub struct OutstandingQueries {
    ring: Box<[Words]>,
    mask: u64,
}

impl OutstandingQueries {
    /// A ring of at least `least` slots: the next power of two.
    pub fn new(least: u64) -> OutstandingQueries {
        let count = least.max(1).next_power_of_two();
        let empty = || Words { what: AtomicU64::new(NUMBER), when: AtomicU64::new(0) };
        OutstandingQueries { ring: (0..count).map(|_| empty()).collect(), mask: count - 1 }
    }

    /// Number of queries that the ring remembers.
    pub fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Enters a query that is about to leave. `sent`: nanoseconds since the origin of the plan, below 2^62.
    #[inline]
    pub fn insert(&self, number: u64, sent: u64, address: [u8; 4], again: bool) {
        let words = &self.ring[(number & self.mask) as usize];
        let address = u64::from(u32::from_be_bytes(address));
        // While the two words belong to different queries, the slot must not be read as either of them.
        words.when.store(0, Ordering::Release);
        words.what.store(address << 32 | u64::from(again) << 31 | (number & NUMBER), Ordering::Release);
        words.when.store(sent << 2 | 1, Ordering::Release);
    }

    /// Marks a query that did not leave.
    pub fn mark_unsent(&self, number: u64) {
        self.ring[(number & self.mask) as usize].when.store(0, Ordering::Release);
    }

    /// The slot of a query, if the ring still has it.
    #[inline]
    pub fn get(&self, number: u64) -> Option<Slot> {
        let words = &self.ring[(number & self.mask) as usize];
        let when = words.when.load(Ordering::Acquire);
        let what = words.what.load(Ordering::Acquire);
        let state = match when & 3 {
            0 => State::Unsent,
            1 => State::Outstanding,
            2 => State::InTime,
            _ => State::Late,
        };
        (what & NUMBER == number & NUMBER).then_some(Slot {
            state,
            sent: when >> 2,
            address: ((what >> 32) as u32).to_be_bytes(),
            again: what >> 31 & 1 == 1,
        })
    }

    /// Completes an outstanding query, which left at `sent`, with its reply. Returns false if the slot has changed in the meantime.
    #[inline]
    pub fn complete(&self, number: u64, sent: u64, late: bool) -> bool {
        let words = &self.ring[(number & self.mask) as usize];
        let ended = sent << 2 | if late { 3 } else { 2 };
        words.when.compare_exchange(sent << 2 | 1, ended, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_out_until_it_ends_once() {
        let slots = OutstandingQueries::new(100);
        assert_eq!(slots.capacity(), 128);
        assert!((0..200).all(|number| slots.get(number).is_none_or(|slot| slot.state == State::Unsent)));
        slots.insert(5, 1_000, [1, 2, 3, 255], true);
        let slot = Slot { state: State::Outstanding, sent: 1_000, address: [1, 2, 3, 255], again: true };
        assert_eq!(slots.get(5), Some(slot));
        assert!(slots.complete(5, 1_000, true));
        assert_eq!(slots.get(5), Some(Slot { state: State::Late, ..slot }));
        assert!(!slots.complete(5, 1_000, false));
        slots.insert(6, 1_001, [0; 4], false);
        assert!(slots.complete(6, 1_001, false));
        assert_eq!(slots.get(6).unwrap().state, State::InTime);
        slots.insert(7, 1_002, [0; 4], false);
        slots.mark_unsent(7);
        assert_eq!(slots.get(7).unwrap().state, State::Unsent);
    }

    #[test]
    fn an_old_query_is_forgotten_when_its_slot_is_needed() {
        let slots = OutstandingQueries::new(4);
        slots.insert(1, 10, [9; 4], false);
        slots.insert(5, 20, [8; 4], false);
        assert_eq!(slots.get(1), None);
        assert_eq!(slots.get(5).unwrap().address, [8; 4]);
        assert!(!slots.complete(1, 10, false));
    }
}
