//! Upstreams that reply, but incorrectly: lame servers, servers without EDNS, servers that always truncate, servers that
//! answer only some types. The tests check the answers and count the queries that they cost.

use crate::world::{
    Arrival, Delivery, Reply, Rng, SentQuery, Token, World, deliver, forwarders, query, records, settings,
};
use engine::upstream::BreakerState;
use engine::{Counter, Span, Transport};
use wire::{Flags, Rcode, Section, Type, ede};

const ROUND_TRIP: Span = Span::from_millis(10);

/// A world in which `behave` returns the reply of the upstream at this place in the configuration; `None`: no reply.
fn world(forwarded_to: &str, mut behave: impl FnMut(usize, &SentQuery) -> Option<Reply> + 'static) -> World {
    let mut settings = settings();
    settings.upstream.forwarders = forwarders(forwarded_to);
    let addresses = settings.upstream.forwarders.clone();
    let mut world = World::new(settings);
    world.set_upstreams(move |asked: &SentQuery, _: &mut Rng| {
        let place = addresses.iter().position(|&address| address == asked.upstream).expect("configured");
        let reply = behave(place, asked);
        reply.map(|reply| deliver(asked, ROUND_TRIP, &reply)).into_iter().collect()
    });
    world
}

/// The usual answer: an address, no AAAA.
fn good(asked: &SentQuery) -> Reply {
    match asked.qtype() {
        Type::A => Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]),
        _ => Reply::empty("example.", 60, 60),
    }
}

/// The reply of a server that does not resolve for us.
fn referral() -> Reply {
    Reply { ra: false, ..empty_with(&["example. 60 IN NS ns.example."]) }
}

/// NOERROR from a recursive server, without answer records, with these records in the authority section.
fn empty_with(authority: &[&str]) -> Reply {
    Reply { sections: [vec![], records(authority), vec![]], ..Reply::default() }
}

fn has_opt(asked: &SentQuery) -> bool {
    asked.message().opt().is_some()
}

fn question(world: &mut World, number: u16, qtype: Type, span: Span) -> Token {
    let question = query(&format!("n{number}.example."), qtype).id(number).port(number).edns(1232, false);
    let token = world.ask(&question);
    world.run(span);
    token
}

/// The number of upstream queries for a name, and how many of them had no EDNS.
fn times(world: &World, number: u16, qtype: Type) -> (usize, usize) {
    let name = format!("n{number}.example.");
    let asked: Vec<_> =
        world.asked.iter().filter(|asked| asked.name() == name && asked.qtype() == qtype).collect();
    (asked.len(), asked.iter().filter(|asked| !has_opt(asked)).count())
}

fn is_good(world: &World, token: Token) -> bool {
    let answer = world.answer_to(token);
    answer.rcode() == Rcode::NOERROR && !answer.records(Section::Answer).is_empty()
}

#[test]
fn a_referral_is_a_failure_and_not_an_empty_answer() {
    let lame: [fn() -> Reply; 4] = [
        referral,
        || Reply { ra: false, ..Reply::default() },
        // To the root, from a server that only claims to recurse.
        || empty_with(&[". 60 IN NS ns.root.test."]),
        || Reply { ra: false, ..empty_with(&[". 60 IN NS ns.root.test."]) },
    ];
    for lame in lame {
        let mut both = world("192.0.2.53 192.0.2.54", move |place, asked| {
            Some(if place == 0 { lame() } else { good(asked) })
        });
        let token = question(&mut both, 1, Type::AAAA, Span::from_millis(100));
        assert!(is_good(&both, token), "the other server knows");
        assert_eq!(both.count(Counter::Failover), 2);
        let mut alone = world("192.0.2.53", move |_, _| Some(lame()));
        let token = question(&mut alone, 1, Type::AAAA, Span::from_millis(100));
        let answer = alone.answer_to(token);
        assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(ede::NO_REACHABLE_AUTHORITY)));
        // One query for each lookup: a lame server is not tried twice.
        assert_eq!((alone.asked.len(), alone.count(Counter::Lame)), (2, 2));
    }
}

#[test]
fn an_empty_answer_of_a_resolver_is_accepted_without_soa() {
    let mut world = world("192.0.2.53", |_, _| Some(Reply::default()));
    let token = question(&mut world, 1, Type::A, Span::from_millis(100));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
}

