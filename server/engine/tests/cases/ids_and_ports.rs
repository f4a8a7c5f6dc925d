//! Message IDs, ports and links: no ID is used twice while a reply to it may come, and all numbers are unpredictable.

use crate::world::statistics::{covers, examine, independent, never_twice};
use crate::world::{Reply, World, deliver, query, settings};
use engine::limits::{LINK_LIFE_SECS, LINK_QUESTIONS};
use engine::{ClientTransport, Span, Transport};
use std::collections::{HashMap, HashSet};
use wire::Type;

/// The wrap-around bug of TOTD: new IDs collided with IDs still in flight, so that after some ten thousand queries replies went
/// to the wrong questions, and the server seemed to stop.
#[test]
fn more_than_a_hundred_thousand_queries_with_loss_never_use_an_id_twice_on_a_link() {
    const QUERIES: u32 = (1 << 17) + 5000;
    let mut world = World::sized(settings(), 8192, 21);
    world.set_upstreams(|asked, rng| {
        if rng.percent(30) {
            return vec![];
        }
        let reply = Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]);
        vec![deliver(asked, Span(1_000_000 + rng.below(40_000_000)), &reply)]
    });
    let mut tokens = vec![];
    for number in 0..QUERIES {
        let question = query(&format!("n{number}.example."), Type::A).network(number % 997);
        tokens.push(world.ask(&question.id(number as u16).port(1 + (number >> 16) as u16)));
        world.run(Span(25_000));
    }
    world.run(Span::from_secs(10));
    assert!(world.asked.len() > QUERIES as usize * 13 / 10);
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    assert!(world.engine.open_links() <= 2, "{} links leaked", world.engine.open_links());

    let over_udp = || world.asked.iter().filter(|asked| asked.transport == Transport::Udp);
    never_twice(over_udp().map(|asked| (asked.link, wire::header::id(&asked.bytes)))).unwrap();
    let mut carried = HashMap::new();
    let opened: HashMap<_, _> = world.outbox.opened_links.iter().copied().collect();
    assert_eq!(opened.len(), world.outbox.opened_links.len(), "a link number was reused");
    for asked in over_udp() {
        *carried.entry(asked.link).or_insert(0) += 1;
        let age = asked.at - opened[&asked.link].at;
        assert!(age < Span::from_secs(LINK_LIFE_SECS), "{:?} lived for {age:?}", asked.link);
    }
    assert_eq!(carried.values().max(), Some(&LINK_QUESTIONS));

    // 30 % loss and three attempts: one query in 37 fails; each gets an answer, and none gets that of another.
    let mut failed = 0;
    for (number, token) in tokens.iter().enumerate() {
        let answer = world.answer_to(*token);
        assert_eq!(answer.id(), number as u16);
        let records = answer.records(wire::Section::Answer);
        match answer.rcode() {
            wire::Rcode::NOERROR => assert_eq!(records, [format!("n{number}.example. 60 IN A 198.51.100.7")]),
            _ => failed += 1,
        }
    }
    assert!((failed as f64 / f64::from(QUERIES) - 0.027).abs() < 0.005, "{failed} failed");

    let ids: Vec<u16> = world.asked.iter().map(|asked| wire::header::id(&asked.bytes)).collect();
    examine(&ids, 0, 1 << 16).unwrap();
}

/// Prediction attacks, such as Klein's, and ports divided among workers (CVE-2026-50252): two workers as in the server, each
/// with entropy of its own and a new port for every query.
#[test]
fn ids_and_ports_of_a_hundred_thousand_queries_of_each_worker_look_random() {
    const QUERIES: u32 = 100_000;
    const PORTS: u32 = 65_536 - 1024;
    let drawn = [22, 23].map(|seed| {
        let mut world = World::sized(settings(), 64, seed);
        world.set_replies(Span::from_millis(1), |_| Reply::default());
        for number in 0..QUERIES {
            world.ask(&query("www.example.", Type::A).id(number as u16).port((number >> 16) as u16));
            world.run(Span::from_secs(LINK_LIFE_SECS));
        }
        assert_eq!(
            (world.asked.len(), world.outbox.opened_links.len()),
            (QUERIES as usize, QUERIES as usize)
        );
        assert_eq!(world.engine.open_links(), 1);
        let ids: Vec<u16> = world.asked.iter().map(|asked| wire::header::id(&asked.bytes)).collect();
        let ports: Vec<u16> = world.asked.iter().map(|asked| asked.port).collect();
        assert!(ports.iter().all(|&port| port >= 1024));
        examine(&ids, 0, 1 << 16).unwrap_or_else(|error| panic!("IDs of worker {seed}: {error}"));
        examine(&ports, 1024, PORTS).unwrap_or_else(|error| panic!("ports of worker {seed}: {error}"));
        covers(&ids, 1 << 16).unwrap();
        covers(&ports, PORTS).unwrap();
        independent(&ids, &ports).unwrap();
        (ids, ports)
    });
    let [(ids, ports), (other_ids, other_ports)] = &drawn;
    independent(ids, other_ids).unwrap();
    independent(ports, other_ports).unwrap();
    independent(&ids[1..], &other_ids[..other_ids.len() - 1]).unwrap();
    independent(&ports[1..], &other_ports[..other_ports.len() - 1]).unwrap();
}

#[test]
fn a_tcp_link_carries_many_queries_with_an_id_each() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let mut world = World::sized(settings, 64, 23);
    world.set_replies(Span(1000), |_| Reply::default());
    let mut used = HashSet::new();
    for number in 0..70_000u32 {
        world.ask(&query("www.example.", Type::A).id(number as u16).port((number >> 16) as u16));
        world.run(Span(2000));
        let asked = world.asked.pop().unwrap();
        assert!(used.insert((asked.link, wire::header::id(&asked.bytes))));
        world.answers.clear();
    }
    assert_eq!(world.outbox.opened_links.len(), 3, "70,000 queries over links of 32,768");
    assert_eq!(world.engine.open_links(), 1);
}

//= RFC 9250 section 4.2.1: requirement 97
#[test]
fn queries_over_quic_have_id_0_and_each_question_to_an_upstream_an_id_of_its_own() {
    const QUERIES: usize = 100;
    let mut world = World::new(settings());
    world.set_replies(Span::from_millis(20), |asked| {
        Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())])
    });
    let ask = |number| {
        let mut query = query(&format!("n{number}.example."), Type::A).id(0).tcp(number as u64);
        query.client.transport = ClientTransport::Quic;
        world.ask(&query)
    };
    let tokens: Vec<_> = (0..QUERIES).map(ask).collect();
    world.run(Span::from_millis(100));
    for (number, token) in tokens.into_iter().enumerate() {
        let answer = world.answer_to(token);
        assert_eq!(answer.id(), 0);
        assert_eq!(
            answer.records(wire::Section::Answer),
            [format!("n{number}.example. 60 IN A 198.51.100.7")]
        );
    }
    assert_eq!(world.asked.len(), QUERIES);
    never_twice(world.asked.iter().map(|asked| (asked.link, wire::header::id(&asked.bytes)))).unwrap();
}
