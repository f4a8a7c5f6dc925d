//! Isolation of client networks: one network sends ten times the queries for which there is room, and all others are served
//! as without it. They share the table of pending queries; the network that holds most gives way first.

use crate::world::{ClientQuery, Delivery, Reply, Rng, SentQuery, World, deliver, query, settings};
use core::ops::Range;
use engine::{Counter, Settings, Span};
use wire::{Rcode, Type};

/// Room for pending queries, and the time to a reply: 200 / 0.1 s are 2,000 lookups a second.
const PENDING: usize = 200;
const DELAY: Span = Span::from_millis(100);
/// Ten times that rate, in queries per millisecond.
const FLOOD_PER_MS: u64 = 20;
/// Number of other networks; each sends four queries a second, together 200.
const OTHERS: u32 = 50;
/// Number of the first of them.
const FIRST: u32 = 100;
const OTHERS_EVERY_MS: u64 = 5;
/// Duration of the flood.
const SECONDS: u64 = 10;

/// Names have an A record and no AAAA record; below `silent.` there is no reply.
fn upstream(asked: &SentQuery, _: &mut Rng) -> Vec<Delivery> {
    if asked.name().ends_with("silent.") {
        return vec![];
    }
    let line = format!("{} 60 IN A 198.51.100.7", asked.name());
    let reply = match asked.qtype() {
        Type::A => Reply::answer(&[&line]),
        _ => Reply::empty("example.", 60, 60),
    };
    vec![deliver(asked, DELAY, &reply)]
}

/// Sends the flood for names below a zone from these networks. Returns the number of queries of the others, and how many of them were answered.
fn flooded(settings: Settings, zone: &str, networks: Range<u32>) -> (usize, usize, World) {
    let mut world = World::sized(settings, PENDING, 7);
    world.set_upstreams(upstream);
    let mut tokens = vec![];
    for millisecond in 0..SECONDS * 1000 {
        for number in 0..FLOOD_PER_MS {
            let number = millisecond * FLOOD_PER_MS + number;
            let question: ClientQuery = query(&format!("flood{number}.{zone}"), Type::AAAA).id(number as u16);
            // From many addresses and ports.
            let from = question
                .network(networks.start + number as u32 % networks.len() as u32)
                .port((number % 60_000) as u16);
            world.send_message(&from.client, &from.bytes());
        }
        if millisecond % OTHERS_EVERY_MS == 0 {
            let number = millisecond / OTHERS_EVERY_MS;
            let question = query(&format!("n{number}.example."), Type::AAAA).id(number as u16);
            tokens.push(world.ask(&question.port(number as u16).network(FIRST + number as u32 % OTHERS)));
        }
        assert!(world.engine.pending() <= PENDING);
        world.run(Span::from_millis(1));
    }
    world.run(Span::from_secs(20));
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    world.assert_conservation();
    let served = |answers: Vec<&crate::world::Answer>| matches!(answers[..], [answer] if answer.rcode() == Rcode::NOERROR && answer.addresses().len() == 1);
    let answered = tokens.iter().filter(|&&token| served(world.answers_to(token))).count();
    (tokens.len(), answered, world)
}

fn assert_fair(settings: Settings, zone: &str, networks: Range<u32>) -> World {
    let (asked, answered, world) = flooded(settings, zone, networks);
    assert!(answered as f64 >= 0.999 * asked as f64, "{answered} of {asked} are answered");
    assert_eq!(asked as u64, SECONDS * 1000 / OTHERS_EVERY_MS);
    world
}

#[test]
fn a_network_that_asks_ten_times_the_capacity_takes_nothing_from_the_others() {
    let world = assert_fair(settings(), "example.", 1..2);
    // The flood was refused, but the flooder still gets the room that the others leave.
    assert!(world.count(Counter::RefusedPending) > 150_000, "{}", world.count(Counter::RefusedPending));
    let synthesized = world.count(Counter::SynthesizedNoData);
    assert!(synthesized > 8_000, "{synthesized}");
}

#[test]
fn a_flood_of_names_without_replies_takes_nothing_from_the_others() {
    assert_fair(settings(), "silent.", 1..2);
}

#[test]
fn a_flood_from_all_networks_of_a_customer_takes_nothing_from_the_others() {
    assert_fair(settings(), "silent.", 256..512);
}

#[test]
fn a_flood_from_some_networks_of_a_site_takes_nothing_from_its_other_networks() {
    assert_fair(settings(), "silent.", 0..30);
}

#[test]
fn with_a_rate_limit_a_flood_causes_little_work_and_takes_nothing_from_the_others() {
    let limited = Settings { queries_per_client: 100, responses_per_client: 20, ..settings() };
    let world = assert_fair(limited, "example.", 1..2);
    assert_eq!(world.count(Counter::RefusedPending), 0);
    // 100 at once, and 100 a second.
    assert!(world.count(Counter::SynthesizedNoData) <= 2_000 + 100 * (SECONDS + 1));
    let (dropped, slipped) = (world.count(Counter::DroppedQueryRate), world.count(Counter::SlippedQueryRate));
    assert!(dropped.abs_diff(slipped) <= 1 && dropped > 90_000, "{dropped} {slipped}");
}
