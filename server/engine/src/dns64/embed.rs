//! Embedding of IPv4 addresses (RFC 6147 sections 5.1.6 and 5.1.7): decides for each address at the end of the CNAME chain under
//! which prefixes it is embedded, or why it is left out. Synthesis and explanation both use these functions, so they agree.

use crate::dns64::config::Dns64;
use crate::dns64::gateways::{Gateways, Unused};
use crate::dns64::rules::{Applicable, Rule};
use crate::limits::{DISTINCT, LISTED};
use crate::message::cname_chain::Chain;
use core::net::Ipv4Addr;
use core::ops::ControlFlow;
use pref64::Pref64;
use wire::{Message, Name, Record, Section, Type};

/// Decision about an IPv4 address under one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedding {
    /// It is embedded in an address under the prefix.
    Embedded,
    /// An explicit address mapping gives this address for it (RFC 7757), whatever the prefixes are.
    Mapped([u8; 16]),
    /// Left out: a network of `dns64.never-embed` contains it.
    NeverEmbed,
    /// Left out: it is not global, and the prefix is the well-known one (RFC 6052 section 3.1).
    NonGlobal,
    /// Left out: the first rule that matches has no prefixes.
    NoPrefix,
    /// Left out: the discovery has found no prefix.
    Undiscovered,
    /// Left out: the answer has `dns64.max-records` synthesized records already.
    BeyondMax,
    /// Not under this prefix, for a reason that does not depend on the address.
    Unused(Unused),
}

/// Decision about one address and prefix, with its reasons.
pub struct AddressDecision<'d, 'a> {
    /// Owner of the A record.
    pub owner: Name<'a>,
    /// Address in the A record.
    pub address: [u8; 4],
    /// Rule that gives the prefixes; `None` means the general prefixes `dns64.prefixes`.
    pub rule: Option<&'d Rule>,
    /// Prefix; `None` for [`Embedding::NoPrefix`] and [`Embedding::Undiscovered`], and for an address with a mapping.
    pub prefix: Option<&'d Pref64>,
    /// Decision about the address.
    pub fate: Embedding,
}

impl AddressDecision<'_, '_> {
    /// The address that is synthesized.
    #[inline]
    pub fn synthesized(&self) -> Option<[u8; 16]> {
        match (self.fate, self.prefix) {
            (Embedding::Embedded, Some(prefix)) => Some(prefix.embed(self.address)),
            (Embedding::Mapped(address), _) => Some(address),
            _ => None,
        }
    }
}

/// Numbers of addresses that a synthesis embedded and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingCounts {
    /// Records synthesized.
    pub records: usize,
    /// Left out: not global under the well-known prefix.
    pub non_global: u64,
    /// Left out: in a network of `dns64.never-embed`.
    pub never_embed: u64,
    /// Left out: the rule for it has no prefixes.
    pub by_rule: u64,
    /// Left out: more than `max-records`.
    pub beyond_max: u64,
    /// Left out: no gateway of its prefixes lives.
    pub unavailable: u64,
    /// Left out: no prefix was discovered.
    pub undiscovered: u64,
    /// Prefixes of the records, a bit for each whose answers are counted.
    pub prefixes: u64,
}

/// Lack of an answer without records, although the addresses may be embedded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// A gateway that lives.
    Gateway,
    /// A prefix: the discovery has found none.
    Prefix,
}

/// Bits of each number in a packed word.
const PACKED_BITS: u32 = 10;

impl EmbeddingCounts {
    /// Lack of the answer; none if it has records, or its addresses are left out for other reasons.
    #[inline]
    pub fn lack(&self) -> Option<Lack> {
        match self {
            _ if self.records > 0 => None,
            _ if self.unavailable > 0 => Some(Lack::Gateway),
            _ if self.undiscovered > 0 => Some(Lack::Prefix),
            _ => None,
        }
    }

    /// The addresses left out in the lowest 30 bits of a word. `None` if a rule left one out, or if there are too many.
    pub(crate) fn pack_omitted(&self) -> Option<u32> {
        let EmbeddingCounts { non_global, never_embed, by_rule, beyond_max, .. } = *self;
        let mut word = 0;
        for count in [non_global, never_embed, beyond_max] {
            let count = u32::try_from(count).ok().filter(|&count| count < 1 << PACKED_BITS)?;
            word = word << PACKED_BITS | count;
        }
        (by_rule == 0).then_some(word)
    }

