//! Gateways (NAT64) behind the prefixes: which prefixes of a list the answer of a client has, by the states of the gateways and by the
//! spread of the clients over them. Without [`Gateways`] it has all.
//!
//! With [`Spread::Client`] a client network has one prefix, by weighted rendezvous hashing (Thaler and Ravishankar, 1998; the weights as in
//! "Weighted Distributed Hash Tables", Schindelhauer and Schomaker, 2005): each prefix draws a number u from 0 to 1, which is a hash of the
//! network and the prefix, and the prefix with the largest weight / -ln(u) wins. So a prefix that fails loses its own networks only, and
//! gets the same ones back. All of it is arithmetic with integers, so every server of a fleet finds the same.

use crate::counters::COUNTED_PREFIXES;
use crate::limits::LISTED;
use core::cell::Cell;
use core::net::Ipv6Addr;
use pref64::Pref64;
use std::collections::HashSet;
use std::sync::Arc;

/// All prefixes of a list.
const EVERY: u64 = u64::MAX;

/// Prefixes of a list that an answer has: `dns64.spread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Spread {
    /// All that live.
    #[default]
    All,
    /// The first that lives.
    Ordered,
    /// One that lives, by client network and weight.
    Client,
}

/// Answer if no prefix of a list lives: `dns64.health.all-down`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AllDown {
    /// As if all lived; if some only drain, as if these lived.
    #[default]
    Keep,
    /// No records.
    Empty,
}

/// State of a prefix, as far as answers depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PrefixState {
    /// Its gateway lives, or nobody knows.
    #[default]
    Up,
    /// It drains, and this share of its client networks has left it, in units of 2^-32.
    Leaving(u32),
    /// It drains: no new answer has it.
    Draining,
    /// Its gateway is dead.
    Down,
}

/// A prefix of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePrefix {
    /// The prefix, with its suffix.
    pub prefix: Pref64,
    /// Share of the client networks; 0: only if no other prefix lives.
    pub weight: u32,
    /// True if probes go through it.
    pub is_probed: bool,
}

/// All prefixes of a configuration, and the rules by which answers get them.
#[derive(Clone, Debug)]
pub struct GatewayTable {
    /// Choice among the prefixes of a list.
    pub spread: Spread,
    /// Answer if none lives.
    pub all_down: AllDown,
    /// Longest TTL of an answer that has a probed prefix, in seconds.
    pub answer_ttl_secs: u32,
    members: Vec<Member>,
    /// The first members are the general prefixes in their order; this is their number.
    general: usize,
    /// The general prefixes that are probed, a bit for each.
    probed: u64,
    /// Numbers of the members, sorted by address and length of their prefixes.
    sorted: Vec<u32>,
}

/// A prefix with its part of the hash.
#[derive(Clone, Debug)]
struct Member {
    of: TablePrefix,
    key: u64,
}

/// The table, and the present states of its prefixes.
#[derive(Clone, Debug)]
pub struct Gateways {
    table: Arc<GatewayTable>,
    /// States by the numbers of the prefixes.
    states: Arc<[PrefixState]>,
    choice: Choice,
}

/// Choice among the general prefixes, as far as it is the same for all client networks.
#[derive(Clone, Debug)]
enum Choice {
    /// Every client gets these prefixes, a bit for each.
    Same(u64),
    /// Each network gets one of these.
    OneOf(Box<[Finalist]>),
    /// Networks leave a prefix one by one.
    Leaving,
}

impl GatewayTable {
    /// Builds the table. `general`: the general prefixes in their order, which differ, at most [`LISTED`]; `others`: further prefixes, of
    /// rules. A prefix that comes again counts as it came first.
    pub fn new(
        (spread, all_down, answer_ttl_secs): (Spread, AllDown, u32),
        general: Vec<TablePrefix>,
        others: Vec<TablePrefix>,
    ) -> GatewayTable {
        let general_count = general.len();
        let mut known = HashSet::new();
        let all = general.into_iter().chain(others).filter(|of| known.insert(order_of(&of.prefix)));
        let members: Vec<Member> = all.map(|of| Member { key: prefix_key(&of.prefix), of }).collect();
        let order = |number: &u32| order_of(&members[*number as usize].of.prefix);
        let mut sorted: Vec<u32> = (0..members.len() as u32).collect();
        sorted.sort_by_key(order);
        let listed = members[..general_count].iter().take(LISTED).enumerate();
        let probed = listed.fold(0, |all, (place, member)| all | u64::from(member.of.is_probed) << place);
        GatewayTable { spread, all_down, answer_ttl_secs, members, general: general_count, probed, sorted }
    }

