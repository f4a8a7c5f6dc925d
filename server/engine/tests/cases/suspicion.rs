//! The way back from suspicion: an upstream that changes letters or returns old cookies, and is not there over TCP, is served after
//! independent replies agree, and its habit is learned. No forger wins by that.

use crate::world::{Arrival, Delivery, Reply, SentQuery, World, cookie_of, deliver, query, with_forwarders};
use engine::{Counter, Settings, Span, Transport};
use std::collections::HashSet;
use wire::{Flags, Rcode, Section, Type};

const ROUND_TRIP: Span = Span::from_millis(10);

fn one_upstream() -> Settings {
    with_forwarders("192.0.2.53")
}

/// The true answer for a name.
fn truth(asked: &SentQuery) -> Reply {
    Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name().to_ascii_lowercase())])
}

/// A reply whose question is in lower case.
fn in_lower_case(asked: &SentQuery, reply: &Reply) -> Delivery {
    let mut bytes = reply.to(&asked.bytes);
    let length = asked.message().question_name().labels().map(|label| label.len() + 1).sum::<usize>();
    bytes[wire::HEADER..wire::HEADER + length].make_ascii_lowercase();
    Delivery { after: ROUND_TRIP, via: asked.link, arrival: Arrival::Message(bytes) }
}

/// A connection that is refused.
fn refused(asked: &SentQuery) -> Vec<Delivery> {
    vec![Delivery { after: ROUND_TRIP, via: asked.link, arrival: Arrival::Failure }]
}

fn count(asked: &[SentQuery], transport: Transport) -> usize {
    asked.iter().filter(|query| query.transport == transport).count()
}

/// Asks for a new name, and returns the queries that this took.
fn ask(world: &mut World, number: u16) -> Vec<SentQuery> {
    let before = world.asked.len();
    let (name, start) = (format!("some.name{number}.example"), world.now);
    let token = world.ask(&query(&name, Type::A).id(number));
    world.run(Span::from_secs(2));
    let answer = world.answer_to(token);
    assert_eq!(answer.records(Section::Answer), [format!("{name}. 60 IN A 198.51.100.7")], "{number}");
    assert!(answer.at - start < Span::from_millis(200), "{number}");
    world.asked[before..].to_vec()
}

#[test]
fn an_upstream_without_tcp_that_lower_cases_questions_is_served_and_learned() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, _| match asked.transport {
        Transport::Udp => vec![in_lower_case(asked, &truth(asked))],
        _ => refused(asked),
    });
    for number in 0..4 {
        let asked = ask(&mut world, number);
        let over_udp: Vec<_> = asked.iter().filter(|query| query.transport == Transport::Udp).collect();
        // The first one, and three whose replies agree.
        assert_eq!((over_udp.len(), asked.len() - over_udp.len()), (4, 1), "{number}");
        let ports: HashSet<u16> = over_udp.iter().map(|query| query.port).collect();
        let ids: HashSet<u16> = over_udp.iter().map(|query| query.message().id()).collect();
        assert_eq!((ports.len(), ids.len()), (4, 4), "{number}");
    }
    for number in 4..20 {
        let asked = ask(&mut world, number);
        assert_eq!(asked.len(), 1, "{number}");
        assert!(!asked[0].message().qname().iter().any(u8::is_ascii_uppercase), "{number}");
    }
    // After ten minutes one question is enough to learn it again.
    world.run(Span::from_secs(600));
    assert_eq!(ask(&mut world, 20).len(), 5);
    assert_eq!(ask(&mut world, 21).len(), 1);
    world.assert_conservation();
}

#[test]
fn an_upstream_with_tcp_that_lower_cases_questions_is_learned() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, _| match asked.transport {
        Transport::Udp => vec![in_lower_case(asked, &truth(asked))],
        _ => vec![deliver(asked, ROUND_TRIP, &truth(asked))],
    });
    for number in 0..10 {
        assert_eq!(ask(&mut world, number).len(), if number < 4 { 2 } else { 1 }, "{number}");
    }
}

