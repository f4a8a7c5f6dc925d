//! What was thrown away unused: the hashes of entries that left the short queue before anybody asked for them again.
//! Who comes back although it is listed here is asked for, though not often, and goes to the long queue at once.

/// Hashes, each in the one slot that it may have; a newer one takes the place of an older one.
pub struct Ghost {
    slots: Box<[u16]>,
}

impl Ghost {
    /// A list of at most so many octets.
    pub fn new(octets: usize) -> Ghost {
        Ghost { slots: vec![0; octets / 2].into() }
    }

    #[inline]
    fn slot(&mut self, hash: u64) -> Option<&mut u16> {
        let place = (u128::from(hash) * self.slots.len() as u128) >> 64;
        self.slots.get_mut(place as usize)
    }

    /// Notes that an entry was thrown away.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        if let Some(slot) = self.slot(hash) {
            *slot = tag(hash);
        }
    }

    /// Whether an entry was thrown away lately. It is no longer listed then.
    #[inline]
    pub fn take(&mut self, hash: u64) -> bool {
        self.slot(hash).is_some_and(|slot| *slot == tag(hash) && core::mem::take(slot) != 0)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.slots.fill(0);
    }
}

/// Never 0. The upper bits choose the slot, so the tag is made of the lower ones. One hash in 32,768 is taken for another,
/// which puts an entry into the long queue that has not earned it.
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
