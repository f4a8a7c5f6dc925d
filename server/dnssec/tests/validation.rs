//! Validation of whole messages: the examples of RFC 4035 with their signatures, those of RFC 5155, and published faults.

use crate::examples::{RFC4035, RFC5155};
use crate::text::{Line, line, lines, message_of};
use crate::world::{
    Entered, NO_B, NXDOMAIN, SECURE, SOA, World, at, needs_all, octets, of, refused, rfc4035, signed,
    signed_by,
};
use sixfold_dnssec::{Bogus, Insecure, Known, LowerName, Outcome, Question, Status, Verdict, Zones};

#[test]
fn the_responses_of_rfc_4035_appendix_b_are_secure_and_each_record_is_needed() {
    let world = rfc4035();
    let of = |wanted: &[(&str, u16)]| of(RFC4035, wanted);
    // B.1, without the name servers.
    needs_all(&world, ("x.w.example.", 15), 0, &of(&[("x.w.example", 15)]), &[], (SECURE, Outcome::Data));
    // B.2.
    let authority = of(&[SOA, ("b.example", 47), ("example", 47)]);
    needs_all(&world, ("ml.example.", 1), NXDOMAIN, &[], &authority, (SECURE, Outcome::NoName));
    // B.3.
    let authority = of(&[SOA, ("ns1.example", 47)]);
    needs_all(&world, ("ns1.example.", 15), 0, &[], &authority, (SECURE, Outcome::NoData));
    // B.6.
    let answer = at("a.z.w.example", of(&[("*.w.example", 15)]));
    let authority = of(&[("x.y.w.example", 47)]);
    needs_all(&world, ("a.z.w.example.", 15), 0, &answer, &authority, (SECURE, Outcome::Data));
    // B.7.
    let authority = of(&[SOA, ("x.y.w.example", 47), ("*.w.example", 47)]);
    needs_all(&world, ("a.z.w.example.", 28), 0, &[], &authority, (SECURE, Outcome::NoData));
    // The wildcard itself needs no proof (RFC 4592).
    needs_all(&world, ("*.w.example.", 15), 0, &of(&[("*.w.example", 15)]), &[], (SECURE, Outcome::Data));
    // B.8: the question is the parent's, above which there is no anchor.
    let authority = of(&[SOA, ("example", 47)]);
    let expected = (Status::Insecure(Insecure::NoAnchor), Outcome::NoData);
    assert_eq!(world.verdict(("example.", 43), 0, &[], &authority), expected);
}

#[test]
fn the_response_code_has_to_agree_with_the_proof() {
    let world = rfc4035();
    let of = |wanted: &[(&str, u16)]| of(RFC4035, wanted);
    let is_refused = |question, rcode, authority: &[Line]| {
        let message = message_of(question, rcode, [&[], &octets(authority)]);
        match world.run(&message).0 {
            Ok(verdict) => matches!(verdict.status, Status::Bogus(_)),
            Err(_) => true,
        }
    };
    assert!(is_refused(("ml.example.", 1), 0, &of(&[SOA, ("b.example", 47), ("example", 47)])));
    assert!(is_refused(("ns1.example.", 15), NXDOMAIN, &of(&[SOA, ("ns1.example", 47)])));
    assert!(is_refused(
        ("a.z.w.example.", 28),
        NXDOMAIN,
        &of(&[SOA, ("x.y.w.example", 47), ("*.w.example", 47)])
    ));
}

/// RFC 5155 in a world whose signatures are not real: its keys of 512 bits are refused, and its signatures have the length of P-256.
fn rfc5155() -> World {
    let key = [&40430u16.to_be_bytes()[..], &[13, 0, 64], &[1; 64]].concat();
    let mut world = World::new(&[]).enter("example", Entered::Secure(key));
    world.now = 1_334_880_000;
    world
}

fn of5155(wanted: &[(&str, u16)]) -> Vec<Line> {
    let mut found = of(RFC5155, wanted);
    for line in found.iter_mut().filter(|line| line.rtype == 46) {
        line.rdata[2] = 13;
        let start = line.rdata.len() - 64;
        line.rdata[start..].fill(1);
    }
    found
}

