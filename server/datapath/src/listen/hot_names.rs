//! Hot names: a name that takes a large part of a busy worker's queries is answered by all workers, each out of its own cache.
//!
//! A name belongs to one worker (`steering.rs`), so that an upstream is asked once for it. This limits a name to the rate of one
//! worker. Of a name with so many queries, each worker can have the answer in its own cache instead: it asks an upstream once per TTL,
//! beside thousands of queries that it answers. So nothing is shared between the workers but the list of these names, which changes
//! a few times a minute, and which the kernel's steering program knows.
//!
//! A worker looks for hot names only while its batches are full, in one query of each batch. This file has no socket and no clock.

use crate::limits::{HOT_CANDIDATES, HOT_NAME_MEMORY, HOT_NAMES, HOT_PART, HOT_SAMPLE};
use engine::Instant;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The search of one worker: the name hashes in a sample of its queries, by the algorithm of Misra and Gries, which finds
/// every value that makes up more than one in [`HOT_CANDIDATES`] of a stream.
#[derive(Debug, Default)]
pub(crate) struct HotNameDetector {
    /// Name hashes with their counts. A count is too low by at most the sample divided by the number of candidates.
    candidates: [(u32, u32); HOT_CANDIDATES],
    sampled: u32,
}

impl HotNameDetector {
    /// Number of queries sampled so far: tells the caller which query of a batch to sample next.
    pub(crate) fn sampled(&self) -> usize {
        self.sampled as usize
    }

    /// Takes the name hash of a query. Returns the hash of a hot name at the end of a sample, if there is one.
    pub(crate) fn take(&mut self, hash: u32) -> Option<u32> {
        let candidates = &mut self.candidates;
        let place = candidates.iter().position(|&(other, count)| other == hash && count > 0);
        match place.or_else(|| candidates.iter().position(|&(_, count)| count == 0)) {
            Some(place) => candidates[place] = (hash, candidates[place].1 + 1),
            None => candidates.iter_mut().for_each(|(_, count)| *count -= 1),
        }
        self.sampled += 1;
        if self.sampled < HOT_SAMPLE {
            return None;
        }
        let (hash, count) = candidates.iter().copied().max_by_key(|&(_, count)| count)?;
        *self = HotNameDetector::default();
        (count >= HOT_SAMPLE / HOT_PART).then_some(hash)
    }
}

/// The hot names of all workers, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct HotNames {
    /// The hashes, for readers. 0: none; a name with this hash is never hot.
    hashes: [AtomicU32; HOT_NAMES],
    /// The same, with the time at which each became hot. Held while the kernel's programs are replaced.
    since: Mutex<Vec<(u32, Instant)>>,
}

/// The list of hot names while it is changed: whoever holds it replaces the kernel's programs.
pub(crate) struct ChangedList<'n> {
    list: MutexGuard<'n, Vec<(u32, Instant)>>,
}

impl ChangedList<'_> {
    /// The hashes of the names.
    pub(crate) fn hashes(&self) -> Vec<u32> {
        self.list.iter().map(|&(hash, _)| hash).collect()
    }
}

impl HotNames {
    /// True if the name with this hash is answered by all workers.
    #[inline]
    pub(crate) fn contains(&self, hash: u32) -> bool {
        hash != 0 && self.hashes.iter().any(|one| one.load(Ordering::Relaxed) == hash)
    }

    /// True if there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // They stand at the front.
        self.hashes[0].load(Ordering::Relaxed) == 0
    }

    /// Adds a name. None: it is in the list, or there is no room.
    pub(crate) fn add(&self, hash: u32, now: Instant) -> Option<ChangedList<'_>> {
        let mut list = self.lock();
        if hash == 0 || list.len() == HOT_NAMES || list.iter().any(|&(other, _)| other == hash) {
            return None;
        }
        list.push((hash, now));
        Some(self.publish(list))
    }

    /// Takes away the names that have been in the list for [`HOT_NAME_MEMORY`]: one that is still hot comes back at once. None: nothing
    /// has changed.
    pub(crate) fn expire(&self, now: Instant) -> Option<ChangedList<'_>> {
        let mut list = self.lock();
        let before = list.len();
        list.retain(|&(_, since)| now - since < HOT_NAME_MEMORY);
        (list.len() < before).then(|| self.publish(list))
    }

    fn publish<'n>(&self, list: MutexGuard<'n, Vec<(u32, Instant)>>) -> ChangedList<'n> {
        let hashes = list.iter().map(|&(hash, _)| hash).chain(std::iter::repeat(0));
        self.hashes.iter().zip(hashes).for_each(|(one, hash)| one.store(hash, Ordering::Relaxed));
        ChangedList { list }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, Instant)>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hot name of a sample in which every `part`-th query is for name 7, and all others are for different names.
    fn found(part: u32) -> Option<u32> {
        let mut search = HotNameDetector::default();
        let mut found = None;
        for number in 0..HOT_SAMPLE {
            found = found.or(search.take(if number % part == 0 { 7 } else { 1_000 + number }));
        }
        assert_eq!(search.sampled(), 0, "the next sample begins");
        found
    }

    #[test]
    fn a_name_is_hot_if_it_makes_up_a_large_part_of_the_queries() {
        for part in [1, 2, 3, 5] {
            assert_eq!(found(part), Some(7), "one in {part}");
        }
        for part in [HOT_PART + 1, 2 * HOT_PART, HOT_SAMPLE] {
            assert_eq!(found(part), None, "one in {part}");
        }
    }

    #[test]
    fn names_are_forgotten_after_a_time_and_their_number_is_bounded() {
        let names = HotNames::default();
        assert!(names.is_empty() && !names.contains(0));
        for number in 1..=HOT_NAMES as u32 {
            let changed = names.add(number, Instant(u64::from(number))).unwrap();
            assert_eq!(changed.hashes().last(), Some(&number));
        }
        assert!(names.add(99, Instant(99)).is_none() && !names.contains(99), "no room");
        assert!(names.contains(1) && !names.is_empty());
        let end = Instant(2) + HOT_NAME_MEMORY;
        assert_eq!(names.expire(end).unwrap().hashes().len(), HOT_NAMES - 2);
        assert!(names.expire(end).is_none());
        assert!(!names.contains(1) && !names.contains(2) && names.contains(3));
        assert!(names.add(3, end).is_none(), "it is in the list");
        assert!(names.add(0, end).is_none(), "no name");
    }
}
