//! Names that are denied by the proofs of replies to other questions (RFC 8198): how many questions that saves, for how long (RFC 9077), and
//! where nothing is denied.

use super::validation::{C0, C1, C2, C3, C4, below, classed, config, reply, validating};
use crate::world::{Answer, ClientQuery, SentQuery, World, forwarders, name, subnet};
use engine::local::{LocalData, LocalRecord};
use engine::settings::{
    AnchorRecord, ClientSubnet, ForwardZone, Lookup, TrustAnchor, UncheckedZone, ValidationConfig,
};
use engine::{Counter, Settings, Span};
use signed_zones::faults::{self, Plant};
use signed_zones::{Kind, Store, World as Zones};
use std::rc::Rc;
use std::sync::Arc;
use wire::{Flags, Rcode, Section, Type};

fn zones(kind: Kind) -> Rc<Zones> {
    let none =
        faults::all().into_iter().find(|fault| fault.plant == Plant::None).expect("a row without a fault");
    Rc::new(Zones::new(&Store::new(5), kind, &none))
}

/// World with a cache, whose upstream answers from zones after 10 ms.
fn world(zones: &Rc<Zones>, settings: Settings) -> World {
    let mut world = World::with_cache(settings, 1 << 20);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
    let zones = Rc::clone(zones);
    world.set_upstreams(move |asked, _| reply(&zones, asked));
    world
}

/// Answer to a query, and the questions upstream that it took.
fn resolve(world: &mut World, query: &ClientQuery) -> (Answer, Vec<SentQuery>) {
    let before = world.asked.len();
    let token = world.ask(query);
    world.run(Span::from_millis(200));
    (world.answer_to(token).clone(), world.asked[before..].to_vec())
}

/// Number of questions upstream for a query of a client with DO.
fn questions(world: &mut World, zones: &Zones, labels: &str, qtype: Type) -> usize {
    resolve(world, &query(zones, labels, qtype, C2)).1.len()
}

fn query(zones: &Zones, labels: &str, qtype: Type, class: (bool, bool, bool)) -> ClientQuery {
    let name = signed_zones::name::below(labels, zones.apex());
    ClientQuery { name, qtype, ..classed(zones, "x", class) }
}

fn denied(world: &World) -> u64 {
    world.count(Counter::DeniedByNsec) + world.count(Counter::DeniedByNsec3)
}

// RFC 8198 sections 5.1 and 5.2 (V88).
#[test]
fn a_thousand_random_names_below_a_signed_zone_cost_at_most_thirty_questions() {
    for kind in [Kind::Nsec, Kind::Nsec3] {
        let zones = zones(kind);
        let mut world = world(&zones, validating(&zones));
        for number in 0..1000u16 {
            let labels = match number % 3 {
                0 => format!("r{number}"),
                1 => format!("{number:03}"),
                _ => format!("z.{number}-a"),
            };
            let qtype = [Type::A, Type::TXT, Type::AAAA][usize::from(number) % 3];
            let (answer, _) = resolve(&mut world, &query(&zones, &labels, qtype, C2).id(number));
            assert_eq!(answer.rcode(), Rcode::NXDOMAIN, "{labels}");
            assert!(answer.flags().contains(Flags::AD), "{labels}");
        }
        assert!(world.asked.len() <= 30, "{kind:?}: {}", world.asked.len());
        assert!(denied(&world) >= 970, "{kind:?}: {}", denied(&world));
        world.assert_conservation();
    }
}

/// Records of an authority section without their TTLs, sorted.
fn proofs(answer: &Answer) -> Vec<String> {
    let without_ttl = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        [&words[..1], &words[2..]].concat().join(" ")
    };
    let mut lines: Vec<_> = answer.records(Section::Authority).into_iter().map(without_ttl).collect();
    lines.sort();
    lines
}

