//! Access control (`server.allow`).

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
