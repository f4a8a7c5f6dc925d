//! The cost of first contact, and of peers and firewalls without T/TCP (the paper's section 4.6 and Figure 4), in virtual
//! time: a client that asks one host two times over a link without loss.

use crate::network::{Network, PORT, Traffic, server};
use crate::segment_lines::SegmentLines;
use core::time::Duration;
use netem::{Delay, Impairments};
use std::cell::RefCell;
use std::rc::Rc;
use ttcp::{Event, Failure, Listen, Options, Segment, Settings};

/// Octets of the query `NS .` over TCP: 2 of length, 12 of header, 5 of question.
const QUERY: [u8; 19] = [0; 19];

/// Octets of an answer with the 13 name servers of the root, about.
const ANSWER: [u8; 230] = [0; 230];

/// End of a query: longer than the twelve retransmissions of a client that nobody answers, 511 s with a first timer of 1 s.
const END: Duration = Duration::from_secs(1000);

/// The client's peer, and the firewall before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A server with T/TCP.
    Transactions,
    /// A server with TCP that keeps data on a SYN until the handshake is complete (RFC 9293 section 3.10.7.2).
    PlainKeepsData,
    /// A server with TCP whose SYN cache drops data on a SYN (the paper's Figure 4).
    PlainDropsData,
    /// A server with T/TCP behind a firewall that drops segments with SYN and FIN.
    SynFinDropped,
    /// A server with T/TCP behind a firewall that removes the options of T/TCP.
    OptionsRemoved,
    /// A host on which nobody listens.
    Closed,
}

/// All peers, in the order of the tables.
pub const PEERS: [Peer; 6] = [
    Peer::Transactions,
    Peer::PlainKeepsData,
    Peer::PlainDropsData,
    Peer::SynFinDropped,
    Peer::OptionsRemoved,
    Peer::Closed,
];

/// The client's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// TCP.
    Plain,
    /// T/TCP as FreeBSD 4 had it.
    FreeBsd,
    /// T/TCP that sends data again at once where a SYN,ACK brings no echo, and repeats a SYN without data and FIN.
    Improved,
}

impl Client {
    /// Settings of the client, with the timers of FreeBSD 4: the shortest is 1 s.
    pub fn settings(self) -> Settings {
        Settings {
            transactions: self != Client::Plain,
            resend_at_once: self == Client::Improved,
            plain_syn_again: self == Client::Improved,
            last_count: 100,
            ..Settings::default()
        }
    }
}

/// A query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Time until the whole answer, FIN included; none if none came.
    pub answered: Option<Duration>,
    /// Time of the failure, and its kind.
    pub failed: Option<(Duration, Failure)>,
    /// Packets in both directions until the end, those that the firewall dropped included.
    pub packets: u64,
    /// Octets of these packets.
    pub octets: u64,
    /// The segments with their times: `0.0 ms > SYN FIN 0 len 19 CC.NEW 101`.
    pub lines: Vec<String>,
}

/// Time until the answer that follows from the rules, for a first query and for a later one. None: no answer.
///
/// r: round trip. 1 r with T/TCP and a known host; 2 r with a handshake. One timer more where data on a SYN is dropped and the
/// client waits: the handshake has measured r, so the timer is r + 4 r/2, at least 1 s (RFC 6298). The first timer, 1 s,
/// where the SYN is dropped.
pub fn expected(peer: Peer, client: Client, is_first: bool, round_trip: Duration) -> Option<Duration> {
    let first_timer = Duration::from_secs(1);
    let timer = (3 * round_trip).max(first_timer);
    match (peer, client) {
        (Peer::Closed, _) => None,
        (Peer::Transactions, Client::FreeBsd | Client::Improved) if !is_first => Some(round_trip),
        (Peer::PlainDropsData, Client::FreeBsd) => Some(2 * round_trip + timer),
        (Peer::SynFinDropped, Client::FreeBsd) => None,
        (Peer::SynFinDropped, Client::Improved) => Some(first_timer + 2 * round_trip),
        _ => Some(2 * round_trip),
    }
}

/// Formatter of segments, and the segments of a query so far.
type Seen = (SegmentLines, Vec<(Duration, String)>);

