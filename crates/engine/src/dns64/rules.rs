//! Rules: which prefixes carry an IPv4 address, by client, name and address. The first rule that matches decides.
//!
//! Thousands of them cost a lookup: they are turned into tables when they are read. A table of names holds, for each name of
//! a rule, what its rules say: one leaf for rules for all clients, and one for each part of the addresses in which the
//! same rules apply. A leaf knows the first rule for each part of the IPv4 addresses. So a question finds the leaves of
//! its name and of the names above it, and an address asks each of them; the lowest number wins.

use crate::base::name_table::{NameTable, suffixes};
use crate::base::network::Network;
use crate::base::range_map::client_spans;
use crate::base::range_map::{NO_MATCH, RangeMap, TooManyEntries, span4, span6};
use crate::dns64::prefix_table::PrefixTable;
use core::cell::Cell;
use core::net::Ipv6Addr;
use pref64::Pref64;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// Names of rules that a name may be below. Each costs a lookup.
pub const NESTED: usize = 8;

/// Entries of all tables: 2^22 at up to 20 octets are 80 MiB. Rules whose networks of clients lie in one another and list
/// many IPv4 networks each need the most.
pub const ENTRIES: usize = 1 << 22;

/// Prefixes that a client is told: `ipv4only.arpa` with their 32 addresses takes 927 octets, and an OPT record 11.
pub(crate) const PREFIXES: usize = 16;

/// Added to the number of a rule that matches whatever is asked, so that these stand behind all others.
const GENERAL: u32 = 1 << 31;

/// One rule. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Who asks; IPv4 as IPv4-mapped.
    pub clients: Vec<Network>,
    /// The name asked is one of these or below it; in wire form, lower case.
    pub names: Vec<Box<[u8]>>,
    /// IPv4 addresses, as IPv4-mapped networks.
    pub ipv4: Vec<Network>,
    /// The prefixes that carry such addresses; none: they are left out.
    pub prefixes: Vec<Pref64>,
    /// Synthesize although there are AAAA records. Only for rules without `ipv4`: what A records there are is not known
    /// when this is decided.
    pub ignores_real: bool,
}

/// Why rules cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesTooLarge {
    /// Names of rules lie below one another more than [`NESTED`] deep.
    Nested,
    /// The tables would have more than [`ENTRIES`] entries.
    Large,
}

impl fmt::Display for RulesTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RulesTooLarge::Nested => write!(f, "rules name more than {NESTED} names below one another"),
            RulesTooLarge::Large => {
                write!(f, "rules overlap so much that their tables have more than {ENTRIES} entries")
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

/// Rules, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    list: Vec<Rule>,
    names: NameTable,
    nodes: Vec<RuleNode>,
    leaves: Vec<Leaf>,
    /// Networks of all prefixes, with a number for each: the first rule that names it.
    prefixes: RangeMap<u128>,
    /// The same, by length.
    by_length: PrefixTable,
    /// Rules that name prefixes for a client. The first are for clients that are in no part of `clients`.
    advertised: Vec<Vec<u32>>,
    /// Which of them, for clients that some rules are for.
    clients: RangeMap<u128>,
}

/// What rules say for one name.
#[derive(Clone, Debug)]
struct RuleNode {
    /// The leaf of rules for all clients.
    everybody: u32,
    /// The leaves of rules for some clients.
    clients: RangeMap<u128>,
}

/// What rules say for a name and a client.
#[derive(Clone, Debug)]
struct Leaf {
    /// The first rule for all IPv4 addresses.
    always: u32,
    /// The first rule for some of them.
    ipv4: RangeMap<u32>,
}

