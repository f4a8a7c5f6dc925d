//! Answers of a zone from a master file, by the algorithm of RFC 1034 section 4.3.2.
//!
//! Served: names and aliases, empty non-terminals, wildcards (RFC 4592), delegations with their glue, negative
//! answers with the SOA record (RFC 2308). Not implemented: DNSSEC proofs, DNAME, name compression in RDATA.

use super::name::without_first_label;
use super::store::{Node, RrSet, Store};
use crate::counters::Kind;
use crate::limits;
use crate::reply::{self, Body, pointer};
use wire::header::HEADER;
use wire::{Class, Message, Rcode, Type};

/// Octets of a record before its RDATA; the owner is a compression pointer.
const RECORD_HEADER: usize = 12;

/// The sections of a message.
const ANSWER: usize = 0;
const AUTHORITY: usize = 1;
const ADDITIONAL: usize = 2;

/// First offset that a compression pointer cannot express.
const POINTER_LIMIT: usize = 1 << 14;

/// The records of a zone.
#[derive(Debug)]
pub struct Records {
    /// The zone's name in wire form, lower case.
    pub(super) apex: Vec<u8>,
    pub(super) store: Store,
    /// True if the zone has delegations.
    pub(super) has_cuts: bool,
    /// True if the zone has names whose first label is an asterisk.
    pub(super) has_wildcards: bool,
}

/// Result of looking up a name.
enum Lookup {
    /// A name of the zone, or the wildcard that matches it.
    Found(Node),
    /// A delegation at this node, with the number of octets that its name has before the zone's name.
    Delegated(Node, usize),
    /// It does not exist.
    NonExistent,
}

impl Records {
    /// The zone's name in wire form, lower case.
    pub fn name(&self) -> &[u8] {
        &self.apex
    }

    /// Number of names in the zone, including empty non-terminals.
    pub fn names(&self) -> u64 {
        self.store.names()
    }

    /// Number of records in the zone.
    pub fn records(&self) -> u64 {
        self.store.records()
    }

    /// Writes the records after the question; `None` if they do not fit.
    pub(crate) fn body(&self, asked: &Message<'_>, message: &mut [u8]) -> Option<Body> {
        let start = reply::start(asked);
        let qtype = asked.qtype();
        if asked.qclass() != Class::IN
            || matches!(qtype, Type::AXFR | Type::IXFR)
            || !wire::is_at_or_below(asked.qname(), &self.apex)
        {
            return Some(Body::empty(Kind::Refused, Rcode::REFUSED, start));
        }
        let mut octets = [0; 255];
        let qname = asked.qname();
        octets[..qname.len()].copy_from_slice(qname);
        wire::fold(&mut octets[..qname.len()]);
        let mut below = qname.len() - self.apex.len();
        // Offset of the current name in the message.
        let mut owner = HEADER;
        let mut out = Writer { message, end: start, counts: [0; 3] };
        for _ in 0..limits::CHAIN {
            let name = &octets[..below];
            let node = match self.look_up(name, qtype) {
                Lookup::Found(node) => node,
                Lookup::Delegated(node, above) => {
                    return self.referral(&mut out, node, owner + below - above);
                }
                Lookup::NonExistent => {
                    return self.negative_answer(out, owner + below, Kind::NameError, Rcode::NXDOMAIN);
                }
            };
            // RFC 8482 section 4.1: one RRset is a sufficient answer to a query for ANY.
            let set = match qtype {
                Type::ANY => self.store.sets(node).next(),
                _ => self.store.get(node, qtype),
            };
            if let Some(set) = set {
                out.set(owner, &set, set.ttl_secs, ANSWER)?;
                return Some(out.body(kind(set.rtype), Rcode::NOERROR));
            }
            let Some(alias) = self.store.get(node, Type::CNAME) else {
                return self.negative_answer(out, owner + below, Kind::NoData, Rcode::NOERROR);
            };
            let target = alias.rdata().next()?;
            let next = out.end + RECORD_HEADER;
            out.set(owner, &alias, alias.ttl_secs, ANSWER)?;
            owner = next;
            octets[..target.len()].copy_from_slice(target);
            wire::fold(&mut octets[..target.len()]);
            if !wire::is_at_or_below(&octets[..target.len()], &self.apex) {
                return Some(out.body(Kind::Alias, Rcode::NOERROR));
            }
            below = target.len() - self.apex.len();
        }
        // A CNAME loop, or a chain that is too long: answer with the part that was followed.
        Some(out.body(Kind::Alias, Rcode::NOERROR))
    }

