//! Questions that are asked often, whose answers belong into a packet cache: that in the kernel (`kernel_cache_filler.rs`), or that of a stream
//! thread (the crate `transport`).

use crate::limits::{PACKET_CACHE_CANDIDATES, PACKET_CACHE_HOT};

/// The search for questions that are asked often, by their hashes: sets of counters, of which some bits of the hash choose one. A question without a
/// counter lowers the lowest one of its set, and takes it at zero.
pub struct PacketCacheCandidates {
    counters: Box<[(u32, u8)]>,
}

/// Counters of a set.
const WAYS: usize = 4;

impl PacketCacheCandidates {
    /// No question has been counted.
    pub fn new() -> PacketCacheCandidates {
        PacketCacheCandidates { counters: vec![(0, 0); PACKET_CACHE_CANDIDATES].into_boxed_slice() }
    }

    /// Counts a question. Returns true when it becomes hot, and from time to time while it is.
    #[inline]
    pub fn count(&mut self, hash: u64) -> bool {
        let start = hash as usize % (PACKET_CACHE_CANDIDATES / WAYS) * WAYS;
        let question = (hash >> 32) as u32;
        let set = &mut self.counters[start..start + WAYS];
        if let Some((_, count)) = set.iter_mut().find(|(other, count)| *other == question && *count > 0) {
            *count = if *count == u8::MAX { 64 } else { *count + 1 };
            return *count % 64 == PACKET_CACHE_HOT;
        }
        if let Some(lowest) = set.iter_mut().min_by_key(|(_, count)| *count) {
            match lowest.1 {
                0 => *lowest = (question, 1),
                count => lowest.1 = count - 1,
            }
        }
        false
    }

    /// Begins to count anew.
    pub fn clear(&mut self) {
        self.counters.fill((0, 0));
    }
}

impl Default for PacketCacheCandidates {
    fn default() -> PacketCacheCandidates {
        PacketCacheCandidates::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_hot_when_it_comes_often() {
        let mut hot = PacketCacheCandidates::new();
        let calls: Vec<bool> = (0..200).map(|_| hot.count(7 << 32)).collect();
        assert_eq!(calls.iter().position(|&is_hot| is_hot), Some(usize::from(PACKET_CACHE_HOT) - 1));
        assert_eq!(calls.iter().filter(|&&is_hot| is_hot).count(), 4, "again after each 64 queries");
        hot.clear();
        assert!(!hot.count(7 << 32));
    }

    #[test]
    fn questions_that_come_once_do_not_hide_those_that_come_often() {
        let mut hot = PacketCacheCandidates::new();
        // All have the same set. Three questions come again and again, and others once between them.
        let often = [1u64 << 62, 1 << 61, 1 << 60];
        let mut found = [false; 3];
        for other in 1..200u64 {
            hot.count(other << 32 | 5);
            for (place, question) in often.into_iter().enumerate() {
                found[place] |= hot.count(question | 5);
            }
        }
        assert_eq!(found, [true; 3]);
        let mut hot = PacketCacheCandidates::new();
        assert!((1..5000u64).all(|other| !hot.count(other << 32 | 5)));
    }
}
