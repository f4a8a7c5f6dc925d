//! Hedging and retransmission of late upstream queries: the benefit, and the bound on its cost (the retry budget).

use crate::world::{Reply, Rng, World, deliver, forwarders, query, settings};
use engine::{Counter, Instant, Span};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::{Rcode, Type};

/// Tokens of the retry budget at start, and the number of first tries that add one token.
const BUDGET: u64 = 64;
const QUERIES_PER_TOKEN: u64 = 20;

/// State of the two upstreams: round-trip time, and loss in percent.
type Conditions = Rc<Cell<[(Span, u64); 2]>>;

const HEALTHY: (Span, u64) = (Span::from_millis(10), 0);

fn two(tries: u8, pending: usize) -> (World, Conditions) {
    let mut of_two = settings();
    of_two.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
    of_two.upstream.tries = tries;
    let addresses: Vec<SocketAddr> = of_two.upstream.forwarders.clone();
    let conditions: Conditions = Rc::new(Cell::new([HEALTHY; 2]));
    let current = conditions.clone();
    let mut world = World::sized(of_two, pending, 7);
    world.set_upstreams(move |asked, rng: &mut Rng| {
        let place = addresses.iter().position(|&address| address == asked.upstream).expect("one of two");
        let (round_trip, loss) = current.get()[place];
        match rng.percent(loss) {
            true => vec![],
            false => vec![deliver(asked, round_trip, &Reply::default())],
        }
    });
    (world, conditions)
}

/// Client queries for A records, each for a name of its own, with the times when they were sent.
struct Traffic {
    next: u32,
    tokens: Vec<(Instant, crate::world::Token)>,
}

impl Traffic {
    fn run(&mut self, world: &mut World, rate: u64, span: Span) -> std::ops::Range<usize> {
        let first = self.tokens.len();
        let end = world.now + span;
        while world.now < end {
            let (number, port) = (self.next as u16, 1024 + (self.next >> 16) as u16);
            let question = query(&format!("n{}.example.", self.next), Type::A).id(number).port(port);
            self.next += 1;
            self.tokens.push((world.now, world.ask(&question)));
            world.run(Span(1_000_000_000 / rate));
        }
        first..self.tokens.len()
    }

    /// The number of queries answered with NOERROR within two seconds.
    fn answered(&self, world: &World, which: std::ops::Range<usize>) -> usize {
        let is_good = |&&(at, token): &&(Instant, crate::world::Token)| {
            let answer = world.answer_to(token);
            answer.rcode() == Rcode::NOERROR && answer.at - at <= Span::from_secs(2)
        };
        self.tokens[which].iter().filter(is_good).count()
    }
}

fn traffic() -> Traffic {
    Traffic { next: 0, tokens: vec![] }
}

/// Number of upstream queries without probes.
fn asked(world: &World) -> u64 {
    world.asked.iter().filter(|asked| asked.name() != ".").count() as u64
}

#[test]
fn a_late_query_is_hedged_at_the_other_server_and_the_first_reply_is_the_answer() {
    for (first, second, answered_after) in [(200, 10, 60), (55, 300, 55)] {
        let (mut world, conditions) = two(3, 1024);
        let mut traffic = traffic();
        traffic.run(&mut world, 100, Span::from_secs(1));
        conditions.set([(Span::from_millis(first), 0), (Span::from_millis(second), 0)]);
        let before = world.asked.len();
        let token = world.ask(&query("late.example.", Type::A).id(7).port(7));
        let at = world.now;
        world.run(Span::from_millis(400));
        let late: Vec<_> =
            world.asked[before..].iter().filter(|asked| asked.name() == "late.example.").collect();
        assert_eq!(late.len(), 2, "queried exactly twice");
        assert_ne!(late[0].upstream, late[1].upstream);
        let waited = (late[1].at - late[0].at).0.div_ceil(1_000_000);
        assert_eq!(waited, 50, "the minimum wait, as four deviations are less");
        assert_eq!((world.answer_to(token).at - at).0.div_ceil(1_000_000), answered_after);
        assert_eq!(world.count(Counter::Hedged), 1);
        assert_eq!(world.count(Counter::HedgeHelped), u64::from(first > second));
    }
}

#[test]
fn when_all_upstreams_become_slow_the_number_of_hedged_queries_is_bounded() {
    let (mut world, conditions) = two(3, 65_536);
    let mut traffic = traffic();
    traffic.run(&mut world, 500, Span::from_secs(2));
    conditions.set([(Span::from_millis(450), 0); 2]);
    let before = asked(&world);
    let slow = traffic.run(&mut world, 500, Span::from_secs(10));
    world.run(Span::from_secs(3));
    let questions = slow.len() as u64;
    let hedged = asked(&world) - before - questions;
    println!("{hedged} hedged queries for {questions} client queries");
    assert_eq!(traffic.answered(&world, slow) as u64, questions);
    assert!(hedged <= BUDGET + questions / QUERIES_PER_TOKEN, "{hedged}");
    assert!(hedged > 0 && world.count(Counter::HedgeDeferred) > 0, "the bound was not reached");
    assert!(world.engine.servers().all(|server| !server.is_dead()));
}

