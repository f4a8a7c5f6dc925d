//! Zone data of the common upstream: zones and the names in them. It answers as a resolver does: it follows CNAMEs to
//! their end, expands wildcards, applies DNAMEs, adds the SOA to negative replies, and adds signatures for DO. So
//! servers that follow CNAMEs themselves and servers that do not get the same data.

use crate::message::{Flag, Transport, UpstreamQuery};
use crate::record::{OwnedName, Record, record};
use crate::script::ReplyContent;
use crate::upstream::ReplySource;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::{Name, ToName};
use domain::rdata::ZoneRecordData;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Most CNAMEs that are followed before the upstream gives up with SERVFAIL, as resolvers do.
const MAX_ALIASES: usize = 16;

/// Fields and octets of a signature. No server verifies it: the compared servers do not validate.
const SIGNATURE: &str = "13 3 3600 20380101000000 20200101000000 12345";
const SIGNATURE_OCTETS: &str =
    "c2l4Zm9sZHNpeGZvbGRzaXhmb2xkc2l4Zm9sZHNpeGZvbGRzaXhmb2xkc2l4Zm9sZHNpeGZvbGRzaXhmb2xkYQ==";

/// Properties of a zone.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    /// SOA of negative replies, if there is one (RFC 2308 section 2.2 has replies without).
    pub soa: Option<Record>,
    /// Records have signatures.
    pub signed: bool,
    /// The upstream claims that it has validated the data of this zone.
    pub secure: bool,
    /// The upstream stops at a CNAME and leaves the rest to the server.
    pub unfinished: bool,
}

/// Failure of a query for one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reply with this RCODE and no records, except the SOA for NXDOMAIN.
    Rcode(Rcode),
    /// No reply.
    Silence,
}

/// Data of one name.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Records of the name.
    pub records: Vec<Record>,
    /// Types for which queries fail.
    pub faults: Vec<(Rtype, Fault)>,
}

/// All zones and names.
#[derive(Debug)]
pub struct ZoneData {
    zones: HashMap<OwnedName, Zone>,
    nodes: HashMap<OwnedName, Node>,
    /// Names with nodes, and all names above them: these exist.
    existing: HashSet<OwnedName>,
}

impl Default for ZoneData {
    fn default() -> ZoneData {
        let mut zone_data =
            ZoneData { zones: HashMap::new(), nodes: HashMap::new(), existing: HashSet::new() };
        let soa = parsed(". 3600 IN SOA ns.invalid. hostmaster.invalid. 1 7200 3600 1209600 3600");
        zone_data.add_zone(Name::root_vec(), Zone { soa: Some(soa), ..Zone::default() });
        zone_data
    }
}

impl ZoneData {
    /// Adds a zone, with its SOA and a name server at its apex.
    pub fn add_zone(&mut self, apex: OwnedName, zone: Zone) {
        let server = parsed(&format!("{} 3600 IN NS ns.invalid.", apex.fmt_with_dot()));
        self.add(&apex, zone.soa.iter().cloned().chain([server]).collect());
        self.zones.insert(apex, zone);
    }

    /// Adds records of one owner.
    pub fn add(&mut self, owner: &OwnedName, records: Vec<Record>) {
        self.existing.extend(owner.iter_suffixes().map(|suffix| suffix.to_vec()));
        self.nodes.entry(owner.clone()).or_default().records.extend(records);
    }

    /// Makes queries for a type of this name fail.
    pub fn fail(&mut self, owner: &OwnedName, rtype: Rtype, fault: Fault) {
        self.add(owner, Vec::new());
        self.nodes.entry(owner.clone()).or_default().faults.push((rtype, fault));
    }

    /// True if there is a zone with this apex.
    pub fn has_zone(&self, apex: &OwnedName) -> bool {
        self.zones.contains_key(apex)
    }

    /// Zone that a name is in.
    fn zone_of(&self, name: &OwnedName) -> (OwnedName, &Zone) {
        let mut suffixes = name.iter_suffixes().map(|suffix| suffix.to_vec());
        suffixes
            .find_map(|suffix| self.zones.get(&suffix).map(|zone| (suffix.clone(), zone)))
            .expect("the root is a zone")
    }

    /// Node of a name: its own, or that of the wildcard below its closest encloser (RFC 4592 section 3.3.1).
    fn node_of(&self, name: &OwnedName) -> Option<&Node> {
        if self.existing.contains(name) {
            return self.nodes.get(name);
        }
        let closest = name.iter_suffixes().skip(1).map(|suffix| suffix.to_vec());
        let closest = closest.into_iter().find(|suffix| self.existing.contains(suffix))?;
        self.nodes.get(&wildcard(&closest)?)
    }

