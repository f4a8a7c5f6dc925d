//! Upstreams with habits of their own on TCP and TLS connections: they close after some answers, reset, restart, stall, or answer
//! one query at a time. No question may fail because of that.

use crate::world::{
    Arrival, Delivery, Reply, Rng, SentQuery, Token, World, deliver, over, query, with_forwarders,
};
use engine::{Counter, Instant, Link, Settings, Span, Transport};
use std::collections::HashMap;
use wire::{Rcode, Type};

/// Round trip of all upstreams here.
const ROUND_TRIP: Span = Span::from_millis(5);
/// Questions of a load.
const QUESTIONS: u16 = 3_000;

fn over_tcp() -> Settings {
    over(Transport::Tcp, with_forwarders("192.0.2.53"))
}

/// The end of the connection of a query.
fn closes(asked: &SentQuery, after: Span) -> Delivery {
    Delivery { after, via: asked.link, arrival: Arrival::Failure }
}

/// Asks [`QUESTIONS`] questions, `at_once` at a time, 1 ms apart, and runs until all clients have given up.
fn load(world: &mut World, at_once: u16) -> Vec<Token> {
    let mut tokens = vec![];
    for number in 0..QUESTIONS {
        let question = query(&format!("n{number}.example."), Type::A).network(u32::from(number)).id(number);
        tokens.push(world.ask_later(Span::from_millis(u64::from(number / at_once)), &question));
    }
    world.run(Span::from_secs(20));
    tokens
}

/// Number of questions that were not answered with NOERROR.
fn failures(world: &World, tokens: &[Token]) -> usize {
    tokens.iter().filter(|&&token| world.answer_to(token).rcode() != Rcode::NOERROR).count()
}

/// Queries that came over each connection.
type Connections = HashMap<Link, u32>;

fn closes_after(count: u32) -> impl FnMut(&SentQuery, &mut Rng) -> Vec<Delivery> {
    let mut connections = Connections::new();
    move |asked, _| {
        let number = connections.entry(asked.link).or_default();
        *number += 1;
        match *number {
            number if number < count => vec![deliver(asked, ROUND_TRIP, &Reply::default())],
            number if number == count => {
                vec![deliver(asked, ROUND_TRIP, &Reply::default()), closes(asked, ROUND_TRIP)]
            }
            _ => vec![],
        }
    }
}

#[test]
fn a_connection_that_ends_after_some_answers_costs_no_question_its_answer() {
    for (count, at_once) in [(1, 1), (1, 300), (7, 1), (7, 300), (100, 1), (100, 300), (1_000, 3_000)] {
        let mut world = World::sized(over_tcp(), 4_096, 1);
        world.set_upstreams(closes_after(count));
        let tokens = load(&mut world, at_once);
        assert_eq!(failures(&world, &tokens), 0, "closes after {count}, {at_once} at once");
        if count < 1_000 {
            assert_eq!(world.count(Counter::LimitQuestions), 1, "closes after {count}, {at_once} at once");
            // Two connections end with questions on them before the limit is known: each question is asked again twice at most.
            assert_eq!(world.count(Counter::StreamsClosed), 2, "closes after {count}, {at_once} at once");
            let most = if at_once == 1 { 20 } else { 2 * u64::from(QUESTIONS) };
            assert!(world.count(Counter::StreamRetries) <= most, "closes after {count}, {at_once} at once");
        }
    }
}

#[test]
fn an_upstream_that_answers_some_and_closes_does_not_set_the_rate_of_a_question_that_it_leaves_out() {
    let mut world = World::sized(over_tcp(), 4_096, 1);
    let mut connections = HashMap::new();
    world.set_upstreams(move |asked, _| {
        if asked.name() == "left-out.example." {
            return vec![];
        }
        // Never as many answers as the connection before, so no limit is learned.
        let next = 1 + connections.len() % 3;
        let left = connections.entry(asked.link).or_insert(next);
        if *left == 0 {
            return vec![];
        }
        *left -= 1;
        let reply = deliver(asked, ROUND_TRIP, &Reply::default());
        if *left == 0 { vec![reply, closes(asked, ROUND_TRIP)] } else { vec![reply] }
    });
    world.ask(&query("left-out.example.", Type::A).network(60_000));
    let others = (0..1_000).map(|number| {
        let question = query(&format!("n{number}.example."), Type::A).network(u32::from(number)).id(number);
        world.ask_later(Span::from_millis(5 * u64::from(number)), &question)
    });
    let tokens: Vec<_> = others.collect();
    world.run(Span::from_secs(20));
    assert_eq!((failures(&world, &tokens), world.count(Counter::LimitQuestions)), (0, 0));
    let times = world.asked.iter().filter(|asked| asked.name() == "left-out.example.").count();
    // 8 at once and, in the 3 s for which it waits for another connection, one in 100 ms; then its three attempts, asked again at once.
    assert!((8..=48).contains(&times), "{times}");
}

