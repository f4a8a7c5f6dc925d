//! Replies of A flights that wait for an AAAA flight (`lookup` parallel or staggered), bounded in octets. What does not
//! fit is asked again when it is needed: slower, never wrong.

use crate::base::slab::{Index, NONE};
use crate::limits::PARKED_OCTETS;

/// In the place of a kept reply: there was one, but no room for it.
pub const NOT_PARKED: Index = NONE - 1;

/// Buffers up to this size are used again without asking the allocator.
const SMALL: usize = crate::limits::UDP_SIZE;

/// Small buffers that wait for use: 1,024 x 4 KiB = 4 MiB at most, part of the bound.
const SPARE: usize = 1024;

/// The kept replies.
pub struct ParkedReplies {
    replies: Vec<Vec<u8>>,
    free: Vec<Index>,
    /// Octets of all buffers, in use or spare: a short reply in the buffer of a long one takes what that took.
    octets: usize,
}

impl ParkedReplies {
    /// None is kept.
    pub fn new() -> ParkedReplies {
        ParkedReplies { replies: Vec::new(), free: Vec::new(), octets: 0 }
    }

    /// Keeps a reply; [`NOT_PARKED`] when there is no room.
    pub fn keep(&mut self, bytes: &[u8]) -> Index {
        let spare = self.free.last().map_or(0, |&index| self.replies[index as usize].capacity());
        if self.octets + bytes.len().saturating_sub(spare) > PARKED_OCTETS {
            return NOT_PARKED;
        }
        let index = self.free.pop().unwrap_or_else(|| {
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

    /// Lends a reply out, so that the engine may be changed while it is read.
    pub fn lend(&mut self, index: Index) -> Vec<u8> {
        core::mem::take(&mut self.replies[index as usize])
    }

    /// Takes a lent reply back.
    pub fn put_back(&mut self, index: Index, reply: Vec<u8>) {
        self.replies[index as usize] = reply;
    }

    /// Forgets a reply.
    pub fn forget(&mut self, index: Index) {
        if index == NOT_PARKED {
            return;
        }
        let reply = &mut self.replies[index as usize];
        if reply.capacity() > SMALL || self.free.len() >= SPARE {
            self.octets -= reply.capacity();
            *reply = Vec::new();
        }
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_in_octets_and_room_comes_back() {
        let mut parked = ParkedReplies::new();
        let reply = vec![7; 60_000];
        let mut kept: Vec<_> =
            core::iter::repeat_with(|| parked.keep(&reply)).take_while(|&i| i != NOT_PARKED).collect();
        assert_eq!(kept.len(), PARKED_OCTETS / 60_000);
        parked.forget(NOT_PARKED);
        parked.forget(kept.pop().unwrap());
        assert_ne!(parked.keep(&reply), NOT_PARKED);
        assert_eq!(parked.keep(&reply), NOT_PARKED);
        assert_ne!(parked.keep(&[1; 100]), NOT_PARKED);
    }

    #[test]
    fn short_replies_in_the_buffers_of_long_ones_take_what_those_take() {
        let mut parked = ParkedReplies::new();
        let (long, short) = ([7; SMALL], [7; 40]);
        for _ in 0..20 {
            let all: Vec<_> = (0..SPARE).map(|_| parked.keep(&long)).collect();
            all.into_iter().for_each(|index| parked.forget(index));
            for _ in 0..SPARE {
                parked.keep(&short);
            }
            let taken: usize = parked.replies.iter().map(Vec::capacity).sum();
            assert!(taken <= PARKED_OCTETS, "{taken} octets");
        }
    }
}
