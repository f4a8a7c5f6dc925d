//! Bad weather of every kind at once, over many seeds: loss, duplicates, reordering, corruption, forgeries, errors,
//! truncation, ICMP errors, dead servers, reloads. Every question gets exactly one answer in time, and afterwards
//! nothing is left.

use crate::world::{Asked, Chance, Delivery, Reply, What, World, ask, deliver, forwarders, settings};
use engine::settings::{Lookup, OnFailure, Select};
use engine::{Counter, Settings, Span, Transport};
use std::cell::Cell;
use std::rc::Rc;
use wire::{Flags, Rcode, Type};

const SEEDS: u64 = 60;
const QUESTIONS: u32 = 300;

fn weather_settings(chance: &mut Chance) -> Settings {
    let mut settings = settings();
    let all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    let first = chance.below(3) as usize;
    settings.upstream.forwarders = forwarders(&all[first..=first + chance.below(2) as usize].join(" "));
    settings.upstream.select = [Select::Ordered, Select::Random, Select::Fastest][chance.below(3) as usize];
    settings.dns64.lookup = [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span::from_millis(20))]
        [chance.below(3) as usize];
    if chance.percent(20) {
        settings.upstream.transport = Transport::Tcp;
    }
    if chance.percent(20) {
        settings.dns64.on_failure.timeout = OnFailure::Pass;
    }
    settings
}

/// What an upstream in bad weather sends.
fn weather(
    asked: &Asked,
    chance: &mut Chance,
    loss: u64,
    dead: Option<std::net::SocketAddr>,
) -> Vec<Delivery> {
    let mut deliveries = vec![];
    if chance.percent(3) {
        deliveries.push(Delivery {
            after: Span::from_millis(chance.below(50)),
            via: asked.link,
            what: What::Failure,
        });
    }
    let lost = asked.transport == Transport::Udp && chance.percent(loss);
    if lost || dead == Some(asked.upstream) {
        return deliveries;
    }
    let name = asked.name();
    let a = format!("{name} 60 IN A 198.51.100.7");
    let aaaa = format!("{name} 60 IN AAAA 2001:db8:1::80");
    let reply = match (asked.qtype(), chance.below(20)) {
        (_, 0) => Reply::rcode(Rcode::SERVFAIL),
        (_, 1) => Reply::rcode(Rcode::REFUSED),
        (_, 2) if asked.transport == Transport::Udp => Reply { flags: Flags::TC, ..Reply::default() },
        (Type::A, _) => Reply::answer(&[&a]),
        (Type::AAAA, 3..6) => Reply::answer(&[&aaaa]),
        _ => Reply::empty("example.", 60, 60),
    };
    for _ in 0..=u64::from(chance.percent(10)) {
        let slowest = if chance.percent(5) { 900 } else { 80 };
        let after = Span::from_millis(chance.below(slowest));
        let mut bytes = reply.to(&asked.bytes);
        if asked.transport == Transport::Udp {
            match chance.below(30) {
                // Checksums are strong enough to keep damage away from records, but not from a tester.
                0 => bytes[chance.below(12) as usize] ^= 1 << chance.below(8),
                1 => bytes.truncate(chance.below(bytes.len() as u64) as usize),
                2 => wire::header::set_id(&mut bytes, chance.bits() as u16),
                _ => {}
            }
        }
        deliveries.push(Delivery { after, via: asked.link, what: What::Message(bytes) });
    }
    deliveries
}

#[test]
fn every_question_gets_exactly_one_answer_in_time_whatever_the_weather() {
    for seed in 0..SEEDS {
        one_storm(seed);
    }
}

fn one_storm(seed: u64) {
    let mut chance = Chance::new(seed);
    let settings = weather_settings(&mut chance);
    let tries = u64::from(settings.upstream.tries);
    let timeout = settings.upstream.timeout.0;
    let loss = chance.below(60);
    let dead = chance.percent(30).then(|| forwarders("192.0.2.2")[0]);
    let calm = Rc::new(Cell::new(false));
    let state = calm.clone();
    let mut world = World::sized(settings, 1024, seed);
    world.upstreams(move |asked, chance| {
        if state.get() {
            return vec![deliver(asked, Span::from_millis(5), &Reply::default())];
        }
        weather(asked, chance, loss, dead)
    });
    let mut asked_at = vec![];
    for number in 0..QUESTIONS {
        let qtype = if chance.percent(70) { Type::AAAA } else { Type::A };
        let name = format!("n{}.example.", chance.below(120));
        let mut question = ask(&name, qtype).network(number % 50).id(number as u16).port(number as u16);
        if chance.percent(30) {
            question = question.edns(1232, chance.percent(50));
        }
        asked_at.push((world.now, world.ask(&question)));
        world.run(Span(chance.below(12_000_000)));
        if chance.percent(1) {
            let settings = weather_settings(&mut chance);
            world.engine.configure(settings);
        }
    }
    world.run(Span::from_secs(15));
    // Two legs; each may begin one more try when it moves to TCP.
    let in_time = Span(2 * (tries + 1) * timeout + 20_000_000);
    for (number, (at, token)) in asked_at.iter().enumerate() {
        let answers = world.answers_to(*token);
        assert_eq!(answers.len(), 1, "seed {seed}, question {number}");
        assert_eq!(answers[0].id(), number as u16);
        let span = answers[0].at - *at;
        assert!(span <= in_time, "seed {seed}, question {number}: {span:?}");
        for address in answers[0].addresses() {
            assert!(["2001:db8:64::c633:6407", "2001:db8:1::80"].contains(&address.as_str()), "{address}");
        }
    }
    assert_eq!(world.count(Counter::CnameHops), 0, "seed {seed}");
    world.assert_conservation();
    // When the weather is good again, nothing is left: no flight, no dead server, few links.
    calm.set(true);
    world.run(Span::from_secs(5));
    assert_eq!((world.engine.pending(), world.engine.flights()), (0, 0), "seed {seed}");
    let servers = world.engine.servers().count();
    assert!(world.engine.servers().all(|server| !server.is_dead()), "seed {seed}");
    assert!(world.engine.open_links() <= 2 * servers, "seed {seed}: {} links", world.engine.open_links());
}

#[test]
fn equal_seeds_unfold_equally() {
    let run = |seed: u64| {
        let mut world = World::sized(settings(), 256, seed);
        world.upstreams(|asked, chance| weather(asked, chance, 20, None));
        for number in 0..200 {
            world.ask_in(
                Span::from_millis(u64::from(number) * 3),
                &ask(&format!("n{number}.example."), Type::AAAA).network(number).id(number as u16),
            );
        }
        world.run(Span::from_secs(20));
        let answers: Vec<_> = world.answers.iter().map(|answer| (answer.at, answer.bytes.clone())).collect();
        let asked: Vec<_> =
            world.asked.iter().map(|asked| (asked.at, asked.port, asked.bytes.clone())).collect();
        (answers, asked)
    };
    assert!(run(3) == run(3));
    assert!(run(3) != run(4));
}
