//! Validation (`dnssec = "validate"`): every fault of the generated zones, judged by the engine as the table says, with replies of a world of
//! signed zones instead of upstreams.

use crate::world::{Answer, ClientQuery, Delivery, SentQuery, World, client, deliver_octets, settings};
use dnssec::Digests;
use engine::settings::{AnchorRecord, DigestFunctions, Dnssec, TrustAnchor, UncheckedZone, ValidationConfig};
use engine::{Counter, Settings, Span};
use signatures::AwsLc;
use signed_zones::faults::{self, Fault, Place, Plant, ReplyTwist, Twist};
use signed_zones::{Anchor, KINDS, Kind, Owed, QUESTIONS, Store, Verdict, World as Zones};
use std::rc::Rc;
use std::sync::Arc;
use wire::{Class, Flags, Rcode, Section, Type};

/// Digests of AWS-LC.
const DIGESTS: DigestFunctions = DigestFunctions {
    sha1: |octets| AwsLc.sha1(octets),
    sha256: |octets| AwsLc.sha256(octets),
    sha384: |octets| AwsLc.sha384(octets),
};

/// Settings of validation with the anchors of a world of zones.
pub(super) fn config(zones: &Zones) -> ValidationConfig {
    let mut config = ValidationConfig {
        digests: DIGESTS,
        anchors: vec![],
        unchecked: vec![],
        algorithms: dnssec::Algorithms::CURRENT,
        nsec3_iterations: 50,
        permissive: false,
        aggressive_nsec: true,
    };
    for anchor in zones.anchors() {
        let (zone, record) = match anchor {
            Anchor::Ds(zone, rdata) => (zone, AnchorRecord::Ds(rdata[..].into())),
            Anchor::Dnskey(zone, rdata) => (zone, AnchorRecord::Dnskey(rdata[..].into())),
            Anchor::Negative(zone, until) => {
                config.unchecked.push(UncheckedZone { zone: zone[..].into(), until: *until });
                continue;
            }
        };
        config.anchors.push(TrustAnchor { zone: zone[..].into(), record });
    }
    config
}

/// Settings that validate with the anchors of a world of zones.
pub fn validating(zones: &Zones) -> Settings {
    let mut settings = settings();
    settings.dns64.dnssec = Dnssec::Validate;
    settings.validation = Some(Arc::new(config(zones)));
    settings
}

/// Reply of a world of zones to a query.
pub(super) fn octets(zones: &Zones, asked: &SentQuery) -> Vec<u8> {
    let message = asked.message();
    let mut name = message.qname().to_vec();
    wire::fold(&mut name);
    let rtype = message.qtype().0;
    let mut octets = zones.reply(&name, rtype).octets(&name, rtype);
    octets[..2].copy_from_slice(&asked.bytes[..2]);
    octets[12..12 + name.len()].copy_from_slice(message.qname());
    octets
}

/// World whose upstream answers from zones after 10 ms.
pub fn world(zones: &Rc<Zones>, settings: Settings) -> World {
    let mut world = World::sized(settings, 64, 1);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
    let zones = Rc::clone(zones);
    world.set_upstreams(move |asked, _| reply(&zones, asked));
    world
}

pub fn reply(zones: &Zones, asked: &SentQuery) -> Vec<Delivery> {
    vec![deliver_octets(asked, Span::from_millis(10), octets(zones, asked))]
}

/// Query of a client that sets DO.
pub fn dnssec_query(name: &[u8], qtype: Type, id: u16) -> ClientQuery {
    ClientQuery {
        client: client("2001:db8:c::1", 40_000),
        id,
        name: name.to_vec(),
        qtype,
        class: Class::IN,
        flags: Flags::RD,
        edns: Some((1232, true)),
        edns_version: 0,
        options: vec![],
    }
}

/// Answer to a query, and the number of questions upstream and of verifications that it took.
pub fn resolve(world: &mut World, query: &ClientQuery) -> (Answer, usize, usize) {
    let before = (world.asked.len(), world.outbox.verifications);
    let token = world.ask(query);
    world.run(Span::from_secs(4));
    let answer = world.answer_to(token).clone();
    (answer, world.asked.len() - before.0, world.outbox.verifications - before.1)
}

