//! Tables of response policy zones (draft-vixie-dnsop-dns-rpz-00): they find the rule for a question or a reply by its
//! triggers. A trigger is the name of the question, a name of the CNAME chain, an address of the answer (also in a hint), or the address of
//! the client. `resolve/here.rs` carries out the rule's action.
//!
//! The precedence is that of section 5 of the draft: the earliest name of a chain, then the first zone, then the kind of
//! trigger (client, name, address), then the closest name or the longest network, then the lowest address. The part that does
//! not depend on the question is decided when the tables are built: a name keeps the rule of the first zone that has it, and
//! networks are ranked. So with millions of triggers a question costs one walk over the labels of its name, and an address one
//! binary search.

use crate::base::name_table::NameTable;
use crate::base::network::Network;
use crate::base::range_map::{NO_MATCH, RangeMap, TooManyEntries, client_spans, span4, span6};
use crate::dns64::config::{Dns64, is_excluded};
use crate::dns64::embed;
use crate::dns64::rules::Applicable;
use crate::local::record::LocalRecord;
use crate::message::cname_chain::Chain;
use crate::reasons::PolicyAction;
use crate::rpz::zone_source::ZoneSource;
use core::net::Ipv6Addr;
use core::ops::ControlFlow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wire::service_binding::Hint;
use wire::{Message, Section, Type};

/// Limit of triggers of all zones together: 2^23 at about 123 octets each (the name, its place in the heap, its slots in the
/// table, its rules and their lines) are 984 MiB. While they are read, at 270 octets each, they are 2.1 GiB.
pub const TRIGGERS: usize = 1 << 23;

/// Limit of triggers that are networks: each cuts the range of addresses in two places, and 2^21 parts at 20 octets are 40 MiB.
pub const NETWORKS: usize = 1 << 20;

/// Limit of zones: the number of a zone must fit into a rule, and more than this are not in use.
pub const ZONES: usize = 64;

/// Condition under which a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Exactly this name, in wire form and lower case.
    Name(Box<[u8]>),
    /// Every name below this one, without the name itself.
    Below(Box<[u8]>),
    /// An address of this network in an answer; IPv4 as IPv4-mapped.
    Address(Network),
    /// A client of this network; IPv4 as IPv4-mapped.
    Client(Network),
}

/// Action of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The answer is NXDOMAIN: the name does not exist.
    NxDomain,
    /// The answer is NODATA: the name has no records of the type asked for.
    NoData,
    /// The answer is not changed, and no other rule applies.
    Passthru,
    /// No answer at all.
    Drop,
    /// Over UDP the answer is empty with TC, so that the client asks over TCP. Over TCP the answer is not changed.
    TcpOnly,
    /// The name has exactly these records. Their owners are ignored.
    Data(Box<[LocalRecord]>),
    /// The name is an alias: the target is the name itself followed by this name (`*.garden.example.`).
    Suffix(Box<[u8]>),
}

impl Action {
    /// The action on a query. `over_udp`: it came over UDP, the only transport on which TCP-Only has an effect.
    pub(crate) fn applied(&self, over_udp: bool) -> PolicyAction {
        match self {
            Action::NxDomain => PolicyAction::NxDomain,
            Action::NoData => PolicyAction::NoData,
            Action::Drop => PolicyAction::Drop,
            Action::TcpOnly if over_udp => PolicyAction::TcpOnly,
            Action::Passthru | Action::TcpOnly => PolicyAction::Passthru,
            Action::Data(_) | Action::Suffix(_) => PolicyAction::LocalData,
        }
    }
}

/// One rule of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// Trigger.
    pub trigger: Trigger,
    /// Action.
    pub action: Action,
    /// TTL of a negative answer, in seconds.
    pub ttl: u32,
}

/// A response policy zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyZone {
    /// SOA record, which names the zone in the additional section of an answer.
    pub soa: LocalRecord,
    /// Rules; of several with the same trigger the last one applies.
    pub entries: Vec<PolicyRule>,
}

