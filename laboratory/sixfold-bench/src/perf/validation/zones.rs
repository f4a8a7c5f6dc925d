//! Zones of the experiment, and their replies with and without signatures:
//!
//! ```text
//!     test                   signed, P-256; its key is the trust anchor
//!       dns64perf.test       signed with the algorithm of the experiment, or a delegation without DS record
//!         AAA-BBB-CCC-DDD    A record; signed names are limited, as each has two signatures that are made before
//!       z0.test, z1.test ... signed, P-256
//!         a, b               A record
//!         bogus              A record whose signature is wrong
//! ```
//!
//! All names that exist have one RRset of interest, of one record. What a name lacks is denied by its own NSEC record, whose next name is
//! the shortest one below it, as RFC 9824 section 3.2 has it. Every other question is refused.

use crate::perf::validation::keys::{Algorithm, Key};
use crate::perf::validation::leaves::{LEAVES, Leaves, Sample, Writer, leaf_number};
use crate::perf::validation::records::child;
use crate::perf::validation::replies::{BOGUS, Replies};
use authority::{Body, Kind, Source};
use servers::TrustAnchor;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use wire::{Message, Rcode};

/// Name of the parent zone in wire form, and as text.
const PARENT: &[u8] = b"\x04test\0";
const PARENT_TEXT: &str = "test.";

/// Address of the first name of zone `number`.
pub fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(1, 1, 0, 0)) + number as u32)
}

/// Name below zone `number` in wire form.
pub fn name_in(number: usize, label: &str) -> Vec<u8> {
    child(label, &child(&format!("z{number}"), PARENT))
}

/// All zones.
pub struct Zones {
    replies: Replies,
    leaves: Leaves,
    parent_key: Key,
    leaf_key: Option<Key>,
}

impl fmt::Debug for Zones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zones").finish_non_exhaustive()
    }
}

impl Zones {
    /// Makes the zones. `algorithm`: that of the zone with the many names; `None`: it is not signed. `count`: the number of these names
    /// that are signed. `zones`: the number of small zones.
    ///
    /// # Errors
    ///
    /// AWS-LC makes no key, or no signature.
    pub fn new(algorithm: Option<Algorithm>, count: usize, zones: usize) -> io::Result<Zones> {
        let parent_key = Key::generate(Algorithm::EcdsaP256)?;
        let leaf_key = algorithm.map(Key::generate).transpose()?;
        let mut replies = Replies::default();
        replies.add_apex(PARENT, Some(&parent_key))?;
        replies.add_apex(LEAVES, leaf_key.as_ref())?;
        replies.add_delegation((PARENT, &parent_key), LEAVES, leaf_key.as_ref())?;
        for number in 0..zones {
            let apex = child(&format!("z{number}"), PARENT);
            replies.add_apex(&apex, Some(&parent_key))?;
            replies.add_delegation((PARENT, &parent_key), &apex, Some(&parent_key))?;
            for label in ["a", "b", BOGUS] {
                replies.add_name(&apex, &parent_key, label, address(number))?;
            }
        }
        let leaves = Leaves::new(leaf_key.as_ref(), count)?;
        Ok(Zones { replies, leaves, parent_key, leaf_key })
    }

    /// Trust anchor for all of it.
    pub fn trust_anchor(&self) -> TrustAnchor {
        self.parent_key.trust_anchor(PARENT, PARENT_TEXT)
    }

    /// Key of the many names, and the signatures over the A records of the first of them; `None` if they are not signed.
    pub fn samples(&self, most: usize) -> Option<(&Key, Vec<Sample>)> {
        self.leaf_key.as_ref().map(|key| (key, self.leaves.samples(most)))
    }
}