/// Runs queries one after the other, each over a connection of its own.
pub fn run(peer: Peer, client: Client, round_trip: Duration, queries: usize, seed: u64) -> Vec<Exchange> {
    let delay = Delay { mean: round_trip / 2, ..Delay::default() };
    let lines: Rc<RefCell<Seen>> = Rc::default();
    let seen = Rc::clone(&lines);
    let filter = move |now, to_server, segment: &Segment<'_>| {
        let passes = peer != Peer::SynFinDropped || !(segment.syn && segment.fin);
        let (formatter, lines) = &mut *seen.borrow_mut();
        let mut line = formatter.line(to_server, segment);
        line += if passes { "" } else { " (dropped)" };
        lines.push((now, line));
        passes
    };
    let mut network = Network::new(
        client.settings(),
        server_settings(peer),
        Impairments { delay, ..Impairments::default() },
        seed,
    )
    .with_filter(Box::new(filter));
    if peer == Peer::OptionsRemoved {
        network = network.with_rewrite(Box::new(|segment| {
            segment.options = Options { mss: segment.options.mss, ..Options::default() };
        }));
    }
    if peer != Peer::Closed {
        let listen = Listen { no_push: true, keep_syn_data: peer != Peer::PlainDropsData };
        network.server.listen(PORT, listen).expect("a free port");
    }
    let ask = |_| {
        lines.borrow_mut().1.clear();
        let start = network.now;
        let mut exchange = ask(&mut network);
        let timed = lines.borrow();
        exchange.lines = timed
            .1
            .iter()
            .map(|(at, line)| format!("{:8.1} ms {line}", (*at - start).as_secs_f64() * 1e3))
            .collect();
        exchange
    };
    (0..queries).map(ask).collect()
}

fn server_settings(peer: Peer) -> Settings {
    let transactions = !matches!(peer, Peer::PlainKeepsData | Peer::PlainDropsData);
    Settings { transactions, last_count: 500, ..Settings::default() }
}

/// Asks once, and waits until nothing is left of the connection.
fn ask(network: &mut Network) -> Exchange {
    let start = network.now;
    let before = (network.sent_to_server, network.sent_to_client);
    let mut exchange = Exchange::default();
    network.client.transact(start, server(), &QUERY).expect("a connection");
    network.run(start + END, |network, at_server, event| match event {
        Event::Finished(connection) if at_server => {
            // The client may be gone.
            let _ = network.server.send_and_finish(network.now, connection, &ANSWER);
        }
        Event::Finished(_) => exchange.answered = Some(network.now - start),
        Event::Failed(_, failure) if !at_server => exchange.failed = Some((network.now - start, failure)),
        _ => {}
    });
    let sum =
        |after: Traffic, before: Traffic| (after.packets - before.packets, after.octets - before.octets);
    let (up, down) = (sum(network.sent_to_server, before.0), sum(network.sent_to_client, before.1));
    Exchange { packets: up.0 + down.0, octets: up.1 + down.1, ..exchange }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_back_to_tcp_takes_the_time_that_its_timers_and_round_trips_say() {
        for round_trip in [Duration::from_micros(400), Duration::from_millis(65), Duration::from_millis(500)]
        {
            for peer in PEERS {
                for client in [Client::Plain, Client::FreeBsd, Client::Improved] {
                    let exchanges = run(peer, client, round_trip, 2, 1);
                    for (exchange, is_first) in exchanges.iter().zip([true, false]) {
                        assert_eq!(
                            exchange.answered,
                            expected(peer, client, is_first, round_trip),
                            "{peer:?} {client:?} {round_trip:?} {is_first} {:#?}",
                            exchange.lines
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_client_that_nobody_answers_gives_up_after_its_retransmissions() {
        let exchanges = run(Peer::SynFinDropped, Client::FreeBsd, Duration::from_millis(65), 1, 1);
        // 1 + 2 + 4 + 8 + 16 + 32 + 7 * 64 s; the SYN, twelve retransmissions and the RST at the end.
        assert_eq!(exchanges[0].failed, Some((Duration::from_secs(511), Failure::TimedOut)));
        assert_eq!(exchanges[0].packets, 14);
    }

    #[test]
    fn a_closed_port_is_known_after_one_round_trip() {
        let round_trip = Duration::from_millis(65);
        let exchanges = run(Peer::Closed, Client::FreeBsd, round_trip, 1, 1);
        assert_eq!(exchanges[0].failed, Some((round_trip, Failure::Refused)));
        assert_eq!(exchanges[0].packets, 2);
    }
}
