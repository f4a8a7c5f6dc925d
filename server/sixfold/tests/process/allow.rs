//! Access control (`server.allow`), and the clients that get synthesis (`dns64.clients`).

use crate::client::{Tcp, Udp, embedded, name_of};
use crate::daemon::{PREFIX, Setup};
use crate::upstream::{Behavior, Upstream};
use std::net::IpAddr;
use wire::{Rcode, Type};

#[test]
fn a_client_outside_is_refused_over_udp_and_tcp_and_nothing_is_asked_for_it() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).line("server.allow = [\"127.0.0.2/32\"]").start();
    let inside = Udp::from(IpAddr::from([127, 0, 0, 2]), server.v4());
    assert_eq!(inside.ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    assert_eq!(Tcp::from([127, 0, 0, 2], server.v4()).ask(&name_of(2), Type::AAAA).rcode, Rcode::NOERROR);
    for answer in [
        Udp::from(IpAddr::from([127, 0, 0, 3]), server.v4()).ask(&name_of(3), Type::AAAA),
        Udp::to(server.v6()).ask(&name_of(3), Type::AAAA),
        Tcp::from([127, 0, 0, 1], server.v4()).ask(&name_of(3), Type::AAAA),
        Tcp::to(server.v6()).ask(&name_of(3), Type::A),
    ] {
        assert_eq!((answer.rcode, answer.addresses.len()), (Rcode::REFUSED, 0));
    }
    assert_eq!(upstream.asked(&name_of(3), Type::AAAA) + upstream.asked(&name_of(3), Type::A), 0);
    assert_eq!(server.stat("refused_total{reason=\"not_allowed\"}"), 4.0);
}

#[test]
fn clients_without_dns64_are_served_without_synthesis() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).line("dns64.clients = [\"::/0\"]").start();
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).addresses, [embedded(PREFIX, 1)]);
    let answer = Udp::to(server.v4()).ask(&name_of(2), Type::AAAA);
    assert_eq!((answer.rcode, answer.addresses.len()), (Rcode::NOERROR, 0));
    assert_eq!(upstream.asked(&name_of(2), Type::A), 0);
}

#[test]
fn an_excluded_client_costs_one_question_upstream_and_is_counted_as_a_client() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server =
        Setup::new(upstream.address).line("dns64.clients = [\"!127.0.0.2\", \"!fd99::/64\"]").start();
    let excluded = Udp::from(IpAddr::from([127, 0, 0, 2]), server.v4()).ask(&name_of(1), Type::AAAA);
    assert_eq!((excluded.rcode, excluded.addresses.len()), (Rcode::NOERROR, 0));
    assert_eq!([Type::AAAA, Type::A].map(|qtype| upstream.asked(&name_of(1), qtype)), [1, 0]);
    assert_eq!(Udp::to(server.v6()).ask(&name_of(2), Type::AAAA).addresses, [embedded(PREFIX, 2)]);
    assert_eq!([Type::AAAA, Type::A].map(|qtype| upstream.asked(&name_of(2), qtype)), [1, 1]);
    assert_eq!(server.stat("not_synthesized_total{reason=\"client\"}"), 1.0);
    assert_eq!(server.stat("not_synthesized_total{reason=\"policy\"}"), 0.0);
    let explained = server.ctl(&["explain", &name_of(1), "--client", "fd99::1"]);
    let text = String::from_utf8(explained.stdout).unwrap();
    let first = text.split("\nwhy\n").nth(1).unwrap_or(&text).lines().next().unwrap();
    assert!(first.contains("fd99::/64 is excluded") && first.contains("[dns64.clients]"), "{text}");
}
