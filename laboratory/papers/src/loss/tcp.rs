//! Concurrent DNS queries over TCP or T/TCP on a link that loses packets, in virtual time.
//!
//! Each query has a connection of its own, as in the paper: query, answer and the end of the connection. Both ends are the
//! state machine of the crate `ttcp`.

use super::{ANSWER_OCTETS, CAP, Completed, QUERY_OCTETS};
use crate::network::{Network, PORT, server};
use core::time::Duration;
use netem::Impairments;
use std::collections::HashMap;
use ttcp::{Connection, Event, Listen, Settings};

/// Time after the first transaction of a host, until its connection has left TIME-WAIT: longer than two MSL of 30 s.
const REST: Duration = Duration::from_secs(200);

/// Settings of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpVariant {
    /// Short name, such as `T/TCP, timer 1 s`.
    pub name: &'static str,
    /// T/TCP is on, and both hosts know each other's connection counts.
    pub transactions: bool,
    /// Retransmission timer before the first measurement.
    pub first_rto: Duration,
    /// Longest time that a query may take.
    pub patience: Duration,
    /// The queries begin at the same time. False: one after the other, each after the end of the last one.
    pub concurrent: bool,
}

/// T/TCP with the first timer of RFC 1122 and FreeBSD 4.
pub const TTCP_FREEBSD: TcpVariant = TcpVariant {
    name: "T/TCP, 3 s",
    transactions: true,
    first_rto: Duration::from_secs(3),
    patience: CAP,
    concurrent: true,
};

/// T/TCP for a client that gives up after 10 s, as djbdns' own library gives up a connection.
pub const TTCP_10S: TcpVariant =
    TcpVariant { name: "T/TCP, 3 s, until 10 s", patience: Duration::from_secs(10), ..TTCP_FREEBSD };

/// T/TCP for a client that gives up after 20 s.
pub const TTCP_20S: TcpVariant =
    TcpVariant { name: "T/TCP, 3 s, until 20 s", patience: Duration::from_secs(20), ..TTCP_FREEBSD };

/// T/TCP with the first timer of RFC 6298.
pub const TTCP: TcpVariant =
    TcpVariant { name: "T/TCP, 1 s", first_rto: Duration::from_secs(1), ..TTCP_FREEBSD };

/// T/TCP with the first timer of RFC 6298, one query at a time.
pub const TTCP_ALONE: TcpVariant =
    TcpVariant { name: "T/TCP, 1 s, one at a time", concurrent: false, ..TTCP };

/// TCP with the first timer of RFC 1122 and FreeBSD 4.
pub const TCP_FREEBSD: TcpVariant = TcpVariant { name: "TCP, 3 s", transactions: false, ..TTCP_FREEBSD };

/// TCP with the first timer of RFC 6298.
pub const TCP: TcpVariant = TcpVariant { name: "TCP, 1 s", transactions: false, ..TTCP };

/// All variants, in the order of the tables.
pub const VARIANTS: [TcpVariant; 7] = [TTCP_FREEBSD, TTCP_10S, TTCP_20S, TTCP, TTCP_ALONE, TCP_FREEBSD, TCP];

