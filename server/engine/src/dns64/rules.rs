//! Prefix rules: they select the prefixes that embed an IPv4 address, by client, name and address. The first rule that matches
//! decides.
//!
//! The rules are compiled into tables when the configuration is read, so thousands of rules cost one lookup. The table of names
//! has a node for each name of a rule. A node has one leaf for its rules for all clients, and one leaf for each range of client
//! addresses to which the same rules apply. A leaf has the first rule for each range of IPv4 addresses. A question finds the
//! leaves of its name and of the names above it; an address is looked up in each of them, and the lowest rule number wins.

use crate::base::name_table::{NameTable, suffixes};
use crate::base::network::Network;
use crate::base::range_map::client_spans;
use crate::base::range_map::{NO_MATCH, RangeMap, TooManyEntries, span4, span6};
use crate::dns64::gateways::Chooser;
use crate::dns64::prefix_table::PrefixTable;
use core::cell::Cell;
use core::net::Ipv6Addr;
use pref64::Pref64;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// Largest number of rule names that are suffixes of one name. Each costs a lookup.
pub const NESTED: usize = 8;

/// Largest number of entries of all tables: 2^22 entries of up to 20 octets are 80 MiB. Rules with nested client networks and many
/// IPv4 networks each need most entries.
pub const ENTRIES: usize = 1 << 22;

/// Largest number of prefixes advertised to one client: the answer for `ipv4only.arpa` with their 32 addresses has 927 octets, and
/// an OPT record 11.
pub(crate) const PREFIXES: usize = 16;

/// Flag in the number of a general rule (one that matches every question), so that general rules sort after all others.
const GENERAL: u32 = 1 << 31;

/// Prefix rule. An empty list of clients, names or addresses matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Networks of the clients; IPv4 as IPv4-mapped.
    pub clients: Vec<Network>,
    /// Names in wire form, lower case. The name of the question must be equal to or below one of them.
    pub names: Vec<Box<[u8]>>,
    /// Networks of the IPv4 addresses, as IPv4-mapped networks.
    pub ipv4: Vec<Network>,
    /// Prefixes that embed such addresses. If empty, the addresses are left out.
    pub prefixes: Vec<Pref64>,
    /// The list is empty only because the discovery has found no prefix.
    pub awaits_discovery: bool,
    /// Treatment of real AAAA records. Rules with `ipv4` prefer them, because the A records are not known yet when this is decided.
    pub real_aaaa: RealAaaa,
    /// Clients with DNS64 get no A records. Allowed only for rules without `ipv4`, as above.
    pub suppresses_a: bool,
}

/// Treatment of real AAAA records under a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RealAaaa {
    /// They are the answer.
    #[default]
    Prefer,
    /// Addresses are synthesized although there are real ones.
    Ignore,
    /// Those whose addresses have proved dead count as absent.
    Verify,
}

/// Reason to reject a list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesTooLarge {
    /// More than [`NESTED`] names of rules are nested.
    Nested,
    /// The tables would have more than [`ENTRIES`] entries.
    Large,
}

impl fmt::Display for RulesTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RulesTooLarge::Nested => {
                write!(f, "more than {NESTED} names of rules are nested (each below the next)")
            }
            RulesTooLarge::Large => {
                write!(f, "the rules overlap so much that their tables need more than {ENTRIES} entries")
            }
        }
    }
}

impl std::error::Error for RulesTooLarge {}

impl From<TooManyEntries> for RulesTooLarge {
    fn from(_: TooManyEntries) -> RulesTooLarge {
        RulesTooLarge::Large
    }
}

/// Compiled rules: the list, and the tables for lookups.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Rules in the order of the configuration.
    list: Vec<Rule>,
    /// True if a rule has `suppresses_a`.
    suppress_a: bool,
    /// True if a rule verifies real AAAA records.
    verify: bool,
    /// Names of all rules; the number of a name is the index of its node.
    names: NameTable,
    nodes: Vec<RuleNode>,
    leaves: Vec<Leaf>,
    /// For each address under a prefix of a rule, the number of the first such rule.
    prefixes: RangeMap<u128>,
    /// Prefixes of all rules, for longest-prefix lookups.
    by_length: PrefixTable,
    /// Lists of the rules whose prefixes are advertised to a client. The first list is for clients in no range of `clients`.
    advertised: Vec<Vec<u32>>,
    /// Index in `advertised` for the clients that rules name.
    clients: RangeMap<u128>,
}

/// Rules of one name.
#[derive(Clone, Debug)]
struct RuleNode {
    /// Leaf of the rules for all clients.
    all_clients: u32,
    /// Leaves of the rules for some clients.
    clients: RangeMap<u128>,
}