#[test]
fn the_responses_of_rfc_5155_appendix_b_are_judged_by_their_opt_out_flags() {
    let world = rfc5155();
    let hashed = |labels: &[&str]| -> Vec<Line> {
        let owners: Vec<String> = labels.iter().map(|label| format!("{label}.example")).collect();
        of5155(&[&[SOA][..], &owners.iter().map(|owner| (owner.as_str(), 50)).collect::<Vec<_>>()].concat())
    };
    let opt_out = Status::Insecure(Insecure::OptOut);
    let [apex, ns1, a, x, y, w, ns2, wildcard] = [
        "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom",
        "2t7b4g4vsa5smi47k61mv5bv1a22bojr",
        "35mthgpgcu1qg68fab165klnsnk3dpvl",
        "b4um86eghhds6nea196smvmlo4ors995",
        "ji6neoaepv8b5o6k4ev33abha8ht9fgc",
        "k8udemvp1j2f7eg6jebps17vp3n8i58h",
        "q04jkcevqvmu85r014c7dkba38o0ji5r",
        "r53bq7cc2uvmubfu5ocmm6pers9tk9en",
    ];
    let none: &[Line] = &[];
    needs_all(
        &world,
        ("a.c.x.w.example.", 1),
        NXDOMAIN,
        none,
        &hashed(&[apex, x, a]),
        (opt_out, Outcome::NoName),
    );
    needs_all(&world, ("ns1.example.", 15), 0, none, &hashed(&[ns1]), (SECURE, Outcome::NoData));
    needs_all(&world, ("y.w.example.", 1), 0, none, &hashed(&[y]), (SECURE, Outcome::NoData));
    needs_all(&world, ("c.example.", 43), 0, none, &hashed(&[a, apex]), (opt_out, Outcome::NoData));
    let answer = at("a.z.w.example", of5155(&[("*.w.example", 15)]));
    let authority = of5155(&[(&format!("{ns2}.example"), 50)]);
    needs_all(&world, ("a.z.w.example.", 15), 0, &answer, &authority, (opt_out, Outcome::Data));
    let no_data = hashed(&[w, ns2, wildcard]);
    assert_eq!(world.verdict(("a.z.w.example.", 28), 0, none, &no_data), (opt_out, Outcome::NoData));
    assert_eq!(world.asks(("example.", 43), 0, none, &hashed(&[apex])), None);
}

// CVE-2026-123581 (hickory-dns).
#[test]
fn a_valid_rrset_that_does_not_answer_the_question_makes_the_message_bogus() {
    let world = World::new(&["example"]);
    let other = signed("example", "b.example. A 192.0.2.1");
    let right = signed("example", "a.example. A 192.0.2.2");
    assert_eq!(world.verdict(("a.example.", 1), 0, &right, &[]), (SECURE, Outcome::Data));
    let both = [right.clone(), other.clone()].concat();
    assert_eq!(world.verdict(("a.example.", 1), 0, &both, &[]), refused(Bogus::Unrelated));
    let soa = signed("example", "example. SOA . . 1 1 1 1 1\na.example. NSEC z.example. TXT RRSIG NSEC");
    assert_eq!(world.verdict(("a.example.", 1), 0, &other, &soa), refused(Bogus::Unrelated));
    let text = signed("example", "a.example. TXT x");
    assert_eq!(world.verdict(("a.example.", 1), 0, &[text, right].concat(), &[]), refused(Bogus::Unrelated));
}

