//! Ghost queue of S3-FIFO: the hashes of entries that left the short queue before they were asked for again. An entry that is
//! stored again while its hash is listed here goes to the long queue at once: it is asked for, though not often.

/// Table of hashes. Each hash has exactly one possible slot; a newer one replaces an older one.
pub struct Ghost {
    slots: Box<[u16]>,
}

impl Ghost {
    /// Creates a table of at most `octets` octets.
    pub fn new(octets: usize) -> Ghost {
        Ghost { slots: vec![0; octets / 2].into() }
    }

    #[inline]
    fn slot(&mut self, hash: u64) -> Option<&mut u16> {
        let place = (u128::from(hash) * self.slots.len() as u128) >> 64;
        self.slots.get_mut(place as usize)
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

/// Tag of a hash, never 0. The upper bits choose the slot, so the tag is made of the lower ones. One hash in 32,768 is taken for
/// another, which puts an entry into the long queue that belongs into the short one.
fn tag(hash: u64) -> u16 {
    hash as u16 | 1
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
        assert!(!ghost.take(hash ^ 2));
        assert!(ghost.take(hash));
        assert!(!ghost.take(hash));
        let mut none = Ghost::new(0);
        none.add(hash);
        assert!(!none.take(hash));
    }
}
