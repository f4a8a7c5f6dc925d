//! Answers of a zone that computes them: records of fixed layout are written after the question.
//!
//! Every owner is a compression pointer to an earlier name. So a record is a template into which an address, or up to
//! three pointers, are patched:
//!
//! ```text
//!     CNAME owner 2, type 2, class 2, TTL 4, length 2, number 2 or 3, address 2                 16 or 17 octets
//!     A     owner 2, type 2, class 2, TTL 4, length 2, address 4                                      16 octets
//!     AAAA  the same with an address of 16                                                            28 octets
//!     NS    owner 2, type 2, class 2, TTL 4, length 2, 127-0-0-1 10, zone 2                           24 octets
//!     SOA   owner 2, type 2, class 2, TTL 4, length 2, 127-0-0-1 10, zone 2, hostmaster 11, zone 2,
//!           serial, refresh, retry, expire, minimum 20                                                57 octets
//! ```
//!
//! The name server of the zone is `127-0-0-1` in the zone: a name that exists by the zone's own rule.

use crate::counters::Kind;
use crate::reply::{self, Answer, Body, pointer};
use crate::zone::{NameKind, Zone};
use wire::header::HEADER;
use wire::{Class, Message, Rcode, Type};

const A: usize = 16;
const AAAA: usize = 28;
const NS: usize = 24;
const SOA: usize = 57;

const SERVER: &[u8; 10] = b"\x09127-0-0-1";
const CONTACT: &[u8; 11] = b"\x0ahostmaster";
/// Serial, refresh, retry, expire; the minimum is the zone's TTL.
const TIMERS: [u32; 4] = [1, 7200, 3600, 1_209_600];

/// Result of looking up a query in the zone.
struct Lookup {
    kind: Kind,
    /// The address in the query name, if it has one.
    address: [u8; 4],
    /// The numbers of the CNAME records: those above the first number and up to the second.
    chain: (u8, u8),
}

impl Zone {
    /// Writes the answer to `query` into `out` and returns its length. Returns `None` if the message must not be
    /// answered (a response, less than a header) or `out` cannot hold an answer.
    ///
    /// `size` is the transport's largest message. [`limits::STREAM`](crate::limits::STREAM) is the only limit of TCP;
    /// a smaller value means UDP, where the client's EDNS size (512 octets without EDNS) is a limit too. An `out` of
    /// 512 octets can always hold an answer, truncated if necessary.
    #[inline]
    pub fn answer(&self, query: &[u8], size: usize, out: &mut [u8]) -> Option<usize> {
        self.respond(query, size, out).map(|answer| answer.length)
    }

    /// Like [`Zone::answer`], and returns the kind of the answer.
    #[inline]
    pub fn respond(&self, query: &[u8], size: usize, out: &mut [u8]) -> Option<Answer> {
        reply::respond(query, size, out, |asked, message| self.body(asked, message))
    }

    /// Writes the records after the question; `None` if they do not fit.
    #[inline]
    pub(crate) fn body(&self, asked: &Message<'_>, message: &mut [u8]) -> Option<Body> {
        let start = reply::start(asked);
        let lookup = self.look_up(asked);
        let kind = lookup.kind;
        let (rcode, authoritative) = match kind {
            Kind::NameError => (Rcode::NXDOMAIN, true),
            Kind::Refused => (Rcode::REFUSED, false),
            _ => (Rcode::NOERROR, true),
        };
        let chain = self.chain_octets(lookup.chain);
        let end = start + chain + self.octets(kind);
        let records = message.get_mut(start..end)?;
        let (links, records) = records.split_at_mut(chain);
        let owner = self.write_chain(&lookup, asked.qname(), start, links);
        let [answers, authorities] = self.write(kind, lookup.address, owner, asked.qname().len(), records);
        let links = u16::from(lookup.chain.1 - lookup.chain.0);
        Some(Body { kind, rcode, authoritative, end, counts: [links + answers, authorities, 0] })
    }

    /// Looks up a well-formed query.
    #[inline]
    fn look_up(&self, asked: &Message<'_>) -> Lookup {
        let other = |kind| Lookup { kind, address: [0; 4], chain: (0, 0) };
        let qtype = asked.qtype();
        if asked.qclass() != Class::IN || matches!(qtype, Type::AXFR | Type::IXFR) {
            return other(Kind::Refused);
        }
        match (self.classify(asked.qname()), qtype) {
            // A query for the type CNAME gets the CNAME record itself. RFC 8482 section 4.1: one RRset is a
            // sufficient answer to a query for ANY.
            (NameKind::Address(address, position), Type::CNAME | Type::ANY)
                if position < self.cname_depth =>
            {
                Lookup { kind: Kind::Alias, address, chain: (position, position + 1) }
            }
            (NameKind::Address(address, position), _) => {
                let kind = match qtype {
                    Type::A | Type::ANY => Kind::Address4,
                    Type::AAAA if self.has_aaaa(address) => Kind::Address6,
                    _ => Kind::NoData,
                };
                Lookup { kind, address, chain: (position, self.cname_depth) }
            }
            (NameKind::Apex, Type::SOA | Type::ANY) => other(Kind::Soa),
            (NameKind::Apex, Type::NS) => other(Kind::Ns),
            (NameKind::Apex, _) => other(Kind::NoData),
            (NameKind::NonExistent, _) => other(Kind::NameError),
            (NameKind::OutOfZone, _) => other(Kind::Refused),
        }
    }

