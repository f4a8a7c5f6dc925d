//! Prefixes out of replies about `ipv4only.arpa` (RFC 7050 section 3): the prefixes of any reply are in its records; those that a reply was made
//! of are found.

use crate::input::InputReader;
use gateways::Told;
use gateways::limits::PREFIXES;
use gateways::told::{IPV4ONLY_ARPA, is_usable};
use kit::message::{QUESTION, query, record, reply};
use pref64::Pref64;
use std::net::Ipv6Addr;
use wire::{Message, Rcode, Section, Type};

/// The addresses of the name (RFC 7050 section 8.2).
const ADDRESSES: [[u8; 4]; 2] = [[192, 0, 0, 170], [192, 0, 0, 171]];

/// Tests one input: a reply, or the prefixes and other records of one.
pub fn run(input: &[u8]) {
    match input {
        [0, message @ ..] => drop(check(message)),
        [_, decisions @ ..] => find(&mut InputReader::new(decisions)),
        [] => {}
    }
}

/// Checks what is read from any octets.
fn check(octets: &[u8]) -> Vec<Pref64> {
    let told = Told::of(octets);
    let Ok(message) = Message::parse(octets) else {
        assert_eq!(told, Told::Failure);
        return Vec::new();
    };
    let records: Vec<([u8; 16], u32)> = message
        .records(Section::Answer)
        .filter(|record| record.rtype == Type::AAAA)
        .filter_map(|record| Some((record.address6()?, record.ttl)))
        .collect();
    let is_answer = matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
    match told {
        Told::Failure => assert!(!is_answer),
        Told::Nothing(_) => assert!(is_answer),
        Told::Prefixes(prefixes, ttl) => {
            assert!(message.rcode() == Rcode::NOERROR && (1..=PREFIXES).contains(&prefixes.len()));
            assert!(records.iter().any(|(_, of_record)| *of_record == ttl), "{ttl} s");
            for (place, prefix) in prefixes.iter().enumerate() {
                let is_embedded = |(address, _): &([u8; 16], u32)| {
                    prefix.extract(*address).is_some_and(|v4| ADDRESSES.contains(&v4))
                };
                assert!(is_usable(prefix) && records.iter().any(is_embedded), "{prefix}");
                assert!(!prefixes[..place].contains(prefix), "{prefix} twice");
            }
            return prefixes;
        }
    }
    Vec::new()
}

/// Makes a reply of up to three prefixes, with other records among theirs, and finds them.
fn find(input: &mut InputReader<'_>) {
    let (mut made, mut records) = (Vec::new(), Vec::new());
    for _ in 0..input.below(4) {
        let length = *input.choose(&[96u8, 64, 56, 48, 40, 32]);
        let mut address = [0; 16];
        let octets = input.take(usize::from(length / 8));
        address[..octets.len()].copy_from_slice(octets);
        let Ok(prefix) = Pref64::new(Ipv6Addr::from(address), length) else { continue };
        if is_usable(&prefix) {
            made.push(prefix);
            records.extend(ADDRESSES.map(|v4| record(QUESTION, 28, input.next_u32(), &prefix.embed(v4))));
        }
    }
    for _ in 0..input.below(4) {
        let place = input.below(records.len() + 1);
        let owner = *input.choose(&[QUESTION, b"\x01x\0"]);
        records.insert(place, record(owner, *input.choose(&[28, 1, 5]), 60, input.length_prefixed()));
    }
    if input.octet() % 2 == 1 {
        records.reverse();
    }
    let mut asked = query(1, "ipv4only.arpa", 28);
    asked[12..12 + IPV4ONLY_ARPA.len()].copy_from_slice(IPV4ONLY_ARPA);
    let message = reply(&asked, 0x0180, &records);
    let found = check(&message);
    if Message::parse(&message).is_ok() && found.len() < PREFIXES {
        assert!(made.iter().all(|prefix| found.contains(prefix)), "{made:?}: {found:?}");
    }
}

/// A reply, a negative one, and prefixes of several lengths.
pub fn seeds() -> Vec<Vec<u8>> {
    let asked = query(1, "ipv4only.arpa", 28);
    let well_known = ADDRESSES.map(|v4| record(QUESTION, 28, 60, &pref64::WELL_KNOWN.embed(v4)));
    let mut negative = reply(&asked, 0x0180, &[]);
    negative[9] = 1;
    negative.extend(record(QUESTION, 6, 900, &[[0, 0].as_slice(), &[7; 20]].concat()));
    // In the first of two prefixes stands one of the addresses.
    let within = b"\x01\x02\x00\x20\x01\x0d\xb8\xc0\0\0\xaa\0\0\0\0\0\0\0\x3c\0\0\0\x3c\x01\x20\x01\x0d\xb8\0\x0a\0\x01\0\0\0\x3c";
    let other = b"\x01\x01\x05\x20\x01\x0d\xb8\0\0\0\x3c\0\0\0\x3c\x01\x01\0\0\x10abcdefghijklmnop\x01";
    vec![
        [&[0], &reply(&asked, 0x0180, &well_known)[..]].concat(),
        [&[0], &negative[..]].concat(),
        within.to_vec(),
        other.to_vec(),
    ]
}