#[test]
fn letters_are_mixed_as_long_as_an_upstream_returns_them_now_and_then() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, _| match asked.transport {
        Transport::Udp if !asked.name().to_ascii_lowercase().contains("name3") => {
            vec![in_lower_case(asked, &truth(asked))]
        }
        _ => vec![deliver(asked, ROUND_TRIP, &truth(asked))],
    });
    for number in [0, 1, 2, 3, 4, 5, 6] {
        assert_eq!(ask(&mut world, number).len(), if number == 3 { 1 } else { 2 }, "{number}");
    }
}

#[test]
fn an_upstream_without_tcp_that_returns_an_old_cookie_is_served_and_asked_without_one() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, _| {
        let old = Reply { wrong_cookie: true, ..truth(asked).cookie("0102030405060708") };
        let reply = if cookie_of(&asked.message()).is_some() { old } else { truth(asked) };
        match asked.transport {
            Transport::Udp => vec![deliver(asked, ROUND_TRIP, &reply)],
            _ => refused(asked),
        }
    });
    let asked = ask(&mut world, 0);
    assert_eq!((count(&asked, Transport::Udp), asked.len()), (4, 5));
    for number in 1..10 {
        assert_eq!(ask(&mut world, number).len(), 1, "{number}");
    }
}

#[test]
fn replies_that_say_different_things_are_not_believed() {
    let mut world = World::new(one_upstream());
    let mut number = 0;
    world.set_upstreams(move |asked, _| {
        number += 1;
        let reply = Reply::answer(&[&format!("{} 60 IN A 192.0.2.{number}", asked.name())]);
        match asked.transport {
            Transport::Udp => vec![in_lower_case(asked, &reply)],
            _ => refused(asked),
        }
    });
    let token = world.ask(&query("some.name.example", Type::A));
    world.run(Span::from_secs(20));
    assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    assert!(world.asked.len() <= 16, "{} queries", world.asked.len());
    world.assert_conservation();
}

/// Over TCP nobody forges, so a server that can be asked there goes before a comparison over UDP.
#[test]
fn another_server_is_asked_over_tcp_before_replies_are_compared() {
    let mut world = World::new(with_forwarders("192.0.2.53 192.0.2.54"));
    let mut first = None;
    world.set_upstreams(move |asked, _| {
        let is_first = *first.get_or_insert(asked.upstream) == asked.upstream;
        let forged = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
        match asked.transport {
            Transport::Udp => vec![in_lower_case(asked, &forged)],
            _ if is_first => refused(asked),
            _ => vec![deliver(asked, ROUND_TRIP, &truth(asked))],
        }
    });
    let asked = ask(&mut world, 0);
    assert_eq!((count(&asked, Transport::Udp), asked.len()), (1, 3));
    assert_eq!(world.count(Counter::SuspectCase), 1);
}

/// The upstream has no TCP, changes letters and knows no EDNS: three replies agree on FORMERR, and the reply to the query without EDNS has
/// other letters as well.
#[test]
fn what_is_agreed_on_may_ask_for_another_form() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, _| {
        let reply = if asked.message().opt().is_some() { Reply::rcode(Rcode::FORMERR) } else { truth(asked) };
        match asked.transport {
            Transport::Udp => vec![in_lower_case(asked, &Reply { edns: false, ..reply })],
            _ => refused(asked),
        }
    });
    for number in 0..8 {
        let asked = ask(&mut world, number);
        assert!(asked.len() <= 11, "{number}: {} queries", asked.len());
    }
    assert_eq!(ask(&mut world, 8).len(), 1, "both habits are learned");
}

/// The forger knows the port of the first query, whose letters are few, and sends all IDs while the upstream is asked again from other
/// ports. What was sent from the first port counts no more.
#[test]
fn a_forger_who_knows_the_first_port_wins_nothing_while_replies_are_compared() {
    let mut world = World::new(one_upstream());
    let mut known = None;
    world.set_upstreams(move |asked, rng| {
        if asked.transport != Transport::Udp {
            return refused(asked);
        }
        let first: &SentQuery = known.get_or_insert_with(|| asked.clone());
        if first.message().qname() != asked.message().qname() || first.link == asked.link {
            known = Some(asked.clone());
            // One wrong ID raises the suspicion.
            let reply = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
            let mut bytes = reply.to(&asked.bytes);
            wire::header::set_id(&mut bytes, asked.message().id() ^ 1 << rng.below(16));
            return vec![Delivery {
                after: Span::from_millis(1),
                via: asked.link,
                arrival: Arrival::Message(bytes),
            }];
        }
        // The right ID is among all of them.
        let reply = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", first.name())]);
        vec![
            Delivery {
                after: Span::from_millis(1),
                via: first.link,
                arrival: Arrival::Message(reply.to(&first.bytes)),
            },
            deliver(asked, ROUND_TRIP, &truth(asked)),
        ]
    });
    for number in 0..100 {
        ask(&mut world, number);
    }
    assert!(world.count(Counter::SuspectAbandoned) >= 100);
}