    /// DNAME above a name, and its target; the target is `None` if the new name is too long (RFC 6672 section 2.2).
    fn dname_above(&self, name: &OwnedName) -> Option<(&Record, Option<OwnedName>)> {
        name.iter_suffixes().skip(1).find_map(|suffix| {
            let node = self.nodes.get(&suffix.to_vec())?;
            node.records.iter().find_map(|record| match record.data() {
                ZoneRecordData::Dname(data) => {
                    let prefix = &name.as_slice()[..name.len() - suffix.len()];
                    let moved = [prefix, data.dname().as_slice()].concat();
                    Some((record, Name::from_octets(moved).ok()))
                }
                _ => None,
            })
        })
    }

    /// Reply to a query; `None` for no reply at all.
    pub fn reply(&self, query: &UpstreamQuery) -> Option<ReplyContent> {
        self.look_up(query, false, false)
    }

    /// Combined replies for a server that follows CNAMEs where the upstream stops.
    pub fn whole_reply(&self, query: &UpstreamQuery) -> Option<ReplyContent> {
        self.look_up(query, true, false)
    }

    /// Combined replies for a server that also follows CNAMEs for ANY, unless they are signed.
    pub fn any_reply(&self, query: &UpstreamQuery) -> Option<ReplyContent> {
        self.look_up(query, true, true)
    }

    fn look_up(&self, query: &UpstreamQuery, to_the_end: bool, any_follows: bool) -> Option<ReplyContent> {
        let content = ReplyContent::new(Rcode::NOERROR);
        let reply = ReplyBuilder { content, dnssec_ok: query.dnssec_ok(), secure: true };
        let mut lookup = Lookup { query, to_the_end, any_follows, stopped: false, reply };
        let mut name = query.name.clone();
        for _ in 0..MAX_ALIASES {
            match self.step(&mut lookup, &name) {
                Step::Follow(target) => name = target,
                Step::Complete => return Some(lookup.reply.content),
                Step::Failure(rcode) => return Some(ReplyContent::new(rcode)),
                Step::NoReply => return None,
            }
        }
        Some(ReplyContent::new(Rcode::SERVFAIL))
    }

    /// Adds the data of one name to the reply.
    fn step(&self, lookup: &mut Lookup, name: &OwnedName) -> Step {
        let (apex, zone) = self.zone_of(name);
        lookup.reply.secure &= zone.secure;
        let node = self.node_of(name);
        if node.is_none() && !self.existing.contains(name) {
            return match self.dname_above(name) {
                Some((dname, target)) => lookup.apply_dname(name, &apex, zone, dname, target),
                None => lookup.negative(&apex, zone, Rcode::NXDOMAIN),
            };
        }
        let nothing = Node::default();
        let node = node.unwrap_or(&nothing);
        match node.faults.iter().find(|(rtype, _)| *rtype == lookup.query.rtype) {
            Some((_, Fault::Silence)) => Step::NoReply,
            Some((_, Fault::Rcode(Rcode::NXDOMAIN))) => lookup.negative(&apex, zone, Rcode::NXDOMAIN),
            // Failures have no records. But if the upstream stopped before, the server has the records of the earlier
            // replies.
            Some((_, Fault::Rcode(rcode))) if !lookup.stopped => Step::Failure(*rcode),
            Some((_, Fault::Rcode(rcode))) => {
                lookup.reply.content.rcode = *rcode;
                Step::Complete
            }
            None => lookup.answer_from(node, name, &apex, zone),
        }
    }
}

/// State of one lookup.
struct Lookup<'q> {
    query: &'q UpstreamQuery,
    /// Follow CNAMEs where the upstream stops.
    to_the_end: bool,
    /// Follow CNAMEs for ANY, unless they are signed.
    any_follows: bool,
    /// The upstream stopped at a CNAME before this name.
    stopped: bool,
    reply: ReplyBuilder,
}

/// Result for one name of a lookup.
enum Step {
    /// The lookup goes on with this name.
    Follow(OwnedName),
    /// The reply is complete.
    Complete,
    /// The reply is this RCODE without records.
    Failure(Rcode),
    /// There is no reply.
    NoReply,
}

