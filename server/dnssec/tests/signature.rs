//! Verification of RRsets: which signatures are tried, with which keys, in which order, and what follows.
//!
//! Most tests need no arithmetic: a signature of octets 1 counts as valid, any other as wrong.

use crate::arithmetic::verifies;
use crate::examples::{RFC4035, SINGLE};
use crate::text::{Line, line, lines, message_of};
use sixfold_dnssec::budget::{MESSAGE_VERIFICATIONS, VERIFICATIONS};
use sixfold_dnssec::{
    Algorithms, Bogus, Budget, Groups, KeyError, LowerName, MessageBudget, Proven, SecureZone, SignatureJob,
    Step, Timestamp, Verification, ZoneKeys, ZoneKeysError,
};
use wire::Message;

const NOW: u32 = 1_700_000_000;

/// Octets of [`ZoneKeys`] with these keys: tag, algorithm, and an octet that the public key repeats.
fn keys(keys: &[(u16, u8, u8)]) -> Vec<u8> {
    let one = |&(tag, algorithm, octet): &(u16, u8, u8)| {
        let length = match algorithm {
            13 => 64u16,
            14 => 96,
            _ => 32,
        };
        let mut octets = tag.to_be_bytes().to_vec();
        octets.push(algorithm);
        octets.extend(length.to_be_bytes());
        octets.extend(vec![octet; usize::from(length)]);
        octets
    };
    keys.iter().flat_map(one).collect()
}

/// RRSIG record over the A records of an owner. The fields are algorithm, labels, expiration, inception, key tag, signer, and the octet
/// that the signature repeats.
fn rrsig(owner: &str, fields: (u8, u8, u32, u32, u16, &str, u8)) -> Vec<u8> {
    covering(1, owner, fields)
}

fn covering(
    covered: u16,
    owner: &str,
    (algorithm, labels, expiration, inception, tag, signer, octet): (u8, u8, u32, u32, u16, &str, u8),
) -> Vec<u8> {
    let mut rdata = covered.to_be_bytes().to_vec();
    rdata.extend([algorithm, labels]);
    rdata.extend(300u32.to_be_bytes());
    rdata.extend(expiration.to_be_bytes());
    rdata.extend(inception.to_be_bytes());
    rdata.extend(tag.to_be_bytes());
    rdata.extend(kit::message::name(signer));
    rdata.extend(vec![octet; if algorithm == 14 { 96 } else { 64 }]);
    kit::message::record(&kit::message::name(owner), 46, 300, &rdata)
}

/// Fields of an RRSIG record, as those of [`rrsig`].
type Fields = (u8, u8, u32, u32, u16, &'static str, u8);

/// The usual fields, with this octet in the signature.
fn good(octet: u8) -> Fields {
    (13, 2, NOW + 100, NOW - 100, 7, "example", octet)
}

fn a_record(owner: &str) -> Vec<u8> {
    line(&format!("{owner}. 300 A 192.0.2.1")).octets()
}

/// The end of a verification, and the jobs that it had.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    verdict: Result<Proven, Bogus>,
    jobs: usize,
}

