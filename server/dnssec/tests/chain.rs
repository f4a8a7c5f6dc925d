//! Chains of trust: the zone that is responsible for an RRset, the question that finds it, and the keys that DS records and anchors name.

use crate::arithmetic::AwsLc;
use crate::text::{Line, lines, message_of};
use crate::world::{
    Entered, NO_B, NOW, NXDOMAIN, SECURE, Table, World, key, octets, refused, signed, signed_by,
};
use sixfold_dnssec::anchors::ROOT;
use sixfold_dnssec::{
    Algorithms, Anchor, AnchorData, Anchors, Bogus, Budget, Delegation, Entry, Groups, Insecure, LowerName,
    MessageBudget, NegativeAnchor, Outcome, Question, Status, entry_by_anchors, entry_by_ds,
};
use wire::Message;

fn zone(text: &str) -> LowerName {
    LowerName::from_wire(&kit::message::name(text)).unwrap()
}

// RFC 4035 section 5.3.1: the zone has signed the RRset. A reply about another zone that might be there, which an attacker can spoil, does
// not take that away, so the verdict does not depend on what was asked before.
#[test]
fn a_reply_about_ds_records_that_cannot_be_trusted_does_not_spoil_what_the_zone_above_has_signed() {
    let unproven = Entered::Unproven(Bogus::Expired);
    let world = World::new(&["example"]).enter("b.example", unproven);
    let data = "a.b.example. A 192.0.2.1";
    let question = ("a.b.example.", 1);
    assert_eq!(world.verdict(question, 0, &signed("example", data), &[]), (SECURE, Outcome::Data));
    assert_eq!(world.verdict(question, 0, &lines(data), &[]), refused(Bogus::Expired));
    let denial = signed("example", "example. SOA . . 1 1 1 1 1\nexample. NSEC z.example. NS SOA RRSIG NSEC");
    assert_eq!(world.verdict(question, NXDOMAIN, &[], &denial), (SECURE, Outcome::NoName));
    assert_eq!(world.verdict(question, NXDOMAIN, &[], &[]), refused(Bogus::Expired));
    // A zone whose DS records were verified, and whose keys were not.
    let world = World::new(&["example"]).enter("b.example", Entered::Bogus(Bogus::Expired));
    assert_eq!(world.verdict(question, 0, &signed("example", data), &[]), refused(Bogus::Expired));
}

// One round trip for an unknown zone, and no walk over labels: the signer is asked for.
#[test]
fn a_signed_answer_of_an_unknown_zone_leads_to_the_signer_and_an_unsigned_one_to_the_next_label() {
    let world = World::new(&["example"]);
    let asked = |text: &str| Some(Question::Delegation(zone(text)));
    let answer = signed("c.b.example", "d.c.b.example. A 192.0.2.1");
    assert_eq!(world.asks(("d.c.b.example.", 1), 0, &answer, &[]), asked("c.b.example"));
    let plain = lines("d.c.b.example. A 192.0.2.1");
    assert_eq!(world.asks(("d.c.b.example.", 1), 0, &plain, &[]), asked("b.example"));
    let world = world.enter("b.example", Entered::NoCut);
    assert_eq!(world.asks(("d.c.b.example.", 1), 0, &plain, &[]), asked("c.b.example"));
    let world = world.enter("c.b.example", Entered::NoCut).enter("d.c.b.example", Entered::NoCut);
    assert_eq!(world.verdict(("d.c.b.example.", 1), 0, &plain, &[]), refused(Bogus::SignatureMissing));
    assert_eq!(world.verdict(("d.c.b.example.", 1), 0, &answer, &[]), refused(Bogus::Signer));
    let world = world.enter("c.b.example", Entered::Insecure(Insecure::Delegation));
    assert_eq!(
        world.verdict(("d.c.b.example.", 1), 0, &plain, &[]),
        (Status::Insecure(Insecure::Delegation), Outcome::Data)
    );
    // An unsigned denial leads the same way.
    let world = World::new(&["example"]);
    assert_eq!(world.asks(("b.example.", 1), NXDOMAIN, &[], &[]), asked("b.example"));
    // Nothing is known but the anchors.
    let world = World { zones: Table::default(), ..world };
    assert_eq!(world.asks(("b.example.", 1), 0, &plain, &[]), Some(Question::Anchor(LowerName::ROOT)));
}

