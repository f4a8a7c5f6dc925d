//! What a reply to the question for the AAAA records of `ipv4only.arpa` tells of the prefixes of a DNS64 (RFC 7050 section 3).
//!
//! The name has two IPv4 addresses, and no AAAA record of its own. So an AAAA record is synthesized, and its prefix is what stands before
//! one of the two addresses.

use crate::limits::{PREFIXES, RECORDS};
use pref64::{Pref64, has_zero_octet_u};
use std::net::Ipv6Addr;
use wire::{Class, Message, Rcode, Section, Type};

/// The name with the well-known IPv4 addresses (RFC 7050 section 8.1), in wire form.
pub const IPV4ONLY_ARPA: &[u8] = b"\x08ipv4only\x04arpa\x00";

/// The addresses of the name (RFC 7050 section 8.2).
const WELL_KNOWN_ADDRESSES: [[u8; 4]; 2] = [[192, 0, 0, 170], [192, 0, 0, 171]];

/// Lengths of prefixes (RFC 6052 section 2.2).
const LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];

/// TTL of a negative reply without an SOA record, in seconds.
const NEGATIVE_TTL: u32 = 60;

/// What the upstreams tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// These prefixes, for this time in seconds.
    Prefixes(Vec<Pref64>, u32),
    /// There are none. They say so for this time in seconds.
    Nothing(u32),
    /// A failure, or nothing at all.
    Failure,
}

impl Told {
    /// Reads a reply.
    pub fn of(reply: &[u8]) -> Told {
        let Ok(message) = Message::parse(reply) else { return Told::Failure };
        match message.rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Told::Nothing(negative_ttl(&message)),
            _ => return Told::Failure,
        }
        let name = message.question_name();
        let synthesized = message.records(Section::Answer).filter(|record| {
            record.rtype == Type::AAAA && record.class == Class::IN && record.owner.eq_ignore_case(&name)
        });
        let (mut candidates, mut ttl) = (Vec::new(), u32::MAX);
        for record in synthesized.take(RECORDS) {
            let Some(address) = record.address6() else { continue };
            ttl = ttl.min(record.ttl);
            note_candidates(address, &mut candidates);
        }
        let prefixes = decide(&candidates);
        match prefixes.is_empty() {
            true => Told::Nothing(negative_ttl(&message)),
            false => Told::Prefixes(prefixes, ttl),
        }
    }
}

/// A prefix that an address may be under.
struct Candidate {
    prefix: Pref64,
    /// Well-known addresses that were found under it, a bit for each.
    found: u8,
    /// True if one of the addresses may be under no other prefix.
    is_only: bool,
}

/// Notes all prefixes under which an address has one of the well-known addresses.
fn note_candidates(address: [u8; 16], candidates: &mut Vec<Candidate>) {
    if !has_zero_octet_u(address) {
        return;
    }
    let under = |length: u8| {
        let bits = u128::from_be_bytes(address) & (u128::MAX << (128 - u32::from(length)));
        let prefix = Pref64::new(Ipv6Addr::from(bits), length).ok()?;
        let v4 = prefix.extract(address)?;
        let number = WELL_KNOWN_ADDRESSES.iter().position(|known| *known == v4)?;
        Some((prefix, 1 << number))
    };
    let found: Vec<(Pref64, u8)> = LENGTHS.into_iter().filter_map(under).collect();
    for &(prefix, bit) in found.iter().filter(|(prefix, _)| is_usable(prefix)) {
        let is_only = found.len() == 1;
        match candidates.iter_mut().find(|one| one.prefix == prefix) {
            Some(one) => (one.found, one.is_only) = (one.found | bit, one.is_only || is_only),
            None => candidates.push(Candidate { prefix, found: bit, is_only }),
        }
    }
}

/// The prefixes that an answer tells. An address may have the well-known ones at two places, for example if the prefix has one in it; then the
/// other address decides (RFC 7050 section 3). So a prefix counts that has both, or one that stands at no other place: the record with the
/// other one may be missing.
fn decide(candidates: &[Candidate]) -> Vec<Pref64> {
    let is_certain = |one: &&Candidate| one.found == 0b11 || one.is_only;
    candidates.iter().filter(is_certain).map(|one| one.prefix).take(PREFIXES).collect()
}