    /// Reads the addresses left out from a packed word.
    pub(crate) fn unpack_omitted(word: u32) -> EmbeddingCounts {
        let count = |place: u32| u64::from(word >> (place * PACKED_BITS) & ((1 << PACKED_BITS) - 1));
        EmbeddingCounts {
            non_global: count(2),
            never_embed: count(1),
            beyond_max: count(0),
            ..EmbeddingCounts::default()
        }
    }

    #[inline]
    fn count(&mut self, fate: Embedding) {
        match fate {
            Embedding::Embedded | Embedding::Mapped(_) => self.records += 1,
            Embedding::NeverEmbed => self.never_embed += 1,
            Embedding::NonGlobal => self.non_global += 1,
            Embedding::NoPrefix => self.by_rule += 1,
            Embedding::Undiscovered => self.undiscovered += 1,
            Embedding::BeyondMax => self.beyond_max += 1,
            Embedding::Unused(_) => {}
        }
    }
}

/// Decides about every address at the end of the CNAME chain, in the order of the records, and for each address in the order of
/// its prefixes: those of the first rule that matches, else the general ones. An address with a mapping has that one alone. A second
/// record with the same address is skipped: equal records are one record (RFC 2181 section 5). Ends early if `each` breaks.
#[inline]
pub fn decide_addresses<'d, 'a>(
    message: &Message<'a>,
    chain: &Chain<'a>,
    dns64: &'d Dns64,
    rules: &Applicable<'d>,
    mut each: impl FnMut(&AddressDecision<'d, 'a>) -> ControlFlow<()>,
) -> EmbeddingCounts {
    let mut counts = EmbeddingCounts::default();
    let mut seen = Seen { first: None, others: None, len: 0 };
    for record in message.records(Section::Answer) {
        if !chain.ends_in(&record, Type::A) {
            continue;
        }
        let Some(address) = record.address4() else { continue };
        if !seen.is_new(address) {
            continue;
        }
        let mapped = dns64.mapped(address);
        //= RFC 6147 section 5: requirement 1
        //= RFC 6147 section 5.1.7: requirement 14
        let rule = if mapped.is_none() { rules.decide(address) } else { None };
        let List { prefixes, in_use } =
            if mapped.is_none() { list(dns64, rules, rule) } else { List { prefixes: &[], in_use: 0 } };
        counts.unavailable += u64::from(in_use == 0 && !prefixes.is_empty());
        // Count an address without prefixes once.
        for place in 0..prefixes.len().max(1) {
            let prefix = prefixes.get(place);
            let fate = match prefix {
                None => match mapped {
                    None => without_prefix(rule),
                    Some(_) if counts.records == dns64.max_records => Embedding::BeyondMax,
                    Some(mapped) => Embedding::Mapped(mapped),
                },
                // The reason does not matter to an answer; see `reason`.
                Some(_) if in_use >> (place % LISTED) & 1 == 0 => Embedding::Unused(Unused::Other),
                Some(prefix) => match embedding(dns64, prefix, address) {
                    Embedding::Embedded if counts.records == dns64.max_records => Embedding::BeyondMax,
                    fate => fate,
                },
            };
            counts.count(fate);
            if let Some(gateways) = &dns64.gateways
                && let (Some(prefix), Embedding::Embedded) = (prefix, fate)
            {
                // The numbers of the general prefixes are their places.
                counts.prefixes |=
                    if rule.is_none() { 1 << (place % LISTED) } else { gateways.counted(prefix) };
            }
            if each(&AddressDecision { owner: record.owner, address, rule, prefix, fate }).is_break() {
                return counts;
            }
        }
    }
    counts
}

/// Prefixes for an address, and those of them that the client gets.
#[derive(Clone, Copy)]
struct List<'d> {
    prefixes: &'d [Pref64],
    /// A bit for each; 0 if no gateway lives.
    in_use: u64,
}

/// Prefixes for an address: those of its rule, or the general ones if no rule matches.
#[inline]
fn list<'d>(dns64: &'d Dns64, rules: &Applicable<'_>, rule: Option<&'d Rule>) -> List<'d> {
    let prefixes = rule.map_or(&dns64.prefixes[..], |rule| &rule.prefixes);
    List { prefixes, in_use: rules.chooser.in_use(dns64.gateways.as_ref(), prefixes, rule.is_none()) }
}