impl Source for Zones {
    fn body(&self, asked: &Message<'_>, start: usize, message: &mut [u8]) -> Option<Body> {
        let signed = asked.opt().is_some_and(|opt| opt.dnssec_ok());
        let mut out = Writer::new(message, start);
        if let Some(number) = leaf_number(asked.qname()) {
            return self.leaves.body(number, asked, signed, out);
        }
        match self.replies.find(asked.qname(), asked.qtype().0) {
            Some(prepared) => {
                out.prepared(if signed { &prepared.signed } else { &prepared.plain })?;
                Some(out.body(prepared.kind, prepared.is_answer))
            }
            None => Some(Body::empty(Kind::Refused, Rcode::REFUSED, start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::names::{self, QUERY};
    use crate::perf::validation::records::{A, DNSKEY, DS, NSEC, RRSIG, Record, SOA, signed_data};
    use wire::{Section, Type};

    /// Records of a reply: type, RDATA. `dnssec_ok`: the question has an OPT record with DO.
    fn ask(zones: &Zones, name: &[u8], rtype: u16, dnssec_ok: bool) -> (Kind, Vec<(u16, Vec<u8>)>) {
        let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(dnssec_ok)];
        query.extend(name);
        query.extend(rtype.to_be_bytes());
        query.extend([0, 1]);
        let start = query.len();
        if dnssec_ok {
            query.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0]);
        }
        let mut reply = vec![0; 1232];
        reply[..start].copy_from_slice(&query[..start]);
        let body = zones.body(&Message::parse(&query).unwrap(), start, &mut reply).unwrap();
        reply.truncate(body.end);
        reply[2] |= 0x80;
        for (at, count) in [6, 8, 10].into_iter().zip(body.counts) {
            reply[at..at + 2].copy_from_slice(&count.to_be_bytes());
        }
        let message = Message::parse(&reply).unwrap();
        let sections = [Section::Answer, Section::Authority].map(|section| message.records(section));
        let record = |record: wire::Record<'_>| (record.rtype.0, record.rdata().to_vec());
        (body.kind, sections.into_iter().flatten().map(record).collect())
    }

    fn leaf(number: u64) -> Vec<u8> {
        let mut query = [0; QUERY];
        names::write_query(number, &mut query);
        query[12..QUERY - 4].to_vec()
    }

    fn types(records: &[(u16, Vec<u8>)]) -> Vec<u16> {
        records.iter().map(|(rtype, _)| *rtype).collect()
    }

    /// True if the signature of an RRSIG record is that of the key over the record.
    fn is_signed(key: &Key, record: &Record<'_>, rrsig: &[u8]) -> bool {
        let (head, signature) = rrsig.split_at(rrsig.len() - key.signature_octets());
        key.verifies(&signed_data(head, record), signature)
    }

    #[test]
    fn every_name_among_the_many_has_an_address_and_a_denial_that_are_signed() {
        for algorithm in [Algorithm::EcdsaP256, Algorithm::Ed25519, Algorithm::Rsa2048] {
            let zones = Zones::new(Some(algorithm), 5, 0).unwrap();
            let key = zones.leaf_key.as_ref().unwrap();
            for number in 0..5 {
                let name = leaf(number);
                let (kind, records) = ask(&zones, &name, A, true);
                assert_eq!((kind, types(&records)), (Kind::Address4, vec![A, RRSIG]));
                assert_eq!(records[0].1, names::address(number).octets());
                let record = Record { owner: &name, rtype: A, rdata: &records[0].1 };
                assert!(is_signed(key, &record, &records[1].1), "{}", algorithm.name());

                let (kind, records) = ask(&zones, &name.to_ascii_uppercase(), Type::AAAA.0, true);
                assert_eq!((kind, types(&records)), (Kind::NoData, vec![SOA, RRSIG, NSEC, RRSIG]));
                let record = Record { owner: &name, rtype: NSEC, rdata: &records[2].1 };
                assert!(is_signed(key, &record, &records[3].1), "{}", algorithm.name());
                let record = Record { owner: LEAVES, rtype: SOA, rdata: &records[0].1 };
                assert!(is_signed(key, &record, &records[1].1), "{}", algorithm.name());
            }
            // Beyond the names that are signed.
            assert_eq!(ask(&zones, &leaf(5), A, true).0, Kind::Refused);
            assert_eq!(zones.samples(100).unwrap().1.len(), 5);
        }
    }

    #[test]
    fn replies_without_do_and_those_of_an_unsigned_zone_have_no_signatures() {
        let (signed, unsigned) =
            (Zones::new(Some(Algorithm::Ed25519), 1, 1).unwrap(), Zones::new(None, 0, 1).unwrap());
        for (zones, dnssec_ok) in [(&signed, false), (&unsigned, false), (&unsigned, true)] {
            assert_eq!(types(&ask(zones, &leaf(0), A, dnssec_ok).1), [A]);
            assert_eq!(types(&ask(zones, &leaf(0), Type::AAAA.0, dnssec_ok).1), [SOA]);
        }
        assert_eq!(types(&ask(&signed, &name_in(0, "a"), A, false).1), [A]);
        assert!(unsigned.samples(1).is_none());
    }

    #[test]
    fn a_delegation_has_a_ds_record_or_the_proof_that_there_is_none() {
        let (signed, unsigned) =
            (Zones::new(Some(Algorithm::EcdsaP256), 1, 0).unwrap(), Zones::new(None, 0, 0).unwrap());
        let (_, records) = ask(&signed, LEAVES, DS, true);
        assert_eq!(types(&records), [DS, RRSIG]);
        assert_eq!(records[0].1, signed.leaf_key.as_ref().unwrap().ds(LEAVES));
        assert_eq!(types(&ask(&signed, LEAVES, DNSKEY, true).1), [DNSKEY, RRSIG]);
        let (_, records) = ask(&unsigned, LEAVES, DS, true);
        assert_eq!(types(&records), [SOA, RRSIG, NSEC, RRSIG]);
        // RFC 6840 section 4.4: at a delegation NS is there, DS and SOA are not.
        assert_eq!(records[2].1[2 + LEAVES.len()..], [0, 6, 0x20, 0, 0, 0, 0, 0x03]);
        let record = Record { owner: LEAVES, rtype: NSEC, rdata: &records[2].1 };
        assert!(is_signed(&unsigned.parent_key, &record, &records[3].1));
    }

    #[test]
    fn small_zones_have_a_name_with_a_right_signature_and_one_with_a_wrong_one() {
        let zones = Zones::new(None, 0, 2).unwrap();
        for (label, is_right) in [("a", true), ("b", true), (BOGUS, false)] {
            let name = name_in(1, label);
            let (_, records) = ask(&zones, &name, A, true);
            let record = Record { owner: &name, rtype: A, rdata: &records[0].1 };
            assert_eq!(records[0].1, address(1).octets());
            assert_eq!(is_signed(&zones.parent_key, &record, &records[1].1), is_right, "{label}");
        }
        for refused in [&name_in(2, "a")[..], b"\0", b"\x03com\0"] {
            assert_eq!(ask(&zones, refused, A, true).0, Kind::Refused);
        }
    }
}
