//! Canonical form and signed data: against the signatures of the RFCs, and against `domain`.

use crate::arithmetic::{AwsLc, verifies};
use crate::examples::{RFC4034_KEY, RFC4035, RFC5155, RFC8080_ED448, SINGLE};
use crate::text::{Line, line, lines, message_of};
use domain::base::rdata::ComposeRecordData;
use domain::base::{Message as DomainMessage, ParsedName};
use domain::rdata::AllRecordData;
use kit::Random;
use sixfold_dnssec::canonical::compare_rdata;
use sixfold_dnssec::keys::ds_matches;
use sixfold_dnssec::{Dnskey, Ds, Groups, LowerName, Rrsig, SignedDataError, signed_data};
use std::collections::BTreeSet;
use wire::{Message, Type};

const RRSIG: u16 = 46;
const DNSKEY: u16 = 48;
const DS: u16 = 43;

/// Signed data of the RRset that an RRSIG record covers, with this owner, in a message of its own.
fn signed(set: &[Line], rrsig: &Line) -> Result<Vec<u8>, SignedDataError> {
    let records: Vec<Vec<u8>> = set.iter().chain([rrsig]).map(Line::octets).collect();
    signed_in(&message_of(("example.", 1), 0, [&records, &[]]), 0xffff)
}

/// Signed data of the first RRset of a message for its first signature, in a buffer of this size.
fn signed_in(message: &[u8], room: usize) -> Result<Vec<u8>, SignedDataError> {
    let groups = Groups::of(&Message::parse(message).unwrap()).unwrap();
    let set = groups.get(0).unwrap();
    let signature = set.signatures().next().expect("a signature");
    let mut out = vec![0xaa; room];
    let length = signed_data(&set, &signature.rrsig, &mut out)?;
    out.truncate(length);
    Ok(out)
}

/// The keys of a text.
fn keys(text: &[Line]) -> Vec<&Line> {
    text.iter().filter(|line| line.rtype == DNSKEY).collect()
}

/// Verifies every RRSIG record of a text, and returns their number.
fn verify_all(text: &str) -> usize {
    let lines = lines(text);
    let rrsigs = lines.iter().filter(|line| line.rtype == RRSIG);
    let verified = rrsigs.map(|record| {
        let rrsig = Rrsig::parse(&record.rdata).unwrap();
        let is_covered = |line: &&Line| line.owner == record.owner && line.rtype == rrsig.covered.0;
        let set: Vec<Line> = lines.iter().filter(is_covered).cloned().collect();
        let keys = keys(&lines).into_iter().map(|key| Dnskey::parse(&key.rdata).unwrap());
        let key =
            keys.into_iter().find(|key| key.key_tag() == rrsig.key_tag).expect("the key of the signature");
        let data = signed(&set, record).unwrap();
        assert!(verifies(rrsig.algorithm, key.key, rrsig.signature, &data), "{record:?}");
        // One bit of the data.
        let mut other = data;
        *other.last_mut().unwrap() ^= 1;
        assert!(!verifies(rrsig.algorithm, key.key, rrsig.signature, &other), "{record:?}");
    });
    verified.count()
}

#[test]
fn the_signatures_of_the_examples_in_rfcs_are_valid() {
    assert_eq!(verify_all(RFC4035), 18);
    assert_eq!(verify_all(RFC5155), 18);
    assert_eq!(SINGLE.map(verify_all), [1; 6]);
}

// RFC 4035 appendix B.6.
#[test]
fn an_expanded_wildcard_is_signed_under_its_own_name() {
    let zone = lines(RFC4035);
    let find = |covered: Type| {
        let is_it = |line: &&Line| {
            line.owner.starts_with(b"\x01*")
                && if line.rtype == RRSIG {
                    line.rdata[..2] == covered.0.to_be_bytes()
                } else {
                    line.rtype == covered.0
                }
        };
        zone.iter().filter(is_it).cloned().collect::<Vec<_>>()
    };
    let found = find(Type::MX);
    let at = |owner: &str| {
        let [mut set, mut rrsig] = <[Line; 2]>::try_from(found.clone()).unwrap();
        (set.owner, rrsig.owner) = (kit::message::name(owner), kit::message::name(owner));
        signed(&[set], &rrsig)
    };
    let original = at("*.w.example").unwrap();
    for owner in ["a.z.w.example", "A.w.EXAMPLE", "x.*.w.example"] {
        assert_eq!(at(owner).as_ref(), Ok(&original), "{owner}");
    }
    assert_eq!(at("w.example").map(|data| data != original), Ok(true));
    assert_eq!(at("example"), Err(SignedDataError::Labels));
}

