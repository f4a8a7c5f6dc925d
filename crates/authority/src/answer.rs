//! From a query to its answer: the question stays where it is, and records of fixed layout are put behind it.
//!
//! Every owner is a pointer into the question, so a record is a template with an address, or with up to three
//! pointers, patched in:
//!
//! ```text
//!     A     owner 2, type 2, class 2, TTL 4, length 2, address 4                                      16 octets
//!     AAAA  the same with an address of 16                                                            28 octets
//!     NS    owner 2, type 2, class 2, TTL 4, length 2, 127-0-0-1 10, zone 2                           24 octets
//!     SOA   owner 2, type 2, class 2, TTL 4, length 2, 127-0-0-1 10, zone 2, hostmaster 11, zone 2,
//!           serial, refresh, retry, expire, minimum 20                                                57 octets
//! ```
//!
//! The name server of the zone is `127-0-0-1` in it: a name that exists by the zone's own rule.

use crate::counters::Kind;
use crate::limits;
use crate::zone::{Place, Zone};
use wire::header::{self, HEADER};
use wire::{Class, Flags, Message, OPT_LEN, Opcode, Opt, Rcode, Type};

/// Octets of a UDP answer to a client that did not say more (RFC 1035 section 4.2.1), and the least that an EDNS size
/// means (RFC 6891 section 6.2.3).
const CLASSIC_SIZE: usize = 512;

const A: usize = 16;
const AAAA: usize = 28;
const NS: usize = 24;
const SOA: usize = 57;

const SERVER: &[u8; 10] = b"\x09127-0-0-1";
const CONTACT: &[u8; 11] = b"\x0ahostmaster";
/// Serial, refresh, retry, expire; the minimum is the zone's TTL.
const TIMERS: [u32; 4] = [1, 7200, 3600, 1_209_600];

/// What was written for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Octets of the message.
    pub length: usize,
    /// What it says.
    pub kind: Kind,
}

impl Zone {
    /// Writes the answer to `query` into `out` and returns its length; `None` when there must be no answer (a
    /// response, less than a header) or `out` cannot hold one.
    ///
    /// `size` is what the transport carries at most. With [`limits::STREAM`] that is all; with less, the answer goes
    /// over UDP, and the client's EDNS size (512 octets without) is a limit too. `out` of 512 octets is enough for an
    /// answer, truncated if need be.
    #[inline]
    pub fn answer(&self, query: &[u8], size: usize, out: &mut [u8]) -> Option<usize> {
        self.respond(query, size, out).map(|answer| answer.length)
    }

    /// Like [`Zone::answer`], and says what the answer is.
    pub fn respond(&self, query: &[u8], size: usize, out: &mut [u8]) -> Option<Answer> {
        // A response to a response could go back and forth for ever.
        if query.len() < HEADER || header::flags(query).contains(Flags::QR) {
            return None;
        }
        let Ok(asked) = Message::parse(query) else {
            return refuse_unread(query, out);
        };
        let opt = asked.opt();
        let size = if size < limits::STREAM { size.min(client_size(opt.as_ref())) } else { size };
        let tail = if opt.is_some() { OPT_LEN } else { 0 };
        let room = size.min(out.len()).checked_sub(tail)?;

        let end = HEADER + asked.question().len();
        let (mut kind, address) = self.judge(&asked);
        let mut at = end + self.octets(kind);
        if at > room {
            (kind, at) = (Kind::Truncated, end);
        }
        // The question alone is too large only for a caller that gives less than 512 octets.
        let message = out.get_mut(..at).filter(|_| end <= room)?;
        let (question, records) = message.split_at_mut(end);
        question.copy_from_slice(&query[..end]);
        let (answers, authorities) = self.write(kind, address, asked.qname().len(), records);

        let (rcode, authoritative) = match kind {
            Kind::NameError => (Rcode::NXDOMAIN, true),
            Kind::Refused => (Rcode::REFUSED, false),
            Kind::NotImplemented => (Rcode::NOTIMP, false),
            Kind::BadVersion => (Rcode::BADVERS, false),
            _ => (Rcode::NOERROR, true),
        };
        let mut flags = reply_flags(query).with_rcode(rcode);
        if authoritative {
            flags = flags.with(Flags::AA);
        }
        if kind == Kind::Truncated {
            flags = flags.with(Flags::TC);
        }
        header::set_flags(message, flags);
        set_counts(message, 1, answers, authorities, u16::from(opt.is_some()));
        if let Some(opt) = opt {
            // RFC 6891 section 6.1.1: an OPT record if and only if the query has one. The DO bit is copied (RFC 3225
            // section 3).
            let announced = size.min(limits::UDP_SIZE) as u16;
            let extended = (rcode.0 >> 4) as u8;
            at += wire::write_opt(&mut out[at..], announced, extended, 0, opt.dnssec_ok(), None)?;
        }
        Some(Answer { length: at, kind })
    }

    /// What a well-formed query gets, and the address that its name says, if it says one.
    #[inline]
    fn judge(&self, asked: &Message<'_>) -> (Kind, [u8; 4]) {
        let none = [0; 4];
        if asked.opcode() != Opcode::QUERY {
            return (Kind::NotImplemented, none);
        }
        // RFC 6891 section 6.1.3.
        if asked.opt().is_some_and(|opt| opt.version() != 0) {
            return (Kind::BadVersion, none);
        }
        let qtype = asked.qtype();
        if asked.qclass() != Class::IN || matches!(qtype, Type::AXFR | Type::IXFR) {
            return (Kind::Refused, none);
        }
        match (self.place(asked.qname()), qtype) {
            // RFC 8482 section 4.1: one RRset is answer enough to a question for all of them.
            (Place::Address(address), Type::A | Type::ANY) => (Kind::Address4, address),
            (Place::Address(address), Type::AAAA) if self.has_aaaa(address) => (Kind::Address6, address),
            (Place::Apex, Type::SOA | Type::ANY) => (Kind::Soa, none),
            (Place::Apex, Type::NS) => (Kind::Ns, none),
            (Place::Address(_) | Place::Apex, _) => (Kind::NoData, none),
            (Place::Nowhere, _) => (Kind::NameError, none),
            (Place::Outside, _) => (Kind::Refused, none),
        }
    }