/// Response that an answer gives.
fn given(answer: &Answer) -> Owed {
    let verdict = match (answer.rcode(), answer.flags().contains(Flags::AD), answer.ede()) {
        (Rcode::SERVFAIL, _, Some(22)) => Verdict::Unreachable,
        (Rcode::SERVFAIL, ..) => Verdict::Bogus,
        (_, true, _) => Verdict::Secure,
        (_, false, _) => Verdict::Insecure,
    };
    Owed { verdict, rcode: answer.rcode().0 as u8, is_authentic: answer.flags().contains(Flags::AD) }
}

/// Differences between the table and the engine, each a line.
fn differences(store: &Store, kind: Kind, fault: &Fault) -> Vec<String> {
    let zones = Rc::new(Zones::new(store, kind, fault));
    let mut settings = validating(&zones);
    // Without DNS64 an AAAA question is one like any other.
    settings.dns64.clients = crate::world::clients("::ffff:0:0/96");
    // An answer that is truncated has no AD.
    settings.udp_size = 4096;
    let mut world = world(&zones, settings);
    let mut found = Vec::new();
    for place in (1..QUESTIONS.len()).chain([0]) {
        let (name, rtype) = zones.question(place);
        let Some(mut owed) = fault.owed(kind, place) else { continue };
        // A client cannot tell that there is no anchor.
        if owed.verdict == Verdict::NoAnchor {
            owed.verdict = Verdict::Insecure;
        }
        let query = dnssec_query(&name, Type(rtype), place as u16).edns(4096, true);
        // Signatures begin and end in this second.
        world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
        let (answer, questions, verifications) = resolve(&mut world, &query);
        if given(&answer) != owed || questions > 1 + 12 + 2 || verifications > 32 {
            let what = QUESTIONS[place].what;
            let seed = store.seed();
            found.push(format!(
                "seed {seed}, {kind:?}, {:?}: {what}: owed {owed:?}, given {:?}, EDE {:?}, {questions} questions, \
                 {verifications} verifications",
                fault.plant,
                given(&answer),
                answer.ede(),
            ));
        }
    }
    found
}

