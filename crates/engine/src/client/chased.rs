//! The ways that clients' questions go over several replies, and who holds how many of them.
//!
//! There is room for [`CHAINS`]. A client network may take more as long as it holds fewer than are free: one alone gets half
//! of the room, a second one half of the rest, and something is left for whoever comes next. Nobody has to give back what
//! it holds, so nothing is taken from a question whose reply is being read.

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Slab};
use crate::client::quota::Ledger;
use crate::limits::CHAINS;

/// The way that a client's question has gone over several replies.
#[derive(Default)]
pub(crate) struct Followed {
    /// The name that is asked for now, in wire form.
    pub name: Vec<u8>,
    /// The replies that led to it, in order.
    pub replies: Vec<Vec<u8>>,
    /// The client's network in the ledger.
    holder: Index,
}

/// All such ways.
pub(crate) struct Chains {
    slab: Slab<Followed>,
    ledger: Ledger,
}

impl Chains {
    /// None is followed.
    pub fn new(key: HashKey) -> Chains {
        Chains { slab: Slab::new(CHAINS), ledger: Ledger::new(CHAINS, key) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Room for one more of a network. None: it holds as many as are free.
    pub(crate) fn take(&mut self, network: u128) -> Option<Index> {
        let count = self.ledger.find(network).map_or(0, |holder| self.ledger.count(holder));
        if count as usize >= CHAINS - self.slab.len() {
            return None;
        }
        let index = self.slab.take()?;
        self.slab[index].holder = self.ledger.add(network);
        Some(index)
    }

    /// A question has come to its end.
    pub fn give(&mut self, index: Index) {
        self.slab[index].replies.clear();
        self.ledger.remove(self.slab[index].holder);
        self.slab.give(index);
    }
}

impl core::ops::Index<Index> for Chains {
    type Output = Followed;
    #[inline]
    fn index(&self, index: Index) -> &Followed {
        &self.slab[index]
    }
}

impl core::ops::IndexMut<Index> for Chains {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut Followed {
        &mut self.slab[index]
    }
}

pub(crate) fn replies(chains: &crate::client::chased::Chains, chain: Index) -> &[Vec<u8>] {
    if chain == NONE { &[] } else { &chains[chain].replies }
}
