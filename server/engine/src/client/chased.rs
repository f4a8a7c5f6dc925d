//! CNAME chases of client queries over several replies, and the quota of each client network.
//!
//! There is room for [`CHASES`]. A client network may start one more while its chases and those of its customer together (its own
//! count twice) are fewer than are free. One network alone gets a third of the room: 341 + 341 < 683 of 1,024. One customer gets at
//! most half, and the more networks it spreads over, the less is left for each, but some for the next one. The same holds for
//! further customers and the rest of the room. No network has to give back a chase, so nothing is taken from a query whose reply is
//! being read.

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Record, Slab};
use crate::client::Clients;
use crate::client::quota::{ClientQuotas, QuotaKey};
use crate::limits::{CHAIN_OCTETS, CHASES, HOPS};
use wire::{Message, Name};

/// Text of the extended error for aliases that are a loop, or more than are followed.
pub(crate) const NO_END: &str = "too many aliases, or a loop of them";

/// Text of the extended error for an alias of a client whose network follows too many already.
const NO_ROOM: &str = "too many queries that follow aliases";

/// CNAME chase of one client query over several replies.
#[derive(Default)]
pub(crate) struct CnameChase {
    /// Name that is asked for now, in wire form.
    pub name: Vec<u8>,
    /// Keyed hash of that name.
    pub hash: u64,
    /// Replies that led to it, in order.
    pub replies: Vec<Vec<u8>>,
    /// Entry of the client's network in the quotas.
    quota: Index,
}

impl Record for CnameChase {
    #[cfg(debug_assertions)]
    fn poison(&mut self) {
        *self = CnameChase { name: vec![0xff], hash: u64::MAX, replies: vec![vec![0xff]], quota: NONE };
    }
}

impl CnameChase {
    /// Makes a used slot a new chase of a network with this entry in the quotas. Every field is named, so the compiler tells of a new one
    /// that nothing sets.
    fn reset(&mut self, entry: Index) {
        let CnameChase { name, replies, quota, hash: _ } = self;
        name.clear();
        replies.clear();
        *quota = entry;
    }
}

/// All CNAME chases.
pub(crate) struct CnameChases {
    slab: Slab<CnameChase>,
    quotas: ClientQuotas,
    key: HashKey,
}

impl CnameChases {
    /// Reserves room for [`CHASES`] chases.
    pub fn new(key: HashKey) -> CnameChases {
        CnameChases { slab: Slab::new(CHASES), quotas: ClientQuotas::new(CHASES, key), key }
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

    /// Has a chase go on to another name, to which this reply has led.
    pub fn advance(&mut self, index: Index, name: &[u8], reply: Vec<u8>) {
        let chase = &mut self.slab[index];
        chase.name.clear();
        chase.name.extend_from_slice(name);
        chase.hash = self.key.hash(name);
        chase.replies.push(reply);
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

impl Clients {
    /// Begins the resolution of a pending query at the target of an alias of ours. Returns false if its network has reached its limit of
    /// chases.
    pub fn begin_at(&mut self, pending: Index, target: &[u8], alias: Vec<u8>) -> bool {
        let Some(chase) = self.start_chase(pending) else { return false };
        self.chases.advance(chase, target, alias);
        true
    }

    /// Has a pending query go on to the alias in which a reply ends.
    ///
    /// # Errors
    ///
    /// Text of the extended error: the chain is too long or a loop, or the client's network has too many chases.
    //= RFC 6147 section 5.1.5: requirement 10
    pub fn follow_alias(
        &mut self,
        pending: Index,
        reply: &Message<'_>,
        target: Name<'_>,
    ) -> Result<(), &'static str> {
        let before = replies(&self.chases, self.pending_queries[pending].chase);
        let comes_back = before.iter().any(|reply| {
            // The two callers of `CnameChases::advance` store parsed replies (below) and aliases (`special_use::alias`). One that
            // does not parse leads nowhere.
            Message::parse(reply).map_or(true, |earlier| earlier.question_name().eq_ignore_case(&target))
        });
        let octets = before.iter().map(Vec::len).sum::<usize>() + reply.bytes().len();
        if comes_back || before.len() == HOPS || octets > CHAIN_OCTETS {
            return Err(NO_END);
        }
        let chase = match self.pending_queries[pending].chase {
            NONE => self.start_chase(pending).ok_or(NO_ROOM)?,
            chase => chase,
        };
        let mut name = [0u8; 255];
        let len = target.write(&mut name);
        self.chases.advance(chase, &name[..len], reply.bytes().to_vec());
        Ok(())
    }
}

/// Replies of a chase, in order; none if `chase` is [`NONE`].
pub(crate) fn replies(chases: &CnameChases, chase: Index) -> &[Vec<u8>] {
    if chase == NONE { &[] } else { &chases[chase].replies }
}

/// Name that a chase asks for now, in wire form; empty if `chase` is [`NONE`].
pub(crate) fn name_of(chases: &CnameChases, chase: Index) -> &[u8] {
    if chase == NONE { &[] } else { &chases[chase].name }
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
        chases.advance(first, b"\x03www\x07example\0", vec![1, 2, 3]);
        chases.give(first);
        // The freed slot is poisoned, so what a chase does not set would be found.
        let CnameChase { name, replies, quota, .. } = &chases.slab[first];
        assert!(!name.is_empty() && !replies.is_empty() && *quota == NONE);
        assert_eq!(chases.take(key, 64), Some(first));
        let CnameChase { name, replies, quota, .. } = &chases[first];
        assert!(name.is_empty() && replies.is_empty());
        assert_eq!(Some(*quota), chases.quotas.find(key));
    }
}
