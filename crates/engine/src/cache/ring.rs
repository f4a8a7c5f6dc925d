//! A stretch of memory that is written round and round: new records at the head, the oldest at the tail. There is no
//! free list and no fragment but one at the end of each round, so a bound in octets is a bound.
//!
//! ```text
//! start                                                    end
//!   | newer ....... newest | free | oldest ....... older | gap |
//!                        head    tail
//! ```

/// Records begin at multiples of so many octets, and are so long at least.
pub const UNIT: usize = 8;

/// Octets of a record's length, which stand at its beginning, and of what tells a gap from a record.
const LENGTH: usize = 5;

/// In the fifth octet of a gap: nothing is here.
const GAP: u8 = 0xff;

/// The stretch, and how much of it is used.
#[derive(Debug)]
pub struct Ring {
    start: usize,
    end: usize,
    head: usize,
    tail: usize,
    used: usize,
}

impl Ring {
    /// The octets from `start` to `end`, multiples of [`UNIT`], all free.
    pub fn new(start: usize, end: usize) -> Ring {
        Ring { start, end, head: start, tail: start, used: 0 }
    }

    /// Octets in use, gaps among them.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Whether an offset lies in this stretch.
    #[inline]
    pub fn contains(&self, at: usize) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// Everything is free again.
    pub fn clear(&mut self) {
        *self = Ring::new(self.start, self.end);
    }

    /// Room for `octets` (a multiple of [`UNIT`]) at the head. None: the oldest record has to go first. The length
    /// is written there; what tells a record from a gap is the writer's.
    #[inline]
    pub fn take(&mut self, octets: usize, memory: &mut [u8]) -> Option<usize> {
        if self.used == 0 {
            (self.head, self.tail) = (self.start, self.start);
        }
        let wrapped = self.used > 0 && self.head <= self.tail;
        if !wrapped && octets > self.end - self.head {
            // What is left at the end becomes a gap.
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

    /// The oldest record: where it is, and its octets. Gaps are passed over. None: nothing is here.
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

    /// The oldest record goes.
    #[inline]
    pub fn free(&mut self, octets: usize) {
        self.used -= octets;
        self.tail += octets;
        if self.tail == self.end {
            self.tail = self.start;
        }
    }

    /// All records from the oldest to the newest: where each is, and its octets.
    #[cfg(test)]
    pub fn records<'m>(&self, memory: &'m [u8]) -> Records<'m> {
        Records { memory, start: self.start, end: self.end, at: self.tail, left: self.used }
    }
}

/// Walks over [`Ring::records`].
#[cfg(test)]
pub struct Records<'m> {
    memory: &'m [u8],
    start: usize,
    end: usize,
    at: usize,
    left: usize,
}

#[cfg(test)]
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

fn length(memory: &[u8], at: usize) -> usize {
    let [a, b, c, d, ..] = memory[at..at + LENGTH] else { return 0 };
    u32::from_le_bytes([a, b, c, d]) as usize
}

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
                let (at, length) = ring.oldest(&memory).expect("there is something that can go");
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
        assert!(memory[..200].iter().all(|&octet| octet == 0), "nothing outside is touched");
    }

    #[test]
    fn a_record_as_long_as_the_ring_fits_when_all_else_is_gone() {
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