/// A forger of bare replies with TC needs no more than an ID and a port to move a question to TCP, and there is none.
#[test]
fn bare_replies_silence_no_question_where_tcp_is_missing() {
    let mut world = World::new(one_upstream());
    let mut known = HashSet::new();
    world.set_upstreams(move |asked, _| {
        if asked.transport != Transport::Udp {
            return refused(asked);
        }
        let mut bare = [0; wire::HEADER];
        wire::header::set_id(&mut bare, asked.message().id());
        wire::header::set_flags(&mut bare, Flags::QR.with(Flags::TC));
        let arrival = Arrival::Message(bare.to_vec());
        let mut all = vec![deliver(asked, ROUND_TRIP, &truth(asked))];
        if known.insert(asked.name().to_ascii_lowercase()) {
            all.push(Delivery { after: Span::from_millis(1), via: asked.link, arrival });
        }
        all
    });
    for number in 0..100 {
        assert_eq!(ask(&mut world, number).len(), 3, "{number}");
    }
}

#[test]
fn a_reply_that_fits_in_everything_ends_the_comparison() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, rng| match asked.transport {
        // The forged ones come first, say the same and have guessed port and ID, and sometimes the letters are right.
        Transport::Udp if rng.below(2) == 0 => vec![in_lower_case(asked, &truth(asked))],
        Transport::Udp => vec![deliver(asked, ROUND_TRIP, &truth(asked))],
        _ => refused(asked),
    });
    for number in 0..50 {
        ask(&mut world, number);
    }
    assert!(count(&world.asked, Transport::Udp) <= 50 * 3, "{}", world.asked.len());
}

/// The upstream has no TCP, but cookies. The forger knows all but the cookie, is faster, and always says the same.
#[test]
fn a_forger_who_agrees_with_himself_wins_nothing_where_cookies_are_expected() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, _| {
        if asked.transport != Transport::Udp {
            return refused(asked);
        }
        let real = deliver(asked, Span::from_millis(5), &truth(asked).cookie("0102030405060708"));
        if asked.name().to_ascii_lowercase().contains("name0.") {
            return vec![real];
        }
        let forged = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
        vec![deliver(asked, Span::from_millis(1), &Reply { edns: false, ..forged }), real]
    });
    for number in 0..1_000 {
        ask(&mut world, number);
    }
    assert!(world.count(Counter::SuspectCookie) >= 999);
    assert_eq!(world.count(Counter::UpstreamCookieLost), 0);
}

/// The forger knows the port of every query and sends some IDs with one forged answer, before the upstream that has no TCP replies.
#[test]
fn a_forger_who_guesses_ids_wins_nothing_although_tcp_is_missing() {
    let mut world = World::new(one_upstream());
    world.set_upstreams(|asked, rng| {
        if asked.transport != Transport::Udp {
            return refused(asked);
        }
        let forged = |id: u16| {
            let reply = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
            let mut delivery = in_lower_case(asked, &reply);
            if let Arrival::Message(bytes) = &mut delivery.arrival {
                wire::header::set_id(bytes, id);
            }
            Delivery { after: Span::from_millis(1), ..delivery }
        };
        let real_id = asked.message().id();
        let guesses = (0..3).map(|_| rng.below(65_536) as u16).filter(|&id| id != real_id);
        let mut all: Vec<Delivery> = guesses.map(forged).collect();
        all.push(in_lower_case(asked, &truth(asked)));
        all
    });
    for number in 0..1_000 {
        let token = world.ask(&query(&format!("n{number}.example"), Type::A).id(number));
        world.run(Span::from_secs(5));
        let answer = world.answer_to(token);
        let is_forged = answer.records(Section::Answer).iter().any(|record| record.contains("192.0.2.66"));
        assert!(!is_forged, "{number}");
    }
    world.assert_conservation();
}
