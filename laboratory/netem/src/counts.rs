//! Counts of one direction: every packet that was offered is delivered, or lost for a reason that has a count.

use serde::Serialize;

/// Packets of one direction of a link. `offered + duplicated = delivered + dropped() + under way`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets that were offered.
    pub offered: u64,
    /// Octets of these.
    pub offered_octets: u64,
    /// Packets that came out.
    pub delivered: u64,
    /// Octets of these.
    pub delivered_octets: u64,
    /// Packets that the line lost, as asked.
    pub lost: u64,
    /// Packets that found the queue before the line full.
    pub queue_full: u64,
    /// Packets longer than the MTU.
    pub too_big: u64,
    /// Packets beyond the bound of what may be under way ([`crate::limits`]).
    pub overflow: u64,
    /// Second copies that were made.
    pub duplicated: u64,
    /// Packets that were held back so that the next one overtakes them.
    pub reordered: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
}

impl Counts {
    /// Packets that went in and will not come out.
    pub fn dropped(&self) -> u64 {
        self.lost + self.queue_full + self.too_big + self.overflow
    }

    /// Packets that reached the line: those that the loss was drawn for.
    pub fn reached_line(&self) -> u64 {
        self.offered + self.duplicated - self.queue_full - self.too_big
    }
}
