//! Published faults of validators that no zone alone shows: policies and expired data in the place of a bogus reply, and signatures that are
//! remembered for too long. `signed-zones` has the others.

use super::explain::with_policy;
use super::validation::{C2, classed_query, reply, resolve, validating, world, zones_with};
use crate::world::{ClientQuery, World};
use engine::Span;
use engine::rpz::{Action, Trigger};
use engine::settings::Network;
use signed_zones::World as Zones;
use signed_zones::faults::{Place, Plant, Twist};
use std::cell::Cell;
use std::rc::Rc;
use wire::{Flags, Rcode, Type};

const BOGUS: Plant = Plant::Signature(Place::Address, Twist::SignatureBit);

/// Query for the A records of a name that has them.
fn question(zones: &Zones) -> ClientQuery {
    let name = [&b"\x04both"[..], zones.apex()].concat();
    ClientQuery { qtype: Type::A, ..classed_query(&name, C2) }
}

/// CVE-2026-50243: a policy rewrites a bogus reply.
#[test]
fn a_policy_about_addresses_sees_no_bogus_reply() {
    for (plant, expected) in [(Plant::None, Rcode::NXDOMAIN), (BOGUS, Rcode::SERVFAIL)] {
        let zones = zones_with(plant);
        let mut settings = validating(&zones);
        let addresses = Network::v4([192, 0, 2, 0].into(), 24);
        settings.rpz = with_policy(vec![(Trigger::Address(addresses), Action::NxDomain)]).rpz;
        let mut world = world(&zones, settings);
        let (answer, ..) = resolve(&mut world, &question(&zones));
        assert_eq!(answer.rcode(), expected, "{plant:?}");
    }
}

/// CVE-2026-46582: expired data are served in the place of a bogus reply.
#[test]
fn expired_data_do_not_stand_in_for_a_bogus_reply() {
    let [good, bad] = [Plant::None, BOGUS].map(zones_with);
    let mut settings = validating(&good);
    settings.cache.stale = Span::from_secs(600);
    settings.cache.prefetch = false;
    let mut world = World::with_cache(settings, 1 << 20);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(good.now())));
    let is_bogus = Rc::new(Cell::new(false));
    let (turned, both) = (Rc::clone(&is_bogus), [Rc::clone(&good), bad]);
    world.set_upstreams(move |asked, _| reply(&both[usize::from(turned.get())], asked));
    let query = question(&good);
    let (answer, ..) = resolve(&mut world, &query);
    assert!(answer.flags().contains(Flags::AD));
    is_bogus.set(true);
    // The TTL of the zone is an hour.
    world.run(Span::from_secs(3601));
    for id in 8..11 {
        let (answer, ..) = resolve(&mut world, &query.clone().id(id));
        assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::SERVFAIL, false), "{id}");
    }
}

/// A validator of a library remembers a signature without its end (RFC 4033 section 8.1).
#[test]
fn a_signature_that_has_ended_proves_nothing_though_it_was_verified_before() {
    let zones = zones_with(Plant::Signature(Place::Address, Twist::LastSecond));
    let mut world = world(&zones, validating(&zones));
    let query = question(&zones);
    let (answer, ..) = resolve(&mut world, &query);
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true));
    // RFC 8914 section 4.8: Signature Expired.
    let (answer, ..) = resolve(&mut world, &query.clone().id(8));
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(7)));
}