// CVE-2026-123579 (hickory-dns), CVE-2026-52686 (PowerDNS), Unbound 21 Apr 2026: wildcards of data and of aliases.
#[test]
fn an_answer_by_wildcard_needs_the_proof_that_the_name_is_absent() {
    let world = World::new(&["example"]);
    let proof = signed("example", NO_B);
    let no_data = signed("example", "b.example. NSEC z.example. TXT RRSIG NSEC");
    for (qtype, text) in [(1, "b.example. A 192.0.2.1"), (5, "b.example. CNAME a.example.")] {
        let answer = signed_by("example", text, Some(1));
        assert_eq!(world.verdict(("b.example.", qtype), 0, &answer, &proof), (SECURE, Outcome::Data));
        assert_eq!(world.verdict(("b.example.", qtype), 0, &answer, &[]), refused(Bogus::Denial));
        assert_eq!(world.verdict(("b.example.", qtype), 0, &answer, &no_data), refused(Bogus::Denial));
        // An unsigned proof (CVE-2026-123590).
        let unsigned = lines(NO_B);
        assert_eq!(
            world.verdict(("b.example.", qtype), 0, &answer, &unsigned),
            refused(Bogus::SignatureMissing)
        );
    }
    // The alias is expanded, and its target is there.
    let alias = signed_by("example", "b.example. CNAME a.example.", Some(1));
    let answer = [alias.clone(), signed("example", "a.example. A 192.0.2.1")].concat();
    assert_eq!(world.verdict(("b.example.", 1), 0, &answer, &proof), (SECURE, Outcome::Data));
    assert_eq!(world.verdict(("b.example.", 1), 0, &answer, &[]), refused(Bogus::Denial));
    // RFC 1034 section 4.3.2: a server that does not recurse leaves the target to the asker. The proof for the alias is no denial of the
    // target: that has an SOA record (RFC 2308 section 2.2), and then needs a proof of its own.
    assert_eq!(world.verdict(("b.example.", 1), 0, &alias, &proof), (SECURE, Outcome::Alias));
    let soa = signed("example", "example. SOA . . 1 1 1 1 1");
    let denial = [soa, proof.clone()].concat();
    let world = world.enter("a.example", Entered::NoCut);
    assert_eq!(world.verdict(("b.example.", 1), 0, &alias, &denial), refused(Bogus::Denial));
    // This proof covers the target, too.
    assert_eq!(world.verdict(("b.example.", 1), NXDOMAIN, &alias, &proof), (SECURE, Outcome::NoName));
}

// Unbound, 21 Apr 2026.
#[test]
fn an_alias_below_a_dname_record_has_to_follow_from_it() {
    let world = World::new(&["example"]).enter("b.other", Entered::NoCut);
    let dname = signed("example", "d.example. DNAME other.");
    let with = |text: &str| [dname.clone(), lines(text)].concat();
    let verdict = |text: &str, qtype| world.verdict(("b.d.example.", qtype), 0, &with(text), &[]);
    assert_eq!(verdict("b.d.example. CNAME b.other.", 1), (SECURE, Outcome::Alias));
    assert_eq!(verdict("b.d.example. CNAME B.OTHER.", 5), (SECURE, Outcome::Data));
    for wrong in
        ["b.d.example. CNAME c.other.", "b.d.example. CNAME other.", "c.d.example. CNAME c.other.", ""]
    {
        assert_eq!(verdict(wrong, 1), refused(Bogus::Unrelated), "{wrong}");
    }
    // A forged signature beside it changes nothing; an unsigned alias without a DNAME record is bogus.
    let mut forged = signed("example", "b.d.example. CNAME c.other.");
    assert_eq!(
        world.verdict(("b.d.example.", 1), 0, &[dname.clone(), forged.clone()].concat(), &[]),
        refused(Bogus::Unrelated)
    );
    forged.truncate(1);
    let world = world.enter("d.example", Entered::NoCut).enter("b.d.example", Entered::NoCut);
    assert_eq!(world.verdict(("b.d.example.", 1), 0, &forged, &[]), refused(Bogus::SignatureMissing));
    // Below the owner only.
    assert_eq!(world.verdict(("d.example.", 39), 0, &dname, &[]), (SECURE, Outcome::Data));
}

#[test]
fn a_dname_record_that_makes_the_name_too_long_is_an_answer_with_its_response_code_only() {
    let world = World::new(&["example"]);
    let long = "a123456789012345678901234567890123456789.".repeat(5);
    let dname = signed("example", &format!("d.example. DNAME {long}example."));
    let asked = format!("{}.d.example.", "b".repeat(60));
    for (rcode, expected) in [(6, (SECURE, Outcome::Data)), (0, refused(Bogus::Unrelated))] {
        assert_eq!(world.verdict((&asked, 1), rcode, &dname, &[]), expected);
    }
}

