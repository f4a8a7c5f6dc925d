//! The ways that clients' questions go over several replies, and who holds how many of them.
//!
//! There is room for [`CHASES`]. A client network may take more as long as it holds fewer than are free: one alone gets half
//! of the room, a second one half of the rest, and something is left for whoever comes next. Nobody has to give back what
//! it holds, so nothing is taken from a question whose reply is being read.

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Slab};
use crate::client::quota::ClientQuotas;
use crate::limits::CHASES;

/// The way that a client's question has gone over several replies.
#[derive(Default)]
pub(crate) struct CnameChase {
    /// The name that is asked for now, in wire form.
    pub name: Vec<u8>,
    /// The replies that led to it, in order.
    pub replies: Vec<Vec<u8>>,
    /// The client's network in the ledger.
    quota: Index,
}

/// All such ways.
pub(crate) struct CnameChases {
    slab: Slab<CnameChase>,
    quotas: ClientQuotas,
}

impl CnameChases {
    /// None is followed.
    pub fn new(key: HashKey) -> CnameChases {
        CnameChases { slab: Slab::new(CHASES), quotas: ClientQuotas::new(CHASES, key) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Room for one more of a network. None: it holds as many as are free.
    pub(crate) fn take(&mut self, network: u128) -> Option<Index> {
        let count = self.quotas.find(network).map_or(0, |quota| self.quotas.count(quota));
        if count as usize >= CHASES - self.slab.len() {
            return None;
        }
        let index = self.slab.take()?;
        self.slab[index].quota = self.quotas.add(network);
        Some(index)
    }

    /// A question has come to its end.
    pub fn give(&mut self, index: Index) {
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

pub(crate) fn replies(chases: &crate::client::chased::CnameChases, chain: Index) -> &[Vec<u8>] {
    if chain == NONE { &[] } else { &chases[chain].replies }
}