#[test]
fn a_zone_with_a_fault_is_answered_as_the_rfcs_say() {
    let mut found = Vec::new();
    for (seed, kind) in (0..).zip(KINDS) {
        let store = Store::new(seed);
        for fault in faults::all().iter().filter(|fault| fault.kinds.contains(&kind)) {
            found.extend(differences(&store, kind, fault));
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

/// Row of the table without a fault.
fn none() -> Fault {
    *faults::all().iter().find(|fault| fault.plant == Plant::None).expect("a row without a fault")
}

/// Zones with a fault, of which there are several kinds of denial: NSEC here.
pub fn zones_with(plant: Plant) -> Rc<Zones> {
    let fault = *faults::all().iter().find(|fault| fault.plant == plant).expect("a fault of the table");
    Rc::new(Zones::new(&Store::new(5), Kind::Nsec, &fault))
}

/// Name below the apex of the zone.
pub(super) fn below(zones: &Zones, label: &str) -> Vec<u8> {
    [&[label.len() as u8], label.as_bytes(), zones.apex()].concat()
}

/// Query for AAAA records of a client of a class of the table of RFC 6147 section 5.5.
pub(super) fn classed(zones: &Zones, label: &str, class: (bool, bool, bool)) -> ClientQuery {
    classed_query(&below(zones, label), class)
}

/// Query for AAAA records of a name, of a client of a class: DO, CD, AD.
pub fn classed_query(name: &[u8], class: (bool, bool, bool)) -> ClientQuery {
    let (dnssec_ok, cd, ad) = class;
    let mut flags = Flags::RD;
    for (is_set, flag) in [(cd, Flags::CD), (ad, Flags::AD)] {
        if is_set {
            flags = flags.with(flag);
        }
    }
    let query = dnssec_query(name, Type::AAAA, 7).flags(flags);
    query.edns(1232, dnssec_ok)
}

pub const C0: (bool, bool, bool) = (false, false, false);
pub const C1: (bool, bool, bool) = (false, false, true);
pub const C2: (bool, bool, bool) = (true, false, false);
pub const C3: (bool, bool, bool) = (false, true, false);
pub const C4: (bool, bool, bool) = (true, true, false);

/// The address of the name `four`, under the prefix of the tests.
const SYNTHESIZED: &str = "2001:db8:64::c000:204";

/// RCODE, AD, addresses and extended error of the answer to each class of clients.
fn classes(zones: &Rc<Zones>, label: &str) -> Vec<(Rcode, bool, Vec<String>, Option<u16>)> {
    [C0, C1, C2, C3, C4]
        .map(|class| {
            let mut world = world(zones, validating(zones));
            let (answer, ..) = resolve(&mut world, &classed(zones, label, class));
            world.assert_conservation();
            (answer.rcode(), answer.flags().contains(Flags::AD), answer.addresses(), answer.ede())
        })
        .into()
}

// RFC 6147 section 5.5.
#[test]
fn a_name_without_aaaa_records_is_synthesized_with_ad_for_clients_that_ask_for_signatures() {
    let zones = zones_with(Plant::None);
    let synthesized = |ad| (Rcode::NOERROR, ad, vec![SYNTHESIZED.to_owned()], Some(29));
    let got = classes(&zones, "four");
    assert_eq!(got[..3], [synthesized(false), synthesized(false), synthesized(true)]);
    assert_eq!(got[3], synthesized(false));
    // The client validates by itself.
    assert_eq!((got[4].0, got[4].1, got[4].2.len()), (Rcode::NOERROR, false, 0));
}

// RFC 6147 section 5.5.
#[test]
fn a_denial_that_is_not_proven_leads_to_no_synthesis() {
    let zones = zones_with(Plant::Signature(Place::Proof, Twist::SignatureBit));
    let got = classes(&zones, "four");
    for (rcode, ad, addresses, ede) in &got[..3] {
        assert_eq!((*rcode, *ad, addresses.len(), *ede), (Rcode::SERVFAIL, false, 0, Some(6)));
    }
    // CD: nobody validates for this client.
    assert_eq!((got[3].0, &got[3].2[..]), (Rcode::NOERROR, &[SYNTHESIZED.to_owned()][..]));
}

#[test]
fn a_chain_that_cannot_be_had_is_no_failure_of_the_aaaa_lookup() {
    for plant in [Plant::Reply(ReplyTwist::DsFails), Plant::Reply(ReplyTwist::KeysFail)] {
        let zones = zones_with(plant);
        for (rcode, ad, addresses, ede) in &classes(&zones, "four")[..3] {
            assert_eq!(
                (*rcode, *ad, addresses.len(), *ede),
                (Rcode::SERVFAIL, false, 0, Some(22)),
                "{plant:?}"
            );
        }
    }
}

/// World whose upstream does not answer AAAA questions.
fn without_aaaa(zones: &Rc<Zones>) -> World {
    let mut world = world(zones, validating(zones));
    let answering = Rc::clone(zones);
    world.set_upstreams(move |asked, _| match asked.qtype() {
        Type::AAAA => vec![],
        _ => reply(&answering, asked),
    });
    world
}

#[test]
fn an_aaaa_lookup_that_fails_leads_to_synthesis_in_insecure_zones_alone() {
    let zones = zones_with(Plant::None);
    let mut world = without_aaaa(&zones);
    let token = world.ask(&classed(&zones, "four", C0));
    world.run(Span::from_secs(10));
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.ede(), answer.addresses().len()), (Rcode::SERVFAIL, Some(23), 0));
    let mut world = without_aaaa(&zones);
    let name = [&b"\x04host\x05plain"[..], zones.apex()].concat();
    let token = world.ask(&ClientQuery { name, ..classed(&zones, "four", C0) });
    world.run(Span::from_secs(10));
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.addresses().len()), (Rcode::NOERROR, 1));
}

// RFC 8509 sections 2 and 3: SERVFAIL for secure A and AAAA replies, with the four cases of the two labels.
#[test]
fn sentinels_tell_which_keys_of_the_root_are_trusted_also_with_dns64() {
    let zones = zones_with(Plant::None);
    let Some(Anchor::Ds(_, rdata)) = zones.anchors().first() else { panic!("a DS record of the root") };
    let trusted = u16::from_be_bytes([rdata[0], rdata[1]]);
    let other = trusted ^ 1;
    let label = |word: &str, tag: u16| format!("root-key-sentinel-{word}-ta-{tag:05}");
    for (name, is_withheld) in [
        (label("is", trusted), false),
        (label("is", other), true),
        (label("not", trusted), true),
        (label("not", other), false),
    ] {
        for (qtype, class) in
            [(Type::A, C0), (Type::A, C2), (Type::AAAA, C0), (Type::AAAA, C2), (Type::A, C3), (Type::TXT, C2)]
        {
            let mut world = world(&zones, validating(&zones));
            let name = [&[name.len() as u8], name.as_bytes(), b"\x04wild", zones.apex()].concat();
            let (answer, ..) =
                resolve(&mut world, &ClientQuery { name, qtype, ..classed(&zones, "x", class) });
            let is_asked = qtype != Type::TXT && class != C3;
            let expected = if is_withheld && is_asked { Rcode::SERVFAIL } else { Rcode::NOERROR };
            assert_eq!(answer.rcode(), expected, "{qtype} {class:?} of {is_withheld}");
            let has_addresses = qtype != Type::TXT && expected == Rcode::NOERROR;
            assert_eq!(answer.records(Section::Answer).is_empty(), !has_addresses, "{qtype} {class:?}");
        }
    }
}

