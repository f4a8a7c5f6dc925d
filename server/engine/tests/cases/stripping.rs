//! Upstreams that lie to a validating Sixfold or strip signatures: bogus replies are asked of others and once with CD clear, and a
//! forwarder that strips is used last until it is mended.

use super::validation::{C0, C2, classed, reply, resolve, validating, world, zones_with};
use crate::world::{ClientQuery, Delivery, SentQuery, World, deliver_octets, forwarders};
use engine::Span;
use engine::upstream::BreakerState;
use signed_zones::faults::{Place, Plant, ReplyTwist, Twist};
use signed_zones::{World as Zones, rtype};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use wire::{Flags, Rcode, Type};

/// Types that a forwarder without DNSSEC does not know (RFC 4035 section 3.2.1).
const OF_DNSSEC: [u16; 3] = [rtype::RRSIG, rtype::NSEC, rtype::NSEC3];

/// Reply without signatures and proofs, after 10 ms.
pub(super) fn stripped(zones: &Zones, asked: &SentQuery) -> Vec<Delivery> {
    let message = asked.message();
    let mut name = message.qname().to_vec();
    wire::fold(&mut name);
    let rtype = message.qtype().0;
    let mut reply = zones.reply(&name, rtype);
    for section in [&mut reply.answer, &mut reply.authority] {
        section.retain(|record| !OF_DNSSEC.contains(&record.rtype));
    }
    let mut octets = reply.octets(&name, rtype);
    octets[..2].copy_from_slice(&asked.bytes[..2]);
    octets[12..12 + name.len()].copy_from_slice(message.qname());
    vec![deliver_octets(asked, Span::from_millis(10), octets)]
}

fn is_first(asked: &SentQuery) -> bool {
    asked.upstream.ip() == IpAddr::from([192, 0, 2, 53])
}

/// World with two forwarders, of which the first one strips as long as the flag says so; the second one does, too, if `all` do.
fn with_stripping(zones: &Rc<Zones>, all: bool) -> (World, Rc<Cell<bool>>) {
    let mut settings = validating(zones);
    settings.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
    let mut world = world(zones, settings);
    let strips = Rc::new(Cell::new(true));
    let (answering, flag) = (Rc::clone(zones), Rc::clone(&strips));
    world.set_upstreams(move |asked, _| match flag.get() && (all || is_first(asked)) {
        true => stripped(&answering, asked),
        false => reply(&answering, asked),
    });
    (world, strips)
}

fn states(world: &World) -> Vec<BreakerState> {
    world.engine.servers().map(engine::upstream::Server::state).collect()
}

fn a_query(zones: &Zones, label: &str, id: u16) -> ClientQuery {
    ClientQuery { qtype: Type::A, ..classed(zones, label, C2) }.id(id)
}

#[test]
fn a_forwarder_that_strips_is_asked_last_until_it_is_mended() {
    let zones = zones_with(Plant::None);
    let (mut world, strips) = with_stripping(&zones, false);
    let (answer, questions, _) = resolve(&mut world, &a_query(&zones, "both", 1));
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true));
    assert!(questions <= 15, "{questions}");
    assert_eq!(states(&world), [BreakerState::Strips, BreakerState::Closed]);
    assert!(!world.engine.has_only_stripping_forwarders());
    let before = world.asked.len();
    assert!(resolve(&mut world, &a_query(&zones, "four", 2)).0.flags().contains(Flags::AD));
    let is_check = |asked: &SentQuery| asked.qtype() == Type::DNSKEY && asked.message().qname() == b"\0";
    assert!(world.asked[before..].iter().all(|asked| is_first(asked) == is_check(asked)));
    // Checks: pauses of 5, 10, 20, 40, 60 seconds.
    let before = world.asked.len();
    world.run(Span::from_secs(300));
    let checks = &world.asked[before..];
    assert!((5..10).contains(&checks.len()), "{}", checks.len());
    assert!(checks.iter().all(|asked| is_first(asked) && is_check(asked)));
    strips.set(false);
    world.run(Span::from_secs(61));
    assert_eq!(states(&world), [BreakerState::Closed, BreakerState::Closed]);
    let before = world.asked.len();
    assert!(resolve(&mut world, &a_query(&zones, "hop", 3)).0.flags().contains(Flags::AD));
    assert!(world.asked[before..].iter().all(is_first));
    assert_eq!(world.engine.outbound_queries(), 0, "no check is left");
}

// RFC 8914 section 4.11.
#[test]
fn if_all_forwarders_strip_clients_get_servfail_with_the_extended_error_for_it() {
    let zones = zones_with(Plant::None);
    let (mut world, strips) = with_stripping(&zones, true);
    for (id, class) in [C0, C2].into_iter().enumerate() {
        let (answer, ..) = resolve(&mut world, &classed(&zones, "four", class).id(id as u16));
        assert_eq!((answer.rcode(), answer.ede(), answer.addresses().len()), (Rcode::SERVFAIL, Some(10), 0));
    }
    assert_eq!(states(&world), [BreakerState::Strips; 2]);
    assert!(world.engine.has_only_stripping_forwarders());
    strips.set(false);
    // No client has to ask for it.
    world.run(Span::from_secs(61));
    assert!(!world.engine.has_only_stripping_forwarders());
    let (answer, ..) = resolve(&mut world, &a_query(&zones, "both", 9));
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true));
}