    /// The prefixes by their numbers.
    pub fn prefixes(&self) -> impl Iterator<Item = &TablePrefix> {
        self.members.iter().map(|member| &member.of)
    }

    /// True if these are the general prefixes of the table: it is about this configuration.
    pub fn has_general(&self, prefixes: &[Pref64]) -> bool {
        self.members[..self.general].iter().map(|member| &member.of.prefix).eq(prefixes)
    }

    /// Number of a prefix; its suffix does not count.
    pub fn number_of(&self, prefix: &Pref64) -> Option<usize> {
        let order = |&number: &u32| order_of(&self.members[number as usize].of.prefix);
        let at = self.sorted.binary_search_by_key(&order_of(prefix), order).ok()?;
        Some(self.sorted[at] as usize)
    }
}

/// A prefix of a list as the choice sees it.
#[derive(Clone, Copy)]
struct Candidate {
    key: u64,
    weight: u32,
    state: PrefixState,
}

/// A candidate among those from which a client network gets one.
#[derive(Clone, Copy, Debug)]
struct Finalist {
    /// Bit of its place in the list.
    bit: u64,
    key: u64,
    /// At least 1.
    weight: u32,
}

/// Rank of a candidate for a client, lowest first. A prefix of a higher rank excludes those of lower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Down,
    Draining,
    Up,
}

impl Candidate {
    #[inline]
    fn rank(&self, network: u64) -> Rank {
        match self.state {
            PrefixState::Up => Rank::Up,
            PrefixState::Leaving(share) if departure(network, self.key) >= share => Rank::Up,
            PrefixState::Leaving(_) | PrefixState::Draining => Rank::Draining,
            PrefixState::Down => Rank::Down,
        }
    }
}

impl Gateways {
    /// The table with these states of its prefixes. A prefix without a state is up.
    pub fn new(table: Arc<GatewayTable>, states: Arc<[PrefixState]>) -> Gateways {
        let mut gateways = Gateways { table, states, choice: Choice::Leaving };
        gateways.choice = gateways.choice_of_all();
        gateways
    }