#[test]
fn the_order_of_records_their_doubles_their_ttls_and_letter_case_do_not_change_what_is_signed() {
    let rrsig = line("a.example. RRSIG MX 13 2 300 20300101000000 20200101000000 1 Example. AAAA");
    let text =
        "a.example. 300 MX 10 B.example.\na.example. 300 MX 10 a.b.example.\na.example. 300 MX 2 c.example.";
    let set = lines(text);
    let expected = {
        let mut data =
            b"\0\x0f\x0d\x02\0\0\x01\x2c\x70\xdb\xd8\x80\x5e\x0b\xe1\x00\0\x01\x07example\0".to_vec();
        for rdata in
            [&b"\0\x02\x01c\x07example\0"[..], b"\0\x0a\x01a\x01b\x07example\0", b"\0\x0a\x01b\x07example\0"]
        {
            data.extend(b"\x01a\x07example\0\0\x0f\0\x01\0\0\x01\x2c\0");
            data.push(rdata.len() as u8);
            data.extend(rdata);
        }
        data
    };
    assert_eq!(signed(&set, &rrsig), Ok(expected.clone()));
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut shuffled: Vec<Line> = order.map(|place| set[place].clone()).to_vec();
        let mut double = shuffled[0].clone();
        (double.ttl, double.owner) = (7, b"\x01A\x07EXAMPLE\0".to_vec());
        double.rdata.make_ascii_uppercase();
        shuffled.push(double);
        assert_eq!(signed(&shuffled, &rrsig), Ok(expected.clone()), "{order:?}");
    }
}

#[test]
fn a_buffer_that_is_one_octet_too_small_is_an_error() {
    let records = [
        line("a.example. MX 10 b.example.").octets(),
        line("a.example. RRSIG MX 13 2 300 20300101000000 20200101000000 1 example. AAAA").octets(),
    ];
    let message = message_of(("a.example.", 15), 0, [&records, &[]]);
    let length = signed_in(&message, 1000).unwrap().len();
    for room in 0..length {
        assert_eq!(signed_in(&message, room), Err(SignedDataError::Buffer), "{room}");
    }
    assert!(signed_in(&message, length).is_ok());
}

/// Types that `domain` knows, with random data in which `N` stands for a name in random letter case.
const KNOWN: [(u16, &str); 20] = [
    (2, "N"),
    (3, "N"),
    (4, "N"),
    (5, "N"),
    (6, "NN12345678901234567890"),
    (7, "N"),
    (8, "N"),
    (9, "N"),
    (12, "N"),
    (13, "\x03AbC\x02Xy"),
    (14, "NN"),
    (15, "\0\nN"),
    (16, "\x05HeLLo"),
    (33, "\0\x01\0\x02\0\x03N"),
    (35, "\0\x01\0\x02\x01S\x03E2U\x02!!N"),
    (39, "N"),
    (47, "N\0\x01\x40"),
    (1, "ABCD"),
    (65280, "N"),
    (64, "\0\x01N"),
];

/// Types of RFC 4034 section 6.2 that `domain` does not know; what is expected is the same with names in lower case.
const LOWERED: [(u16, &str); 7] = [
    (17, "NN"),
    (18, "\0\x01N"),
    (21, "\0\x01N"),
    (24, "123456789012345678Nsignature"),
    (26, "\0\x01NN"),
    (30, "N\x40\x01"),
    (36, "\0\x01N"),
];

/// A name of the zone `example`, in random letter case.
fn random_name(random: &mut Random) -> Vec<u8> {
    let mut name = Vec::new();
    for _ in 0..random.below(3) {
        let length = 1 + random.place(2);
        name.push(length as u8);
        name.extend((0..length).map(|_| random.pick(b"aAbB\xc8-\x01")));
    }
    name.extend(b"\x07");
    name.extend(b"example".map(|letter| if random.one_in(2) { letter.to_ascii_uppercase() } else { letter }));
    name.push(0);
    name
}

/// RDATA of a pattern, and the same with names in lower case. Names end with a pointer to the question's name, if that is allowed.
fn random_rdata(pattern: &str, compress: bool, random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let (mut sent, mut lowered) = (Vec::new(), Vec::new());
    for octet in pattern.bytes() {
        if octet != b'N' {
            sent.push(octet);
            lowered.push(octet);
            continue;
        }
        let name = random_name(random);
        lowered.extend(name.to_ascii_lowercase());
        if compress && random.one_in(2) {
            sent.extend(&name[..name.len() - 9]);
            sent.extend([0xc0, 12]);
        } else {
            sent.extend(name);
        }
    }
    (sent, lowered)
}

