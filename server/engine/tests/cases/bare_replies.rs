//! Replies that are a header alone: servers that cannot read a query send it back so (RFC 1035 section 7.3 lets a server answer FORMERR
//! to what it cannot interpret; RFC 6891 section 7 expects FORMERR or NOTIMP of servers without EDNS).

use crate::world::{Arrival, Delivery, Reply, SentQuery, World, deliver, over, query, with_forwarders};
use engine::{Counter, Span, Transport};
use wire::header::{self, Flags};
use wire::{Rcode, Section, Type};

const ROUND_TRIP: Span = Span::from_millis(10);
const GOOD: &str = "www.example. 300 IN A 192.0.2.1";

/// A header with this RCODE and flags.
fn bare(asked: &SentQuery, rcode: Rcode, flags: Flags) -> Vec<u8> {
    let mut message = vec![0; wire::HEADER];
    header::set_id(&mut message, header::id(&asked.bytes));
    header::set_flags(&mut message, Flags(flags.0 | rcode.0).with(Flags::QR).with(Flags::RA));
    message
}

/// The same with an OPT record, whose upper bits of the RCODE are `extended`.
fn bare_with_opt(asked: &SentQuery, rcode: Rcode, extended: u8) -> Vec<u8> {
    let mut message = bare(asked, rcode, Flags(0));
    header::set_arcount(&mut message, 1);
    message.extend([0, 0, 41, 4, 208, extended, 0, 0, 0, 0, 0]);
    message
}

fn delivered(asked: &SentQuery, message: Vec<u8>) -> Vec<Delivery> {
    vec![Delivery { after: ROUND_TRIP, via: asked.link, arrival: Arrival::Message(message) }]
}

fn has_opt(asked: &SentQuery) -> bool {
    asked.message().opt().is_some()
}

#[test]
fn a_bare_error_of_a_server_without_edns_is_followed_by_a_query_without_it() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Tls] {
        for rcode in [Rcode::FORMERR, Rcode::NOTIMP] {
            let mut world = World::new(over(transport, with_forwarders("192.0.2.53")));
            world.set_upstreams(move |asked, _| match has_opt(asked) {
                true => delivered(asked, bare(asked, rcode, Flags(0))),
                false => vec![deliver(asked, ROUND_TRIP, &Reply { edns: false, ..Reply::answer(&[GOOD]) })],
            });
            for number in 0..8 {
                let before = world.asked.len();
                let at = world.now;
                let token = world.ask(&query("www.example.", Type::A).id(number));
                world.run(Span::from_secs(1));
                let answer = world.answer_to(token);
                assert_eq!(answer.records(Section::Answer), [GOOD], "{transport:?} {rcode}");
                // One exchange more, until four questions over UDP, or one where nobody can forge, have shown that the server has no EDNS.
                let needed = if transport == Transport::Udp { 4 } else { 1 };
                let expected = if number < needed { 2 } else { 1 };
                assert_eq!(world.asked.len() - before, expected, "{transport:?} {rcode} {number}");
                assert!(answer.at - at <= Span::from_millis(30), "{transport:?} {rcode}");
            }
        }
    }
}

#[test]
fn a_bare_reply_with_tc_moves_the_question_to_tcp() {
    let mut world = World::new(over(Transport::Udp, with_forwarders("192.0.2.53")));
    world.set_upstreams(|asked, _| match asked.transport {
        Transport::Udp => delivered(asked, bare(asked, Rcode::NOERROR, Flags::TC)),
        _ => vec![deliver(asked, ROUND_TRIP, &Reply::answer(&[GOOD]))],
    });
    let token = world.ask(&query("www.example.", Type::A));
    world.run(Span::from_secs(1));
    assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
    assert_eq!((world.asked.len(), world.count(Counter::TcpTruncation)), (2, 1));
}

#[test]
fn a_bare_error_over_a_connection_is_the_error_of_the_query() {
    for rcode in [Rcode::REFUSED, Rcode::SERVFAIL, Rcode::FORMERR] {
        // The first server fails, the second one has the answer; with one server, the client gets SERVFAIL at once.
        for servers in ["192.0.2.53", "192.0.2.53 192.0.2.54"] {
            let settings = over(Transport::Tcp, with_forwarders(servers));
            let mut world = World::new(settings);
            world.set_upstreams(move |asked, _| match asked.upstream.ip().to_string() == "192.0.2.53" {
                true => delivered(asked, bare(asked, rcode, Flags(0))),
                false => vec![deliver(asked, ROUND_TRIP, &Reply::answer(&[GOOD]))],
            });
            let token = world.ask(&query("www.example.", Type::A));
            world.run(Span::from_secs(10));
            let answer = world.answer_to(token);
            let expected = if servers.contains(' ') { Rcode::NOERROR } else { Rcode::SERVFAIL };
            assert_eq!(answer.rcode(), expected, "{rcode} {servers}");
            assert!(answer.at <= engine::Instant(0) + Span::from_millis(50), "{rcode} {servers}");
            assert!(world.asked.len() <= 3, "{rcode} {servers}: {}", world.asked.len());
        }
    }
}

