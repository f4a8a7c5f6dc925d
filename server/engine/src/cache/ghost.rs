//! Ghost queue of S3-FIFO: the hashes of entries that left the short queue before they were asked for again. An entry that is
//! stored again while its hash is listed here goes to the long queue at once: it is asked for, though not often.

/// Slots of a cache line.
const LINE: usize = 32;

/// Table of hashes. Each hash has exactly one possible slot; a newer one replaces an older one. The lower half of a hash chooses the
/// cache line, and the upper half the slot in it, as in the index: the entries of one resolution share a line, so it is read once. Of
/// three entries in a line of 32 slots, one in sixteen has the slot of another one of them, and only the later of the two is listed.
pub struct Ghost {
    slots: Box<[u16]>,
    /// Number of the first slot that lies at the beginning of a cache line.
    first: usize,
    lines: u64,
}

impl Ghost {
    /// Creates a table of at most `octets` octets.
    pub fn new(octets: usize) -> Ghost {
        // One line more than any hash chooses, because the alignment moves all of them by less than one.
        let lines = (octets / (2 * LINE)).saturating_sub(1);
        let slots = vec![0u16; if lines > 0 { (lines + 1) * LINE } else { 0 }].into_boxed_slice();
        let first = slots.as_ptr().align_offset(2 * LINE).min(LINE);
        Ghost { slots, first, lines: lines as u64 }
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        let line = ((hash & 0xffff_ffff) * self.lines) >> 32;
        self.first + line as usize * LINE + (hash >> 59) as usize
    }

    #[inline]
    fn slot(&mut self, hash: u64) -> Option<&mut u16> {
        let place = self.place(hash);
        self.slots.get_mut(place)
    }

    /// Loads the line of a hash. Returns something made of it.
    #[inline]
    pub fn touch(&self, hash: u64) -> u32 {
        self.slots.get(self.place(hash)).map_or(0, |&slot| u32::from(slot))
    }

    /// Adds the hash of an evicted entry.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        if let Some(slot) = self.slot(hash) {
            *slot = tag(hash);
        }
    }

    /// Returns true if an entry with this hash was evicted lately, and removes the hash.
    #[inline]
    pub fn take(&mut self, hash: u64) -> bool {
        self.slot(hash).is_some_and(|slot| *slot == tag(hash) && core::mem::take(slot) != 0)
    }

    /// Removes all hashes.
    pub fn clear(&mut self) {
        self.slots.fill(0);
    }
}

/// Tag of a hash, never 0. It is made of bits that choose neither the line nor the slot. One hash in 32,768 is taken for another, which
/// puts an entry into the long queue that belongs into the short one.
#[inline]
fn tag(hash: u64) -> u16 {
    (hash >> 32) as u16 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_listed_once_and_taken_once() {
        let mut ghost = Ghost::new(400);
        let hash = 0x0123_4567_89ab_cdef;
        assert!(!ghost.take(hash));
        ghost.add(hash);
        assert!(!ghost.take(hash ^ 2 << 32));
        assert!(ghost.take(hash));
        assert!(!ghost.take(hash));
        let mut none = Ghost::new(0);
        none.add(hash);
        assert!(!none.take(hash));
    }

    #[test]
    fn hashes_with_one_lower_half_share_a_line_and_each_has_its_slot_there() {
        for octets in [128, 400, 4096, 100_000] {
            let mut ghost = Ghost::new(octets);
            assert!(ghost.slots.len() * 2 <= octets);
            for half in [0, 0x8000_0000, 0xffff_ffff] {
                let of = |slot: u64| slot << 59 | 7 << 40 | half;
                let lines: Vec<_> =
                    (0..32).map(|slot| (&raw const ghost.slots[ghost.place(of(slot))]).addr() / 64).collect();
                assert!(lines.iter().all(|line| *line == lines[0]), "{octets}");
                (0..32).for_each(|slot| ghost.add(of(slot)));
                assert!((0..32).all(|slot| ghost.take(of(slot))), "{octets}");
            }
        }
    }
}
