//! Timeouts, retransmissions and selection of upstream servers that are slow, silent, unreachable or many.

use crate::world::{
    Arrival, Delivery, Reply, Rng, SentQuery, World, deliver, forwarders, query, settings, with_forwarders,
};
use engine::settings::Select;
use engine::{Counter, Instant, Machine, Span, Transport};
use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::{Rcode, Type};

fn address(text: &str) -> SocketAddr {
    forwarders(text)[0]
}

/// The times when queries for a name were sent.
fn times(world: &World, name: &str) -> Vec<Instant> {
    world.asked.iter().filter(|asked| asked.name() == name).map(|asked| asked.at).collect()
}

fn ms(span: Span) -> u64 {
    span.0.div_ceil(1_000_000)
}

#[test]
fn timeouts_follow_the_measured_round_trip_double_and_are_capped() {
    let mut world = World::new(settings());
    world.set_upstreams(|asked, _| {
        let silent = asked.name().starts_with("silent");
        let delay = Span::from_millis(120);
        if silent { vec![] } else { vec![deliver(asked, delay, &Reply::default())] }
    });
    // Before the first measurement: 250 ms, 500 ms, and the configured timeout for the last attempt.
    let token = world.ask(&query("silent1.example.", Type::A));
    world.run(Span::from_secs(10));
    let at = times(&world, "silent1.example.");
    assert_eq!([ms(at[1] - at[0]), ms(at[2] - at[1]), at.len() as u64], [250, 500, 3]);
    let answer = world.answer_to(token);
    assert_eq!((ms(answer.at - at[2]), answer.rcode()), (1000, Rcode::SERVFAIL));
    // After many replies in 120 ms: a little more than that.
    for number in 0..60 {
        world.ask_and_wait(number, Span::from_millis(200));
    }
    world.ask(&query("silent2.example.", Type::A).id(2));
    world.run(Span::from_secs(10));
    let at = times(&world, "silent2.example.");
    assert_eq!(at.len(), 3);
    let (first, second) = (ms(at[1] - at[0]), ms(at[2] - at[1]));
    // A quarter more, because the variance has decayed.
    assert!((149..=155).contains(&first), "{first} ms");
    assert!((2 * first - 2..=2 * first + 1).contains(&second), "{second} ms");
}

#[test]
fn configured_tries_and_timeouts_are_respected() {
    for tries in 1..=8 {
        for timeout in [30, 400, 2000] {
            let mut settings = with_forwarders("192.0.2.53 192.0.2.54 192.0.2.55");
            settings.upstream.tries = tries;
            settings.upstream.timeout = Span::from_millis(timeout);
            let mut world = World::new(settings);
            let token = world.ask_and_wait(1, Span::from_millis(timeout * u64::from(tries) + 10));
            let at = times(&world, "n1.example.");
            assert_eq!(at.len(), usize::from(tries));
            let answer = world.answer_to(token);
            assert_eq!((answer.rcode(), ms(answer.at - *at.last().unwrap())), (Rcode::SERVFAIL, timeout));
            for pair in at.windows(2) {
                assert!(pair[1] - pair[0] <= Span::from_millis(timeout));
            }
        }
    }
}

