//! Validation of whole messages: the examples of RFC 4035 with their signatures, those of RFC 5155, chains, and published faults.

use crate::arithmetic::{AwsLc, verifies};
use crate::examples::{RFC4035, RFC5155};
use crate::text::{Line, line, lines, message_of};
use sixfold_dnssec::anchors::ROOT;
use sixfold_dnssec::{
    Algorithms, Anchor, AnchorData, Anchors, Bogus, Budget, Context, Delegation, Entry, Groups, Insecure,
    Known, LowerName, MessageBudget, NegativeAnchor, Next, Outcome, Question, SignatureJob, Status,
    Timestamp, Validation, Verdict, ZoneKeys, Zones, entry_by_anchors, entry_by_ds,
};
use std::collections::BTreeMap;
use wire::Message;

const NOW: u32 = 1_700_000_000;
const NXDOMAIN: u8 = 3;

/// What is known of a zone.
#[derive(Clone, Debug)]
enum Entered {
    NoCut,
    Secure(Vec<u8>),
    Insecure(Insecure),
    Bogus(Bogus),
}

#[derive(Clone, Debug, Default)]
struct Table(BTreeMap<Vec<u8>, Entered>);

impl Zones for Table {
    fn get(&self, apex: &[u8]) -> Known<'_> {
        match self.0.get(apex) {
            None => Known::Unknown,
            Some(Entered::NoCut) => Known::NoCut,
            Some(Entered::Secure(keys)) => Known::Secure(ZoneKeys::from_octets(keys)),
            Some(Entered::Insecure(reason)) => Known::Insecure(*reason),
            Some(Entered::Bogus(reason)) => Known::Bogus(*reason),
        }
    }
}

/// A validator: zones, anchors, time, and what counts as a valid signature.
struct World {
    zones: Table,
    anchors: Vec<Anchor<'static>>,
    negative: Vec<NegativeAnchor<'static>>,
    now: u32,
    is_real: bool,
}

/// The key of every zone whose signatures are not real: tag 7, P-256.
fn key() -> Vec<u8> {
    [&[0, 7, 13, 0, 64][..], &[1; 64]].concat()
}

impl World {
    /// The root and these zones are secure; signatures of octets 1 are valid.
    fn new(zones: &[&str]) -> World {
        let secure = |zone: &&str| (kit::message::name(zone), Entered::Secure(key()));
        let zones = Table(zones.iter().chain([&""]).map(secure).collect());
        World { zones, anchors: ROOT.to_vec(), negative: vec![], now: NOW, is_real: false }
    }

    fn enter(mut self, zone: &str, entered: Entered) -> World {
        self.zones.0.insert(kit::message::name(zone), entered);
        self
    }

    fn is_valid(&self, job: &SignatureJob<'_>) -> bool {
        if !self.is_real {
            return job.signature[0] == 1;
        }
        let mut data = vec![0; 0xffff];
        let length = job.write_signed_data(&mut data).unwrap();
        verifies(job.algorithm, job.key, job.signature, &data[..length])
    }

