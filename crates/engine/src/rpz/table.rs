//! Response policy zones (draft-vixie-dnsop-dns-rpz-00): what is done with an answer because of the name asked, the names
//! that it leads through, the addresses in it, or who asks. The tables that decide; `enforce.rs` acts.
//!
//! Precedence is the draft's (section 5): the earliest name of a chain, then the first zone, then the kind of trigger
//! (client, name, address), then the closest name or the longest network, then the lowest address. What does not depend
//! on the question is settled when the tables are built: a name keeps the rule of the first zone that has it, and networks
//! are ranked. So millions of triggers cost a question one walk over the labels of its name, and an address a binary search.

use crate::base::name_table::NameTable;
use crate::base::network::Network;
use crate::base::range_map::{NO_MATCH, RangeMap, TooManyEntries, client_spans, span4, span6};
use crate::dns64::config::{Dns64, is_excluded};
use crate::dns64::embed::{self, Embedding};
use crate::dns64::rules::Applicable;
use crate::local::record::LocalRecord;
use crate::message::cname_chain::Chain;
use core::net::Ipv6Addr;
use core::ops::ControlFlow;
use std::collections::HashMap;
use std::fmt;
use wire::{Message, Section, Type};

/// Triggers of all zones together: 2^23 at about 115 octets each (the name, its place in the heap, its slots in the table,
/// its rules) are 920 MiB, and at 270 while they are read 2.1 GiB.
pub const TRIGGERS: usize = 1 << 23;

/// Networks among them: each cuts a line of addresses in two places, and 2^21 parts at 20 octets are 40 MiB.
pub const NETWORKS: usize = 1 << 20;

/// Zones: their number must fit the rules, and nobody has so many.
pub const ZONES: usize = 64;

/// What a rule watches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// This very name, in wire form and lower case.
    Name(Box<[u8]>),
    /// Every name below this one, but not the name itself.
    Below(Box<[u8]>),
    /// An address in an answer; IPv4 as IPv4-mapped.
    Address(Network),
    /// A client; IPv4 as IPv4-mapped.
    Client(Network),
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The name does not exist.
    NxDomain,
    /// The name has no records of the type asked.
    NoData,
    /// Nothing, and no other rule is looked at.
    Passthru,
    /// No answer at all.
    Drop,
    /// Over UDP an empty answer with TC, so that the client asks over TCP; nothing over TCP.
    TcpOnly,
    /// These records are all that the name has. Their owners are not looked at.
    Data(Box<[LocalRecord]>),
    /// The name is an alias of itself with this name at its end (`*.garden.example.`).
    Suffix(Box<[u8]>),
}

/// One rule of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// When it applies.
    pub trigger: Trigger,
    /// What is done then.
    pub action: Action,
    /// How long a denial may be kept, in seconds.
    pub ttl: u32,
}

/// A response policy zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyZone {
    /// Its SOA record, which tells in an answer whose work that is.
    pub soa: LocalRecord,
    /// Its rules; of several with the same trigger the last counts.
    pub entries: Vec<PolicyRule>,
}

/// Why zones cannot be used.
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

/// A rule, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledRule {
    /// The number of its zone; the lowest wins.
    pub zone: u16,
    pub action: Action,
    pub ttl: u32,
}

/// The rules of one name: for itself, and for the names below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PolicyNode {
    exact: u32,
    below: u32,
}

/// Where a rule was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub rule: u32,
    pub zone: u16,
}

/// In the place of a rule's number: none has been found yet.
pub const NO_RULE_YET: u32 = u32::MAX;

/// In the place of a rule's number: no rule counts any more.
pub const PASSTHRU: u32 = u32::MAX - 1;

/// All zones in tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponsePolicy {
    soas: Vec<LocalRecord>,
    rules: Vec<CompiledRule>,
    names: NameTable,
    nodes: Vec<PolicyNode>,
    /// Rules of networks in answers, the strongest first.
    ranked: Vec<u32>,
    /// For addresses, places in `ranked`.
    ipv4: RangeMap<u32>,
    ipv6: RangeMap<u128>,
    /// Rules of clients, the strongest first, and for clients the places among them.
    of_clients: Vec<u32>,
    clients: RangeMap<u128>,
    /// The first zone that watches addresses in answers; none: as many as there are zones.
    first_watching: u16,
}

