//! CNAME chases of client queries over several replies, and the quota of each client network.
//!
//! There is room for [`CHASES`]. A client network may start one more while its chases and those of its customer together (its own
//! count twice) are fewer than are free. One network alone gets a third of the room: 341 + 341 < 683 of 1,024. One customer gets at
//! most half, and the more networks it spreads over, the less is left for each, but some for the next one. The same holds for
//! further customers and the rest of the room. No network has to give back a chase, so nothing is taken from a query whose reply is
//! being read.

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Record, Slab};
use crate::client::quota::{ClientQuotas, QuotaKey};
use crate::limits::CHASES;

/// CNAME chase of one client query over several replies.
#[derive(Default)]
pub(crate) struct CnameChase {
    /// Name that is asked for now, in wire form.
    pub name: Vec<u8>,
    /// Replies that led to it, in order.
    pub replies: Vec<Vec<u8>>,
    /// Entry of the client's network in the quotas.
    quota: Index,
}

impl Record for CnameChase {
    #[cfg(debug_assertions)]
    fn poison(&mut self) {
        *self = CnameChase { name: vec![0xff], replies: vec![vec![0xff]], quota: NONE };
    }
}

impl CnameChase {
    /// Makes a used slot a new chase of a network with this entry in the quotas. Every field is named, so the compiler tells of a new one
    /// that nothing sets.
    fn reset(&mut self, entry: Index) {
        let CnameChase { name, replies, quota } = self;
        name.clear();
        replies.clear();
        *quota = entry;
    }

    /// Goes on to another name, to which this reply has led.
    pub fn advance(&mut self, name: &[u8], reply: Vec<u8>) {
        self.name.clear();
        self.name.extend_from_slice(name);
        self.replies.push(reply);
    }
}

/// All CNAME chases.
pub(crate) struct CnameChases {
    slab: Slab<CnameChase>,
    quotas: ClientQuotas,
}

impl CnameChases {
    /// Reserves room for [`CHASES`] chases.
    pub fn new(key: HashKey) -> CnameChases {
        CnameChases { slab: Slab::new(CHASES), quotas: ClientQuotas::new(CHASES, key) }
    }

    /// Number of chases.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Takes a slot for a chase of a network, whose customer has a prefix of this length. None: network and customer have at least as
    /// many chases as slots are free.
    pub(crate) fn take(&mut self, key: QuotaKey, prefix_length: u8) -> Option<Index> {
        let (network, customer) = self.quotas.counts(key, key.network.customer(prefix_length));
        if (network + customer) as usize >= CHASES - self.slab.len() {
            return None;
        }
        let index = self.slab.take()?;
        let entry = self.quotas.add(key, self.quotas.find(key), prefix_length);
        self.slab[index].reset(entry);
        Some(index)
    }

    /// Frees the slot of a chase that has ended.
    pub fn give(&mut self, index: Index) {
        // Their memory is not kept.
        self.slab[index].replies.clear();
        self.quotas.remove(self.slab[index].quota);
        self.slab.give(index);
    }
}

impl core::ops::Index<Index> for CnameChases {
    type Output = CnameChase;
    #[inline]
    fn index(&self, index: Index) -> &CnameChase {
        &self.slab[index]
    }
}

impl core::ops::IndexMut<Index> for CnameChases {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut CnameChase {
        &mut self.slab[index]
    }
}

/// Replies of a chase, in order; none if `chase` is [`NONE`].
pub(crate) fn replies(chases: &CnameChases, chase: Index) -> &[Vec<u8>] {
    if chase == NONE { &[] } else { &chases[chase].replies }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::ClientNetwork;

    #[test]
    #[cfg(debug_assertions)]
    fn a_chase_finds_nothing_of_the_one_that_had_its_slot() {
        let mut chases = CnameChases::new(HashKey([1, 3]));
        let key = QuotaKey { network: ClientNetwork::default(), proven: false };
        let first = chases.take(key, 64).unwrap();
        chases[first].advance(b"\x03www\x07example\0", vec![1, 2, 3]);
        chases.give(first);
        // The freed slot is poisoned, so what a chase does not set would be found.
        let CnameChase { name, replies, quota } = &chases.slab[first];
        assert!(!name.is_empty() && !replies.is_empty() && *quota == NONE);
        assert_eq!(chases.take(key, 64), Some(first));
        let CnameChase { name, replies, quota } = &chases[first];
        assert!(name.is_empty() && replies.is_empty());
        assert_eq!(Some(*quota), chases.quotas.find(key));
    }
}