    /// Validates a message to its end or its first question, and gives that with the number of verifications.
    fn run(&self, message: &[u8]) -> (Result<Verdict, Question>, usize) {
        let (budget, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
        self.run_with(message, budget, resolution, |_, _, _, _| ())
    }

    fn run_with(
        &self,
        message: &[u8],
        budget: &mut MessageBudget,
        resolution: &mut Budget,
        after: impl FnOnce(&Validation, &Groups<'_>, &Verdict, &mut Context<'_, AwsLc, Table>),
    ) -> (Result<Verdict, Question>, usize) {
        let groups = Groups::of(&Message::parse(message).unwrap()).unwrap();
        let anchors = Anchors { positive: &self.anchors, negative: &self.negative };
        let mut context = Context {
            digests: &AwsLc,
            zones: &self.zones,
            anchors,
            iterations: 50,
            now: Timestamp(self.now),
            message: budget,
            resolution,
        };
        let mut validation = Validation::default();
        let mut jobs = 0;
        loop {
            match validation.step(&groups, &mut context) {
                Next::Verify(job) => {
                    jobs += 1;
                    let is_valid = self.is_valid(&job);
                    validation.verified(&groups, is_valid, Timestamp(self.now));
                }
                Next::Ask(question) => return (Err(question), jobs),
                Next::Done(verdict) => {
                    after(&validation, &groups, &verdict, &mut context);
                    return (Ok(verdict), jobs);
                }
            }
        }
    }

    /// The verdict about a message with these records.
    fn verdict(
        &self,
        question: (&str, u16),
        rcode: u8,
        answer: &[Line],
        authority: &[Line],
    ) -> (Status, Outcome) {
        let octets = |lines: &[Line]| lines.iter().map(Line::octets).collect::<Vec<_>>();
        let message = message_of(question, rcode, [&octets(answer), &octets(authority)]);
        let verdict = self.run(&message).0.unwrap_or_else(|question| panic!("{question:?} is asked"));
        (verdict.status, verdict.outcome)
    }

    /// The question that a message leads to.
    fn asks(
        &self,
        question: (&str, u16),
        rcode: u8,
        answer: &[Line],
        authority: &[Line],
    ) -> Option<Question> {
        let octets = |lines: &[Line]| lines.iter().map(Line::octets).collect::<Vec<_>>();
        let message = message_of(question, rcode, [&octets(answer), &octets(authority)]);
        self.run(&message).0.err()
    }
}

/// Records in master file format, each RRset with a signature of a zone that counts as valid. `labels` replaces the number of labels.
fn signed_by(zone: &str, text: &str, labels: Option<u8>) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    for record in lines(text) {
        let is_new = !found.iter().any(|other| (&other.owner, other.rtype) == (&record.owner, record.rtype));
        found.push(record.clone());
        if is_new {
            let all = sixfold_dnssec::name::labels(&record.owner) as u8
                - u8::from(record.owner.starts_with(b"\x01*"));
            let mut rdata = record.rtype.to_be_bytes().to_vec();
            rdata.extend([13, labels.unwrap_or(all)]);
            rdata.extend(3600u32.to_be_bytes());
            rdata.extend((NOW + 1000).to_be_bytes());
            rdata.extend((NOW - 1000).to_be_bytes());
            rdata.extend(7u16.to_be_bytes());
            rdata.extend(kit::message::name(zone));
            rdata.extend([1; 64]);
            found.push(Line { rtype: 46, rdata, ..record });
        }
    }
    found
}

fn signed(zone: &str, text: &str) -> Vec<Line> {
    signed_by(zone, text, None)
}

const SECURE: Status = Status::Secure;

fn refused(reason: Bogus) -> (Status, Outcome) {
    (Status::Bogus(reason), Outcome::Failure)
}

/// RRsets of a zone file with their signatures: those of an owner and a type.
fn of(zone: &str, wanted: &[(&str, u16)]) -> Vec<Line> {
    let zone = lines(zone);
    let mut found = Vec::new();
    for &(owner, rtype) in wanted {
        let is_wanted = |line: &&Line| {
            line.owner == kit::message::name(owner)
                && (line.rtype == rtype || line.rtype == 46 && line.rdata[..2] == rtype.to_be_bytes())
        };
        found.extend(zone.iter().filter(is_wanted).cloned());
    }
    found
}

/// Under another owner.
fn at(owner: &str, mut lines: Vec<Line>) -> Vec<Line> {
    lines.iter_mut().for_each(|line| line.owner = kit::message::name(owner));
    lines
}