// RFC 9824 sections 3.1 and 5: with DO the proof stands beside NOERROR, without DO the response code is restored.
#[test]
fn a_compact_denial_of_a_name_ends_a_resolution_with_one_lookup() {
    let zones = Rc::new(Zones::new(&Store::new(5), Kind::Compact, &none()));
    for (class, rcode) in [(C0, Rcode::NXDOMAIN), (C1, Rcode::NXDOMAIN), (C2, Rcode::NOERROR)] {
        let mut world = World::with_cache(validating(&zones), 1 << 20);
        world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
        let answering = Rc::clone(&zones);
        world.set_upstreams(move |asked, _| reply(&answering, asked));
        for id in 0..2 {
            let (answer, ..) = resolve(&mut world, &classed(&zones, "nothing", class).id(id));
            let ad = class != C0;
            assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (rcode, ad));
            assert!(answer.addresses().is_empty());
        }
        assert!(world.asked.iter().all(|asked| asked.qtype() != Type::A));
        assert_eq!(world.asked.iter().filter(|asked| asked.qtype() == Type::AAAA).count(), 1);
        // A name with other types is synthesized as ever.
        let (answer, ..) = resolve(&mut world, &classed(&zones, "four", class).id(9));
        assert_eq!(answer.addresses(), [SYNTHESIZED]);
    }
}

// RFC 4035 section 3.2.1, RFC 6840 sections 5.8 and 5.9.
#[test]
fn upstreams_are_asked_for_signatures_and_not_to_validate_and_their_ad_means_nothing() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    let lying = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| {
        let mut octets = octets(&lying, asked);
        octets[3] |= 0x20;
        vec![deliver_octets(asked, Span::from_millis(1), octets)]
    });
    let name = [&b"\x04host\x05plain"[..], zones.apex()].concat();
    let query = ClientQuery { name, qtype: Type::A, ..classed(&zones, "four", C2) };
    let (answer, ..) = resolve(&mut world, &query);
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, false));
    assert!(world.asked.iter().any(|asked| asked.qtype() == Type::DNSKEY));
    assert!(world.asked.iter().any(|asked| asked.qtype() == Type::DS));
    for asked in &world.asked {
        let message = asked.message();
        assert!(message.opt().is_some_and(|opt| opt.dnssec_ok()), "{}", asked.name());
        assert!(message.flags().contains(Flags::CD) && !message.flags().contains(Flags::AD));
    }
}

// RFC 4035 section 3.2.1.
#[test]
fn a_client_without_do_gets_no_signatures_and_one_with_do_gets_them() {
    let zones = zones_with(Plant::None);
    for (class, expected) in [(C0, false), (C2, true)] {
        let mut world = world(&zones, validating(&zones));
        let (answer, ..) = resolve(&mut world, &classed(&zones, "both", class));
        let has_signatures = answer.records(Section::Answer).iter().any(|line| line.contains("RRSIG"));
        assert_eq!((answer.rcode(), has_signatures), (Rcode::NOERROR, expected));
    }
}

// RFC 4035 section 4.7, RFC 9520 section 3.2.
#[test]
fn a_bogus_reply_is_kept_for_a_second_doubling_to_sixty() {
    let zones = zones_with(Plant::Signature(Place::Address, Twist::SignatureBit));
    let mut world = World::with_cache(validating(&zones), 1 << 20);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
    let answering = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| reply(&answering, asked));
    let query = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
    let mut asked_at = vec![];
    for second in 0..200u16 {
        let before = world.asked.len();
        let token = world.ask(&query.clone().id(second));
        world.run(Span::from_secs(1));
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
        if world.asked[before..].iter().any(|asked| asked.qtype() == Type::A) {
            asked_at.push(second);
        }
    }
    let pauses: Vec<u16> = asked_at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A reply comes 10 ms after its question, so the first query after its end is one second later.
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60].map(|lifetime| lifetime + 1));
    assert!(world.asked.len() < 30, "{}", world.asked.len());
}