// RFC 8198 section 5: as an answer of the zone would be.
#[test]
fn a_denial_has_the_records_ad_and_the_letter_case_of_one_that_was_asked() {
    for kind in [Kind::Nsec, Kind::Nsec3] {
        let zones = zones(kind);
        let mut asking = world(&zones, validating(&zones));
        let mut proving = world(&zones, validating(&zones));
        for number in 0..100 {
            resolve(&mut proving, &query(&zones, &format!("m{number}"), Type::A, C0));
        }
        for (id, class) in (0..).zip([C0, C1, C2]) {
            let mut query = query(&zones, "m77x", Type::A, class).id(id);
            query.name[1] = b'M';
            let (expected, _) = resolve(&mut asking, &query);
            let (got, asked) = resolve(&mut proving, &query);
            assert!(asked.is_empty(), "{kind:?}");
            assert_eq!(
                (got.rcode(), got.flags(), proofs(&got)),
                (expected.rcode(), expected.flags(), proofs(&expected))
            );
            assert_eq!((got.ede(), &got.bytes[12..20]), (expected.ede(), &expected.bytes[12..20]));
            let has_proof = got.records(Section::Authority).iter().any(|line| line.contains(" RRSIG "));
            assert_eq!(has_proof, class == C2);
            asking = world(&zones, validating(&zones));
        }
    }
}

// RFC 6147 section 5.1.2: a name that does not exist has no A records either.
#[test]
fn an_aaaa_question_for_a_name_that_is_proven_absent_ends_both_lookups_without_a_question() {
    let zones = zones(Kind::Nsec);
    for lookup in [Lookup::Sequential, Lookup::Parallel] {
        let mut settings = validating(&zones);
        settings.dns64.lookup = lookup;
        let mut world = world(&zones, settings);
        resolve(&mut world, &query(&zones, "absent", Type::A, C0));
        for class in [C0, C1, C2] {
            let (answer, asked) = resolve(&mut world, &query(&zones, "absent2", Type::AAAA, class));
            assert_eq!((answer.rcode(), asked.len()), (Rcode::NXDOMAIN, 0), "{class:?}");
        }
        // Clients that validate by themselves, or want data that are not validated, get what the upstream says.
        for class in [C3, C4] {
            let (_, asked) = resolve(&mut world, &query(&zones, "absent2", Type::AAAA, class));
            assert!(!asked.is_empty(), "{class:?}");
        }
    }
}

// Load balancers deny all types of a name that lacks one.
#[test]
fn a_name_that_exists_is_asked_for_whatever_the_bit_map_says_of_it() {
    let zones = zones(Kind::Nsec);
    let mut world = world(&zones, validating(&zones));
    assert!(questions(&mut world, &zones, "both", Type::TXT) > 0);
    for (labels, qtype) in [("both", Type::MX), ("both", Type::AAAA), ("four", Type::AAAA), ("ent", Type::A)]
    {
        assert!(questions(&mut world, &zones, labels, qtype) > 0, "{labels}");
    }
    assert_eq!(denied(&world), 0);
}

// RFC 4592: the wildcard stands for them.
#[test]
fn a_name_with_a_wildcard_is_not_denied() {
    for kind in [Kind::Nsec, Kind::Nsec3] {
        let zones = zones(kind);
        let mut world = world(&zones, validating(&zones));
        for labels in ["x.wild", "y.alias"] {
            questions(&mut world, &zones, labels, Type::A);
        }
        for number in 0..50 {
            questions(&mut world, &zones, &format!("n{number}"), Type::A);
        }
        let before = denied(&world);
        for labels in ["a.wild", "z.wild", "m.n.wild", "a.alias"] {
            let (answer, _) = resolve(&mut world, &query(&zones, labels, Type::A, C2));
            assert_eq!(answer.rcode(), Rcode::NOERROR, "{labels}");
        }
        assert_eq!(denied(&world), before);
    }
}