/// The world of RFC 4035: the key of `example` is verified from its anchor, with real arithmetic.
fn rfc4035() -> World {
    let dnskeys = of(RFC4035, &[("example", 48)]);
    let octets: Vec<_> = dnskeys.iter().map(Line::octets).collect();
    let message = message_of(("example", 48), 0, [&octets, &[]]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    let set = groups.get(0).unwrap();
    let ksk: &'static [u8] =
        Box::leak(dnskeys.iter().find(|line| line.rdata[1] == 1).unwrap().rdata.clone().into_boxed_slice());
    let anchors = vec![Anchor { zone: b"\x07example\0", data: AnchorData::Dnskey(ksk) }];
    let list = Anchors { positive: &anchors, negative: &[] };
    let mut out = [0; 1000];
    let Entry::Keys(entry) = entry_by_anchors(&list, &set, Algorithms::ALL, &AwsLc, &mut out) else {
        panic!("the anchor names no key")
    };
    assert_eq!(entry.iter().map(|key| key.key_tag).collect::<Vec<_>>(), [9465]);
    let mut world =
        World { zones: Table::default(), anchors, negative: vec![], now: 1_082_419_200, is_real: true };
    world = world.enter("example", Entered::Secure(entry.octets().to_vec()));
    assert_eq!(world.verdict(("example.", 48), 0, &dnskeys, &[]), (SECURE, Outcome::Data));
    let keys = ZoneKeys::of(&set, Algorithms::ALL, |_| true, &mut out).unwrap();
    world.enter("example", Entered::Secure(keys.octets().to_vec()))
}

const SOA: (&str, u16) = ("example", 6);

/// A message that is as expected, and bogus if any record of it is left out, except where `optional` says so.
fn needs_all(
    world: &World,
    question: (&str, u16),
    rcode: u8,
    answer: &[Line],
    authority: &[Line],
    expected: (Status, Outcome),
) {
    assert_eq!(world.verdict(question, rcode, answer, authority), expected, "{question:?}");
    // The first half are answers.
    for missing in 0..answer.len() + authority.len() {
        let (mut answer, mut authority) = (answer.to_vec(), authority.to_vec());
        let removed = if missing < answer.len() {
            answer.remove(missing)
        } else {
            authority.remove(missing - answer.len())
        };
        if removed.rtype == 6 {
            // Without its signature the SOA is tried as well; without the SOA that signature covers nothing, and the proof stands.
            continue;
        }
        let message = message_of(question, rcode, [&octets(&answer), &octets(&authority)]);
        match world.run(&message).0 {
            Ok(verdict) => assert!(
                matches!(verdict.status, Status::Bogus(_)),
                "{question:?} without {missing}: {verdict:?}"
            ),
            // The proof is missing, so the name might be below an unsigned delegation.
            Err(asked) => {
                assert!(matches!(asked, Question::Delegation(_)), "{question:?} without {missing}: {asked:?}")
            }
        }
    }
}

fn octets(lines: &[Line]) -> Vec<Vec<u8>> {
    lines.iter().map(Line::octets).collect()
}

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

const NO_B: &str = "example. NSEC z.example. NS SOA RRSIG NSEC DNSKEY";

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
    let answer = [alias, signed("example", "a.example. A 192.0.2.1")].concat();
    assert_eq!(world.verdict(("b.example.", 1), 0, &answer, &proof), (SECURE, Outcome::Data));
    assert_eq!(world.verdict(("b.example.", 1), 0, &answer, &[]), refused(Bogus::Denial));
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

fn zone(text: &str) -> LowerName {
    LowerName::from_wire(&kit::message::name(text)).unwrap()
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

/// The consequence of a reply to a question for DS records of `b.example`.
fn delegation(rcode: u8, answer: &[Line], authority: &[Line]) -> String {
    let world = World::new(&["example"]).enter("b.example", Entered::NoCut);
    let message = message_of(("b.example.", 43), rcode, [&octets(answer), &octets(authority)]);
    let mut told = String::from("asked");
    let (budget, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
    let (end, _) = world.run_with(&message, budget, resolution, |validation, groups, verdict, context| {
        told = match validation.delegation(groups, verdict, context) {
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
    assert_eq!(found(&[]), Err("Digest".into()));
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
