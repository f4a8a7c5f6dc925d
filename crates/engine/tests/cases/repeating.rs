//! When a question that is late is asked once more: how much that helps, and how much it costs at most (`repeat.rs`).

use crate::world::{Chance, Reply, World, ask, deliver, forwarders, settings};
use engine::{Counter, Instant, Span};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::{Rcode, Type};

/// Tokens of the budget at start, and the part of one that a question brings.
const MOST: u64 = 64;
const QUESTIONS_FOR_ONE: u64 = 20;

/// What the two upstreams do: round trip, and exchanges lost, of a hundred.
type Sky = Rc<Cell<[(Span, u64); 2]>>;

const CLEAR: (Span, u64) = (Span::from_millis(10), 0);

fn two(tries: u8, pending: usize) -> (World, Sky) {
    let mut of_two = settings();
    of_two.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
    of_two.upstream.tries = tries;
    let addresses: Vec<SocketAddr> = of_two.upstream.forwarders.clone();
    let sky: Sky = Rc::new(Cell::new([CLEAR; 2]));
    let above = sky.clone();
    let mut world = World::sized(of_two, pending, 7);
    world.upstreams(move |asked, chance: &mut Chance| {
        let place = addresses.iter().position(|&address| address == asked.upstream).expect("one of two");
        let (round_trip, loss) = above.get()[place];
        match chance.percent(loss) {
            true => vec![],
            false => vec![deliver(asked, round_trip, &Reply::default())],
        }
    });
    (world, sky)
}

/// A questions, each for a name of its own; the times of their answers.
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
            let question = ask(&format!("n{}.example.", self.next), Type::A).id(number).port(port);
            self.next += 1;
            self.tokens.push((world.now, world.ask(&question)));
            world.run(Span(1_000_000_000 / rate));
        }
        first..self.tokens.len()
    }

    /// How many were answered well within two seconds.
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

/// Questions to upstreams that are no probes.
fn asked(world: &World) -> u64 {
    world.asked.iter().filter(|asked| asked.name() != ".").count() as u64
}

#[test]
fn a_late_question_goes_to_the_other_server_too_and_the_first_reply_is_the_answer() {
    for (first, second, answered_after) in [(200, 10, 60), (55, 300, 55)] {
        let (mut world, sky) = two(3, 1024);
        let mut traffic = traffic();
        traffic.run(&mut world, 100, Span::from_secs(1));
        sky.set([(Span::from_millis(first), 0), (Span::from_millis(second), 0)]);
        let before = world.asked.len();
        let token = world.ask(&ask("late.example.", Type::A).id(7).port(7));
        let at = world.now;
        world.run(Span::from_millis(400));
        let late: Vec<_> =
            world.asked[before..].iter().filter(|asked| asked.name() == "late.example.").collect();
        assert_eq!(late.len(), 2, "asked twice, and no oftener");
        assert_ne!(late[0].upstream, late[1].upstream);
        let waited = (late[1].at - late[0].at).0.div_ceil(1_000_000);
        assert_eq!(waited, 50, "the shortest wait, as four deviations are less");
        assert_eq!((world.answer_to(token).at - at).0.div_ceil(1_000_000), answered_after);
        assert_eq!(world.count(Counter::Hedged), 1);
        assert_eq!(world.count(Counter::HedgeHelped), u64::from(first > second));
    }
}

#[test]
fn when_all_upstreams_become_slow_a_bounded_number_of_questions_is_repeated() {
    let (mut world, sky) = two(3, 65_536);
    let mut traffic = traffic();
    traffic.run(&mut world, 500, Span::from_secs(2));
    sky.set([(Span::from_millis(450), 0); 2]);
    let before = asked(&world);
    let slow = traffic.run(&mut world, 500, Span::from_secs(10));
    world.run(Span::from_secs(3));
    let questions = slow.len() as u64;
    let more = asked(&world) - before - questions;
    println!("{more} repetitions for {questions} questions");
    assert_eq!(traffic.answered(&world, slow) as u64, questions);
    assert!(more <= MOST + questions / QUESTIONS_FOR_ONE, "{more}");
    assert!(more > 0 && world.count(Counter::HedgeDeferred) > 0, "the bound was not tried");
    assert!(world.engine.servers().all(|server| !server.is_dead()));
}