#[test]
fn connections_that_are_reset_at_random_cost_no_question_its_answer() {
    let mut world = World::sized(over_tcp(), 4_096, 1);
    world.set_upstreams(|asked, rng| match rng.below(20) {
        0 => vec![closes(asked, Span(rng.below(2 * ROUND_TRIP.0)))],
        _ => vec![deliver(asked, ROUND_TRIP, &Reply::default())],
    });
    let tokens = load(&mut world, 10);
    assert_eq!(failures(&world, &tokens), 0);
}

#[test]
fn three_restarts_under_load_cost_no_question_its_answer() {
    // The port refuses connections for 200 ms, 600 ms and 1 s.
    let gone = [(500, 700), (1_200, 1_800), (2_000, 3_000)];
    let mut world = World::sized(over_tcp(), 4_096, 1);
    let mut opened: HashMap<Link, Instant> = HashMap::new();
    let is_gone =
        move |at: Instant| gone.iter().any(|&(from, to)| at.0 / 1_000_000 >= from && at.0 / 1_000_000 < to);
    world.set_upstreams(move |asked, _| {
        let opened = *opened.entry(asked.link).or_insert(asked.at);
        if is_gone(opened) {
            // A reset in answer to the SYN.
            return vec![closes(asked, ROUND_TRIP)];
        }
        if is_gone(asked.at) || is_gone(asked.at + ROUND_TRIP) {
            return vec![closes(asked, Span(ROUND_TRIP.0 / 2))];
        }
        vec![deliver(asked, ROUND_TRIP, &Reply::default())]
    });
    let tokens = load(&mut world, 1);
    assert_eq!(failures(&world, &tokens), 0);
}

#[test]
fn a_slow_first_reply_after_a_restart_costs_no_question_its_answer() {
    // The port refuses connections for 300 ms, then a handshake takes 300 ms.
    let at = |millis| Instant(0) + Span::from_millis(millis);
    let mut world = World::sized(over_tcp(), 4_096, 1);
    let mut opened: HashMap<Link, Instant> = HashMap::new();
    world.set_upstreams(move |asked, _| {
        let opened = *opened.entry(asked.link).or_insert(asked.at);
        if opened < at(500) && asked.at >= at(500) {
            return vec![closes(asked, Span::ZERO)];
        }
        if opened >= at(500) && opened < at(800) {
            // A reset in answer to the SYN.
            return vec![closes(asked, ROUND_TRIP)];
        }
        let ready = if opened >= at(800) { opened + Span::from_millis(300) } else { asked.at };
        vec![deliver(asked, Span((ready.max(asked.at) - asked.at).0 + ROUND_TRIP.0), &Reply::default())]
    });
    let tokens = load(&mut world, 1);
    assert_eq!(failures(&world, &tokens), 0);
}

#[test]
fn questions_on_a_connection_that_stalls_move_to_another_one() {
    for stalls_after in [1, 50, 500] {
        let mut world = World::sized(over_tcp(), 4_096, 1);
        let mut connections = Connections::new();
        world.set_upstreams(move |asked, _| {
            let number = connections.entry(asked.link).or_default();
            *number += 1;
            if *number > stalls_after { vec![] } else { vec![deliver(asked, ROUND_TRIP, &Reply::default())] }
        });
        let tokens = load(&mut world, 1);
        assert_eq!(failures(&world, &tokens), 0, "stalls after {stalls_after}");
        // Two connections stall before the limit is known. The questions on them are asked once more.
        assert_eq!(world.count(Counter::StreamsStalled), 2, "stalls after {stalls_after}");
        assert_eq!(world.count(Counter::LimitQuestions), 1);
    }
}

#[test]
fn an_upstream_that_pauses_for_nearly_two_seconds_costs_no_question_its_answer() {
    let mut world = World::sized(over_tcp(), 4_096, 1);
    let (begin, end) = (Instant(0) + Span::from_millis(500), Instant(0) + Span::from_millis(2_400));
    world.set_upstreams(move |asked, _| {
        let pause = if asked.at >= begin && asked.at < end { (end - asked.at).0 } else { 0 };
        vec![deliver(asked, Span(pause + ROUND_TRIP.0), &Reply::default())]
    });
    let tokens = load(&mut world, 1);
    assert!(world.count(Counter::StreamsStalled) > 0);
    assert_eq!(failures(&world, &tokens), 0);
}

#[test]
fn an_upstream_that_answers_one_query_at_a_time_gets_several_connections() {
    let mut world = World::sized(over_tcp(), 4_096, 1);
    let mut free_at: HashMap<Link, Instant> = HashMap::new();
    world.set_upstreams(move |asked, _| {
        let free = free_at.entry(asked.link).or_default();
        *free = (*free).max(asked.at) + ROUND_TRIP;
        vec![deliver(asked, *free - asked.at, &Reply::default())]
    });
    // 1,000 queries in a second; one connection takes 200.
    let tokens = load(&mut world, 1);
    assert_eq!(failures(&world, &tokens), 0);
    assert_eq!(world.count(Counter::LimitOneAtATime), 1);
    let late =
        world.answers.iter().filter(|answer| answer.at > Instant(0) + Span::from_millis(3_200)).count();
    assert_eq!(late, 0, "a backlog grew");
}