// CVE-2026-35501 and CVE-2026-50106 (Unbound): an island below an insecure zone. RFC 7646 section 1.1.
#[test]
fn the_closest_anchor_decides_below_insecure_zones_and_negative_anchors() {
    let answer = signed("island.example", "a.island.example. A 192.0.2.1");
    let mut world = World::new(&["island.example"]).enter("example", Entered::Insecure(Insecure::Delegation));
    assert_eq!(world.verdict(("a.island.example.", 1), 0, &answer, &[]), (SECURE, Outcome::Data));
    let unsigned = (Status::Insecure(Insecure::Delegation), Outcome::NoName);
    assert_eq!(world.verdict(("b.example.", 1), NXDOMAIN, &[], &[]), unsigned);
    world.anchors.push(Anchor { zone: b"\x06island\x07example\0", data: AnchorData::Ds(b"") });
    world.zones.0.remove(&kit::message::name("island.example"));
    // A reply of the insecure parent says nothing about the island.
    let asked = Some(Question::Anchor(zone("island.example")));
    assert_eq!(world.asks(("a.island.example.", 1), NXDOMAIN, &[], &[]), asked);
    let mut world = world.enter("island.example", Entered::Secure(key()));
    world.negative.push(NegativeAnchor { zone: b"\x07example\0", until: None });
    assert_eq!(world.verdict(("a.island.example.", 1), 0, &answer, &[]), (SECURE, Outcome::Data));
    world.negative.push(NegativeAnchor { zone: b"\x06island\x07example\0", until: Some(NOW) });
    let ended = (Status::Insecure(Insecure::NegativeAnchor), Outcome::Data);
    assert_eq!(world.verdict(("a.island.example.", 1), 0, &answer, &[]), ended);
    world.now = NOW + 1;
    assert_eq!(world.verdict(("a.island.example.", 1), 0, &answer, &[]), (SECURE, Outcome::Data));
}

// RFC 4035 section 2.3: the NSEC record at a delegation is the parent's, and this parent needs no signatures. That the zone below has an
// anchor of its own (RFC 4033 section 2: an island of security) makes it no record of that zone.
#[test]
fn an_nsec_record_of_an_insecure_parent_at_an_island_is_judged_as_the_parents() {
    let mut world = World::new(&["island.example"]).enter("example", Entered::Insecure(Insecure::Delegation));
    world.anchors.push(Anchor { zone: b"\x06island\x07example\0", data: AnchorData::Ds(b"") });
    let unsigned = |outcome| (Status::Insecure(Insecure::Delegation), outcome);
    let text = "example. SOA . . 1 1 1 1 1\nisland.example. NSEC z.example. NS RRSIG NSEC";
    // No key of the parent is known, so neither a signature of it nor the lack of one says anything.
    for authority in [signed("example", text), lines(text)] {
        assert_eq!(world.verdict(("j.example.", 1), NXDOMAIN, &[], &authority), unsigned(Outcome::NoName));
        assert_eq!(world.verdict(("island.example.", 43), 0, &[], &authority), unsigned(Outcome::NoData));
    }
    // What the island has signed at this name is its own: at its apex it denies types, and a wrong signature is refused.
    let own =
        "island.example. SOA . . 1 1 1 1 1\nisland.example. NSEC a.island.example. NS SOA RRSIG NSEC DNSKEY";
    let mut own = signed("island.example", own);
    assert_eq!(world.verdict(("island.example.", 1), 0, &[], &own), (SECURE, Outcome::NoData));
    for line in own.iter_mut().filter(|line| line.rtype == 46) {
        let start = line.rdata.len() - 64;
        line.rdata[start] = 2;
    }
    assert_eq!(world.verdict(("island.example.", 1), 0, &[], &own), refused(Bogus::Signature));
}

