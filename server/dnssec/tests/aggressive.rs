//! Denials of names by records of earlier messages (RFC 8198): those of RFC 4035 and RFC 5155, and zones against a model.

use crate::arithmetic::AwsLc;
use crate::denial::{
    name, nsec_chain, nsec3_chain, random_name, random_zone, records, truth, without_opt_out,
};
use crate::examples::{RFC4035, RFC5155};
use crate::text::{Line, lines};
use kit::Random;
use sixfold_dnssec::aggressive::{Kept, KeptRecords, NoName, by_nsec, by_nsec3};
use sixfold_dnssec::budget::BLOCKS;
use sixfold_dnssec::name::compare;
use sixfold_dnssec::nsec3::{Hashing, span_width};
use sixfold_dnssec::{Budget, LowerName, MessageBudget, Nsec3};
use std::collections::BTreeMap;

/// Records as a cache keeps them.
struct Records(Vec<Line>);

impl Records {
    fn up_to(&self, rtype: u16, owner: &LowerName) -> Option<&Line> {
        let of_type = self.0.iter().filter(|line| line.rtype == rtype);
        of_type
            .filter(|line| compare(&line.owner, owner.as_wire()).is_le())
            .max_by(|a, b| compare(&a.owner, &b.owner))
    }
}

fn kept(line: &Line) -> Kept<'_> {
    let owner = LowerName::from_wire(&line.owner).unwrap();
    Kept { owner, rdata: &line.rdata, signatures: &[], ttl: 1 }
}

impl<'k> KeptRecords<'k> for &'k Records {
    fn nsec(&self, owner: &LowerName) -> Option<Kept<'k>> {
        self.up_to(47, owner).map(kept)
    }

    fn nsec3(&self, owner: &LowerName) -> Option<Kept<'k>> {
        let hashes = self.0.iter().filter(|line| line.rtype == 50);
        let last = || hashes.max_by(|a, b| compare(&a.owner, &b.owner));
        self.up_to(50, owner).or_else(last).map(kept)
    }
}

/// Owners of the records that deny a name.
fn denial(of: &[Line], asked: &str) -> Option<Vec<String>> {
    let (zone, asked, records) = (name("example"), name(asked), Records(of.to_vec()));
    let (message, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
    let hashing = &mut Hashing { digests: &AwsLc, iterations: 50, message, resolution };
    let text = |found: NoName<'_>| {
        let mut owners: Vec<_> =
            found.records().map(|kept| kept.owner.as_wire().escape_ascii().to_string()).collect();
        owners.sort();
        owners
    };
    let by_nsec = by_nsec(&zone, &asked, &&records).map(text);
    by_nsec.or_else(|| by_nsec3(&zone, &asked, &&records, hashing).map(text))
}

fn owners(texts: &[&str]) -> Option<Vec<String>> {
    let mut owners: Vec<_> =
        texts.iter().map(|text| name(text).as_wire().escape_ascii().to_string()).collect();
    owners.sort();
    Some(owners)
}

// RFC 4035 appendix A is the zone, appendix B.2 the proof.
#[test]
fn names_of_rfc_4035_are_denied_by_the_records_that_its_appendix_b_has_and_no_others_are() {
    let all: Vec<Line> = lines(RFC4035).into_iter().filter(|line| line.rtype == 47).collect();
    assert_eq!(denial(&all, "ml.example"), owners(&["b.example", "example"]));
    assert_eq!(denial(&all, "deep.ml.example"), owners(&["b.example", "example"]));
    // Names that exist, an empty non-terminal, names with a wildcard, names below delegations, and names of other zones.
    for asked in [
        "example",
        "ns1.example",
        "y.w.example",
        "a.z.w.example",
        "q.w.example",
        "mc.b.example",
        "x.a.example",
        "example.net",
    ] {
        assert_eq!(denial(&all, asked), None, "{asked}");
    }
    // Without the record for the wildcard there is no proof.
    assert_eq!(denial(&records(RFC4035, &["b.example"]), "ml.example"), None);
}

