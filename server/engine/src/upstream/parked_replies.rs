//! Parked replies: replies of A lookups that wait until the AAAA lookup is decided (`lookup` parallel or staggered).
//!
//! Their octets are bounded. The question of a reply that does not fit is asked again when it is needed: slower, never wrong.

use crate::base::slab::{Index, NONE};
use crate::limits::PARKED_OCTETS;

/// Index in the place of a parked reply: there was a reply, but no room for it.
pub const NOT_PARKED: Index = NONE - 1;

/// Buffers up to this size in octets are reused without the allocator.
const SMALL_BUFFER: usize = crate::limits::UDP_SIZE;

/// The most spare small buffers: 1,024 x 4 KiB = 4 MiB, part of the bound.
const MAX_SPARE_BUFFERS: usize = 1024;

/// The parked replies, by index.
pub struct ParkedReplies {
    replies: Vec<Vec<u8>>,
    free_slots: Vec<Index>,
    /// Capacity of all buffers in octets, in use or spare: a short reply in the buffer of a long one counts as much as the
    /// long one.
    octets: usize,
}

impl ParkedReplies {
    /// Creates a store without replies, which takes no memory for them yet.
    pub fn new() -> ParkedReplies {
        ParkedReplies { replies: Vec::new(), free_slots: Vec::new(), octets: 0 }
    }

    /// Parks a reply and returns its index; [`NOT_PARKED`] if there is no room.
    pub fn park(&mut self, bytes: &[u8]) -> Index {
        let spare = self.free_slots.last().map_or(0, |&index| self.replies[index as usize].capacity());
        if self.octets + bytes.len().saturating_sub(spare) > PARKED_OCTETS {
            return NOT_PARKED;
        }
        let index = self.free_slots.pop().unwrap_or_else(|| {
            self.replies.push(Vec::new());
            self.replies.len() as Index - 1
        });
        let reply = &mut self.replies[index as usize];
        reply.clear();
        reply.reserve_exact(bytes.len());
        reply.extend_from_slice(bytes);
        self.octets += reply.capacity() - spare;
        index
    }

    /// Octets of a reply; none of one that is not parked.
    pub fn get(&self, index: Index) -> &[u8] {
        self.replies.get(index as usize).map_or(&[], |reply| reply)
    }

    /// Copies a reply into a frame. Returns its octets.
    pub fn copy(&self, index: Index, frame: &mut [u8]) -> usize {
        let reply = &self.replies[index as usize];
        frame[..reply.len()].copy_from_slice(reply);
        reply.len()
    }

    /// Frees a reply.
    pub fn free(&mut self, index: Index) {
        if matches!(index, NONE | NOT_PARKED) {
            return;
        }
        let reply = &mut self.replies[index as usize];
        if reply.capacity() > SMALL_BUFFER || self.free_slots.len() >= MAX_SPARE_BUFFERS {
            self.octets -= reply.capacity();
            *reply = Vec::new();
        }
        self.free_slots.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parked_replies_are_bounded_in_octets_and_freed_room_is_used_again() {
        let mut parked = ParkedReplies::new();
        let reply = vec![7; 60_000];
        let mut indices: Vec<_> =
            core::iter::repeat_with(|| parked.park(&reply)).take_while(|&i| i != NOT_PARKED).collect();
        assert_eq!(indices.len(), PARKED_OCTETS / 60_000);
        parked.free(NOT_PARKED);
        parked.free(indices.pop().unwrap());
        assert_ne!(parked.park(&reply), NOT_PARKED);
        assert_eq!(parked.park(&reply), NOT_PARKED);
        assert_ne!(parked.park(&[1; 100]), NOT_PARKED);
    }

    #[test]
    fn short_replies_in_the_buffers_of_long_ones_count_as_much_as_those() {
        let mut parked = ParkedReplies::new();
        let (long, short) = ([7; SMALL_BUFFER], [7; 40]);
        for _ in 0..20 {
            let all: Vec<_> = (0..MAX_SPARE_BUFFERS).map(|_| parked.park(&long)).collect();
            all.into_iter().for_each(|index| parked.free(index));
            for _ in 0..MAX_SPARE_BUFFERS {
                parked.park(&short);
            }
            let taken: usize = parked.replies.iter().map(Vec::capacity).sum();
            assert!(taken <= PARKED_OCTETS, "{taken} octets");
        }
    }
}