    /// Choice among the general prefixes in these states.
    fn choice_of_all(&self) -> Choice {
        let candidates = self.general_candidates();
        let is_leaving = |candidate: Candidate| matches!(candidate.state, PrefixState::Leaving(_));
        match self.table.spread {
            Spread::All | Spread::Ordered => Choice::Same(self.choose(candidates, 0)),
            Spread::Client if candidates.clone().any(is_leaving) => Choice::Leaving,
            Spread::Client => Choice::OneOf(self.finalists(candidates, 0).collect()),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<GatewayTable> {
        &self.table
    }

    /// The states by the numbers of the prefixes.
    pub fn states(&self) -> &Arc<[PrefixState]> {
        &self.states
    }

    /// State of the prefix with this number. Networks leave a prefix one by one only where each has a prefix of its own: the spread may have
    /// changed since the drain began.
    fn state(&self, number: usize) -> PrefixState {
        match self.states.get(number).copied().unwrap_or_default() {
            PrefixState::Leaving(_) if self.table.spread != Spread::Client => PrefixState::Draining,
            state => state,
        }
    }

    fn candidate(&self, number: usize) -> Candidate {
        let Member { of, key } = &self.table.members[number];
        Candidate { key: *key, weight: of.weight, state: self.state(number) }
    }

    fn general_candidates(&self) -> impl Iterator<Item = Candidate> + Clone {
        (0..self.table.general.min(LISTED)).map(|number| self.candidate(number))
    }

    /// The general prefixes that a client gets, a bit for each; 0: none. Their numbers in the table are the same, so these are also the
    /// bits of `Gateways::counted`.
    #[inline]
    pub fn general(&self, client: Ipv6Addr) -> u64 {
        match &self.choice {
            Choice::Same(prefixes) => *prefixes,
            Choice::OneOf(finalists) => draw(finalists.iter().copied(), network(client)),
            Choice::Leaving => self.choose(self.general_candidates(), network(client)),
        }
    }

    /// The prefixes of a rule's list that a client gets, a bit for each; 0: none.
    fn of_rule(&self, list: &[Pref64], client: Ipv6Addr) -> u64 {
        let candidate = |prefix: &Pref64| match self.table.number_of(prefix) {
            Some(number) => self.candidate(number),
            None => Candidate { key: prefix_key(prefix), weight: 1, state: PrefixState::Up },
        };
        let network = network(client);
        match list {
            [_] if self.table.all_down == AllDown::Keep => 1,
            _ => self.choose(list.iter().take(LISTED).map(candidate), network),
        }
    }

    /// Chooses the prefixes of a list for a client network.
    fn choose(&self, candidates: impl Iterator<Item = Candidate> + Clone, network: u64) -> u64 {
        let mut finalists = self.finalists(candidates, network);
        match self.table.spread {
            Spread::Client => draw(finalists, network),
            Spread::All => finalists.fold(0, |all, finalist| all | finalist.bit),
            Spread::Ordered => finalists.next().map_or(0, |first| first.bit),
        }
    }

    /// The candidates that a client network may get: those of the highest rank, and of these with [`Spread::Client`] those with a weight.
    fn finalists(
        &self,
        candidates: impl Iterator<Item = Candidate> + Clone,
        network: u64,
    ) -> impl Iterator<Item = Finalist> {
        let weighs = self.table.spread == Spread::Client;
        let rank = move |candidate: &Candidate| {
            let rank = candidate.rank(network);
            (rank, weighs && candidate.weight > 0)
        };
        let highest = candidates.clone().map(|candidate| rank(&candidate)).max();
        let is_up = highest.is_some_and(|(rank, _)| rank == Rank::Up);
        let best = highest.filter(|_| is_up || self.table.all_down == AllDown::Keep);
        let of_best = candidates.enumerate().filter(move |(_, candidate)| Some(rank(candidate)) == best);
        of_best.map(|(place, Candidate { key, weight, .. })| Finalist {
            bit: 1 << place,
            key,
            weight: weight.max(1),
        })
    }

    /// Bit of a prefix among those whose answers are counted; 0: it is not counted.
    #[inline]
    pub(crate) fn counted(&self, prefix: &Pref64) -> u64 {
        let number = self.table.number_of(prefix).filter(|&number| number < COUNTED_PREFIXES);
        number.map_or(0, |number| 1 << number)
    }

    /// True if a general prefix that the client gets is probed. A synthesis for one client is copied for others with other prefixes, so that
    /// with [`Spread::Client`] all of them count.
    #[inline]
    pub(crate) fn is_general_probed(&self, in_use: u64) -> bool {
        let counts = if self.table.spread == Spread::Client { EVERY } else { in_use };
        self.table.probed & counts != 0
    }

    /// True if a prefix of a rule's list that the client gets is probed.
    pub(crate) fn is_probed(&self, list: &[Pref64], in_use: u64) -> bool {
        let is_probed = |prefix: &Pref64| {
            self.table.number_of(prefix).is_some_and(|number| self.table.members[number].of.is_probed)
        };
        let mut used = list.iter().enumerate().filter(|(place, _)| in_use >> (place % LISTED) & 1 == 1);
        used.any(|(_, prefix)| is_probed(prefix))
    }

    /// Reason why a client does not get a prefix of a list.
    pub(crate) fn reason(&self, prefix: &Pref64, client: Ipv6Addr) -> Unused {
        let number = self.table.number_of(prefix);
        match number.map(|number| self.candidate(number).rank(network(client))) {
            Some(Rank::Down) => Unused::Down,
            Some(Rank::Draining) => Unused::Draining,
            Some(Rank::Up) | None => Unused::Other,
        }
    }
}

/// Reason why an answer does not have a prefix of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// Its gateway is dead.
    Down,
    /// It drains.
    Draining,
    /// The answer has another one.
    Other,
}

/// The finalist of a client network, as a bit; 0: there is none.
#[inline]
fn draw(finalists: impl Iterator<Item = Finalist>, network: u64) -> u64 {
    let mixed = mix(network);
    let draws = finalists.map(|of| Draw { of, number: mix(mixed.wrapping_add(of.key)) });
    draws.reduce(|best, draw| if draw.is_better(&best) { draw } else { best }).map_or(0, |best| best.of.bit)
}

/// The number that a finalist has drawn for a network.
#[derive(Clone, Copy)]
struct Draw {
    of: Finalist,
    /// u in units of 2^-64.
    number: u64,
}

impl Draw {
    #[inline]
    fn is_better(&self, other: &Draw) -> bool {
        if self.of.weight == other.of.weight {
            return self.number > other.number;
        }
        // weight / -ln(u) is larger; the base of the logarithm does not matter.
        let score = u128::from(self.of.weight) * u128::from(negative_log2(other.number));
        let best = u128::from(other.of.weight) * u128::from(negative_log2(self.number));
        (score, self.number) > (best, other.number)
    }
}

/// -log2(number / 2^64) in units of 2^-32, never 0. A piece of a straight line for each 256th of an octave: the error is below 2^-18.
fn negative_log2(number: u64) -> u64 {
    let number = number | 1;
    let zeros = number.leading_zeros();
    let mantissa = number << zeros;
    let at = (mantissa >> 55) as usize & 0xff;
    let rest = mantissa >> 23 & 0xffff_ffff;
    let log = LOG2[at] + (((LOG2[at + 1] - LOG2[at]) * rest) >> 32);
    (u64::from(zeros + 1) << 32) - log.min((1 << 32) - 1)
}

/// log2(1 + place / 256) in units of 2^-32.
static LOG2: [u64; 257] = log2_table();

const fn log2_table() -> [u64; 257] {
    let mut table = [1 << 32; 257];
    let mut place = 0;
    while place < 256 {
        // Squaring a number between 1 and 2 doubles its logarithm: each time it reaches 2, the next digit is 1.
        let (mut value, mut log, mut digit) = (((256 + place) as u128) << 55, 0, 0);
        while digit < 32 {
            value = (value * value) >> 63;
            log <<= 1;
            if value >= 1 << 64 {
                value >>= 1;
                log |= 1;
            }
            digit += 1;
        }
        table[place] = log;
        place += 1;
    }
    table
}

/// Network of a client for the choice of its prefix: the first 64 bits of an IPv6 address, or an IPv4 address. ::ffff:0:0/32 has no
/// IPv6 networks (RFC 4291 section 2.5.5.2 has only addresses of ::ffff:0:0/96 near it), so the two do not meet.
fn network(client: Ipv6Addr) -> u64 {
    let bits = u128::from(client);
    if bits >> 32 == 0xffff { bits as u64 } else { (bits >> 64) as u64 }
}

/// Share at which a client network leaves a prefix that drains over time, in units of 2^-32: an order of the networks that is another one
/// for each prefix, and has nothing to do with [`draw`].
fn departure(network: u64, key: u64) -> u32 {
    (mix(network ^ key.rotate_left(32)) >> 32) as u32
}

fn order_of(prefix: &Pref64) -> (Ipv6Addr, u8) {
    (prefix.address(), prefix.length())
}

/// Part of the hash that a prefix contributes. Its suffix does not count.
fn prefix_key(prefix: &Pref64) -> u64 {
    let bits = u128::from(prefix.address());
    let high = mix((bits >> 64) as u64 ^ u64::from(prefix.length()));
    mix(high.wrapping_add(bits as u64))
}

/// Mixes the bits of a number, as the finalizer of MurmurHash3 does: a bit of the input changes each bit of the output with probability 1/2.
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let number = (number ^ number >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}

/// Chooses the prefixes of lists for one client. An answer needs the choice for a list several times, so that for the latest list is kept.
pub(crate) struct Chooser {
    pub(crate) client: Ipv6Addr,
    /// Address of the list in memory, and the choice; 0 is no address.
    latest: Cell<(usize, u64)>,
}

impl Chooser {
    /// A chooser for a client.
    #[inline]
    pub(crate) fn new(client: Ipv6Addr) -> Chooser {
        Chooser { client, latest: Cell::new((0, EVERY)) }
    }

    /// The prefixes of a list that the client gets, a bit for each. `is_general`: it is the list of the general prefixes.
    #[inline]
    pub(crate) fn in_use(&self, gateways: Option<&Gateways>, list: &[Pref64], is_general: bool) -> u64 {
        match gateways {
            None => EVERY,
            Some(gateways) => self.choice(gateways, list, is_general),
        }
    }

    #[inline(never)]
    fn choice(&self, gateways: &Gateways, list: &[Pref64], is_general: bool) -> u64 {
        let (latest, mut chosen) = self.latest.get();
        let at = list.as_ptr().addr();
        if latest != at {
            chosen = match is_general {
                true => gateways.general(self.client),
                false => gateways.of_rule(list, self.client),
            };
            self.latest.set((at, chosen));
        }
        chosen
    }
}

#[cfg(test)]
#[path = "gateways_tests.rs"]
mod tests;