    /// Octets of the records of an answer.
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

    /// Fills `out`, which has exactly the octets of the records, and returns the counts of answer and authority records.
    /// The question's name takes `qname` octets.
    #[inline]
    fn write(&self, kind: Kind, address: [u8; 4], qname: usize, out: &mut [u8]) -> (u16, u16) {
        match kind {
            Kind::Address4 => {
                let mut record = [0; A];
                self.fix(&mut record, HEADER as u16, Type::A);
                for (place, following) in out.chunks_exact_mut(A).zip(following(address)) {
                    record[12..].copy_from_slice(&following);
                    place.copy_from_slice(&record);
                }
                (self.addresses, 0)
            }
            Kind::Address6 => {
                let mut record = [0; AAAA];
                self.fix(&mut record, HEADER as u16, Type::AAAA);
                record[12..16].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
                for (place, following) in out.chunks_exact_mut(AAAA).zip(following(address)) {
                    record[24..].copy_from_slice(&following);
                    place.copy_from_slice(&record);
                }
                (self.addresses, 0)
            }
            Kind::Ns => {
                let zone = self.offset(qname);
                self.fix(out, zone, Type::NS);
                out[12..22].copy_from_slice(SERVER);
                out[22..24].copy_from_slice(&pointer(zone));
                (1, 0)
            }
            Kind::Soa | Kind::NoData | Kind::NameError => {
                let zone = self.offset(qname);
                self.fix(out, zone, Type::SOA);
                out[12..22].copy_from_slice(SERVER);
                out[22..24].copy_from_slice(&pointer(zone));
                out[24..35].copy_from_slice(CONTACT);
                out[35..37].copy_from_slice(&pointer(zone));
                for (place, value) in out[37..].chunks_exact_mut(4).zip(TIMERS.iter().chain([&self.ttl_secs]))
                {
                    place.copy_from_slice(&value.to_be_bytes());
                }
                if kind == Kind::Soa { (1, 0) } else { (0, 1) }
            }
            _ => (0, 0),
        }
    }

    /// Where the zone's name begins in a message whose question has a name of `qname` octets that ends in it.
    #[inline]
    fn offset(&self, qname: usize) -> u16 {
        (HEADER + qname - self.name().len()) as u16
    }

    /// The twelve octets that every record begins with.
    #[inline]
    fn fix(&self, record: &mut [u8], owner: u16, rtype: Type) {
        let rdata = record.len() as u16 - 12;
        record[..2].copy_from_slice(&pointer(owner));
        record[2..4].copy_from_slice(&rtype.0.to_be_bytes());
        record[4..6].copy_from_slice(&Class::IN.0.to_be_bytes());
        record[6..10].copy_from_slice(&self.ttl_secs.to_be_bytes());
        record[10..12].copy_from_slice(&rdata.to_be_bytes());
    }
}

/// The largest UDP message that the client takes.
#[inline]
fn client_size(opt: Option<&Opt<'_>>) -> usize {
    opt.map_or(CLASSIC_SIZE, |opt| usize::from(opt.udp_size()).max(CLASSIC_SIZE))
}

/// The header alone for what could not be read: there may be no question to echo.
#[cold]
fn refuse_unread(query: &[u8], out: &mut [u8]) -> Option<Answer> {
    let reply = out.get_mut(..HEADER)?;
    reply.copy_from_slice(&query[..HEADER]);
    let flags = reply_flags(query);
    // Messages of other opcodes may be laid out in other ways (RFC 2136): not wrong, only unknown here.
    let (kind, rcode) = match flags.opcode() {
        Opcode::QUERY => (Kind::FormatError, Rcode::FORMERR),
        _ => (Kind::NotImplemented, Rcode::NOTIMP),
    };
    header::set_flags(reply, flags.with_rcode(rcode));
    set_counts(reply, 0, 0, 0, 0);
    Some(Answer { length: HEADER, kind })
}

/// The flags that every answer to this query has: QR; opcode, RD (RFC 1035 section 4.1.1) and CD (RFC 4035 section
/// 3.1.6) copied.
#[inline]
fn reply_flags(query: &[u8]) -> Flags {
    let asked = header::flags(query);
    let mut flags = Flags::QR.with_opcode(asked.opcode());
    for copied in [Flags::RD, Flags::CD] {
        if asked.contains(copied) {
            flags = flags.with(copied);
        }
    }
    flags
}

#[inline]
fn set_counts(message: &mut [u8], questions: u16, answers: u16, authorities: u16, additionals: u16) {
    header::set_qdcount(message, questions);
    header::set_ancount(message, answers);
    header::set_nscount(message, authorities);
    header::set_arcount(message, additionals);
}

/// A compression pointer. The question's name ends before octet 12 + 255, so every offset in it fits.
#[inline]
fn pointer(offset: u16) -> [u8; 2] {
    (0xc000 | offset).to_be_bytes()
}

/// The address and those that follow it, around the end of the IPv4 space.
#[inline]
fn following(address: [u8; 4]) -> impl Iterator<Item = [u8; 4]> {
    let first = u32::from_be_bytes(address);
    (0..).map(move |step| first.wrapping_add(step).to_be_bytes())
}
