//! `upstream.source` and `upstream.avoid-ports`: the addresses and ports that false upstreams see.

use crate::client::{Udp, name_of, query};
use crate::daemon::{Daemon, Folder, Setup, wait_until};
use crate::stream_upstream::{Authority, Kind, StreamUpstream};
use crate::upstream::{Behavior, Upstream};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use wire::{Rcode, Type};

/// Questions for names from `first` on. A UDP link carries fewer than that.
const QUESTIONS: u32 = 600;

fn ask_many(server: &Daemon, first: u32) {
    let client = Udp::to(server.v4());
    for number in first..first + QUESTIONS {
        assert_eq!(client.ask(&name_of(number), Type::A).rcode, Rcode::NOERROR, "question {number}");
    }
}

#[track_caller]
fn assert_from(peers: impl IntoIterator<Item = SocketAddr>, address: &str, ports: RangeInclusive<u16>) {
    let address: IpAddr = address.parse().unwrap();
    let peers: Vec<_> = peers.into_iter().collect();
    assert!(!peers.is_empty());
    for peer in peers {
        assert!(peer.ip() == address && ports.contains(&peer.port()), "{peer}");
    }
}

#[test]
fn questions_leave_from_the_sources_over_udp_and_tls_also_after_a_reload() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let authority = Authority::new("ours");
    let encrypted = StreamUpstream::start(&Kind::Tls(authority.certify(&["dns.example"], |_| {})));
    let directory = Folder::for_everybody();
    let anchors = directory.file("ca.pem");
    std::fs::write(&anchors, &authority.pem).unwrap();
    let server = Setup::new(upstream.address)
        .line("upstream.source = [\"127.0.0.2\", \"::1\"]")
        .line("upstream.avoid-ports = [\"1024-45000\", 50000]")
        .line(&format!("upstream.tls-ca = \"{}\"", anchors.display()))
        .line(&format!(
            "upstream.zone = [{{ zone = \"tls.example\", forwarders = [\"{}#dns.example\"] }}]",
            encrypted.address
        ))
        .start();
    let ask_over_tls = |name: &str| {
        let before = encrypted.accepted();
        Udp::to(server.v4()).send(&query(7, name, Type::A));
        wait_until("a connection of a worker", || encrypted.accepted() > before);
        encrypted.take_peers()
    };
    let explained = server.ctl(&["explain", &name_of(90_000)]);
    assert_eq!(explained.status.code(), Some(0));
    assert_from(upstream.take_peers(), "127.0.0.2", 45_001..=65_535);
    let explained = server.ctl(&["explain", "www.tls.example"]);
    assert_eq!(explained.status.code(), Some(0));
    assert_from(encrypted.take_peers(), "127.0.0.2", 45_001..=65_535);

    ask_many(&server, 1);
    let peers = upstream.take_peers();
    assert!(peers.len() > 2, "several links: {peers:?}");
    assert!(peers.iter().all(|peer| peer.port() != 50_000));
    assert_from(peers, "127.0.0.2", 45_001..=65_535);
    assert_from(ask_over_tls("a.tls.example"), "127.0.0.2", 45_001..=65_535);

    server.rewrite(&[
        "upstream.source = [\"127.0.0.3\"]",
        "upstream.avoid-ports = [\"1024-10000\", \"45001-65535\"]",
    ]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    ask_many(&server, 10_001);
    assert_from(upstream.take_peers(), "127.0.0.3", 10_001..=45_000);
    assert_from(ask_over_tls("b.tls.example"), "127.0.0.3", 10_001..=45_000);
}

#[test]
fn questions_leave_from_the_sources_over_tcp_also_when_a_reload_sets_them_in_the_sandbox() {
    let upstream = StreamUpstream::start(&Kind::Tcp);
    let server = Setup::new(upstream.address)
        .line("upstream.transport = \"tcp\"")
        .line("upstream.source = [\"127.0.0.2\"]")
        .start();
    let client = Udp::to(server.v4());
    assert_eq!(client.ask("a.example", Type::A).rcode, Rcode::NOERROR);
    assert_from(upstream.take_peers(), "127.0.0.2", 1..=65_535);
    // Half of the ports that the kernel chooses from by default are avoided.
    server.rewrite(&["upstream.source = [\"127.0.0.3\"]", "upstream.avoid-ports = [\"1024-46000\"]"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(client.ask("b.example", Type::A).rcode, Rcode::NOERROR);
    assert_from(upstream.take_peers(), "127.0.0.3", 46_001..=65_535);
}

#[test]
fn a_source_that_the_machine_does_not_have_is_told_and_counted_and_the_next_reload_mends_it() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).line("upstream.source = [\"192.0.2.77\"]").start();
    let client = Udp::to(server.v4());
    assert_eq!(client.ask(&name_of(1), Type::A).rcode, Rcode::SERVFAIL);
    let told = "no question can leave from 192.0.2.77: this machine does not have the address";
    assert!(server.process.wait_for(told).is_some());
    assert!(server.stat("dropped_total{reason=\"upstream_open_failed\"}") >= 1.0);
    // Another failure is no news.
    client.ask(&name_of(2), Type::A);
    assert_eq!(server.process.log().matches(told).count(), 1);
    server.rewrite(&["upstream.source = [\"192.0.2.77\", \"127.0.0.2\"]"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    let mut number = 2;
    wait_until("an answer", || {
        number += 1;
        client.ask(&name_of(number), Type::A).rcode == Rcode::NOERROR
    });
    assert_from(upstream.take_peers(), "127.0.0.2", 1024..=65_535);
}
