//! Changes of the settings while queries are in flight.

use crate::world::{Reply, World, deliver, forwarders, query, set_prefixes, settings};
use engine::{Counter, Span};
use std::sync::Arc;
use wire::{Rcode, Type};

fn with(upstreams: &str, prefix: &str) -> engine::Settings {
    let mut settings = settings();
    settings.upstream.forwarders = forwarders(upstreams);
    set_prefixes(&mut settings.dns64, prefix);
    settings
}

#[test]
fn a_reload_with_other_upstreams_and_prefixes_loses_no_question() {
    let mut world = World::sized(with("192.0.2.1 192.0.2.2", "2001:db8:1::/96"), 4096, 31);
    world.set_upstreams(|asked, rng| {
        if rng.percent(20) {
            return vec![];
        }
        let line = format!("{} 60 IN A 198.51.100.7", asked.name());
        let reply = match asked.qtype() {
            Type::A => Reply::answer(&[&line]),
            _ => Reply::default(),
        };
        vec![deliver(asked, Span::from_millis(1 + rng.below(60)), &reply)]
    });
    let mut tokens = vec![];
    for round in 0..200u32 {
        for number in 0..20 {
            let question = query(&format!("n{round}-{number}.example."), Type::AAAA).network(number);
            tokens.push(world.ask(&question.id(round as u16)));
            world.run(Span::from_millis(1));
        }
        let other = format!("192.0.2.{} 192.0.2.{}", 1 + round % 7, 20 + round % 5);
        world.engine.configure(with(&other, &format!("2001:db8:{:x}::/96", 1 + round % 3)));
    }
    world.run(Span::from_secs(10));
    let mut failed = 0;
    for token in &tokens {
        let answer = world.answer_to(*token);
        match answer.rcode() {
            Rcode::NOERROR => assert!(answer.addresses()[0].ends_with(":c633:6407")),
            _ => failed += 1,
        }
    }
    // 20 % loss and three attempts: one lookup in 125 fails.
    assert!(failed < tokens.len() / 25, "{failed} of {}", tokens.len());
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    assert!(world.engine.open_links() <= 2, "{} links leaked", world.engine.open_links());
    world.assert_conservation();
}

#[test]
fn a_question_that_moves_to_tcp_after_a_reload_leaves_no_open_link() {
    let mut world = World::new(with("192.0.2.1", "2001:db8:1::/96"));
    for round in 0..10u16 {
        world.engine.configure(with(&format!("192.0.2.{}", 1 + round), "2001:db8:1::/96"));
        world.run(Span::from_millis(10));
        let token = world.ask(&query("www.example.", Type::A).id(round));
        let over_udp = world.last();
        world.engine.configure(with("192.0.2.99", "2001:db8:1::/96"));
        world.run(Span::from_millis(10));
        let truncated = Reply { flags: wire::Flags::TC, ..Reply::default() };
        world.reply(over_udp.link, &truncated.to(&over_udp.bytes));
        world.reply_to_last(&Reply::default());
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    world.run(Span::from_secs(10));
    assert_eq!(world.count(Counter::TcpTruncation), 10);
    assert_eq!(world.engine.open_links(), 0);
}

#[test]
fn links_that_are_retired_answer_what_was_asked_and_carry_nothing_new() {
    for transport in [engine::Transport::Udp, engine::Transport::Tcp] {
        let mut settings = with("192.0.2.1", "2001:db8:1::/96");
        settings.upstream.transport = transport;
        let mut world = World::new(settings);
        let before = world.ask(&query("before.example.", Type::A).id(1));
        world.run(Span::from_millis(1));
        let first = world.last();
        world.engine.retire_links();
        world.run(Span::from_millis(1));
        let after = world.ask(&query("after.example.", Type::A).id(2));
        world.run(Span::from_millis(1));
        let second = world.last();
        assert_ne!(first.link, second.link, "{transport:?}");
        for asked in [first, second] {
            world.reply(asked.link, &Reply::default().to(&asked.bytes));
        }
        assert_eq!(world.answer_to(before).rcode(), Rcode::NOERROR);
        assert_eq!(world.answer_to(after).rcode(), Rcode::NOERROR);
        world.run(Span::from_millis(1));
        assert_eq!(world.engine.open_links(), 1, "the retired link is closed with its last question");
    }
}

#[test]
fn the_state_of_a_server_survives_a_reload_that_keeps_it() {
    let mut world = World::new(with("192.0.2.1 192.0.2.2", "2001:db8:1::/96"));
    world.ask(&query("www.example.", Type::A));
    let asked = world.asked[0].clone();
    world.run(Span::from_millis(7));
    world.reply(asked.link, &Reply::default().to(&asked.bytes));
    world.engine.configure(with("192.0.2.3 192.0.2.1", "2001:db8:1::/96"));
    world.run(Span::from_millis(7));
    let known: Vec<_> =
        world.engine.servers().map(|server| (server.address.ip().to_string(), server.round_trip)).collect();
    assert!(known.contains(&("192.0.2.1".into(), Some(Span::from_millis(7)))), "{known:?}");
    assert_eq!(known.len(), 2);
}

/// The last reference to local data and response policy zones is not dropped by the engine, which runs on a worker.
#[test]
fn the_settings_that_a_reload_replaces_are_handed_back_and_not_freed() {
    let old = settings();
    let (local_data, rpz) = (Arc::downgrade(&old.local_data), Arc::downgrade(&old.rpz));
    let mut world = World::with_cache(old, 1 << 20);
    world.ask(&query("www.example.", Type::A));
    let returned = world.engine.configure(settings());
    assert!(local_data.upgrade().is_some() && rpz.upgrade().is_some());
    drop(returned);
    assert!(local_data.upgrade().is_none() && rpz.upgrade().is_none(), "nothing else refers to them");
}
