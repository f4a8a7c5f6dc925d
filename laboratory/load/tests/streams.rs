//! Truth of the instrument over TCP: each fault of a device and of its connections is detected, counted exactly, and named.
//! Loads in network namespaces are in `streams_in_namespaces.rs`.

use crate::device;

use device::stream::{self, Act, right};
use device::{Query, assert_verdict, order};
use kit::Listening;
use kit::message::framed;
use measure::order::{Load, Pace, Transport};
use measure::outcome::{Connections, Outcome, Verdict};
use sixfold_load::LoadOptions;
use std::net::TcpListener;
use std::time::Duration;

fn go(order: &Load) -> (Outcome, Connections) {
    let outcome = device::go(order).unwrap();
    let connections = outcome.connections.clone().unwrap();
    (outcome, connections)
}

/// A load of 400 queries in a second over a transport.
fn over(transport: Transport, device: &Listening) -> Load {
    Load { transport, ..order(device.address, 400.0, 1000) }
}

/// The outcome if the device answers every 40th query, beginning with number 20, by a script, and the others rightly.
fn with_fault(
    transport: Transport,
    fault: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static,
) -> (Outcome, Connections) {
    let device = stream::start(move |query| match query.number % 40 {
        20 => fault(query),
        _ => right(query),
    });
    let (outcome, connections) = go(&over(transport, &device));
    assert_eq!((outcome.sent, outcome.transport), (400, transport));
    (outcome, connections)
}

/// Names with their counts.
type Named<'a> = Vec<(&'a str, u64)>;

/// The counts: valid, late, lost, refused, duplicates, unsolicited; the reasons; and the reasons of lost queries.
fn counts(outcome: &Outcome) -> ([u64; 6], Named<'_>, Named<'_>) {
    let o = outcome;
    let reasons = o.invalid.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let lost = o.connections.iter().flat_map(|connections| &connections.lost);
    let lost = lost.map(|(name, count)| (name.as_str(), *count)).collect();
    ([o.valid, o.late, o.lost, o.connection_refused, o.duplicates, o.unsolicited], reasons, lost)
}

const PASSED: [u64; 6] = [400, 0, 0, 0, 0, 0];

#[test]
fn a_device_without_fault_passes_with_a_connection_for_each_query() {
    let (outcome, connections) = with_fault(Transport::Tcp, right);
    assert_eq!(counts(&outcome), (PASSED, vec![], vec![]));
    assert_verdict(&outcome, Verdict::Pass, "");
    assert_eq!((connections.opened, connections.established, connections.per_query), (400, 400, 1.0));
    assert_eq!((connections.handshake_us.count, connections.answer_us.count), (400, 400));
    assert_eq!((outcome.latency_us.actual.count, connections.aborted), (400, 0));
    // The latency of a query includes the handshake.
    assert!(outcome.latency_us.actual.mean >= connections.answer_us.mean);
    // SYN, acknowledgement, query and FIN at least; SYN-ACK, reply and FIN at least.
    let per_query = outcome.traffic.per_query;
    assert!(per_query.packets_sent >= 4.0 && per_query.packets_received >= 3.0, "{per_query:?}");
}

#[test]
fn a_few_connections_carry_all_queries_and_replies_out_of_order() {
    let device = stream::start(|query| vec![Act::Keep(query.right(), 4)]);
    let (outcome, connections) = go(&over(Transport::TcpReuse, &device));
    assert_eq!(counts(&outcome), (PASSED, vec![], vec![]));
    assert_verdict(&outcome, Verdict::Pass, "");
    assert_eq!((connections.opened, connections.established, connections.aborted), (4, 4, 0));
    assert_eq!((connections.per_query, device.take_peers().len()), (0.01, 4));
}

#[test]
fn a_reply_in_pieces_is_one_reply() {
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        let (outcome, _) = with_fault(transport, |query| {
            let octets = framed(&query.right());
            let pieces = [&octets[..1], &octets[1..2], &octets[2..9], &octets[9..]];
            let wait = || Act::Wait(Duration::from_millis(2));
            pieces.iter().flat_map(|piece| [Act::Octets(piece.to_vec()), wait()]).collect()
        });
        assert_eq!(counts(&outcome), (PASSED, vec![], vec![]), "{transport:?}");
    }
}

