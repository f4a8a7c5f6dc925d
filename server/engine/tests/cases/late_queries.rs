//! Late queries, to which the upstream does not reply in its usual time, give way when their network has all of its share, or the
//! table is full.

use crate::world::{ClientQuery, Delivery, Reply, Rng, SentQuery, Token, World, deliver, query, settings};
use engine::{Counter, Settings, Span};
use wire::{Flags, Rcode, Type};

const MS: fn(u64) -> Span = Span::from_millis;

/// Names below `lost.` get no reply, names below `far.` get one after 400 ms, and all others after 20 ms.
fn upstream(asked: &SentQuery, _: &mut Rng) -> Vec<Delivery> {
    let line = format!("{} 60 IN A 198.51.100.7", asked.name());
    let after = match asked.name().rsplit('.').nth(1) {
        Some("lost") => return vec![],
        Some("far") => MS(400),
        _ => MS(20),
    };
    vec![deliver(asked, after, &Reply::answer(&[&line]))]
}

fn question(number: u16, zone: &str) -> ClientQuery {
    query(&format!("n{number}.{zone}."), Type::A).id(number).port(number)
}

/// A world whose upstream is known: 50 questions for names of a zone, one after the other, were answered.
fn world(settings: Settings, pending: usize, zone: &str) -> World {
    known(World::sized(settings, pending, 1), zone)
}

fn known(mut world: World, zone: &str) -> World {
    world.set_upstreams(upstream);
    for number in 0..50 {
        world.ask(&question(60_000 + number, zone));
        world.run(MS(500));
    }
    assert_eq!(world.engine.pending(), 0);
    world
}

/// Settings with ten pending queries for each network.
fn ten() -> Settings {
    Settings { pending_per_client: 10, ..settings() }
}

fn aaaa(number: u16, zone: &str) -> ClientQuery {
    ClientQuery { qtype: Type::AAAA, ..question(number, zone) }
}

fn ask_all(world: &mut World, numbers: std::ops::Range<u16>, zone: &str) -> Vec<Token> {
    numbers.map(|number| world.ask(&question(number, zone))).collect()
}

/// Number of clients with an address.
fn answered(world: &World, tokens: &[Token]) -> usize {
    let has_address = |token: &&Token| {
        world.answers_to(**token).iter().any(|answer| !answer.records(wire::Section::Answer).is_empty())
    };
    tokens.iter().filter(has_address).count()
}

#[test]
fn the_oldest_late_query_of_a_network_gives_way_to_a_new_one() {
    let mut world = world(ten(), 1000, "example");
    let lost = ask_all(&mut world, 0..10, "lost");
    // They are not late enough yet.
    world.run(MS(150));
    let early = ask_all(&mut world, 10..14, "example");
    world.run(MS(60));
    assert_eq!(answered(&world, &early), 0);
    let later = ask_all(&mut world, 20..26, "example");
    world.run(MS(30));
    assert_eq!(answered(&world, &later), 6);
    // Those that gave way were sent to TCP.
    for (number, &token) in lost.iter().enumerate() {
        let answers = world.answers_to(token);
        assert_eq!(answers.len(), usize::from(number < 6), "{number}");
        assert!(answers.iter().all(|answer| answer.flags().contains(Flags::TC)));
    }
    // Of the four early ones, every second one.
    assert_eq!(world.count(Counter::SlippedPendingPerClient), 2 + 6);
    assert_eq!(world.count(Counter::DroppedPendingPerClient), 2);
    assert_eq!(world.engine.pending(), 4);
    world.assert_conservation();
    // The others keep their tries.
    world.run(Span::from_secs(10));
    for &token in &lost[6..] {
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    }
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
}

#[test]
fn over_tcp_the_late_query_is_refused() {
    let mut world = world(ten(), 1000, "example");
    let over_tcp = |number: u16, zone: &str| question(number, zone).tcp(number.into());
    let lost: Vec<_> = (0..10).map(|number| world.ask(&over_tcp(number, "lost"))).collect();
    world.run(MS(250));
    let later = world.ask(&over_tcp(20, "example"));
    world.run(MS(30));
    assert_eq!(answered(&world, &[later]), 1);
    assert_eq!(world.answer_to(lost[0]).rcode(), Rcode::REFUSED);
    assert_eq!(world.count(Counter::RefusedPendingPerClient), 1);
    world.assert_conservation();
}

