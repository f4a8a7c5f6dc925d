//! `[limits]` in effect: a client network over its limit is refused, and all others are served.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::upstream::{Behavior, Upstream};
use std::net::IpAddr;
use std::time::Duration;
use wire::{Rcode, Type};

/// The upstream answers for 100 names from this number on, and never for names below it.
const ANSWERED: u32 = 10_000;
/// It answers for this one after seconds.
const SLOW: u32 = 20_000;

fn upstream() -> Upstream {
    Upstream::start(|name| {
        let is = |number: u32| name == format!("{}.", name_of(number));
        match (ANSWERED..ANSWERED + 100).any(is) {
            true => Behavior::Answer,
            false if is(SLOW) => Behavior::After(Duration::from_secs(4)),
            false => Behavior::Ignore,
        }
    })
}

/// Lets the server learn that the upstream may take seconds. Else a query counts as late after 200 ms, and gives way to newer ones: time
/// that a slow machine takes between two steps of a test.
fn learn_slowness(server: &Daemon) {
    assert_eq!(at(200, server).ask(&name_of(SLOW), Type::AAAA).rcode, Rcode::NOERROR);
}

fn start(upstream: &Upstream, lines: &[&str]) -> Daemon {
    let setup = Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1");
    lines.iter().fold(setup, |setup, line| setup.line(line)).start()
}

fn at(last: u8, server: &Daemon) -> Udp {
    Udp::from(IpAddr::from([127, 0, 0, last]), server.v4())
}

#[test]
fn when_all_room_is_taken_another_network_is_served_and_the_greedy_one_is_refused() {
    let upstream = upstream();
    let server = start(&upstream, &["limits.pending = 50"]);
    learn_slowness(&server);
    let greedy = at(1, &server);
    for number in 0..50 {
        greedy.send(&query(number as u16, &name_of(number), Type::AAAA));
    }
    server.wait_for_stat("pending", 50.0);

    let other = at(2, &server).ask(&name_of(ANSWERED), Type::AAAA);
    assert_eq!((other.rcode, other.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, ANSWERED)]));
    // The server evicted the newest query of the greedy network.
    let refused = greedy.receive();
    assert_eq!((refused.id, refused.rcode), (49, Rcode::REFUSED));

    // One slot is free again; the greedy network may use it, but no more.
    greedy.send(&query(50, &name_of(50), Type::AAAA));
    server.wait_for_stat("pending", 50.0);
    greedy.send(&query(51, &name_of(51), Type::AAAA));
    let refused = greedy.receive();
    assert_eq!((refused.id, refused.rcode), (51, Rcode::REFUSED));
    assert_eq!(server.stat("refused_total{reason=\"pending\"}"), 2.0);
    // Ten more networks are still served.
    for last in 3..13 {
        let name = name_of(ANSWERED + u32::from(last));
        assert_eq!(at(last, &server).ask(&name, Type::AAAA).rcode, Rcode::NOERROR);
    }
    assert_eq!(Udp::to(server.v6()).ask(&name_of(ANSWERED), Type::AAAA).rcode, Rcode::NOERROR);
}

#[test]
fn a_network_has_at_most_its_share_of_pending_questions() {
    let upstream = upstream();
    let server = start(&upstream, &["limits.pending-per-client = 10"]);
    learn_slowness(&server);
    let greedy = at(1, &server);
    for number in 0..10 {
        greedy.send(&query(number as u16, &name_of(number), Type::AAAA));
    }
    server.wait_for_stat("pending", 10.0);
    // The limit holds for all sockets of the network. The source addresses may be forged, so the client is sent to TCP.
    assert!(at(1, &server).ask(&name_of(11), Type::AAAA).truncated);
    assert_eq!(server.stat("slipped_total{reason=\"pending_per_client\"}"), 1.0);
    assert_eq!(at(2, &server).ask(&name_of(ANSWERED), Type::AAAA).rcode, Rcode::NOERROR);
    assert_eq!(server.stat("pending"), 10.0);
    // There the network has as many places again, and beyond them its queries are refused.
    let mut stream = Tcp::from([127, 0, 0, 1], server.v4());
    assert_eq!(stream.ask(&name_of(ANSWERED + 1), Type::AAAA).rcode, Rcode::NOERROR);
    for number in 20..30 {
        stream.send(&query(number as u16, &name_of(number), Type::AAAA));
    }
    server.wait_for_stat("pending", 20.0);
    assert_eq!(Tcp::from([127, 0, 0, 1], server.v4()).ask(&name_of(12), Type::AAAA).rcode, Rcode::REFUSED);
    assert_eq!(server.stat("refused_total{reason=\"pending_per_client\"}"), 1.0);
}

#[test]
fn a_client_over_its_query_rate_is_sent_to_tcp_and_others_are_served() {
    let upstream = upstream();
    let server = start(&upstream, &["limits.queries-per-client = 1"]);
    let answered = name_of(ANSWERED);
    let fast = at(1, &server);
    // More queries at once than the limit allows, until one is sent to TCP.
    let mut sent = 0;
    wait_until("one is sent to TCP", || {
        (0..10).for_each(|number| fast.send(&query(number, &answered, Type::AAAA)));
        sent += 10;
        std::iter::from_fn(|| fast.receive_within(Duration::from_millis(100))).any(|reply| reply.truncated)
    });
    wait_until("all have arrived", || {
        server.stat("queries_total{transport=\"udp\",family=\"ipv4\"}") >= f64::from(sent)
    });
    let limited = |name: &str| server.stat(&format!("{name}{{reason=\"queries_per_client\"}}"));
    let (dropped, slipped) = (limited("dropped_total"), limited("slipped_total"));
    assert!(slipped >= 1.0 && (dropped - slipped).abs() <= 1.0, "{dropped} dropped, {slipped} slipped");
    // Over TCP this client is served, and so are others over UDP.
    let mut stream = Tcp::from([127, 0, 0, 1], server.v4());
    assert_eq!(stream.ask(&answered, Type::AAAA).addresses, [embedded(PREFIX, ANSWERED)]);
    assert_eq!(at(2, &server).ask(&answered, Type::AAAA).addresses, [embedded(PREFIX, ANSWERED)]);
}