impl Rules {
    /// Builds the tables.
    pub fn build(list: Vec<Rule>) -> Result<Rules, RulesTooLarge> {
        let mut by_name: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        for (number, rule) in (0..).zip(&list) {
            let root: &[u8] = &[0];
            let names = rule.names.iter().map(|name| &name[..]);
            for name in names.chain(rule.names.is_empty().then_some(root)) {
                by_name.entry(name).or_default().push(number);
            }
        }
        let mut made = Rules::default();
        let mut room = ENTRIES;
        let mut names = Vec::with_capacity(by_name.len());
        for (&name, numbers) in &by_name {
            let node = made.node(numbers, &list, &mut room)?;
            made.nodes.push(node);
            names.push(name.into());
        }
        made.names = NameTable::new(names);
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
        made.prefixes = RangeMap::lowest(spans, &mut room)?;
        made.by_length =
            PrefixTable::new(list.iter().flat_map(|rule| rule.prefixes.iter().copied()).collect());
        made.tell(&list, &mut room)?;
        made.list = list;
        Ok(made)
    }

    fn node(&mut self, numbers: &[u32], list: &[Rule], room: &mut usize) -> Result<RuleNode, RulesTooLarge> {
        let of = |number: u32| &list[number as usize];
        let (some, all): (Vec<u32>, Vec<u32>) =
            numbers.iter().partition(|&&number| !of(number).clients.is_empty());
        let everybody = self.leaf(&all, list, room)?;
        let spans: Vec<_> = some
            .iter()
            .flat_map(|&number| {
                let spans = of(number).clients.iter().flat_map(client_spans);
                spans.map(move |span| (span, number))
            })
            .collect();
        let mut known = HashMap::new();
        let clients = RangeMap::build(spans, |numbers| -> Result<u32, RulesTooLarge> {
            if numbers.is_empty() {
                return Ok(NO_MATCH);
            }
            let numbers: Vec<u32> = numbers.iter().copied().collect();
            if let Some(&leaf) = known.get(&numbers) {
                return Ok(leaf);
            }
            let leaf = self.leaf(&numbers, list, room)?;
            *room = room.checked_sub(numbers.len() + 1).ok_or(RulesTooLarge::Large)?;
            known.insert(numbers, leaf);
            Ok(leaf)
        })?;
        Ok(RuleNode { everybody, clients })
    }

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

    /// Finds out which rules tell which clients of prefixes. Of rules that say the same of the same network only the first
    /// counts, so an address has as many for each prefix as networks lie in one another: 128.
    fn tell(&mut self, list: &[Rule], room: &mut usize) -> Result<(), RulesTooLarge> {
        let (mut everybody, mut general_of_all) = (Vec::new(), NO_MATCH);
        let (mut spans, mut known) = (Vec::new(), HashSet::new());
        for (number, rule) in (0..).zip(list) {
            match (rule.clients.is_empty(), rule.is_general()) {
                (true, false) => everybody.push(number),
                (true, true) => general_of_all = general_of_all.min(number),
                (false, is_general) => {
                    for span in rule.clients.iter().flat_map(client_spans) {
                        if is_general && known.insert((span, None)) {
                            spans.push((span, number | GENERAL));
                        } else if !is_general {
                            let new = |prefix: &&Pref64| known.insert((span, Some(**prefix)));
                            if rule.prefixes.iter().filter(new).count() > 0 {
                                spans.push((span, number));
                            }
                        }
                    }
                }
            }
        }
        let to_all = advertised(list, everybody.into_iter(), general_of_all);
        let everybody = &to_all[..to_all.len() - usize::from(general_of_all != NO_MATCH)];
        let mut places = HashMap::from([(to_all.clone(), 0)]);
        self.advertised.push(to_all.clone());
        self.clients = RangeMap::build(spans, |numbers| -> Result<u32, RulesTooLarge> {
            let general = numbers.range(GENERAL..).next().map_or(NO_MATCH, |number| number & !GENERAL);
            let mut some = numbers.range(..GENERAL).copied().peekable();
            let mut all = everybody.iter().copied().peekable();
            let merged = core::iter::from_fn(|| match (some.peek(), all.peek()) {
                (Some(one), Some(other)) if one > other => all.next(),
                (None, _) => all.next(),
                _ => some.next(),
            });
            let told = advertised(list, merged, general.min(general_of_all));
            *room = room.checked_sub(1).ok_or(RulesTooLarge::Large)?;
            if let Some(&place) = places.get(&told) {
                return Ok(place);
            }
            *room = room.checked_sub(told.len()).ok_or(RulesTooLarge::Large)?;
            let place = self.advertised.len() as u32;
            places.insert(told.clone(), place);
            self.advertised.push(told);
            Ok(place)
        })?;
        Ok(())
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The rules, in order.
    pub fn list(&self) -> &[Rule] {
        &self.list
    }

    /// The rules that may apply to a question for `name`, in wire form.
    #[inline]
    pub fn of(&self, client: Ipv6Addr, name: &[u8]) -> Applicable<'_> {
        let mut found = Applicable {
            rules: self,
            leaves: [NO_MATCH; 2 * NESTED],
            len: 0,
            latest: Cell::new(([0; 4], NO_MATCH)),
        };
        if !self.is_empty() {
            self.names.find(name, |number, _| {
                let node = &self.nodes[number];
                found.add(node.everybody);
                found.add(node.clients.find(u128::from(client)));
            });
        }
        found
    }

