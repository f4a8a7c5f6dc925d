//! What comes back of a load: counts, latencies, the tester's own troubles, a verdict. As JSON this is what
//! `sixfold-bench load --json` writes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Queries sent in the measured time.
    pub sent: u64,
    /// Replies to queries of the measured time: valid, invalid and late ones, without duplicates.
    pub received: u64,
    /// Replies in time that were right in every respect.
    pub valid: u64,
    /// Replies in time that were not, by reason; and, beside their queries, which went on waiting, messages with another ID or
    /// question (`header`, `question`, `question-count`, `stale-id`).
    pub invalid: BTreeMap<String, u64>,
    /// Replies after the timeout, valid or not.
    pub late: u64,
    /// Queries without any reply until a timeout after the last query.
    pub lost: u64,
    /// Further replies to queries that had one already.
    pub duplicates: u64,
    /// Messages that answer no query of this load (an ID that is not out, a question never asked there).
    pub unsolicited: u64,
    /// Messages from another address than the one that was asked.
    pub wrong_source: u64,
    /// Queries that asked a name again.
    pub asked_again: u64,
    /// Names that were asked for the first time, in the measured time and before: the window moves on by these.
    pub names_used: u64,
    /// Queries a second that were asked for; 0 in the closed loop.
    pub rate_asked: f64,
    /// Queries a second that were sent.
    pub rate_achieved: f64,
    /// Time from the first to the last intended query, in seconds.
    pub seconds: f64,
    /// How far the numbers sent were from those asked, by length of interval.
    pub pacing_error: PacingError,
    /// The longest time that a query was sent after it was due, in microseconds.
    pub lag_max_us: f64,
    /// Latency of the valid replies and of the late ones that were right.
    pub latency_us: Latencies,
    /// Progress over time, one entry a second.
    pub per_second: Vec<Second>,
    /// What the tester itself took and lost.
    pub tester: Tester,
    /// What all this means.
    pub verdict: Verdict,
    /// Why, in words; empty for `pass`.
    pub reason: String,
}

impl Outcome {
    /// All replies in time that were not right.
    pub fn invalid_total(&self) -> u64 {
        self.invalid.values().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// The part of queries that got no valid reply in time, 0 to 1.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { (self.sent - self.valid.min(self.sent)) as f64 / self.sent as f64 }
    }

    /// Valid replies a second.
    pub fn goodput_qps(&self) -> f64 {
        if self.seconds > 0.0 { self.valid as f64 / self.seconds } else { 0.0 }
    }
}

/// Whether the server passed. Strict, as RFC 8219 section 9.2 asks: as many valid replies in time as queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every query got a valid reply in time.
    Pass,
    /// Some did not.
    #[default]
    Fail,
    /// The tester did not do its part, so nothing is said of the server.
    TesterLimited,
}

/// Deviation of the numbers sent from the numbers asked, relative (0.01 is one per cent).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingError {
    /// Over intervals of 10 ms.
    pub ms10: Deviation,
    /// Over intervals of 100 ms.
    pub ms100: Deviation,
    /// Over intervals of 1 s.
    pub s1: Deviation,
}

/// Relative deviation over the intervals of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    /// The largest, either way.
    pub max: f64,
    /// The mean of the absolute values.
    pub mean: f64,
    /// The part of intervals that deviate by more than 1 %.
    pub beyond_1_percent: f64,
    /// How many intervals there were.
    pub intervals: u64,
}

/// Latencies from the two instants that may be meant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From when the query was due: what a user waits, even while the tester was held up.
    pub intended: Latency,
    /// From when it was really sent.
    pub actual: Latency,
}

/// A distribution of latencies, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// The shortest.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90 of 100 are at most this.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1,000.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// The histogram: upper end of a bucket in nanoseconds, and how many lie in it; empty buckets are left out.
    pub histogram: Vec<(u64, u64)>,
}

/// One second of a load, by the intended time of the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Queries sent.
    pub sent: u64,
    /// Valid replies in time to these queries.
    pub valid: u64,
    /// Invalid replies in time to these queries.
    pub invalid: u64,
    /// Late replies to these queries.
    pub late: u64,
}

/// What the tester took and lost. An authority that the load's own thread serves in turn is a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tester {
    /// CPU time of the load's threads in user mode, in seconds.
    pub user_s: f64,
    /// CPU time of the load's threads in the kernel, in seconds.
    pub system_s: f64,
    /// Time that they were ready to run and did not get a core, in seconds.
    pub waited_s: f64,
    /// Replies that were dropped because a socket's queue was full.
    pub socket_drops: u64,
    /// Packets that the network interfaces on the way to the server dropped on this host, and the queues in front of them.
    pub interface_drops: u64,
    /// Queries that the kernel did not take.
    pub send_errors: u64,
}

impl Tester {
    /// CPU time in all, in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}
