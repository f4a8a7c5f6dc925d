//! Letter case of replies: the case drawn for a query (DNS 0x20) is checked in the reply, and then neither clients nor operators
//! see it.

use crate::world::{ClientQuery, SentQuery, World, name, query, settings};
use engine::settings::TlsForwarder;
use engine::{Counter, Transport};
use wire::{Flags, Message, Section, Type};

/// Reply of an upstream without name compression, which repeats the name of the query octet by octet: in the owner of a CNAME, in
/// its target below the name, and in the owner of the record there.
fn uncompressed(asked: &SentQuery) -> Vec<u8> {
    let question = asked.message().question();
    let owner = asked.message().qname();
    let mut reply = asked.bytes[..2].to_vec();
    reply.extend(b"\x81\x80\0\x01\0\x02\0\0\0\0");
    reply.extend(question);
    let target = [b"\x03CdN", owner].concat();
    reply.extend(owner);
    reply.extend(b"\0\x05\0\x01\0\0\0\x3c\0");
    reply.push(target.len() as u8);
    reply.extend(&target);
    reply.extend(target);
    match asked.qtype() {
        Type::A => reply.extend(b"\0\x01\0\x01\0\0\0\x3c\0\x04\xc6\x33\x64\x07"),
        _ => reply.extend(b"\0\x1c\0\x01\0\0\0\x3c\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"),
    }
    reply
}

/// Sends a query and the replies to it. Returns the owners and targets of the answer as they are written.
fn ask(world: &mut World, question: &ClientQuery, reply: fn(&SentQuery) -> Vec<u8>) -> Vec<String> {
    let token = world.ask(question);
    let mut at = world.asked.len().saturating_sub(1);
    while at < world.asked.len() {
        let asked = world.asked[at].clone();
        world.reply(asked.link, &reply(&asked));
        at += 1;
    }
    names(&world.answer_to(token).bytes)
}

fn names(message: &[u8]) -> Vec<String> {
    let message = Message::parse(message).unwrap();
    let records = message.records(Section::Answer);
    records
        .flat_map(|record| [Some(record.owner), record.target()])
        .flatten()
        .map(|name| name.to_string())
        .collect()
}

/// A query whose case is not likely to be drawn: a name of 40 letters.
fn long(qtype: Type) -> ClientQuery {
    query("abcdefghijklmnopqrst.uvwxyzabcdefghijklmn.", qtype)
}

const OWNER: &str = "abcdefghijklmnopqrst.uvwxyzabcdefghijklmn.";
const TARGET: &str = "CdN.abcdefghijklmnopqrst.uvwxyzabcdefghijklmn.";

#[test]
fn names_that_an_upstream_repeats_uncompressed_reach_the_client_in_lower_case() {
    for cache in [0, 1 << 20] {
        let mut world = World::with_cache(settings(), cache);
        for qtype in [Type::A, Type::AAAA] {
            for id in 0..3 {
                let answer = ask(&mut world, &long(qtype).id(id), uncompressed);
                assert_eq!(answer, [OWNER, TARGET, TARGET]);
            }
        }
        assert_eq!(world.asked.len(), if cache == 0 { 6 } else { 2 });
    }
}

#[test]
fn the_client_gets_its_own_case_where_names_point_at_the_question() {
    let compressed = |asked: &SentQuery| {
        let mut reply = asked.bytes[..2].to_vec();
        reply.extend(b"\x81\x80\0\x01\0\x01\0\0\0\0");
        reply.extend(asked.message().question());
        reply.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc6\x33\x64\x07");
        reply
    };
    let mut world = World::with_cache(settings(), 1 << 20);
    let mut question = long(Type::A);
    question.name.make_ascii_uppercase();
    assert_eq!(ask(&mut world, &question, compressed), [OWNER.to_uppercase()]);
    assert_eq!(ask(&mut world, &long(Type::A).id(2), compressed), [OWNER]);
    let found = world.engine.cached_entries(&name(OWNER), None, world.now);
    let bytes = found[0].message.as_ref().unwrap();
    assert_eq!(names(bytes), [OWNER], "as an operator sees it");
    assert_eq!(Message::parse(bytes).unwrap().qname(), name(OWNER));
}

#[test]
fn an_operator_sees_cached_names_in_lower_case() {
    let mut world = World::with_cache(settings(), 1 << 20);
    ask(&mut world, &long(Type::A), uncompressed);
    let found = world.engine.cached_entries(&name(OWNER), None, world.now);
    assert_eq!(names(found[0].message.as_ref().unwrap()), [OWNER, TARGET, TARGET]);
}

