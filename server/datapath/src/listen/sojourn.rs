//! Times at which the datagrams of a receive queue came. The queue is first in, first out, and datagrams have numbers in the order in
//! which they are read. So the number of those that have come by a time is known from the length of the queue at that time; between two
//! observations they are taken to have come evenly. This costs no timestamp in each datagram.

use crate::limits::{ARRIVAL_INTERVAL, ARRIVAL_OBSERVATIONS};
use engine::Instant;
use std::collections::VecDeque;

/// Datagrams that had come by a time: those that were read, and those that waited.
#[derive(Clone, Copy)]
struct Arrived {
    at: Instant,
    datagrams: u64,
}

/// The latest arrivals at one socket, the oldest first.
pub(crate) struct SojournEstimator(VecDeque<Arrived>);

impl SojournEstimator {
    pub(crate) fn new() -> SojournEstimator {
        SojournEstimator(VecDeque::with_capacity(ARRIVAL_OBSERVATIONS))
    }

    /// Records the datagrams that have come by now. All observations but the latest are at least [`ARRIVAL_INTERVAL`] apart.
    pub(crate) fn observe(&mut self, at: Instant, datagrams: u64) {
        let mut latest = self.0.iter().rev().map(|arrived| arrived.at);
        if let (Some(last), Some(before)) = (latest.next(), latest.next())
            && last - before < ARRIVAL_INTERVAL
        {
            self.0.pop_back();
        } else if self.0.len() == ARRIVAL_OBSERVATIONS {
            self.0.pop_front();
        }
        // Fewer than before: the length of the queue was estimated too high.
        let too_many = |arrived: &&mut Arrived| arrived.datagrams > datagrams;
        self.0.iter_mut().rev().take_while(too_many).for_each(|arrived| arrived.datagrams = datagrams);
        self.0.push_back(Arrived { at, datagrams });
    }

    /// Number of datagrams that had come by a time: 0 if it is before the oldest observation.
    pub(crate) fn arrived_by(&self, at: Instant) -> u64 {
        let Some(place) = self.0.iter().rposition(|arrived| arrived.at <= at) else { return 0 };
        let before = self.0[place];
        let Some(after) = self.0.get(place + 1) else { return before.datagrams };
        let part = (at - before.at).0 as f64 / (after.at - before.at).0 as f64;
        before.datagrams + ((after.datagrams - before.datagrams) as f64 * part) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::STALE_AGE;

    const MS: u64 = 1_000_000;

    #[test]
    fn datagrams_come_evenly_between_two_observations() {
        let mut arrivals = SojournEstimator::new();
        assert_eq!(arrivals.arrived_by(Instant(MS)), 0);
        arrivals.observe(Instant(10 * MS), 1_000);
        arrivals.observe(Instant(30 * MS), 3_000);
        for (ms, expected) in [(9, 0), (10, 1_000), (15, 1_500), (30, 3_000), (99, 3_000)] {
            assert_eq!(arrivals.arrived_by(Instant(ms * MS)), expected, "{ms} ms");
        }
    }

    #[test]
    fn frequent_observations_reach_as_far_back_as_rare_ones() {
        const REACH: u64 = STALE_AGE.0;
        for step in [MS / 10, MS * 64 / 100, MS, MS * 3 / 2, 20 * MS] {
            let mut arrivals = SojournEstimator::new();
            let times: Vec<u64> = (0..=2_000).map(|number| number * step).collect();
            // One datagram in each microsecond.
            times.iter().for_each(|&time| arrivals.observe(Instant(time), time / 1_000));
            let expected = (times[2_000] - REACH) / 1_000;
            let found = arrivals.arrived_by(Instant(times[2_000] - REACH));
            assert!(found.abs_diff(expected) <= 1, "{step} ns: {found}, not {expected}");
        }
    }

    #[test]
    fn an_estimate_that_was_too_high_is_corrected() {
        let mut arrivals = SojournEstimator::new();
        for (ms, datagrams) in [(10, 1_000), (20, 2_000), (30, 2_500), (40, 1_900)] {
            arrivals.observe(Instant(ms * MS), datagrams);
        }
        for (ms, expected) in [(15, 1_450), (20, 1_900), (35, 1_900), (50, 1_900)] {
            assert_eq!(arrivals.arrived_by(Instant(ms * MS)), expected, "{ms} ms");
        }
    }
}
