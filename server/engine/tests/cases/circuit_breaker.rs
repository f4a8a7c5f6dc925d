//! The circuit breaker of each upstream: the servers queried while it is open, the probes, and the recovery.

use crate::world::{Reply, Rng, SentQuery, Token, World, deliver, forwarders, query, settings};
use engine::upstream::BreakerState;
use engine::{Counter, Instant, Span};
use std::cell::Cell;
use std::rc::Rc;
use wire::{Rcode, Type};

const ROUND_TRIP: Span = Span::from_millis(10);

/// A world with `count` upstreams. Those whose bit is set are alive.
fn world_of(count: usize, timeout: Span, cache: usize) -> (World, Rc<Cell<u32>>) {
    let mut settings = settings();
    let text: Vec<_> = (0..count).map(|place| format!("192.0.2.{}", 53 + place)).collect();
    settings.upstream.forwarders = forwarders(&text.join(" "));
    settings.upstream.timeout = timeout;
    let addresses = settings.upstream.forwarders.clone();
    let alive = Rc::new(Cell::new(u32::MAX));
    let state = alive.clone();
    let mut world = World::with_cache(settings, cache);
    world.set_upstreams(move |asked: &SentQuery, _: &mut Rng| {
        let place = addresses.iter().position(|&address| address == asked.upstream).expect("configured");
        let name = asked.name();
        let reply = match asked.qtype() {
            Type::A => Reply::answer(&[&format!("{name} 5 IN A 198.51.100.7")]),
            Type::AAAA => Reply::empty("example.", 5, 5),
            _ => Reply::default(),
        };
        let is_alive = state.get() >> place & 1 == 1;
        if is_alive { vec![deliver(asked, ROUND_TRIP, &reply)] } else { vec![] }
    });
    (world, alive)
}

fn one_second() -> Span {
    Span::from_secs(1)
}

/// Sends queries for A records at a rate, for `names` different names.
fn traffic(world: &mut World, rate: u64, span: Span, names: u32, next: &mut u32) -> Vec<(Instant, Token)> {
    let end = world.now + span;
    let mut tokens = vec![];
    while world.now < end {
        let name = format!("n{}.example.", *next % names);
        let question = query(&name, Type::A).id(*next as u16).port(1024 + (*next >> 16) as u16);
        *next += 1;
        tokens.push((world.now, world.ask(&question)));
        world.run(Span(1_000_000_000 / rate));
    }
    tokens
}

fn failed(world: &World, tokens: &[(Instant, Token)]) -> usize {
    tokens.iter().filter(|(_, token)| world.answer_to(*token).rcode() != Rcode::NOERROR).count()
}

/// Number of upstream queries between two times: probes, others.
fn asked(world: &World, from: Instant, to: Instant) -> (usize, usize) {
    let within: Vec<_> = world.asked.iter().filter(|asked| asked.at >= from && asked.at < to).collect();
    let probes = within.iter().filter(|asked| asked.name() == ".").count();
    (probes, within.len() - probes)
}

#[test]
fn with_seven_of_eight_servers_dead_no_query_fails() {
    for (rate, is_cold) in [(500, false), (10, false), (1, true), (200, true)] {
        let (mut world, alive) = world_of(8, one_second(), 0);
        let mut next = 0;
        if !is_cold {
            traffic(&mut world, rate, Span::from_secs(3), u32::MAX, &mut next);
        }
        alive.set(1 << 7);
        let tokens = traffic(&mut world, rate, Span::from_secs(10), u32::MAX, &mut next);
        world.run(Span::from_secs(5));
        assert_eq!(failed(&world, &tokens), 0, "{rate} a second, cold: {is_cold}");
        let at = world.now;
        let later = traffic(&mut world, 100, Span::from_secs(2), u32::MAX, &mut next);
        world.run(one_second());
        if rate >= 100 {
            let slowest = later.iter().map(|&(at, token)| world.answer_to(token).at - at).max();
            assert_eq!(slowest, Some(ROUND_TRIP), "clients do not wait any more");
            // Probes of seven dead servers in three seconds.
            assert!(asked(&world, at, world.now).0 <= 7 * 4, "{:?}", asked(&world, at, world.now));
        }
    }
}