/// Limit that the zones exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// More than [`ZONES`].
    Zones,
    /// More than [`TRIGGERS`].
    Triggers,
    /// More than [`NETWORKS`].
    Networks,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooMany::Zones => write!(f, "there are more than {ZONES} response policy zones"),
            TooMany::Triggers => write!(f, "the response policy zones have more than {TRIGGERS} triggers"),
            TooMany::Networks => write!(f, "the response policy zones name more than {NETWORKS} networks"),
        }
    }
}

impl std::error::Error for TooMany {}

/// One rule of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledRule {
    /// Number of its zone; the lowest number has precedence.
    pub zone: u16,
    /// Action.
    pub action: Action,
    /// TTL of a negative answer, in seconds.
    pub ttl: u32,
}

/// Numbers of the rules of one name: for the name itself, and for the names below it. Their lines are for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PolicyNode {
    pub exact: u32,
    pub below: u32,
    pub exact_line: u32,
    pub below_line: u32,
}

/// A rule that was found, and its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleMatch {
    /// Number of the rule.
    pub rule: u32,
    /// Number of its zone.
    pub zone: u16,
}

/// Value for a rule's number: no rule has been found yet.
pub const NO_RULE_YET: u32 = u32::MAX;

/// Value for a rule's number: no rule applies any more.
pub const PASSTHRU: u32 = u32::MAX - 1;

/// Tables of all response policy zones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponsePolicy {
    pub(super) soas: Vec<Arc<LocalRecord>>,
    /// Files of the zones.
    pub(super) files: Vec<Box<str>>,
    rules: Vec<CompiledRule>,
    pub(super) names: NameTable,
    pub(super) nodes: Vec<PolicyNode>,
    /// Rules of networks in answers, those with precedence first, and the networks with their lines.
    pub(super) address_rules: Vec<u32>,
    pub(super) address_sources: Vec<(Network, u32)>,
    /// For addresses, indices in `address_rules`.
    ipv4: RangeMap<u32>,
    ipv6: RangeMap<u128>,
    /// Rules of clients, those with precedence first, and for client addresses the indices in them.
    pub(super) client_rules: Vec<u32>,
    pub(super) client_sources: Vec<(Network, u32)>,
    clients: RangeMap<u128>,
    /// Number of the first zone with triggers for addresses in answers; if there is none, the number of zones.
    first_address_zone: u16,
}

impl ResponsePolicy {
    /// Builds the tables. The order of the zones is their precedence.
    ///
    /// # Errors
    ///
    /// `TooMany` names the limit that the zones exceed together: number of zones (`ZONES`), of triggers (`TRIGGERS`), or of networks in
    /// triggers (`NETWORKS`).
    pub fn build(zones: Vec<PolicyZone>) -> Result<ResponsePolicy, TooMany> {
        let zones = zones.into_iter().map(|zone| (zone, ZoneSource::default()));
        ResponsePolicy::build_with_sources(zones.collect())
    }