#[test]
fn a_bogus_reply_is_asked_of_another_forwarder_at_once() {
    let good = zones_with(Plant::None);
    let bad = zones_with(Plant::Signature(Place::Address, Twist::SignatureBit));
    let mut settings = validating(&good);
    settings.upstream.forwarders = crate::world::forwarders("192.0.2.53 192.0.2.54");
    let mut world = world(&good, settings);
    let both = [Rc::clone(&bad), Rc::clone(&good)];
    world.set_upstreams(move |asked, _| {
        let is_bad = asked.upstream.ip() == std::net::IpAddr::from([192, 0, 2, 53]);
        reply(&both[usize::from(!is_bad)], asked)
    });
    let query = ClientQuery { qtype: Type::A, ..classed(&good, "both", C2) };
    let (answer, ..) = resolve(&mut world, &query);
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, true));
    let of_name = world.asked.iter().filter(|asked| asked.qtype() == Type::A);
    assert_eq!(of_name.count(), 2);
}

#[test]
fn permissive_validation_answers_bogus_data_without_ad_and_no_broken_chain() {
    for (plant, expected) in [
        (Plant::Signature(Place::Address, Twist::SignatureBit), Rcode::NOERROR),
        (Plant::Reply(ReplyTwist::DsFails), Rcode::SERVFAIL),
    ] {
        let zones = zones_with(plant);
        let mut settings = validating(&zones);
        settings.validation = Some(Arc::new(ValidationConfig { permissive: true, ..config(&zones) }));
        let mut world = world(&zones, settings);
        let query = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
        let (answer, ..) = resolve(&mut world, &query);
        assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (expected, false), "{plant:?}");
    }
}

/// Reaction of the second of two forwarders, while the first gives bogus data.
#[derive(Clone, Copy, Debug)]
enum Second {
    Good,
    Bogus,
    Fails,
    Silent,
}

// To see what would fail, the way is the one that decides it: other servers first, and once with CD clear (RFC 6840 appendix B). What they
// cannot give does not take the data away.
#[test]
fn permissive_validation_asks_others_first_and_answers_without_ad_only_what_would_fail() {
    let (good, bad) =
        (zones_with(Plant::None), zones_with(Plant::Signature(Place::Address, Twist::SignatureBit)));
    for (second, is_authentic) in
        [(Second::Good, true), (Second::Bogus, false), (Second::Fails, false), (Second::Silent, false)]
    {
        let mut settings = validating(&good);
        settings.upstream.forwarders = crate::world::forwarders("192.0.2.53 192.0.2.54");
        settings.validation = Some(Arc::new(ValidationConfig { permissive: true, ..config(&good) }));
        let mut world = world(&good, settings);
        let both = [Rc::clone(&bad), Rc::clone(&good)];
        world.set_upstreams(move |asked, _| {
            let is_address = asked.qtype() == Type::A;
            let is_first = asked.upstream.ip() == std::net::IpAddr::from([192, 0, 2, 53]);
            match second {
                _ if !is_address => reply(&both[1], asked),
                _ if is_first => reply(&both[0], asked),
                Second::Good => reply(&both[1], asked),
                Second::Bogus => reply(&both[0], asked),
                Second::Fails => {
                    let mut octets = asked.bytes.clone();
                    (octets[2], octets[3]) = (octets[2] | 0x80, 0x80 | Rcode::SERVFAIL.0 as u8);
                    vec![deliver_octets(asked, Span::from_millis(10), octets)]
                }
                Second::Silent => vec![],
            }
        });
        let query = ClientQuery { qtype: Type::A, ..classed(&good, "both", C2) };
        let asked_of_both = |world: &World| {
            let of_name = world.asked.iter().filter(|asked| asked.qtype() == Type::A);
            of_name.map(|asked| asked.upstream).collect::<std::collections::BTreeSet<_>>().len() == 2
        };
        let (answer, ..) = resolve(&mut world, &query);
        let given =
            (answer.rcode(), answer.flags().contains(Flags::AD), answer.records(Section::Answer).len());
        assert_eq!((given.0, given.1, given.2 > 0), (Rcode::NOERROR, is_authentic, true), "{second:?}");
        assert!(asked_of_both(&world), "{second:?}");
        // Soon after, all others are not asked in vain again.
        world.asked.clear();
        let (answer, ..) = resolve(&mut world, &query.clone().id(77));
        assert_eq!(answer.rcode(), Rcode::NOERROR, "{second:?}");
        let questions = world.asked.iter().filter(|asked| asked.qtype() == Type::A).count();
        assert_eq!(questions, if is_authentic { 2 } else { 1 }, "{second:?}");
    }
}

