//! The latest filters of a listening socket. A datagram that is read now came through the filter of the time at which it was
//! queued, and that may be several filters ago: a full queue lasts longer than the time between two updates. A sample of datagrams can be
//! weighed only with the shares of the filter that they came through.

use crate::limits::{FILTER_HISTORY, SHED_NETWORKS, SHEDDING_DATAGRAMS};
use crate::listen::heavy_hitters::ShedNetwork;
use std::collections::VecDeque;

/// A filter, and the number of the first datagram that came through it.
struct Filter {
    from: u64,
    shed: Vec<ShedNetwork>,
}

/// The latest filters, the oldest one first. Never empty.
pub(crate) struct FilterHistory(VecDeque<Filter>);

impl FilterHistory {
    /// Returns a history with one filter, which sheds nothing.
    pub(crate) fn new() -> FilterHistory {
        let empty = || Filter { from: 0, shed: Vec::with_capacity(SHED_NETWORKS + 1) };
        FilterHistory((0..FILTER_HISTORY).map(|_| empty()).collect())
    }

    /// A new filter was attached. `from`: number of the first datagram that comes through it, behind those in the queue.
    pub(crate) fn push(&mut self, from: u64, shed: &[ShedNetwork]) {
        if let Some(mut oldest) = self.0.pop_front() {
            oldest.from = from;
            oldest.shed.clear();
            oldest.shed.extend_from_slice(shed);
            self.0.push_back(oldest);
        }
    }

    /// The queue is empty: all datagrams from this number on come through the latest filter.
    pub(crate) fn on_queue_emptied(&mut self, datagrams: u64) {
        self.0.iter_mut().for_each(|filter| filter.from = filter.from.min(datagrams));
    }

    /// Datagrams of those read that came through the latest filter.
    pub(crate) fn passed_latest(&self, datagrams: u64) -> u64 {
        self.0.back().map_or(0, |filter| datagrams.saturating_sub(filter.from))
    }

    /// The filter that the latest of `datagrams` came through, and how many of them did. A filter of which few datagrams were
    /// read does not count yet.
    pub(crate) fn of_latest(&self, datagrams: u64) -> (&[ShedNetwork], u64) {
        let passed = |filter: &Filter| datagrams.saturating_sub(filter.from);
        let found = self.0.iter().rev().find(|filter| passed(filter) >= SHEDDING_DATAGRAMS / 4);
        found.map_or((&[], datagrams), |filter| (&filter.shed, passed(filter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_belongs_to_the_filter_that_its_datagrams_came_through() {
        let mut history = FilterHistory::new();
        let [first, second] = [0.5, 0.25].map(|share| [ShedNetwork::all(share)]);
        // 3,000 wait when the first filter is attached, and 3,500 at the second.
        history.push(1_000 + 3_000, &first);
        history.push(2_000 + 3_500, &second);
        for (datagrams, expected) in [
            (2_000, (&[][..], 2_000)),
            (4_031, (&[], 4_031)),
            (4_032, (&first, 32)),
            (5_500, (&first, 1_500)),
            (5_540, (&second, 40)),
        ] {
            assert_eq!(history.of_latest(datagrams), expected, "{datagrams}");
        }
    }

    #[test]
    fn after_an_empty_queue_the_latest_filter_counts() {
        let mut history = FilterHistory::new();
        let shed = [ShedNetwork::all(0.5)];
        history.push(4_000, &shed);
        history.on_queue_emptied(1_000);
        assert_eq!(history.of_latest(1_032), (&shed[..], 32));
    }
}