    /// Builds the tables, and keeps the source of each zone for operators.
    ///
    /// # Errors
    ///
    /// As [`ResponsePolicy::build`].
    pub fn build_with_sources(zones: Vec<(PolicyZone, ZoneSource)>) -> Result<ResponsePolicy, TooMany> {
        if zones.len() > ZONES {
            return Err(TooMany::Zones);
        }
        if zones.iter().map(|(zone, _)| zone.entries.len()).sum::<usize>() > TRIGGERS {
            return Err(TooMany::Triggers);
        }
        let mut policy =
            ResponsePolicy { first_address_zone: zones.len() as u16, ..ResponsePolicy::default() };
        let mut nodes: HashMap<Box<[u8]>, PolicyNode> = HashMap::new();
        let (mut addresses, mut clients) = (Vec::new(), Vec::new());
        let mut shared = HashMap::new();
        for (zone, (PolicyZone { soa, entries }, source)) in (0..).zip(zones) {
            policy.soas.push(Arc::new(soa));
            policy.files.push(source.file);
            let lines = source.lines.into_iter().chain(core::iter::repeat(0));
            for (PolicyRule { trigger, action, ttl }, line) in entries.into_iter().zip(lines) {
                let rule = policy.rule(CompiledRule { zone, action, ttl }, &mut shared);
                let empty = PolicyNode { exact: NO_MATCH, below: NO_MATCH, exact_line: 0, below_line: 0 };
                match trigger {
                    Trigger::Name(name) => {
                        let node = nodes.entry(name).or_insert(empty);
                        let before = (node.exact, node.exact_line);
                        (node.exact, node.exact_line) = policy.stronger(before, (rule, line));
                    }
                    Trigger::Below(name) => {
                        let node = nodes.entry(name).or_insert(empty);
                        let before = (node.below, node.below_line);
                        (node.below, node.below_line) = policy.stronger(before, (rule, line));
                    }
                    Trigger::Address(network) => {
                        policy.first_address_zone = policy.first_address_zone.min(zone);
                        addresses.push((rank(zone, &network), rule, (network, line)));
                    }
                    Trigger::Client(network) => {
                        clients.push((rank(zone, &network), rule, (network, line)));
                    }
                }
            }
        }
        if addresses.len() + clients.len() > NETWORKS {
            return Err(TooMany::Networks);
        }
        policy.set_networks(addresses, clients)?;
        let (names, nodes) = nodes.into_iter().unzip();
        policy.names = NameTable::new(names);
        policy.nodes = nodes;
        Ok(policy)
    }

    /// Fills the tables of address and client triggers. A network that ranks first wins where networks overlap.
    fn set_networks(
        &mut self,
        mut addresses: Vec<RankedNetwork>,
        mut clients: Vec<RankedNetwork>,
    ) -> Result<(), TooMany> {
        addresses.sort_by_key(|&(rank, ..)| rank);
        clients.sort_by_key(|&(rank, ..)| rank);
        let (mut spans4, mut spans6) = (Vec::new(), Vec::new());
        for (place, (_, rule, source @ (network, _))) in (0..).zip(&addresses) {
            self.address_rules.push(*rule);
            self.address_sources.push(*source);
            if is_ipv4(network) {
                spans4.push((span4(network), place));
            } else {
                spans6.push((span6(network), place));
            }
        }
        let mut client_ranges = Vec::new();
        for (place, (_, rule, source @ (network, _))) in (0..).zip(&clients) {
            self.client_rules.push(*rule);
            self.client_sources.push(*source);
            client_ranges.extend(client_spans(network).map(|span| (span, place)));
        }
        // Two cuts for each span, and two spans at most for each network.
        let mut room = 4 * NETWORKS;
        let too_many = |_: TooManyEntries| TooMany::Networks;
        self.ipv4 = RangeMap::lowest(spans4, &mut room).map_err(too_many)?;
        self.ipv6 = RangeMap::lowest(spans6, &mut room).map_err(too_many)?;
        self.clients = RangeMap::lowest(client_ranges, &mut room).map_err(too_many)?;
        Ok(())
    }

    /// Returns the number of a rule. Rules without data that have the same zone, action and TTL share one number.
    fn rule(&mut self, rule: CompiledRule, shared: &mut HashMap<(u16, u8, u32), u32>) -> u32 {
        let next = self.rules.len() as u32;
        let kind = match rule.action {
            Action::NxDomain => 0,
            Action::NoData => 1,
            Action::Passthru => 2,
            Action::Drop => 3,
            Action::TcpOnly => 4,
            Action::Data(_) | Action::Suffix(_) => {
                self.rules.push(rule);
                return next;
            }
        };
        let number = *shared.entry((rule.zone, kind, rule.ttl)).or_insert(next);
        if number == next {
            self.rules.push(rule);
        }
        number
    }

