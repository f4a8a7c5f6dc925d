//! Deduplication: client queries with equal questions share one upstream query, and each gets its own answer.

use crate::world::{ClientQuery, Reply, Rng, World, query, settings};
use engine::settings::Lookup;
use engine::{Counter, Span};
use wire::{Flags, Type};

/// The query with random letter case.
fn mixed(mut question: ClientQuery, rng: &mut Rng) -> ClientQuery {
    for octet in &mut question.name {
        if octet.is_ascii_alphabetic() && rng.percent(50) {
            *octet ^= 0x20;
        }
    }
    question
}

fn ask_of(number: u32, rng: &mut Rng) -> ClientQuery {
    let question = query("www.a-popular-name.example.", Type::AAAA).network(number);
    mixed(question.id(rng.bits() as u16).port(2000 + number as u16), rng)
}

#[test]
fn two_hundred_clients_with_one_question_cause_one_query_per_lookup_and_get_an_answer_each() {
    for lookup in [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span::from_millis(5))] {
        let mut settings = settings();
        settings.dns64.lookup = lookup;
        let mut world = World::new(settings);
        world.set_replies(Span::from_millis(20), |asked| match asked.qtype() {
            Type::A => Reply::answer(&["www.a-popular-name.example. 60 IN A 198.51.100.7"]),
            _ => Reply::empty("example.", 30, 30),
        });
        let mut rng = Rng::new(5);
        let queries: Vec<ClientQuery> = (0..200).map(|number| ask_of(number, &mut rng)).collect();
        let tokens: Vec<_> = queries.iter().map(|question| world.ask(question)).collect();
        world.run(Span::from_secs(1));
        assert_eq!(world.asked.iter().filter(|asked| asked.qtype() == Type::AAAA).count(), 1);
        assert_eq!(world.asked.iter().filter(|asked| asked.qtype() == Type::A).count(), 1);
        for (question, token) in queries.iter().zip(tokens) {
            let answer = world.answer_to(token);
            assert_eq!(answer.id(), question.id);
            assert_eq!(answer.message().question(), question.question(), "the letter case of the client");
            assert_eq!(answer.addresses(), ["2001:db8:64::c633:6407"]);
            assert_eq!(
                answer.message().records(wire::Section::Answer).next().map(|record| record.ttl),
                Some(30)
            );
        }
        assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
        world.assert_conservation();
    }
}

#[test]
fn a_question_for_a_and_the_a_lookup_of_a_synthesis_share_one_outbound_query() {
    let mut world = World::new(settings());
    let direct = world.ask(&query("www.example.", Type::A).network(1));
    let synthesized = world.ask(&query("www.example.", Type::AAAA).network(2));
    let [for_a, for_aaaa] = [0, 1].map(|place| world.asked[place].clone());
    world.reply(for_aaaa.link, &Reply::default().to(&for_aaaa.bytes));
    assert_eq!(world.asked.len(), 2);
    world.reply(for_a.link, &Reply::answer(&["www.example. 60 IN A 198.51.100.7"]).to(&for_a.bytes));
    let records = world.answer_to(direct).records(wire::Section::Answer);
    assert_eq!(records, ["www.example. 60 IN A 198.51.100.7"]);
    assert_eq!(world.answer_to(synthesized).addresses(), ["2001:db8:64::c633:6407"]);
    assert_eq!(world.asked.len(), 2);
}

#[test]
fn questions_with_different_flags_are_not_combined() {
    let mut world = World::new(settings());
    for (number, question) in [
        query("www.example.", Type::AAAA),
        query("www.example.", Type::AAAA).flags(Flags(0)),
        query("www.example.", Type::AAAA).flags(Flags::RD.with(Flags::CD)),
        query("www.example.", Type::AAAA).flags(Flags::RD.with(Flags::AD)),
        query("www.example.", Type::AAAA).edns(1232, true),
        ClientQuery { class: wire::Class::HS, ..query("www.example.", Type::AAAA) },
        query("www.example.", Type::A),
        query("www1.example.", Type::AAAA),
    ]
    .into_iter()
    .enumerate()
    {
        world.ask(&question.port(5000 + number as u16));
        assert_eq!(world.asked.len(), number + 1);
    }
    // EDNS without DO only changes how the answer is written.
    world.ask(&query("www.example.", Type::AAAA).edns(4096, false).port(6000));
    assert_eq!(world.count(Counter::Joined), 1);
}

#[test]
fn a_retransmitted_client_query_is_answered_once() {
    let mut world = World::new(settings());
    let question = query("www.example.", Type::A);
    world.ask(&question);
    let token = world.ask(&question);
    assert_eq!(world.count(Counter::DroppedRepeated), 1);
    world.reply_to(0, &Reply::default());
    assert_eq!((world.answers.len(), world.answers_to(token).len()), (1, 1));
    world.assert_conservation();
}

#[test]
fn another_question_with_the_same_id_from_the_same_port_is_not_a_retransmission() {
    // A stub resolver may use one ID and one port for the A and the AAAA query of a name.
    let mut world = World::new(settings());
    world.ask(&query("www.example.", Type::AAAA));
    world.reply_to(0, &Reply::default());
    // The first query now waits for the A lookup, which the second one joins.
    world.ask(&query("www.example.", Type::A));
    assert_eq!(world.count(Counter::DroppedRepeated), 0);
    world.reply_to(1, &Reply::answer(&["www.example. 60 IN A 198.51.100.7"]));
    let mut types: Vec<_> = world.answers.iter().map(|answer| answer.message().qtype()).collect();
    types.sort();
    assert_eq!(types, [Type::A, Type::AAAA]);
}

#[test]
fn streams_with_equal_ids_are_different_clients() {
    let mut world = World::new(settings());
    let first = world.ask(&query("www.example.", Type::A).tcp(1));
    let second = world.ask(&query("www.example.", Type::A).tcp(2));
    world.reply_to(0, &Reply::default());
    for token in [first, second] {
        assert_eq!(world.answers_to(token).len(), 1);
    }
}
