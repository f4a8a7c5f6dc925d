//! Examples of RFC 4034, 4035, 4509, 5155, 5702, 6605 and 8080.

use crate::examples::{RFC4034_KEY, RFC4035, RFC5155, RFC8080_ED448, SINGLE};
use dnssec::{Algorithm, Digests, Dnskey, Ds, Groups};
use domain::base::iana::Class;
use domain::base::rdata::ComposeRecordData;
use domain::base::{Name, ToName};
use domain::zonefile::inplace::{Entry, Zonefile};
use sixfold_signatures::{AwsLc, Signed};
use wire::{Message, Section, Type};

const DNSKEY: u16 = 48;
const RRSIG: u16 = 46;
const DS: u16 = 43;

/// Record in wire form.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    owner: Vec<u8>,
    rtype: u16,
    ttl: u32,
    rdata: Vec<u8>,
}

impl Line {
    fn octets(&self) -> Vec<u8> {
        let mut octets = self.owner.clone();
        octets.extend(self.rtype.to_be_bytes());
        octets.extend([0, 1]);
        octets.extend(self.ttl.to_be_bytes());
        octets.extend((self.rdata.len() as u16).to_be_bytes());
        octets.extend(&self.rdata);
        octets
    }
}

/// Records of a text in master file format, as `domain` reads it.
fn lines(text: &str) -> Vec<Line> {
    let mut file = Zonefile::new();
    file.extend_from_slice(b"$TTL 3600\n");
    file.extend_from_slice(text.as_bytes());
    file.extend_from_slice(b"\n");
    file.set_origin(Name::root());
    file.set_default_class(Class::IN);
    let records = file.filter_map(|entry| match entry.expect("a record") {
        Entry::Record(record) => Some(record),
        Entry::Include { .. } => None,
    });
    let line = |record: domain::zonefile::inplace::ScannedRecord| {
        let mut rdata = Vec::new();
        record.data().compose_rdata(&mut rdata).expect("RDATA");
        let owner = record.owner().to_vec().as_slice().to_vec();
        Line { owner, rtype: record.rtype().to_int(), ttl: record.ttl().as_secs(), rdata }
    };
    records.map(line).collect()
}

/// Message with records in its answer section.
fn message_of(records: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = vec![0, 1, 0x81, 0x80, 0, 1, 0, records.len() as u8, 0, 0, 0, 0];
    octets.extend([0, 0, 1, 0, 1]);
    octets.extend(records.concat());
    octets
}

/// Signature with what it is verified with.
#[derive(Clone, Debug)]
struct Example {
    owner: String,
    algorithm: Algorithm,
    key: Vec<u8>,
    signature: Vec<u8>,
    data: Vec<u8>,
}

impl Example {
    fn signed(&self) -> Signed<'_> {
        let Example { algorithm, key, signature, data, .. } = self;
        Signed { algorithm: *algorithm, key, signature, data }
    }
}

/// Signatures of a text whose keys are in it.
fn examples(text: &str) -> Vec<Example> {
    let lines = lines(text);
    let keys: Vec<Dnskey<'_>> = lines
        .iter()
        .filter(|line| line.rtype == DNSKEY)
        .map(|line| Dnskey::parse(&line.rdata).expect("a key"))
        .collect();
    let mut found = Vec::new();
    for first in &lines {
        let is_of_set = |line: &&Line| {
            line.owner == first.owner
                && (line.rtype == first.rtype
                    || line.rtype == RRSIG && line.rdata[..2] == first.rtype.to_be_bytes())
        };
        if first.rtype == RRSIG || lines.iter().find(is_of_set) != Some(first) {
            continue;
        }
        let records: Vec<Vec<u8>> = lines.iter().filter(is_of_set).map(Line::octets).collect();
        let message = message_of(&records);
        let groups = Groups::of(&Message::parse(&message).expect("a message")).expect("RRsets");
        let set = groups.find(Section::Answer, &first.owner, Type(first.rtype)).expect("the RRset");
        for signature in set.signatures() {
            let rrsig = signature.rrsig;
            let is_signer =
                |key: &&Dnskey<'_>| (key.algorithm, key.key_tag()) == (rrsig.algorithm, rrsig.key_tag);
            let Some(key) = keys.iter().find(is_signer) else { continue };
            let mut data = vec![0; 0xffff];
            let length = dnssec::signed_data(&set, &rrsig, &mut data).expect("64 KiB are enough");
            data.truncate(length);
            let (key, signature) = (key.key.to_vec(), rrsig.signature.to_vec());
            let owner = format!("{} {}", first.owner.escape_ascii(), first.rtype);
            found.push(Example { owner, algorithm: rrsig.algorithm, key, signature, data });
        }
    }
    found
}