#[test]
fn a_silent_server_is_detected_skipped_probed_and_used_again() {
    let alive = Rc::new(Cell::new(false));
    let state = alive.clone();
    let mut world = World::new(with_forwarders("192.0.2.53 192.0.2.54"));
    let first = address("192.0.2.53");
    world.set_upstreams(move |asked, _| {
        let silent = asked.upstream == first && !state.get();
        if silent { vec![] } else { vec![deliver(asked, Span::from_millis(10), &Reply::default())] }
    });
    for number in 0..8 {
        let token = world.ask_and_wait(number, Span::from_millis(400));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR, "{number}");
    }
    // Silence alone proves nothing: the server is probed, and does not reply to the probe either.
    let dead = |world: &World| world.engine.servers().map(|server| server.is_dead()).collect::<Vec<_>>();
    assert_eq!(dead(&world), [false, false]);
    world.run(Span::from_millis(500));
    assert_eq!(dead(&world), [true, false]);
    // It is skipped, so clients do not wait; and it is probed, less and less often, with a query for the root.
    let before = world.asked.len();
    for number in 100..120 {
        let token = world.ask_and_wait(number, Span::from_millis(100));
        let answer = world.answer_to(token);
        let asked = times(&world, &format!("n{number}.example."));
        assert_eq!((answer.at - asked[0], asked.len()), (Span::from_millis(10), 1));
    }
    let to_first: Vec<_> = world.asked[before..].iter().filter(|asked| asked.upstream == first).collect();
    assert!((2..=5).contains(&to_first.len()), "{} probes in two seconds", to_first.len());
    assert!(to_first.iter().all(|asked| asked.name() == "." && asked.qtype() == Type::NS));
    // It recovers: the next probe detects it, and it is the first server again.
    alive.set(true);
    world.run(Span::from_millis(5_100));
    assert!(world.engine.servers().all(|server| !server.is_dead()));
    world.ask_and_wait(200, Span::from_millis(100));
    assert_eq!(world.asked.last().unwrap().upstream, first);
    world.run(Span::from_secs(5));
    assert_eq!((world.engine.outbound_queries(), world.engine.pending()), (0, 0));
}

#[test]
fn the_timeout_of_a_probe_is_among_the_deadlines() {
    let mut settings = settings();
    settings.upstream.timeout = Span::from_millis(50);
    let mut world = World::new(settings);
    for number in 0..4 {
        world.ask_and_wait(number, Span::from_millis(200));
    }
    assert!(world.engine.servers().all(|server| server.is_dead()));
    // Advance from deadline to deadline, as a driver that sleeps in between.
    for _ in 0..20 {
        let next = world.engine.expire(world.now, &mut world.outbox).expect("a probe is always due");
        world.outbox.asked.clear();
        let outbound_queries = world.engine.outbound_queries();
        assert!(
            outbound_queries == 0 || next - world.now <= Span::from_millis(51),
            "{outbound_queries} probes, {:?}",
            next - world.now
        );
        world.now = next;
    }
}

#[test]
fn after_an_icmp_error_the_next_server_is_queried_at_once() {
    let mut world = World::new(with_forwarders("192.0.2.53 192.0.2.54"));
    let first = address("192.0.2.53");
    world.set_upstreams(move |asked, _| {
        if asked.upstream == first {
            vec![Delivery { after: Span::from_millis(1), via: asked.link, arrival: Arrival::Failure }]
        } else {
            vec![deliver(asked, Span::from_millis(5), &Reply::default())]
        }
    });
    for number in 0..50 {
        let token = world.ask_and_wait(number, Span::from_millis(20));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    assert!(world.count(Counter::Unreachable) >= 2);
    let dead: Vec<bool> = world.engine.servers().map(|server| server.is_dead()).collect();
    assert_eq!(dead, [true, false]);
    assert!(world.engine.open_links() <= 2, "{} links leaked", world.engine.open_links());
}

#[test]
fn an_icmp_error_on_an_old_link_does_not_orphan_the_new_one() {
    let mut world = World::new(settings());
    for round in 0..20 {
        // One query on the old link, one on its successor.
        world.ask(&query("old.example.", Type::A).id(round).port(1));
        let old = world.asked.last().unwrap().link;
        world.run(Span::from_millis(240));
        for number in 0..engine::limits::LINK_QUESTIONS as u16 {
            world.ask(&query(&format!("n{number}.example."), Type::A).id(round).port(10 + number));
            let asked = world.last();
            if number > 0 {
                world.reply(asked.link, &Reply::default().to(&asked.bytes));
            }
        }
        assert!(world.outbox.links.len() >= 2);
        world.fail(old);
        world.run(Span::from_secs(4));
    }
    world.set_replies(Span(1), |_| Reply::default());
    world.run(Span::from_secs(4));
    assert_eq!(world.engine.outbound_queries(), 0);
    assert!(world.engine.open_links() <= 1, "{} links leaked", world.engine.open_links());
}

#[test]
fn random_selection_is_even_and_fastest_finds_the_fastest() {
    let three = "192.0.2.1 192.0.2.2 192.0.2.3";
    let delay = |asked: &SentQuery| match asked.upstream {
        fast if fast == address("192.0.2.2") => Span::from_millis(5),
        _ => Span::from_millis(30),
    };
    for select in [Select::Random, Select::Fastest] {
        let mut settings = with_forwarders(three);
        settings.upstream.select = select;
        let mut world = World::new(settings);
        world.set_upstreams(move |asked: &SentQuery, _: &mut Rng| {
            vec![deliver(asked, delay(asked), &Reply::default())]
        });
        for number in 0..3000 {
            world.ask_and_wait(number, Span::from_millis(31));
        }
        let mut counts = HashMap::new();
        world.asked.iter().for_each(|asked| *counts.entry(asked.upstream).or_insert(0) += 1);
        match select {
            Select::Random => assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}"),
            _ => assert!(counts[&address("192.0.2.2")] >= 2900, "{counts:?}"),
        }
    }
}