// RFC 9077 section 3 (V89): the SOA record of the zones lives for 3,600 s and has a MINIMUM of 300 s; NSEC records live for 3,600 s.
#[test]
fn a_denial_lives_no_longer_than_the_negative_ttl_of_its_zone() {
    for kind in [Kind::Nsec, Kind::Nsec3] {
        let zones = zones(kind);
        let mut world = world(&zones, validating(&zones));
        for number in 0..60 {
            questions(&mut world, &zones, &format!("m{number}"), Type::A);
        }
        let start = world.now;
        for secs in [20, 100, 280] {
            world.run_until(start + Span::from_secs(secs));
            let (answer, asked) = resolve(&mut world, &query(&zones, &format!("m{secs}s"), Type::A, C2));
            assert!(asked.is_empty(), "{kind:?} {secs}");
            let of = |line: &String| {
                line.split(' ').nth(1).and_then(|ttl| ttl.parse::<u64>().ok()).expect("a TTL")
            };
            let ttls: Vec<u64> = answer.records(Section::Authority).iter().map(of).collect();
            assert!(ttls.iter().all(|ttl| *ttl <= 300 - secs && *ttl + 15 >= 300 - secs), "{secs}: {ttls:?}");
        }
        world.run_until(start + Span::from_secs(301));
        assert!(questions(&mut world, &zones, "m301s", Type::A) > 0);
        // The configured limit of negative answers counts, too.
        let mut settings = validating(&zones);
        settings.cache.max_negative_ttl_secs = 10;
        let mut world = self::world(&zones, settings);
        for number in 0..40 {
            questions(&mut world, &zones, &format!("m{number}"), Type::A);
        }
        world.run(Span::from_secs(11));
        assert!(questions(&mut world, &zones, "m301s", Type::A) > 0);
    }
}

// RFC 2308 section 5, RFC 9077 section 3: a later SOA record, which another denial brought, does not prolong the proofs before it.
#[test]
fn a_denial_lives_no_longer_than_its_oldest_proof() {
    let zones = zones(Kind::Nsec);
    let mut world = denying(validating(&zones), &zones);
    let start = world.now;
    world.run_until(start + Span::from_secs(200));
    assert!(questions(&mut world, &zones, "both", Type::TXT) > 0);
    let (answer, asked) = resolve(&mut world, &query(&zones, "m1", Type::A, C2));
    assert!(asked.is_empty());
    let ttl = |line: &String| line.split(' ').nth(1).and_then(|ttl| ttl.parse::<u64>().ok()).expect("a TTL");
    let ttls: Vec<u64> = answer.records(Section::Authority).iter().map(ttl).collect();
    // The proofs came before `start`, with a negative TTL of 300 s.
    assert!(!ttls.is_empty() && ttls.iter().all(|ttl| (90..=100).contains(ttl)), "{ttls:?}");
}

// RFC 4035 section 5.3.3: no record outlives its signature.
#[test]
fn a_denial_lives_no_longer_than_its_signatures() {
    for kind in [Kind::Nsec, Kind::Nsec3] {
        let zones = zones(kind);
        let mut world = world(&zones, validating(&zones));
        // The keys of the zone are known before, and for an hour.
        questions(&mut world, &zones, "both", Type::A);
        // Signatures of the zones end 100,000 s after their time.
        let expiration = u64::from(zones.now()) + 100_000;
        world.engine.set_unix_time(world.now, Span::from_secs(expiration - 50));
        for number in 0..60 {
            questions(&mut world, &zones, &format!("m{number}"), Type::A);
        }
        let before = denied(&world);
        assert_eq!(questions(&mut world, &zones, "m60", Type::A), 0, "{kind:?}");
        world.run(Span::from_secs(51));
        assert!(questions(&mut world, &zones, "m61", Type::A) > 0, "{kind:?}");
        assert_eq!(denied(&world), before + 1);
    }
}

// RFC 5155 section 6 (V90).
#[test]
fn spans_with_opt_out_and_denials_made_for_one_name_deny_no_other_name() {
    for kind in [Kind::OptOut, Kind::Compact] {
        let zones = zones(kind);
        let mut world = world(&zones, validating(&zones));
        for number in 0..50 {
            assert!(questions(&mut world, &zones, &format!("m{number}"), Type::A) > 0, "{kind:?}");
        }
        assert_eq!(denied(&world), 0);
    }
}