#[test]
fn a_chain_of_aliases_is_as_secure_as_its_weakest_link() {
    let unsigned = Entered::Insecure(Insecure::Delegation);
    let world = World::new(&["example", "other"])
        .enter("plain", unsigned)
        .enter("broken", Entered::Bogus(Bogus::Expired));
    let alias = |target: &str| signed("example", &format!("a.example. CNAME {target}."));
    let data = |name: &str| format!("{name}. A 192.0.2.1");
    let answer = |target: &str, end: Vec<Line>| {
        world.verdict(("a.example.", 1), 0, &[alias(target), end].concat(), &[])
    };
    assert_eq!(answer("b.other", signed("other", &data("b.other"))), (SECURE, Outcome::Data));
    assert_eq!(
        answer("b.plain", lines(&data("b.plain"))),
        (Status::Insecure(Insecure::Delegation), Outcome::Data)
    );
    assert_eq!(answer("b.broken", lines(&data("b.broken"))), refused(Bogus::Expired));
    assert_eq!(answer("b.other", vec![]), (SECURE, Outcome::Alias));
    // The order of records does not matter, and two aliases at one name are none.
    let swapped = [signed("other", &data("b.other")), alias("b.other")].concat();
    assert_eq!(world.verdict(("a.example.", 1), 0, &swapped, &[]), (SECURE, Outcome::Data));
    let two = signed("example", "a.example. CNAME b.other.\na.example. CNAME c.other.");
    assert_eq!(world.verdict(("a.example.", 1), 0, &two, &[]), refused(Bogus::Malformed));
    let circle = signed("example", "a.example. CNAME b.example.\nb.example. CNAME a.example.");
    assert_eq!(world.verdict(("a.example.", 1), 0, &circle, &[]), refused(Bogus::Unrelated));
    // The end of the chain does not exist: its own zone proves that.
    let denial = signed("other", "other. SOA . . 1 1 1 1 1\nother. NSEC z.other. NS SOA RRSIG NSEC");
    assert_eq!(
        world.verdict(("a.example.", 1), NXDOMAIN, &alias("b.other"), &denial),
        (SECURE, Outcome::NoName)
    );
    let wrong = signed("example", "example. SOA . . 1 1 1 1 1\nexample. NSEC z.example. NS SOA RRSIG NSEC");
    let message = message_of(("a.example.", 1), NXDOMAIN, [&octets(&alias("b.other")), &octets(&wrong)]);
    assert_eq!(
        world.run(&message).0,
        Err(Question::Delegation(LowerName::from_wire(b"\x01b\x05other\0").unwrap()))
    );
}

// CVE-2026-11605 (BIND).
#[test]
fn a_message_with_many_proofs_is_bogus_without_a_verification() {
    let world = World::new(&["example"]);
    let proofs = |count: usize| -> Vec<Line> {
        let text: Vec<_> = (10..10 + count)
            .map(|n| format!("a{n}.example. NSEC a{}.example. A RRSIG NSEC", n + 1))
            .collect();
        signed("example", &text.join("\n"))
    };
    let message = |count| message_of(("a10.example.", 28), 0, [&[], &octets(&proofs(count))]);
    assert_eq!(
        world.run(&message(8)),
        (Ok(Verdict { status: SECURE, outcome: Outcome::NoData, ttl: 1000 }), 8)
    );
    let (verdict, jobs) = world.run(&message(9));
    assert_eq!((verdict.map(|verdict| verdict.status), jobs), (Ok(Status::Bogus(Bogus::TooMuchWork)), 0));
}