#[test]
fn the_retry_budget_covers_lost_packets() {
    for (tries, percent) in [(3, 10), (3, 30), (3, 50), (6, 10), (6, 30), (6, 50)] {
        let (mut world, conditions) = two(tries, 65_536);
        let mut traffic = traffic();
        traffic.run(&mut world, 500, Span::from_secs(2));
        conditions.set([(HEALTHY.0, percent); 2]);
        let before = asked(&world);
        let lossy = traffic.run(&mut world, 500, Span::from_secs(20));
        world.run(Span::from_secs(5));
        let questions = lossy.len() as f64;
        let answered = traffic.answered(&world, lossy) as f64 / questions;
        let factor = (asked(&world) - before) as f64 / questions;
        let loss = percent as f64 / 100.0;
        println!(
            "{percent} % lost, {tries} tries: {:.3} % answered in 2 s, {factor:.2} upstream queries per client query",
            answered * 100.0
        );
        // The probability that all attempts are lost, plus four standard deviations.
        let lost = loss.powi(i32::from(tries));
        assert!(1.0 - answered <= lost + 4.0 * (lost / questions).sqrt() + 1e-3, "{answered} {lost}");
        // An attempt is made if all attempts before it were lost.
        let expected: f64 = (0..i32::from(tries)).map(|number| loss.powi(number)).sum();
        assert!(factor <= expected * 1.05, "{factor} {expected}");
        if (tries, percent) == (6, 30) {
            assert!(answered >= 0.999, "{answered}");
        }
        assert!(
            world.engine.servers().all(|server| !server.is_dead()),
            "packet loss does not make a server dead"
        );
    }
}

#[test]
fn nothing_is_hedged_while_the_table_of_pending_queries_is_half_full() {
    let (mut world, conditions) = two(3, 100);
    let mut traffic = traffic();
    traffic.run(&mut world, 100, Span::from_secs(1));
    conditions.set([(Span::from_millis(400), 0); 2]);
    let before = asked(&world);
    let burst = 60;
    for number in 0..burst {
        world.ask(&query(&format!("burst{number}.example."), Type::A).network(u32::from(number)).id(number));
    }
    world.run(Span::from_millis(390));
    assert_eq!(asked(&world) - before, u64::from(burst));
    assert_eq!((world.count(Counter::Hedged), world.count(Counter::HedgeDeferred)), (0, u64::from(burst)));
    world.run(Span::from_secs(1));
    assert_eq!(world.engine.pending(), 0);
    assert_eq!(asked(&world) - before, u64::from(burst));
}

#[test]
fn replies_after_the_timeout_are_used_and_measured() {
    // Later than the timeout of any try, sooner than all attempts together.
    let (mut world, conditions) = two(3, 1024);
    conditions.set([(Span::from_millis(1_200), 0); 2]);
    let mut traffic = traffic();
    let all = traffic.run(&mut world, 5, Span::from_secs(60));
    world.run(Span::from_secs(5));
    assert_eq!(traffic.answered(&world, all.clone()), all.len());
    // Each query is retransmitted once, after the timeout.
    assert!(asked(&world) <= 2 * all.len() as u64 + BUDGET, "{} for {}", asked(&world), all.len());
    let first = world.engine.servers().next().expect("two servers");
    assert_eq!(first.round_trip.map(|span| span.0 / 10_000_000), Some(120));
    assert!(!first.is_dead());
}

#[test]
fn upstreams_that_become_slow_together_seem_dead_but_their_replies_are_used() {
    // Suddenly, or from the first query on; at a high or a low query rate.
    for (is_cold, rate) in [(true, 1_000), (true, 100), (false, 1_000), (false, 100)] {
        for delay_ms in [450, 600, 800, 950] {
            let (mut world, conditions) = two(3, 65_536);
            let mut traffic = traffic();
            if !is_cold {
                traffic.run(&mut world, 500, Span::from_secs(2));
            }
            conditions.set([(Span::from_millis(delay_ms), 0); 2]);
            let slow = traffic.run(&mut world, rate, Span::from_secs(2));
            world.run(Span::from_secs(5));
            assert_eq!(
                traffic.answered(&world, slow.clone()),
                slow.len(),
                "{delay_ms} ms, {rate} a second, cold: {is_cold}"
            );
        }
    }
}
