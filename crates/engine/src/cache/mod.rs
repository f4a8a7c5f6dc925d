//! The cache: what upstreams said, and what was synthesized out of it, as wire bytes with the places of their TTLs.
//! Bounded to the octet, reserved at start; nothing is allocated afterwards. It knows nothing of DNS64 or of clients:
//! `remember.rs` decides what is kept and how long, `recall.rs` what is made of it.
//!
//! Entries enter a short queue. Those that are asked for again before they reach its end, or come back soon after, go
//! on to the long one, and stay there while they are asked for (S3-FIFO, Yang et al., SOSP 2023). So a flood of names that nobody
//! repeats passes through a tenth of the memory and pushes nothing else out.
//!
//! ```text
//! new ->| short queue |-> asked for again? -> | long queue |-> asked for? -> back to its head
//!                        no: only the hash is kept, if the long queue is full   no: gone
//! ```

pub mod entry;
mod ghost;
pub(crate) mod index;
mod ring;
pub(crate) mod store;
pub mod ttl;

use crate::base::time::{Instant, Span};
use entry::{Body, CacheKey, Entry, Facts, HEAD};
use ghost::Ghost;
use index::{Index, Place};
use ring::{Ring, UNIT};

/// A share of the memory for the table of places: entries of 128 octets, as most are, use half of it.
const INDEX_SHARE: usize = 10;
/// A share of the memory for hashes of what was thrown away, of 2 octets: four times as many as there are entries, as a
/// flood throws away many times more than people ask for.
const GHOST_SHARE: usize = 16;
/// A share of the memory for entries is the short queue.
const SHORT_SHARE: usize = 10;
/// Entries that one newcomer may send back to the head of the long queue, before the oldest goes though it was used:
/// a bound on the work, about 10 us.
const SECOND_CHANCES: usize = 64;
/// As many places as have numbers: 32 GiB.
const PLACES: usize = Place::MAX as usize - 1;
/// An entry takes at most this share of the short queue.
const LARGEST_SHARE: usize = 4;

/// The cache of one worker.
pub struct Cache {
    memory: Box<[u8]>,
    index: Index,
    ghost: Ghost,
    short: Ring,
    long: Ring,
    /// Octets of the largest entry that is kept.
    largest: usize,
    /// How long entries are of use after they expired.
    stale: Span,
    size: usize,
}

impl Cache {
    /// A cache that takes `size` octets with all that belongs to it; 0 turns it off.
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

    /// Entries stay of use for so long after they expired.
    pub fn keep_stale(&mut self, stale: Span) {
        self.stale = stale;
    }

