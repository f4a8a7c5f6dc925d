//! A scripted device: an upstream of the kit that the tester asks. Its behaviour depends only on the number in the query name, so
//! every load is predictable.

pub mod multiplexed;
pub mod stream;
pub mod tls;

use kit::Upstream;
use kit::upstream::Replies;
use measure::order::{Expectation, Load, Pace};
use measure::outcome::{Outcome, Verdict};
use sixfold_load::{LoadError, LoadOptions, NoCompanion, QueryTimes, run_with};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;

/// 64:ff9b::/96.
const PREFIX: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// A query as the device sees it.
pub struct Query<'a> {
    /// Number of its name in 10.0.0.0/8.
    pub number: u64,
    /// The message.
    pub message: &'a [u8],
    /// ID of the previous query from the same port.
    pub earlier_id: Option<[u8; 2]>,
    /// Number of earlier queries for this name.
    pub asked_before: u64,
}

impl Query<'_> {
    /// The first query of its port and for its name.
    pub fn of(message: &[u8]) -> Query<'_> {
        Query { number: number(message), message, earlier_id: None, asked_before: 0 }
    }

    /// The right reply.
    pub fn right(&self) -> Vec<u8> {
        self.with_record(&PREFIX, self.address(), 60)
    }

    pub fn address(&self) -> [u8; 4] {
        (0x0a00_0000 + self.number as u32).to_be_bytes()
    }

    /// A reply with one AAAA record.
    pub fn with_record(&self, prefix: &[u8; 12], address: [u8; 4], ttl: u32) -> Vec<u8> {
        let mut message = self.message.to_vec();
        (message[2], message[3], message[7]) = (0x81, 0x80, 1);
        message.extend([0xc0, 12, 0, 28, 0, 1]);
        message.extend(ttl.to_be_bytes());
        message.extend([0, 16]);
        message.extend(prefix);
        message.extend(address);
        message
    }

    /// The right reply with some octets changed.
    pub fn patched(&self, octets: &[(usize, u8)]) -> Vec<u8> {
        let mut message = self.right();
        octets.iter().for_each(|(at, octet)| message[*at] = *octet);
        message
    }
}

/// Starts a device over UDP.
pub fn start(address: &str, mut script: impl FnMut(&Query<'_>, &mut Replies) + Send + 'static) -> Upstream {
    let (mut ids, mut asked_before) = (HashMap::new(), HashMap::<u64, u64>::new());
    Upstream::start_at(address.parse().unwrap(), move |asked, replies| {
        let mut query = Query::of(asked.message);
        query.earlier_id = ids.insert(asked.peer, [query.message[0], query.message[1]]);
        let before = asked_before.entry(query.number).or_default();
        query.asked_before = *before;
        *before += 1;
        script(&query, replies);
    })
}

/// Answers as it should.
pub fn right(query: &Query<'_>, replies: &mut Replies) {
    replies.now(query.right());
}

/// The number in a query's name.
fn number(message: &[u8]) -> u64 {
    let octet = |at: usize| std::str::from_utf8(&message[at..at + 3]).unwrap().parse::<u64>().unwrap();
    ((octet(13) - 10) << 24) + (octet(17) << 16) + (octet(21) << 8) + octet(25)
}

/// An order for one thread with a timeout that no pause of the machine exceeds.
pub fn order(server: SocketAddr, rate_qps: f64, duration_ms: u64) -> Load {
    let (pace, duration) = (Pace::Open { rate_qps, burst: 1 }, Duration::from_millis(duration_ms));
    let expect = Expectation::synthesized("dns64perf.test", ("64:ff9b::".parse().unwrap(), 96));
    let (names, expect) = ("10.0.0.0/8".parse().unwrap(), Expectation { ttl: (1, 3600), ..expect });
    Load { timeout_ms: 2000, seed: 42, ..Load::of_new_names(server, pace, duration, names, expect) }
}

/// Runs a load to its end.
pub fn run(order: &Load, options: &LoadOptions) -> Result<(Outcome, QueryTimes), LoadError> {
    run_with(order, options, None::<&mut NoCompanion>, |_| ControlFlow::Continue(()))
}

/// Runs a load without options.
pub fn go(order: &Load) -> Result<Outcome, LoadError> {
    run(order, &LoadOptions::default()).map(|(outcome, _)| outcome)
}

/// Runs a load that has one query outstanding, each with a connection of its own, until two queries or more were sent: so each but
/// the first one finds the ticket of the one before.
pub fn one_at_a_time(order: Load, options: &LoadOptions) -> Outcome {
    let mut order =
        Load { pace: Pace::Closed { outstanding: 1 }, duration_ms: 100, timeout_ms: 10_000, ..order };
    order.lanes.connection_per_query = true;
    for _ in 0..20 {
        let (outcome, _) = run(&order, options).unwrap();
        assert_eq!(
            (outcome.valid, outcome.connections.as_ref().unwrap().opened),
            (outcome.sent, outcome.sent)
        );
        if outcome.sent > 1 {
            return outcome;
        }
    }
    panic!("the machine was too busy for two queries in 100 ms, twenty times");
}

/// Checks the verdict, unless a pause of the machine made the tester the bottleneck: the counters must be right in
/// any case.
pub fn assert_verdict(outcome: &Outcome, verdict: Verdict, reason: &str) {
    match outcome.verdict {
        Verdict::TesterLimited => eprintln!("the machine paused: {}", outcome.reason),
        other => {
            assert_eq!(other, verdict, "{outcome:?}");
            assert!(outcome.reason.contains(reason), "{}", outcome.reason);
        }
    }
}