/// RFC 1034 section 4.3.1: a server that recurses sends no referral. RFC 2308 section 2.2: the reply is NODATA; section 5: without SOA it
/// should not be cached. RFC 6147 section 5.1.7: then synthesized records live for 600 s at most.
#[test]
fn name_servers_in_an_empty_answer_of_a_resolver_are_no_referral() {
    let nodata = || empty_with(&["n1.example. 60 IN NS ns.n1.example.", "n1.example. 60 IN NS ns.test."]);
    for (ttl, given) in [(5_000, 600), (70, 70)] {
        let mut settings = settings();
        settings.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
        let mut world = World::with_cache(settings, 1 << 18);
        world.set_upstreams(move |asked, _| {
            let a = Reply::answer(&[&format!("{} {ttl} IN A 198.51.100.7", asked.name())]);
            let reply = if asked.qtype() == Type::A { a } else { nodata() };
            vec![deliver(asked, ROUND_TRIP, &reply)]
        });
        let synthesized = format!("n1.example. {given} IN AAAA 2001:db8:64::c633:6407");
        let token = question(&mut world, 1, Type::AAAA, Span::from_millis(100));
        assert_eq!(world.answer_to(token).records(Section::Answer), [synthesized]);
        // One query for each lookup, and no mark against the server.
        assert_eq!(
            (world.asked.len(), world.count(Counter::Lame), world.count(Counter::Failover)),
            (2, 0, 0)
        );
        assert!(world.engine.servers().all(|server| server.failures == 0));
        // The AAAA reply is not cached, the A reply is.
        let token = question(&mut world, 1, Type::AAAA, Span::from_millis(100));
        assert_eq!(world.answers_to(token).len(), 1);
        assert_eq!(times(&world, 1, Type::AAAA).0, 2);
        assert_eq!(times(&world, 1, Type::A).0, 1);
        // Of other types, the client gets the reply as it is, each time from the server.
        for count in 1..3 {
            let token = question(&mut world, 1, Type::MX, Span::from_millis(100));
            let answer = world.answer_to(token);
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, None));
            assert!(answer.records(Section::Answer).is_empty());
            assert_eq!(answer.records(Section::Authority).len(), 2);
            assert_eq!(times(&world, 1, Type::MX).0, count);
        }
    }
}

#[test]
fn a_server_that_refuses_everything_is_tried_last_until_it_recovers() {
    for failure in [Reply::rcode(Rcode::REFUSED), Reply::rcode(Rcode::SERVFAIL), referral()] {
        let healed = std::rc::Rc::new(std::cell::Cell::new(false));
        let is_healed = healed.clone();
        let mut world = world("192.0.2.53 192.0.2.54", move |place, asked| {
            Some(if place == 0 && !is_healed.get() { failure.clone() } else { good(asked) })
        });
        let first = forwarders("192.0.2.53")[0];
        for number in 0..8 {
            let token = question(&mut world, number, Type::A, Span::from_millis(30));
            assert!(is_good(&world, token));
        }
        let states = |world: &World| world.engine.servers().map(|server| server.state()).collect::<Vec<_>>();
        assert_eq!(states(&world), [BreakerState::Failing, BreakerState::Closed]);
        assert!(world.engine.servers().all(|server| !server.is_dead()), "it replies");
        let before = world.asked.len();
        for number in 100..200 {
            let token = question(&mut world, number, Type::A, Span::from_millis(50));
            assert!(is_good(&world, token));
        }
        let wasted = world.asked[before..].iter().filter(|asked| asked.upstream == first);
        let (probes, questions): (Vec<_>, Vec<_>) = wasted.partition(|asked| asked.name() == ".");
        assert_eq!(questions.len(), 0, "it is not queried while another one answers");
        assert!((2..=8).contains(&probes.len()), "{} probes in five seconds", probes.len());
        healed.set(true);
        world.run(Span::from_secs(6));
        assert_eq!(states(&world), [BreakerState::Closed, BreakerState::Closed]);
        question(&mut world, 300, Type::A, Span::from_millis(50));
        assert_eq!(world.asked.last().map(|asked| asked.upstream), Some(first));
    }
}

#[test]
fn names_that_fail_everywhere_count_against_no_server_and_are_tried_once_at_each() {
    let mut world = world("192.0.2.53 192.0.2.54 192.0.2.55", |_, _| Some(Reply::rcode(Rcode::SERVFAIL)));
    for number in 0..50 {
        let token = question(&mut world, number, Type::A, Span::from_millis(50));
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
        assert_eq!(times(&world, number, Type::A).0, 3);
    }
    assert!(world.engine.servers().all(|server| server.state() == BreakerState::Closed));
}

#[test]
fn a_reply_that_is_truncated_over_tcp_too_is_a_failure_after_one_query_each() {
    let cut = Reply { flags: Flags::TC, ..Reply::default() };
    let reply = cut.clone();
    let mut alone = world("192.0.2.53", move |_, _| Some(reply.clone()));
    let token = question(&mut alone, 1, Type::A, Span::from_millis(100));
    let answer = alone.answer_to(token);
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::TC)), (Rcode::SERVFAIL, false));
    assert_eq!((alone.asked.len(), alone.count(Counter::TruncatedOverTcp)), (2, 1));
    let mut both = world("192.0.2.53 192.0.2.54", move |place, asked| {
        Some(if place == 0 { cut.clone() } else { good(asked) })
    });
    let token = question(&mut both, 1, Type::A, Span::from_millis(100));
    assert!(is_good(&both, token));
}

