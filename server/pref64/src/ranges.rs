//! Map from ranges of addresses to numbers, as a tree of blocks without pointers.
//!
//! The starts of all ranges are sorted, in blocks of as many keys as one or two cache lines hold. The first key of each block stands in
//! the level above, and so on, until one block is left:
//!
//! ```text
//!     level 1   [ 3 29 70 ]                          first keys of the blocks below
//!     level 0   [ 3 5 11 ]  [ 29 31 40 ]  [ 70 99 ]
//! ```
//!
//! A lookup counts in one block of each level the keys up to the address, without branches. Of 200,000 ranges of IPv4 addresses in
//! blocks of 16 that are five blocks, where a binary search would touch 18 places that do not lie together.

use alloc::vec::Vec;

/// Number of a range in which there is none.
const NONE: u32 = u32::MAX;

/// Key: an address as a number.
pub(crate) trait Key: Copy + Ord {
    /// The largest key.
    const MAX: Self;

    /// The next key. Never called for the largest one.
    fn next(self) -> Self;
}

impl Key for u32 {
    const MAX: u32 = u32::MAX;

    fn next(self) -> u32 {
        self + 1
    }
}

impl Key for u128 {
    const MAX: u128 = u128::MAX;

    fn next(self) -> u128 {
        self + 1
    }
}

/// Keys that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
struct Block<K, const B: usize>([K; B]);

/// Map from ranges of keys to numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranges<K, const B: usize> {
    /// Levels of the tree, that of one block first. A level is filled up with the largest key.
    levels: Vec<Vec<Block<K, B>>>,
    /// Number of each range.
    numbers: Vec<u32>,
}

impl<K, const B: usize> Default for Ranges<K, B> {
    fn default() -> Ranges<K, B> {
        Ranges { levels: Vec::new(), numbers: Vec::new() }
    }
}

impl<K: Key, const B: usize> Ranges<K, B> {
    /// Builds the map of spans (first and last key) that are nested or disjoint; in each place the shortest span decides. Spans are
    /// numbered in their order, and there are fewer than 2^31.
    ///
    /// # Errors
    ///
    /// The numbers of two equal spans, the lower one first: the pair with the lowest second number.
    pub(crate) fn nested(spans: impl Iterator<Item = (K, K)>) -> Result<Ranges<K, B>, (usize, usize)> {
        let mut sorted: Vec<(K, K, u32)> =
            (0..).zip(spans).map(|(number, (first, last))| (first, last, number)).collect();
        // A span comes before those within it; equal ones in the order of their numbers.
        sorted.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then(other.1.cmp(&one.1)).then(one.2.cmp(&other.2))
        });
        let twice = sorted.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
        if let Some(pair) = twice.min_by_key(|pair| pair[1].2) {
            return Err((pair[0].2 as usize, pair[1].2 as usize));
        }
        let mut made = Flat { starts: Vec::new(), numbers: Vec::new() };
        // Spans that contain the current key, the outermost first.
        let mut open: Vec<(K, u32)> = Vec::new();
        for (first, last, number) in sorted {
            made.close(&mut open, Some(first));
            made.begin(first, number);
            open.push((last, number));
        }
        made.close(&mut open, None);
        Ok(Ranges { levels: levels(made.starts), numbers: made.numbers })
    }

    /// The number for a key.
    #[inline]
    pub(crate) fn find(&self, key: K) -> Option<usize> {
        let number = *self.numbers.get(self.place(key)?)?;
        (number != NONE).then_some(number as usize)
    }

    /// True if a key from `first` to `last` has a number.
    pub(crate) fn overlaps(&self, first: K, last: K) -> bool {
        // A range without a number lies between two that have one, or is the last one.
        let (from, to) = (self.place(first), self.place(last));
        self.find(first).is_some() || from != to
    }

    /// Place of the range with a key; none before the first range.
    #[inline]
    fn place(&self, key: K) -> Option<usize> {
        let mut place: usize = 0;
        for level in &self.levels {
            // The largest key is not less than those that fill up the last block, so it leads beyond the end.
            place = place.min(level.len() - 1);
            let Block(keys) = level.get(place)?;
            let below: usize = keys.iter().map(|&start| usize::from(start <= key)).sum();
            // Only the very first block may begin behind the key.
            place = place * B + below.checked_sub(1)?;
        }
        Some(place.min(self.numbers.len().checked_sub(1)?))
    }
}

/// The ranges while they are made: their starts, and the number of each.
struct Flat<K> {
    starts: Vec<K>,
    numbers: Vec<u32>,
}

impl<K: Key> Flat<K> {
    /// Begins a range.
    fn begin(&mut self, start: K, number: u32) {
        if self.starts.last() == Some(&start) {
            // The range before has no key.
            self.starts.pop();
            self.numbers.pop();
        }
        if self.numbers.last() != Some(&number) {
            self.starts.push(start);
            self.numbers.push(number);
        }
    }

    /// Closes the open spans that end before a key, or all of them. What contains a closed one goes on behind it.
    fn close(&mut self, open: &mut Vec<(K, u32)>, before: Option<K>) {
        while let Some(&(last, _)) = open.last()
            && before.is_none_or(|key| last < key)
        {
            open.pop();
            if last != K::MAX {
                self.begin(last.next(), open.last().map_or(NONE, |&(_, number)| number));
            }
        }
    }
}

/// The levels of the tree above sorted keys.
fn levels<K: Key, const B: usize>(mut keys: Vec<K>) -> Vec<Vec<Block<K, B>>> {
    let mut levels = Vec::new();
    while !keys.is_empty() {
        let block = |keys: &[K]| {
            let mut block = [K::MAX; B];
            block[..keys.len()].copy_from_slice(keys);
            Block(block)
        };
        let level: Vec<Block<K, B>> = keys.chunks(B).map(block).collect();
        keys = if level.len() == 1 { Vec::new() } else { level.iter().map(|Block(keys)| keys[0]).collect() };
        levels.push(level);
    }
    levels.reverse();
    levels
}