// RFC 5155 appendix A is the zone, appendix B.1 the proof, which a reply may have at that price.
#[test]
fn a_denial_whose_hashes_cost_more_than_the_limit_is_not_looked_for() {
    let all: Vec<Line> = lines(RFC5155).into_iter().filter(|line| line.rtype == 50).collect();
    // Five names and a wildcard, of 13 blocks each, as there are 12 iterations.
    assert_eq!(denial(&without_opt_out(&all), "a.c.x.w.example"), None);
    // The zones here have two iterations, so five hashes cost 15 blocks and six cost 18.
    let zone = BTreeMap::from([("example".to_owned(), "NS SOA RRSIG"), ("a.example".to_owned(), "A RRSIG")]);
    let chain = nsec3_chain(&zone);
    assert!(denial(&chain, "d.c.b.example").is_some());
    assert_eq!(denial(&chain, "e.d.c.b.example"), None);
}

// CVE-2023-50868: the three hashes of a proof, of three blocks each, are work, and a resolution with five blocks left has none for it.
#[test]
fn a_proof_whose_hashes_cannot_be_paid_for_is_none() {
    let zone = BTreeMap::from([("example".to_owned(), "NS SOA RRSIG"), ("a.example".to_owned(), "A RRSIG")]);
    let records = Records(nsec3_chain(&zone));
    let denies = |spent: u32| {
        let (message, resolution) = (&mut MessageBudget::new(), &mut Budget::new());
        assert!(MessageBudget::new().hash(resolution, BLOCKS / 2));
        assert!(MessageBudget::new().hash(resolution, spent));
        let hashing = &mut Hashing { digests: &AwsLc, iterations: 50, message, resolution };
        by_nsec3(&name("example"), &name("b.example"), &&records, hashing).is_some()
    };
    assert!(denies(0));
    assert!(!denies(BLOCKS / 2 - 5));
}

#[test]
fn with_all_records_exactly_the_names_that_do_not_exist_are_denied_and_with_fewer_no_other_ones() {
    let mut random = Random::new(8198);
    let mut denied = [0; 4];
    for round in 0..3000 {
        let Some(zone) = random_zone(&mut random) else { continue };
        let chain = if round % 2 == 0 { nsec_chain(&zone) } else { nsec3_chain(&zone) };
        for _ in 0..8 {
            let asked = random_name(&mut random);
            let is_missing = truth(&zone, &asked) == Some(Err(()));
            assert_eq!(denial(&chain, &asked).is_some(), is_missing, "{asked} {zone:?}");
            let some: Vec<Line> = chain.iter().filter(|_| random.one_in(2)).cloned().collect();
            let is_denied = denial(&some, &asked).is_some();
            assert!(is_missing || !is_denied, "{asked} {zone:?} {some:?}");
            denied[2 * (round % 2) + usize::from(is_denied)] += 1;
            // A record with Opt-Out denies nothing (RFC 5155 section 6).
            let mut opt_out = chain.clone();
            opt_out.iter_mut().filter(|line| line.rtype == 50).for_each(|line| line.rdata[1] = 1);
            assert!(round % 2 == 0 || denial(&opt_out, &asked).is_none(), "{asked} {zone:?}");
        }
    }
    assert!(denied.iter().all(|count| *count > 300), "{denied:?}");
}

// RFC 5155 section 3.1.7: the last record leads back to the first.
#[test]
fn the_width_of_a_span_is_the_distance_to_the_next_hash() {
    for (owner, next, expected) in [
        ("00000000000000000000000000000000", 0x01, Some(0x0101_0101)),
        ("vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv", 0x01, Some(0x0101_0102)),
        ("00000000000000000000000000000000", 0x00, Some(u32::MAX)),
        ("short", 0x01, None),
    ] {
        let rdata = [&[1, 0, 0, 0, 0, 20][..], &[next; 20]].concat();
        let nsec3 = Nsec3::parse(&rdata).unwrap();
        assert_eq!(span_width(&name(&format!("{owner}.example")), &nsec3), expected, "{owner}");
    }
}
