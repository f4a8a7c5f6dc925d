//! Client messages that are not ordinary queries.

use crate::world::{ClientQuery, Reply, World, client, query, settings};
use engine::local::server_names::ServerNames;
use engine::{Counter, Span};
use wire::{Class, Flags, NSID, Opcode, Rcode, Section, Type};

fn world() -> World {
    World::new(settings())
}

/// The RCODE of the immediate answer to a message, if there is one.
fn answered(message: &[u8]) -> Option<Rcode> {
    let mut world = world();
    world.send_message(&client("2001:db8:c::1", 4000), message);
    world.assert_conservation();
    assert!(world.asked.is_empty(), "forwarded to an upstream");
    match &world.answers[..] {
        [] => None,
        [answer] => {
            assert_eq!(answer.id(), wire::header::id(message));
            let flags = wire::header::flags(&answer.bytes);
            assert!(flags.contains(Flags::QR));
            Some(Rcode(
                wire::Message::parse(&answer.bytes).map_or(flags.rcode().0, |message| message.rcode().0),
            ))
        }
        all => panic!("{} answers", all.len()),
    }
}

fn question() -> ClientQuery {
    query("www.example.", Type::AAAA)
}

#[test]
fn a_response_is_never_answered_whatever_it_holds() {
    let mut world = world();
    let valid = question().flags(Flags::QR.with(Flags::RD)).bytes();
    for flags in 0..=u8::MAX {
        for length in [12, valid.len() - 1, valid.len()] {
            let mut message = valid[..length].to_vec();
            message[2] = 0x80 | flags >> 1;
            message[3] = flags.rotate_right(1);
            world.send_message(&client("2001:db8:c::1", 4000), &message);
        }
    }
    assert_eq!((world.answers.len(), world.asked.len()), (0, 0));
    assert_eq!(world.count(Counter::DroppedResponse), 3 * 256);
    world.assert_conservation();
}

#[test]
fn less_than_a_header_is_dropped() {
    for length in 0..12 {
        assert_eq!(answered(&vec![0; length]), None);
    }
}

#[test]
fn another_number_of_questions_than_one_is_a_format_error() {
    //= RFC 9619 section 4: requirement 51
    assert_eq!(answered(&question().bytes()[..12]), Some(Rcode::FORMERR));
    for count in [0, 2, 0xffff] {
        let mut message = question().bytes();
        wire::header::set_qdcount(&mut message, count);
        assert_eq!(answered(&message), Some(Rcode::FORMERR), "{count} announced");
    }
    let mut two = question().bytes();
    two.extend(question().question());
    wire::header::set_qdcount(&mut two, 2);
    assert_eq!(answered(&two), Some(Rcode::FORMERR));
}

#[test]
fn other_operations_are_not_implemented_whatever_their_sections_hold() {
    for opcode in 1..16 {
        let flags = Flags::RD.with_opcode(Opcode(opcode));
        assert_eq!(answered(&question().flags(flags).bytes()), Some(Rcode::NOTIMP), "{opcode}");
        // A message of DNS Stateful Operations has no question (RFC 8490 section 5.4); the other sections of an update
        // may contain more than the engine parses.
        let mut bare = question().flags(flags).bytes()[..12].to_vec();
        wire::header::set_qdcount(&mut bare, 0);
        assert_eq!(answered(&bare), Some(Rcode::NOTIMP), "{opcode} without question");
    }
}

#[test]
fn an_unknown_edns_version_is_refused_with_version_0() {
    // RFC 6891 section 6.1.3.
    let message = ClientQuery { edns_version: 1, ..question().edns(1232, true) }.bytes();
    let mut world = world();
    world.send_message(&client("2001:db8:c::1", 4000), &message);
    let answer = world.answers[0].message();
    assert_eq!(answer.rcode(), Rcode::BADVERS);
    assert_eq!(answer.opt().map(|opt| opt.version()), Some(0));
    assert_eq!(answer.question(), question().question());
    assert!(world.asked.is_empty());
}

#[test]
fn transfers_are_refused() {
    for qtype in [Type::AXFR, Type::IXFR] {
        assert_eq!(answered(&query("example.", qtype).bytes()), Some(Rcode::REFUSED), "{qtype}");
        assert_eq!(answered(&query("example.", qtype).tcp(1).bytes()), Some(Rcode::REFUSED), "{qtype}");
    }
}

#[test]
fn types_that_are_not_for_queries_are_format_errors() {
    for qtype in [Type::OPT, Type::TSIG, Type::TKEY, Type::MAILA, Type::MAILB] {
        assert_eq!(answered(&query("example.", qtype).bytes()), Some(Rcode::FORMERR), "{qtype}");
    }
}

#[test]
fn a_malformed_question_is_a_format_error_without_the_question() {
    for message in [
        // A pointer in the question, an unknown label type, a question cut short.
        [&question().bytes()[..12], &[0xc0, 12, 0, 28, 0, 1]].concat(),
        [&question().bytes()[..12], &[0x41, 12, 0, 28, 0, 1]].concat(),
        question().bytes()[..20].to_vec(),
    ] {
        assert_eq!(answered(&message), Some(Rcode::FORMERR), "{message:02x?}");
    }
}