fn run(
    message: &[u8],
    (apex, keys): (&str, &[u8]),
    now: u32,
    budgets: (&mut MessageBudget, &mut Budget),
    is_valid: impl Fn(&SignatureJob<'_>) -> bool,
) -> Outcome {
    let groups = Groups::of(&Message::parse(message).unwrap()).unwrap();
    let set = groups.get(0).unwrap();
    let apex = LowerName::from_wire(&kit::message::name(apex)).unwrap();
    let zone = SecureZone { apex, keys: ZoneKeys::from_octets(keys) };
    let mut verification = Verification::default();
    for jobs in 0.. {
        match verification.step(&set, &zone, Timestamp(now), (&mut *budgets.0, &mut *budgets.1)) {
            Step::Bogus(reason) => return Outcome { verdict: Err(reason), jobs },
            Step::Verify(job) if is_valid(&job) => {
                let proven = verification.valid(&set, Timestamp(now)).expect("a signature that was verified");
                return Outcome { verdict: Ok(proven), jobs: jobs + 1 };
            }
            Step::Verify(_) => verification.wrong(),
        }
    }
    unreachable!("a verification ends")
}

/// The outcome for the first RRset of records, in a fresh resolution.
fn outcome(records: &[Vec<u8>], zone: (&str, &[u8]), now: u32) -> Outcome {
    let message = message_of(("www.example.", 1), 0, [records, &[]]);
    run(&message, zone, now, (&mut MessageBudget::new(), &mut Budget::new()), |job| job.signature[0] == 1)
}

/// The reason why one A record with this signature is bogus in the zone `example`; `None` if it is secure.
fn reason(owner: &str, fields: (u8, u8, u32, u32, u16, &str, u8)) -> (Option<Bogus>, usize) {
    let outcome =
        outcome(&[a_record(owner), rrsig(owner, fields)], ("example", &keys(&[(7, 13, 3), (8, 15, 4)])), NOW);
    (outcome.verdict.err(), outcome.jobs)
}

// RFC 4035 section 5.3.1, each sentence.
#[test]
fn each_field_of_a_signature_that_does_not_fit_makes_the_rrset_bogus_without_arithmetic() {
    let with = |change: fn(&mut Fields)| {
        let mut fields = good(1);
        change(&mut fields);
        reason("www.example", fields)
    };
    assert_eq!(with(|_| ()), (None, 1));
    assert_eq!(with(|fields| fields.6 = 2), (Some(Bogus::Signature), 1));
    // The signer is a sibling, the parent, the child, the owner.
    for signer in ["other", "", "www.example", "www.www.example", "ww.example"] {
        let (mut fields, expected) = (good(1), (Some(Bogus::Signer), 0));
        fields.5 = signer;
        assert_eq!(reason("www.example", fields), expected, "{signer}");
    }
    assert_eq!(with(|fields| fields.5 = "EXAMPLE"), (None, 1));
    assert_eq!(with(|fields| fields.1 = 3), (Some(Bogus::Labels), 0));
    assert_eq!(with(|fields| fields.1 = 1), (None, 1));
    assert_eq!(
        with(|fields| (fields.2, fields.3) = (NOW - 101, NOW - 100)),
        (Some(Bogus::ExpiresBeforeValid), 0)
    );
    assert_eq!(with(|fields| fields.3 = NOW + 1), (Some(Bogus::NotYetValid), 0));
    assert_eq!(with(|fields| fields.2 = NOW - 1), (Some(Bogus::Expired), 0));
    assert_eq!(with(|fields| (fields.2, fields.3) = (NOW, NOW)), (None, 1));
    assert_eq!(with(|fields| fields.4 = 9), (Some(Bogus::KeyMissing), 0));
    assert_eq!(with(|fields| fields.0 = 15), (Some(Bogus::KeyMissing), 0));
    assert_eq!(with(|fields| fields.0 = 16), (Some(Bogus::KeyMissing), 0));
}

// CVE-2026-44690 (Unbound), CVE-2026-52688 (PowerDNS), CVE-2026-11721 (BIND): a wildcard out of the zone.
#[test]
fn a_signature_with_fewer_labels_than_the_zone_is_refused() {
    let mut fields = good(1);
    for (labels, expected) in
        [(0, (Some(Bogus::Labels), 0)), (1, (None, 1)), (2, (None, 1)), (3, (Some(Bogus::Labels), 0))]
    {
        fields.1 = labels;
        assert_eq!(reason("www.example", fields), expected, "{labels}");
    }
    // An asterisk at the left does not count (RFC 4034 section 3.1.3).
    fields.1 = 2;
    assert_eq!(reason("*.example", fields), (Some(Bogus::Labels), 0));
    fields.1 = 1;
    assert_eq!(reason("*.example", fields), (None, 1));
}

#[test]
fn an_rrset_without_a_signature_of_its_own_is_bogus() {
    let zone = keys(&[(7, 13, 3)]);
    let missing =
        |signature: Vec<u8>| outcome(&[a_record("www.example"), signature], ("example", &zone), NOW);
    for signature in
        [covering(28, "www.example", good(1)), rrsig("ww.example", good(1)), rrsig("a.www.example", good(1))]
    {
        assert_eq!(missing(signature), Outcome { verdict: Err(Bogus::SignatureMissing), jobs: 0 });
    }
    let bare = outcome(&[a_record("www.example")], ("example", &zone), NOW);
    assert_eq!(bare, Outcome { verdict: Err(Bogus::SignatureMissing), jobs: 0 });
}

// RFC 4035 section 5.3.1: DS records belong to the parent.
#[test]
fn a_ds_record_that_the_child_signed_is_refused() {
    let ds = line("www.example. DS 1 13 2 d4b7d520e7bb5f0f67674a0cceb1e3e0614b93c4f9e99b8383f6a1e4469da50a")
        .octets();
    for (apex, expected) in [("example", None), ("www.example", Some(Bogus::Signer))] {
        let mut fields = good(1);
        fields.5 = apex;
        let records = [ds.clone(), covering(43, "www.example", fields)];
        assert_eq!(outcome(&records, (apex, &keys(&[(7, 13, 3)])), NOW).verdict.err(), expected, "{apex}");
    }
}

// RFC 4034 section 3.1.5: serial number arithmetic, so the years 2106 and 1970 are neighbours.
#[test]
fn signatures_are_valid_in_their_first_and_last_second_also_across_the_end_of_the_count() {
    for start in [NOW, u32::MAX - 5, 0x7fff_fffa, 0x8000_0000] {
        for (second, expected) in [
            (start.wrapping_sub(1), Some(Bogus::NotYetValid)),
            (start, None),
            (start.wrapping_add(10), None),
            (start.wrapping_add(11), Some(Bogus::Expired)),
        ] {
            let mut fields = good(1);
            (fields.2, fields.3) = (start.wrapping_add(10), start);
            let records = [a_record("www.example"), rrsig("www.example", fields)];
            let outcome = outcome(&records, ("example", &keys(&[(7, 13, 3)])), second);
            assert_eq!(outcome.verdict.err(), expected, "{start} {second}");
        }
    }
    // A distance for which RFC 1982 has no order.
    let mut fields = good(1);
    (fields.2, fields.3) = (NOW.wrapping_add(1 << 31), NOW);
    assert_eq!(reason("www.example", fields), (Some(Bogus::ExpiresBeforeValid), 0));
}

// RFC 6840 section 5.4: any valid signature suffices.
#[test]
fn one_valid_signature_of_several_is_enough() {
    let expired = (13, 2, NOW - 1, NOW - 100, 7, "example", 9);
    let zone = keys(&[(7, 13, 3), (8, 15, 4)]);
    for (others, jobs) in [
        (vec![expired], 1),
        // A wrong one comes before it in the order of RDATA.
        (vec![good(0)], 2),
        (vec![good(2)], 1),
        (vec![(8, 2, NOW + 100, NOW - 100, 9, "example", 5), expired, good(0)], 2),
    ] {
        let mut records = vec![a_record("www.example"), rrsig("www.example", good(1))];
        records.extend(others.iter().map(|fields| rrsig("www.example", *fields)));
        let outcome = outcome(&records, ("example", &zone), NOW);
        assert!(outcome.verdict.is_ok());
        assert_eq!(outcome.jobs, jobs, "{others:?}");
    }
}

#[test]
fn the_order_of_the_records_changes_neither_the_verdict_nor_the_work() {
    let zone = keys(&[(7, 13, 3), (7, 13, 4), (8, 15, 4)]);
    let records = [
        rrsig("www.example", good(1)),
        rrsig("www.example", good(0)),
        a_record("www.example"),
        line("www.example. 300 A 192.0.2.2").octets(),
        rrsig("www.example", (15, 2, NOW + 100, NOW - 100, 8, "example", 0)),
    ];
    let mut found = Vec::new();
    for order in 0..120 {
        let (mut left, mut code) = (records.to_vec(), order);
        let mut shuffled = Vec::new();
        while !left.is_empty() {
            let place = code % left.len();
            code /= left.len();
            shuffled.push(left.remove(place));
        }
        found.push(outcome(&shuffled, ("example", &zone), NOW));
    }
    // The wrong signature is tried with both keys of the tag, and then the RRset is given up.
    assert_eq!(found[0], Outcome { verdict: Err(Bogus::Signature), jobs: 2 });
    assert!(found.iter().all(|outcome| *outcome == found[0]));
}

// KeyTrap (CVE-2023-50387), SigJam, LockCram: many signatures, many keys, all of one tag.
#[test]
fn many_signatures_and_keys_of_one_tag_cost_two_verifications() {
    let many: Vec<_> = (0..16).map(|octet| (7, 13, octet)).collect();
    let mut records = vec![a_record("www.example")];
    for number in 0..500u32 {
        let mut fields = good(2);
        fields.2 = NOW + 1 + number;
        records.push(rrsig("www.example", fields));
    }
    for (zone, records) in
        [(keys(&many), &records[..]), (keys(&many), &records[..2]), (keys(&many[..1]), &records[..])]
    {
        let outcome = outcome(records, ("example", &zone), NOW);
        assert_eq!(outcome, Outcome { verdict: Err(Bogus::Signature), jobs: 2 });
    }
}

#[test]
fn a_record_that_is_there_twice_is_verified_once() {
    let records = [a_record("www.example"), rrsig("www.example", good(2)), rrsig("www.example", good(2))];
    let outcome = outcome(&records, ("example", &keys(&[(7, 13, 3)])), NOW);
    assert_eq!(outcome, Outcome { verdict: Err(Bogus::Signature), jobs: 1 });
}

// RFC 6605 section 4, RFC 8080 section 4: signatures have one length.
#[test]
fn a_signature_of_another_length_is_wrong_without_arithmetic() {
    for octets in [0usize, 1, 63, 65, 96, 600] {
        let mut record = rrsig("www.example", good(1));
        let head = record.len() - 64;
        record.truncate(head);
        record.extend(vec![1; octets]);
        let rdata = (record.len() - 23) as u16;
        record[21..23].copy_from_slice(&rdata.to_be_bytes());
        let outcome = outcome(&[a_record("www.example"), record], ("example", &keys(&[(7, 13, 3)])), NOW);
        let expected = if octets == 0 { Bogus::SignatureMissing } else { Bogus::Signature };
        assert_eq!(outcome, Outcome { verdict: Err(expected), jobs: 0 }, "{octets}");
    }
}

// CVE-2026-50045: a budget that begins anew with each message.
#[test]
fn a_message_and_a_resolution_verify_no_more_than_their_budgets() {
    let message =
        message_of(("www.example.", 1), 0, [&[a_record("www.example"), rrsig("www.example", good(1))], &[]]);
    let zone = keys(&[(7, 13, 3)]);
    let mut resolution = Budget::new();
    let mut total = 0;
    for _ in 0..4 {
        let mut budget = MessageBudget::new();
        let mut of_message = 0;
        loop {
            let outcome = run(&message, ("example", &zone), NOW, (&mut budget, &mut resolution), |_| true);
            of_message += outcome.jobs;
            match outcome.verdict {
                Ok(_) => {}
                Err(reason) => {
                    assert_eq!(reason, Bogus::TooMuchWork);
                    break;
                }
            }
        }
        assert!(of_message <= usize::from(MESSAGE_VERIFICATIONS));
        total += of_message;
    }
    assert_eq!(total, usize::from(VERIFICATIONS));
}

// RFC 4035 section 5.3.3.
#[test]
fn the_ttl_is_the_least_of_rrset_signature_original_and_what_is_left_of_the_validity() {
    for (set, signature, original, left, expected) in [
        (300, 300, 300, 1000, 300),
        (200, 300, 300, 1000, 200),
        (300, 100, 300, 1000, 100),
        (300, 300, 50, 1000, 50),
        (300, 300, 300, 5, 5),
        (300, 300, 300, 0, 0),
        // RFC 2181 section 8: a TTL with the highest bit counts as 0.
        (300, 300, u32::MAX, 1000, 0),
        (300, u32::MAX, 300, 1000, 0),
    ] {
        let mut record = rrsig("www.example", (13, 2, NOW + left, NOW - 100, 7, "example", 1));
        record[17..21].copy_from_slice(&u32::to_be_bytes(signature));
        record[27..31].copy_from_slice(&original.to_be_bytes());
        let a = line(&format!("www.example. {set} A 192.0.2.1")).octets();
        let outcome = outcome(&[a, record], ("example", &keys(&[(7, 13, 3)])), NOW);
        let proven = Proven { labels: 2, is_expanded: false, ttl: expected, expiration: NOW + left };
        assert_eq!(outcome.verdict, Ok(proven));
    }
}

#[test]
fn an_rrset_with_more_labels_than_its_signature_was_expanded_from_a_wildcard() {
    for (owner, labels, is_expanded) in [
        ("a.b.example", 3, false),
        ("a.b.example", 2, true),
        ("*.b.example", 2, false),
        ("*.b.example", 1, true),
    ] {
        let mut fields = good(1);
        fields.1 = labels;
        let records = [a_record(owner), rrsig(owner, fields)];
        let proven = outcome(&records, ("example", &keys(&[(7, 13, 3)])), NOW).verdict.unwrap();
        assert_eq!((proven.labels, proven.is_expanded), (labels, is_expanded), "{owner}");
    }
}

// A signature that expires while it is verified, or while its verification is remembered.
#[test]
fn a_valid_signature_proves_nothing_after_its_expiration() {
    let message =
        message_of(("www.example.", 1), 0, [&[a_record("www.example"), rrsig("www.example", good(1))], &[]]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    let (set, keys) = (groups.get(0).unwrap(), keys(&[(7, 13, 3)]));
    let apex = LowerName::from_wire(b"\x07example\0").unwrap();
    let zone = SecureZone { apex, keys: ZoneKeys::from_octets(&keys) };
    let mut verification = Verification::default();
    assert_eq!(verification.valid(&set, Timestamp(NOW)), None);
    let budgets = (&mut MessageBudget::new(), &mut Budget::new());
    let step = verification.step(&set, &zone, Timestamp(NOW), budgets);
    assert!(matches!(step, Step::Verify(_)));
    assert_eq!(verification.valid(&set, Timestamp(NOW + 100)).map(|proven| proven.ttl), Some(0));
    assert_eq!(verification.valid(&set, Timestamp(NOW + 101)), None);
}

#[test]
fn the_examples_of_the_rfcs_are_verified_with_their_keys_and_no_others() {
    let zones = [(RFC4035, "example", 1_082_419_200u32)].into_iter();
    let singles = SINGLE.iter().zip([
        1_700_000_000,
        1_700_000_000,
        1_282_000_000,
        1_282_000_000,
        1_439_000_000,
        1_439_000_000,
    ]);
    let singles = singles
        .skip(1)
        .map(|(text, now)| (*text, if text.contains(".com.") { "example.com" } else { "example.net" }, now));
    let mut secure = 0;
    for (text, apex, now) in zones.chain(singles) {
        let lines = lines(text);
        let octets = |wanted: &dyn Fn(&Line) -> bool| {
            lines.iter().filter(|line| wanted(line)).map(Line::octets).collect::<Vec<_>>()
        };
        let message = message_of((apex, 48), 0, [&octets(&|line| line.rtype == 48), &[]]);
        let dnskeys = Groups::of(&Message::parse(&message).unwrap()).unwrap();
        let mut room = [0; 1000];
        let zone_keys = ZoneKeys::of(&dnskeys.get(0).unwrap(), Algorithms::ALL, |_| true, &mut room).unwrap();
        for first in lines.iter().filter(|line| !matches!(line.rtype, 46 | 48)) {
            let is_of_set = |line: &Line| {
                line.owner == first.owner
                    && (line.rtype == first.rtype
                        || line.rtype == 46 && line.rdata[..2] == first.rtype.to_be_bytes())
            };
            let message = message_of((apex, 1), 0, [&octets(&is_of_set), &[]]);
            let budgets = (&mut MessageBudget::new(), &mut Budget::new());
            let zone = (apex, zone_keys.octets());
            let outcome = run(&message, zone, now, budgets, |job| {
                let mut data = vec![0; 0xffff];
                let length = job.write_signed_data(&mut data).unwrap();
                verifies(job.algorithm, job.key, job.signature, &data[..length])
            });
            // The DS records beside the single examples are not signed.
            assert_eq!(outcome.verdict.is_ok(), first.rtype != 43 || apex == "example", "{first:?}");
            secure += usize::from(outcome.verdict.is_ok());
        }
    }
    assert_eq!(secure, 22);
}

/// The keys of a DNSKEY RRset that can be used, or the reason why there are none, in a buffer of this size.
fn usable(rdata: &[Vec<u8>], room: usize) -> Result<Vec<(u16, u8, usize)>, ZoneKeysError> {
    let record = |rdata: &Vec<u8>| kit::message::record(kit::message::QUESTION, 48, 300, rdata);
    let records: Vec<_> = rdata.iter().map(record).collect();
    let message = message_of(("example.", 48), 0, [&records, &[]]);
    let groups = Groups::of(&Message::parse(&message).unwrap()).unwrap();
    let mut out = vec![0; room];
    let keys = ZoneKeys::of(&groups.get(0).unwrap(), Algorithms::CURRENT, |_| true, &mut out)?;
    assert_eq!(ZoneKeys::from_octets(keys.octets()), keys);
    Ok(keys.iter().map(|key| (key.key_tag, key.algorithm.0, key.key.len())).collect())
}

fn dnskey(flags: u16, protocol: u8, algorithm: u8, octets: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[protocol, algorithm], octets].concat()
}

// RFC 5011 section 2.1 (Unbound, 21 Apr 2026; `domain` 0.12.3): revoked keys. RFC 4034 sections 2.1.1 and 2.1.2: flags and protocol.
#[test]
fn revoked_keys_and_keys_that_are_none_of_a_zone_are_not_used() {
    let refused = |flags, protocol, algorithm, octets: &[u8]| {
        usable(&[dnskey(flags, protocol, algorithm, octets)], 1000).err()
    };
    let unusable = |error| Some(ZoneKeysError::Unusable(Some(error)));
    assert_eq!(refused(256, 3, 13, &[1; 64]), None);
    assert_eq!(refused(384, 3, 13, &[1; 64]), unusable(KeyError::Revoked));
    assert_eq!(refused(385, 3, 13, &[1; 64]), unusable(KeyError::Revoked));
    assert_eq!(refused(0, 3, 13, &[1; 64]), unusable(KeyError::NoZoneKey));
    assert_eq!(refused(256, 4, 13, &[1; 64]), unusable(KeyError::Protocol));
    assert_eq!(refused(256, 3, 16, &[1; 57]), unusable(KeyError::Algorithm));
    assert_eq!(refused(256, 3, 13, &[1; 65]), unusable(KeyError::Shape));
    assert_eq!(refused(256, 3, 13, &[]), Some(ZoneKeysError::Unusable(None)));
}

#[test]
fn keys_are_kept_in_their_canonical_order_and_each_once() {
    let [a, b, c] = [(15u8, 1u8, 32usize), (13, 2, 64), (13, 1, 64)]
        .map(|(algorithm, octet, length)| dnskey(256, 3, algorithm, &vec![octet; length]));
    let first = usable(&[a.clone(), b.clone(), c.clone()], 1000).unwrap();
    assert_eq!(first.iter().map(|key| key.1).collect::<Vec<_>>(), [13, 13, 15]);
    let second =
        usable(&[c.clone(), dnskey(0, 3, 13, &[1; 64]), a.clone(), b.clone(), c.clone(), a.clone()], 1000);
    assert_eq!(second, Ok(first));
    let octets = 3 * 5 + 32 + 64 + 64;
    assert!(usable(&[a.clone(), b.clone(), c.clone()], octets).is_ok());
    assert_eq!(usable(&[a, b, c], octets - 1), Err(ZoneKeysError::Buffer));
}

#[test]
fn a_zone_with_more_keys_than_the_limits_has_none() {
    let many = |count: u8| (0..count).map(|octet| dnskey(256, 3, 15, &[octet; 32])).collect::<Vec<_>>();
    assert_eq!(usable(&many(16), 1000).map(|keys| keys.len()), Ok(16));
    assert_eq!(usable(&many(17), 1000), Err(ZoneKeysError::TooMany));
    let unusable = |count: u8| (0..count).map(|octet| dnskey(256, 3, 1, &[octet; 32])).collect::<Vec<_>>();
    assert_eq!(usable(&unusable(64), 1000), Err(ZoneKeysError::Unusable(Some(KeyError::Algorithm))));
    assert_eq!(usable(&unusable(65), 1000), Err(ZoneKeysError::TooMany));
}
