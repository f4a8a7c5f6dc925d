//! Search for popular questions, whose answers belong into a packet cache, and for popular names, which all workers answer.

use crate::limits::PACKET_CACHE_COUNTERS;

/// Counters of a set.
const WAYS: usize = 4;

/// Sets of counters in the search of a packet cache.
pub const PACKET_CACHE_SETS: usize = PACKET_CACHE_COUNTERS / WAYS;

/// Search for hashes that come often: sets of counters, of which some bits of the hash choose one. A hash without a counter lowers the
/// lowest one of its set, and takes it at zero. So a count may be too low, and never too high.
pub struct Popularity<const SETS: usize> {
    sets: Box<[[(u32, u8); WAYS]]>,
    often: u8,
}

impl<const SETS: usize> Popularity<SETS> {
    /// Nothing has been counted. A hash is popular when it has come `often` times, at most 63.
    pub fn new(often: u8) -> Popularity<SETS> {
        Popularity { sets: vec![[(0, 0); WAYS]; SETS].into_boxed_slice(), often }
    }

    /// Counts a hash. Returns true when it becomes popular, and from time to time while it is.
    #[inline]
    pub fn count(&mut self, hash: u64) -> bool {
        let set = &mut self.sets[hash as usize % SETS];
        let rest = (hash >> 32) as u32;
        if let Some((_, count)) = set.iter_mut().find(|(other, count)| *other == rest && *count > 0) {
            *count = if *count == u8::MAX { 64 } else { *count + 1 };
            return *count % 64 == self.often;
        }
        if let Some(lowest) = set.iter_mut().min_by_key(|(_, count)| *count) {
            match lowest.1 {
                0 => *lowest = (rest, 1),
                count => lowest.1 = count - 1,
            }
        }
        false
    }

    /// Begins to count anew.
    pub fn clear(&mut self) {
        self.sets.fill([(0, 0); WAYS]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PACKET_CACHE_POPULAR;

    fn search() -> Popularity<PACKET_CACHE_SETS> {
        Popularity::new(PACKET_CACHE_POPULAR)
    }

    #[test]
    fn a_question_is_popular_when_it_comes_often() {
        let mut popularity = search();
        let calls: Vec<bool> = (0..200).map(|_| popularity.count(7 << 32)).collect();
        assert_eq!(
            calls.iter().position(|&is_popular| is_popular),
            Some(usize::from(PACKET_CACHE_POPULAR) - 1)
        );
        assert_eq!(calls.iter().filter(|&&is_popular| is_popular).count(), 4, "again after each 64 queries");
        popularity.clear();
        assert!(!popularity.count(7 << 32));
    }

    #[test]
    fn questions_that_come_once_do_not_hide_those_that_come_often() {
        let mut popularity = search();
        // All have the same set. Three questions come again and again, and others once between them.
        let often = [1u64 << 62, 1 << 61, 1 << 60];
        let mut found = [false; 3];
        for other in 1..200u64 {
            popularity.count(other << 32 | 5);
            for (place, question) in often.into_iter().enumerate() {
                found[place] |= popularity.count(question | 5);
            }
        }
        assert_eq!(found, [true; 3]);
        let mut popularity = search();
        assert!((1..5000u64).all(|other| !popularity.count(other << 32 | 5)));
    }
}
