//! A map from address ranges to numbers: sorted starts and a binary search, so millions of overlapping networks cost one
//! search per address.

use crate::base::network::Network;
use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// No rule.
pub(crate) const NO_MATCH: u32 = u32::MAX;

/// The map would have more entries than its bound allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyEntries;

/// A number for each part of a line of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeMap<K> {
    /// Where the parts begin, in order.
    starts: Vec<K>,
    /// Their numbers.
    values: Vec<u32>,
}

/// Numbers that addresses are made of.
pub(crate) trait RangeKey: Copy + Ord {
    /// The next one, unless this is the last of all.
    fn next(self) -> Option<Self>;
}

impl RangeKey for u32 {
    fn next(self) -> Option<u32> {
        self.checked_add(1)
    }
}

impl RangeKey for u128 {
    fn next(self) -> Option<u128> {
        self.checked_add(1)
    }
}

impl<K: RangeKey> RangeMap<K> {
    /// For each part the lowest of the numbers whose spans cover it.
    pub fn lowest(spans: Vec<((K, K), u32)>, room: &mut usize) -> Result<RangeMap<K>, TooManyEntries> {
        RangeMap::build(spans, |numbers| {
            *room = room.checked_sub(1).ok_or(TooManyEntries)?;
            Ok(numbers.first().copied().unwrap_or(NO_MATCH))
        })
    }

    /// Cuts the line at both ends of each span; `value` makes a number of those that cover a part.
    pub(crate) fn build<E>(
        spans: Vec<((K, K), u32)>,
        mut value: impl FnMut(&BTreeSet<u32>) -> Result<u32, E>,
    ) -> Result<RangeMap<K>, E> {
        // A number may come with spans that overlap: it ends with the last of them.
        let mut cuts: BTreeMap<K, Vec<(u32, bool)>> = BTreeMap::new();
        for ((first, last), number) in spans {
            cuts.entry(first).or_default().push((number, true));
            if let Some(after) = last.next() {
                cuts.entry(after).or_default().push((number, false));
            }
        }
        let mut made = RangeMap { starts: Vec::new(), values: Vec::new() };
        let (mut open, mut covering): (HashMap<u32, u32>, BTreeSet<u32>) = Default::default();
        for (start, events) in cuts {
            for (number, begins) in events {
                let count = open.entry(number).or_default();
                // Ends are balanced by beginnings, which may stand later in the same list.
                *count = if begins { count.wrapping_add(1) } else { count.wrapping_sub(1) };
                if *count == 0 {
                    covering.remove(&number);
                } else {
                    covering.insert(number);
                }
            }
            let value = value(&covering)?;
            if made.values.last() != Some(&value) {
                made.starts.push(start);
                made.values.push(value);
            }
        }
        Ok(made)
    }

    #[inline]
    pub fn find(&self, at: K) -> u32 {
        match self.starts.partition_point(|&start| start <= at) {
            0 => NO_MATCH,
            after => self.values[after - 1],
        }
    }
}

pub(crate) fn span6(network: &Network) -> (u128, u128) {
    (network.address, network.address | !network.mask)
}

/// As [`crate::settings::Networks::contains`] has it, a network of IPv6 clients goes around the IPv4-mapped addresses.
pub(crate) fn client_spans(network: &Network) -> impl Iterator<Item = (u128, u128)> {
    let (first, last) = span6(network);
    let mapped = span6(&Network::v4(Ipv4Addr::UNSPECIFIED, 0));
    // Networks of 80 to 95 bits end with them.
    let parts = if first < mapped.0 && last >= mapped.1 {
        [Some((first, mapped.0 - 1)), (last > mapped.1).then(|| (mapped.1 + 1, last))]
    } else {
        [Some((first, last)), None]
    };
    parts.into_iter().flatten()
}

pub(crate) fn span4(network: &Network) -> (u32, u32) {
    // IPv4-mapped: the last 32 bits are the address.
    let (first, last) = span6(network);
    (first as u32, last as u32)
}
