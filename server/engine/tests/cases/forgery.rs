//! Forged and mismatched replies: they are rejected, counted, and do not disturb the real reply.

use crate::world::{ClientQuery, Reply, SentQuery, World, query, settings};
use engine::{Counter, Span, Transport};
use wire::{Flags, Type};

const GOOD: &str = "www.example. 60 IN A 198.51.100.7";
const EVIL: &str = "www.example. 60 IN A 203.0.113.66";

fn asked_one() -> (World, crate::world::Token, SentQuery) {
    let mut world = World::new(settings());
    let token = world.ask(&query("www.example.", Type::A));
    let asked = world.asked[0].clone();
    (world, token, asked)
}

fn with_id(mut bytes: Vec<u8>, id: u16) -> Vec<u8> {
    wire::header::set_id(&mut bytes, id);
    bytes
}

#[test]
fn guessing_all_ids_at_the_right_socket_gains_nothing() {
    let (mut world, token, asked) = asked_one();
    let evil = Reply::answer(&[EVIL]).to(&asked.bytes);
    let right = wire::header::id(&evil);
    // The right ID comes last: the first wrong one has moved the question to TCP.
    for distance in 1..=u16::MAX {
        world.reply(asked.link, &with_id(evil.clone(), right.wrapping_add(distance)));
    }
    world.reply(asked.link, &evil);
    assert!(world.answers_to(token).is_empty());
    assert_eq!(world.count(Counter::SuspectId), 1);
    assert_eq!(world.count(Counter::SuspectAbandoned), 65_535);
    let over_tcp: Vec<_> =
        world.asked.iter().filter(|asked| asked.transport == Transport::Tcp).cloned().collect();
    assert_eq!(over_tcp.len(), 1);
    world.reply(over_tcp[0].link, &Reply::answer(&[GOOD]).to(&over_tcp[0].bytes));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer), [GOOD]);
}

#[test]
fn equal_questions_with_different_flags_all_move_to_tcp_after_wrong_guesses() {
    // Two queries for one name and type, with and without DO, over one socket: a guess may be for either.
    for reversed in [false, true] {
        let mut world = World::new(settings());
        let mut asks =
            [query("www.example.", Type::A), query("www.example.", Type::A).edns(1232, true).port(9)];
        if reversed {
            asks.reverse();
        }
        let tokens = asks.each_ref().map(|question| world.ask(question));
        let udp = [world.asked[0].clone(), world.asked[1].clone()];
        let ids = udp.each_ref().map(|asked| wire::header::id(&asked.bytes));
        // 0x20 gives each outbound query a letter case of its own: the guesser knows both.
        for target in &udp {
            let evil = Reply::answer(&[EVIL]).to(&target.bytes);
            for guess in (0..=u16::MAX).filter(|guess| !ids.contains(guess)).take(100) {
                world.reply(target.link, &with_id(evil.clone(), guess));
            }
        }
        for target in &udp {
            world.reply(target.link, &Reply::answer(&[EVIL]).to(&target.bytes));
        }
        for token in tokens {
            assert!(world.answers_to(token).is_empty(), "a guess was accepted");
        }
        assert_eq!(world.count(Counter::TcpSuspicion), 2);
    }
}

#[test]
fn the_right_reply_is_accepted_after_wrong_ones_that_do_not_suggest_guessing() {
    let (mut world, token, asked) = asked_one();
    let evil = Reply::answer(&[EVIL]).to(&asked.bytes);
    let mut other_question = evil.clone();
    other_question[13] = b'x';
    let mut other_type = evil.clone();
    other_type[12 + asked.message().question().len() - 3] = 28;
    let mut not_a_response = evil.clone();
    not_a_response[2] &= 0x7f;
    let mut another_operation = evil.clone();
    another_operation[2] |= wire::Opcode::UPDATE.0 << 3;
    let mut no_question = evil.clone();
    wire::header::set_qdcount(&mut no_question, 0);
    for (message, counter) in [
        (other_question, Counter::SuspectUnknown),
        (other_type, Counter::SuspectUnknown),
        (not_a_response, Counter::SuspectNotResponse),
        (another_operation, Counter::SuspectNotResponse),
        (no_question, Counter::DroppedMalformedReply),
        (evil[..evil.len() - 1].to_vec(), Counter::DroppedMalformedReply),
        (evil[..11].to_vec(), Counter::DroppedMalformedReply),
        (vec![], Counter::DroppedMalformedReply),
    ] {
        let before = world.count(counter);
        world.reply(asked.link, &message);
        assert_eq!(world.count(counter), before + 1, "{counter:?}");
        assert!(world.answers.is_empty());
    }
    world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer), [GOOD]);
    assert_eq!(world.asked.len(), 1);
}