/// Rules of one name for one range of clients.
#[derive(Clone, Debug)]
struct Leaf {
    /// First rule that matches all IPv4 addresses.
    always: u32,
    /// First rule that matches some IPv4 addresses, by range.
    ipv4: RangeMap<u32>,
}

impl Rules {
    /// Builds the tables.
    ///
    /// # Errors
    ///
    /// `RulesTooLarge::Nested`: more than `NESTED` names of rules lie each below the next. `RulesTooLarge::Large`: the networks and
    /// names overlap so much that the tables need more than `ENTRIES` entries.
    pub fn build(list: Vec<Rule>) -> Result<Rules, RulesTooLarge> {
        let mut by_name: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        for (number, rule) in (0..).zip(&list) {
            let root: &[u8] = &[0];
            let names = rule.names.iter().map(|name| &name[..]);
            for name in names.chain(rule.names.is_empty().then_some(root)) {
                by_name.entry(name).or_default().push(number);
            }
        }
        let mut rules = Rules::default();
        let mut room = ENTRIES;
        let mut names = Vec::with_capacity(by_name.len());
        for (&name, numbers) in &by_name {
            let node = rules.node(numbers, &list, &mut room)?;
            rules.nodes.push(node);
            names.push(name.into());
        }
        rules.names = NameTable::new(names);
        for &name in by_name.keys() {
            if suffixes(name).filter(|suffix| by_name.contains_key(suffix)).count() > NESTED {
                return Err(RulesTooLarge::Nested);
            }
        }
        let mut spans = Vec::new();
        for (number, rule) in (0..).zip(&list) {
            let network = |prefix: &Pref64| Network::new(prefix.address(), prefix.length());
            spans.extend(rule.prefixes.iter().map(|prefix| (span6(&network(prefix)), number)));
        }
        rules.prefixes = RangeMap::lowest(spans, &mut room)?;
        rules.by_length =
            PrefixTable::new(list.iter().flat_map(|rule| rule.prefixes.iter().copied()).collect());
        rules.build_advertised(&list, &mut room)?;
        rules.suppress_a = list.iter().any(|rule| rule.suppresses_a);
        rules.verify = list.iter().any(|rule| rule.real_aaaa == RealAaaa::Verify);
        rules.list = list;
        Ok(rules)
    }

    /// Builds the node of a name from the numbers of its rules.
    fn node(&mut self, numbers: &[u32], list: &[Rule], room: &mut usize) -> Result<RuleNode, RulesTooLarge> {
        let of = |number: u32| &list[number as usize];
        let (some, all): (Vec<u32>, Vec<u32>) =
            numbers.iter().partition(|&&number| !of(number).clients.is_empty());
        let all_clients = self.leaf(&all, list, room)?;
        let spans: Vec<_> = some
            .iter()
            .flat_map(|&number| {
                let spans = of(number).clients.iter().flat_map(client_spans);
                spans.map(move |span| (span, number))
            })
            .collect();
        let mut leaves = HashMap::new();
        let clients = RangeMap::build(spans, |numbers| -> Result<u32, RulesTooLarge> {
            if numbers.is_empty() {
                return Ok(NO_MATCH);
            }
            let numbers: Vec<u32> = numbers.iter().copied().collect();
            if let Some(&leaf) = leaves.get(&numbers) {
                return Ok(leaf);
            }
            let leaf = self.leaf(&numbers, list, room)?;
            *room = room.checked_sub(numbers.len() + 1).ok_or(RulesTooLarge::Large)?;
            leaves.insert(numbers, leaf);
            Ok(leaf)
        })?;
        Ok(RuleNode { all_clients, clients })
    }

    /// Builds a leaf from the numbers of its rules. Returns its index, or [`NO_MATCH`] without rules.
    fn leaf(&mut self, numbers: &[u32], list: &[Rule], room: &mut usize) -> Result<u32, RulesTooLarge> {
        if numbers.is_empty() {
            return Ok(NO_MATCH);
        }
        let of = |number: u32| &list[number as usize];
        let always = numbers.iter().copied().find(|&number| of(number).ipv4.is_empty()).unwrap_or(NO_MATCH);
        let spans = numbers
            .iter()
            .flat_map(|&number| of(number).ipv4.iter().map(move |network| (span4(network), number)))
            .collect();
        let ipv4 = RangeMap::lowest(spans, room)?;
        self.leaves.push(Leaf { always, ipv4 });
        Ok(self.leaves.len() as u32 - 1)
    }