#[test]
fn a_query_whose_connection_the_device_closes_is_lost_and_named() {
    let (outcome, connections) = with_fault(Transport::Tcp, |_| vec![Act::Close]);
    assert_eq!(counts(&outcome), ([390, 0, 10, 0, 0, 0], vec![], vec![("closed", 10)]));
    assert_eq!(connections.closed_by_server, 10);
    assert_verdict(
        &outcome,
        Verdict::Fail,
        "10 of 400 queries got no valid reply in time: 10 lost (closed 10)",
    );
}

#[test]
fn a_query_whose_connection_the_device_resets_is_lost_and_named() {
    let (outcome, connections) = with_fault(Transport::Tcp, |_| vec![Act::Reset]);
    assert_eq!(counts(&outcome), ([390, 0, 10, 0, 0, 0], vec![], vec![("reset", 10)]));
    assert_eq!((connections.reset, connections.established), (10, 400));
}

#[test]
fn a_connection_that_the_device_closes_is_opened_again() {
    // One connection, and a reply before the device closes: few queries are under way then.
    let device = stream::start(|query| match query.number % 40 {
        20 => vec![Act::Octets(framed(&query.right())), Act::Close],
        _ => right(query),
    });
    let mut order = over(Transport::TcpReuse, &device);
    order.lanes.connections = 1;
    let (outcome, connections) = go(&order);
    assert_eq!((connections.closed_by_server + connections.reset, connections.opened), (10, 11));
    // Each query is answered, or lost with the connection.
    let lost: u64 = connections.lost.values().sum();
    assert_eq!((outcome.lost, outcome.valid), (lost, 400 - lost));
    assert!(connections.lost.keys().all(|name| matches!(name.as_str(), "closed" | "reset")));
}

#[test]
fn queries_in_flight_are_lost_with_their_connection() {
    // Of four queries at the same instant on one connection, the device answers the first and closes at the last.
    let device = stream::start(|query| match query.number % 4 {
        0 => right(query),
        3 => vec![Act::Close],
        _ => vec![],
    });
    let mut order = over(Transport::TcpReuse, &device);
    order.pace = Pace::Open { rate_qps: 40.0, burst: 4 };
    order.lanes.connections = 1;
    let (outcome, connections) = go(&order);
    assert_eq!(counts(&outcome), ([10, 0, 30, 0, 0, 0], vec![], vec![("closed", 30)]));
    assert_eq!((connections.opened, connections.closed_by_server), (10, 10));
}

#[test]
fn garbage_is_no_reply() {
    // A length of 18,516 whose message never ends; a message without a header; another ID.
    let (outcome, connections) = with_fault(Transport::Tcp, |query| match query.number {
        20 => vec![Act::Octets(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), Act::Close],
        60 => vec![Act::Octets(framed(&[7])), Act::Close],
        _ => {
            let other = query.patched(&[(0, query.message[0] ^ 0x80)]);
            vec![Act::Octets(framed(&other)), Act::Close]
        }
    });
    assert_eq!(
        counts(&outcome),
        ([390, 0, 10, 0, 0, 1], vec![("stale-id", 8)], vec![("closed", 10)]),
        "{connections:?}"
    );
}

#[test]
fn a_reply_to_another_question_does_not_complete_its_query() {
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        let (outcome, _) = with_fault(transport, |query| {
            vec![Act::Octets(framed(&query.patched(&[(27, b'X')]))), Act::Octets(framed(&query.right()))]
        });
        assert_eq!(counts(&outcome), (PASSED, vec![("question", 10)], vec![]), "{transport:?}");
    }
}

#[test]
fn a_wrong_reply_is_named_as_over_udp() {
    let (outcome, _) =
        with_fault(Transport::Tcp, |query| vec![Act::Octets(framed(&query.patched(&[(3, 0x82)])))]);
    assert_eq!(counts(&outcome), ([390, 0, 0, 0, 0, 0], vec![("servfail", 10)], vec![]));
    assert_verdict(&outcome, Verdict::Fail, "10 invalid (servfail)");
}

#[test]
fn a_second_reply_is_a_duplicate() {
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        let (outcome, _) = with_fault(transport, |query| {
            vec![Act::Octets(framed(&query.right())), Act::Octets(framed(&query.right()))]
        });
        assert_eq!(counts(&outcome), ([400, 0, 0, 0, 10, 0], vec![], vec![]), "{transport:?}");
    }
}

