//! What the common upstream knows: zones and the names in them. It answers as a resolver does: aliases followed to
//! their end, wildcards expanded, DNAMEs applied, the SOA with what is negative, signatures for those who ask with DO.
//! So servers that follow aliases by themselves and servers that do not are told the same.

use crate::message::{Flag, Transport, UpstreamQuery};
use crate::record::{OwnedName, Record, record};
use crate::script::ReplyContent;
use crate::upstream::ReplySource;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::{Name, ToName};
use domain::rdata::ZoneRecordData;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Aliases followed before the zone_data gives up, as resolvers do.
const MAX_ALIASES: usize = 16;

/// Labels and octets of a signature that nobody checks: the servers that are compared do not validate.
const SIGNATURE: &str = "13 3 3600 20380101000000 20200101000000 12345";
const SIGNATURE_OCTETS: &str =
    "c2l4Zm9sZHNpeGZvbGRzaXhmb2xkc2l4Zm9sZHNpeGZvbGRzaXhmb2xkc2l4Zm9sZHNpeGZvbGRzaXhmb2xkYQ==";

/// How a zone answers.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    /// Goes with what is negative, if there is one (RFC 2308 section 2.2 has answers without).
    pub soa: Option<Record>,
    /// Records have signatures.
    pub signed: bool,
    /// The upstream says that it has validated what is in this zone.
    pub secure: bool,
    /// The upstream stops at an alias, and leaves the rest to the server.
    pub unfinished: bool,
}

/// How a question for one type fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with this RCODE and nothing else but, for NXDOMAIN, the SOA.
    Rcode(Rcode),
    /// It is not answered.
    Silence,
}

/// What is known of one name.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its records.
    pub records: Vec<Record>,
    /// Types for which questions fail.
    pub faults: Vec<(Rtype, Fault)>,
}

/// All zones and names.
#[derive(Debug)]
pub struct ZoneData {
    zones: HashMap<OwnedName, Zone>,
    nodes: HashMap<OwnedName, Node>,
    /// The names with nodes and all above them: these exist.
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
    /// Adds a zone; its SOA and a name server are found at its apex.
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

    /// Makes questions for a type of this name fail.
    pub fn fail(&mut self, owner: &OwnedName, rtype: Rtype, fault: Fault) {
        self.add(owner, Vec::new());
        self.nodes.entry(owner.clone()).or_default().faults.push((rtype, fault));
    }

    /// Whether there is a zone of this name.
    pub fn has_zone(&self, apex: &OwnedName) -> bool {
        self.zones.contains_key(apex)
    }

    /// The zone that a name is in.
    fn zone_of(&self, name: &OwnedName) -> (OwnedName, &Zone) {
        let mut suffixes = name.iter_suffixes().map(|suffix| suffix.to_vec());
        suffixes
            .find_map(|suffix| self.zones.get(&suffix).map(|zone| (suffix.clone(), zone)))
            .expect("the root is a zone")
    }

    /// The node of a name: its own, or that of the wildcard next to its closest ancestor (RFC 4592 section 3.3.1).
    fn node_of(&self, name: &OwnedName) -> Option<&Node> {
        if self.existing.contains(name) {
            return self.nodes.get(name);
        }
        let closest = name.iter_suffixes().skip(1).map(|suffix| suffix.to_vec());
        let closest = closest.into_iter().find(|suffix| self.existing.contains(suffix))?;
        self.nodes.get(&wildcard(&closest)?)
    }

    /// The DNAME above a name, and where it leads: nowhere, if the new name is too long (RFC 6672 section 2.2).
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

    /// The reply to a question; none, if there is to be no reply at all.
    pub fn reply(&self, query: &UpstreamQuery) -> Option<ReplyContent> {
        self.look_up(query, false, false)
    }

    /// What one learns who kind for the rest wherever the upstream stops at an alias.
    pub fn whole_reply(&self, query: &UpstreamQuery) -> Option<ReplyContent> {
        self.look_up(query, true, false)
    }

    /// What one learns who follows aliases for ANY too, unless they are signed.
    pub fn any_reply(&self, query: &UpstreamQuery) -> Option<ReplyContent> {
        self.look_up(query, true, true)
    }

