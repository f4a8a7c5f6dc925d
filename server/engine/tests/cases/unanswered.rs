//! Client queries that the upstreams of a zone did not answer: they are counted for this zone, once each, for the log of outages.

use crate::world::{Reply, World, deliver, forwarders, name, query, settings};
use engine::Span;
use engine::settings::ForwardZone;
use engine::upstream::Unanswered;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::{Rcode, Type};

const GENERAL: &str = "192.0.2.53";
const OF_ZONE: &str = "192.0.2.77";

/// Longer than any query takes.
const LONG: Span = Span::from_secs(60);

/// A world with a forward zone, `corp.test`, whose upstream answers while the cell says so, and the general settings.
fn world() -> (World, Rc<Cell<bool>>) {
    let mut settings = settings();
    settings.upstream.zones =
        vec![ForwardZone { name: name("corp.test.").into(), forwarders: forwarders(OF_ZONE) }];
    settings.cache.stale = Span::from_secs(86_400);
    let mut world = World::with_cache(settings, 1 << 20);
    let answers = Rc::new(Cell::new(true));
    let is_up = Rc::clone(&answers);
    let of_zone = forwarders(OF_ZONE)[0];
    world.set_upstreams(move |asked, _| {
        let name = asked.name();
        let reply = match (&name[..], asked.qtype()) {
            _ if asked.upstream == of_zone && !is_up.get() => return vec![],
            ("failing.test.", _) => Reply::rcode(Rcode::SERVFAIL),
            ("missing.test.", _) => Reply { rcode: Rcode::NXDOMAIN, ..Reply::empty("test.", 5, 5) },
            ("alias.test.", _) => Reply::answer(&["alias.test. 5 IN CNAME target.corp.test."]),
            (_, Type::A) => Reply::answer(&[&format!("{name} 5 IN A 192.0.2.1")]),
            _ => Reply::empty("test.", 5, 5),
        };
        vec![deliver(asked, Span::from_millis(10), &reply)]
    });
    (world, answers)
}

/// Asks, and returns the RCODEs of the answers. Each client has its own port.
fn ask(world: &mut World, names: &[&str], qtype: Type) -> Vec<Rcode> {
    let ask_one = |(port, name): (u16, &&str)| world.ask(&query(name, qtype).port(port));
    let tokens: Vec<_> = (5_000..).zip(names).map(ask_one).collect();
    world.run(LONG);
    tokens.into_iter().map(|token| world.answer_to(token).rcode()).collect()
}

fn of(upstream: &str, failed: u64, expired: u64) -> (Vec<SocketAddr>, Unanswered) {
    (forwarders(upstream), Unanswered { failed, expired })
}

#[test]
fn a_query_counts_for_the_zone_whose_upstreams_did_not_answer_it() {
    let (mut world, answers) = world();
    let known = ["www.corp.test.", "missing.test.", "alias.test."];
    assert_eq!(ask(&mut world, &known, Type::A), [Rcode::NOERROR, Rcode::NXDOMAIN, Rcode::NOERROR]);
    assert_eq!(world.engine.take_unanswered(), []);

    answers.set(false);
    // Two wait for one question, and the third has two lookups.
    let failing = ["a.corp.test.", "a.corp.test.", "other.corp.test."];
    assert_eq!(ask(&mut world, &failing[..2], Type::A), [Rcode::SERVFAIL; 2]);
    assert_eq!(ask(&mut world, &failing[2..], Type::AAAA), [Rcode::SERVFAIL]);
    assert_eq!(ask(&mut world, &["new.corp.test.", "elsewhere.test."], Type::A)[1], Rcode::NOERROR);
    assert_eq!(world.engine.take_unanswered(), [of(OF_ZONE, 4, 0)]);
    // Expired data of the cache, for two clients.
    assert_eq!(ask(&mut world, &["www.corp.test."; 2], Type::A), [Rcode::NOERROR; 2]);
    assert_eq!(world.engine.take_unanswered(), [of(OF_ZONE, 0, 2)]);

    // A failure from the cache is one more, and a reload keeps what was not taken.
    let mut reply = || {
        let token = world.ask(&query("failing.test.", Type::A));
        world.run(Span::from_millis(500));
        world.answer_to(token).rcode()
    };
    assert_eq!([reply(), reply()], [Rcode::SERVFAIL; 2]);
    let settings = world.engine.settings().clone();
    world.engine.configure(settings);
    assert_eq!(world.engine.take_unanswered(), [of(GENERAL, 2, 0)]);
    assert_eq!(world.engine.take_unanswered(), []);
}

#[test]
fn an_alias_that_leads_to_a_zone_without_an_answer_counts_for_that_zone() {
    let (mut world, answers) = world();
    answers.set(false);
    let rcodes = ask(&mut world, &["alias.test."], Type::A);
    assert_eq!(rcodes, [Rcode::SERVFAIL]);
    assert_eq!(world.engine.take_unanswered(), [of(OF_ZONE, 1, 0)]);
}