    /// Builds the lists of rules whose prefixes are advertised to each range of clients. Of several rules with the same prefix for
    /// the same client network only the first counts, so at most 128 rules per prefix apply to an address: as many as networks can
    /// be nested.
    fn build_advertised(&mut self, list: &[Rule], room: &mut usize) -> Result<(), RulesTooLarge> {
        let (mut for_all, mut general_of_all) = (Vec::new(), NO_MATCH);
        let (mut spans, mut seen) = (Vec::new(), HashSet::new());
        for (number, rule) in (0..).zip(list) {
            match (rule.clients.is_empty(), rule.is_general()) {
                (true, false) => for_all.push(number),
                (true, true) => general_of_all = general_of_all.min(number),
                (false, is_general) => {
                    for span in rule.clients.iter().flat_map(client_spans) {
                        if is_general && seen.insert((span, None)) {
                            spans.push((span, number | GENERAL));
                        } else if !is_general {
                            let new = |prefix: &&Pref64| seen.insert((span, Some(**prefix)));
                            if rule.prefixes.iter().filter(new).count() > 0 {
                                spans.push((span, number));
                            }
                        }
                    }
                }
            }
        }
        let default_list = advertised(list, for_all.into_iter(), general_of_all);
        let for_all = &default_list[..default_list.len() - usize::from(general_of_all != NO_MATCH)];
        let mut places = HashMap::from([(default_list.clone(), 0)]);
        self.advertised.push(default_list.clone());
        self.clients = RangeMap::build(spans, |numbers| -> Result<u32, RulesTooLarge> {
            let general = numbers.range(GENERAL..).next().map_or(NO_MATCH, |number| number & !GENERAL);
            let mut some = numbers.range(..GENERAL).copied().peekable();
            let mut all = for_all.iter().copied().peekable();
            let merged = core::iter::from_fn(|| match (some.peek(), all.peek()) {
                (Some(one), Some(other)) if one > other => all.next(),
                (None, _) => all.next(),
                _ => some.next(),
            });
            let client_list = advertised(list, merged, general.min(general_of_all));
            *room = room.checked_sub(1).ok_or(RulesTooLarge::Large)?;
            if let Some(&place) = places.get(&client_list) {
                return Ok(place);
            }
            *room = room.checked_sub(client_list.len()).ok_or(RulesTooLarge::Large)?;
            let place = self.advertised.len() as u32;
            places.insert(client_list.clone(), place);
            self.advertised.push(client_list);
            Ok(place)
        })?;
        Ok(())
    }

    /// True if there are no rules.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True if a rule suppresses A records.
    #[inline]
    pub fn may_suppress_a(&self) -> bool {
        self.suppress_a
    }

    /// True if a rule verifies real AAAA records.
    #[inline]
    pub fn may_verify(&self) -> bool {
        self.verify
    }

    /// Rules in order.
    pub fn list(&self) -> &[Rule] {
        &self.list
    }

    /// Rules that may apply to a question of `client` for `name`, which is in wire form.
    #[inline]
    pub fn of(&self, client: Ipv6Addr, name: &[u8]) -> Applicable<'_> {
        let mut found = Applicable::none(self);
        found.find(client, name);
        found
    }

    /// Longest prefix of a rule that contains the reverse name with the first `bits` of an IPv6 address.
    pub(crate) fn longest_prefix_of(&self, address: [u8; 16], bits: usize) -> Option<&Pref64> {
        self.by_length.longest(address, bits)
    }

    /// True if a prefix of a rule begins with the first `bits` of an IPv6 address, whose other bits are zero, and is longer.
    pub(crate) fn has_prefix_below(&self, address: [u8; 16], bits: usize) -> bool {
        self.by_length.has_below(address, bits)
    }

    /// First prefix of a rule that contains an IPv6 address.
    pub fn prefix_of(&self, address: [u8; 16]) -> Option<&Pref64> {
        let rule = self.list.get(self.prefixes.find(u128::from_be_bytes(address)) as usize)?;
        rule.prefixes.iter().find(|prefix| prefix.contains(address))
    }

    /// Rules whose prefixes are advertised to a client, in order: those with a prefix that no earlier rule has, and as the last one
    /// the first general rule, if there is one.
    pub fn advertised(&self, client: Ipv6Addr) -> impl Iterator<Item = &Rule> {
        let place = match self.clients.find(u128::from(client)) {
            NO_MATCH => 0,
            place => place as usize,
        };
        self.advertised.get(place).into_iter().flatten().map(|&number| &self.list[number as usize])
    }
}

impl Rule {
    /// True for a general rule: one that matches every question of its clients, whatever the name and the address.
    pub(crate) fn is_general(&self) -> bool {
        self.names.is_empty() && self.ipv4.is_empty()
    }
}