/// True if hosts can be reached under a prefix, as far as that shows: none of loopback, IPv4-mapped, multicast or link-local addresses.
pub fn is_usable(prefix: &Pref64) -> bool {
    let address = prefix.address();
    // ::/8 has all special addresses of RFC 4291, and none that is routed; 64:ff9b::/96 and 64:ff9b:1::/48 are in 0064::/16.
    let is_special = address.segments()[0] >> 8 == 0 && address.segments()[0] != 0x64;
    !(is_special || address.is_multicast() || address.is_unicast_link_local())
}

/// TTL of a negative reply, in seconds (RFC 2308 section 5).
fn negative_ttl(message: &Message<'_>) -> u32 {
    let soa = message.records(Section::Authority).find(|record| record.rtype == Type::SOA);
    let ttl = soa.and_then(|soa| soa.soa_minimum().map(|minimum| minimum.min(soa.ttl)));
    ttl.unwrap_or(NEGATIVE_TTL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::message::{QUESTION, query, record, reply};

    fn answer(addresses: &[(&str, u32)]) -> Vec<u8> {
        let records = addresses
            .iter()
            .map(|(address, ttl)| record(QUESTION, 28, *ttl, &address.parse::<Ipv6Addr>().unwrap().octets()));
        reply(&query(1, "ipv4only.arpa", 28), 0x0180, &records.collect::<Vec<_>>())
    }

    fn told(addresses: &[(&str, u32)]) -> Vec<String> {
        match Told::of(&answer(addresses)) {
            Told::Prefixes(prefixes, _) => prefixes.iter().map(ToString::to_string).collect(),
            Told::Nothing(_) => Vec::new(),
            Told::Failure => vec!["failure".into()],
        }
    }

    #[test]
    fn a_prefix_of_each_length_is_found() {
        // The prefixes and places of RFC 6052 section 2.4, with 192.0.0.170 and 192.0.0.171 instead of 192.0.2.33.
        for (prefix, first, second) in [
            ("2001:db8::/32", "2001:db8:c000:aa::", "2001:db8:c000:ab::"),
            ("2001:db8:100::/40", "2001:db8:1c0:0:aa::", "2001:db8:1c0:0:ab::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:0:aa00::", "2001:db8:122:c000:0:ab00::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:aa::", "2001:db8:122:3c0:0:ab::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:0:aa00:0", "2001:db8:122:344:c0:0:ab00:0"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.0.170", "2001:db8:122:344::192.0.0.171"),
            ("64:ff9b::/96", "64:ff9b::c000:aa", "64:ff9b::c000:ab"),
            ("64:ff9b:1:abcd::/96", "64:ff9b:1:abcd::c000:aa", "64:ff9b:1:abcd::c000:ab"),
        ] {
            assert_eq!(told(&[(first, 60), (second, 60)]), [prefix]);
            assert_eq!(told(&[(second, 60)]), [prefix], "one of the two is enough");
        }
    }

    #[test]
    fn several_prefixes_are_found_in_the_order_of_the_answer() {
        let addresses = [
            ("2001:db8:b::c000:ab", 600),
            ("2001:db8:a::c000:aa", 300),
            ("2001:db8:a::c000:ab", 300),
            ("2001:db8:b::c000:aa", 600),
        ];
        assert_eq!(told(&addresses), ["2001:db8:b::/96", "2001:db8:a::/96"]);
        assert!(matches!(Told::of(&answer(&addresses)), Told::Prefixes(_, 300)));
        let many: Vec<String> =
            (0..PREFIXES + 3).map(|number| format!("2001:db8:{number:x}::c000:aa")).collect();
        let many: Vec<(&str, u32)> = many.iter().map(|address| (&address[..], 60)).collect();
        assert_eq!(told(&many).len(), PREFIXES);
    }

    #[test]
    fn a_suffix_does_not_hide_a_prefix() {
        assert_eq!(told(&[("2001:db8:122:344:c0:0:aa00:1", 60)]), ["2001:db8:122:344::/64"]);
    }

    #[test]
    fn a_well_known_address_within_the_prefix_does_not_mislead() {
        // RFC 7050 section 3: with 192.0.0.170 it stands there twice, and the other address decides.
        let addresses = [("2001:db8:c000:aa::c000:aa", 60), ("2001:db8:c000:aa::c000:ab", 60)];
        assert_eq!(told(&addresses), ["2001:db8:c000:aa::/96"]);
        assert!(told(&addresses[..1]).is_empty(), "one alone says nothing");
    }

    #[test]
    fn a_prefix_of_which_one_record_is_missing_stands_beside_a_complete_one() {
        let addresses =
            [("2001:db8:a::c000:aa", 60), ("2001:db8:a::c000:ab", 60), ("2001:db8:b::c000:aa", 60)];
        assert_eq!(told(&addresses), ["2001:db8:a::/96", "2001:db8:b::/96"]);
        // The same beside a prefix that has a well-known address in it: 2001:db8::/32 is none.
        let addresses = [
            ("2001:db8:c000:aa::c000:aa", 60),
            ("2001:db8:b::c000:aa", 60),
            ("2001:db8:c000:aa::c000:ab", 60),
        ];
        assert_eq!(told(&addresses), ["2001:db8:c000:aa::/96", "2001:db8:b::/96"]);
    }

    #[test]
    fn an_address_without_a_well_known_one_tells_nothing() {
        for address in [
            "2001:db8::1",
            "2001:db8::c000:ac",
            "2001:db8::c000:2aa",
            // Bits 64 to 71 are not zero.
            "2001:db8:0:0:100::c000:aa",
            "::ffff:192.0.0.170",
            "::c000:aa",
            "fe80::c000:aa",
            "ff02::c000:aa",
        ] {
            assert_eq!(told(&[(address, 60)]), [""; 0], "{address}");
        }
        assert_eq!(told(&[("2001:db8::1", 60), ("2001:db8::c000:aa", 60)]), ["2001:db8::/96"]);
    }

    #[test]
    fn a_negative_answer_is_no_failure() {
        let asked = query(1, "ipv4only.arpa", 28);
        assert_eq!(Told::of(&reply(&asked, 0x0180, &[])), Told::Nothing(NEGATIVE_TTL));
        assert_eq!(Told::of(&reply(&asked, 0x0183, &[])), Told::Nothing(NEGATIVE_TTL));
        for rcode in [1, 2, 4, 5] {
            assert_eq!(Told::of(&reply(&asked, 0x0180 | rcode, &[])), Told::Failure);
        }
        // An SOA record of 900 s with a MINIMUM of 30 s (RFC 2308 section 5).
        let mut negative = reply(&asked, 0x0180, &[]);
        negative[9] = 1;
        let numbers = [1u32, 2, 3, 4, 30].map(u32::to_be_bytes).concat();
        negative.extend(record(QUESTION, 6, 900, &[&[0, 0][..], &numbers].concat()));
        assert_eq!(Told::of(&negative), Told::Nothing(30));
    }

    #[test]
    fn other_records_and_malformed_replies_tell_nothing() {
        let address = "2001:db8::c000:aa".parse::<Ipv6Addr>().unwrap().octets();
        let asked = query(1, "ipv4only.arpa", 28);
        let of = |records: &[Vec<u8>]| Told::of(&reply(&asked, 0x0180, records));
        assert_eq!(of(&[record(b"\x01x\x04test\0", 28, 60, &address)]), Told::Nothing(NEGATIVE_TTL));
        assert_eq!(of(&[record(QUESTION, 1, 60, &[192, 0, 0, 170])]), Told::Nothing(NEGATIVE_TTL));
        let good = answer(&[("2001:db8::c000:aa", 60)]);
        assert!(matches!(Told::of(&good), Told::Prefixes(..)));
        for length in 0..good.len() {
            assert_eq!(Told::of(&good[..length]), Told::Failure, "{length} octets");
        }
    }
}