impl ResponsePolicy {
    /// Builds the tables. The order of the zones is their precedence.
    pub fn build(zones: Vec<PolicyZone>) -> Result<ResponsePolicy, TooMany> {
        if zones.len() > ZONES {
            return Err(TooMany::Zones);
        }
        if zones.iter().map(|zone| zone.entries.len()).sum::<usize>() > TRIGGERS {
            return Err(TooMany::Triggers);
        }
        let mut made = ResponsePolicy { first_watching: zones.len() as u16, ..ResponsePolicy::default() };
        let mut nodes: HashMap<Box<[u8]>, PolicyNode> = HashMap::new();
        let (mut addresses, mut clients) = (Vec::new(), Vec::new());
        let mut alike = HashMap::new();
        for (zone, PolicyZone { soa, entries }) in (0..).zip(zones) {
            made.soas.push(soa);
            for PolicyRule { trigger, action, ttl } in entries {
                let rule = made.rule(CompiledRule { zone, action, ttl }, &mut alike);
                let empty = PolicyNode { exact: NO_MATCH, below: NO_MATCH };
                match trigger {
                    Trigger::Name(name) => {
                        let place = &mut nodes.entry(name).or_insert(empty).exact;
                        *place = made.stronger(*place, rule);
                    }
                    Trigger::Below(name) => {
                        let place = &mut nodes.entry(name).or_insert(empty).below;
                        *place = made.stronger(*place, rule);
                    }
                    Trigger::Address(network) => {
                        made.first_watching = made.first_watching.min(zone);
                        addresses.push((rank(zone, &network), rule, network));
                    }
                    Trigger::Client(network) => clients.push((rank(zone, &network), rule, network)),
                }
            }
        }
        if addresses.len() + clients.len() > NETWORKS {
            return Err(TooMany::Networks);
        }
        addresses.sort_by_key(|&(rank, ..)| rank);
        clients.sort_by_key(|&(rank, ..)| rank);
        let (mut spans4, mut spans6) = (Vec::new(), Vec::new());
        for (place, (_, rule, network)) in (0..).zip(&addresses) {
            made.ranked.push(*rule);
            if is_ipv4(network) {
                spans4.push((span4(network), place));
            } else {
                spans6.push((span6(network), place));
            }
        }
        let mut of_clients = Vec::new();
        for (place, (_, rule, network)) in (0..).zip(&clients) {
            made.of_clients.push(*rule);
            of_clients.extend(client_spans(network).map(|span| (span, place)));
        }
        // Two cuts for each span, and two spans at most for each network.
        let mut room = 4 * NETWORKS;
        let too_many = |_: TooManyEntries| TooMany::Networks;
        made.ipv4 = RangeMap::lowest(spans4, &mut room).map_err(too_many)?;
        made.ipv6 = RangeMap::lowest(spans6, &mut room).map_err(too_many)?;
        made.clients = RangeMap::lowest(of_clients, &mut room).map_err(too_many)?;
        let (names, nodes) = nodes.into_iter().unzip();
        made.names = NameTable::new(names);
        made.nodes = nodes;
        Ok(made)
    }

    /// The number of a rule; rules without data of their own that are alike share one.
    fn rule(&mut self, rule: CompiledRule, alike: &mut HashMap<(u16, u8, u32), u32>) -> u32 {
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
        let number = *alike.entry((rule.zone, kind, rule.ttl)).or_insert(next);
        if number == next {
            self.rules.push(rule);
        }
        number
    }

    /// Of two rules with the same trigger the one of the earlier zone, and of the same zone the later one.
    fn stronger(&self, known: u32, new: u32) -> u32 {
        match self.hit(known) {
            Some(known) if known.zone < self.rules[new as usize].zone => known.rule,
            _ => new,
        }
    }

