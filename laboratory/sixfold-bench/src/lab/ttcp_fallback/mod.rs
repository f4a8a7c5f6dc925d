//! `ttcp-fallback`: the cost of first contact, and of peers and firewalls without T/TCP (Figure 4 of the paper).
//!
//! Times and packets are of virtual time and exact. `kernel.rs` asks the kernel's TCP behind an interface, which must behave as
//! one of the peers.

mod kernel;

use super::context::{Context, figure};
use measure::experiment::{Figure, Origin};
use papers::fallback::{Client, Exchange, PEERS, Peer, expected, run as run_virtual};
use std::time::Duration;
use ttcp::Failure;

/// Round trips, microseconds: those of the paper's Ethernet and ADSL, and that of its link with 500 ms.
const ROUND_TRIPS_US: [u64; 3] = [400, 65_000, 500_000];

/// Clients and their names.
const CLIENTS: [(Client, &str); 3] = [
    (Client::Plain, "TCP"),
    (Client::FreeBsd, "T/TCP as in FreeBSD 4"),
    (Client::Improved, "T/TCP, improved"),
];

/// Round trip of the sequences that the page shows.
const SHOWN: Duration = Duration::from_millis(65);

/// Runs the experiment.
///
/// # Errors
///
/// As [`kernel::check`].
pub fn run(context: &mut Context) -> Result<(), String> {
    for peer in PEERS {
        context.progress(name(peer))?;
        compare(context, peer);
        for (client, client_name) in &CLIENTS[1..] {
            show(context, peer, *client, client_name);
        }
    }
    figure_4(context);
    kernel::check(context)?;
    Ok(())
}

/// Name of a peer.
fn name(peer: Peer) -> &'static str {
    match peer {
        Peer::Transactions => "server with T/TCP",
        Peer::PlainKeepsData => "server with TCP that keeps data on a SYN",
        Peer::PlainDropsData => "server with TCP whose SYN cache drops data on a SYN",
        Peer::SynFinDropped => "server with T/TCP, firewall that drops SYN with FIN",
        Peer::OptionsRemoved => "server with T/TCP, firewall that removes its options",
        Peer::Closed => "host on which nobody listens",
    }
}

/// Enters times and packets of a peer with all clients, and tests the times against the rule.
fn compare(context: &mut Context, peer: Peer) {
    let mut fits = true;
    let mut observed = Vec::new();
    for (client, client_name) in CLIENTS {
        for round_trip in ROUND_TRIPS_US.map(Duration::from_micros) {
            let exchanges = run_virtual(peer, client, round_trip, 2, context.seed(1));
            let times = ["first query", "second query"].into_iter().zip(&exchanges);
            for (number, (query, exchange)) in times.enumerate() {
                fits &= exchange.answered == expected(peer, client, number == 0, round_trip);
                fits &= peer != Peer::Closed || exchange.failed == Some((round_trip, Failure::Refused));
                let row = format!("{}, {client_name}, {query}", name(peer));
                enter(context, &row, round_trip, exchange);
            }
            observed.push(format!("{client_name} {} / {}", text(&exchanges[0]), text(&exchanges[1])));
        }
    }
    context.claim(
        format!("{}: every time is that of the rule, in round trips and timers", name(peer)),
        "one query whose time differs from round trips and timers of the rule",
        format!("first / second query at 0.4, 65 and 500 ms: {}", observed.join("; ")),
        fits,
    );
}

/// Time of an exchange, in words.
fn text(exchange: &Exchange) -> String {
    match (exchange.answered, exchange.failed) {
        (Some(time), _) => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        (None, Some((time, failure))) => format!("{failure:?} after {:.1} ms", time.as_secs_f64() * 1e3),
        (None, None) => "no answer".to_owned(),
    }
}

/// Enters time, packets and octets of an exchange.
fn enter(context: &mut Context, row: &str, round_trip: Duration, exchange: &Exchange) {
    let column = format!("{} ms", round_trip.as_secs_f64() * 1e3);
    let time = exchange.answered.map(|time| time.as_secs_f64() * 1e3);
    let time =
        Figure { value: time, ..figure("Time to the answer", row, &column, 0.0, "ms", Origin::Virtual) };
    context.figure(time);
    if let Some((time, _)) = exchange.failed {
        let time = time.as_secs_f64() * 1e3;
        context.figure(figure("Time to the failure", row, &column, time, "ms", Origin::Virtual));
    }
    let packets = exchange.packets as f64;
    context.figure(figure("Packets in both directions", row, &column, packets, "packets", Origin::Virtual));
    let octets = exchange.octets as f64;
    context.figure(figure("Octets in both directions", row, &column, octets, "octets", Origin::Virtual));
}

/// Shows the segments of a first query.
fn show(context: &mut Context, peer: Peer, client: Client, client_name: &str) {
    let exchange = run_virtual(peer, client, SHOWN, 1, context.seed(1)).remove(0);
    let subject = format!("{}, {client_name}, first query at 65 ms", name(peer));
    context.listing(subject, exchange.lines.join("\n"));
}

/// The paper's Figure 4: the client waits one more timer than TCP does, at each query.
fn figure_4(context: &mut Context) {
    const TABLE: &str = "Figure 4: wait for the SYN cache, beyond TCP";
    let mut fits = true;
    let mut observed = Vec::new();
    for round_trip in ROUND_TRIPS_US.map(Duration::from_micros) {
        let time = |client| {
            let exchange =
                run_virtual(Peer::PlainDropsData, client, round_trip, 2, context.seed(1)).remove(1);
            exchange.answered.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        let (tcp, free_bsd, improved) = (time(Client::Plain), time(Client::FreeBsd), time(Client::Improved));
        let column = format!("{} ms", round_trip.as_secs_f64() * 1e3);
        for (row, wait) in [("T/TCP as in FreeBSD 4", free_bsd - tcp), ("T/TCP, improved", improved - tcp)] {
            context.figure(figure(TABLE, row, &column, wait, "ms", Origin::Virtual));
        }
        // RFC 6298: round trip + 4 * half of it after one measurement, at least 1 s.
        let timer = (3.0 * round_trip.as_secs_f64() * 1e3).max(1000.0);
        fits &= (free_bsd - tcp - timer).abs() < 0.01 && (improved - tcp).abs() < 0.01;
        observed.push(format!("{column}: {:.1} ms and {:.1} ms", free_bsd - tcp, improved - tcp));
    }
    context.claim(
        "With a SYN cache that drops data, FreeBSD's client waits exactly one retransmission timer more than TCP, and a client \
         that sends its data again at once waits no longer than TCP",
        "a wait that differs from the timer, or an improved client that waits",
        observed.join("; "),
        fits,
    );
}
