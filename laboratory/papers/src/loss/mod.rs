//! DNS queries over a link that loses packets: UDP under several retry policies, TCP and T/TCP (the paper on T/TCP for DNS,
//! figures 6 to 9).
//!
//! All queries of a run begin at the same time, as the concurrent queries of the paper. [`retry::RetryPolicy`] says when a
//! client repeats a datagram; `udp.rs` and `tcp.rs` run the queries; [`retry`] has the arithmetic to compare with.

pub mod retry;
pub mod tcp;
pub mod udp;

use core::time::Duration;
use netem::{Delay, Distribution, Impairments, Loss};

/// Longest time that a query may take in the paper's experiment; after that it has failed.
pub const CAP: Duration = Duration::from_secs(60);

/// One-way delay of the paper's network without added delay: half of the round trip of 0.4 ms of its Ethernet. Without it,
/// answers and timers of 1 s would fall on the same instant where 500 ms are added in each direction.
pub const ETHERNET: Duration = Duration::from_micros(200);

/// Octets of a query: 12 of header, a name of 20 to 30 octets, type and class.
pub const QUERY_OCTETS: usize = 42;

/// Octets of an answer: the query, and some records.
pub const ANSWER_OCTETS: usize = 150;

/// A query that was answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Time from the first packet to the whole answer.
    pub time: Duration,
    /// Retransmissions of the query until then; 0 where it is not known (TCP).
    pub retries: u32,
}

/// A link that loses this share of the packets in each direction, and delays the others.
pub fn lossy(loss: f64, added_delay: Duration) -> Impairments {
    Impairments {
        loss: Loss::Independent(loss),
        delay: Delay {
            mean: ETHERNET + added_delay,
            jitter: Duration::ZERO,
            distribution: Distribution::Constant,
        },
        ..Impairments::default()
    }
}

/// Number of queries that failed.
pub fn failures(queries: &[Option<Completed>]) -> u64 {
    queries.iter().filter(|query| query.is_none()).count() as u64
}