    fn look_up(&self, query: &UpstreamQuery, to_the_end: bool, any_follows: bool) -> Option<ReplyContent> {
        let mut content = ReplyContent::new(Rcode::NOERROR);
        let mut reply = ReplyBuilder { content: &mut content, dnssec_ok: query.dnssec_ok(), secure: true };
        let mut name = query.name.clone();
        let mut stopped = false;
        for _ in 0..MAX_ALIASES {
            let (apex, zone) = self.zone_of(&name);
            reply.secure &= zone.secure;
            let mut node = self.node_of(&name);
            if node.is_none() && !self.existing.contains(&name) {
                if let Some((dname, target)) = self.dname_above(&name) {
                    reply.answer(&apex, zone, vec![dname.clone()]);
                    let Some(target) = target else {
                        reply.content.rcode = Rcode::YXDOMAIN;
                        return Some(content);
                    };
                    let ttl = dname.ttl().as_secs();
                    let alias = format!("{} {ttl} IN CNAME {}", name.fmt_with_dot(), target.fmt_with_dot());
                    reply.content.answers.push(parsed(&alias));
                    name = target;
                    if query.rtype == Rtype::CNAME || query.rtype == Rtype::ANY && !any_follows {
                        reply.end();
                        return Some(content);
                    }
                    continue;
                }
                reply.negative(&apex, zone, Rcode::NXDOMAIN);
                return Some(content);
            }
            let nothing = Node::default();
            let node = node.get_or_insert(&nothing);
            match node.faults.iter().find(|(rtype, _)| *rtype == query.rtype) {
                Some((_, Fault::Silence)) => return None,
                Some((_, Fault::Rcode(Rcode::NXDOMAIN))) => {
                    reply.negative(&apex, zone, Rcode::NXDOMAIN);
                    return Some(content);
                }
                // Failures have no records; but those of replies before this one have been seen.
                Some((_, Fault::Rcode(rcode))) if !stopped => return Some(ReplyContent::new(*rcode)),
                Some((_, Fault::Rcode(rcode))) => {
                    reply.content.rcode = *rcode;
                    return Some(content);
                }
                None => {}
            }
            let of = |rtype: Rtype| {
                let wanted =
                    node.records.iter().filter(|record| rtype == Rtype::ANY || record.rtype() == rtype);
                wanted.map(|record| owned_by(record, &name)).collect::<Vec<Record>>()
            };
            let found = of(query.rtype);
            if query.class != Class::IN {
                reply.negative(&apex, zone, Rcode::NOERROR);
                return Some(content);
            }
            let is_alias = found.iter().any(|record| record.rtype() == Rtype::CNAME);
            let leads_on = is_alias && any_follows && !zone.signed;
            if !found.is_empty() && !leads_on {
                reply.answer(&apex, zone, found);
                reply.end();
                return Some(content);
            }
            let alias = of(Rtype::CNAME);
            let Some(ZoneRecordData::Cname(target)) = alias.first().map(|record| record.data().clone())
            else {
                reply.negative(&apex, zone, Rcode::NOERROR);
                return Some(content);
            };
            reply.answer(&apex, zone, alias);
            stopped |= zone.unfinished;
            if zone.unfinished && !to_the_end {
                reply.end();
                return Some(content);
            }
            name = target.cname().clone();
        }
        Some(ReplyContent::new(Rcode::SERVFAIL))
    }
}

/// A source that many upstreams can share.
#[derive(Clone, Debug)]
pub struct SharedZoneData(pub Arc<ZoneData>);

impl ReplySource for SharedZoneData {
    fn reply(&mut self, query: &UpstreamQuery, _: Transport) -> Option<ReplyContent> {
        self.0.reply(query)
    }
}

/// A reply while it is written.
struct ReplyBuilder<'c> {
    content: &'c mut ReplyContent,
    dnssec_ok: bool,
    secure: bool,
}

impl ReplyBuilder<'_> {
    /// Adds RRsets, each with its signature.
    fn answer(&mut self, apex: &OwnedName, zone: &Zone, records: Vec<Record>) {
        let signatures = self.signatures(apex, zone, &records);
        self.content.answers.extend(records.into_iter().chain(signatures));
    }

    /// Ends the reply without an answer to the question.
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
            // Not through text: an owner may have letters that are special there.
            signatures.push(owned_by(&parsed(&text), record.owner()));
        }
        signatures
    }
}

/// A record of the zone_data's own making.
pub fn parsed(text: &str) -> Record {
    record(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The same record at another name: what a wildcard does.
fn owned_by(record: &Record, name: &OwnedName) -> Record {
    Record::new(name.clone(), record.class(), record.ttl(), record.data().clone())
}

fn wildcard(parent: &OwnedName) -> Option<OwnedName> {
    Name::from_octets([b"\x01*", parent.as_slice()].concat()).ok()
}
