//! Denials of existence: the proofs of RFC 4035 and RFC 5155, zones against a model, and published faults. Signatures count as verified.

use crate::arithmetic::AwsLc;
use crate::examples::{RFC4035, RFC5155};
use crate::text::{Line, lines, message_of};
use kit::Random;
use sixfold_dnssec::denial::{Cut, Denials, Strength};
use sixfold_dnssec::nsec3::{Hashing, hash};
use sixfold_dnssec::{Bogus, Budget, Digests, Groups, LowerName, MessageBudget, Nsec3Param, Proven};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Message, Type};

const PROVEN: Proven = Proven { labels: 0, is_expanded: false, ttl: 300, expiration: 0 };

/// Digests that are never computed.
struct NoDigest;

impl Digests for NoDigest {
    fn sha1(&self, _: &[u8]) -> [u8; 20] {
        panic!("a digest was computed")
    }
    fn sha256(&self, _: &[u8]) -> [u8; 32] {
        panic!("a digest was computed")
    }
    fn sha384(&self, _: &[u8]) -> [u8; 48] {
        panic!("a digest was computed")
    }
}

pub fn name(text: &str) -> LowerName {
    LowerName::from_wire(&kit::message::name(text)).unwrap()
}

/// Gives the proofs of a zone to a function, with fresh budgets.
fn with<T>(
    zone: &str,
    records: &[Line],
    digests: &impl Digests,
    judge: impl FnOnce(&Denials<'_>, &mut Hashing<'_, &dyn Digests>) -> Result<T, Bogus>,
) -> Result<T, Bogus> {
    let octets: Vec<_> = records.iter().map(Line::octets).collect();
    let message = message_of(("q.", 1), 0, [&[], &octets]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    let denials = Denials::of(&groups, name(zone), |_| Some(PROVEN))?;
    let digests: &dyn Digests = digests;
    let (message, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
    judge(&denials, &mut Hashing { digests: &digests, iterations: 50, message, resolution })
}

/// Statement that records are to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    NoName,
    NoData(Type),
    NoCloser(u8),
    Cut,
}

/// The proof of a claim, in words.
fn proof(zone: &str, records: &[Line], asked: &str, claim: Claim) -> Result<String, Bogus> {
    with(zone, records, &AwsLc, |denials, hashing| {
        let asked = name(asked);
        Ok(match claim {
            Claim::NoName => format!("{:?}", denials.no_name(&asked, hashing)?),
            Claim::NoData(rtype) => {
                let proof = denials.no_data(&asked, rtype, hashing)?;
                format!("{:?}{}", proof.strength, if proof.denies_name() { " NoName" } else { "" })
            }
            Claim::NoCloser(labels) => format!("{:?}", denials.no_closer(&asked, labels, hashing)?),
            Claim::Cut => format!("{:?}", denials.no_data(&asked, Type::DS, hashing)?.cut()),
        })
    })
}

/// The NSEC or NSEC3 records of a zone file with these owners.
pub fn records(text: &str, owners: &[&str]) -> Vec<Line> {
    let is_wanted = |line: &Line| {
        let text = line.owner.escape_ascii().to_string();
        matches!(line.rtype, 47 | 50)
            && owners.iter().any(|owner| name(owner).as_wire().escape_ascii().to_string() == text)
    };
    lines(text).into_iter().filter(is_wanted).collect()
}

/// A claim that needs all of these records: it fails if any one of them is missing.
fn needs_all(text: &str, owners: &[&str], asked: &str, claim: Claim, expected: &str) {
    let all = records(text, owners);
    assert_eq!(all.len(), owners.len(), "{asked}");
    assert_eq!(proof("example", &all, asked, claim).as_deref(), Ok(expected), "{asked} {claim:?}");
    for missing in 0..all.len() {
        let mut rest = all.clone();
        rest.remove(missing);
        assert_eq!(
            proof("example", &rest, asked, claim),
            Err(Bogus::Denial),
            "{asked} {claim:?} without {missing}"
        );
    }
}

#[test]
fn each_proof_of_rfc_4035_appendix_b_holds_with_all_its_records_only() {
    use Claim::{Cut, NoCloser, NoData, NoName};
    needs_all(RFC4035, &["b.example", "example"], "ml.example", NoName, "Full");
    needs_all(RFC4035, &["ns1.example"], "ns1.example", NoData(Type::MX), "Full");
    needs_all(RFC4035, &["b.example"], "b.example", Cut, "Unsigned");
    needs_all(RFC4035, &["x.y.w.example"], "a.z.w.example", NoCloser(2), "Full");
    needs_all(RFC4035, &["x.y.w.example", "*.w.example"], "a.z.w.example", NoData(Type::AAAA), "Full");
    // B.8: the apex of the zone says nothing about its DS records.
    assert_eq!(
        proof("example", &records(RFC4035, &["example"]), "example", NoData(Type::DS)),
        Err(Bogus::Denial)
    );
    assert_eq!(proof("example", &records(RFC4035, &["example"]), "example", Cut), Err(Bogus::Denial));
}

#[test]
fn what_the_records_of_rfc_4035_do_not_say_is_refused() {
    use Claim::{NoCloser, NoData, NoName};
    let all = records(RFC4035, &["example", "b.example", "ns1.example", "x.y.w.example", "*.w.example"]);
    for (asked, claim) in [
        // A type that is there, a name that is there, and a wildcard that applies.
        ("ns1.example", NoData(Type::A)),
        ("ns1.example", NoName),
        ("a.z.w.example", NoData(Type::MX)),
        ("a.z.w.example", NoName),
        ("a.z.w.example", NoCloser(1)),
        ("a.z.w.example", NoCloser(3)),
        // Below a delegation, and at it (RFC 6840 section 4.1).
        ("mc.b.example", NoName),
        ("b.example", NoData(Type::MX)),
        // Other zones.
        ("example.net", NoName),
        ("net", NoData(Type::A)),
    ] {
        assert_eq!(proof("example", &all, asked, claim), Err(Bogus::Denial), "{asked} {claim:?}");
    }
}

const H: [&str; 8] = [
    "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example",
    "2t7b4g4vsa5smi47k61mv5bv1a22bojr.example",
    "35mthgpgcu1qg68fab165klnsnk3dpvl.example",
    "b4um86eghhds6nea196smvmlo4ors995.example",
    "ji6neoaepv8b5o6k4ev33abha8ht9fgc.example",
    "k8udemvp1j2f7eg6jebps17vp3n8i58h.example",
    "q04jkcevqvmu85r014c7dkba38o0ji5r.example",
    "r53bq7cc2uvmubfu5ocmm6pers9tk9en.example",
];

#[test]
fn each_proof_of_rfc_5155_appendix_b_holds_with_all_its_records_only() {
    use Claim::{Cut, NoCloser, NoData, NoName};
    // Every record of the zone has the flag Opt-Out, so denials of names are insecure.
    needs_all(RFC5155, &[H[0], H[3], H[2]], "a.c.x.w.example", NoName, "OptOut");
    needs_all(RFC5155, &[H[1]], "ns1.example", NoData(Type::MX), "Full");
    needs_all(RFC5155, &[H[4]], "y.w.example", NoData(Type::A), "Full");
    needs_all(RFC5155, &[H[2], H[0]], "c.example", Cut, "Unknown(OptOut)");
    needs_all(RFC5155, &[H[6]], "a.z.w.example", NoCloser(2), "OptOut");
    let wildcard = records(RFC5155, &[H[5], H[6], H[7]]);
    assert_eq!(proof("example", &wildcard, "a.z.w.example", NoData(Type::AAAA)).as_deref(), Ok("OptOut"));
    // B.6.
    assert_eq!(proof("example", &records(RFC5155, &[H[0]]), "example", NoData(Type::DS)), Err(Bogus::Denial));
}

/// The records with the flag Opt-Out cleared.
pub fn without_opt_out(records: &[Line]) -> Vec<Line> {
    let mut records = records.to_vec();
    records.iter_mut().for_each(|line| line.rdata[1] = 0);
    records
}

#[test]
fn without_opt_out_the_proofs_of_rfc_5155_are_full_and_prove_no_unsigned_delegation() {
    use Claim::{Cut, NoCloser, NoData, NoName};
    let proof = |owners: &[&str], asked, claim| {
        proof("example", &without_opt_out(&records(RFC5155, owners)), asked, claim)
    };
    assert_eq!(proof(&[H[0], H[3], H[2]], "a.c.x.w.example", NoName).as_deref(), Ok("Full"));
    assert_eq!(proof(&[H[2], H[0]], "c.example", Cut), Err(Bogus::Denial));
    assert_eq!(proof(&[H[6]], "a.z.w.example", NoCloser(2)).as_deref(), Ok("Full"));
    let wildcard = [H[5], H[6], H[7]];
    assert_eq!(proof(&wildcard, "a.z.w.example", NoData(Type::AAAA)).as_deref(), Ok("Full"));
    assert_eq!(proof(&wildcard, "a.z.w.example", NoData(Type::MX)), Err(Bogus::Denial));
    for missing in 0..3 {
        let rest: Vec<&str> =
            wildcard.iter().enumerate().filter(|(n, _)| *n != missing).map(|(_, owner)| *owner).collect();
        assert_eq!(proof(&rest, "a.z.w.example", NoData(Type::AAAA)), Err(Bogus::Denial), "{missing}");
    }
    // A name that exists, and a type that is there.
    assert_eq!(proof(&H, "ns1.example", NoName), Err(Bogus::Denial));
    assert_eq!(proof(&H, "ns1.example", NoData(Type::A)), Err(Bogus::Denial));
}

#[test]
fn hashes_are_those_of_rfc_5155_appendix_a() {
    let parameters = Nsec3Param::parse(b"\x01\0\0\x0c\x04\xaa\xbb\xcc\xdd").unwrap();
    for (text, expected) in [
        ("example", H[0]),
        ("a.example", H[2]),
        ("ai.example", "gjeqe526plbf1g8mklp59enfd789njgi.example"),
        ("ns1.example", H[1]),
        ("ns2.example", H[6]),
        ("w.example", H[5]),
        ("*.w.example", H[7]),
        ("x.w.example", H[3]),
        ("y.w.example", H[4]),
        ("x.y.w.example", "2vptu5timamqttgl4luu9kg21e0aor3s.example"),
        ("xx.example", "t644ebqk9bibcna874givr6joj62mlhv.example"),
        (H[1], "kohar7mbb8dc2ce8a9qvl8hon4k53uhi.example"),
    ] {
        let hash = hash(name(text).as_wire(), &parameters, &AwsLc);
        assert_eq!(format!("{}.example", base32(&hash)), expected, "{text}");
    }
}

fn base32(hash: &[u8]) -> String {
    let mut text = String::new();
    for octets in hash.chunks(5) {
        let bits = octets.iter().fold(0u64, |bits, octet| bits << 8 | u64::from(*octet));
        text.extend(
            (0..8)
                .rev()
                .map(|at| b"0123456789abcdefghijklmnopqrstuv"[(bits >> (5 * at) & 31) as usize] as char),
        );
    }
    text
}

/// The proof of a claim by records in master file format.
fn by(zone: &str, text: &str, asked: &str, claim: Claim) -> Result<String, Bogus> {
    proof(zone, &lines(text), asked, claim)
}

// CVE-2026-13321 (BIND), Knot Resolver 6.4.1, Unbound 23 Jul 2026.
#[test]
fn an_nsec_record_whose_next_name_is_outside_of_the_zone_denies_nothing() {
    for next in ["z.other.", "z.", ".", "other.", "exampl."] {
        let text = format!("a.example. NSEC {next} A RRSIG NSEC\nexample. NSEC a.example. NS SOA RRSIG NSEC");
        for asked in ["b.example", "f.other", "f"] {
            assert_eq!(by("example", &text, asked, Claim::NoName), Err(Bogus::Denial), "{next} {asked}");
        }
    }
    let apex = "a.example. NSEC EXAMPLE. A RRSIG NSEC\nexample. NSEC a.example. NS SOA RRSIG NSEC";
    assert_eq!(by("example", apex, "b.example", Claim::NoName).as_deref(), Ok("Full"));
    assert_eq!(by("example", apex, "b.other", Claim::NoName), Err(Bogus::Denial));
    // A next name before the owner that is not the apex.
    let backwards = "m.example. NSEC b.example. A RRSIG NSEC\nexample. NSEC b.example. NS SOA RRSIG NSEC";
    assert_eq!(by("example", backwards, "z.example", Claim::NoName), Err(Bogus::Denial));
}

// CVE-2026-10723 (BIND), Unbound 23 Jul 2026: a child whose first label is a hash of the parent.
#[test]
fn an_nsec3_record_that_is_not_one_label_below_the_apex_denies_nothing() {
    let good = records(RFC5155, &[H[1]]);
    for owner in [
        format!("{}.sub.example", &H[1][..32]),
        format!("x.{}", H[1]),
        H[1][..32].to_owned(),
        "short.example".into(),
    ] {
        let mut moved = good.clone();
        moved[0].owner = kit::message::name(&owner);
        assert_eq!(
            proof("example", &moved, "ns1.example", Claim::NoData(Type::MX)),
            Err(Bogus::Denial),
            "{owner}"
        );
    }
    let mut upper = good;
    upper[0].owner.make_ascii_uppercase();
    assert_eq!(proof("example", &upper, "ns1.example", Claim::NoData(Type::MX)).as_deref(), Ok("Full"));
}

// Unbound, 16 Jun 2026.
#[test]
fn an_nsec_record_that_was_made_by_a_wildcard_proves_nothing() {
    let octets: Vec<_> =
        lines("b.example. NSEC ns1.example. NS RRSIG NSEC").iter().map(Line::octets).collect();
    let message = message_of(("b.example.", 43), 0, [&[], &octets]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    for (is_expanded, expected) in [(false, Ok(Cut::Unsigned)), (true, Err(Bogus::Denial))] {
        let denials =
            Denials::of(&groups, name("example"), |_| Some(Proven { is_expanded, ..PROVEN })).unwrap();
        let (message, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
        let mut hashing = Hashing { digests: &AwsLc, iterations: 50, message, resolution };
        let proof = denials.no_data(&name("b.example"), Type::DS, &mut hashing);
        assert_eq!(proof.map(|proof| proof.cut()), expected);
    }
}

// CVE-2026-123591 (hickory-dns): a denial of DS records without the NS bit. CVE-2026-35501 (Unbound): the child's side of a cut.
#[test]
fn only_a_delegation_of_the_parent_is_an_unsigned_delegation() {
    for (types, expected) in [
        ("NS RRSIG NSEC", Ok("Unsigned")),
        ("A RRSIG NSEC", Ok("None")),
        ("RRSIG NSEC TYPE128", Ok("NoName")),
        ("NS DS RRSIG NSEC", Err(Bogus::Denial)),
        ("NS SOA RRSIG NSEC DNSKEY", Err(Bogus::Denial)),
        ("CNAME RRSIG NSEC", Err(Bogus::Denial)),
    ] {
        let text = format!("b.example. NSEC c.example. {types}");
        assert_eq!(
            by("example", &text, "b.example", Claim::Cut).as_deref().map_err(|error| *error),
            expected,
            "{types}"
        );
    }
    let non_terminal = "a.example. NSEC x.b.example. A RRSIG NSEC";
    assert_eq!(by("example", non_terminal, "b.example", Claim::Cut).as_deref(), Ok("None"));
    // The root has no parent: its own zone says that it has no DS records.
    let root = ". NSEC aaa. NS SOA RRSIG NSEC DNSKEY";
    assert_eq!(by(".", root, ".", Claim::NoData(Type::DS)).as_deref(), Ok("Full"));
}

// CVE-2026-123594 (hickory-dns), V51.
#[test]
fn an_empty_non_terminal_has_no_data_and_is_no_missing_name() {
    let text = "example. NSEC x.b.example. NS SOA RRSIG NSEC\nx.b.example. NSEC example. A RRSIG NSEC";
    assert_eq!(by("example", text, "b.example", Claim::NoData(Type::A)).as_deref(), Ok("Full"));
    assert_eq!(by("example", text, "b.example", Claim::NoName), Err(Bogus::Denial));
    // A wildcard that is an empty non-terminal applies, and has no data.
    let wildcard = "example. NSEC x.*.example. NS SOA RRSIG NSEC\nx.*.example. NSEC example. A RRSIG NSEC";
    assert_eq!(by("example", wildcard, "b.example", Claim::NoName), Err(Bogus::Denial));
}

// CVE-2026-123596 (hickory-dns), RFC 6840 section 4.1.
#[test]
fn records_of_a_delegation_or_a_dname_deny_nothing_below_their_owner() {
    let apex = "example. NSEC b.example. NS SOA RRSIG NSEC\n";
    for (types, expected) in [
        ("NS RRSIG NSEC", Err(Bogus::Denial)),
        ("NS DS RRSIG NSEC", Err(Bogus::Denial)),
        ("DNAME RRSIG NSEC", Err(Bogus::Denial)),
        ("A RRSIG NSEC", Ok("Full")),
        ("NS SOA RRSIG NSEC", Ok("Full")),
    ] {
        let text = format!("{apex}b.example. NSEC d.example. {types}");
        let claim = |asked, claim| by("example", &text, asked, claim);
        assert_eq!(
            claim("a.b.example", Claim::NoName).as_deref().map_err(|error| *error),
            expected,
            "{types}"
        );
        // Beside it they deny.
        assert_eq!(claim("c.example", Claim::NoName).as_deref(), Ok("Full"), "{types}");
    }
    // The same by hashes: the closest encloser is a delegation (RFC 5155 section 8.3).
    for (types, expected) in
        [("NS DS RRSIG", Err(Bogus::Denial)), ("DNAME RRSIG", Err(Bogus::Denial)), ("A RRSIG", Ok("Full"))]
    {
        let zone = BTreeMap::from([("example".to_owned(), "NS SOA RRSIG"), ("b.example".to_owned(), types)]);
        let proven = proof("example", &nsec3_chain(&zone), "a.b.example", Claim::NoName);
        assert_eq!(proven.as_deref().map_err(|error| *error), expected, "{types}");
    }
}

// CVE-2026-13204 and CVE-2026-80274 (BIND): denials of both kinds.
#[test]
fn records_of_both_kinds_or_of_different_parameters_are_no_proof() {
    let mut both = records(RFC5155, &[H[1]]);
    assert!(proof("example", &both, "ns1.example", Claim::NoData(Type::MX)).is_ok());
    let mut other = records(RFC5155, &[H[0]]);
    other[0].rdata[3] = 13;
    assert_eq!(
        proof("example", &[both.clone(), other].concat(), "ns1.example", Claim::NoData(Type::MX)),
        Err(Bogus::Denial)
    );
    both.extend(lines("ns1.example. NSEC ns2.example. A RRSIG NSEC"));
    assert_eq!(proof("example", &both, "ns1.example", Claim::NoData(Type::MX)), Err(Bogus::Denial));
    // Two records at one owner.
    let twice = "ns1.example. NSEC ns2.example. A RRSIG NSEC\nns1.example. NSEC ns3.example. MX RRSIG NSEC";
    assert_eq!(by("example", twice, "ns1.example", Claim::NoData(Type::AAAA)), Err(Bogus::Denial));
}

// RFC 5155 section 8.2.
#[test]
fn nsec3_records_of_unknown_algorithm_or_flags_are_ignored() {
    for (place, value) in [(0, 2), (0, 0), (1, 2), (1, 3), (1, 0x80)] {
        let mut changed = records(RFC5155, &[H[1]]);
        changed[0].rdata[place] = value;
        let proven = proof("example", &changed, "ns1.example", Claim::NoData(Type::MX));
        assert_eq!(proven, Err(Bogus::Denial), "{place} {value}");
    }
}

// CVE-2026-1519 (BIND), CVE-2026-42923 (Unbound), RFC 9276 section 3.2: on every path, and before any hash.
#[test]
fn iterations_above_the_limits_are_insecure_or_refused_without_a_hash() {
    let all = records(RFC5155, &H);
    for (iterations, expected) in [
        (51u16, Ok(Strength::Iterations)),
        (500, Ok(Strength::Iterations)),
        (501, Err(Bogus::Iterations)),
        (65535, Err(Bogus::Iterations)),
    ] {
        let mut many = all.clone();
        many.iter_mut().for_each(|line| line.rdata[2..4].copy_from_slice(&iterations.to_be_bytes()));
        let asked = name("a.c.x.w.example");
        let no_name = with("example", &many, &NoDigest, |denials, hashing| denials.no_name(&asked, hashing));
        assert_eq!(no_name, expected, "{iterations}");
        let no_data = with("example", &many, &NoDigest, |denials, hashing| {
            denials.no_data(&asked, Type::A, hashing).map(|proof| proof.strength)
        });
        assert_eq!(no_data, expected, "{iterations}");
        let no_closer =
            with("example", &many, &NoDigest, |denials, hashing| denials.no_closer(&asked, 2, hashing));
        assert_eq!(no_closer, expected, "{iterations}");
        let cut = with("example", &many, &NoDigest, |denials, hashing| {
            denials.no_data(&asked, Type::DS, hashing).map(|proof| proof.cut())
        });
        assert_eq!(cut, expected.map(Cut::Unknown), "{iterations}");
    }
}

// CVE-2023-50868: 120 labels, 50 iterations, the longest salt.
#[test]
fn hashes_that_cost_more_than_the_budget_are_refused_before_the_first() {
    let mut owner = String::new();
    for _ in 0..110 {
        owner.push_str("a.");
    }
    owner.push_str("example");
    let costly = |iterations: u16, salt: usize| {
        let mut rdata = vec![1, 0];
        rdata.extend(iterations.to_be_bytes());
        rdata.push(salt as u8);
        rdata.extend(vec![7; salt]);
        rdata.push(20);
        rdata.extend([9; 20]);
        let mut line = records(RFC5155, &[H[1]]).remove(0);
        line.rdata = rdata;
        vec![line]
    };
    for (iterations, salt) in [(50, 255), (50, 0), (10, 0), (0, 255)] {
        let refused = with("example", &costly(iterations, salt), &NoDigest, |denials, hashing| {
            denials.no_name(&name(&owner), hashing)
        });
        assert_eq!(refused, Err(Bogus::TooMuchWork), "{iterations} {salt}");
    }
    // Without iterations the same name is affordable, and nine labels are with fifty.
    assert_eq!(proof("example", &costly(0, 0), &owner, Claim::NoName), Err(Bogus::Denial));
    assert_eq!(proof("example", &costly(50, 0), "a.b.c.d.e.f.g.example", Claim::NoName), Err(Bogus::Denial));
}

// RFC 9824 sections 2 and 3.
#[test]
fn nxname_denies_the_name_whatever_the_response_code() {
    let text = "a.example. NSEC \\000.a.example. RRSIG NSEC TYPE128";
    assert_eq!(by("example", text, "a.example", Claim::NoName).as_deref(), Ok("Full"));
    assert_eq!(by("example", text, "a.example", Claim::NoData(Type::AAAA)).as_deref(), Ok("Full NoName"));
    let exists = "a.example. NSEC \\000.a.example. A RRSIG NSEC";
    assert_eq!(by("example", exists, "a.example", Claim::NoName), Err(Bogus::Denial));
    assert_eq!(by("example", exists, "a.example", Claim::NoData(Type::AAAA)).as_deref(), Ok("Full"));
    assert_eq!(by("example", exists, "a.example", Claim::NoData(Type::A)), Err(Bogus::Denial));
}

// RFC 6840 sections 4.2 and 4.3.
#[test]
fn an_alias_at_the_name_or_any_type_for_any_is_no_missing_data() {
    let with = |types: &str, rtype: Type| {
        by("example", &format!("a.example. NSEC b.example. {types}"), "a.example", Claim::NoData(rtype))
    };
    assert_eq!(with("CNAME RRSIG NSEC", Type::AAAA), Err(Bogus::Denial));
    assert_eq!(with("CNAME RRSIG NSEC", Type::DS), Err(Bogus::Denial));
    assert_eq!(with("TXT RRSIG NSEC", Type::ANY), Err(Bogus::Denial));
    assert_eq!(with("RRSIG NSEC", Type::ANY).as_deref(), Ok("Full"));
}

// RUSTSEC-2026-0118 (hickory-dns): a loop over labels that never meets the apex.
#[test]
fn names_outside_of_the_zone_are_refused_by_every_proof() {
    for records in [records(RFC4035, &["example", "b.example"]), records(RFC5155, &H)] {
        for asked in [".", "net", "example.net", "a.b.c.d.e.f.g.net", "xample"] {
            for claim in
                [Claim::NoName, Claim::NoData(Type::A), Claim::NoCloser(0), Claim::NoCloser(9), Claim::Cut]
            {
                assert_eq!(proof("example", &records, asked, claim), Err(Bogus::Denial), "{asked} {claim:?}");
            }
        }
    }
}

/// NSEC records of a zone: owners with their types.
pub fn nsec_chain(zone: &BTreeMap<String, &str>) -> Vec<Line> {
    let mut owners: Vec<(LowerName, &str)> =
        zone.iter().map(|(owner, types)| (name(owner), *types)).collect();
    owners.sort_by(|a, b| sixfold_dnssec::name::compare(a.0.as_wire(), b.0.as_wire()));
    let text = |name: &LowerName| {
        let mut text = String::new();
        let mut rest = name.as_wire();
        while let Some((&length @ 1.., after)) = rest.split_first() {
            text.push_str(std::str::from_utf8(&after[..usize::from(length)]).unwrap());
            text.push('.');
            rest = &after[usize::from(length)..];
        }
        text
    };
    let next = |at: usize| &owners[(at + 1) % owners.len()].0;
    let line = |at: usize| format!("{} NSEC {} {} NSEC", text(&owners[at].0), text(next(at)), owners[at].1);
    lines(&(0..owners.len()).map(line).collect::<Vec<_>>().join("\n"))
}

/// NSEC3 records of a zone: owners with their types, and empty non-terminals without.
pub fn nsec3_chain(zone: &BTreeMap<String, &str>) -> Vec<Line> {
    let parameters = Nsec3Param::parse(b"\x01\0\0\x02\x01\xaa").unwrap();
    let mut hashes: Vec<([u8; 20], &str)> = Vec::new();
    for owner in with_non_terminals(zone) {
        let types = zone.get(&owner).copied().unwrap_or_default();
        hashes.push((hash(name(&owner).as_wire(), &parameters, &AwsLc), types));
    }
    hashes.sort();
    let line = |at: usize| {
        let next = base32(&hashes[(at + 1) % hashes.len()].0);
        format!("{}.example. NSEC3 1 0 2 aa {next} {}", base32(&hashes[at].0), hashes[at].1)
    };
    lines(&(0..hashes.len()).map(line).collect::<Vec<_>>().join("\n"))
}

/// All names that exist in a zone.
fn with_non_terminals(zone: &BTreeMap<String, &str>) -> BTreeSet<String> {
    let mut names = BTreeSet::from(["example".to_owned()]);
    for owner in zone.keys() {
        let mut rest = owner.as_str();
        while rest != "example" {
            names.insert(rest.to_owned());
            rest = rest.split_once('.').unwrap().1;
        }
    }
    names
}

/// Answer of a zone to a question (RFC 1034 section 4.3.2, RFC 4592): no name, the types at the name or at the wildcard, or nothing that
/// this zone may say, as the name is below a delegation or a DNAME.
pub fn truth<'z>(zone: &BTreeMap<String, &'z str>, asked: &str) -> Option<Result<&'z str, ()>> {
    let names = with_non_terminals(zone);
    let types = |name: &str| zone.get(name).copied().unwrap_or_default();
    let mut above = asked;
    while above != "example" {
        above = above.split_once('.').unwrap().1;
        let has = |word: &str| types(above).split(' ').any(|name| name == word);
        if above != "example" && has("NS") || has("DNAME") {
            return None;
        }
    }
    if names.contains(asked) {
        return Some(Ok(types(asked)));
    }
    let mut encloser = asked;
    while !names.contains(encloser) {
        encloser = encloser.split_once('.').unwrap().1;
    }
    let wildcard = format!("*.{encloser}");
    Some(if names.contains(&wildcard) { Ok(types(&wildcard)) } else { Err(()) })
}

/// Random name below the zone of the tests.
pub fn random_name(random: &mut Random) -> String {
    let depth = 1 + random.place(3);
    let prefix: Vec<&str> = (0..depth).map(|_| random.pick(&["a", "b", "*", "c"])).collect();
    format!("{}.example", prefix.join("."))
}

/// Random zone: owners with their types. None: it has too many names for one message.
pub fn random_zone(random: &mut Random) -> Option<BTreeMap<String, &'static str>> {
    let mut zone = BTreeMap::from([("example".to_owned(), "NS SOA RRSIG")]);
    for _ in 0..random.place(4) {
        let types = random.pick(&[
            "A RRSIG",
            "A RRSIG",
            "AAAA RRSIG",
            "NS RRSIG",
            "NS DS RRSIG",
            "CNAME RRSIG",
            "DNAME RRSIG",
        ]);
        let owner = random_name(random);
        // Wildcards with delegations or DNAME records are forbidden or undefined (RFC 4592 section 4).
        let is_odd = owner.contains('*') && (types.contains("NS") || types.contains("DNAME"));
        zone.insert(owner, if is_odd { "A RRSIG" } else { types });
    }
    // A zone has no names below its delegations.
    let cuts: Vec<String> = zone
        .iter()
        .filter(|(owner, types)| *owner != "example" && types.contains("NS") || types.contains("DNAME"))
        .map(|(owner, _)| format!(".{owner}"))
        .collect();
    zone.retain(|owner, _| !cuts.iter().any(|cut| owner.ends_with(cut.as_str())));
    (with_non_terminals(&zone).len() <= 8).then_some(zone)
}

