//! What becomes of the IPv4 addresses at the end of an answer (RFC 6147 sections 5.1.6 and 5.1.7): under which prefixes each
//! is embedded, or why it is left out. Synthesis and explanation both ask here, so they cannot disagree.

use crate::dns64::config::Dns64;
use crate::dns64::rules::{Applicable, Rule};
use crate::limits::DISTINCT;
use crate::message::cname_chain::Chain;
use core::net::Ipv4Addr;
use core::ops::ControlFlow;
use pref64::Pref64;
use wire::{Message, Name, Record, Section, Type};

/// What becomes of an IPv4 address under one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedding {
    /// It becomes an address under the prefix.
    Embedded,
    /// `dns64.never-embed` names it.
    NeverEmbed,
    /// It is not global, and the prefix is the well-known one (RFC 6052 section 3.1).
    NonGlobal,
    /// The first rule that matches has no prefixes.
    NoPrefix,
    /// There are `dns64.max-records` addresses already.
    BeyondMax,
}

/// One decision.
pub struct AddressDecision<'d, 'a> {
    /// Owner of the A record.
    pub owner: Name<'a>,
    /// Its address.
    pub address: [u8; 4],
    /// The rule that named the prefixes. None: they are the general ones.
    pub rule: Option<&'d Rule>,
    /// The prefix. None: there is none ([`Embedding::NoPrefix`]).
    pub prefix: Option<&'d Pref64>,
    /// What becomes of the address.
    pub fate: Embedding,
}

/// Addresses that a synthesis used and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingCounts {
    /// Records synthesized.
    pub records: usize,
    /// Left out: not global under the well-known prefix.
    pub non_global: u64,
    /// Left out: never embedded.
    pub never_embed: u64,
    /// Left out: a rule names no prefixes for it.
    pub by_rule: u64,
    /// Left out: more than `max-records`.
    pub beyond_max: u64,
}

impl EmbeddingCounts {
    #[inline]
    fn count(&mut self, fate: Embedding) {
        match fate {
            Embedding::Embedded => self.records += 1,
            Embedding::NeverEmbed => self.never_embed += 1,
            Embedding::NonGlobal => self.non_global += 1,
            Embedding::NoPrefix => self.by_rule += 1,
            Embedding::BeyondMax => self.beyond_max += 1,
        }
    }
}

/// Decides for every address at the end of the chain, in the order of the records and, for each, of its prefixes: those of
/// the first rule that matches, else the general ones. An address that is there twice is decided once: equal records are one
/// (RFC 2181 section 5). Ends early when `each` breaks.
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
        //= RFC 6147 section 5: requirement 1
        //= RFC 6147 section 5.1.7: requirement 14
        let rule = rules.decide(address);
        let prefixes = prefixes(dns64, rule);
        // An address without prefixes has a fate, too.
        for place in 0..prefixes.len().max(1) {
            let prefix = prefixes.get(place);
            let fate = match prefix.map(|prefix| fate(dns64, prefix, address)) {
                None => Embedding::NoPrefix,
                Some(Embedding::Embedded) if counts.records == dns64.max_records => Embedding::BeyondMax,
                Some(fate) => fate,
            };
            counts.count(fate);
            if each(&AddressDecision { owner: record.owner, address, rule, prefix, fate }).is_break() {
                return counts;
            }
        }
    }
    counts
}

/// The prefixes of an address for which a rule was found, or none.
#[inline]
fn prefixes<'d>(dns64: &'d Dns64, rule: Option<&'d Rule>) -> &'d [Pref64] {
    rule.map_or(&dns64.prefixes, |rule| &rule.prefixes)
}

/// The first addresses of an answer. Most have one.
struct Seen {
    first: Option<[u8; 4]>,
    others: Option<[[u8; 4]; DISTINCT - 1]>,
    /// How many others.
    len: usize,
}

impl Seen {
    /// Whether an address has not been seen yet; from now on it has, if there is room.
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

/// What becomes of an address under one of its prefixes.
//= RFC 6147 section 5.1.7: requirement 14; every address is checked against the configured ranges.
#[inline]
fn fate(dns64: &Dns64, prefix: &Pref64, address: [u8; 4]) -> Embedding {
    let mapped = Ipv4Addr::from(address).to_ipv6_mapped();
    if dns64.never_embed.iter().any(|network| network.contains(mapped)) {
        Embedding::NeverEmbed
    //= RFC 6052 section 3.1: requirement 36
    //= RFC 6147 section 7.3: requirement 32; another prefix carries them.
    } else if prefix.is_well_known() && !dns64.embed_non_global && !pref64::is_global(address) {
        Embedding::NonGlobal
    } else {
        Embedding::Embedded
    }
}

/// What is left out, when that is everything: no address at the end of the chain, of which `first` is the first one, may be
/// embedded. None: some may.
pub fn all_left_out(
    first: &Record<'_>,
    message: &Message<'_>,
    chain: &Chain<'_>,
    dns64: &Dns64,
    rules: &Applicable<'_>,
) -> Option<EmbeddingCounts> {
    // Nearly always the first address may, and there is nothing to be counted.
    let embeds = |address| {
        let prefixes = prefixes(dns64, rules.decide(address));
        prefixes.iter().any(|prefix| fate(dns64, prefix, address) == Embedding::Embedded)
    };
    if dns64.max_records > 0 && first.address4().is_some_and(embeds) {
        return None;
    }
    let counts = decide_addresses(message, chain, dns64, rules, |decision| match decision.fate {
        Embedding::Embedded => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    (counts.records == 0).then_some(counts)
}