#[test]
fn a_driver_that_takes_no_verification_gets_servfail_and_no_synthesis() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    world.outbox.no_verifications = true;
    let (answer, ..) = resolve(&mut world, &classed(&zones, "four", C0));
    assert_eq!((answer.rcode(), answer.addresses().len()), (Rcode::SERVFAIL, 0));
}

#[test]
fn equal_questions_share_one_validation_and_later_names_of_a_zone_need_no_question_about_it() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    let query = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
    let tokens: Vec<_> = (0..10).map(|port| world.ask(&query.clone().port(1000 + port))).collect();
    world.run(Span::from_secs(1));
    for token in tokens {
        assert!(world.answer_to(token).flags().contains(Flags::AD));
    }
    assert_eq!(world.asked.iter().filter(|asked| asked.qtype() == Type::A).count(), 1);
    let next = ClientQuery { qtype: Type::A, ..classed(&zones, "four", C2) };
    let (answer, questions, verifications) = resolve(&mut world, &next);
    assert!(answer.flags().contains(Flags::AD));
    assert_eq!((questions, verifications), (1, 1));
}

#[test]
fn a_signature_that_was_found_valid_is_not_verified_again() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    let positive = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
    let negative = ClientQuery { qtype: Type::TXT, ..classed(&zones, "both", C2) };
    assert!(resolve(&mut world, &positive).2 > 0);
    // SOA and NSEC.
    assert_eq!(resolve(&mut world, &negative).2, 2);
    for query in [&positive, &negative] {
        let (answer, questions, verifications) = resolve(&mut world, query);
        assert!(answer.flags().contains(Flags::AD));
        assert_eq!((questions, verifications), (1, 0), "there is no cache");
    }
    // Another denial of the zone has the SOA record of the former one, and its own NSEC record.
    let other = ClientQuery { qtype: Type::TXT, ..classed(&zones, "four", C2) };
    assert_eq!(resolve(&mut world, &other).2, 1);
    let signatures = |result| world.engine.counters().get(result);
    assert_eq!(signatures(Counter::SignatureRemembered), 1 + 2 + 1);
    assert_eq!(signatures(Counter::SignatureWrong), 0);
    assert_eq!(signatures(Counter::SignatureValid), world.outbox.verifications as u64);
}

/// World without a cache that remembers the signature of a name's A records, and the query for these.
fn remembering(zones: &Rc<Zones>) -> (World, ClientQuery) {
    let mut world = world(zones, validating(zones));
    let query = ClientQuery { qtype: Type::A, ..classed(zones, "both", C2) };
    assert!(resolve(&mut world, &query).2 > 0);
    assert_eq!(resolve(&mut world, &query).2, 0, "the signature is remembered");
    (world, query)
}

// RFC 4035 sections 5.3.1 and 5.3.3: its times are checked at each use, and no record outlives its signature.
#[test]
fn a_remembered_signature_limits_the_ttl_and_expires_like_any_other() {
    let zones = zones_with(Plant::None);
    let (mut world, query) = remembering(&zones);
    // Signatures of the zones end 100,000 s after their time, records live for 3,600 s.
    let expiration = u64::from(zones.now()) + 100_000;
    world.engine.set_unix_time(world.now, Span::from_secs(expiration - 50));
    let (answer, _, verifications) = resolve(&mut world, &query);
    assert_eq!((answer.rcode(), verifications), (Rcode::NOERROR, 0));
    let ttl = |line: &String| line.split(' ').nth(1).and_then(|ttl| ttl.parse::<u64>().ok()).expect("a TTL");
    let ttls: Vec<u64> = answer.records(Section::Answer).iter().map(ttl).collect();
    assert!(!ttls.is_empty() && ttls.iter().all(|ttl| (45..=50).contains(ttl)), "{ttls:?}");
    world.engine.set_unix_time(world.now, Span::from_secs(expiration + 1));
    let (answer, ..) = resolve(&mut world, &query);
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(7)));
}