    /// The longest prefix of a rule that a reverse name is under whose first `bits` are those of an IPv6 address.
    pub(crate) fn longest_prefix_of(&self, address: [u8; 16], bits: usize) -> Option<&Pref64> {
        self.by_length.longest(address, bits)
    }

    /// The first prefix of a rule that an IPv6 address is under.
    pub fn prefix_of(&self, address: [u8; 16]) -> Option<&Pref64> {
        let rule = self.list.get(self.prefixes.find(u128::from_be_bytes(address)) as usize)?;
        rule.prefixes.iter().find(|prefix| prefix.contains(address))
    }

    /// The rules that tell a client of prefixes, in order: those that name one that no rule before them names, and at the
    /// end the first that matches whatever is asked, if there is one.
    pub fn advertised(&self, client: Ipv6Addr) -> impl Iterator<Item = &Rule> {
        let place = match self.clients.find(u128::from(client)) {
            NO_MATCH => 0,
            place => place as usize,
        };
        self.advertised.get(place).into_iter().flatten().map(|&number| &self.list[number as usize])
    }
}

impl Rule {
    /// Whether it matches whatever is asked.
    pub(crate) fn is_general(&self) -> bool {
        self.names.is_empty() && self.ipv4.is_empty()
    }
}

/// As [`Rules::advertised`] has it, for a client that all of these are for, and `general`, if that is a rule.
fn advertised(list: &[Rule], numbers: impl Iterator<Item = u32>, general: u32) -> Vec<u32> {
    let (mut advertised, mut known) = (Vec::new(), Vec::with_capacity(PREFIXES));
    for number in numbers.take_while(|&number| number < general) {
        let before = known.len();
        for prefix in &list[number as usize].prefixes {
            if known.len() < PREFIXES && !known.contains(prefix) {
                known.push(*prefix);
            }
        }
        if known.len() > before {
            advertised.push(number);
        }
        if known.len() == PREFIXES {
            break;
        }
    }
    advertised.extend((general != NO_MATCH).then_some(general));
    advertised
}

/// The rules that may apply to a question.
pub struct Applicable<'r> {
    rules: &'r Rules,
    leaves: [u32; 2 * NESTED],
    len: usize,
    /// The latest decision, as answers ask for it twice; nothing is decided for the address 0.0.0.0 before it is asked for.
    latest: Cell<([u8; 4], u32)>,
}

impl<'r> Applicable<'r> {
    #[inline]
    fn add(&mut self, leaf: u32) {
        if leaf != NO_MATCH
            && let Some(place) = self.leaves.get_mut(self.len)
        {
            *place = leaf;
            self.len += 1;
        }
    }

    fn leaves(&self) -> impl Iterator<Item = &'r Leaf> {
        self.leaves[..self.len].iter().map(|&leaf| &self.rules.leaves[leaf as usize])
    }

    /// Whether no rule may apply.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rule that decides what becomes of an IPv4 address. None: no rule matches.
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

    /// The rule that has AAAA records ignored: the first that matches whatever the IPv4 address, if it says so.
    #[inline]
    pub fn ignores_real(&self) -> Option<&'r Rule> {
        let lowest = self.leaves().map(|leaf| leaf.always).min();
        lowest.and_then(|number| self.rules.list.get(number as usize)).filter(|rule| rule.ignores_real)
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
