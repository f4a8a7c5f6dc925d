//! Map from address ranges to numbers. It stores the sorted starts of disjoint ranges, so a lookup among millions of overlapping
//! networks costs one binary search.

use crate::base::network::Network;
use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Value of a part that no span covers: no rule matches there.
pub(crate) const NO_MATCH: u32 = u32::MAX;

/// Error: the map would have more entries than its limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyEntries;

/// Map from each key to a number, constant over ranges of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeMap<K> {
    /// First key of each range, in order.
    starts: Vec<K>,
    /// Number of each range.
    values: Vec<u32>,
}

/// Key of a range map: an address as a number.
pub(crate) trait RangeKey: Copy + Ord {
    /// Next key; `None` after the largest one.
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
    /// Builds a map to the lowest number whose spans cover a key. Each range takes one of the `room` entries that are left.
    ///
    /// # Errors
    ///
    /// `TooManyEntries`: the map needs more than `room` ranges.
    pub fn lowest(spans: Vec<((K, K), u32)>, room: &mut usize) -> Result<RangeMap<K>, TooManyEntries> {
        RangeMap::build(spans, |numbers| {
            *room = room.checked_sub(1).ok_or(TooManyEntries)?;
            Ok(numbers.first().copied().unwrap_or(NO_MATCH))
        })
    }

    /// Builds a map by cutting the key space at both ends of each span. `value` computes the number of a range from the numbers
    /// of the spans that cover it.
    ///
    /// # Errors
    ///
    /// The first error of `value`. Nothing else can fail.
    pub(crate) fn build<E>(
        spans: Vec<((K, K), u32)>,
        mut value: impl FnMut(&BTreeSet<u32>) -> Result<u32, E>,
    ) -> Result<RangeMap<K>, E> {
        // Spans of one number may overlap: the number covers keys up to the end of the last span.
        let mut cuts: BTreeMap<K, Vec<(u32, bool)>> = BTreeMap::new();
        for ((first, last), number) in spans {
            cuts.entry(first).or_default().push((number, true));
            if let Some(after) = last.next() {
                cuts.entry(after).or_default().push((number, false));
            }
        }
        let mut map = RangeMap { starts: Vec::new(), values: Vec::new() };
        let (mut open, mut covering): (HashMap<u32, u32>, BTreeSet<u32>) = Default::default();
        for (start, events) in cuts {
            for (number, begins) in events {
                let count = open.entry(number).or_default();
                // Each end has a beginning, which may come later in the list of one cut: hence the wrapping arithmetic.
                *count = if begins { count.wrapping_add(1) } else { count.wrapping_sub(1) };
                if *count == 0 {
                    covering.remove(&number);
                } else {
                    covering.insert(number);
                }
            }
            let value = value(&covering)?;
            if map.values.last() != Some(&value) {
                map.starts.push(start);
                map.values.push(value);
            }
        }
        Ok(map)
    }

    /// Number for a key; [`NO_MATCH`] if no span covers it. A key before all ranges or in the last one costs two comparisons: the
    /// spans of a rule often lie far from the key.
    #[inline]
    pub fn find(&self, at: K) -> u32 {
        let (Some(first), Some(last)) = (self.starts.first(), self.starts.last()) else { return NO_MATCH };
        if at < *first {
            return NO_MATCH;
        }
        let after = if at >= *last { self.starts.len() } else { self.find_between(at) };
        self.values[after - 1]
    }

    /// Number of ranges that do not begin after a key.
    #[inline(never)]
    fn find_between(&self, at: K) -> usize {
        self.starts.partition_point(|&start| start <= at)
    }
}

/// First and last address of a network, as 128-bit numbers.
pub(crate) fn span6(network: &Network) -> (u128, u128) {
    (network.address, network.address | !network.mask)
}

/// Spans of the client addresses in a network. As in [`crate::settings::Networks::contains`], a network of IPv6 clients leaves
/// out the IPv4-mapped addresses.
pub(crate) fn client_spans(network: &Network) -> impl Iterator<Item = (u128, u128)> {
    let (first, last) = span6(network);
    let mapped = span6(&Network::v4(Ipv4Addr::UNSPECIFIED, 0));
    // Networks with prefix lengths from 80 to 95 end with the IPv4-mapped addresses.
    let parts = if first < mapped.0 && last >= mapped.1 {
        [Some((first, mapped.0 - 1)), (last > mapped.1).then(|| (mapped.1 + 1, last))]
    } else {
        [Some((first, last)), None]
    };
    parts.into_iter().flatten()
}

/// First and last address of an IPv4 network, as 32-bit numbers.
pub(crate) fn span4(network: &Network) -> (u32, u32) {
    // The network is IPv4-mapped, so the last 32 bits are the IPv4 address.
    let (first, last) = span6(network);
    (first as u32, last as u32)
}