#[test]
fn lost_messages_pay_for_their_repetitions() {
    for (tries, percent) in [(3, 10), (3, 30), (3, 50), (6, 10), (6, 30), (6, 50)] {
        let (mut world, sky) = two(tries, 65_536);
        let mut traffic = traffic();
        traffic.run(&mut world, 500, Span::from_secs(2));
        sky.set([(CLEAR.0, percent); 2]);
        let before = asked(&world);
        let lossy = traffic.run(&mut world, 500, Span::from_secs(20));
        world.run(Span::from_secs(5));
        let questions = lossy.len() as f64;
        let answered = traffic.answered(&world, lossy) as f64 / questions;
        let factor = (asked(&world) - before) as f64 / questions;
        let loss = percent as f64 / 100.0;
        println!(
            "{percent} % lost, {tries} tries: {:.3} % answered in 2 s, {factor:.2} for one",
            answered * 100.0
        );
        // The chance that all tries are lost, and four standard deviations.
        let lost = loss.powi(i32::from(tries));
        assert!(1.0 - answered <= lost + 4.0 * (lost / questions).sqrt() + 1e-3, "{answered} {lost}");
        // Each try is made if all before it were lost.
        let expected: f64 = (0..i32::from(tries)).map(|number| loss.powi(number)).sum();
        assert!(factor <= expected * 1.05, "{factor} {expected}");
        if (tries, percent) == (6, 30) {
            assert!(answered >= 0.999, "{answered}");
        }
        assert!(world.engine.servers().all(|server| !server.is_dead()), "a lossy line is no dead server");
    }
}

#[test]
fn a_server_whose_room_is_half_taken_repeats_nothing_early() {
    let (mut world, sky) = two(3, 100);
    let mut traffic = traffic();
    traffic.run(&mut world, 100, Span::from_secs(1));
    sky.set([(Span::from_millis(400), 0); 2]);
    let before = asked(&world);
    let burst = 60;
    for number in 0..burst {
        world.ask(&ask(&format!("burst{number}.example."), Type::A).network(u32::from(number)).id(number));
    }
    world.run(Span::from_millis(390));
    assert_eq!(asked(&world) - before, u64::from(burst));
    assert_eq!((world.count(Counter::Hedged), world.count(Counter::HedgeDeferred)), (0, u64::from(burst)));
    world.run(Span::from_secs(1));
    assert_eq!(world.engine.pending(), 0);
    assert_eq!(asked(&world) - before, u64::from(burst));
}

#[test]
fn replies_after_the_ceiling_are_used_and_measured() {
    // Always later than any try waits, sooner than all tries together.
    let (mut world, sky) = two(3, 1024);
    sky.set([(Span::from_millis(1_200), 0); 2]);
    let mut traffic = traffic();
    let all = traffic.run(&mut world, 5, Span::from_secs(60));
    world.run(Span::from_secs(5));
    assert_eq!(traffic.answered(&world, all.clone()), all.len());
    // Each is asked again when the ceiling is over, and no oftener.
    assert!(asked(&world) <= 2 * all.len() as u64 + MOST, "{} for {}", asked(&world), all.len());
    let first = world.engine.servers().next().expect("two servers");
    assert_eq!(first.round_trip.map(|span| span.0 / 10_000_000), Some(120));
    assert!(!first.is_dead());
}

#[test]
fn upstreams_that_become_slow_together_look_dead_and_are_waited_for_all_the_same() {
    // From one moment to the next, or from the first question on; in a burst, or one after the other.
    for (is_cold, rate) in [(true, 1_000), (true, 100), (false, 1_000), (false, 100)] {
        for delay_ms in [450, 600, 800, 950] {
            let (mut world, sky) = two(3, 65_536);
            let mut traffic = traffic();
            if !is_cold {
                traffic.run(&mut world, 500, Span::from_secs(2));
            }
            sky.set([(Span::from_millis(delay_ms), 0); 2]);
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