/// All examples whose keys are long enough: those of RFC 5155 and RFC 5702 section 6.1 have moduli of 512 bits.
fn all() -> Vec<Example> {
    let texts = [RFC4035].into_iter().chain(SINGLE.into_iter().skip(1));
    texts.flat_map(examples).collect()
}

#[test]
fn the_signatures_in_the_rfcs_are_valid() {
    let all = all();
    let of = |number: u8| all.iter().filter(|example| example.algorithm == Algorithm(number)).count();
    assert!(of(5) >= 10, "{} of RSA with SHA-1", of(5));
    assert_eq!([10, 13, 14, 15].map(of), [1, 1, 1, 2]);
    for example in &all {
        assert!(example.signed().is_valid(), "{}, {:?}", example.owner, example.algorithm);
        // RFC 5155 section 2: another number for the same algorithm.
        if example.algorithm == Algorithm::RSASHA1 {
            assert!(Signed { algorithm: Algorithm::RSASHA1_NSEC3, ..example.signed() }.is_valid());
        }
    }
}

#[test]
fn a_signature_of_other_data_or_by_another_key_is_not_valid() {
    for example in all() {
        let changed = |octets: &[u8], at: usize| {
            let mut octets = octets.to_vec();
            octets[at] ^= 1;
            octets
        };
        let Example { data, signature, key, .. } = &example;
        for at in [0, data.len() / 2, data.len() - 1] {
            assert!(!Signed { data: &changed(data, at), ..example.signed() }.is_valid());
        }
        for at in [0, signature.len() / 2, signature.len() - 1] {
            assert!(!Signed { signature: &changed(signature, at), ..example.signed() }.is_valid());
        }
        for at in [key.len() / 2, key.len() - 1] {
            assert!(!Signed { key: &changed(key, at), ..example.signed() }.is_valid());
        }
    }
}

// RFC 6605 section 4, RFC 8080 sections 3 and 4, RFC 3110 section 3: the lengths are fixed, or follow from the modulus.
#[test]
fn a_key_or_signature_of_another_length_is_not_valid() {
    for example in all() {
        let longer = |octets: &[u8]| [octets, &[0]].concat();
        let Example { signature, key, .. } = &example;
        let signatures = [&[], &signature[1..], &signature[..signature.len() - 1], &longer(signature)[..]];
        for signature in signatures {
            assert!(!Signed { signature, ..example.signed() }.is_valid());
        }
        for key in [&[], &key[..1], &key[..key.len() - 1], &longer(key)[..]] {
            assert!(!Signed { key, ..example.signed() }.is_valid(), "{:?}", example.algorithm);
        }
    }
}

// RFC 9904: of RSAMD5, DSA, GOST and numbers without an algorithm none is verified.
#[test]
fn other_algorithms_and_short_moduli_make_no_signature_valid() {
    for example in all() {
        for number in (0..=255u8).filter(|number| !matches!(number, 5 | 7 | 8 | 10 | 13 | 14 | 15)) {
            assert!(!Signed { algorithm: Algorithm(number), ..example.signed() }.is_valid());
        }
    }
    let short = [examples(SINGLE[0]), examples(RFC5155)].concat();
    assert!(short.len() > 10, "{}", short.len());
    assert!(short.iter().all(|example| !example.signed().is_valid()));
    assert!(examples(RFC8080_ED448).is_empty());
}

#[test]
fn the_ds_records_in_the_rfcs_are_digests_of_their_keys() {
    let mut compared = 0;
    for text in SINGLE.into_iter().chain([RFC4034_KEY, RFC8080_ED448]) {
        let lines = lines(text);
        let key = lines.iter().find(|line| line.rtype == DNSKEY).expect("a key");
        for line in lines.iter().filter(|line| line.rtype == DS) {
            let ds = Ds::parse(&line.rdata).expect("a DS record");
            let input = [&key.owner[..], &key.rdata].concat();
            let digest = match ds.digest_type.0 {
                1 => AwsLc.sha1(&input).to_vec(),
                2 => AwsLc.sha256(&input).to_vec(),
                4 => AwsLc.sha384(&input).to_vec(),
                other => panic!("digest {other}"),
            };
            assert_eq!(digest, ds.digest, "{text}");
            compared += 1;
        }
    }
    assert!(compared >= 6, "{compared}");
}
