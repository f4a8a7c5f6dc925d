//! Cache of upstream replies and of answers synthesized from them, as wire bytes with the places of their TTLs.
//!
//! Its memory is bounded to the octet and reserved at start; nothing is allocated afterwards. It knows nothing of DNS64 or of
//! clients: `store.rs` decides which messages are stored, `ttl.rs` for how long, and `resolve/from_cache.rs` makes answers of them.
//! Read this file first, then `entry.rs`; `index.rs`, `name_buckets.rs`, `ring.rs` and `ghost.rs` are its parts.
//!
//! A new entry enters a short queue. An entry that is asked for again before it reaches the end of this queue, or that comes
//! back soon after, goes on to the long queue and stays there while it is asked for (S3-FIFO, Yang et al., SOSP 2023). So a
//! flood of names that are never repeated passes through a tenth of the memory and evicts nothing else.
//!
//! ```text
//! new ->| short queue |-> asked for again? -> | long queue |-> asked for? -> back to its head
//!                        no: only the hash is stored, if the long queue is full   no: evicted
//! ```

pub mod entry;
mod ghost;
pub(crate) mod index;
pub(crate) mod name_buckets;
mod ring;
pub(crate) mod store;
pub mod ttl;

use crate::base::time::{Instant, Span};
use core::hint::black_box;
use core::ops::Range;
use entry::{CacheKey, Entry, EntryMessage, EntryMeta, HEAD};
use ghost::Ghost;
use index::{Index, Place};
use ring::{Ring, UNIT};

/// The table of places takes this fraction of the memory. Entries of 128 octets, as most are, use half of the table.
const INDEX_SHARE: usize = 10;
/// The hashes of evicted entries, of 2 octets each, take this fraction of the memory. They are four times as many as there are
/// entries, because in a flood many more entries are evicted than people ask for.
const GHOST_SHARE: usize = 16;
/// The short queue takes this fraction of the memory for entries.
const SHORT_SHARE: usize = 10;
/// Most entries that are moved back to the head of the long queue to make room for one new entry. Then the oldest entry is
/// evicted even if it was used. This bounds the work to about 10 us.
const SECOND_CHANCES: usize = 64;
/// Most places that have a number: 32 GiB.
const PLACES: usize = Place::MAX as usize - 1;
/// An entry takes at most this fraction of the short queue.
const LARGEST_SHARE: usize = 4;

/// The cache of one worker.
pub struct Cache {
    memory: Box<[u8]>,
    index: Index,
    ghost: Ghost,
    short: Ring,
    long: Ring,
    /// Octets of the largest entry that is stored.
    largest: usize,
    /// Time for which an expired entry may still be used.
    stale: Span,
    size: usize,
}

impl Cache {
    /// Creates a cache that takes `size` octets in all; 0 turns it off.
    pub fn new(size: usize) -> Cache {
        let (index, ghost) = (size / INDEX_SHARE, size / GHOST_SHARE);
        let entries = ((size - index - ghost) / UNIT).min(PLACES);
        let short = entries / SHORT_SHARE * UNIT;
        Cache {
            memory: vec![0; entries * UNIT].into(),
            index: Index::new(index),
            ghost: Ghost::new(ghost),
            short: Ring::new(0, short),
            long: Ring::new(short, entries * UNIT),
            largest: short / LARGEST_SHARE,
            stale: Span::ZERO,
            size,
        }
    }

    /// Sets the time for which an expired entry may still be used.
    pub fn keep_stale(&mut self, stale: Span) {
        self.stale = stale;
    }