// RFC 6840 section 4.1 (V90).
#[test]
fn names_below_a_delegation_or_a_dname_are_not_denied_by_the_zone_above() {
    for kind in [Kind::Nsec, Kind::Nsec3] {
        let zones = zones(kind);
        let mut world = world(&zones, validating(&zones));
        for number in 0..80 {
            for labels in [format!("plain{number}"), format!("dname{number}"), format!("m{number}")] {
                questions(&mut world, &zones, &labels, Type::A);
            }
        }
        let before = denied(&world);
        for (labels, rcode) in [("host.plain", Rcode::NOERROR), ("no.plain", Rcode::NXDOMAIN)] {
            let (answer, asked) = resolve(&mut world, &query(&zones, labels, Type::A, C2));
            assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (rcode, false), "{labels}");
            assert!(!asked.is_empty());
        }
        let (answer, _) = resolve(&mut world, &query(&zones, "both.dname", Type::A, C2));
        assert_eq!(answer.rcode(), Rcode::NOERROR);
        assert_eq!(denied(&world), before);
    }
}

/// World that denies names below the apex, and a query for one of them.
fn denying(settings: Settings, zones: &Rc<Zones>) -> World {
    let mut world = world(zones, settings);
    questions(&mut world, zones, "m", Type::A);
    assert_eq!(questions(&mut world, zones, "m0", Type::A), 0);
    world
}

// V90: the configuration decides before the zone does.
#[test]
fn names_of_local_data_and_of_forward_zones_are_not_denied() {
    let zones = zones(Kind::Nsec);
    let owner = below(&zones, "mine");
    let mut settings = validating(&zones);
    let record = LocalRecord { owner: owner.into(), rtype: Type::A, ttl: 60, rdata: [192, 0, 2, 200].into() };
    settings.local_data = LocalData::new(vec![record], vec![]).into();
    settings.upstream.zones =
        vec![ForwardZone { name: below(&zones, "mcorp").into(), forwarders: forwarders("192.0.2.77") }];
    let mut world = denying(settings, &zones);
    let (answer, asked) = resolve(&mut world, &query(&zones, "mine", Type::A, C2));
    assert_eq!((answer.rcode(), asked.len()), (Rcode::NOERROR, 0));
    assert_eq!(answer.records(Section::Answer).len(), 1);
    let (_, asked) = resolve(&mut world, &query(&zones, "x.mcorp", Type::A, C2));
    assert!(asked.iter().any(|asked| asked.upstream.ip() == std::net::IpAddr::from([192, 0, 2, 77])));
}

// RFC 7871 section 7.3.1: a reply for a client subnet is for clients there.
#[test]
fn a_reply_for_a_client_subnet_denies_no_name_and_no_name_is_denied_to_one() {
    let zones = zones(Kind::Nsec);
    let mut settings = validating(&zones);
    settings.client_subnet = ClientSubnet::Forward;
    let mut world = world(&zones, settings);
    let asks = |world: &mut World, labels| {
        let query = query(&zones, labels, Type::A, C2).option(subnet("10.0.7.0/24"));
        let (answer, asked) = resolve(world, &query);
        assert_eq!((answer.rcode(), asked.is_empty()), (Rcode::NXDOMAIN, false), "{labels}");
    };
    asks(&mut world, "m");
    assert!(questions(&mut world, &zones, "m0", Type::A) > 0);
    assert_eq!(questions(&mut world, &zones, "m1", Type::A), 0);
    asks(&mut world, "m2");
}

// RFC 8509 section 3: the answer tells which keys are trusted. A name that begins like a sentinel is denied without a question.
#[test]
fn a_sentinel_is_asked_for() {
    let zones = zones(Kind::Nsec);
    let mut world = denying(validating(&zones), &zones);
    assert!(questions(&mut world, &zones, "root", Type::A) > 0);
    assert_eq!(questions(&mut world, &zones, "root-key", Type::A), 0);
    let before = denied(&world);
    for labels in ["root-key-sentinel-is-ta-20326", "root-key-sentinel-not-ta-20326"] {
        assert!(questions(&mut world, &zones, labels, Type::A) > 0, "{labels}");
    }
    assert_eq!(denied(&world), before);
}