    /// Whether nothing is ever kept.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.size == 0
    }

    /// Octets that entries take, those among them that are no longer found.
    pub fn octets(&self) -> usize {
        self.short.used() + self.long.used()
    }

    /// Entries that can be found.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing can be found.
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Finds an entry. It is read with [`Cache::entry`]; the place holds until the next call that changes the cache.
    #[inline]
    pub fn find(&self, key: &CacheKey<'_>) -> Option<Place> {
        self.index.find(key.hash, |place| self.entry(place).fits(key))
    }

    /// Reads an entry.
    #[inline]
    pub fn entry(&self, place: Place) -> Entry<'_> {
        Entry::new(&self.memory[offset(place)..]).expect("a place has an entry")
    }

    /// The octets of an entry, for the functions of [`entry`] that note something in it.
    #[inline]
    pub fn entry_mut(&mut self, place: Place) -> &mut [u8] {
        &mut self.memory[offset(place)..][..HEAD]
    }

    /// Keeps a message. What the key had before is gone. True: it had something. Messages that are too long for the
    /// size of the cache are not kept.
    pub fn put(
        &mut self,
        now: Instant,
        key: &CacheKey<'_>,
        facts: &Facts,
        ttls: &[u16],
        message: Body<'_>,
    ) -> bool {
        let before = self.find(key);
        let octets = entry::octets(ttls.len(), message.len());
        let mut is_asked_for = false;
        if let Some(place) = before {
            // Who was in the long queue stays there.
            is_asked_for = self.long.contains(offset(place)) || self.entry(place).visits() > 0;
            self.index.remove(key.hash, place);
        }
        if octets > self.largest || message.len() > usize::from(u16::MAX) {
            return before.is_some();
        }
        let is_asked_for = is_asked_for || self.ghost.take(key.hash);
        let at = if is_asked_for { self.room_in_long(octets, now) } else { self.room_in_short(octets, now) };
        let Some(at) = at else { return before.is_some() };
        entry::write(&mut self.memory[at..at + octets], key, facts, ttls, message);
        self.enter(key.hash, at);
        before.is_some()
    }

    /// Forgets an entry. True: there was one.
    pub fn remove(&mut self, key: &CacheKey<'_>) -> bool {
        self.find(key).is_some_and(|place| self.index.remove(key.hash, place))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.index.clear();
        self.ghost.clear();
        self.short.clear();
        self.long.clear();
    }

    /// Entries lie in so many buckets, which stay theirs wherever they go; at most 16 in each.
    pub fn buckets(&self) -> usize {
        self.index.buckets()
    }

    /// The bucket of all entries of a name, by the hash of that.
    pub fn bucket_of(&self, hash: u64) -> usize {
        self.index.bucket_of(hash)
    }

    /// The entries in a bucket.
    pub fn entries(&self, bucket: usize) -> impl Iterator<Item = Entry<'_>> {
        let places = self.index.places(bucket).into_iter().filter(|&place| place != 0);
        places.map(|place| self.entry(place))
    }

    /// Forgets the entries in a bucket that `is_meant` names. Returns how many those were.
    pub fn remove_in(&mut self, bucket: usize, is_meant: impl Fn(&Entry<'_>) -> bool) -> usize {
        let before = self.index.len();
        for place in self.index.places(bucket).into_iter().filter(|&place| place != 0) {
            let entry = self.entry(place);
            if is_meant(&entry) {
                let hash = entry.hash();
                self.index.remove(hash, place);
            }
        }
        before - self.index.len()
    }

    fn enter(&mut self, hash: u64, at: usize) {
        let memory = &self.memory;
        self.index.put(hash, place(at), |place| {
            u32::from(Entry::new(&memory[offset(place)..]).map_or(0, |entry| entry.visits()))
        });
    }

    fn is_of_use(&self, entry: &Entry<'_>, now: Instant) -> bool {
        let longer = if entry.is(entry::FAILURE) { Span::ZERO } else { self.stale };
        entry.expires() + longer > now
    }

    /// Room at the head of the short queue. What falls out of it goes on to the long one if it was asked for.
    fn room_in_short(&mut self, octets: usize, now: Instant) -> Option<usize> {
        loop {
            if let Some(at) = self.short.take(octets, &mut self.memory) {
                return Some(at);
            }
            let (at, length) = self.short.oldest(&self.memory)?;
            let entry = Entry::new(&self.memory[at..])?;
            let (hash, is_of_use, visits) = (entry.hash(), self.is_of_use(&entry, now), entry.visits());
            self.short.free(length);
            if !self.index.remove(hash, place(at)) {
                continue;
            }
            let to = match is_of_use {
                true if visits > 0 => self.room_in_long(length, now),
                // While there is room in the long queue, nothing has to go.
                true => self.long.take(length, &mut self.memory),
                false => None,
            };
            match to {
                // Its old room is written only by the next `take` of this queue.
                Some(to) => self.relocate(hash, at, length, to, 0),
                None => self.ghost.add(hash),
            }
        }
    }

    /// Room at the head of the long queue. What was asked for goes round once more.
    fn room_in_long(&mut self, octets: usize, now: Instant) -> Option<usize> {
        let mut chances = SECOND_CHANCES;
        loop {
            if let Some(at) = self.long.take(octets, &mut self.memory) {
                return Some(at);
            }
            let (at, length) = self.long.oldest(&self.memory)?;
            let entry = Entry::new(&self.memory[at..])?;
            let (hash, visits) = (entry.hash(), entry.visits());
            let stays = visits > 0 && chances > 0 && self.is_of_use(&entry, now);
            self.long.free(length);
            if !self.index.remove(hash, place(at)) {
                continue;
            }
            if stays && let Some(to) = self.long.take(length, &mut self.memory) {
                chances -= 1;
                self.relocate(hash, at, length, to, visits - 1);
            }
        }
    }

    /// Gives an entry another place. The two may overlap.
    fn relocate(&mut self, hash: u64, from: usize, length: usize, to: usize, visits: u8) {
        self.memory.copy_within(from..from + length, to);
        entry::set_visits(&mut self.memory[to..to + HEAD], visits);
        self.enter(hash, to);
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