#[test]
fn the_longest_name_passes_in_both_directions() {
    let label = "a".repeat(63);
    let name = format!("{label}.{label}.{label}.{}.", "b".repeat(61));
    let mut world = world();
    let token = world.ask(&query(&name, Type::AAAA).edns(1232, true));
    for records in [vec![], vec![format!("{name} 60 IN A 198.51.100.7")]] {
        let asked = world.last();
        let lines: Vec<&str> = records.iter().map(String::as_str).collect();
        world.reply(asked.link, &crate::world::Reply::answer(&lines).to(&asked.bytes));
    }
    assert_eq!(world.answer_to(token).addresses(), ["2001:db8:64::c633:6407"]);
}

#[test]
fn an_answer_or_query_that_the_datapath_cannot_send_is_counted() {
    let mut world = world();
    world.outbox.no_answers = true;
    world.ask(&query("example.", Type::AXFR));
    assert_eq!(world.count(Counter::DroppedAnswer), 1);
    world.assert_conservation();
    world.outbox.no_answers = false;
    for (no_links, no_questions) in [(true, false), (false, true)] {
        let mut world = World::new(settings());
        world.outbox.no_links = no_links;
        world.outbox.no_questions = no_questions;
        let token = world.ask(&question());
        world.run(engine::Span::from_secs(10));
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
        assert!(world.count(Counter::DroppedQuestion) > 0);
        assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    }
}

/// Settings of a server that tells who it is.
fn named() -> engine::Settings {
    let server_names = ServerNames { identity: b"dns1.example"[..].into(), version: b"1.0"[..].into() };
    engine::Settings { server_names, ..settings() }
}

/// RFC 4892 section 2: no server can answer about another one.
#[test]
fn questions_of_class_ch_are_about_this_server_and_never_forwarded() {
    let ask = |settings: engine::Settings, name: &str, qtype| {
        let mut world = World::with_cache(settings, 1 << 20);
        let token = world.ask(&ClientQuery { class: Class::CH, ..query(name, qtype) }.edns(1232, false));
        world.assert_conservation();
        assert!(world.asked.is_empty(), "{name} forwarded to an upstream");
        let answer = world.answer_to(token);
        (answer.message().rcode(), answer.records(Section::Answer))
    };
    let text = |name: &str, text: &str| vec![format!("{} 0 CH TXT \"{text}\"", name.to_ascii_lowercase())];
    for (name, told) in [
        ("id.server.", "dns1.example"),
        ("HostName.bind.", "dns1.example"),
        ("version.server.", "1.0"),
        ("version.bind.", "1.0"),
    ] {
        assert_eq!(ask(named(), name, Type::TXT), (Rcode::NOERROR, text(name, told)));
        assert_eq!(ask(named(), name, Type::ANY), (Rcode::NOERROR, text(name, told)));
        assert_eq!(ask(named(), name, Type::A), (Rcode::NOERROR, vec![]));
        assert_eq!(ask(settings(), name, Type::TXT), (Rcode::REFUSED, vec![]), "not told");
    }
    for name in [".", "bind.", "authors.bind.", "x.id.server.", "localhost.", "www.example."] {
        assert_eq!(ask(named(), name, Type::TXT), (Rcode::REFUSED, vec![]), "{name}");
    }
}

/// RFC 5001 section 2.1: whoever asks gets the identity, with every answer, and nobody else does.
#[test]
fn the_identity_is_told_over_any_transport_to_those_who_ask_for_it() {
    for settings in [named(), settings()] {
        let is_told = !settings.server_names.identity.is_empty();
        let mut world = World::with_cache(settings, 1 << 20);
        world.set_replies(Span::from_millis(20), |_| Reply::answer(&["www.example. 600 IN A 192.0.2.1"]));
        let mut told = |query: &ClientQuery| {
            let token = world.ask(query);
            world.run(Span::from_millis(100));
            let message = world.answer_to(token);
            let message = message.message();
            let opt = message.opt().expect("an OPT record");
            opt.options().find(|(code, _)| *code == NSID).map(|(_, data)| data.to_vec())
        };
        let asks = || query("www.example.", Type::A).edns(1232, false);
        let expected = is_told.then(|| b"dns1.example".to_vec());
        assert_eq!(told(&asks().option((NSID, vec![]))), expected, "from the upstream");
        assert_eq!(told(&asks().option((NSID, vec![]))), expected, "from the cache");
        assert_eq!(told(&asks().tcp(1).option((NSID, vec![]))), expected, "over TCP");
        assert_eq!(told(&asks()), None, "not asked for");
        let refused = query("www.example.", Type::AXFR).edns(1232, false).option((NSID, vec![]));
        assert_eq!(told(&refused), expected, "with an error");
    }
}