impl Lookup<'_> {
    fn negative(&mut self, apex: &OwnedName, zone: &Zone, rcode: Rcode) -> Step {
        self.reply.negative(apex, zone, rcode);
        Step::Complete
    }

    /// Adds a DNAME and the CNAME that follows from it.
    fn apply_dname(
        &mut self,
        name: &OwnedName,
        apex: &OwnedName,
        zone: &Zone,
        dname: &Record,
        target: Option<OwnedName>,
    ) -> Step {
        self.reply.answer(apex, zone, vec![dname.clone()]);
        let Some(target) = target else {
            self.reply.content.rcode = Rcode::YXDOMAIN;
            return Step::Complete;
        };
        let ttl = dname.ttl().as_secs();
        let alias = format!("{} {ttl} IN CNAME {}", name.fmt_with_dot(), target.fmt_with_dot());
        self.reply.content.answers.push(parsed(&alias));
        let rtype = self.query.rtype;
        if rtype == Rtype::CNAME || rtype == Rtype::ANY && !self.any_follows {
            self.reply.end();
            return Step::Complete;
        }
        Step::Follow(target)
    }

    /// Adds the records of an existing name, or the SOA if it has none of the type.
    fn answer_from(&mut self, node: &Node, name: &OwnedName, apex: &OwnedName, zone: &Zone) -> Step {
        let of = |rtype: Rtype| {
            let wanted = node.records.iter().filter(|record| rtype == Rtype::ANY || record.rtype() == rtype);
            wanted.map(|record| owned_by(record, name)).collect::<Vec<Record>>()
        };
        let found = of(self.query.rtype);
        if self.query.class != Class::IN {
            return self.negative(apex, zone, Rcode::NOERROR);
        }
        let is_alias = found.iter().any(|record| record.rtype() == Rtype::CNAME);
        let leads_on = is_alias && self.any_follows && !zone.signed;
        if !found.is_empty() && !leads_on {
            self.reply.answer(apex, zone, found);
            self.reply.end();
            return Step::Complete;
        }
        let alias = of(Rtype::CNAME);
        let Some(ZoneRecordData::Cname(target)) = alias.first().map(|record| record.data().clone()) else {
            return self.negative(apex, zone, Rcode::NOERROR);
        };
        self.reply.answer(apex, zone, alias);
        self.stopped |= zone.unfinished;
        if zone.unfinished && !self.to_the_end {
            self.reply.end();
            return Step::Complete;
        }
        Step::Follow(target.cname().clone())
    }
}

/// Source of replies that many upstreams can share.
#[derive(Clone, Debug)]
pub struct SharedZoneData(pub Arc<ZoneData>);

impl ReplySource for SharedZoneData {
    fn reply(&mut self, query: &UpstreamQuery, _: Transport) -> Option<ReplyContent> {
        self.0.reply(query)
    }
}

/// Reply under construction.
struct ReplyBuilder {
    content: ReplyContent,
    dnssec_ok: bool,
    secure: bool,
}

impl ReplyBuilder {
    /// Adds RRsets, each with its signature.
    fn answer(&mut self, apex: &OwnedName, zone: &Zone, records: Vec<Record>) {
        let signatures = self.signatures(apex, zone, &records);
        self.content.answers.extend(records.into_iter().chain(signatures));
    }

    /// Completes a negative reply.
    fn negative(&mut self, apex: &OwnedName, zone: &Zone, rcode: Rcode) {
        let soa: Vec<Record> = zone.soa.iter().cloned().collect();
        let signatures = self.signatures(apex, zone, &soa);
        self.content.rcode = rcode;
        self.content.authority.extend(soa.into_iter().chain(signatures));
        self.end();
    }

    fn end(&mut self) {
        if self.secure {
            self.content.flags.push(Flag::Ad);
        }
    }

    fn signatures(&self, apex: &OwnedName, zone: &Zone, records: &[Record]) -> Vec<Record> {
        let mut types: Vec<Rtype> = Vec::new();
        let mut signatures = Vec::new();
        for record in records.iter().filter(|_| zone.signed && self.dnssec_ok) {
            if types.contains(&record.rtype()) {
                continue;
            }
            types.push(record.rtype());
            let (ttl, rtype, apex) = (record.ttl().as_secs(), record.rtype(), apex.fmt_with_dot());
            let text = format!(". {ttl} IN RRSIG {rtype} {SIGNATURE} {apex} {SIGNATURE_OCTETS}");
            // Built without text: an owner may have characters that are special in text.
            signatures.push(owned_by(&parsed(&text), record.owner()));
        }
        signatures
    }
}

/// Reads a record that this module wrote itself.
pub fn parsed(text: &str) -> Record {
    record(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Copies a record to another owner, as a wildcard does.
fn owned_by(record: &Record, name: &OwnedName) -> Record {
    Record::new(name.clone(), record.class(), record.ttl(), record.data().clone())
}

fn wildcard(parent: &OwnedName) -> Option<OwnedName> {
    Name::from_octets([b"\x01*", parent.as_slice()].concat()).ok()
}