#[test]
fn a_failure_is_not_the_answer_while_a_query_to_another_server_is_in_flight() {
    let good = Reply::answer(&["www.example. 60 IN A 198.51.100.7"]);
    let failure = Reply::rcode(Rcode::SERVFAIL);
    // The first server is silent, so the second one is queried; then the late failure of the first one arrives.
    let mut world = World::new(with_forwarders("192.0.2.53 192.0.2.54"));
    let token = world.ask(&query("www.example.", Type::A));
    world.run(Span::from_millis(260));
    let [first, second] = [0, 1].map(|place| world.asked[place].clone());
    world.reply(first.link, &failure.to(&first.bytes));
    assert!(world.answers_to(token).is_empty(), "the engine did not wait for the second server");
    world.reply(second.link, &good.to(&second.bytes));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    // A duplicate of a failure counts once.
    let mut world = World::new(with_forwarders("192.0.2.53 192.0.2.54"));
    let token = world.ask(&query("www.example.", Type::A));
    let first = world.asked[0].clone();
    world.reply(first.link, &failure.to(&first.bytes));
    world.reply(first.link, &failure.to(&first.bytes));
    assert!(world.answers_to(token).is_empty(), "the engine did not wait for the second server");
    world.reply_to(1, &failure);
    assert_eq!(
        world.answer_to(token).rcode(),
        Rcode::SERVFAIL,
        "after all servers have failed, the failure is the answer"
    );
    assert_eq!(world.engine.outbound_queries(), 0);
}

#[test]
fn a_tcp_connection_that_breaks_loses_no_question() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let mut world = World::new(settings);
    let tokens: Vec<_> = (0..20)
        .map(|number| world.ask(&query(&format!("n{number}.example."), Type::A).id(number).port(number)))
        .collect();
    assert_eq!(world.outbox.links.len(), 1);
    let broken = world.asked[0].link;
    world.fail(broken);
    assert_eq!((world.asked.len(), world.outbox.links.len()), (40, 1));
    let again = world.asked[20..].to_vec();
    for asked in again {
        assert_ne!(asked.link, broken);
        world.reply(asked.link, &Reply::default().to(&asked.bytes));
    }
    for token in tokens {
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    // An upstream may close an idle connection: that is not a failure (RFC 7766 section 6.2.3).
    let unreachable = world.count(Counter::Unreachable);
    let idle = *world.outbox.links.keys().next().unwrap();
    world.fail(idle);
    assert_eq!(world.count(Counter::Unreachable), unreachable);
    assert_eq!(world.engine.open_links(), 0);
}

#[test]
fn a_tcp_connection_that_falls_silent_is_replaced() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let hung = Rc::new(Cell::new(None));
    let state = hung.clone();
    let mut world = World::new(settings);
    world.set_upstreams(move |asked, _| {
        let silent = state.get() == Some(asked.link);
        if silent { vec![] } else { vec![deliver(asked, Span::from_millis(5), &Reply::default())] }
    });
    world.ask_and_wait(1, Span::from_millis(100));
    hung.set(Some(world.asked[0].link));
    let token = world.ask_and_wait(2, Span::from_secs(5));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR, "the next try goes over a new connection");
    let token = world.ask_and_wait(3, Span::from_millis(100));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    assert_eq!(world.engine.open_links(), 1);
}