#[test]
fn another_letter_case_is_rejected_and_the_question_moves_to_tcp() {
    let (mut world, token, asked) = asked_one();
    for place in 13..16 {
        let mut evil = Reply::answer(&[EVIL]).to(&asked.bytes);
        evil[place] ^= 0x20;
        world.reply(asked.link, &evil);
    }
    assert_eq!((world.count(Counter::SuspectCase), world.count(Counter::SuspectAbandoned)), (1, 2));
    world.reply(asked.link, &Reply::answer(&[EVIL]).to(&asked.bytes));
    assert!(world.answers_to(token).is_empty());
    // Over TCP guessing is not possible, and an upstream may use any letter case.
    let asked = world.asked[1].clone();
    assert_eq!(asked.transport, Transport::Tcp);
    let mut good = Reply::answer(&[GOOD]).to(&asked.bytes);
    good[13..16].make_ascii_lowercase();
    world.reply(asked.link, &good);
    assert_eq!(world.answer_to(token).records(wire::Section::Answer), [GOOD]);
}

#[test]
fn the_letter_case_of_upstream_queries_is_unpredictable() {
    let mut world = World::new(settings());
    let name = "abcdefghijklmnopqrstuvwxyz.example.";
    let mut upper = [0; 26];
    for number in 0..400 {
        world.ask(&query(name, Type(2000 + number)).network(u32::from(number)));
        let asked = world.asked.last().unwrap();
        for (place, count) in upper.iter_mut().enumerate() {
            *count += usize::from(asked.bytes[13 + place].is_ascii_uppercase());
        }
    }
    // Binomial with 400 draws: mean 200, standard deviation 10.
    assert!(upper.iter().all(|count| (150..250).contains(count)), "{upper:?}");
}

#[test]
fn a_reply_over_another_link_than_that_of_its_query_is_rejected() {
    let (mut world, token, asked) = asked_one();
    // Fill the first link, so that the last query goes over the second one.
    for number in 0..engine::limits::LINK_QUESTIONS as u16 {
        world.ask(&query(&format!("n{number}.example."), Type::A).port(number));
    }
    let other = world.asked.last().unwrap().link;
    assert_ne!(other, asked.link);
    world.reply(other, &Reply::answer(&[EVIL]).to(&asked.bytes));
    assert_eq!(world.count(Counter::SuspectSocket), 1);
    assert!(world.answers_to(token).is_empty());
    world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer), [GOOD]);
}

#[test]
fn a_late_reply_to_an_earlier_try_is_used() {
    let (mut world, token, asked) = asked_one();
    world.run(Span::from_millis(300));
    assert_eq!(world.asked.len(), 2);
    world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer), [GOOD]);
    assert_eq!(world.engine.outbound_queries(), 0);
}

#[test]
fn a_reply_that_comes_twice_is_used_once() {
    let (mut world, token, asked) = asked_one();
    for _ in 0..3 {
        world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    }
    assert_eq!(world.answers_to(token).len(), 1);
    assert_eq!(world.count(Counter::SuspectUnknown), 2);
}

#[test]
fn truncated_replies_without_end_move_a_question_to_tcp_once() {
    let (mut world, token, asked) = asked_one();
    let truncated = Reply { flags: Flags::TC, ..Reply::default() };
    for _ in 0..5 {
        world.reply(asked.link, &truncated.to(&asked.bytes));
    }
    assert_eq!((world.count(Counter::TcpTruncation), world.asked.len()), (1, 2));
    world.reply_to(1, &Reply::answer(&[GOOD]));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer), [GOOD]);
}

#[test]
fn records_off_the_chain_from_the_question_are_dropped() {
    let mut world = World::new(settings());
    for qtype in [Type::A, Type::AAAA, Type::MX] {
        let question = ClientQuery { qtype, ..query("www.example.", Type::A) };
        let token = world.ask(&question.id(qtype.0));
        let asked = world.last();
        let real = match qtype {
            Type::A => GOOD.to_owned(),
            Type::AAAA => "www.example. 60 IN AAAA 2001:db8:1::1".to_owned(),
            _ => "www.example. 60 IN MX 10 mail.example.".to_owned(),
        };
        let reply =
            Reply::answer(&["bank.test. 60 IN A 203.0.113.66", &real, "bank.test. 60 IN NS evil.test."]);
        world.reply(asked.link, &reply.to(&asked.bytes));
        let lower: Vec<_> = world.answer_to(token).records(wire::Section::Answer);
        assert_eq!(lower, [real]);
    }
}