/// List for [`Rules::advertised`], for a client to which the rules `numbers` and the general rule `general` apply ([`NO_MATCH`]: no
/// general rule).
fn advertised(list: &[Rule], numbers: impl Iterator<Item = u32>, general: u32) -> Vec<u32> {
    let (mut advertised, mut prefixes) = (Vec::new(), Vec::with_capacity(PREFIXES));
    for number in numbers.take_while(|&number| number < general) {
        let before = prefixes.len();
        for prefix in &list[number as usize].prefixes {
            if prefixes.len() < PREFIXES && !prefixes.contains(prefix) {
                prefixes.push(*prefix);
            }
        }
        if prefixes.len() > before {
            advertised.push(number);
        }
        if prefixes.len() == PREFIXES {
            break;
        }
    }
    advertised.extend((general != NO_MATCH).then_some(general));
    advertised
}

/// Rules that may apply to a question.
pub struct Applicable<'r> {
    rules: &'r Rules,
    leaves: [u32; 2 * NESTED],
    len: usize,
    /// Latest decision: address and rule number. An answer needs each decision twice. The address 0.0.0.0 means no decision yet.
    latest: Cell<([u8; 4], u32)>,
    /// Choice of the prefixes of a list for the client.
    pub(crate) chooser: Chooser,
}

/// Identity of the rules that may apply to a question: two questions with equal sets get the same prefixes, under one configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RuleSet([u32; 2 * NESTED]);

impl<'r> Applicable<'r> {
    /// None of these rules.
    #[inline]
    pub(crate) fn none(rules: &Rules) -> Applicable<'_> {
        let (leaves, latest) = ([NO_MATCH; 2 * NESTED], Cell::new(([0; 4], NO_MATCH)));
        Applicable { rules, leaves, len: 0, latest, chooser: Chooser::new(Ipv6Addr::UNSPECIFIED) }
    }

    /// Adds the rules that may apply to a question of `client` for `name`. To find them in place costs less than to move them to their
    /// place, as [`Rules::of`] does.
    #[inline]
    pub(crate) fn find(&mut self, client: Ipv6Addr, name: &[u8]) {
        self.chooser.client = client;
        if !self.rules.is_empty() {
            self.find_by_name(client, name);
        }
    }

    #[inline(never)]
    fn find_by_name(&mut self, client: Ipv6Addr, name: &[u8]) {
        let rules = self.rules;
        rules.names.find(name, |number, _| {
            let node = &rules.nodes[number];
            self.add(node.all_clients);
            self.add(node.clients.find(u128::from(client)));
        });
    }

    /// Identity of these rules.
    pub fn set(&self) -> RuleSet {
        RuleSet(self.leaves)
    }

    /// Adds a leaf, unless it is [`NO_MATCH`].
    #[inline]
    fn add(&mut self, leaf: u32) {
        if leaf != NO_MATCH
            && let Some(place) = self.leaves.get_mut(self.len)
        {
            *place = leaf;
            self.len += 1;
        }
    }

    /// Leaves of the question.
    fn leaves(&self) -> impl Iterator<Item = &'r Leaf> {
        self.leaves[..self.len].iter().map(|&leaf| &self.rules.leaves[leaf as usize])
    }

    /// True if no rule may apply.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First rule that matches an IPv4 address; `None` if no rule matches.
    #[inline]
    pub fn decide(&self, address: [u8; 4]) -> Option<&'r Rule> {
        if self.len == 0 {
            return None;
        }
        let (latest, mut number) = self.latest.get();
        if latest != address || address == [0; 4] {
            let at = u32::from_be_bytes(address);
            number = self.leaves().map(|leaf| leaf.always.min(leaf.ipv4.find(at))).min()?;
            self.latest.set((address, number));
        }
        self.rules.list.get(number as usize)
    }

    /// Rule that ignores real AAAA records: the first rule that matches all IPv4 addresses, if it ignores them.
    #[inline]
    pub fn ignores_real(&self) -> Option<&'r Rule> {
        self.of_all_addresses().filter(|rule| rule.real_aaaa == RealAaaa::Ignore)
    }

    /// Rule that verifies real AAAA records: the first rule that matches all IPv4 addresses, if it verifies them.
    pub fn verifies_real(&self) -> Option<&'r Rule> {
        self.of_all_addresses().filter(|rule| rule.real_aaaa == RealAaaa::Verify)
    }

    /// Rule by which clients with DNS64 get no A records: the first rule that matches all IPv4 addresses, if it has `suppresses_a`.
    pub fn suppresses_a(&self) -> Option<&'r Rule> {
        self.of_all_addresses().filter(|rule| rule.suppresses_a)
    }

    /// First rule that matches all IPv4 addresses.
    #[inline]
    fn of_all_addresses(&self) -> Option<&'r Rule> {
        let lowest = self.leaves().map(|leaf| leaf.always).min();
        lowest.and_then(|number| self.rules.list.get(number as usize))
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