/// Decision about an address without a prefix. The general list is empty only while the discovery has found nothing.
#[cold]
fn without_prefix(rule: Option<&Rule>) -> Embedding {
    match rule {
        Some(Rule { awaits_discovery: false, .. }) => Embedding::NoPrefix,
        _ => Embedding::Undiscovered,
    }
}

/// Decision about an address under one prefix, with the reason if the client does not get the prefix at all.
pub fn reason(decision: &AddressDecision<'_, '_>, dns64: &Dns64, rules: &Applicable<'_>) -> Embedding {
    match (decision.fate, decision.prefix, &dns64.gateways) {
        (Embedding::Unused(_), Some(prefix), Some(gateways)) => {
            Embedding::Unused(gateways.reason(prefix, rules.chooser.client))
        }
        (fate, ..) => fate,
    }
}

/// Longest TTL of the synthesized records, in seconds, if a prefix that they may have is probed. An address with a mapping has none.
#[inline(never)]
pub fn longest_ttl(
    message: &Message<'_>,
    chain: &Chain<'_>,
    dns64: &Dns64,
    gateways: &Gateways,
    rules: &Applicable<'_>,
) -> u32 {
    let is_probed = |rule: Option<&Rule>| {
        let List { prefixes, in_use } = list(dns64, rules, rule);
        match rule {
            None => gateways.is_general_probed(in_use),
            Some(_) => gateways.is_probed(prefixes, in_use),
        }
    };
    let has_probed = match rules.is_empty() && dns64.mappings.is_none() {
        true => is_probed(None),
        false => {
            let records = message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A));
            let mut addresses = records.filter_map(|record| record.address4());
            addresses.any(|address| dns64.mapped(address).is_none() && is_probed(rules.decide(address)))
        }
    };
    if has_probed { gateways.table().answer_ttl_secs } else { u32::MAX }
}

/// Set of the addresses already seen in an answer. Most answers have one address.
struct Seen {
    first: Option<[u8; 4]>,
    others: Option<[[u8; 4]; DISTINCT - 1]>,
    /// Number of others in use.
    len: usize,
}

impl Seen {
    /// Adds an address, if there is room. Returns true if it was not in the set.
    #[inline]
    fn is_new(&mut self, address: [u8; 4]) -> bool {
        let Some(first) = self.first else {
            self.first = Some(address);
            return true;
        };
        let others = self.others.get_or_insert([[0; 4]; DISTINCT - 1]);
        if first == address || others[..self.len].contains(&address) {
            return false;
        }
        if let Some(room) = others.get_mut(self.len) {
            *room = address;
            self.len += 1;
        }
        true
    }
}

/// Decides about an address under one of its prefixes, without the limit of records.
//= RFC 6147 section 5.1.7: requirement 14; every address is checked against the configured ranges.
#[inline]
fn embedding(dns64: &Dns64, prefix: &Pref64, address: [u8; 4]) -> Embedding {
    let mapped = Ipv4Addr::from(address).to_ipv6_mapped();
    if dns64.never_embed.iter().any(|network| network.contains(mapped)) {
        Embedding::NeverEmbed
    //= RFC 6052 section 3.1: requirement 36
    //= RFC 6147 section 7.3: requirement 32; another prefix carries them.
    } else if prefix.is_well_known() && !dns64.non_global.allows(address) {
        Embedding::NonGlobal
    } else {
        Embedding::Embedded
    }
}

/// Counts of the addresses left out, if no address at the end of the CNAME chain may be embedded; `None` if at least one may.
/// `first` is the first A record there.
#[inline(always)]
pub fn all_omitted(
    first: &Record<'_>,
    message: &Message<'_>,
    chain: &Chain<'_>,
    dns64: &Dns64,
    rules: &Applicable<'_>,
) -> Option<EmbeddingCounts> {
    // In most replies the first address may be embedded, so there is nothing to count.
    let may_embed = |address| {
        let List { prefixes, in_use } = list(dns64, rules, rules.decide(address));
        prefixes.iter().enumerate().any(|(place, prefix)| {
            in_use >> (place % LISTED) & 1 == 1 && embedding(dns64, prefix, address) == Embedding::Embedded
        }) || dns64.mapped(address).is_some()
    };
    if dns64.max_records > 0 && first.address4().is_some_and(may_embed) {
        return None;
    }
    let counts = decide_addresses(message, chain, dns64, rules, |decision| match decision.fate {
        Embedding::Embedded | Embedding::Mapped(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    (counts.records == 0).then_some(counts)
}