    /// Returns the rule with precedence of two with the same trigger, with its line: that of the earlier zone, in one zone the later
    /// rule.
    fn stronger(&self, old: (u32, u32), new: (u32, u32)) -> (u32, u32) {
        match self.rule_match(old.0) {
            Some(found) if found.zone < self.rules[new.0 as usize].zone => old,
            _ => new,
        }
    }

    /// True if there are no zones.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.soas.is_empty()
    }

    /// Returns the rule with a number, and the SOA record of its zone.
    pub(crate) fn rule_of(&self, number: u32) -> Option<(&CompiledRule, &Arc<LocalRecord>)> {
        let rule = self.rules.get(number as usize)?;
        Some((rule, self.soas.get(usize::from(rule.zone))?))
    }

    fn rule_match(&self, rule: u32) -> Option<RuleMatch> {
        self.rules.get(rule as usize).map(|found| RuleMatch { rule, zone: found.zone })
    }

    /// Finds the rule for a name in wire form: of the first zone that has one, the rule of the closest name.
    #[inline]
    pub(crate) fn of_name(&self, name: &[u8]) -> Option<RuleMatch> {
        let mut best: Option<RuleMatch> = None;
        self.names.find(name, |number, before| {
            let node = &self.nodes[number];
            // The walk starts at the root, so a later match is closer; an exact match comes last.
            let found = if before == 0 { node.exact } else { node.below };
            if let Some(hit) = self.rule_match(found)
                && best.is_none_or(|best| hit.zone <= best.zone)
            {
                best = Some(hit);
            }
        });
        best
    }

    /// Finds the rule for the address of a client.
    #[inline]
    pub(crate) fn of_client(&self, client: Ipv6Addr) -> Option<RuleMatch> {
        self.rule_match(*self.client_rules.get(self.client_place(client))?)
    }

    /// Index in `client_rules` of the rule for the address of a client.
    #[inline]
    pub(super) fn client_place(&self, client: Ipv6Addr) -> usize {
        self.clients.find(u128::from(client)) as usize
    }

    /// Finds the rule for a question before its answer is known. `client`: none behind an alias, as the client's address has been
    /// checked with the first name.
    #[inline]
    pub(crate) fn of_question(&self, client: Option<Ipv6Addr>, name: &[u8]) -> Option<RuleMatch> {
        // Draft section 5.4: in one zone, a client trigger goes before a name trigger.
        earlier_zone(client.and_then(|client| self.of_client(client)), self.of_name(name))
    }

    /// True if an address in the answer may match a rule with precedence over this one.
    #[inline]
    pub(crate) fn is_open(&self, hit: RuleMatch, qtype: Type) -> bool {
        self.gives_way_to_addresses(hit)
            && matches!(qtype, Type::A | Type::AAAA | Type::SVCB | Type::HTTPS | Type::ANY)
    }

    /// True if a zone before that of the rule has triggers for addresses.
    #[inline]
    pub(crate) fn gives_way_to_addresses(&self, hit: RuleMatch) -> bool {
        hit.zone > self.first_address_zone
    }

    /// Finds the rule for a reply, and the index of the name of its chain that the rule is for. `client`: the address that is
    /// checked together with the first name.
    pub(crate) fn of_reply(
        &self,
        reply: &ReplyAddresses<'_, '_>,
        client: Option<Ipv6Addr>,
    ) -> Option<(RuleMatch, usize)> {
        let ReplyAddresses { chain, .. } = reply;
        let mut name = [0; 255];
        for place in 0..chain.len() {
            let length = chain.name(place).write(&mut name);
            let name = &name[..length];
            let found = self.of_question(client.filter(|_| place == 0), name);
            let found =
                if place + 1 == chain.len() { earlier_zone(found, self.of_addresses(reply)) } else { found };
            if let Some(hit) = found {
                return Some((hit, place));
            }
        }
        None
    }

    /// Finds the rule with precedence among those for the addresses of a reply.
    fn of_addresses(&self, reply: &ReplyAddresses<'_, '_>) -> Option<RuleMatch> {
        if self.address_rules.is_empty() {
            return None;
        }
        self.rule_match(*self.address_rules.get(self.address_place(reply))?)
    }

    /// Index in `address_rules` of the rule with precedence among those for the addresses of a reply.
    pub(super) fn address_place(&self, reply: &ReplyAddresses<'_, '_>) -> usize {
        let ReplyAddresses { message, chain, dns64, rules, excludes, ignores_aaaa } = *reply;
        let mut lowest = NO_MATCH;
        for record in message.records(Section::Answer).filter(|record| chain.keeps(record)) {
            if let Some(address) = record.address4() {
                // Those that are embedded follow below.
                if rules.is_some() {
                    continue;
                }
                lowest = lowest.min(self.ipv4.find(u32::from_be_bytes(address)));
            } else if let Some(address) = record.address6()
                && !ignores_aaaa
                && !(excludes && is_excluded(&record, Some(dns64)))
            {
                lowest = lowest.min(self.place_of_v6(address, dns64));
            } else {
                for hint in record.hints() {
                    lowest = lowest.min(match hint {
                        Hint::V4(address) => self.ipv4.find(u32::from_be_bytes(address)),
                        Hint::V6(address) => self.place_of_v6(address, dns64),
                        Hint::Malformed => NO_MATCH,
                    });
                }
            }
        }
        // The A records of which AAAA records will be synthesized, and these. No client gets the others.
        if let Some(rules) = rules {
            embed::decide_addresses(message, chain, dns64, rules, |decision| {
                if let Some(address) = decision.synthesized() {
                    lowest = lowest.min(self.ipv4.find(u32::from_be_bytes(decision.address)));
                    lowest = lowest.min(self.ipv6.find(u128::from_be_bytes(address)));
                }
                ControlFlow::Continue(())
            });
        }
        lowest as usize
    }

    /// Lowest index for an IPv6 address, and for an IPv4 address embedded in it.
    fn place_of_v6(&self, address: [u8; 16], dns64: &Dns64) -> u32 {
        let inner =
            dns64.embedded(address).map_or(NO_MATCH, |inner| self.ipv4.find(u32::from_be_bytes(inner)));
        inner.min(self.ipv6.find(u128::from_be_bytes(address)))
    }
}

