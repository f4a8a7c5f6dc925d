//! Hash index of the entries: a table of buckets of two cache lines, tags in the first and places in the second, so that a
//! lookup that finds nothing reads one cache line. The lower half of a hash chooses the bucket, the upper half is the tag; the
//! key of the entry itself decides.
//!
//! All entries that one resolution reads and writes have the same lower half (`name_buckets.rs`), so they lie together. A bucket has
//! sixteen slots, so that it rarely overflows although entries come in groups.

use core::ops::Range;

/// Slots of a bucket: 16 tags of 4 octets are the 64 octets of a cache line.
const WAYS: usize = 16;

/// Number of an entry's place in memory, from 1; 0 is an empty slot.
pub type Place = u32;

/// Words of a bucket: tags, then places.
const WORDS: usize = 2 * WAYS;

/// Table of buckets.
pub struct Index {
    words: Box<[u32]>,
    /// Index of the first word that lies at the beginning of a cache line.
    first: usize,
    buckets: u64,
    len: usize,
}

impl Index {
    /// Creates a table of at most `octets` octets, with at least one bucket.
    pub fn new(octets: usize) -> Index {
        let buckets = (octets / (4 * WORDS)).saturating_sub(1).max(1);
        let words = vec![0u32; (buckets + 1) * WORDS].into_boxed_slice();
        let first = words.as_ptr().align_offset(64).min(WORDS);
        Index { words, first, buckets: buckets as u64, len: 0 }
    }

    /// Number of places in the table.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Removes all places.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    /// Removes all places of some buckets.
    pub fn clear_buckets(&mut self, buckets: Range<usize>) {
        let words = &mut self.words[self.first + buckets.start * WORDS..self.first + buckets.end * WORDS];
        for bucket in words.as_chunks_mut::<WORDS>().0 {
            let tags = &mut bucket[..WAYS];
            self.len -= tags.iter().filter(|&&tag| tag != 0).count();
            tags.fill(0);
        }
    }

    /// Number of buckets.
    pub fn buckets(&self) -> usize {
        self.buckets as usize
    }

    /// Bucket of a hash, chosen by its lower half.
    #[inline]
    pub fn bucket_of(&self, hash: u64) -> usize {
        (((hash & 0xffff_ffff) * self.buckets) >> 32) as usize
    }

    /// Places in a bucket; 0 for empty slots.
    pub fn places(&self, bucket: usize) -> [Place; WAYS] {
        let words = &self.words[self.first + bucket * WORDS..][..WORDS];
        let (tags, places) = words.split_at(WAYS);
        core::array::from_fn(|way| if tags[way] == 0 { 0 } else { places[way] })
    }

    #[inline]
    fn at(&self, hash: u64) -> usize {
        self.first + self.bucket_of(hash) * WORDS
    }

    #[inline]
    fn bucket(&self, hash: u64) -> (&[u32; WAYS], &[u32; WAYS]) {
        // `new` reserves it, because `first` (alignment to a cache line) moves all buckets by less than one.
        let words: &[u32; WORDS] = self.words[self.at(hash)..]
            .first_chunk()
            .expect("the table has one bucket more than any hash chooses");
        let (tags, places) = words.split_at(WAYS);
        (tags.first_chunk().expect("half of a bucket"), places.first_chunk().expect("half of a bucket"))
    }

    /// Slots whose tag is that of a hash, one bit each.
    #[inline]
    fn matches(tags: &[u32; WAYS], hash: u64) -> u32 {
        let tag = tag(hash);
        let mut found = 0;
        for (way, &other) in tags.iter().enumerate() {
            found |= u32::from(other == tag) << way;
        }
        found
    }

    /// Loads the two lines of a bucket. Returns something made of them.
    #[inline]
    pub fn touch(&self, hash: u64) -> u32 {
        let (tags, places) = self.bucket(hash);
        tags[0] ^ places[0]
    }

