//! Where the entries are: a table of buckets, each as long as a cache line, so that a look costs one. Slots hold 32 bits of
//! the hash and the place; the entry itself has the last word on what it is.

/// Slots of a bucket: 8 of 8 octets are the 64 octets of a cache line.
const WAYS: usize = 8;

/// Places are numbered from 1; 0 is an empty slot.
pub type Place = u32;

/// The table.
pub struct Index {
    slots: Box<[u64]>,
    /// The first slot that lies at the beginning of a cache line.
    first: usize,
    buckets: u64,
    len: usize,
}

impl Index {
    /// A table of at most so many octets; always one bucket at least.
    pub fn new(octets: usize) -> Index {
        let buckets = (octets / (WAYS * 8)).saturating_sub(1).max(1);
        let slots = vec![0u64; (buckets + 1) * WAYS].into_boxed_slice();
        let first = slots.as_ptr().align_offset(WAYS * 8).min(WAYS);
        Index { slots, first, buckets: buckets as u64, len: 0 }
    }

    /// Entries in the table.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Forgets all places.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.len = 0;
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        // The lower half chooses the bucket, the upper half is the tag.
        self.first + (((hash & 0xffff_ffff) * self.buckets) >> 32) as usize * WAYS
    }

    #[inline]
    fn ways(&self, hash: u64) -> &[u64; WAYS] {
        let at = self.bucket(hash);
        self.slots[at..].first_chunk().expect("there is a bucket more than is ever chosen")
    }

    #[inline]
    fn ways_mut(&mut self, hash: u64) -> &mut [u64; WAYS] {
        let at = self.bucket(hash);
        self.slots[at..].first_chunk_mut().expect("there is a bucket more than is ever chosen")
    }

    /// The first place under this hash that `is_it` knows.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(Place) -> bool) -> Option<Place> {
        let tag = hash >> 32;
        let mut places = self.ways(hash).iter().filter(|&&slot| slot >> 32 == tag).map(|&slot| slot as Place);
        places.find(|&place| place != 0 && is_it(place))
    }

    /// Enters a place. When the bucket is full, the slot that `weigh` finds lightest gives way; its place is forgotten.
    #[inline]
    pub fn put(&mut self, hash: u64, place: Place, weigh: impl Fn(Place) -> u32) {
        let ways = self.ways_mut(hash);
        let free = ways.iter().position(|&slot| slot as Place == 0);
        let way = free.or_else(|| (0..WAYS).min_by_key(|&way| weigh(ways[way] as Place))).unwrap_or(0);
        ways[way] = (hash & !0xffff_ffff) | u64::from(place);
        self.len += usize::from(free.is_some());
    }

    /// Whether a place is entered under this hash.
    #[inline]
    pub fn has(&self, hash: u64, place: Place) -> bool {
        self.ways(hash).contains(&((hash & !0xffff_ffff) | u64::from(place)))
    }

    /// Forgets a place.
    #[inline]
    pub fn remove(&mut self, hash: u64, place: Place) {
        let wanted = (hash & !0xffff_ffff) | u64::from(place);
        if let Some(slot) = self.ways_mut(hash).iter_mut().find(|slot| **slot == wanted) {
            *slot = 0;
            self.len -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that looks random.
    fn hash(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    #[test]
    fn what_was_put_is_found_until_it_is_removed() {
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
            index.remove(hash(number), number as Place + 1);
            assert!(!index.has(hash(number), number as Place + 1));
        }
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn a_full_bucket_gives_up_the_lightest_slot() {
        let mut index = Index::new(1);
        for place in 1..=8 {
            index.put(hash(u64::from(place)), place, |_| panic!("there is room"));
        }
        index.put(hash(9), 9, |place| if place == 5 { 0 } else { 1 });
        assert_eq!(index.len(), 8);
        assert!(!index.has(hash(5), 5));
        assert!((1..=9).filter(|&place| place != 5).all(|place| index.has(hash(u64::from(place)), place)));
    }

    #[test]
    fn the_table_is_never_larger_than_it_may_be() {
        for octets in [0, 1, 64, 128, 1000, 65_536] {
            assert!(Index::new(octets).slots.len() * 8 <= octets.max(128), "{octets}");
        }
    }
}