    /// Whether there are no zones.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.soas.is_empty()
    }

    /// Rules, after those that are alike were put together.
    pub(crate) fn rule_of(&self, number: u32) -> Option<(&CompiledRule, &LocalRecord)> {
        let rule = self.rules.get(number as usize)?;
        Some((rule, self.soas.get(usize::from(rule.zone))?))
    }

    fn hit(&self, rule: u32) -> Option<Hit> {
        self.rules.get(rule as usize).map(|found| Hit { rule, zone: found.zone })
    }

    /// The rule for a name in wire form: of the first zone that has one, and there the closest.
    #[inline]
    pub(crate) fn of_name(&self, name: &[u8]) -> Option<Hit> {
        let mut best: Option<Hit> = None;
        self.names.find(name, |number, before| {
            let node = &self.nodes[number];
            // From the root on, so what comes later is closer; a name that is watched itself comes last.
            let found = if before == 0 { node.exact } else { node.below };
            if let Some(hit) = self.hit(found)
                && best.is_none_or(|best| hit.zone <= best.zone)
            {
                best = Some(hit);
            }
        });
        best
    }

    /// The rule for whoever asks.
    #[inline]
    pub(crate) fn of_client(&self, client: Ipv6Addr) -> Option<Hit> {
        self.hit(*self.of_clients.get(self.clients.find(u128::from(client)) as usize)?)
    }

    /// The rule for a question, before anything is known of its answer. `client`: none behind an alias, where who asks
    /// has been looked at.
    #[inline]
    pub(crate) fn of_question(&self, client: Option<Ipv6Addr>, name: &[u8]) -> Option<Hit> {
        // Draft section 5.4: a client goes before a name, in the same zone.
        first(client.and_then(|client| self.of_client(client)), self.of_name(name))
    }

    /// Whether an answer with addresses may fall under a rule that goes before this one.
    #[inline]
    pub(crate) fn is_open(&self, hit: Hit, qtype: Type) -> bool {
        hit.zone > self.first_watching && matches!(qtype, Type::A | Type::AAAA | Type::ANY)
    }

    /// The rule for an answer, and for which name of its chain. `client`: for the first name, who asks counts as well.
    pub(crate) fn of_reply(
        &self,
        reply: &ReplyAddresses<'_, '_>,
        client: Option<Ipv6Addr>,
    ) -> Option<(Hit, usize)> {
        let ReplyAddresses { chain, .. } = reply;
        let mut name = [0; 255];
        for place in 0..chain.len() {
            let length = chain.name(place).write(&mut name);
            let name = &name[..length];
            let found = self.of_question(client.filter(|_| place == 0), name);
            let found = if place + 1 == chain.len() { first(found, self.of_addresses(reply)) } else { found };
            if let Some(hit) = found {
                return Some((hit, place));
            }
        }
        None
    }

    /// The strongest rule for an address of an answer.
    fn of_addresses(&self, reply: &ReplyAddresses<'_, '_>) -> Option<Hit> {
        if self.ranked.is_empty() {
            return None;
        }
        let ReplyAddresses { message, chain, dns64, rules, excludes } = *reply;
        let mut lowest = NO_MATCH;
        for record in message.records(Section::Answer).filter(|record| chain.keeps(record)) {
            if let Some(address) = record.address4() {
                lowest = lowest.min(self.ipv4.find(u32::from_be_bytes(address)));
            } else if let Some(address) = record.address6()
                && !(excludes && is_excluded(&record, Some(dns64)))
            {
                lowest = lowest.min(self.ipv6.find(u128::from_be_bytes(address)));
                if let Some(inner) = embedded(dns64, address) {
                    lowest = lowest.min(self.ipv4.find(u32::from_be_bytes(inner)));
                }
            }
        }
        // What will be made of them.
        if let Some(rules) = rules {
            embed::decide_addresses(message, chain, dns64, rules, |decision| {
                if let (Embedding::Embedded, Some(prefix)) = (decision.fate, decision.prefix) {
                    let address = prefix.embed(decision.address);
                    lowest = lowest.min(self.ipv6.find(u128::from_be_bytes(address)));
                }
                ControlFlow::Continue(())
            });
        }
        self.hit(*self.ranked.get(lowest as usize)?)
    }
}

/// An answer whose addresses are looked at.
pub(crate) struct ReplyAddresses<'m, 'a> {
    pub message: &'m Message<'a>,
    pub chain: &'m Chain<'a>,
    pub dns64: &'m Dns64,
    /// The rules by which AAAA records will be made of A records; none: none will be.
    pub rules: Option<&'m Applicable<'m>>,
    /// Whether AAAA records that are excluded count as absent.
    pub excludes: bool,
}

/// Of two rules that apply the one of the earlier zone, in the same zone the first of the two.
fn first(one: Option<Hit>, other: Option<Hit>) -> Option<Hit> {
    match (one, other) {
        (Some(one), Some(other)) if other.zone < one.zone => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// Draft section 5: the zone, then the longer network, then the lower address.
fn rank(zone: u16, network: &Network) -> (u16, u32, u128) {
    (zone, network.mask.count_zeros(), network.address)
}

/// Whether a network is one of IPv4 addresses, which are kept as IPv4-mapped.
fn is_ipv4(network: &Network) -> bool {
    network.mask.count_ones() >= 96 && network.address >> 32 == 0xffff
}

/// The IPv4 address in an IPv6 address under a prefix of ours, or under the well-known one, whoever made it.
fn embedded(dns64: &Dns64, address: [u8; 16]) -> Option<[u8; 4]> {
    let general = dns64.prefixes.iter().chain([&pref64::WELL_KNOWN]).find(|prefix| prefix.contains(address));
    general.or_else(|| dns64.rules.prefix_of(address))?.extract(address)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