/// A message with an RRset of this type, and the RDATA with names in lower case.
fn random_message(rtype: u16, pattern: &str, random: &mut Random) -> (Vec<u8>, BTreeSet<Vec<u8>>) {
    let compress = !matches!(rtype, 47 | 64 | 65280);
    let count = if matches!(rtype, 5 | 6 | 39) { 1 } else { 1 + random.place(6) };
    let mut lowered = BTreeSet::new();
    let mut records = Vec::new();
    for _ in 0..count {
        let (sent, lower) = random_rdata(pattern, compress, random);
        records.push(kit::message::record(kit::message::QUESTION, rtype, 300, &sent));
        lowered.insert(lower);
    }
    let rrsig =
        [&rtype.to_be_bytes()[..], &[13, 1, 0, 0, 1, 0, 9, 9, 9, 9, 1, 1, 1, 1, 7, 7], b"\x07EXAMPLE\0sig"];
    records.push(kit::message::record(kit::message::QUESTION, RRSIG, 300, &rrsig.concat()));
    (message_of(("eXample.", 1), 0, [&records, &[]]), lowered)
}

/// Signed data with the canonical RDATA in these octets.
fn expected(rtype: u16, rdata: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let mut data = rtype.to_be_bytes().to_vec();
    data.extend([13, 1, 0, 0, 1, 0, 9, 9, 9, 9, 1, 1, 1, 1, 7, 7]);
    data.extend(b"\x07example\0");
    // A set of octet strings has their order, and each once.
    for rdata in rdata {
        data.extend(b"\x07example\0");
        data.extend(rtype.to_be_bytes());
        data.extend([0, 1, 0, 0, 1, 0]);
        data.extend((rdata.len() as u16).to_be_bytes());
        data.extend(rdata);
    }
    data
}

#[test]
fn canonical_form_and_order_are_those_of_domain() {
    let mut random = Random::new(4034);
    for round in 0..4000 {
        let (rtype, pattern) = KNOWN[round % KNOWN.len()];
        let (message, _) = random_message(rtype, pattern, &mut random);
        let parsed = DomainMessage::from_octets(&message[..]).unwrap();
        let mut rdata = BTreeSet::new();
        for record in parsed.answer().unwrap() {
            let record = record.unwrap();
            if record.rtype().to_int() != rtype {
                continue;
            }
            let record = record.to_any_record::<AllRecordData<&[u8], ParsedName<&[u8]>>>().unwrap();
            let mut octets = Vec::new();
            record.data().compose_canonical_rdata(&mut octets).unwrap();
            rdata.insert(octets);
        }
        let found = signed_in(&message, 0xffff).unwrap();
        assert_eq!(found, expected(rtype, &rdata), "{rtype} {message:02x?}");
    }
}

#[test]
fn names_in_all_other_types_of_the_list_in_rfc_4034_are_in_lower_case() {
    let mut random = Random::new(6840);
    for round in 0..1400 {
        let (rtype, pattern) = LOWERED[round % LOWERED.len()];
        let (message, lowered) = random_message(rtype, pattern, &mut random);
        assert_eq!(signed_in(&message, 0xffff).unwrap(), expected(rtype, &lowered), "{rtype} {message:02x?}");
    }
}

// RFC 2874 section 3.1: prefix length, the other bits of the address, and a name unless the prefix has no bits.
#[test]
fn the_name_of_an_a6_record_is_in_lower_case_and_its_address_is_not_changed() {
    let address = b"ABCDEFGHIJKLMNOP";
    for (bits, address, name, expected) in [
        (0u8, &address[..], &b""[..], &b""[..]),
        (64, &address[..8], b"\x01A\0", b"\x01a\0"),
        (57, &address[..9], b"\x01A\x02BC\0", b"\x01a\x02bc\0"),
        (128, b"", b"\x01A\0", b"\x01a\0"),
        // Octets that are no name, and a prefix that is too long, are left as they are.
        (64, &address[..8], b"\x02A\0", b"\x02A\0"),
        (129, b"", b"\x01A\0", b"\x01A\0"),
    ] {
        let rdata = [&[bits], address, name].concat();
        let records = [
            kit::message::record(kit::message::QUESTION, 38, 300, &rdata),
            kit::message::record(kit::message::QUESTION, RRSIG, 300, &expected_fixed(38)),
        ];
        let message = message_of(("eXample.", 1), 0, [&records, &[]]);
        let rdata = BTreeSet::from([[&[bits], address, expected].concat()]);
        assert_eq!(signed_in(&message, 1000).unwrap(), self::expected(38, &rdata), "{bits}");
    }
}