#[test]
fn a_bare_error_over_udp_ends_no_question() {
    let mut world = World::new(over(Transport::Udp, with_forwarders("192.0.2.53")));
    world.set_upstreams(|_, _| vec![]);
    let token = world.ask(&query("www.example.", Type::A));
    let asked = world.asked[0].clone();
    for rcode in [Rcode::SERVFAIL, Rcode::REFUSED, Rcode::NXDOMAIN, Rcode::NOERROR] {
        world.reply(asked.link, &bare(&asked, rcode, Flags(0)));
    }
    // Nor does one with another ID, or with answers behind a missing question.
    let mut other = bare(&asked, Rcode::FORMERR, Flags(0));
    let id = header::id(&other);
    header::set_id(&mut other, id ^ 1);
    world.reply(asked.link, &other);
    let mut evil = Reply::answer(&["www.example. 300 IN A 203.0.113.66"]).to(&asked.bytes);
    header::set_qdcount(&mut evil, 0);
    world.reply(asked.link, &evil);
    assert_eq!((world.count(Counter::DroppedMalformedReply), world.asked.len()), (6, 1));
    world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
    assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
}

#[test]
fn a_forged_bare_error_turns_nothing_off_at_a_server_that_has_shown_edns() {
    let mut world = World::new(over(Transport::Udp, with_forwarders("192.0.2.53")));
    world.set_upstreams(|asked, _| vec![deliver(asked, ROUND_TRIP, &Reply::answer(&[GOOD]))]);
    world.ask(&query("www.example.", Type::A));
    world.run(Span::from_secs(1));
    for number in 0..6 {
        let before = world.asked.len();
        let token = world.ask(&query("www.example.", Type::A).id(number));
        let asked = world.asked[before].clone();
        assert!(has_opt(&asked));
        world.reply(asked.link, &bare(&asked, Rcode::FORMERR, Flags(0)));
        let next = world.asked[before + 1].clone();
        assert_eq!((next.transport, has_opt(&next)), (Transport::Tcp, true));
        world.run(Span::from_secs(1));
        assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
    }
}

#[test]
fn a_bare_reply_over_a_connection_that_is_no_error_fails_its_try_at_once() {
    for transport in [Transport::Tcp, Transport::Tls] {
        let mut world = World::new(over(transport, with_forwarders("192.0.2.53")));
        // BADVERS is 16 (RFC 6891 section 9): its upper bits are in the OPT record.
        world.set_upstreams(|asked, rng| match rng.below(2) {
            0 => delivered(asked, bare(asked, Rcode::NOERROR, Flags(0))),
            _ => delivered(asked, bare_with_opt(asked, Rcode::NOERROR, 1)),
        });
        for number in 0..6 {
            let (at, before) = (world.now, world.asked.len());
            let token = world.ask(&query("www.example.", Type::A).id(number));
            world.run(Span::from_secs(10));
            let answer = world.answer_to(token);
            assert_eq!(answer.rcode(), Rcode::SERVFAIL);
            assert!(
                answer.at - at <= Span::from_millis(50) && world.asked.len() - before <= 3,
                "{transport:?}"
            );
        }
    }
}

#[test]
fn a_bare_formerr_with_an_opt_record_does_not_turn_edns_off() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Tls] {
        let mut world = World::new(over(transport, with_forwarders("192.0.2.53")));
        world.set_upstreams(|_, _| vec![]);
        let token = world.ask(&query("www.example.", Type::A));
        let asked = world.asked[0].clone();
        world.reply(asked.link, &bare_with_opt(&asked, Rcode::FORMERR, 0));
        assert!(world.asked.iter().all(has_opt), "{transport:?}");
        if transport == Transport::Udp {
            world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
            assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
        } else {
            assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL, "{transport:?}");
        }
    }
}

#[test]
fn octets_behind_a_bare_header_make_it_no_reply() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Tls] {
        let mut world = World::new(over(transport, with_forwarders("192.0.2.53")));
        let token = world.ask(&query("www.example.", Type::A));
        let asked = world.asked[0].clone();
        let formerr = bare(&asked, Rcode::FORMERR, Flags::TC);
        let with_opt = bare_with_opt(&asked, Rcode::FORMERR, 0);
        let mut without_count = with_opt.clone();
        header::set_arcount(&mut without_count, 0);
        let mut short = with_opt.clone();
        short.pop();
        for garbage in [[&formerr[..], &[0]].concat(), [&with_opt[..], &[0]].concat(), without_count, short] {
            world.reply(asked.link, &garbage);
        }
        assert_eq!((world.count(Counter::DroppedMalformedReply), world.asked.len()), (4, 1), "{transport:?}");
        world.reply(asked.link, &Reply::answer(&[GOOD]).to(&asked.bytes));
        assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
    }
}

#[test]
fn a_bare_error_that_asks_for_nothing_new_ends_no_question_over_udp() {
    let mut world = World::new(over(Transport::Udp, with_forwarders("192.0.2.53")));
    world.set_upstreams(|_, _| vec![]);
    let token = world.ask(&query("www.example.", Type::A));
    let first = world.asked[0].clone();
    for _ in 0..3 {
        world.reply(first.link, &bare(&first, Rcode::FORMERR, Flags(0)));
    }
    let second = world.asked[1].clone();
    world.reply(second.link, &bare(&second, Rcode::FORMERR, Flags(0)));
    // One asks for the query without EDNS; the others change nothing, not even what is known about the server.
    assert_eq!((world.asked.len(), has_opt(&second), world.answers_to(token).len()), (2, false, 0));
    assert_eq!(world.count(Counter::DroppedMalformedReply), 3);
    assert_eq!(world.engine.servers().map(|server| server.replies()).sum::<u64>(), 0);
    world.reply(second.link, &Reply { edns: false, ..Reply::answer(&[GOOD]) }.to(&second.bytes));
    assert_eq!(world.answer_to(token).records(Section::Answer), [GOOD]);
    assert_eq!(world.engine.servers().map(|server| server.replies()).sum::<u64>(), 1);
}
