//! Random octets and mutated messages, a million in all: the engine does not panic, and counts every message.

use crate::world::{ClientQuery, Reply, Rng, World, client, query, settings, subnet};
use engine::settings::{ClientSubnet, Lookup};
use engine::{Link, Settings, Span};
use wire::{Flags, Type};

/// Messages per test.
const MESSAGES: usize = 250_000;

fn random_octets(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(4) {
        0 => rng.below(14),
        1 => rng.below(64),
        _ => rng.below(300),
    };
    (0..length).map(|_| rng.bits() as u8).collect()
}

/// The message with up to four random changes.
fn mutated(message: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len().max(1) as u64) as usize;
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 => {
                let copy = bytes[at..(at + rng.below(20) as usize).min(bytes.len())].to_vec();
                bytes.extend(copy);
            }
            2 if at < bytes.len() => bytes[at] = [0, 1, 0xc0, 0xff, 63, 64][rng.below(6) as usize],
            _ if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            _ => {}
        }
    }
    bytes
}

fn any_query(rng: &mut Rng) -> ClientQuery {
    let qtype = [Type::AAAA, Type::A, Type::MX, Type::ANY][rng.below(4) as usize];
    let question = query(&format!("n{}.example.", rng.below(5000)), qtype)
        .id(rng.bits() as u16)
        .port(rng.bits() as u16)
        .flags(Flags(rng.bits() as u16 & 0x0130))
        .network(rng.below(300) as u32);
    let question = if rng.percent(20) { question.option(any_subnet(rng)) } else { question };
    if rng.percent(50) { question.edns(rng.bits() as u16, rng.percent(50)) } else { question }
}

fn any_subnet(rng: &mut Rng) -> (u16, Vec<u8>) {
    subnet(
        ["10.0.0.0/8", "10.0.0.0/8/16", "203.0.113.7/32/32", "2001:db8::/56", "::/0"][rng.below(5) as usize],
    )
}

/// The default settings, but client subnets are forwarded, so that more octets of each message are parsed.
fn forwarding() -> Settings {
    Settings { client_subnet: ClientSubnet::Forward, ..settings() }
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::empty("example.", 60, 60),
        Reply::answer(&["n1.example. 60 IN A 198.51.100.7"]),
        Reply::answer(&["n1.example. 60 IN CNAME h.example.", "h.example. 60 IN A 198.51.100.7"]),
        Reply::answer(&["n1.example. 60 IN CNAME far.test."]),
        Reply::answer(&["n1.example. 60 IN AAAA 2001:db8:1::1", "n1.example. 60 IN AAAA ::ffff:192.0.2.1"]),
        Reply { ede: Some(6), ..Reply::rcode(wire::Rcode::SERVFAIL) },
        Reply { flags: Flags::TC, ..Reply::default() },
        Reply::answer(&["n1.example. 60 IN A 198.51.100.7"]).option(subnet("10.0.0.0/8/8")),
        Reply::empty("example.", 60, 60).option(subnet("2001:db8::/56/48")),
        Reply::rcode(wire::Rcode::REFUSED).option(subnet("10.0.0.0/8/8")),
    ]
}

fn finish(mut world: World) {
    world.run(Span::from_secs(60));
    world.assert_conservation();
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    assert!(world.engine.open_links() <= 2, "{}", world.engine.open_links());
}

/// Advances the clock and discards the recorded messages, every 64 rounds.
fn advance(world: &mut World, round: usize) {
    if round.is_multiple_of(64) {
        world.run(Span::from_millis(3));
        world.asked.clear();
        world.answers.clear();
    }
}

/// Lets the upstreams reply only to queries for the root, so that probes find them alive.
fn reply_to_probes_only(world: &mut World) {
    world.set_upstreams(|asked, _| {
        let probe = asked.name() == ".";
        probe
            .then(|| crate::world::deliver(asked, Span::from_millis(1), &Reply::default()))
            .into_iter()
            .collect()
    });
}

#[test]
fn random_octets_from_clients_do_no_harm() {
    let mut world = World::sized(settings(), 2000, 11);
    reply_to_probes_only(&mut world);
    for round in 0..MESSAGES {
        let message = random_octets(&mut world.rng);
        world.send_message(&client("2001:db8:c::1", 4000), &message);
        advance(&mut world, round);
    }
    finish(world);
}

#[test]
fn mutated_queries_from_clients_do_no_harm() {
    let mut world = World::sized(forwarding(), 2000, 12);
    reply_to_probes_only(&mut world);
    for round in 0..MESSAGES {
        let question = any_query(&mut world.rng);
        let message = mutated(&question.bytes(), &mut world.rng);
        world.send_message(&question.client, &message);
        advance(&mut world, round);
    }
    finish(world);
}

#[test]
fn random_octets_from_upstreams_do_no_harm() {
    let mut world = World::sized(forwarding(), 2000, 13);
    reply_to_probes_only(&mut world);
    for round in 0..MESSAGES {
        if round % 16 == 0 {
            let question = any_query(&mut world.rng);
            world.ask(&question);
        }
        let link = world.outbox.links.keys().min_by_key(|link| link.slot).copied();
        let mut message = random_octets(&mut world.rng);
        // Also over links that never existed.
        let stray = Link { slot: world.rng.below(2000) as u16, generation: world.rng.below(3) as u16 };
        let link = link.filter(|_| round % 8 != 0).unwrap_or(stray);
        let mut outbox = std::mem::take(&mut world.outbox);
        engine::Machine::reply(&mut world.engine, world.now, link, &mut message, &mut outbox);
        world.outbox = outbox;
        world.poll();
        advance(&mut world, round);
    }
    finish(world);
}

#[test]
fn mutated_replies_from_upstreams_do_no_harm() {
    let mut settings = forwarding();
    settings.dns64.lookup = Lookup::Parallel;
    let mut world = World::sized(settings, 2000, 14);
    reply_to_probes_only(&mut world);
    let replies = replies();
    let (mut sent, mut round) = (0, 0);
    while sent < MESSAGES {
        round += 1;
        let question = any_query(&mut world.rng);
        let first = world.asked.len();
        world.send_message(&question.client, &question.bytes());
        let mut place = first;
        while place < world.asked.len().min(first + 12) {
            let asked = world.asked[place].clone();
            place += 1;
            for _ in 0..8 {
                let chosen = world.rng.below(replies.len() as u64) as usize;
                let message = mutated(&replies[chosen].to(&asked.bytes), &mut world.rng);
                world.reply(asked.link, &message);
                sent += 1;
            }
        }
        advance(&mut world, round);
    }
    finish(world);
}