/// Probability that a query fails that passes the TAO test, by arithmetic. The client sends until the answer comes, at times 0,
/// r, 3r, 7r and so on for a first timer r. The server has the query after the first of them that is not lost, and repeats its
/// answer by the same timer. So the query fails if all sends are lost, or all answers after the first send that is not:
/// p^n + sum over i of p^i (1 - p) p^(m(i)), with m(i) answers in time after send i.
pub fn transaction_failure(loss: f64, one_way: Duration, first_rto: Duration, patience: Duration) -> f64 {
    // Times of the sends up to a limit. 64 doublings are far beyond it.
    let sends = |limit: Duration| {
        (0..64)
            .map(|number| first_rto.saturating_mul(((1_u64 << number) - 1).min(1 << 31) as u32))
            .take_while(move |&at| at <= limit)
    };
    let last = patience.saturating_sub(2 * one_way);
    let mut failure = 0.0;
    let mut all_lost = 1.0;
    for send in sends(last) {
        let answers = sends(last - send).count();
        failure += all_lost * (1.0 - loss) * loss.powi(answers as i32);
        all_lost *= loss;
    }
    failure + all_lost
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct TcpRun {
    /// Queries; none: no whole answer before [`CAP`].
    pub queries: Vec<Option<Completed>>,
    /// SYNs that passed the TAO test.
    pub transactions: u64,
    /// SYNs that did not, so a three-way handshake followed.
    pub handshakes: u64,
}

/// Runs queries against a server that answers at once. The hosts have had one transaction before, without loss, so with
/// T/TCP each knows the other's connection count.
pub fn run(variant: &TcpVariant, impairments: Impairments, queries: u32, seed: u64) -> TcpRun {
    let settings = Settings {
        transactions: variant.transactions,
        first_rto: variant.first_rto,
        blocks: queries as usize + 1,
        ..Settings::default()
    };
    let lossless = super::lossy(0.0, Duration::ZERO);
    let mut network = Network::new(settings.clone(), settings, lossless, seed);
    network.server.listen(PORT, Listen::default()).expect("a free port");
    let mut clients = Clients::new(variant);
    clients.begin(&mut network);
    clients.run(&mut network, REST);
    clients = Clients::new(variant);
    let before = network.server.counts();
    network.impair(impairments, seed ^ 4);
    if variant.concurrent {
        for _ in 0..queries {
            clients.begin(&mut network);
        }
        let end = network.now + variant.patience;
        clients.run(&mut network, end);
    } else {
        for _ in 0..queries {
            clients.begin(&mut network);
            let end = network.now + REST;
            clients.run(&mut network, end);
        }
    }
    let counts = network.server.counts();
    TcpRun {
        queries: clients.queries.into_iter().map(|query| query.completed).collect(),
        transactions: counts.transactions - before.transactions,
        handshakes: counts.handshakes - before.handshakes,
    }
}

/// A query.
struct Query {
    began: Duration,
    octets: usize,
    completed: Option<Completed>,
}

/// Queries of a run.
struct Clients {
    patience: Duration,
    queries: Vec<Query>,
    by_connection: HashMap<Connection, usize>,
}

impl Clients {
    fn new(variant: &TcpVariant) -> Clients {
        Clients { patience: variant.patience, queries: Vec::new(), by_connection: HashMap::new() }
    }

    /// Begins a query.
    fn begin(&mut self, network: &mut Network) {
        let connection =
            network.client.transact(network.now, server(), &[0; 2 + QUERY_OCTETS]).expect("a free block");
        self.by_connection.insert(connection, self.queries.len());
        self.queries.push(Query { began: network.now, octets: 0, completed: None });
    }

    /// Runs the network until `end`.
    fn run(&mut self, network: &mut Network, end: Duration) {
        network.run(end, |network, at_server, event| match event {
            Event::Received(connection, _) if at_server => {
                // A query fits into one segment, so it comes whole. A connection that is over needs no answer.
                let answer = [0; 2 + ANSWER_OCTETS];
                let _ = network.server.send_and_finish(network.now, connection, &answer);
            }
            Event::Received(connection, octets) => self.receive(network.now, connection, octets.len()),
            _ => {}
        });
    }

    /// Takes octets of an answer.
    fn receive(&mut self, now: Duration, connection: Connection, octets: usize) {
        let Some(&query) = self.by_connection.get(&connection) else { return };
        let query = &mut self.queries[query];
        query.octets += octets;
        let time = now - query.began;
        if query.octets == 2 + ANSWER_OCTETS && query.completed.is_none() && time <= self.patience {
            query.completed = Some(Completed { time, retries: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ETHERNET, failures, lossy};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn without_loss_t_tcp_takes_one_round_trip_and_tcp_two() {
        for (variant, trips) in [(TTCP, 1), (TTCP_ALONE, 1), (TTCP_FREEBSD, 1), (TCP, 2), (TCP_FREEBSD, 2)] {
            let run = run(&variant, lossy(0.0, 100 * MS), 20, 1);
            let expected = Completed { time: trips * (200 * MS + Duration::from_micros(400)), retries: 0 };
            assert_eq!(run.queries, vec![Some(expected); 20], "{}", variant.name);
            assert_eq!((run.transactions, run.handshakes), if trips == 1 { (20, 0) } else { (0, 20) });
        }
    }

    #[test]
    fn without_a_link_every_query_fails() {
        assert_eq!(failures(&run(&TTCP, lossy(1.0, Duration::ZERO), 10, 1).queries), 10);
    }

    #[test]
    fn a_transaction_fails_as_often_as_the_arithmetic_says() {
        // One send and one answer within 500 ms: q = 1 - 0.7^2.
        let within = |patience| transaction_failure(0.3, Duration::ZERO, Duration::from_secs(1), patience);
        assert!((within(500 * MS) - 0.51).abs() < 1e-12);
        // Two sends within 1.5 s: 0.3^2 lost; else two answers after the first send, one after the second.
        let two = 0.3 * 0.3 + 0.7 * 0.3 * 0.3 + 0.3 * 0.7 * 0.3;
        assert!((within(1500 * MS) - two).abs() < 1e-12);
        let expected = 5000.0 * transaction_failure(0.5, ETHERNET, TTCP_ALONE.first_rto, CAP);
        let failed = failures(&run(&TTCP_ALONE, lossy(0.5, Duration::ZERO), 5000, 1).queries) as f64;
        // Four standard errors.
        assert!((failed - expected).abs() < 4.0 * expected.sqrt(), "{failed}, {expected}");
    }

    #[test]
    fn a_query_that_is_repeated_after_later_ones_fails_the_tao_test() {
        // At 30 % loss about 300 of 1000 first SYNs are lost. Their repetitions come after SYNs with greater counts.
        let concurrent = run(&TTCP, lossy(0.3, Duration::ZERO), 1000, 1);
        assert!(concurrent.handshakes > 200, "{}", concurrent.handshakes);
        let alone = run(&TTCP_ALONE, lossy(0.3, Duration::ZERO), 100, 1);
        assert_eq!(alone.handshakes, 0);
    }
}