#[test]
fn a_truncated_reply_whose_tcp_is_refused_fails_after_the_configured_tries() {
    let mut world = World::new(settings());
    world.set_upstreams(|asked: &SentQuery, _: &mut Rng| match asked.transport {
        Transport::Udp => vec![deliver(asked, ROUND_TRIP, &Reply { flags: Flags::TC, ..Reply::default() })],
        Transport::Tcp | Transport::Tls => {
            vec![Delivery { after: ROUND_TRIP, via: asked.link, arrival: Arrival::Failure }]
        }
    });
    let token = question(&mut world, 1, Type::A, Span::from_secs(4));
    assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    assert_eq!(world.asked.len(), 4, "once over UDP, three times over TCP");
    assert!(world.engine.servers().all(|server| !server.is_dead()), "over UDP it replies");
    assert_eq!(world.engine.outbound_queries(), 0);
}

#[test]
fn a_server_without_edns_is_detected_and_queried_without_it() {
    // FORMERR or NOTIMP without an OPT record; the query sent back with RCODE FORMERR; no reply.
    for kind in 0..4 {
        let mut world = world("192.0.2.53", move |_, asked| {
            let plain = Reply { edns: false, ..good(asked) };
            match (has_opt(asked), kind) {
                (false, _) => Some(plain),
                (true, 0) => Some(Reply { edns: false, ..Reply::rcode(Rcode::FORMERR) }),
                (true, 1) => Some(Reply { edns: false, ..Reply::rcode(Rcode::NOTIMP) }),
                (true, 2) => Some(Reply::rcode(Rcode::FORMERR).cookie("")),
                (true, _) => None,
            }
        });
        let mut spent = vec![];
        for number in 0..12 {
            let at = world.now;
            let token = question(&mut world, number, Type::A, Span::from_secs(2));
            assert!(is_good(&world, token), "kind {kind}, question {number}");
            let (asked, plain) = times(&world, number, Type::A);
            assert_eq!(plain, 1, "kind {kind}, question {number}");
            spent.push((asked, (world.answer_to(token).at - at).0 / 1_000_000));
        }
        println!("kind {kind}: {spent:?}");
        // After a few queries, none is repeated, and clients do not wait.
        assert!(spent[8..].iter().all(|&(asked, ms)| asked == 1 && ms == 10), "kind {kind}: {spent:?}");
        assert!(spent.iter().all(|&(asked, ms)| asked <= 3 && ms <= 800), "kind {kind}: {spent:?}");
        assert!(world.engine.servers().all(|server| !server.is_dead()));
        // Ten minutes later the server may support EDNS.
        world.run(Span::from_secs(600));
        question(&mut world, 100, Type::A, Span::from_secs(2));
        assert!(times(&world, 100, Type::A).0 > 1, "EDNS was not tried again");
    }
}

#[test]
fn one_reply_without_edns_does_not_turn_off_edns_for_a_server_that_supports_it() {
    let mut world = World::new(settings());
    world.set_upstreams(|asked: &SentQuery, _: &mut Rng| {
        let odd = asked.name().starts_with("n7.") && asked.transport == Transport::Udp;
        let forged = Reply { edns: false, ..Reply::rcode(Rcode::FORMERR) };
        vec![deliver(asked, ROUND_TRIP, &if odd { forged } else { good(asked) })]
    });
    for number in 0..20 {
        let token = question(&mut world, number, Type::A, Span::from_millis(100));
        assert!(is_good(&world, token));
        assert_eq!(times(&world, number, Type::A).1, 0, "question {number} went without EDNS");
    }
    assert!(world.count(Counter::TcpSuspicion) >= 1, "it was verified over TCP");
}

#[test]
fn a_server_replaced_by_one_without_edns_is_detected_over_tcp() {
    let is_old = std::rc::Rc::new(std::cell::Cell::new(false));
    let state = is_old.clone();
    let mut world = world("192.0.2.53", move |_, asked| {
        let formerr = Reply { edns: false, ..Reply::rcode(Rcode::FORMERR) };
        Some(match (state.get(), has_opt(asked)) {
            (false, _) => good(asked),
            (true, true) => formerr,
            (true, false) => Reply { edns: false, ..good(asked) },
        })
    });
    question(&mut world, 0, Type::A, Span::from_millis(100));
    is_old.set(true);
    for number in 1..20 {
        let token = question(&mut world, number, Type::A, Span::from_millis(200));
        assert!(is_good(&world, token), "question {number}");
    }
    assert_eq!(times(&world, 19, Type::A), (1, 1));
}

#[test]
fn a_server_that_drops_aaaa_queries_costs_time_but_no_answers() {
    let mut world = world("192.0.2.53", |_, asked| (asked.qtype() != Type::AAAA).then(|| good(asked)));
    for number in 0..200 {
        let at = world.now;
        let token = question(&mut world, number, Type::AAAA, Span::from_millis(2_000));
        assert!(is_good(&world, token), "question {number}");
        assert!(world.answer_to(token).at - at <= Span::from_millis(1_800), "question {number}");
        assert!(world.engine.servers().all(|server| !server.is_dead()), "question {number}");
        assert_eq!(times(&world, number, Type::A).0, 1);
    }
    // Its silence costs at most the configured tries, and what the retry budget allows for two questions a name.
    let repetitions = 64 + 2 * 200 / 20;
    let asked = world.asked.iter().filter(|asked| asked.qtype() == Type::AAAA).count();
    assert!(asked <= 3 * 200 + repetitions, "{asked}");
}
