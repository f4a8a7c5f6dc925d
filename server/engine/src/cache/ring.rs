//! Ring buffer of records: new records at the head, the oldest at the tail. It has no free list, and its only fragment is the
//! gap at the end of each round, so a bound in octets holds.
//!
//! ```text
//! start                                                    end
//!   | newer ....... newest | free | oldest ....... older | gap |
//!                        head    tail
//! ```

/// Alignment and least length of a record, in octets.
pub const UNIT: usize = 8;

/// Octets at the beginning of a record that the ring reads: four of length, and one that distinguishes a gap from a record.
const LENGTH: usize = 5;

/// Value of the fifth octet of a gap.
const GAP: u8 = 0xff;

/// A range of the memory, and its part in use.
#[derive(Debug)]
pub struct Ring {
    start: usize,
    end: usize,
    head: usize,
    tail: usize,
    used: usize,
}

impl Ring {
    /// Creates an empty ring of the octets from `start` to `end`, both multiples of [`UNIT`].
    pub fn new(start: usize, end: usize) -> Ring {
        Ring { start, end, head: start, tail: start, used: 0 }
    }

    /// Octets in use, including gaps.
    pub fn used(&self) -> usize {
        self.used
    }

    /// True if an offset lies in this ring.
    #[inline]
    pub fn contains(&self, at: usize) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        *self = Ring::new(self.start, self.end);
    }

    /// Takes room for `octets` (a multiple of [`UNIT`]) at the head, and writes the length there. None: the oldest record has to be
    /// freed first. The caller writes the fifth octet, which must not be that of a gap.
    #[inline]
    pub fn take(&mut self, octets: usize, memory: &mut [u8]) -> Option<usize> {
        if self.used == 0 {
            (self.head, self.tail) = (self.start, self.start);
        }
        let wrapped = self.used > 0 && self.head <= self.tail;
        if !wrapped && octets > self.end - self.head {
            // The rest at the end becomes a gap.
            let gap = self.end - self.head;
            if gap > 0 {
                write_length(memory, self.head, gap);
                memory[self.head + 4] = GAP;
                self.used += gap;
            }
            self.head = self.start;
        }
        let free = if self.used > 0 && self.head <= self.tail { self.tail } else { self.end } - self.head;
        if octets > free {
            return None;
        }
        let at = self.head;
        write_length(memory, at, octets);
        self.used += octets;
        self.head += octets;
        if self.head == self.end {
            self.head = self.start;
        }
        Some(at)
    }

    /// Offset and octets of the oldest record, behind any gaps, which are freed. None: the ring is empty.
    #[inline]
    pub fn oldest(&mut self, memory: &[u8]) -> Option<(usize, usize)> {
        loop {
            if self.used == 0 {
                return None;
            }
            let octets = length(memory, self.tail);
            if memory[self.tail + 4] != GAP {
                return Some((self.tail, octets));
            }
            self.free(octets);
        }
    }

    /// Frees the oldest record.
    #[inline]
    pub fn free(&mut self, octets: usize) {
        self.used -= octets;
        self.tail += octets;
        if self.tail == self.end {
            self.tail = self.start;
        }
    }

    /// Octets that are not in use.
    #[inline]
    pub fn free_octets(&self) -> usize {
        self.end - self.start - self.used
    }

    /// Iterates over all records from the oldest to the newest: offset and octets of each.
    pub fn records<'m>(&self, memory: &'m [u8]) -> Records<'m> {
        Records { memory, start: self.start, end: self.end, at: self.tail, left: self.used }
    }
}

/// Iterator of [`Ring::records`].
pub struct Records<'m> {
    memory: &'m [u8],
    start: usize,
    end: usize,
    at: usize,
    left: usize,
}

impl Iterator for Records<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        while self.left > 0 {
            let (at, octets) = (self.at, length(self.memory, self.at));
            self.left -= octets;
            self.at = if at + octets == self.end { self.start } else { at + octets };
            if self.memory[at + 4] != GAP {
                return Some((at, octets));
            }
        }
        None
    }
}

/// Reads the length of a record or a gap.
fn length(memory: &[u8], at: usize) -> usize {
    let [a, b, c, d, ..] = memory[at..at + LENGTH] else { return 0 };
    u32::from_le_bytes([a, b, c, d]) as usize
}

/// Writes the length of a record or a gap.
fn write_length(memory: &mut [u8], at: usize, octets: usize) {
    memory[at..at + 4].copy_from_slice(&(octets as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_is_a_queue_that_never_uses_more_than_it_has() {
        // Lengths that leave gaps of every size, many times round.
        let mut memory = vec![0u8; 1000];
        let mut ring = Ring::new(200, 1000);
        let mut expected: VecDeque<(usize, usize)> = VecDeque::new();
        for number in 0..5_000usize {
            let octets = UNIT * (1 + number * 7 % 13);
            let at = loop {
                if let Some(at) = ring.take(octets, &mut memory) {
                    break at;
                }
                let (at, length) = ring.oldest(&memory).expect("a full ring has a record");
                assert_eq!(expected.pop_front(), Some((at, length)));
                ring.free(length);
            };
            memory[at + 4..at + 8].fill(0);
            assert!(ring.contains(at) && ring.contains(at + octets - 1));
            assert!(expected.iter().all(|&(other, length)| at + octets <= other || other + length <= at));
            expected.push_back((at, octets));
            assert!(ring.used() <= 800);
            assert_eq!(ring.records(&memory).collect::<Vec<_>>(), Vec::from(expected.clone()));
        }
        assert!(memory[..200].iter().all(|&octet| octet == 0), "nothing outside the ring is written");
    }

    #[test]
    fn a_record_as_long_as_the_ring_fits_into_an_empty_ring() {
        let mut memory = vec![0u8; 64];
        let mut ring = Ring::new(0, 64);
        assert_eq!(ring.take(8, &mut memory), Some(0));
        memory[4] = 0;
        assert_eq!(ring.take(64, &mut memory), None);
        ring.free(8);
        assert_eq!(ring.oldest(&memory), None);
        assert_eq!(ring.take(64, &mut memory), Some(0));
    }
}