#[test]
fn with_all_records_of_a_zone_exactly_the_truth_can_be_proven() {
    let mut random = Random::new(5155);
    let mut proven = [0; 3];
    for round in 0..3000 {
        let Some(zone) = random_zone(&mut random) else { continue };
        let records = if round % 2 == 0 { nsec_chain(&zone) } else { nsec3_chain(&zone) };
        for _ in 0..8 {
            let asked = random_name(&mut random);
            let truth = truth(&zone, &asked);
            let no_name = proof("example", &records, &asked, Claim::NoName).is_ok();
            let no_data = proof("example", &records, &asked, Claim::NoData(Type::A)).is_ok();
            let lacks = |types: &str| {
                let has = |word: &str| types.split(' ').any(|name| name == word);
                !has("A") && !has("CNAME") && !has("NS")
            };
            let expected = match truth {
                None => (false, false),
                Some(Err(())) => (true, false),
                Some(Ok(types)) => (false, lacks(types)),
            };
            assert_eq!((no_name, no_data), expected, "{asked} {zone:?} {records:?}");
            proven[if no_name {
                0
            } else if no_data {
                1
            } else {
                2
            }] += 1;
        }
    }
    assert!(proven.iter().all(|count| *count > 500), "{proven:?}");
}

// The property above found it: a wildcard that only exists because of names below it applies, and has no data.
#[test]
fn a_wildcard_that_is_an_empty_non_terminal_proves_missing_data() {
    let text = "example. NSEC x.*.example. NS SOA RRSIG NSEC\nx.*.example. NSEC example. A RRSIG NSEC";
    assert_eq!(by("example", text, "b.example", Claim::NoData(Type::A)).as_deref(), Ok("Full"));
    let first = text.split('\n').next().unwrap();
    assert_eq!(by("example", first, "b.example", Claim::NoData(Type::A)), Err(Bogus::Denial));
}