#[test]
fn with_all_servers_dead_a_question_is_tried_once_and_fails_soon() {
    let (mut world, alive) = world_of(2, one_second(), 0);
    let mut next = 0;
    traffic(&mut world, 500, Span::from_secs(2), u32::MAX, &mut next);
    alive.set(0);
    let first = traffic(&mut world, 500, Span::from_secs(3), u32::MAX, &mut next);
    assert!(world.engine.servers().all(|server| server.state() == BreakerState::Open));
    let from = world.now;
    let later = traffic(&mut world, 500, Span::from_secs(5), u32::MAX, &mut next);
    let (probes, others) = asked(&world, from, world.now);
    world.run(Span::from_secs(2));
    let slowest = |tokens: &[(Instant, Token)]| {
        tokens.iter().map(|&(at, token)| (world.answer_to(token).at - at).0 / 1_000_000).max()
    };
    println!("SERVFAIL after {:?} ms, then {:?} ms", slowest(&first), slowest(&later));
    assert_eq!((failed(&world, &first), failed(&world, &later)), (first.len(), later.len()));
    assert!(slowest(&first) <= Some(2_000) && slowest(&later) <= Some(500));
    assert!(later.iter().all(|&(_, token)| world.answer_to(token).rcode() == Rcode::SERVFAIL));
    assert_eq!(others, later.len(), "no retransmissions to dead servers");
    assert!((10..=26).contains(&probes), "{probes} probes of two servers in five seconds");
}

#[test]
fn only_one_probe_is_in_flight_however_long_the_timeout() {
    let (mut world, alive) = world_of(1, Span::from_secs(8), 0);
    let mut next = 0;
    traffic(&mut world, 100, one_second(), u32::MAX, &mut next);
    alive.set(0);
    traffic(&mut world, 100, Span::from_secs(3), u32::MAX, &mut next);
    world.run(Span::from_secs(20));
    for _ in 0..200 {
        world.run(Span::from_millis(100));
        assert!(world.engine.outbound_queries() <= 1, "{} probes at once", world.engine.outbound_queries());
    }
    let (probes, _) = asked(&world, Instant(world.now.0 - 20_000_000_000), world.now);
    assert!((20..=60).contains(&probes), "{probes} questions of probes in twenty seconds");
}

#[test]
fn servers_that_return_after_an_hour_are_detected_within_a_second_without_client_queries() {
    let (mut world, alive) = world_of(4, one_second(), 0);
    let mut next = 0;
    traffic(&mut world, 100, Span::from_secs(2), u32::MAX, &mut next);
    alive.set(0);
    traffic(&mut world, 100, Span::from_secs(5), u32::MAX, &mut next);
    assert!(world.engine.servers().all(|server| server.is_dead()));
    world.run(Span::from_secs(3_600));
    alive.set(u32::MAX);
    let back = world.now;
    world.run(one_second());
    assert!(world.engine.servers().all(|server| !server.is_dead()), "all were probed");
    let (probes, others) = asked(&world, back, world.now);
    assert!(probes <= 4 * 3 && others == 0, "{probes} probes");
}