#[test]
fn a_forwarder_that_begins_to_strip_is_found_by_a_name_of_a_zone_whose_keys_are_known() {
    let zones = zones_with(Plant::None);
    let (mut world, strips) = with_stripping(&zones, false);
    strips.set(false);
    assert!(resolve(&mut world, &a_query(&zones, "both", 1)).0.flags().contains(Flags::AD));
    assert_eq!(states(&world), [BreakerState::Closed; 2]);
    strips.set(true);
    let (answer, ..) = resolve(&mut world, &a_query(&zones, "four", 2));
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true));
    assert_eq!(states(&world), [BreakerState::Strips, BreakerState::Closed]);
}

#[test]
fn a_zone_without_signatures_does_not_make_its_forwarder_one_that_strips() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    let answering = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| {
        let mut name = asked.message().qname().to_vec();
        wire::fold(&mut name);
        match asked.qtype() == Type::A && wire::is_at_or_below(&name, answering.apex()) {
            true => stripped(&answering, asked),
            false => reply(&answering, asked),
        }
    });
    for id in 0..3 {
        let (answer, ..) = resolve(&mut world, &a_query(&zones, "both", id));
        assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(10)));
    }
    assert_eq!(states(&world), [BreakerState::Closed]);
}

// RFC 6840 appendix B.
#[test]
fn a_bogus_reply_is_asked_for_once_more_with_cd_clear_when_nobody_else_is_left() {
    let good = zones_with(Plant::None);
    let bad = zones_with(Plant::Signature(Place::Address, Twist::SignatureBit));
    let mut world = world(&good, validating(&good));
    let both = [Rc::clone(&bad), Rc::clone(&good)];
    // With CD this upstream gives what it has; without, it validates and fetches again.
    world.set_upstreams(move |asked, _| {
        let has_cd = asked.message().flags().contains(Flags::CD);
        reply(&both[usize::from(!has_cd)], asked)
    });
    let (answer, ..) = resolve(&mut world, &a_query(&good, "both", 1));
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true));
    let of_name: Vec<bool> = world
        .asked
        .iter()
        .filter(|asked| asked.qtype() == Type::A)
        .map(|asked| asked.message().flags().contains(Flags::CD))
        .collect();
    assert_eq!(of_name, [true, false]);
}

#[test]
fn keys_that_are_bogus_at_one_forwarder_are_asked_of_another() {
    let good = zones_with(Plant::None);
    for plant in [
        Plant::Signature(Place::Keys, Twist::SignatureBit),
        Plant::Signature(Place::Delegation, Twist::SignatureBit),
    ] {
        let bad = zones_with(plant);
        let mut settings = validating(&good);
        settings.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
        let mut world = world(&good, settings);
        let both = [Rc::clone(&bad), Rc::clone(&good)];
        world.set_upstreams(move |asked, _| {
            let is_chain = matches!(asked.qtype(), Type::DS | Type::DNSKEY);
            reply(&both[usize::from(!(is_chain && is_first(asked)))], asked)
        });
        let (answer, questions, _) = resolve(&mut world, &a_query(&good, "both", 1));
        assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true), "{plant:?}");
        assert!(questions <= 1 + 12, "{plant:?}: {questions}");
        assert_eq!(states(&world), [BreakerState::Closed; 2]);
    }
}

#[test]
fn twenty_questions_for_a_bogus_name_cost_at_most_twelve_upstream() {
    let bit = |place| Plant::Signature(place, Twist::SignatureBit);
    for (plant, label, qtype, longest_pause) in [
        (bit(Place::Address), "both", Type::A, Span::from_secs(1)),
        (bit(Place::Proof), "four", Type::AAAA, Span::from_secs(1)),
        (Plant::Reply(ReplyTwist::KeysFail), "four", Type::AAAA, Span::ZERO),
    ] {
        for pause in [Span::ZERO, longest_pause] {
            let zones = zones_with(plant);
            let mut world = World::with_cache(validating(&zones), 1 << 20);
            world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
            let answering = Rc::clone(&zones);
            world.set_upstreams(move |asked, _| reply(&answering, asked));
            let mut tokens = vec![];
            for id in 0..20 {
                let query = ClientQuery { qtype, ..classed(&zones, label, C0) };
                tokens.push(world.ask(&query.id(id).port(2000 + id)));
                world.run(pause);
            }
            world.run(Span::from_secs(5));
            for token in tokens {
                assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL, "{plant:?}");
            }
            assert!(world.asked.len() <= 12, "{plant:?}, {pause:?}: {}", world.asked.len());
        }
    }
}