    /// Looks up a name, given without the zone's name and in lower case. The DS records of a delegated zone belong to
    /// this zone.
    fn look_up(&self, name: &[u8], qtype: Type) -> Lookup {
        if self.has_cuts
            && let Some(cut) = self.delegation(name, qtype)
        {
            return cut;
        }
        if let Some(node) = self.store.find(name) {
            return Lookup::Found(node);
        }
        if !self.has_wildcards {
            return Lookup::NonExistent;
        }
        let mut encloser = without_first_label(name);
        while !encloser.is_empty() && self.store.find(encloser).is_none() {
            encloser = without_first_label(encloser);
        }
        let mut wildcard = [0; 257];
        wildcard[..2].copy_from_slice(b"\x01*");
        wildcard[2..2 + encloser.len()].copy_from_slice(encloser);
        self.store.find(&wildcard[..2 + encloser.len()]).map_or(Lookup::NonExistent, Lookup::Found)
    }

    /// The delegation that covers a name: the topmost one, at the name or above it.
    fn delegation(&self, name: &[u8], qtype: Type) -> Option<Lookup> {
        // A name of 255 octets has at most 127 labels.
        let (mut starts, mut count, mut at) = ([0u8; 128], 0, 0);
        while at < name.len() {
            starts[count] = at as u8;
            count += 1;
            at += 1 + usize::from(name[at]);
        }
        for start in starts[..count].iter().rev().map(|start| usize::from(*start)) {
            let node = self.store.find(&name[start..])?;
            if self.store.get(node, Type::NS).is_some() && (start > 0 || qtype != Type::DS) {
                return Some(Lookup::Delegated(node, name.len() - start));
            }
        }
        None
    }

    /// Completes a negative answer with the SOA record, whose owner stands at offset `apex`.
    fn negative_answer(&self, mut out: Writer<'_>, apex: usize, kind: Kind, rcode: Rcode) -> Option<Body> {
        let soa = self.store.find(&[]).and_then(|node| self.store.get(node, Type::SOA))?;
        // RFC 2308 section 5: the smaller of the SOA record's TTL and its MINIMUM field.
        let minimum = soa.rdata().next().and_then(|rdata| rdata.last_chunk::<4>().copied())?;
        out.set(apex, &soa, soa.ttl_secs.min(u32::from_be_bytes(minimum)), AUTHORITY)?;
        Some(out.body(kind, rcode))
    }

    /// Completes a referral: the name servers of the delegated zone, whose name stands at offset `owner`, and their
    /// addresses as far as this zone has them. RFC 9471: if the glue does not fit, the answer is truncated.
    fn referral(&self, out: &mut Writer<'_>, node: Node, owner: usize) -> Option<Body> {
        let servers = self.store.get(node, Type::NS)?;
        let mut at = out.end;
        out.set(owner, &servers, servers.ttl_secs, AUTHORITY)?;
        for name in servers.rdata() {
            let stands = at + RECORD_HEADER;
            at = stands + name.len();
            let mut octets = [0; 255];
            let folded = &mut octets[..name.len()];
            folded.copy_from_slice(name);
            wire::fold(folded);
            if stands >= POINTER_LIMIT || !wire::is_at_or_below(folded, &self.apex) {
                continue;
            }
            let Some(node) = self.store.find(&folded[..name.len() - self.apex.len()]) else { continue };
            for rtype in [Type::A, Type::AAAA] {
                if let Some(set) = self.store.get(node, rtype) {
                    out.set(stands, &set, set.ttl_secs, ADDITIONAL)?;
                }
            }
        }
        let authoritative = out.counts[ANSWER] > 0;
        Some(Body { authoritative, ..out.body(Kind::Referral, Rcode::NOERROR) })
    }
}

/// The kind of an answer with records of a type.
fn kind(rtype: Type) -> Kind {
    match rtype {
        Type::A => Kind::Address4,
        Type::AAAA => Kind::Address6,
        Type::CNAME => Kind::Alias,
        Type::SOA => Kind::Soa,
        Type::NS => Kind::Ns,
        _ => Kind::Records,
    }
}

/// A message to which records are appended.
struct Writer<'a> {
    message: &'a mut [u8],
    end: usize,
    counts: [u16; 3],
}

impl Writer<'_> {
    /// Appends an RRset whose owner stands at offset `owner`; `None` if it does not fit.
    fn set(&mut self, owner: usize, set: &RrSet<'_>, ttl_secs: u32, section: usize) -> Option<()> {
        for rdata in set.rdata() {
            let record = self.message.get_mut(self.end..self.end + RECORD_HEADER + rdata.len())?;
            record[..2].copy_from_slice(&pointer(owner as u16));
            record[2..4].copy_from_slice(&set.rtype.0.to_be_bytes());
            record[4..6].copy_from_slice(&Class::IN.0.to_be_bytes());
            record[6..10].copy_from_slice(&ttl_secs.to_be_bytes());
            record[10..12].copy_from_slice(&(rdata.len() as u16).to_be_bytes());
            record[12..].copy_from_slice(rdata);
            self.end += RECORD_HEADER + rdata.len();
            self.counts[section] += 1;
        }
        Some(())
    }

    fn body(&self, kind: Kind, rcode: Rcode) -> Body {
        Body { kind, rcode, authoritative: true, end: self.end, counts: self.counts }
    }
}