    /// True if the cache is turned off.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.size == 0
    }

    /// Octets that entries take, including those that can no longer be found.
    pub fn octets(&self) -> usize {
        self.short.used() + self.long.used()
    }

    /// Number of entries that can be found.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True if no entry can be found.
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Finds an entry, which [`Cache::entry`] reads. The place is valid until the next call that changes the cache.
    #[inline(always)]
    pub fn find(&self, key: &CacheKey<'_>) -> Option<Place> {
        self.index.find(key.hash, |place| self.entry(place).fits(key))
    }

    /// Loads the lines of the index and the heads of the entries for these hashes, each kind for all hashes at once. For those that have no
    /// entry, loads what storing their three messages will read. Returns the number of the hashes, one bit each, that have none.
    #[inline]
    pub fn touch(&self, hashes: &[u64]) -> u64 {
        let mut loaded = hashes.iter().fold(0, |all, &hash| all ^ self.index.touch(hash));
        let mut missing = 0u64;
        for (number, &hash) in hashes.iter().enumerate() {
            loaded ^= match self.index.find(hash, |_| true) {
                Some(place) => u32::from(self.memory[offset(place)]),
                None => {
                    missing |= 1 << number;
                    self.ghost.touch(hash)
                }
            };
        }
        if missing != 0 {
            loaded ^= self.touch_oldest(3 * missing.count_ones() as usize);
        }
        black_box(loaded);
        missing
    }

    /// Loads the lines of the index for the oldest entries of the short queue, which give way to new ones if the queue is full.
    fn touch_oldest(&self, count: usize) -> u32 {
        if self.short.free_octets() > count * HEAD {
            return 0;
        }
        let oldest = self.short.records(&self.memory).take(count);
        let hashes = oldest.filter_map(|(at, _)| Some(Entry::new(&self.memory[at..])?.hash()));
        hashes.fold(0, |all, hash| all ^ self.index.touch(hash))
    }

    /// Reads an entry.
    #[inline]
    pub fn entry(&self, place: Place) -> Entry<'_> {
        // `put` and `relocate` write an entry before `enter` adds its place; `make_room_in_*` remove the place before its octets
        // are used again.
        Entry::new(&self.memory[offset(place)..]).expect("a place has an entry")
    }

    /// Head of an entry, for the functions of [`entry`] that change it.
    #[inline]
    pub fn entry_mut(&mut self, place: Place) -> &mut [u8] {
        &mut self.memory[offset(place)..][..HEAD]
    }

    /// Stores a message in place of the one that the key had. Returns true if it had one. A message that is too long for the size
    /// of the cache is not stored.
    pub fn put(
        &mut self,
        now: Instant,
        key: &CacheKey<'_>,
        meta: &EntryMeta,
        ttls: &[u16],
        message: EntryMessage<'_>,
    ) -> bool {
        let before = self.find(key);
        let octets = entry::octets(ttls.len(), message.len());
        let mut is_asked_for = false;
        if let Some(place) = before {
            // An entry of the long queue stays there.
            is_asked_for = self.long.contains(offset(place)) || self.entry(place).visits() > 0;
            self.index.remove(key.hash, place);
        }
        if octets > self.largest || message.len() > usize::from(u16::MAX) {
            return before.is_some();
        }
        let is_asked_for = is_asked_for || self.ghost.take(key.hash);
        let at = if is_asked_for {
            self.make_room_in_long(octets, now)
        } else {
            self.make_room_in_short(octets, now)
        };
        let Some(at) = at else { return before.is_some() };
        entry::write(&mut self.memory[at..at + octets], key, meta, ttls, message);
        self.enter(key.hash, at);
        before.is_some()
    }

    /// Removes an entry. Returns true if there was one.
    pub fn remove(&mut self, key: &CacheKey<'_>) -> bool {
        self.find(key).is_some_and(|place| self.index.remove(key.hash, place))
    }

    /// Removes the entry at a place.
    pub fn remove_at(&mut self, place: Place) {
        let hash = self.entry(place).hash();
        self.index.remove(hash, place);
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.index.clear();
        self.ghost.clear();
        self.short.clear();
        self.long.clear();
    }

    /// Removes all entries of some buckets. Returns their number. The memory of the entries is used again in its turn; it is free at
    /// once when no entry is left.
    pub fn clear_buckets(&mut self, buckets: Range<usize>) -> usize {
        let before = self.index.len();
        self.index.clear_buckets(buckets);
        if self.is_empty() {
            self.short.clear();
            self.long.clear();
        }
        before - self.index.len()
    }

    /// Number of buckets. An entry keeps its bucket when it moves; a bucket has at most 16 entries.
    pub fn buckets(&self) -> usize {
        self.index.buckets()
    }

    /// Buckets of all entries that a name may have, by the hash of the name, each once.
    pub fn buckets_of_name(&self, hash: u64) -> Vec<usize> {
        let mut buckets: Vec<_> =
            name_buckets::of_name(hash).map(|half| self.index.bucket_of(half)).collect();
        // In a small index several of them coincide.
        buckets.sort_unstable();
        buckets.dedup();
        buckets
    }

    /// Iterates over the entries of a bucket.
    pub fn entries(&self, bucket: usize) -> impl Iterator<Item = Entry<'_>> {
        let places = self.index.places(bucket).into_iter().filter(|&place| place != 0);
        places.map(|place| self.entry(place))
    }

    /// Removes the entries of a bucket for which `is_match` is true. Returns their number.
    pub fn remove_in(&mut self, bucket: usize, is_match: impl Fn(&Entry<'_>) -> bool) -> usize {
        let before = self.index.len();
        for place in self.index.places(bucket).into_iter().filter(|&place| place != 0) {
            let entry = self.entry(place);
            if is_match(&entry) {
                let hash = entry.hash();
                self.index.remove(hash, place);
            }
        }
        before - self.index.len()
    }

    /// Adds an entry to the index. In a full bucket the entry with the fewest visits gives way.
    fn enter(&mut self, hash: u64, at: usize) {
        let memory = &self.memory;
        self.index.put(hash, place(at), |place| {
            u32::from(Entry::new(&memory[offset(place)..]).map_or(0, |entry| entry.visits()))
        });
    }

    /// True if an entry is fresh, or may still be used as stale data. An expired failure is of no use.
    fn is_usable(&self, entry: &Entry<'_>, now: Instant) -> bool {
        let longer = if entry.is(entry::FAILURE) { Span::ZERO } else { self.stale };
        entry.expires() + longer > now
    }

    /// Makes room at the head of the short queue. An entry that leaves it goes on to the long queue if it was asked for.
    fn make_room_in_short(&mut self, octets: usize, now: Instant) -> Option<usize> {
        loop {
            if let Some(at) = self.short.take(octets, &mut self.memory) {
                return Some(at);
            }
            let (at, length) = self.short.oldest(&self.memory)?;
            let entry = Entry::new(&self.memory[at..])?;
            let (hash, is_usable, visits) = (entry.hash(), self.is_usable(&entry, now), entry.visits());
            self.short.free(length);
            if !self.index.has(hash, place(at)) {
                continue;
            }
            let to = match is_usable {
                true if visits > 0 => self.make_room_in_long(length, now),
                // While there is room in the long queue, no entry has to be evicted.
                true => self.long.take(length, &mut self.memory),
                false => None,
            };
            match to {
                // The next `take` of this queue is the first to write into the old room.
                Some(to) => self.relocate(hash, at, length, to, 0),
                None => {
                    self.index.remove(hash, place(at));
                    self.ghost.add(hash);
                }
            }
        }
    }

    /// Makes room at the head of the long queue. An entry that was asked for goes back to the head.
    fn make_room_in_long(&mut self, octets: usize, now: Instant) -> Option<usize> {
        let mut chances = SECOND_CHANCES;
        loop {
            if let Some(at) = self.long.take(octets, &mut self.memory) {
                return Some(at);
            }
            let (at, length) = self.long.oldest(&self.memory)?;
            let entry = Entry::new(&self.memory[at..])?;
            let (hash, visits) = (entry.hash(), entry.visits());
            let stays = visits > 0 && chances > 0 && self.is_usable(&entry, now);
            self.long.free(length);
            if !self.index.has(hash, place(at)) {
                continue;
            }
            match stays.then(|| self.long.take(length, &mut self.memory)).flatten() {
                Some(to) => {
                    chances -= 1;
                    self.relocate(hash, at, length, to, visits - 1);
                }
                None => {
                    self.index.remove(hash, place(at));
                }
            }
        }
    }

    /// Moves an entry to another place. The two may overlap.
    fn relocate(&mut self, hash: u64, from: usize, length: usize, to: usize, visits: u8) {
        self.memory.copy_within(from..from + length, to);
        entry::set_visits(&mut self.memory[to..to + HEAD], visits);
        self.index.replace(hash, place(from), place(to));
    }
}

#[inline]
fn offset(place: Place) -> usize {
    (place as usize - 1) * UNIT
}

#[inline]
fn place(at: usize) -> Place {
    (at / UNIT) as Place + 1
}

#[cfg(test)]
mod tests;