/// The consequence of a reply to a question for DS records of `b.example`.
fn delegation(rcode: u8, answer: &[Line], authority: &[Line]) -> String {
    told_by(&World::new(&["example"]).enter("b.example", Entered::NoCut), rcode, answer, authority)
}

fn told_by(world: &World, rcode: u8, answer: &[Line], authority: &[Line]) -> String {
    let message = message_of(("b.example.", 43), rcode, [&octets(answer), &octets(authority)]);
    let mut told = String::from("asked");
    let (budget, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
    let (end, _) = world.run_with(&message, budget, resolution, |validation, groups, verdict| {
        told = match validation.delegation(groups, verdict) {
            Delegation::Signed(set) => format!("{} DS", set.len()),
            Delegation::Insecure(reason) => format!("{reason:?}"),
            Delegation::NoCut => "NoCut".into(),
            Delegation::NoName => "NoName".into(),
            Delegation::Bogus(reason) => format!("{reason:?}"),
        };
    });
    assert!(end.is_ok());
    told
}

#[test]
fn a_reply_about_ds_records_says_how_the_chain_goes_on() {
    let ds = "b.example. DS 1 13 2 d4b7d520e7bb5f0f67674a0cceb1e3e0614b93c4f9e99b8383f6a1e4469da50a";
    let deny = |text: &str| signed("example", &format!("example. SOA . . 1 1 1 1 1\n{text}"));
    assert_eq!(delegation(0, &signed("example", ds), &[]), "1 DS");
    assert_eq!(delegation(0, &signed("b.example", ds), &[]), "Signer");
    assert_eq!(delegation(0, &lines(ds), &[]), "SignatureMissing");
    assert_eq!(delegation(0, &signed_by("example", ds, Some(1)), &signed("example", NO_B)), "NoCut");
    assert_eq!(delegation(0, &[], &deny("b.example. NSEC c.example. NS RRSIG NSEC")), "Delegation");
    assert_eq!(delegation(0, &[], &deny("b.example. NSEC c.example. A RRSIG NSEC")), "NoCut");
    assert_eq!(delegation(0, &[], &deny("a.example. NSEC x.b.example. A RRSIG NSEC")), "NoCut");
    assert_eq!(delegation(0, &[], &deny("b.example. NSEC c.example. RRSIG NSEC TYPE128")), "NoName");
    assert_eq!(delegation(NXDOMAIN, &[], &deny(NO_B)), "NoName");
    // An alias is no delegation.
    assert_eq!(delegation(0, &signed("example", "b.example. CNAME a.example."), &[]), "NoCut");
    // The child's side, and nothing.
    assert_eq!(delegation(0, &[], &deny("b.example. NSEC c.b.example. NS SOA RRSIG NSEC")), "Denial");
    assert_eq!(delegation(0, &[], &[]), "Denial");
    assert_eq!(delegation(2, &[], &[]), "Unreachable");
}

/// The consequence of a reply to a question for DS records of `b.example`, below a secure zone whose neighbour `plain` needs no signatures.
fn delegation_beside_plain(answer: &[Line], authority: &[Line]) -> String {
    let world = World::new(&["example"])
        .enter("plain", Entered::Insecure(Insecure::Delegation))
        .enter("b.example", Entered::NoCut);
    told_by(&world, 0, answer, authority)
}

// RFC 4035 section 5.2: only a denial that lists NS and not DS is an unsigned delegation. An alias says that the name has no NS records
// (RFC 1034 section 3.6.2), and needs no more signatures than its own, although the reply as a whole is insecure.
#[test]
fn a_signed_alias_to_an_insecure_zone_makes_its_own_name_no_insecure_delegation() {
    let alias = signed("example", "b.example. CNAME host.plain.");
    let ds = "host.plain. DS 1 13 2 d4b7d520e7bb5f0f67674a0cceb1e3e0614b93c4f9e99b8383f6a1e4469da50a";
    assert_eq!(delegation_beside_plain(&alias, &[]), "NoCut");
    assert_eq!(delegation_beside_plain(&[alias.clone(), lines(ds)].concat(), &[]), "NoCut");
    assert_eq!(delegation_beside_plain(&alias, &lines("plain. SOA . . 1 1 1 1 1")), "NoCut");
    // By way of a second alias, and by wildcard with the proof that nothing is closer (section 5.3.4).
    let two = [signed("example", "b.example. CNAME c.example.\nc.example. CNAME host.plain.")].concat();
    assert_eq!(delegation_beside_plain(&two, &lines(ds)), "NoCut");
    let expanded = signed_by("example", "b.example. CNAME host.plain.", Some(1));
    assert_eq!(delegation_beside_plain(&expanded, &signed("example", NO_B)), "NoCut");
    // Without its signature the alias says nothing.
    assert_eq!(delegation_beside_plain(&alias[..1], &[]), "SignatureMissing");
}

// RFC 5155 sections 7.2.6 and 8.8: an answer by wildcard has the NSEC3 record that covers the next closer name, and no SOA record. If that
// span has Opt-Out, the name "may or may not exist" as an insecure delegation (section 9.2): neither the answer nor the proof says that it is
// none, so it needs no signatures. Without Opt-Out it is proven to be none.
#[test]
fn a_wildcard_alias_in_a_span_with_opt_out_leaves_it_open_if_its_name_is_an_insecure_delegation() {
    let parameters = sixfold_dnssec::Nsec3Param { hash: 1, flags: 0, iterations: 0, salt: b"" };
    let hash = sixfold_dnssec::nsec3::hash(&kit::message::name("b.example"), &parameters, &AwsLc);
    let beside = |by: u8| {
        let mut octets = hash;
        // The last octet of this hash is neither 0 nor 255.
        octets[19] = octets[19].wrapping_add(by);
        data_encoding::BASE32_DNSSEC.encode(&octets)
    };
    let alias = signed_by("example", "b.example. CNAME a.example.", Some(1));
    for (flags, expected) in [(1, "OptOut"), (0, "NoCut")] {
        let text = format!("{}.example. NSEC3 1 {flags} 0 - {} A RRSIG", beside(255), beside(1));
        assert_eq!(delegation(0, &alias, &signed("example", &text)), expected, "{flags}");
    }
    assert_eq!(delegation(0, &alias, &signed("example", NO_B)), "NoCut");
    assert_eq!(delegation(0, &alias, &[]), "Denial");
}

// Six hashes of 50 iterations for a name four labels below the apex are more than half of what a message may cost.
#[test]
fn hashes_that_the_verdict_has_paid_for_are_not_paid_for_again_by_the_delegation() {
    let zone = "example";
    let name = "d.c.b.a.example";
    let hashed = |name: &str| {
        let salt = sixfold_dnssec::Nsec3Param { hash: 1, flags: 0, iterations: 50, salt: b"" };
        data_encoding::BASE32_DNSSEC.encode(&sixfold_dnssec::nsec3::hash(
            &kit::message::name(name),
            &salt,
            &AwsLc,
        ))
    };
    let next = hashed("z.example");
    let text = format!("{}.{zone}. NSEC3 1 0 50 - {next} NS", hashed(name));
    let authority = signed(zone, &format!("example. SOA . . 1 1 1 1 1\n{text}"));
    let message = message_of((name, 43), 0, [&[], &octets(&authority)]);
    let mut world = World::new(&[zone]);
    for above in ["a.example", "b.a.example", "c.b.a.example"] {
        world = world.enter(above, Entered::NoCut);
    }
    let mut is_insecure = false;
    let (budget, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
    let (end, _) = world.run_with(&message, budget, resolution, |validation, groups, verdict| {
        let found = validation.delegation(groups, verdict);
        is_insecure = matches!(found, Delegation::Insecure(Insecure::Delegation));
    });
    assert_eq!((end.map(|verdict| verdict.status), is_insecure), (Ok(SECURE), true));
}

/// The keys of a DNSKEY RRset of `example.net` that DS records name, as tags.
fn entry(keys: &[Vec<u8>], ds: &[&[u8]], supported: Algorithms) -> Result<Vec<u16>, String> {
    let records: Vec<_> = keys
        .iter()
        .map(|rdata| kit::message::record(&kit::message::name("example.net"), 48, 300, rdata))
        .collect();
    let message = message_of(("example.net.", 48), 0, [&records, &[]]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    let mut out = [0; 4000];
    match entry_by_ds(ds.iter().copied(), &groups.get(0).unwrap(), supported, &AwsLc, &mut out) {
        Entry::Keys(keys) => Ok(keys.iter().map(|key| key.key_tag).collect()),
        Entry::Insecure(reason) => Err(format!("{reason:?}")),
        Entry::Bogus(reason) => Err(format!("{reason:?}")),
    }
}

fn dnskey(flags: u16, algorithm: u8, octet: u8) -> Vec<u8> {
    let length = if algorithm == 13 { 64 } else { 32 };
    [&flags.to_be_bytes()[..], &[3, algorithm], &vec![octet; length]].concat()
}

fn ds(key: &[u8], digest_type: u8) -> Vec<u8> {
    use sixfold_dnssec::Digests as _;
    let input = [&kit::message::name("example.net")[..], key].concat();
    let digest = match digest_type {
        1 => AwsLc.sha1(&input).to_vec(),
        4 => AwsLc.sha384(&input).to_vec(),
        _ => AwsLc.sha256(&input).to_vec(),
    };
    let tag = sixfold_dnssec::Dnskey::parse(key).unwrap().key_tag();
    [&tag.to_be_bytes()[..], &[key[3], digest_type], &digest].concat()
}

#[test]
fn ds_records_name_the_keys_that_may_vouch_for_a_zone() {
    let (a, b) = (dnskey(257, 13, 1), dnskey(257, 15, 2));
    let tag = |key: &[u8]| sixfold_dnssec::Dnskey::parse(key).unwrap().key_tag();
    let keys = [a.clone(), b.clone(), dnskey(256, 13, 3)];
    let found = |ds: &[&[u8]]| entry(&keys, ds, Algorithms::CURRENT);
    for digest in [1, 2, 4] {
        assert_eq!(found(&[&ds(&a, digest)]), Ok(vec![tag(&a)]), "{digest}");
    }
    assert_eq!(found(&[&ds(&a, 2), &ds(&b, 4)]).map(|keys| keys.len()), Ok(2));
    // Algorithms and digests that are not supported (RFC 4035 section 5.2, RFC 6840 section 5.2).
    let other = [&[0, 1, 253, 2][..], &[9; 32]].concat();
    assert_eq!(found(&[&other]), Err("Algorithm".into()));
    let mut unknown = ds(&a, 2);
    unknown[3] = 9;
    assert_eq!(found(&[&unknown]), Err("Digest".into()));
    assert_eq!(found(&[&unknown, &ds(&b, 2)]), Ok(vec![tag(&b)]));
    // A digest that is too short is broken and not unsupported.
    unknown[3] = 4;
    assert_eq!(found(&[&unknown]), Err("KeyMissing".into()));
    assert_eq!(found(&[&[]]), Err("KeyMissing".into()));
    // No record: that is for a denial to prove.
    assert_eq!(found(&[]), Err("KeyMissing".into()));
    // No key fits.
    assert_eq!(found(&[&ds(&dnskey(257, 13, 9), 2)]), Err("KeyMissing".into()));
    let weak = entry(&[dnskey(0, 13, 1)], &[&ds(&dnskey(0, 13, 1), 2)], Algorithms::CURRENT);
    assert_eq!(weak, Err("NoZoneKey".into()));
    let revoked = entry(&[dnskey(385, 13, 1)], &[&ds(&dnskey(385, 13, 1), 2)], Algorithms::CURRENT);
    assert_eq!(revoked, Err("KeyRevoked".into()));
}

// RFC 4509 section 3: a key that only SHA-1 names, where a better digest names another.
#[test]
fn sha_1_counts_only_where_no_other_digest_is() {
    let (forged, real) = (dnskey(257, 13, 1), dnskey(257, 13, 2));
    let tag = sixfold_dnssec::Dnskey::parse(&real).unwrap().key_tag();
    let keys = [forged.clone(), real.clone()];
    assert_eq!(entry(&keys, &[&ds(&forged, 1)], Algorithms::CURRENT).map(|keys| keys.len()), Ok(1));
    for better in [2, 4] {
        assert_eq!(entry(&keys, &[&ds(&forged, 1), &ds(&real, better)], Algorithms::CURRENT), Ok(vec![tag]));
        assert_eq!(
            entry(&keys[..1], &[&ds(&forged, 1), &ds(&real, better)], Algorithms::CURRENT),
            Err("KeyMissing".into())
        );
    }
}

// HashTrap: many DS records and keys of one tag.
#[test]
fn many_ds_records_of_one_tag_cost_a_bounded_number_of_digests() {
    let key = dnskey(257, 13, 1);
    let good = ds(&key, 2);
    let mut wrong: Vec<Vec<u8>> =
        (0..60).map(|octet| good[..4].iter().copied().chain([octet; 32]).collect()).collect();
    wrong.push(good);
    let all: Vec<&[u8]> = wrong.iter().map(Vec::as_slice).collect();
    assert_eq!(entry(std::slice::from_ref(&key), &all, Algorithms::CURRENT), Err("KeyMissing".into()));
    assert_eq!(
        entry(std::slice::from_ref(&key), &all[50..], Algorithms::CURRENT).map(|keys| keys.len()),
        Ok(1)
    );
    let more: Vec<&[u8]> = all.iter().chain(&all[..4]).copied().collect();
    assert_eq!(entry(&[key], &more, Algorithms::CURRENT), Err("TooMuchWork".into()));
}

// CVE-2026-123593 (hickory-dns): anchors are those of their owner.
#[test]
fn an_anchor_of_another_zone_vouches_for_nothing() {
    let key: &'static [u8] = Box::leak(dnskey(257, 13, 1).into_boxed_slice());
    let record = kit::message::record(&kit::message::name("example.net"), 48, 300, key);
    let message = message_of(("example.net.", 48), 0, [&[record], &[]]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    for (zone, expected) in [(&b"\0"[..], false), (b"\x03net\0", false), (b"\x07EXAMPLE\x03net\0", true)] {
        for data in [AnchorData::Dnskey(key), AnchorData::Ds(&ds(key, 2))] {
            let anchors = [Anchor { zone, data }];
            let anchors = Anchors { positive: &anchors, negative: &[] };
            let mut out = [0; 100];
            let entry =
                entry_by_anchors(&anchors, &groups.get(0).unwrap(), Algorithms::CURRENT, &AwsLc, &mut out);
            assert_eq!(matches!(entry, Entry::Keys(_)), expected, "{zone:?}");
        }
    }
}

#[test]
fn the_built_in_anchors_name_the_keys_of_the_root() {
    let found = ROOT.map(|anchor| match anchor.data {
        AnchorData::Ds(rdata) => sixfold_dnssec::Ds::parse(rdata)
            .map(|ds| (anchor.zone, ds.key_tag, ds.algorithm.0, ds.digest_type.0)),
        AnchorData::Dnskey(_) => panic!("a DNSKEY record"),
    });
    assert_eq!(found, [Ok((&b"\0"[..], 20326, 8, 2)), Ok((&b"\0"[..], 38696, 8, 2))]);
    // The same in master file format, as IANA and the package dns-root-data publish them.
    let published = lines(
        ". DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n\
         . DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16",
    );
    for (anchor, line) in ROOT.iter().zip(&published) {
        assert_eq!(anchor.data, AnchorData::Ds(&line.rdata));
    }
}