#[test]
fn the_case_of_a_reply_is_checked_before_it_is_lowered() {
    let mut world = World::new(settings());
    let token = world.ask(&long(Type::A));
    let asked = world.asked[0].clone();
    let mut forged = uncompressed(&asked);
    forged[13] ^= 0x20;
    world.reply(asked.link, &forged);
    assert_eq!((world.count(Counter::SuspectCase), world.answers_to(token).len()), (1, 0));
    let again = world.asked[1].clone();
    assert_eq!((again.transport, again.message().flags().contains(Flags::RD)), (Transport::Tcp, true));
    // Over TCP the case says nothing.
    let mut reply = uncompressed(&again);
    reply[13] ^= 0x20;
    world.reply(again.link, &reply);
    assert_eq!(world.answer_to(token).rcode(), wire::Rcode::NOERROR);
}

/// True if the name of a query has a capital letter: with 40 letters, one that is mixed has one.
fn has_capitals(asked: &SentQuery) -> bool {
    asked.message().qname().iter().any(u8::is_ascii_uppercase)
}

#[test]
fn without_mixed_case_questions_go_in_lower_case_and_a_reply_may_have_any() {
    let mut world = World::new(settings());
    let mut unmixed = settings();
    unmixed.upstream.mix_case = false;
    for (number, mixes) in [true, false, true, false].into_iter().enumerate() {
        world.engine.configure(if mixes { settings() } else { unmixed.clone() });
        let before = world.asked.len();
        let mut question = long(Type::A).id(number as u16);
        question.name.make_ascii_uppercase();
        let token = world.ask(&question);
        let asked = world.asked[before].clone();
        assert_eq!((asked.transport, has_capitals(&asked)), (Transport::Udp, mixes));
        let mut reply = uncompressed(&asked);
        reply[13] ^= 0x20;
        world.reply(asked.link, &reply);
        assert_eq!(world.answers_to(token).len(), usize::from(!mixes));
        assert_eq!(world.asked.len() - before, if mixes { 2 } else { 1 });
        if let Some(again) = world.asked.get(before + 1).cloned() {
            world.reply(again.link, &uncompressed(&again));
        }
        assert_eq!(world.answers_to(token).len(), 1);
    }
    assert_eq!(world.count(Counter::SuspectCase), 2);
}

#[test]
fn a_question_asked_before_a_reload_keeps_the_letters_that_it_was_asked_with() {
    let mut unmixed = settings();
    unmixed.upstream.mix_case = false;
    for mixes in [true, false] {
        let [first, second] =
            if mixes { [settings(), unmixed.clone()] } else { [unmixed.clone(), settings()] };
        let mut world = World::new(first);
        let token = world.ask(&long(Type::A));
        world.engine.configure(second);
        let asked = world.asked[0].clone();
        let mut reply = uncompressed(&asked);
        reply[13] ^= 0x20;
        world.reply(asked.link, &reply);
        assert_eq!(world.answers_to(token).len(), usize::from(!mixes));
    }
}

#[test]
fn over_connections_questions_are_in_lower_case() {
    for transport in [Transport::Tcp, Transport::Tls] {
        let mut settings = settings();
        if transport == Transport::Tcp {
            settings.upstream.transport = transport;
        } else {
            let address = settings.upstream.forwarders[0];
            settings.upstream.tls = vec![TlsForwarder { address, identity: 1 }];
        }
        let mut world = World::new(settings);
        let token = world.ask(&long(Type::A));
        let asked = world.asked[0].clone();
        assert_eq!((asked.transport, has_capitals(&asked)), (transport, false));
        let mut reply = uncompressed(&asked);
        reply[13] ^= 0x20;
        world.reply(asked.link, &reply);
        assert_eq!(world.answer_to(token).rcode(), wire::Rcode::NOERROR);
    }
    // So is a question that was first asked over UDP.
    let mut world = World::new(settings());
    world.ask(&long(Type::A));
    let first = world.asked[0].clone();
    let mut truncated = first.bytes[..2].to_vec();
    truncated.extend(b"\x83\x80\0\x01\0\0\0\0\0\0");
    truncated.extend(first.message().question());
    world.reply(first.link, &truncated);
    assert!(has_capitals(&first) && !has_capitals(&world.asked[1]));
}