#[test]
fn a_slow_name_does_not_close_a_working_tcp_connection() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let mut world = World::new(settings);
    world.set_upstreams(|asked, _| {
        let slow = asked.name().starts_with("slow");
        if slow { vec![] } else { vec![deliver(asked, Span::from_millis(5), &Reply::default())] }
    });
    world.ask(&query("slow.example.", Type::A));
    for number in 0..100 {
        world.ask_and_wait(number, Span::from_millis(50));
    }
    assert_eq!(world.outbox.opened_links.len(), 1);
}

#[test]
fn a_group_without_servers_fails_at_once() {
    let mut world = World::new(with_forwarders(""));
    let token = world.ask(&query("www.example.", Type::AAAA));
    world.run(Span::from_millis(10));
    assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
}

#[test]
fn a_clock_jump_of_years_takes_no_time() {
    let mut world = World::new(settings());
    // Stepping through 500 years of milliseconds one by one would take too long.
    world.now = Instant(500 * 365 * 86_400 * 1_000_000_000);
    let token = world.ask(&query("www.example.", Type::A));
    world.run(Span::from_secs(5));
    assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    assert_eq!(world.asked.len(), 3);
}

#[test]
fn a_server_without_a_route_is_skipped_at_once_and_found_dead() {
    let mut world = World::new(with_forwarders("192.0.2.53 192.0.2.54"));
    world.outbox.no_route = vec![address("192.0.2.53")];
    world.set_replies(Span::from_millis(1), |_| Reply::default());
    for number in 0..3 {
        let token = world.ask(&query(&format!("n{number}.example."), Type::A).id(number));
        world.run(Span::from_millis(10));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    assert!(world.asked.iter().all(|asked| asked.upstream == address("192.0.2.54")));
    let servers: Vec<_> = world.engine.servers().map(|server| server.is_dead()).collect();
    assert_eq!(servers, [true, false]);
}

#[test]
fn a_single_server_that_is_unreachable_for_a_moment_is_tried_again() {
    let mut world = World::new(with_forwarders("192.0.2.53"));
    world.outbox.no_links = true;
    let token = world.ask(&query("www.example.", Type::A));
    world.run(Span::from_millis(100));
    assert!(world.answers_to(token).is_empty(), "all tries were used at once");
    world.outbox.no_links = false;
    world.set_replies(Span::from_millis(1), |_| Reply::default());
    world.run(Span::from_secs(1));
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
}

#[test]
fn a_late_reply_to_a_retransmission_is_not_a_suspected_forgery() {
    let mut world = World::new(with_forwarders("192.0.2.53"));
    let reply = Reply::answer(&["www.example. 60 IN A 198.51.100.7"]);
    let question = query("www.example.", Type::A);
    let first = world.ask(&question.clone().id(1));
    world.run(Span::from_millis(300));
    let [try_1, try_2] = [0, 1].map(|place| world.asked[place].clone());
    assert_eq!(try_1.link, try_2.link);
    world.reply(try_1.link, &reply.to(&try_1.bytes));
    assert_eq!(world.answer_to(first).rcode(), Rcode::NOERROR);
    // A query for the same name, over the same link, before the reply to the second try comes.
    let second = world.ask(&question.id(2));
    let again = world.asked[2].clone();
    world.reply(try_2.link, &reply.to(&try_2.bytes));
    assert_eq!((world.count(Counter::DroppedLate), world.count(Counter::SuspectId)), (1, 0));
    assert_eq!(world.asked.len(), 3, "the question has moved to TCP");
    world.reply(again.link, &reply.to(&again.bytes));
    assert_eq!(world.answer_to(second).rcode(), Rcode::NOERROR);
}

#[test]
fn names_whose_own_servers_are_silent_do_not_make_an_upstream_dead() {
    let mut world = World::new(with_forwarders("192.0.2.53"));
    // It replies to queries for the root, but not to queries for the names.
    world.set_upstreams(|asked, _| match asked.name().as_str() {
        "." => vec![deliver(asked, Span::from_millis(10), &Reply::default())],
        _ => vec![],
    });
    for number in 0..20 {
        let token = world.ask_and_wait(number, Span::from_secs(2));
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
        assert!(world.engine.servers().all(|server| !server.is_dead()), "after {number} names");
    }
}
