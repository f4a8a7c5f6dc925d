//! Client subnets (RFC 7871): the number of queries that many subnets cause, the size of answers, late replies.
//! `scenarios/subnet-*.txt` shows how subnets are forwarded.

use crate::world::{ClientQuery, Reply, World, query, settings, subnet, subnets};
use engine::limits::SUBNETS;
use engine::settings::{ClientSubnet, Lookup};
use engine::{Counter, Settings, Span};
use wire::{Rcode, Type};

fn forwarding() -> Settings {
    Settings { client_subnet: ClientSubnet::Forward, ..settings() }
}

/// A query from the client network with this number, with a subnet of its own.
fn ask_of(number: u32, qtype: Type) -> ClientQuery {
    let [_, _, high, low] = number.to_be_bytes();
    query("www.a-popular-name.example.", qtype)
        .network(number)
        .id(number as u16)
        .option(subnet(&format!("10.{high}.{low}.0/24")))
}

#[test]
fn many_subnets_cause_no_more_queries_at_a_time_than_the_limit_and_one_without_subnet() {
    for lookup in [Lookup::Sequential, Lookup::Parallel] {
        let mut settings = forwarding();
        settings.dns64.lookup = lookup;
        let mut world = World::new(settings);
        world.set_replies(Span::from_millis(20), |asked| match asked.qtype() {
            Type::A => Reply::answer(&["www.a-popular-name.example. 60 IN A 198.51.100.7"]),
            _ => Reply::empty("example.", 30, 30),
        });
        let tokens: Vec<_> = (0..1000).map(|number| world.ask(&ask_of(number, Type::AAAA))).collect();
        world.run(Span::from_secs(1));
        for (number, token) in (0..).zip(tokens) {
            let answer = world.answer_to(token);
            assert_eq!(answer.addresses(), ["2001:db8:64::c633:6407"]);
            // The answer to a client whose subnet was left out has a full scope: it applies to this subnet only.
            let scope = if number < SUBNETS { 0 } else { 24 };
            let [high, low] = (number as u16).to_be_bytes();
            assert_eq!(subnets(&answer.message()), [subnet(&format!("10.{high}.{low}.0/24/{scope}"))]);
        }
        for qtype in [Type::AAAA, Type::A] {
            let asked: Vec<_> = world.asked.iter().filter(|asked| asked.qtype() == qtype).collect();
            let with = asked.iter().filter(|asked| !subnets(&asked.message()).is_empty()).count();
            assert_eq!((with, asked.len()), (SUBNETS, SUBNETS + 1), "{qtype}, {lookup:?}");
        }
        assert_eq!(world.count(Counter::SubnetLimit), 2 * (1000 - SUBNETS as u64));
        assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
        world.assert_conservation();
        // The limit is no longer reached.
        world.ask(&ask_of(2000, Type::A));
        let asked = world.asked.last().unwrap();
        assert_eq!(subnets(&asked.message()), [subnet("10.7.208.0/24")]);
    }
}

#[test]
fn queries_refused_because_of_their_subnets_count_towards_the_limit_without_them() {
    let mut world = World::new(forwarding());
    for number in 0..100 {
        world.ask(&ask_of(number, Type::A));
    }
    assert_eq!(world.asked.len(), SUBNETS + 1);
    for asked in world.asked.clone().iter().filter(|asked| !subnets(&asked.message()).is_empty()) {
        world.reply(asked.link, &Reply::rcode(Rcode::REFUSED).to(&asked.bytes));
    }
    assert_eq!(world.asked.len(), 2 * SUBNETS + 1);
    for number in 100..200 {
        world.ask(&ask_of(number, Type::A));
    }
    assert_eq!(world.asked.len(), 2 * SUBNETS + 1, "no further query is sent");
}

/// A query of which two tries have been sent.
fn asked_twice() -> (World, crate::world::ClientQuery) {
    let mut world = World::new(forwarding());
    let question = ask_of(7, Type::A);
    world.ask(&question);
    for _ in 0..100 {
        if world.asked.len() == 2 {
            break;
        }
        world.run(Span::from_millis(10));
    }
    assert_eq!(world.asked.len(), 2);
    (world, question)
}

fn address() -> Reply {
    Reply::answer(&["www.a-popular-name.example. 60 IN A 198.51.100.7"])
}

#[test]
fn several_refusals_cause_one_query_without_the_subnet() {
    let (mut world, _) = asked_twice();
    for asked in world.asked.clone() {
        world.reply(asked.link, &Reply::rcode(Rcode::REFUSED).to(&asked.bytes));
    }
    assert_eq!(world.asked.len(), 3);
    assert!(world.answers.is_empty(), "the query without subnet is in flight");
    let last = world.asked[2].clone();
    assert!(subnets(&last.message()).is_empty());
    world.reply(last.link, &address().to(&last.bytes));
    assert_eq!(subnets(&world.answers[0].message()), [subnet("10.0.7.0/24/0")]);
    assert_eq!(world.count(Counter::SubnetRefused), 1);
}

