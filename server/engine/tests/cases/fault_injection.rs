//! Random faults of all kinds at once, over many seeds: loss, duplicates, reordering, corruption, forgeries, errors,
//! truncation, ICMP errors, dead servers, reloads. Every query gets exactly one answer in time, and afterwards no state is
//! left.

use crate::world::{Arrival, Delivery, Reply, Rng, SentQuery, World, deliver, forwarders, query, settings};
use engine::settings::{Lookup, OnFailure, Select};
use engine::{Counter, Settings, Span, Transport};
use std::cell::Cell;
use std::rc::Rc;
use wire::{Flags, Rcode, Type};

const SEEDS: u64 = 60;
const QUERIES: u32 = 300;

fn random_settings(rng: &mut Rng) -> Settings {
    let mut settings = settings();
    let all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    let first = rng.below(3) as usize;
    settings.upstream.forwarders = forwarders(&all[first..=first + rng.below(2) as usize].join(" "));
    settings.upstream.select = [Select::Ordered, Select::Random, Select::Fastest][rng.below(3) as usize];
    settings.dns64.lookup =
        [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span::from_millis(20))][rng.below(3) as usize];
    if rng.percent(20) {
        settings.upstream.transport = Transport::Tcp;
    }
    if rng.percent(20) {
        settings.dns64.on_failure.timeout = OnFailure::Pass;
    }
    settings
}

/// Replies of a faulty upstream.
fn faulty_upstream(
    asked: &SentQuery,
    rng: &mut Rng,
    loss: u64,
    dead: Option<std::net::SocketAddr>,
) -> Vec<Delivery> {
    let mut deliveries = vec![];
    if rng.percent(3) {
        deliveries.push(Delivery {
            after: Span::from_millis(rng.below(50)),
            via: asked.link,
            arrival: Arrival::Failure,
        });
    }
    let lost = asked.transport == Transport::Udp && rng.percent(loss);
    if lost || dead == Some(asked.upstream) {
        return deliveries;
    }
    let name = asked.name();
    let a = format!("{name} 60 IN A 198.51.100.7");
    let aaaa = format!("{name} 60 IN AAAA 2001:db8:1::80");
    let reply = match (asked.qtype(), rng.below(20)) {
        (_, 0) => Reply::rcode(Rcode::SERVFAIL),
        (_, 1) => Reply::rcode(Rcode::REFUSED),
        (_, 2) if asked.transport == Transport::Udp => Reply { flags: Flags::TC, ..Reply::default() },
        (Type::A, _) => Reply::answer(&[&a]),
        (Type::AAAA, 3..6) => Reply::answer(&[&aaaa]),
        _ => Reply::empty("example.", 60, 60),
    };
    for _ in 0..=u64::from(rng.percent(10)) {
        let slowest = if rng.percent(5) { 900 } else { 80 };
        let after = Span::from_millis(rng.below(slowest));
        let mut bytes = reply.to(&asked.bytes);
        if asked.transport == Transport::Udp {
            match rng.below(30) {
                // Only the header is damaged: in a real network, checksums keep damage away from records.
                0 => bytes[rng.below(12) as usize] ^= 1 << rng.below(8),
                1 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
                2 => wire::header::set_id(&mut bytes, rng.bits() as u16),
                _ => {}
            }
        }
        deliveries.push(Delivery { after, via: asked.link, arrival: Arrival::Message(bytes) });
    }
    deliveries
}

#[test]
fn every_query_gets_exactly_one_answer_in_time_under_random_faults() {
    for seed in 0..SEEDS {
        play_seed(seed);
    }
}

fn play_seed(seed: u64) {
    let mut rng = Rng::new(seed);
    let settings = random_settings(&mut rng);
    let tries = u64::from(settings.upstream.tries);
    let timeout = settings.upstream.timeout.0;
    let loss = rng.below(60);
    let dead = rng.percent(30).then(|| forwarders("192.0.2.2")[0]);
    let is_healthy = Rc::new(Cell::new(false));
    let state = is_healthy.clone();
    let mut world = World::sized(settings, 1024, seed);
    world.set_upstreams(move |asked, rng| {
        if state.get() {
            return vec![deliver(asked, Span::from_millis(5), &Reply::default())];
        }
        faulty_upstream(asked, rng, loss, dead)
    });
    let mut asked_at = vec![];
    for number in 0..QUERIES {
        let qtype = if rng.percent(70) { Type::AAAA } else { Type::A };
        let name = format!("n{}.example.", rng.below(120));
        let mut question = query(&name, qtype).network(number % 50).id(number as u16).port(number as u16);
        if rng.percent(30) {
            question = question.edns(1232, rng.percent(50));
        }
        asked_at.push((world.now, world.ask(&question)));
        world.run(Span(rng.below(12_000_000)));
        if rng.percent(1) {
            let settings = random_settings(&mut rng);
            world.engine.configure(settings);
        }
    }
    world.run(Span::from_secs(15));
    // Two lookups; each may start one more try when it moves to TCP.
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
    // Without faults, no state is left: no outbound query, no dead server, few links.
    is_healthy.set(true);
    world.run(Span::from_secs(5));
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0), "seed {seed}");
    let servers = world.engine.servers().count();
    assert!(world.engine.servers().all(|server| !server.is_dead()), "seed {seed}");
    assert!(world.engine.open_links() <= 2 * servers, "seed {seed}: {} links", world.engine.open_links());
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = |seed: u64| {
        let mut world = World::sized(settings(), 256, seed);
        world.set_upstreams(|asked, rng| faulty_upstream(asked, rng, 20, None));
        for number in 0..200 {
            world.ask_later(
                Span::from_millis(u64::from(number) * 3),
                &query(&format!("n{number}.example."), Type::AAAA).network(number).id(number as u16),
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