/// A reply, and the settings that say which of its addresses are checked.
pub(crate) struct ReplyAddresses<'m, 'a> {
    /// The reply.
    pub message: &'m Message<'a>,
    /// Its CNAME chain.
    pub chain: &'m Chain<'a>,
    /// Settings of DNS64.
    pub dns64: &'m Dns64,
    /// Rules for synthesizing AAAA records from the A records; none if nothing will be synthesized.
    pub rules: Option<&'m Applicable<'m>>,
    /// True if excluded AAAA records count as absent.
    pub excludes: bool,
    /// True if all AAAA records count as absent (a rule with `real-aaaa = "ignore"`).
    pub ignores_aaaa: bool,
}

/// Returns the rule with precedence of two that apply: that of the earlier zone, in one zone the first of the two.
fn earlier_zone(one: Option<RuleMatch>, other: Option<RuleMatch>) -> Option<RuleMatch> {
    match (one, other) {
        (Some(one), Some(other)) if other.zone < one.zone => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// A network and its line, with its sort key and the index of its rule.
type RankedNetwork = (Rank, u32, (Network, u32));

/// Sort key of a network: zone, length of the host part in bits, address.
type Rank = (u16, u32, u128);

/// Sort key by precedence (draft section 5): the zone, then the longer network, then the lower address.
fn rank(zone: u16, network: &Network) -> Rank {
    (zone, network.mask.count_zeros(), network.address)
}

/// True if a network has IPv4 addresses, which are stored as IPv4-mapped.
fn is_ipv4(network: &Network) -> bool {
    network.mask.count_ones() >= 96 && network.address >> 32 == 0xffff
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
