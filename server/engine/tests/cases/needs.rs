//! What still needs DNS64: which answers are counted, and for whom.

use crate::cases::packet_cache::entry_for;
use crate::world::{Reply, SentQuery, World, name, query, settings};
use engine::needs::{NeedingNetwork, NeedsReport, SharedNeeds};
use engine::packet_cache::{PacketCacheHits, PacketCacheTask};
use engine::{ClientNetwork, ClientTransport, Machine, Settings, Span};
use std::net::Ipv6Addr;
use std::sync::Arc;
use wire::{Rcode, Type};

/// Key of the hashes of networks and clients.
const KEY: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];

/// An IPv6 network with one client, and the address of the client.
const OFFICE: &str = "2001:db8:1::1";
const CAMPUS: &str = "2001:db8:2::1";

fn reply(asked: &SentQuery) -> Reply {
    match (asked.name().as_str(), asked.qtype()) {
        ("real.example.", Type::AAAA) => Reply::answer(&["real.example. 300 IN AAAA 2001:db8::1"]),
        ("gone.example.", _) => Reply { rcode: Rcode::NXDOMAIN, ..Reply::empty("example.", 300, 60) },
        ("private.example.", Type::A) => Reply::answer(&["private.example. 300 IN A 127.0.0.1"]),
        (name, Type::A) => Reply::answer(&[&format!("{name} 300 IN A 198.51.100.7")]),
        _ => Reply::empty("example.", 300, 60),
    }
}

fn counting() -> Settings {
    Settings { needs: Some(Arc::new(SharedNeeds::new(KEY, 1))), ..settings() }
}

fn world(settings: Settings) -> World {
    let mut world = World::with_cache(settings, 1 << 20);
    world.set_replies(Span::from_millis(5), reply);
    world
}

/// Asks, and waits for the answer.
fn ask(world: &mut World, address: &str, name: &str, qtype: Type) {
    let id = world.rng.bits() as u16;
    world.ask(&query(name, qtype).address(address).id(id));
    world.run(Span::from_millis(20));
}

fn report(world: &mut World) -> NeedsReport {
    world.engine.needs(usize::MAX, false).expect("it is counted")
}

/// Answers and networks of a name; none if it was not counted.
fn of_name(report: &NeedsReport, text: &str) -> Option<(u64, u64)> {
    report.names.get(&name(text)[..]).map(|counted| (counted.answers, counted.networks()))
}

fn of_network(report: &NeedsReport, address: &str) -> NeedingNetwork {
    let network = ClientNetwork::of(address.parse::<Ipv6Addr>().expect("an address"), 0);
    report.networks.get(&network).copied().unwrap_or_default()
}

#[test]
fn synthesized_answers_are_counted_fresh_and_from_the_cache_and_no_others_are() {
    let mut world = world(counting());
    for _ in 0..3 {
        ask(&mut world, OFFICE, "V4only.example.", Type::AAAA);
    }
    ask(&mut world, CAMPUS, "v4only.example.", Type::AAAA);
    for name in ["real.example.", "gone.example.", "private.example."] {
        ask(&mut world, OFFICE, name, Type::AAAA);
        ask(&mut world, OFFICE, name, Type::AAAA);
    }
    ask(&mut world, OFFICE, "other.example.", Type::A);
    ask(&mut world, OFFICE, "other.example.", Type::HTTPS);
    let report = report(&mut world);
    assert_eq!(of_name(&report, "v4only.example."), Some((4, 2)));
    assert_eq!((report.names.len(), report.answers), (1, 4));
    assert_eq!(of_network(&report, OFFICE).answers, 3);
    assert_eq!(of_network(&report, CAMPUS).answers, 1);
}

#[test]
fn clients_that_ask_for_a_records_too_are_told_apart() {
    let mut world = world(counting());
    // One client asks for A first, then for AAAA, and next time the other way round, from the cache.
    for (name, first, second) in [
        ("one.example.", Type::A, Type::AAAA),
        ("two.example.", Type::AAAA, Type::A),
        ("one.example.", Type::AAAA, Type::A),
    ] {
        ask(&mut world, OFFICE, name, first);
        ask(&mut world, OFFICE, name, second);
    }
    // A neighbour asks for AAAA alone, and long after for A.
    ask(&mut world, "2001:db8:1::2", "one.example.", Type::AAAA);
    world.run(Span::from_secs(10));
    ask(&mut world, "2001:db8:1::2", "one.example.", Type::A);
    let report = report(&mut world);
    let network = of_network(&report, OFFICE);
    assert_eq!(network, NeedingNetwork { answers: 4, with_a: 3, sought_prefix: 0 });
    assert_eq!(network.needed(), 1);
}

#[test]
fn clients_that_ask_for_ipv4only_arpa_are_told_apart() {
    let mut world = world(counting());
    ask(&mut world, OFFICE, "v4only.example.", Type::AAAA);
    ask(&mut world, OFFICE, "IPv4only.arpa.", Type::AAAA);
    ask(&mut world, OFFICE, "v4only.example.", Type::AAAA);
    // With an A query for the name, too, the answer is counted once.
    ask(&mut world, OFFICE, "v4only.example.", Type::A);
    ask(&mut world, CAMPUS, "ipv4only.arpa.", Type::A);
    ask(&mut world, CAMPUS, "v4only.example.", Type::AAAA);
    let report = report(&mut world);
    // The A query follows the first answer within seconds.
    assert_eq!(of_network(&report, OFFICE), NeedingNetwork { answers: 2, with_a: 1, sought_prefix: 1 });
    assert_eq!(of_network(&report, CAMPUS), NeedingNetwork { answers: 1, with_a: 0, sought_prefix: 0 });
    assert_eq!(of_name(&report, "ipv4only.arpa."), None);
}

#[test]
fn answers_of_packet_caches_are_counted_for_their_names() {
    let mut world = world(counting());
    let asked = query("v4only.example.", Type::AAAA);
    for id in 1..=2 {
        world.ask(&asked.clone().id(id));
        world.run(Span::from_millis(20));
    }
    let entry = entry_for(&mut world, &asked).expect("an entry");
    let hits = vec![PacketCacheHits {
        query: entry.query.clone(),
        kind: entry.kind,
        transport: ClientTransport::Udp,
        ipv4: 3,
        ipv6: 4,
        with_opt: 0,
    }];
    world.engine.serve_packet_cache(world.now, PacketCacheTask { hits, ..Default::default() });
    let report = report(&mut world);
    assert_eq!(of_name(&report, "v4only.example."), Some((9, 1)));
    let of_networks: u64 = report.networks.values().map(|network| network.answers).sum();
    assert_eq!((report.answers, of_networks), (9, 2));
}

#[test]
fn counts_survive_a_flush_and_a_reload_and_end_when_they_are_switched_off() {
    let mut world = world(counting());
    ask(&mut world, OFFICE, "v4only.example.", Type::AAAA);
    world.engine.flush_all(0);
    world.engine.configure(counting());
    ask(&mut world, OFFICE, "v4only.example.", Type::AAAA);
    assert_eq!(of_name(&report(&mut world), "v4only.example."), Some((2, 1)));
    // A reset returns what it forgets.
    assert_eq!(world.engine.needs(usize::MAX, true).expect("it is counted").answers, 2);
    assert_eq!(report(&mut world).answers, 0);
    world.engine.configure(settings());
    ask(&mut world, OFFICE, "v4only.example.", Type::AAAA);
    assert!(world.engine.needs(usize::MAX, false).is_none());
    world.engine.configure(counting());
    assert_eq!(report(&mut world).answers, 0);
}