// BIND's nsec_grandparent: a proof of a zone above the one that is known to be responsible.
#[test]
fn a_denial_by_a_zone_above_the_closest_secure_one_is_refused() {
    let world = World::new(&["example", "sub.example"]).enter("a.sub.example", Entered::NoCut);
    let grandparent = signed("example", "example. NSEC z.example. NS SOA RRSIG NSEC");
    assert_eq!(world.verdict(("a.sub.example.", 1), NXDOMAIN, &[], &grandparent), refused(Bogus::Denial));
    let own = signed("sub.example", "sub.example. NSEC z.sub.example. NS SOA RRSIG NSEC");
    assert_eq!(world.verdict(("a.sub.example.", 1), NXDOMAIN, &[], &own), (SECURE, Outcome::NoName));
    // Data that the zone above signed.
    let data = signed("example", "a.sub.example. A 192.0.2.1");
    assert_eq!(world.verdict(("a.sub.example.", 1), 0, &data, &[]), refused(Bogus::Signer));
    // The parent's NSEC record at the cut is verified with the parent's keys.
    let beside = signed(
        "example",
        "sub.example. NSEC z.example. NS DS RRSIG NSEC\nexample. NSEC sub.example. NS SOA RRSIG NSEC",
    );
    assert_eq!(world.verdict(("t.example.", 1), NXDOMAIN, &[], &beside), (SECURE, Outcome::NoName));
}

#[test]
fn a_response_code_that_says_nothing_about_data_is_a_failure_without_work() {
    let world = World::new(&["example"]);
    for rcode in [1, 2, 4, 5] {
        let expected = (Status::Failure, Outcome::Failure);
        assert_eq!(
            world.verdict(("a.example.", 1), rcode, &[line("a.example. A 192.0.2.1")], &[]),
            expected,
            "{rcode}"
        );
    }
}

// RFC 6840 section 4.2.
#[test]
fn every_rrset_of_a_reply_to_any_has_to_be_secure() {
    let world = World::new(&["example"]);
    let data = signed("example", "a.example. A 192.0.2.1\na.example. TXT x");
    assert_eq!(world.verdict(("a.example.", 255), 0, &data, &[]), (SECURE, Outcome::Data));
    let mut broken = data.clone();
    let start = broken.last().unwrap().rdata.len() - 64;
    broken.last_mut().unwrap().rdata[start] = 2;
    assert_eq!(world.verdict(("a.example.", 255), 0, &broken, &[]), refused(Bogus::Signature));
    let missing = signed("example", "a.example. NSEC z.example. RRSIG NSEC TYPE128");
    assert_eq!(world.verdict(("a.example.", 255), 0, &[], &missing), (SECURE, Outcome::NoName));
}

// RUSTSEC-2025-0006 (hickory-dns): all keys were trusted once one of them was named by a DS record.
#[test]
fn a_dnskey_rrset_counts_only_if_a_key_that_is_vouched_for_signed_it() {
    let mut world = rfc4035();
    let dnskeys = of(RFC4035, &[("example", 48)]);
    let with_tag = |tag: u16| -> Vec<Line> {
        let is_of = |line: &&Line| line.rtype == 48 || line.rdata[16..18] == tag.to_be_bytes();
        dnskeys.iter().filter(is_of).cloned().collect()
    };
    // The entry has the key that the anchor names, and not the other one, which signed the RRset as well.
    let ksk = {
        let Known::Secure(keys) = world.zones.get(b"\x07example\0") else { panic!("the zone is secure") };
        let key = keys.iter().find(|key| key.key_tag == 9465).unwrap();
        [&key.key_tag.to_be_bytes()[..], &[key.algorithm.0], &(key.key.len() as u16).to_be_bytes(), key.key]
            .concat()
    };
    world = world.enter("example", Entered::Secure(ksk));
    assert_eq!(world.verdict(("example.", 48), 0, &with_tag(9465), &[]), (SECURE, Outcome::Data));
    assert_eq!(world.verdict(("example.", 48), 0, &with_tag(38519), &[]), refused(Bogus::KeyMissing));
}

// RFC 4035 section 5.3.3, and the proof of a wildcard besides.
#[test]
fn the_shortest_ttl_of_data_and_proofs_limits_the_verdict() {
    let world = World::new(&["example"]);
    let answer = signed_by("example", "b.example. 300 A 192.0.2.1", Some(1));
    for (ttl, expected) in [(60, 60), (3600, 300)] {
        let proof = signed("example", &format!("example. {ttl} NSEC z.example. NS SOA RRSIG NSEC"));
        let message = message_of(("b.example.", 1), 0, [&octets(&answer), &octets(&proof)]);
        assert_eq!(world.run(&message).0.map(|verdict| verdict.ttl), Ok(expected));
    }
}