// RFC 4035 section 5.3.3: a signature is valid for the data that it signs.
#[test]
fn a_remembered_signature_is_not_valid_for_other_data() {
    let zones = zones_with(Plant::None);
    let (mut world, query) = remembering(&zones);
    let forging = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| {
        let mut octets = octets(&forging, asked);
        // Type A, class IN, a TTL of 3,600 s, and four octets.
        let address = octets.windows(10).position(|part| part == [0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4]);
        if let Some(place) = address {
            octets[place + 13] ^= 0x80;
        }
        vec![deliver_octets(asked, Span::from_millis(10), octets)]
    });
    let remembered = world.engine.counters().get(Counter::SignatureRemembered);
    let (answer, ..) = resolve(&mut world, &query);
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(6)));
    assert!(world.engine.counters().get(Counter::SignatureWrong) > 0);
    assert_eq!(world.engine.counters().get(Counter::SignatureRemembered), remembered);
}

// RFC 4035 section 5.4: the denial of the AAAA record has an NSEC record and the SOA record; then there is the A record. The signature over
// the SOA record was seen before.
#[test]
fn a_synthesized_answer_of_a_new_name_in_a_known_zone_costs_two_verifications() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    resolve(&mut world, &ClientQuery { qtype: Type::TXT, ..classed(&zones, "both", C2) });
    let (answer, questions, verifications) = resolve(&mut world, &classed(&zones, "four", C0));
    assert_eq!((answer.rcode(), answer.addresses().len()), (Rcode::NOERROR, 1));
    assert_eq!((questions, verifications), (2, 2));
}

#[test]
fn a_wrong_signature_is_verified_each_time() {
    let zones = zones_with(Plant::None);
    let mut world = world(&zones, validating(&zones));
    let altering = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| {
        let mut octets = octets(&altering, asked);
        if asked.qtype() == Type::A {
            // The last octet of the data of the last RRSIG record, before the OPT record of 11 octets.
            let place = octets.len() - 12;
            octets[place] ^= 1;
        }
        vec![deliver_octets(asked, Span::from_millis(10), octets)]
    });
    let query = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
    for _ in 0..2 {
        let before = world.engine.counters().get(Counter::SignatureWrong);
        let (answer, _, verifications) = resolve(&mut world, &query);
        assert_eq!(answer.rcode(), Rcode::SERVFAIL);
        assert!(verifications > 0);
        assert!(world.engine.counters().get(Counter::SignatureWrong) > before);
        // The failure is cached for a second.
        world.run(Span::from_secs(5));
    }
    assert_eq!(world.engine.counters().get(Counter::SignatureRemembered), 0);
}

#[test]
fn a_reload_with_other_anchors_ends_what_was_proven_under_the_former_ones() {
    let zones = zones_with(Plant::None);
    let mut world = World::with_cache(validating(&zones), 1 << 20);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
    let answering = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| reply(&answering, asked));
    let query = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
    assert!(resolve(&mut world, &query).0.flags().contains(Flags::AD));
    assert_eq!(resolve(&mut world, &query.clone().id(8)).1, 0, "the answer is cached");
    let mut others = config(&zones);
    others.anchors.iter_mut().for_each(|anchor| {
        anchor.record = AnchorRecord::Ds(b"\x00\x01\x0d\x02\x00".as_slice().into());
    });
    let mut settings = validating(&zones);
    settings.validation = Some(Arc::new(others));
    drop(world.engine.configure(settings));
    assert_eq!(resolve(&mut world, &query.clone().id(9)).0.rcode(), Rcode::SERVFAIL);
    let mut settings = crate::world::settings();
    settings.dns64.dnssec = Dnssec::Off;
    drop(world.engine.configure(settings));
    let (answer, questions, verifications) = resolve(&mut world, &query.clone().id(10));
    assert_eq!((answer.rcode(), answer.flags().contains(Flags::AD)), (Rcode::NOERROR, false));
    assert_eq!((questions, verifications), (1, 0));
}