#[test]
fn a_query_without_a_reply_is_lost_and_its_connection_given_up() {
    let device = stream::start(|query| if query.number % 40 == 20 { vec![] } else { right(query) });
    let mut order = over(Transport::Tcp, &device);
    order.timeout_ms = 500;
    let (outcome, connections) = go(&order);
    assert_eq!(outcome.sent, 400);
    // A pause of the machine may make other replies late.
    assert!(outcome.lost >= 10 && outcome.valid + outcome.late + outcome.lost == 400, "{outcome:?}");
    assert!(connections.aborted >= 10 && connections.lost.is_empty(), "{connections:?}");
}

#[test]
fn a_late_reply_is_seen() {
    // Later ones would come after the end of the load, which waits for one timeout only.
    let device = stream::start(|query| match (query.number % 40, query.number / 200) {
        (20, 0) => vec![Act::Wait(Duration::from_millis(900)), Act::Octets(framed(&query.right()))],
        _ => right(query),
    });
    let mut order = over(Transport::Tcp, &device);
    order.timeout_ms = 600;
    let (outcome, _) = go(&order);
    assert!(outcome.late >= 5 && outcome.valid + outcome.late + outcome.lost == 400, "{outcome:?}");
}

#[test]
fn refused_connections_are_counted_as_such() {
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        // Outside the range from which the kernel chooses ports, so nobody listens there.
        let order = Load { transport, ..order("127.0.0.9:1".parse().unwrap(), 100.0, 500) };
        let (outcome, connections) = go(&order);
        assert_eq!(counts(&outcome), ([0, 0, 0, 50, 0, 0], vec![], vec![]), "{transport:?}");
        assert_eq!((connections.refused, connections.established), (connections.opened, 0));
        assert_verdict(&outcome, Verdict::Fail, "50 connection refused");
    }
}

#[test]
fn a_listener_that_accepts_nothing_more_leaves_handshakes_open() {
    // A queue of one connection, which nobody takes: the kernel drops the SYNs after the second.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let mut order = Load { transport: Transport::Tcp, ..order(listener.local_addr().unwrap(), 20.0, 500) };
    order.timeout_ms = 300;
    let (outcome, connections) = go(&order);
    assert_eq!((outcome.sent, outcome.lost, connections.opened), (10, 10, 10));
    assert!(connections.timed_out >= 8 && connections.lost["handshake"] >= 1, "{connections:?}");
    assert_eq!(connections.timed_out + connections.aborted, 10);
}

#[test]
fn several_threads_and_source_addresses_are_used() {
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        let device = stream::start(right);
        let mut order = over(transport, &device);
        order.lanes.senders = 2;
        order.lanes.connections = 2;
        order.lanes.sources = vec!["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()];
        let (outcome, connections) = go(&order);
        assert_eq!(counts(&outcome), (PASSED, vec![], vec![]), "{transport:?}");
        let peers = device.take_peers();
        let of = |source: &str| peers.iter().filter(|peer| peer.ip().to_string() == source).count() as u64;
        assert_eq!((of("127.0.0.1"), of("127.0.0.2")), (connections.opened / 2, connections.opened / 2));
        assert_eq!(connections.opened, if transport == Transport::Tcp { 400 } else { 8 });
    }
}

#[test]
fn a_closed_loop_goes_on_after_faults() {
    for transport in [Transport::Tcp, Transport::TcpReuse] {
        let device = stream::start(|query| match query.number % 50 {
            49 => vec![Act::Close],
            _ => right(query),
        });
        let mut order = over(transport, &device);
        order.pace = Pace::Closed { outstanding: 8 };
        let (outcome, connections) = go(&order);
        assert!(outcome.valid > 100, "{outcome:?}");
        assert_eq!(outcome.valid + outcome.lost, outcome.sent, "{transport:?}");
        assert_eq!(outcome.lost, connections.lost.values().sum::<u64>());
    }
}

#[test]
fn every_query_has_its_times() {
    let device = stream::start(|query| if query.number == 3 { vec![Act::Close] } else { right(query) });
    let options = LoadOptions { query_times: true, ..LoadOptions::default() };
    let mut order = over(Transport::Tcp, &device);
    order.duration_ms = 100;
    let done = device::run(&order, &options);
    let outcomes: Vec<_> = done.unwrap().1.queries().map(|query| query.outcome).collect();
    assert_eq!(outcomes.len(), 40);
    assert!(
        outcomes.iter().enumerate().all(|(k, outcome)| *outcome == if k == 3 { "lost" } else { "valid" })
    );
}
