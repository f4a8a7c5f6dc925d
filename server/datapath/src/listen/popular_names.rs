//! Popular names: a name that takes a large part of a busy worker's queries is answered by all workers, each out of its own cache.
//!
//! A name belongs to one worker (`steering.rs`), so that an upstream is asked once for it. This limits a name to the rate of one
//! worker. Of a name with so many queries, each worker can have the answer in its own cache instead: it asks an upstream once per TTL,
//! beside thousands of queries that it answers. So nothing is shared between the workers but the list of these names, which changes
//! a few times a minute, and which the kernel's steering program knows.
//!
//! A worker looks for popular names only while its batches are full, in one query of each batch. This file has no socket and no clock.

use crate::limits::{NAME_SAMPLE, NAME_SETS, POPULAR_NAME_MEMORY, POPULAR_NAMES, POPULAR_PART};
use engine::Instant;
use engine::packet_cache::Popularity;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The search of one worker, in a sample of its queries.
pub(crate) struct NameSample {
    popularity: Popularity<NAME_SETS>,
    sampled: usize,
}

impl NameSample {
    pub(crate) fn new() -> NameSample {
        NameSample { popularity: Popularity::new((NAME_SAMPLE / POPULAR_PART) as u8), sampled: 0 }
    }

    /// Number of queries sampled so far: tells the caller which query of a batch to sample next.
    pub(crate) fn sampled(&self) -> usize {
        self.sampled
    }

    /// Takes the name hash of a query. Returns true if the name is popular in this sample.
    pub(crate) fn take(&mut self, hash: u32) -> bool {
        // The names of a worker have some bits of their hashes in common. The upper half of the product depends on all bits, and
        // the lower half tells each hash from all others.
        let spread = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        let is_popular = self.popularity.count(spread);
        self.sampled = (self.sampled + 1) % NAME_SAMPLE;
        if self.sampled == 0 {
            self.popularity.clear();
        }
        is_popular
    }
}

/// The popular names of all workers, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct PopularNames {
    /// The hashes, for readers. 0: none; a name with this hash is never popular.
    hashes: [AtomicU32; POPULAR_NAMES],
    /// The same, with the time at which each became popular. Held while the kernel's programs are replaced.
    since: Mutex<Vec<(u32, Instant)>>,
}

/// The list of popular names while it is changed: whoever holds it replaces the kernel's programs.
pub(crate) struct ChangedList<'n> {
    list: MutexGuard<'n, Vec<(u32, Instant)>>,
}

impl ChangedList<'_> {
    /// The hashes of the names.
    pub(crate) fn hashes(&self) -> Vec<u32> {
        self.list.iter().map(|&(hash, _)| hash).collect()
    }
}

impl PopularNames {
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
        if hash == 0 || list.len() == POPULAR_NAMES || list.iter().any(|&(other, _)| other == hash) {
            return None;
        }
        list.push((hash, now));
        Some(self.publish(list))
    }

    /// Takes away the names that have been in the list for [`POPULAR_NAME_MEMORY`]: one that is still popular comes back at once. None: nothing
    /// has changed.
    pub(crate) fn expire(&self, now: Instant) -> Option<ChangedList<'_>> {
        let mut list = self.lock();
        let before = list.len();
        list.retain(|&(_, since)| now - since < POPULAR_NAME_MEMORY);
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

    /// True if name 7 is found in a sample in which every `part`-th query is for it, and all others are for different names.
    fn finds(part: usize) -> bool {
        let (mut sample, mut found) = (NameSample::new(), false);
        for number in 0..NAME_SAMPLE {
            let name = if number % part == 0 { 7 } else { 1_000 + number as u32 };
            let is_popular = sample.take(name);
            assert!(!is_popular || name == 7, "{name}");
            found |= is_popular;
        }
        assert_eq!(sample.sampled(), 0, "the next sample begins");
        found
    }

    #[test]
    fn a_name_is_popular_if_it_makes_up_a_large_part_of_the_queries() {
        for part in [1, 2, 3, 5] {
            assert!(finds(part), "one in {part}");
        }
        for part in [POPULAR_PART + 1, 2 * POPULAR_PART, NAME_SAMPLE] {
            assert!(!finds(part), "one in {part}");
        }
    }

    #[test]
    fn names_are_forgotten_after_a_time_and_their_number_is_bounded() {
        let names = PopularNames::default();
        assert!(names.is_empty() && !names.contains(0));
        for number in 1..=POPULAR_NAMES as u32 {
            let changed = names.add(number, Instant(u64::from(number))).unwrap();
            assert_eq!(changed.hashes().last(), Some(&number));
        }
        assert!(names.add(99, Instant(99)).is_none() && !names.contains(99), "no room");
        assert!(names.contains(1) && !names.is_empty());
        let end = Instant(2) + POPULAR_NAME_MEMORY;
        assert_eq!(names.expire(end).unwrap().hashes().len(), POPULAR_NAMES - 2);
        assert!(names.expire(end).is_none());
        assert!(!names.contains(1) && !names.contains(2) && names.contains(3));
        assert!(names.add(3, end).is_none(), "it is in the list");
        assert!(names.add(0, end).is_none(), "no name");
    }
}