#[test]
fn anchors_that_change_end_what_is_known_of_zones_and_keep_cached_answers_until_they_are_flushed() {
    let zones = zones_with(Plant::None);
    let mut world = World::with_cache(validating(&zones), 1 << 20);
    world.engine.set_unix_time(world.now, Span::from_secs(u64::from(zones.now())));
    let answering = Rc::clone(&zones);
    world.set_upstreams(move |asked, _| reply(&answering, asked));
    let query = ClientQuery { qtype: Type::A, ..classed(&zones, "both", C2) };
    assert!(resolve(&mut world, &query).0.flags().contains(Flags::AD));
    let mut others = config(&zones);
    others.anchors.iter_mut().for_each(|anchor| {
        anchor.record = AnchorRecord::Ds(b"\x00\x01\x0d\x02\x00".as_slice().into());
    });
    world.engine.set_validation(&Arc::new(others));
    assert!(resolve(&mut world, &query.clone().id(8)).0.flags().contains(Flags::AD), "the cached one");
    let other = ClientQuery { qtype: Type::A, ..classed(&zones, "four", C2) };
    assert_eq!(resolve(&mut world, &other).0.rcode(), Rcode::SERVFAIL);
    assert!(world.engine.flush_below(&query.name, 0).0 > 0);
    assert_eq!(resolve(&mut world, &query.clone().id(9)).0.rcode(), Rcode::SERVFAIL);
    // Where nothing is validated, nobody's anchors count.
    let mut settings = crate::world::settings();
    settings.dns64.dnssec = Dnssec::Off;
    drop(world.engine.configure(settings));
    world.engine.set_validation(&Arc::new(config(&zones)));
    assert!(world.engine.settings().validation.is_none());
    assert_eq!(resolve(&mut world, &query.clone().id(10)).0.rcode(), Rcode::NOERROR);
}

// The query went out without DO, so its reply has no signatures.
#[test]
fn a_question_in_flight_at_a_reload_that_begins_validation_is_asked_again() {
    let zones = zones_with(Plant::None);
    for (label, qtype) in [("four", Type::AAAA), ("both", Type::A)] {
        let mut before = crate::world::settings();
        before.dns64.dnssec = Dnssec::Trust;
        let mut world = world(&zones, before);
        let answering = Rc::clone(&zones);
        world.set_upstreams(move |asked, _| {
            let has_do = asked.message().opt().is_some_and(|opt| opt.dnssec_ok());
            let mut reply = reply(&answering, asked);
            if !has_do {
                reply = super::stripping::stripped(&answering, asked);
            }
            reply
        });
        let token = world.ask(&ClientQuery { qtype, ..classed(&zones, label, C0) });
        world.run(Span::from_millis(5));
        drop(world.engine.configure(validating(&zones)));
        world.run(Span::from_secs(4));
        let answer = world.answer_to(token);
        let has_data = !answer.records(Section::Answer).is_empty();
        assert_eq!((answer.rcode(), has_data), (Rcode::NOERROR, true), "{label}");
        assert!(
            world.engine.servers().all(|server| server.state() == engine::upstream::BreakerState::Closed)
        );
    }
}

/// Longest time in seconds that a query for a new name takes, and the questions about zones upstream, with a query each so many seconds.
fn asking_each(zones: &Rc<Zones>, pause_secs: u64, queries: u16) -> (Vec<usize>, usize) {
    let mut world = world(zones, validating(zones));
    let mut verified_after = vec![];
    for id in 0..queries {
        let name = below(zones, &format!("n{id}"));
        let before = world.asked.len();
        let token = world.ask(&ClientQuery { name, qtype: Type::A, ..classed(zones, "x", C2).id(id) });
        // A question takes 10 ms, and one behind another 20 ms.
        world.run(Span::from_millis(15));
        verified_after.push(usize::from(world.answers_to(token).is_empty()));
        world.run(Span::from_secs(pause_secs));
        assert!(world.answer_to(token).flags().contains(Flags::AD), "{id}");
        assert!(world.asked.len() - before <= 13);
    }
    let is_about_zone = |asked: &&SentQuery| matches!(asked.qtype(), Type::DS | Type::DNSKEY);
    (verified_after, world.asked.iter().filter(is_about_zone).count())
}

#[test]
fn the_keys_of_a_zone_in_use_are_refreshed_before_they_expire() {
    let zones = zones_with(Plant::None);
    // Records of the zones live for an hour, so the last tenth is 360 seconds.
    let (late, questions) = asking_each(&zones, 200, 100);
    assert_eq!((late[0], late[1..].iter().sum::<usize>()), (1, 0), "{late:?}");
    // 5.6 hours: 7 times the 5 questions, and those for names without a cut.
    assert!(questions <= 60, "{questions}");
    // Who asks less often than that has to wait.
    let (late, _) = asking_each(&zones, 3_700, 4);
    assert_eq!(late, [1; 4]);
}
