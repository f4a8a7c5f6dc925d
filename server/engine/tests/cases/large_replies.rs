//! Large replies: the bound on their records, and one answer composed for all clients that wait for the same reply.

use crate::world::{ClientQuery, Reply, SentQuery, World, deliver, forwarders, query, record, settings};
use engine::upstream::BreakerState;
use engine::{ClientTransport, Counter, Settings, Span, Transport};
use wire::{Flags, Rcode, Section, Type, ede};

const OCTETS: usize = 16 << 20;
const NAME: &str = "big.example.";

/// `count` A records, or no AAAA record.
fn addresses(asked: &SentQuery, count: usize) -> Reply {
    let mut reply = Reply::empty("example.", 600, 600);
    if asked.qtype() == Type::A {
        reply.sections[1].clear();
        let line = |number: usize| format!("{NAME} 600 IN A 198.51.{}.{}", number / 250, number % 250);
        reply.sections[0] = (0..count).map(|number| record(&line(number))).collect();
    }
    reply
}

/// An upstream that replies after 20 ms; what does not fit into 1,232 octets goes over TCP.
fn world(settings: Settings, count: usize) -> World {
    let mut world = World::with_cache(settings, OCTETS);
    world.set_upstreams(move |asked, _| {
        let reply = addresses(asked, count);
        let is_cut = asked.transport == Transport::Udp && reply.to(&asked.bytes).len() > 1232;
        let cut = Reply { flags: Flags::TC, ..Reply::default() };
        vec![deliver(asked, Span::from_millis(20), if is_cut { &cut } else { &reply })]
    });
    world
}

fn big(qtype: Type, number: u16) -> ClientQuery {
    query(NAME, qtype).id(number).network(u32::from(number) / 100).port(10_000 + number)
}

fn transfers(world: &World) -> usize {
    world.asked.iter().filter(|asked| asked.transport == Transport::Tcp).count()
}

//= RFC 8484 section 6: requirement 86
#[test]
fn the_payload_size_of_edns_does_not_limit_answers_over_https() {
    let mut world = world(settings(), 100);
    let mut asks = big(Type::A, 1).tcp(1).edns(512, false);
    asks.client.transport = ClientTransport::Https;
    let token = world.ask(&asks);
    world.run(Span::from_secs(1));
    let answer = world.answer_to(token);
    assert_eq!(answer.records(Section::Answer).len(), 100);
    assert!(!answer.message().flags().contains(Flags::TC));
}

#[test]
fn questions_for_a_huge_rrset_cost_one_transfer_while_the_failure_is_cached() {
    for qtype in [Type::A, Type::AAAA] {
        let mut settings = settings();
        settings.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
        let mut world = world(settings, 4_000);
        for number in 0..2_000u16 {
            let token = world.ask(&big(qtype, number).edns(1232, false));
            if number % 4 == 3 {
                world.run(Span::from_millis(60));
                let answer = world.answer_to(token);
                assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(ede::INVALID_DATA)));
            }
        }
        // Thirty seconds: the failure is asked for again after 1, 2, 4, 8 and 16 s.
        assert!(transfers(&world) <= 6, "{} transfers", transfers(&world));
        assert_eq!(world.count(Counter::TooManyRecords), transfers(&world) as u64);
        assert_eq!(world.count(Counter::BogusChecks), 0);
        assert!(world.engine.servers().all(|server| server.state() == BreakerState::Closed));
    }
}

#[test]
fn an_rrset_of_a_size_that_other_servers_serve_is_served_whole_and_cached() {
    for count in [100, 256, 257, 512] {
        let mut world = world(settings(), count);
        for round in 0..3 {
            let token = world.ask(&big(Type::A, round).tcp(1));
            world.run(Span::from_millis(60));
            assert_eq!(world.answer_to(token).records(Section::Answer).len(), count);
        }
        assert_eq!(transfers(&world), usize::from(count > 64), "from the cache the second time");
    }
    let mut world = world(settings(), 513);
    let token = world.ask(&big(Type::A, 1).tcp(1));
    world.run(Span::from_millis(60));
    assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
}

#[test]
fn equal_clients_that_wait_for_one_reply_get_copies_of_one_answer() {
    for (qtype, count) in [(Type::A, 500), (Type::AAAA, 500), (Type::A, 1), (Type::AAAA, 1)] {
        let mut world = world(settings(), count);
        let mut queries: Vec<_> = (0..500).map(|number| big(qtype, number).edns(1232, false)).collect();
        queries[7].name[1].make_ascii_uppercase();
        let tokens: Vec<_> = queries.iter().map(|query| world.ask(query)).collect();
        world.run(Span::from_secs(1));
        assert_eq!(world.count(Counter::CopiedAnswers), 499, "{qtype:?}, {count} addresses");
        let first = world.answer_to(tokens[0]).clone();
        assert_eq!(first.flags().contains(Flags::TC), count == 500);
        for (query, token) in queries.iter().zip(tokens) {
            let answer = world.answer_to(token);
            assert_eq!((answer.id(), answer.message().question()), (query.id, &query.question()[..]));
            assert_eq!(answer.records(Section::Answer), first.records(Section::Answer));
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, first.ede()));
        }
        let synthesized = if qtype == Type::AAAA { 500 } else { 0 };
        assert_eq!(world.count(Counter::SynthesizedNoData), synthesized);
        world.assert_conservation();
    }
}

/// Every client gets the answer that it would get alone.
#[test]
fn an_answer_is_copied_only_for_a_query_that_is_equal_in_all_that_shapes_it() {
    let mut settings = settings();
    settings.dns64.max_records = 200;
    let rule = engine::dns64::rules::Rule {
        clients: crate::world::networks("2001:db8:c:2::/64"),
        prefixes: vec!["2001:db8:6464::/96".parse().unwrap()],
        ..engine::dns64::rules::Rule::default()
    };
    settings.dns64.rules = std::sync::Arc::new(engine::dns64::rules::Rules::build(vec![rule]).unwrap());
    // Three equal queries after each other of each of twenty kinds.
    let of_kind = |number: u16| {
        let kind = number / 3;
        let query = big([Type::A, Type::AAAA][usize::from(kind % 2)], number);
        let query = match kind / 2 % 5 {
            0 => query,
            1 => query.edns(512, false),
            2 => query.edns(1232, false),
            3 => query.edns(1232, false).option((10, vec![number as u8; 8])),
            _ => query.tcp(u64::from(number)),
        };
        // The second network has a rule of its own.
        query.network(1 + u32::from(kind / 10))
    };
    let mut together = world(settings.clone(), 40);
    let queries: Vec<_> = (0..60).map(of_kind).collect();
    let tokens: Vec<_> = queries.iter().map(|query| together.ask(query)).collect();
    together.run(Span::from_secs(1));
    assert!(together.count(Counter::CopiedAnswers) >= 30, "{}", together.count(Counter::CopiedAnswers));
    for (query, token) in queries.iter().zip(tokens) {
        let mut alone = world(settings.clone(), 40);
        let single = alone.ask(query);
        alone.run(Span::from_secs(1));
        assert_eq!(together.answer_to(token).bytes, alone.answer_to(single).bytes);
    }
}