fn expected_fixed(rtype: u16) -> Vec<u8> {
    [&rtype.to_be_bytes()[..], &[13, 1, 0, 0, 1, 0, 9, 9, 9, 9, 1, 1, 1, 1, 7, 7], b"\x07EXAMPLE\0sig"]
        .concat()
}

#[test]
fn comparing_records_agrees_with_comparing_what_is_written() {
    let mut random = Random::new(63);
    for round in 0..2000 {
        let (rtype, pattern) = if round % 2 == 0 { LOWERED[round % 7] } else { KNOWN[round % 20] };
        let ((a, low_a), (b, low_b)) =
            (random_rdata(pattern, false, &mut random), random_rdata(pattern, false, &mut random));
        let records = [a.clone(), b.clone()]
            .map(|rdata| kit::message::record(kit::message::QUESTION, rtype, 1, &rdata));
        let message = message_of(("example.", 1), 0, [&records, &[]]);
        let message = Message::parse(&message).unwrap();
        let [x, y] = [0, 1].map(|n| message.records(wire::Section::Answer).nth(n).unwrap());
        let is_lowered = !matches!(rtype, 1 | 13 | 16 | 47 | 64 | 65280);
        let expected = if is_lowered { low_a.cmp(&low_b) } else { a.cmp(&b) };
        assert_eq!(compare_rdata(&x, &y), expected, "{rtype}");
    }
}

#[test]
fn key_tags_are_those_of_the_examples_in_rfcs() {
    let tags = |text: &str| -> Vec<u16> {
        let lines = lines(text);
        keys(&lines).iter().map(|key| Dnskey::parse(&key.rdata).unwrap().key_tag()).collect()
    };
    assert_eq!(tags(RFC4034_KEY), [60485]);
    assert_eq!(tags(RFC4035), [38519, 9465]);
    assert_eq!(tags(RFC5155), [40430, 12708]);
    assert_eq!(SINGLE.map(tags).concat(), [9033, 3740, 55648, 10771, 3613, 35217]);
    assert_eq!(tags(RFC8080_ED448), [9713]);
}

#[test]
fn ds_records_match_the_keys_of_the_examples_and_nothing_else() {
    let mut matches = 0;
    for text in SINGLE.into_iter().chain([RFC4034_KEY, RFC8080_ED448]) {
        let lines = lines(text);
        let keys = keys(&lines);
        let key = Dnskey::parse(&keys[0].rdata).unwrap();
        let zone = LowerName::from_wire(&keys[0].owner.to_ascii_uppercase()).unwrap();
        for record in lines.iter().filter(|line| line.rtype == DS) {
            let ds = Ds::parse(&record.rdata).unwrap();
            assert!(ds_matches(&ds, &zone, &key, &AwsLc), "{record:?}");
            let mut digest = ds.digest.to_vec();
            digest[0] ^= 1;
            assert!(!ds_matches(&Ds { digest: &digest, ..ds }, &zone, &key, &AwsLc));
            assert!(!ds_matches(&Ds { key_tag: ds.key_tag ^ 1, ..ds }, &zone, &key, &AwsLc));
            let other = sixfold_dnssec::Algorithm(ds.algorithm.0 ^ 1);
            assert!(!ds_matches(&Ds { algorithm: other, ..ds }, &zone, &key, &AwsLc));
            // CVE-2026-123593 (hickory-dns): the owner is part of what is digested.
            assert!(!ds_matches(&ds, &LowerName::ROOT, &key, &AwsLc));
            matches += 1;
        }
    }
    assert_eq!(matches, 7);
}

// A key that cannot be used costs no digest, whatever a DS record says of it.
#[test]
fn a_key_of_any_length_matches_without_a_panic() {
    for length in [1, 500, 522, 523, 60_000] {
        let rdata = [&[1, 0, 3, 8], &vec![7; length][..]].concat();
        let key = Dnskey::parse(&rdata).unwrap();
        let digest = [0; 32];
        let ds = Ds {
            key_tag: key.key_tag(),
            algorithm: key.algorithm,
            digest_type: sixfold_dnssec::DigestType::SHA256,
            digest: &digest,
        };
        assert!(!ds_matches(&ds, &LowerName::ROOT, &key, &AwsLc), "{length}");
    }
}