    /// Finds the first place under this hash for which `is_match` is true. Where this is inlined, the bucket is read before the upper
    /// half of the hash is known, because the lower half alone chooses it.
    #[inline(always)]
    pub fn find(&self, hash: u64, is_match: impl Fn(Place) -> bool) -> Option<Place> {
        let (tags, places) = self.bucket(hash);
        let mut found = Index::matches(tags, hash);
        while found != 0 {
            let place = places[found.trailing_zeros() as usize % WAYS];
            if is_match(place) {
                return Some(place);
            }
            found &= found - 1;
        }
        None
    }

    /// Adds a place. In a full bucket it replaces the place for which `weigh` returns the smallest number.
    #[inline]
    pub fn put(&mut self, hash: u64, place: Place, weigh: impl Fn(Place) -> u32) {
        let (tags, places) = self.bucket(hash);
        let free = tags.iter().position(|&tag| tag == 0);
        let way = free.or_else(|| (0..WAYS).min_by_key(|&way| weigh(places[way]))).unwrap_or(0);
        let at = self.at(hash);
        self.words[at + way] = tag(hash);
        self.words[at + WAYS + way] = place;
        self.len += usize::from(free.is_some());
    }

    /// Slot of a place under this hash.
    #[inline]
    pub(crate) fn way(&self, hash: u64, place: Place) -> Option<usize> {
        let (tags, places) = self.bucket(hash);
        let mut found = Index::matches(tags, hash);
        while found != 0 {
            let way = found.trailing_zeros() as usize % WAYS;
            if places[way] == place {
                return Some(way);
            }
            found &= found - 1;
        }
        None
    }

    /// True if a place is in the table under this hash.
    #[inline]
    pub fn has(&self, hash: u64, place: Place) -> bool {
        self.way(hash, place).is_some()
    }

    /// Removes a place. Returns false if it was not in the table.
    #[inline]
    pub fn remove(&mut self, hash: u64, place: Place) -> bool {
        let way = self.way(hash, place);
        if let Some(way) = way {
            let at = self.at(hash);
            self.words[at + way] = 0;
            self.len -= 1;
        }
        way.is_some()
    }

    /// Puts another place in the slot of a place, if it is in the table.
    #[inline]
    pub fn replace(&mut self, hash: u64, place: Place, by: Place) {
        if let Some(way) = self.way(hash, place) {
            let at = self.at(hash);
            self.words[at + WAYS + way] = by;
        }
    }
}

/// Tag of a hash, never 0, which is an empty slot.
#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that looks random.
    fn hash(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    #[test]
    fn an_entry_is_found_until_it_is_removed() {
        let mut index = Index::new(64 * 1024);
        for number in 0..2_000 {
            index.put(hash(number), number as Place + 1, |_| 0);
        }
        assert_eq!(index.len(), 2_000, "a quarter full: no bucket overflows");
        for number in 0..2_000 {
            assert_eq!(
                index.find(hash(number), |place| place == number as Place + 1),
                Some(number as Place + 1)
            );
            index.replace(hash(number), number as Place + 1, 5_000);
            assert!(index.has(hash(number), 5_000), "another place in the same slot");
            index.replace(hash(number), number as Place + 1, 1);
            assert!(index.remove(hash(number), 5_000) && !index.remove(hash(number), 5_000));
        }
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn a_full_bucket_gives_up_the_lightest_slot() {
        let mut index = Index::new(1);
        for place in 1..=16 {
            index.put(hash(u64::from(place)), place, |_| panic!("there is room"));
        }
        index.put(hash(17), 17, |place| if place == 5 { 0 } else { 1 });
        assert_eq!(index.len(), 16);
        assert!(!index.has(hash(5), 5));
        assert!((1..=17).filter(|&place| place != 5).all(|place| index.has(hash(u64::from(place)), place)));
    }

    #[test]
    fn the_table_is_never_larger_than_it_may_be() {
        for octets in [0, 1, 64, 128, 1000, 65_536] {
            assert!(Index::new(octets).words.len() * 4 <= octets.max(256), "{octets}");
        }
    }
}