#[test]
fn a_flush_a_reload_other_anchors_and_a_negative_anchor_end_what_was_proven() {
    let zones = zones(Kind::Nsec);
    let is_forgotten = |change: &dyn Fn(&mut World)| {
        let mut world = denying(validating(&zones), &zones);
        change(&mut world);
        questions(&mut world, &zones, "m1", Type::A) > 0
    };
    let apex = zones.apex().to_vec();
    let tld = signed_zones::name::parent(&apex).to_vec();
    assert!(!is_forgotten(&|_| ()));
    for name in [below(&zones, "m1"), below(&zones, "other"), apex.clone(), tld, vec![0]] {
        assert!(is_forgotten(&|world| assert!(world.engine.flush(&name) < 9)));
        assert!(is_forgotten(&|world| assert!(world.engine.flush_below(&name, 0).0 < 9)));
    }
    assert!(!is_forgotten(&|world| assert_eq!(world.engine.flush(&name("other.test.")), 0)));
    assert!(is_forgotten(&|world| assert!(world.engine.flush_all(0).0 < 9)));
    let unchecked = vec![UncheckedZone { zone: apex.into(), until: None }];
    let negative = Arc::new(ValidationConfig { unchecked, ..config(&zones) });
    assert!(is_forgotten(&|world| world.engine.set_validation(&negative)));
    let mut reloaded = validating(&zones);
    reloaded.validation = Some(Arc::clone(&negative));
    assert!(is_forgotten(&|world| drop(world.engine.configure(reloaded.clone()))));
    let other = TrustAnchor { zone: [0].into(), record: AnchorRecord::Ds([0, 1, 13, 2, 0].into()) };
    let others = Arc::new(ValidationConfig { anchors: vec![other], ..config(&zones) });
    assert!(is_forgotten(&|world| world.engine.set_validation(&others)));
}

// A reply to a question that was asked before a flush may hold what was flushed.
#[test]
fn a_reply_to_a_question_from_before_a_flush_denies_no_other_name() {
    let zones = zones(Kind::Nsec);
    let mut world = world(&zones, validating(&zones));
    // The keys of the zone are known before.
    questions(&mut world, &zones, "both", Type::A);
    world.ask(&query(&zones, "m", Type::A, C2));
    world.run(Span::from_millis(5));
    world.engine.flush(&below(&zones, "m"));
    world.run(Span::from_millis(100));
    assert!(questions(&mut world, &zones, "m0", Type::A) > 0);
}

#[test]
fn without_the_setting_and_without_a_cache_every_name_is_asked_for() {
    let zones = zones(Kind::Nsec);
    let mut settings = validating(&zones);
    settings.validation = Some(Arc::new(ValidationConfig { aggressive_nsec: false, ..config(&zones) }));
    let mut off = world(&zones, settings);
    let mut uncached = World::with_cache(validating(&zones), 0);
    uncached.engine.set_unix_time(uncached.now, Span::from_secs(u64::from(zones.now())));
    let answering = Rc::clone(&zones);
    uncached.set_upstreams(move |asked, _| reply(&answering, asked));
    for world in [&mut off, &mut uncached] {
        for labels in ["m", "m0", "m1"] {
            assert!(questions(world, &zones, labels, Type::A) > 0, "{labels}");
        }
    }
}

// RFC 8198 section 5: only what was validated.
#[test]
fn a_bogus_reply_is_no_proof() {
    let fault = faults::all()
        .into_iter()
        .find(|fault| fault.plant == Plant::Signature(faults::Place::Proof, faults::Twist::SignatureBit))
        .expect("a fault of the table");
    let zones = Rc::new(Zones::new(&Store::new(5), Kind::Nsec, &fault));
    let mut world = world(&zones, validating(&zones));
    for labels in ["m", "m0", "m1"] {
        let (answer, asked) = resolve(&mut world, &query(&zones, labels, Type::A, C2));
        assert_eq!(answer.rcode(), Rcode::SERVFAIL);
        assert!(!asked.is_empty());
    }
}
