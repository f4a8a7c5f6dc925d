//! Counters and latencies of one receiving thread.

use crate::distribution::Distribution;
use crate::first_invalid::FirstInvalid;
use crate::plan::Plan;
use crate::query_times::{Ending, Words};
use crate::reason::{Reason, Reasons, rcode_name};

use measure::outcome::{Latencies, Second};
use std::collections::BTreeMap;

/// Counts of queries of the measured time, and of messages without a query.
#[derive(Clone, Debug)]
pub struct ThreadStats {
    /// Valid replies in time.
    pub valid: u64,
    /// Reasons of the invalid replies in time, and of messages that completed no query.
    pub invalid: Reasons,
    /// The first of these of each reason.
    pub first_invalid: FirstInvalid,
    /// Invalid replies in time that completed their query.
    pub wrong: u64,
    /// Replies in time to queries of the measured time, by RCODE.
    pub rcodes: [u64; 16],
    /// Valid replies with the TC bit.
    pub truncated: u64,
    /// Late replies.
    pub late: u64,
    /// Queries that the server's host refused.
    pub refused: u64,
    /// Duplicate replies.
    pub duplicates: u64,
    /// Messages without a query.
    pub unsolicited: u64,
    /// Messages from another source address or port.
    pub wrong_source: u64,
    /// Messages that were received, including those before the measured time.
    pub messages: u64,
    /// Octets of these messages.
    pub octets: u64,
    /// Replies by the second of their query's intended time; `sent` is not counted here.
    pub seconds: Vec<Second>,
    /// Times and outcomes of the measured queries on request, for each lane whose replies the thread takes.
    pub times: Vec<Words>,
    /// Latencies of valid replies, including late ones.
    intended: Distribution,
    actual: Distribution,
}

impl ThreadStats {
    /// Empty statistics.
    pub fn new(plan: &Plan) -> ThreadStats {
        ThreadStats {
            valid: 0,
            invalid: Reasons::default(),
            first_invalid: FirstInvalid::default(),
            wrong: 0,
            rcodes: [0; 16],
            truncated: 0,
            late: 0,
            refused: 0,
            duplicates: 0,
            unsolicited: 0,
            wrong_source: 0,
            messages: 0,
            octets: 0,
            seconds: vec![Second::default(); plan.seconds()],
            times: Vec::new(),
            intended: Distribution::new(),
            actual: Distribution::new(),
        }
    }

    /// The entry of a second; later seconds share the last entry.
    #[inline]
    pub fn second(&mut self, second: usize) -> &mut Second {
        let last = self.seconds.len() - 1;
        &mut self.seconds[second.min(last)]
    }

    /// Counts an invalid reply that came at `now`, in nanoseconds since the origin of the plan, to the query for a name.
    #[inline]
    pub fn count_invalid(&mut self, reason: Reason, now: u64, name: [u8; 4], message: &[u8]) {
        if self.invalid.count(reason) {
            self.first_invalid.keep(reason, now, name, message);
        }
    }

    /// Records the end of measured query number `query`, counted from the first measured one of its lane, at `now`, in nanoseconds
    /// since the origin of the plan.
    #[inline]
    pub fn ended(&mut self, place: usize, query: u64, now: u64, ending: Ending) {
        if let Some(words) = self.times.get_mut(place) {
            words.ended(query, now, ending);
        }
    }

    /// Records the latencies of a valid reply, in nanoseconds. Inlined into the receivers over UDP and over TCP.
    #[inline(always)]
    pub fn latency(&mut self, intended: u64, actual: u64) {
        self.intended.record(intended);
        self.actual.record(actual);
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &ThreadStats) {
        self.valid += other.valid;
        self.invalid.add(&other.invalid);
        self.first_invalid.add(&other.first_invalid);
        self.wrong += other.wrong;
        self.rcodes.iter_mut().zip(other.rcodes).for_each(|(own, other)| *own += other);
        self.truncated += other.truncated;
        self.late += other.late;
        self.refused += other.refused;
        self.duplicates += other.duplicates;
        self.unsolicited += other.unsolicited;
        self.wrong_source += other.wrong_source;
        self.messages += other.messages;
        self.octets += other.octets;
        for (own, other) in self.seconds.iter_mut().zip(&other.seconds) {
            own.valid += other.valid;
            own.invalid += other.invalid;
            own.late += other.late;
        }
        self.intended.add(&other.intended);
        self.actual.add(&other.actual);
    }

    /// Mnemonics and counts of the RCODEs that occurred.
    pub fn rcodes(&self) -> BTreeMap<String, u64> {
        let codes = (0..16).zip(self.rcodes).filter(|(_, count)| *count > 0);
        codes.map(|(rcode, count)| (rcode_name(rcode), count)).collect()
    }

    /// The latency distributions.
    pub fn latencies(&self) -> Latencies {
        Latencies { intended: self.intended.latency(), actual: self.actual.latency() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    #[test]
    fn latencies_of_two_threads_are_one_distribution() {
        let plan = Plan::new(&order(1000.0, 1000), false).unwrap();
        let (mut one, mut other) = (ThreadStats::new(&plan), ThreadStats::new(&plan));
        (1..=500).for_each(|ms| one.latency(ms * 2_000_000, ms * 1_000_000));
        (501..=1000).for_each(|ms| other.latency(ms * 2_000_000, ms * 1_000_000));
        one.add(&other);
        let Latencies { intended, actual } = one.latencies();
        assert_eq!((actual.count, intended.count), (1000, 1000));
        // Three digits: within 0.1 %.
        for (measured, expected) in [
            (actual.min, 1_000.0),
            (actual.p50, 500_000.0),
            (actual.p99, 990_000.0),
            (actual.max, 1_000_000.0),
            (intended.p90, 1_800_000.0),
            (actual.mean, 500_500.0),
        ] {
            assert!((measured / expected - 1.0).abs() < 0.001, "{measured} {expected}");
        }
        assert_eq!(actual.histogram.iter().map(|(_, count)| count).sum::<u64>(), 1000);
    }
}