/// Otherwise nobody would be answered by an upstream that is further away than the age at which queries give way.
#[test]
fn queries_to_an_upstream_that_is_far_away_do_not_give_way() {
    let mut world = world(ten(), 1000, "far");
    let far = ask_all(&mut world, 0..10, "far");
    world.run(MS(300));
    ask_all(&mut world, 10..30, "far");
    world.run(MS(110));
    assert_eq!(answered(&world, &far), 10);
    assert_eq!(world.count(Counter::SlippedPendingPerClient), 10);
}

#[test]
fn the_reply_to_a_query_that_gave_way_is_cached() {
    let mut world = known(World::with_cache(ten(), 1 << 20), "example");
    let far = ask_all(&mut world, 0..10, "far");
    world.run(MS(250));
    let near = ask_all(&mut world, 10..20, "example");
    world.run(MS(300));
    assert_eq!((answered(&world, &near), answered(&world, &far)), (10, 0));
    let again: Vec<_> =
        (0..10).map(|number| world.ask(&question(number, "far").port(1000 + number))).collect();
    assert_eq!(answered(&world, &again), 10);
}

#[test]
fn in_a_full_table_late_queries_give_way_first() {
    let mut world = world(settings(), 100, "example");
    let lost: Vec<_> = (0..90).map(|number| world.ask(&question(number, "lost").network(1))).collect();
    world.run(MS(250));
    // The newest ones are not late.
    let newest: Vec<_> = (90..100).map(|number| world.ask(&question(number, "example").network(1))).collect();
    assert_eq!(world.engine.pending(), 100);
    let same = world.ask(&question(200, "example").network(1));
    let other = world.ask(&question(201, "example").network(500));
    world.run(MS(30));
    assert_eq!(answered(&world, &[same, other]), 2);
    assert_eq!(answered(&world, &newest), 10);
    for (number, &token) in lost.iter().enumerate() {
        assert_eq!(world.answers_to(token).len(), usize::from(number < 2), "{number}");
    }
    assert_eq!(world.count(Counter::RefusedPending), 2);
    world.assert_conservation();
}

#[test]
fn in_a_table_full_of_networks_with_a_late_query_each_a_new_network_is_served() {
    let mut world = world(settings(), 100, "example");
    for number in 0..100u16 {
        world.ask(&question(number, "lost").network(u32::from(number) << 8));
    }
    let early = world.ask(&question(300, "example").network(1000 << 8));
    world.run(MS(250));
    assert_eq!(world.answer_to(early).rcode(), Rcode::REFUSED);
    let new: Vec<_> = (0..100u16)
        .map(|number| world.ask(&question(400 + number, "example").network(u32::from(2000 + number) << 8)))
        .collect();
    world.run(MS(30));
    assert_eq!(answered(&world, &new), 100);
    world.assert_conservation();
}

/// Questions whose clients gave way do not fill the table of questions in flight.
#[test]
fn new_queries_are_served_while_late_ones_fill_the_table_again_and_again() {
    for lookup in [engine::settings::Lookup::Sequential, engine::settings::Lookup::Parallel] {
        let mut settings = Settings { pending_per_client: 65_535, ..settings() };
        settings.dns64.lookup = lookup;
        let mut world = world(settings, 1500, "example");
        let mut next = 0;
        for round in 0..40u16 {
            let near = world.ask(&aaaa(60_000 + round, "example"));
            for _ in 0..1500 {
                world.ask(&aaaa(next % 60_000, "lost").network(u32::from(next / 60_000)));
                next += 1;
            }
            world.run(MS(100));
            // In every second round the queries that fill the table are late.
            assert!(round % 2 == 1 || answered(&world, &[near]) == 1, "{round}");
        }
        // A query without room for its question would be answered so.
        assert_eq!(world.count(Counter::ResponsesServFail), 0);
        world.assert_conservation();
        world.run(Span::from_secs(20));
        assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    }
}

#[test]
fn the_question_of_a_query_that_gives_way_to_one_for_the_same_name_goes_on() {
    let mut settings = Settings { pending_per_client: 65_535, ..settings() };
    // Two questions for each query are more than half of the room.
    settings.dns64.lookup = engine::settings::Lookup::Parallel;
    let mut world = world(settings, 1500, "example");
    let lost: Vec<_> = (0..1500).map(|number| world.ask(&aaaa(number, "lost"))).collect();
    world.run(MS(250));
    let same = world.ask(&aaaa(0, "lost").port(7));
    assert_eq!(world.answer_to(lost[0]).rcode(), Rcode::REFUSED);
    world.run(Span::from_secs(5));
    assert_eq!(world.answer_to(same).rcode(), Rcode::SERVFAIL);
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
}