#[test]
fn the_return_of_the_upstreams_causes_no_burst_of_refreshes() {
    const NAMES: u32 = 400;
    let (mut world, alive) = world_of(2, one_second(), 4 << 20);
    let mut next = 0;
    traffic(&mut world, 500, Span::from_secs(10), NAMES, &mut next);
    let from = Instant(world.now.0 - 5_000_000_000);
    let steady = asked(&world, from, world.now).1 as f64 / 5.0;
    alive.set(0);
    let dead = traffic(&mut world, 500, Span::from_secs(60), NAMES, &mut next);
    alive.set(u32::MAX);
    let back = world.now;
    let after = traffic(&mut world, 500, Span::from_secs(15), NAMES, &mut next);
    world.run(Span::from_secs(2));
    assert_eq!((failed(&world, &dead), failed(&world, &after)), (0, 0));
    let by_second: Vec<_> = (0..15)
        .map(|second| {
            let from = back + Span::from_secs(second);
            asked(&world, from, from + one_second()).1
        })
        .collect();
    println!("{steady} questions a second before, {by_second:?} after");
    assert!(by_second[0] as f64 <= 2.0 * steady, "{steady} {by_second:?}");
    assert!(by_second.iter().all(|&count| count as f64 <= 2.5 * steady), "{steady} {by_second:?}");
    // Then all entries are fresh again.
    let last = &after[after.len() - 1_000..];
    assert!(last.iter().all(|&(_, token)| world.answer_to(token).ede().is_none()));
    assert_eq!(world.engine.servers().filter(|server| server.is_dead()).count(), 0);
}

#[test]
fn a_clock_jump_of_an_hour_makes_no_server_dead_and_loses_no_later_query() {
    let (mut world, _) = world_of(2, one_second(), 0);
    let mut next = 0;
    traffic(&mut world, 200, Span::from_secs(2), u32::MAX, &mut next);
    for number in 0..50 {
        world.ask(&query(&format!("frozen{number}.example."), Type::A).network(number).id(1));
    }
    // The machine is suspended; queries in flight are late when it resumes.
    world.now += Span::from_secs(3_600);
    world.poll();
    assert!(world.engine.servers().all(|server| !server.is_dead()));
    let after = traffic(&mut world, 200, Span::from_secs(2), u32::MAX, &mut next);
    world.run(Span::from_secs(3));
    assert_eq!(failed(&world, &after), 0);
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
}

#[test]
fn packet_loss_to_a_single_server_opens_its_breaker_only_briefly() {
    for rate in [5, 50, 500] {
        let mut world = World::sized(settings(), 4096, 3);
        world.set_upstreams(|asked: &SentQuery, rng: &mut Rng| match rng.percent(50) {
            true => vec![],
            false => vec![deliver(asked, ROUND_TRIP, &Reply::default())],
        });
        let mut next = 0;
        let mut tokens = vec![];
        let (mut dead_ms, mut longest_ms, mut run_ms) = (0, 0, 0);
        for _ in 0..60 * rate {
            tokens.extend(traffic(&mut world, rate, Span(1_000_000_000 / rate), u32::MAX, &mut next));
            let is_dead = world.engine.servers().all(|server| server.is_dead());
            run_ms = if is_dead { run_ms + 1_000 / rate } else { 0 };
            dead_ms += if is_dead { 1_000 / rate } else { 0 };
            longest_ms = longest_ms.max(run_ms);
        }
        world.run(Span::from_secs(5));
        let share = failed(&world, &tokens) as f64 / tokens.len() as f64;
        println!(
            "{rate} a second: {share:.3} failed, dead for {dead_ms} ms of 60 s, at most {longest_ms} ms"
        );
        // One in eight loses all three attempts.
        assert!(share <= 0.125 + 4.0 * (0.11 / tokens.len() as f64).sqrt() + 0.02, "{rate}: {share}");
        assert!(dead_ms <= 3_000 && longest_ms <= 3_000, "{rate}: {dead_ms} ms, {longest_ms} ms");
    }
}

#[test]
fn an_idle_server_is_queried_when_another_one_is_silent() {
    let (mut world, alive) = world_of(2, one_second(), 0);
    let mut next = 0;
    traffic(&mut world, 100, Span::from_secs(3), u32::MAX, &mut next);
    alive.set(0b01);
    let before = world.asked.len();
    world.run(Span::from_secs(5));
    assert_eq!(world.asked.len(), before, "no probes without client queries");
    alive.set(0b00);
    // The first query is hedged at the second server, so that one needs no probe; both are silent.
    let token = traffic(&mut world, 1, Span::from_secs(3), u32::MAX, &mut next);
    assert!(world.answer_to(token[0].1).rcode() == Rcode::SERVFAIL);
    assert!(world.count(Counter::Timeouts) >= 3);
}