#[test]
fn a_late_reply_to_the_query_with_the_subnet_is_accepted_with_its_scope() {
    let (mut world, _) = asked_twice();
    let [first, second] = [0, 1].map(|place| world.asked[place].clone());
    world.reply(second.link, &Reply::rcode(Rcode::FORMERR).to(&second.bytes));
    assert_eq!(world.asked.len(), 3);
    world.reply(first.link, &address().option(subnet("10.0.7.0/24/20")).to(&first.bytes));
    assert_eq!(subnets(&world.answers[0].message()), [subnet("10.0.7.0/24/20")]);
    // The reply to the query without subnet is late.
    world.reply_to(2, &address());
    assert_eq!((world.answers.len(), world.count(Counter::SuspectSubnet)), (1, 0));
}

#[test]
fn a_reply_to_a_query_without_subnet_may_have_any_subnet() {
    let mut world = World::new(forwarding());
    world.ask(&ask_of(7, Type::A));
    world.reply_to(0, &Reply::rcode(Rcode::REFUSED));
    let second = world.asked[1].clone();
    // RFC 7871 section 7.2.1 forbids an option here, but it does no harm.
    world.reply(second.link, &address().option(subnet("192.0.2.0/24/24")).to(&second.bytes));
    assert_eq!(subnets(&world.answers[0].message()), [subnet("10.0.7.0/24/0")]);
    assert_eq!(world.count(Counter::SuspectSubnet), 0);
}

#[test]
fn a_wrong_subnet_over_tcp_too_is_rejected_and_the_query_fails() {
    let mut world = World::new(forwarding());
    world.set_replies(Span::from_millis(1), |_| address().option(subnet("10.0.8.0/24/24")));
    let token = world.ask(&ask_of(7, Type::A));
    world.run(Span::from_secs(10));
    assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    assert!(world.count(Counter::SuspectSubnet) >= 2);
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
}

#[test]
fn every_answer_to_a_query_with_a_subnet_has_it_and_fits_the_size_of_the_client() {
    for count in 0..40 {
        for qtype in [Type::A, Type::AAAA] {
            let mut world = World::new(forwarding());
            let name = "a-name-of-some-length.example.";
            let mut question = query(name, qtype).option(subnet("2001:db8:a:b::/128"));
            question.edns = Some((512, true));
            let token = world.ask(&question);
            let lines: Vec<String> = (0..count).map(|n| format!("{name} 60 IN A 198.51.100.{n}")).collect();
            let reply = Reply::answer(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            for place in 0..2 {
                let Some(asked) = world.asked.get(place).cloned() else { break };
                let reply = if asked.qtype() == Type::A { &reply } else { &Reply::default() };
                let reply = reply.clone().option(subnet("2001:db8:a:b::/128/64"));
                world.reply(asked.link, &reply.to(&asked.bytes));
            }
            let answer = world.answer_to(token);
            assert!(answer.bytes.len() <= 512, "{count} {qtype}: {} octets", answer.bytes.len());
            assert_eq!(subnets(&answer.message()), [subnet("2001:db8:a:b::/128/64")], "{count} {qtype}");
        }
    }
}

#[test]
fn a_subnet_of_another_edns_version_is_not_parsed() {
    let mut world = World::new(forwarding());
    let token = world.ask(&ClientQuery { edns_version: 1, ..ask_of(7, Type::A).option((8, vec![0xff])) });
    assert_eq!(world.answer_to(token).rcode(), Rcode::BADVERS);
    assert!(subnets(&world.answer_to(token).message()).is_empty());
}

#[test]
fn queries_that_are_pending_when_subnets_are_switched_off_are_answered() {
    let mut world = World::new(forwarding());
    let token = world.ask(&ask_of(7, Type::AAAA));
    world.engine.configure(settings());
    for reply in [Reply::default(), address()] {
        let asked = world.last();
        assert_eq!(subnets(&asked.message()), [subnet("10.0.7.0/24")], "a pending query keeps its subnet");
        world.reply(asked.link, &reply.to(&asked.bytes));
    }
    assert_eq!(world.answer_to(token).addresses(), ["2001:db8:64::c633:6407"]);
    let next = world.ask(&ask_of(8, Type::A));
    assert!(subnets(&world.asked.last().unwrap().message()).is_empty());
    assert!(world.answers_to(next).is_empty());
}