    /// Octets of the CNAME records: numbers from 10 on have two digits.
    #[inline]
    fn chain_octets(&self, (after, last): (u8, u8)) -> usize {
        (after..last).map(|number| 12 + 4 + usize::from(number >= 9)).sum()
    }

    /// Octets of the records of an answer, without the CNAME records before them.
    #[inline]
    fn octets(&self, kind: Kind) -> usize {
        match kind {
            Kind::Address4 => A * usize::from(self.addresses),
            Kind::Address6 => AAAA * usize::from(self.addresses),
            Kind::Ns => NS,
            Kind::Soa | Kind::NoData | Kind::NameError => SOA,
            _ => 0,
        }
    }

    /// Fills `out`, which begins at `start` in the message, with CNAME records, and returns the offset of their final
    /// target.
    #[inline]
    fn write_chain(&self, lookup: &Lookup, qname: &[u8], start: usize, out: &mut [u8]) -> u16 {
        let (after, last) = lookup.chain;
        // The name with the address only: in the question, after the number if there is one.
        let address = if after == 0 { HEADER } else { HEADER + 1 + usize::from(qname[0]) };
        let (mut owner, mut at) = (HEADER, 0);
        for number in after + 1..=last {
            let digits = if number < 10 { 1 } else { 2 };
            let record = &mut out[at..at + 12 + 1 + digits + 2];
            self.write_header(record, owner as u16, Type::CNAME);
            record[12] = digits as u8;
            record[12 + digits] = b'0' + number % 10;
            if digits == 2 {
                record[13] = b'0' + number / 10;
            }
            record[13 + digits..].copy_from_slice(&pointer(address as u16));
            owner = start + at + 12;
            at += 12 + 1 + digits + 2;
        }
        owner as u16
    }

    /// Fills `out`, which has exactly the octets of the records, and returns the counts of answer and authority
    /// records. Address records belong to the name at `owner`; the query name takes `qname` octets.
    #[inline]
    fn write(&self, kind: Kind, address: [u8; 4], owner: u16, qname: usize, out: &mut [u8]) -> [u16; 2] {
        match kind {
            Kind::Address4 => {
                let mut record = [0; A];
                self.write_header(&mut record, owner, Type::A);
                for (place, following) in out.chunks_exact_mut(A).zip(following(address)) {
                    record[12..].copy_from_slice(&following);
                    place.copy_from_slice(&record);
                }
                [self.addresses, 0]
            }
            Kind::Address6 => {
                let mut record = [0; AAAA];
                self.write_header(&mut record, owner, Type::AAAA);
                record[12..16].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
                for (place, following) in out.chunks_exact_mut(AAAA).zip(following(address)) {
                    record[24..].copy_from_slice(&following);
                    place.copy_from_slice(&record);
                }
                [self.addresses, 0]
            }
            Kind::Ns => {
                let zone = self.offset(qname);
                self.write_header(out, zone, Type::NS);
                out[12..22].copy_from_slice(SERVER);
                out[22..24].copy_from_slice(&pointer(zone));
                [1, 0]
            }
            Kind::Soa | Kind::NoData | Kind::NameError => {
                let zone = self.offset(qname);
                self.write_header(out, zone, Type::SOA);
                out[12..22].copy_from_slice(SERVER);
                out[22..24].copy_from_slice(&pointer(zone));
                out[24..35].copy_from_slice(CONTACT);
                out[35..37].copy_from_slice(&pointer(zone));
                for (place, value) in out[37..].chunks_exact_mut(4).zip(TIMERS.iter().chain([&self.ttl_secs]))
                {
                    place.copy_from_slice(&value.to_be_bytes());
                }
                if kind == Kind::Soa { [1, 0] } else { [0, 1] }
            }
            _ => [0, 0],
        }
    }

    /// Offset of the zone's name in a message whose query name has `qname` octets and ends in the zone's name.
    #[inline]
    fn offset(&self, qname: usize) -> u16 {
        (HEADER + qname - self.name().len()) as u16
    }

    /// Writes the first twelve octets, which all records share.
    #[inline]
    fn write_header(&self, record: &mut [u8], owner: u16, rtype: Type) {
        let rdata = record.len() as u16 - 12;
        record[..2].copy_from_slice(&pointer(owner));
        record[2..4].copy_from_slice(&rtype.0.to_be_bytes());
        record[4..6].copy_from_slice(&Class::IN.0.to_be_bytes());
        record[6..10].copy_from_slice(&self.ttl_secs.to_be_bytes());
        record[10..12].copy_from_slice(&rdata.to_be_bytes());
    }
}

/// The address and its successors, wrapping around at the end of the IPv4 space.
#[inline]
fn following(address: [u8; 4]) -> impl Iterator<Item = [u8; 4]> {
    let first = u32::from_be_bytes(address);
    (0..).map(move |step| first.wrapping_add(step).to_be_bytes())
}
