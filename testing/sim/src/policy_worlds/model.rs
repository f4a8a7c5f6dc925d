//! The model: what a client must get, by the words of the draft (draft-vixie-dnsop-dns-rpz-00) and of RFC 6147, as slowly as one likes.
//! It shares no code with the engine.
//!
//! - The names of a chain are looked at in their order. For each name the first zone decides that has a rule for it, and in a zone
//!   client, name, address (draft section 5). Addresses belong to the last name; those that no client gets do not count: excluded AAAA
//!   records and A records that are not embedded.
//! - The AAAA lookup of a name without AAAA data decides nothing that an earlier zone could decide by an address of the A lookup.
//! - One rule decides a query. Data of a rule are what the name has; DNS64 goes on from there.
//! - An answer that a rule made or changed has the SOA record of the rule's zone (draft section 2) and its extended error (RFC 8914):
//!   Blocked for a denial, Synthesized for an answer with synthesized addresses, Forged for any other. Failures have none of these.
//! - Rules do not depend on RD. Who asks without RD and not for synthesis gets upstream's aliases as they are, open ones too. Aliases of
//!   rules and local ones are followed: no upstream knows them.

use crate::policy_worlds::world::{Action, Has, LOCAL, PREFIX, Rule, SUFFIX, Trigger, World, number, text};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Type of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// IPv4 address.
    A,
    /// IPv6 address.
    Aaaa,
    /// A type that no name has upstream.
    Txt,
    /// All types.
    Any,
}

/// Data of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The text of a rule.
    Txt,
    /// An alias.
    Cname(String),
}

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No answer.
    Nothing,
    /// TC and no records.
    Truncated(Marks),
    /// RCODE, and the records of the answer section with their owners.
    Records(u8, BTreeSet<(String, Data)>, Marks),
}

impl Answer {
    /// The marks, if there is an answer.
    pub fn marks(&self) -> Option<Marks> {
        match self {
            Answer::Nothing => None,
            Answer::Truncated(marks) | Answer::Records(_, _, marks) => Some(*marks),
        }
    }
}

/// What an answer says of its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Number of the policy zone whose SOA record is in the additional section.
    pub zone: Option<usize>,
    /// Code of the extended error.
    pub extended_error: Option<u16>,
}

/// Codes of extended errors: RFC 8914 sections 4.1, 4.5, 4.16 and 4.23; 29 is from the registry of section 5.2.
const OTHER: u16 = 0;
const FORGED: u16 = 4;
const BLOCKED: u16 = 15;
/// No upstream could answer.
pub const NO_REACHABLE_AUTHORITY: u16 = 22;
const SYNTHESIZED: u16 = 29;

/// A question of a client.
#[derive(Clone, Copy, Debug)]
pub struct Query<'t> {
    /// Name.
    pub name: &'t str,
    /// Type.
    pub kind: Kind,
    /// The client's address.
    pub client: IpAddr,
    /// Over TCP.
    pub over_tcp: bool,
    /// RD.
    pub is_recursive: bool,
    /// With an OPT record.
    pub has_edns: bool,
}

const NOERROR: u8 = 0;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;

/// Addresses of a reply, if it has any.
type Addresses = Vec<IpAddr>;

/// What upstream says to a question: the names of the chain, and what the last one has.
struct Said {
    /// Names, that of the question first.
    names: Vec<String>,
    /// RCODE.
    rcode: u8,
    /// Addresses of the type asked for, of the last name.
    addresses: Addresses,
    /// The last name was not looked up.
    is_open: bool,
    /// Names that rules look at. Who asks for all types gets an alias and does not follow it.
    seen: usize,
}

impl World {
    /// What a client must get.
    pub fn answer(&self, query: Query<'_>) -> Answer {
        let mut resolution = Resolution {
            world: self,
            query,
            records: BTreeSet::new(),
            is_exempt: false,
            is_first: true,
            mark: None,
            is_synthesized: false,
        };
        let mut name = query.name.to_owned();
        if name == LOCAL {
            let target = text(self.local).to_owned();
            resolution.records.insert((name, Data::Cname(target.clone())));
            name = target;
        }
        // A chain has fewer names than this.
        for _ in 0..20 {
            match resolution.look_up(&name) {
                Step::Answer(answer) => return answer,
                Step::Target(target) => name = target,
            }
        }
        unreachable!("aliases lead to later names")
    }

    /// What upstream says. `follows`: an open alias at its end is looked up next.
    fn said(&self, name: &str, kind: Kind, follows: bool) -> Said {
        let mut names = vec![name.to_owned()];
        let said = |names: Vec<String>, rcode, addresses, is_open| {
            // A name that was not looked up has its turn when it is, if it is.
            let seen = if kind == Kind::Any { 1 } else { names.len() - usize::from(is_open && follows) };
            Said { names, rcode, addresses, is_open, seen }
        };
        loop {
            let Some(at) = number(names.last().expect("one name at least")) else {
                return said(names, NXDOMAIN, vec![], false);
            };
            match &self.names[at] {
                Has::Alias(target, is_open) => {
                    names.push(text(*target).to_owned());
                    // All types: the alias itself is the answer.
                    if *is_open || kind == Kind::Any {
                        return said(names, NOERROR, vec![], kind != Kind::Any);
                    }
                }
                Has::Addresses(v4, v6) => {
                    let v4 =
                        v4.iter().map(|&v4| IpAddr::from(v4)).filter(|_| matches!(kind, Kind::A | Kind::Any));
                    let v6 = v6
                        .iter()
                        .map(|&v6| IpAddr::from(v6))
                        .filter(|_| matches!(kind, Kind::Aaaa | Kind::Any));
                    return said(names, NOERROR, v4.chain(v6).collect(), false);
                }
                Has::Nothing => return said(names, NXDOMAIN, vec![], false),
                Has::Failure => return said(vec![name.to_owned()], SERVFAIL, vec![], false),
            }
        }
    }

    fn is_embedded(&self, v4: Ipv4Addr) -> bool {
        v4.octets()[0] != 10 && !(self.never_embeds && v4.octets()[..2] == [198, 51])
    }

    /// The number of the first zone with an address trigger.
    fn first_address_zone(&self) -> usize {
        let has_addresses =
            |zone: &Vec<Rule>| zone.iter().any(|rule| matches!(rule.trigger, Trigger::Address(..)));
        self.zones.iter().position(has_addresses).unwrap_or(self.zones.len())
    }
}

/// The AAAA record of an A record.
fn synthesized(v4: Ipv4Addr) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets[..12].copy_from_slice(&PREFIX);
    octets[12..].copy_from_slice(&v4.octets());
    octets.into()
}

/// The IPv4 address in an address under the prefix.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = v6.octets();
    (octets[..12] == PREFIX).then(|| Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]))
}

/// True if a network has an address.
fn contains(network: IpAddr, length: u8, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u32::from(network) ^ u32::from(address)).checked_shr(32 - u32::from(length)).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (u128::from(network) ^ u128::from(address)).checked_shr(128 - u32::from(length)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

enum Step {
    Answer(Answer),
    Target(String),
}

struct Resolution<'w> {
    world: &'w World,
    query: Query<'w>,
    records: BTreeSet<(String, Data)>,
    /// No rule applies any more.
    is_exempt: bool,
    /// No rule has seen the client yet.
    is_first: bool,
    /// Zone and extended error of the rule that makes or changes the answer.
    mark: Option<(usize, u16)>,
    /// The answer has synthesized addresses.
    is_synthesized: bool,
}

impl<'w> Resolution<'w> {
    /// The rule for one name, with the number of its zone.
    fn rule_for(&self, name: &str, is_first: bool, addresses: &[IpAddr]) -> Option<(usize, &'w Rule)> {
        for (zone, rules) in self.world.zones.iter().enumerate() {
            let best =
                rules.iter().filter_map(|rule| Some((self.rank(rule, name, is_first, addresses)?, rule)));
            if let Some((_, rule)) = best.min_by_key(|(rank, _)| *rank) {
                return Some((zone, rule));
            }
        }
        None
    }

    /// Rank of a rule of a zone, the lowest first; none if it does not apply: client, name, address; the longest network, the closest
    /// name; the lowest address.
    fn rank(
        &self,
        rule: &Rule,
        name: &str,
        is_first: bool,
        addresses: &[IpAddr],
    ) -> Option<(u8, usize, u128)> {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
            IpAddr::V6(v6) => u128::from(v6),
        };
        let hosts = |address: IpAddr, length: u8| if address.is_ipv4() { 32 - length } else { 128 - length };
        match &rule.trigger {
            Trigger::Client(network, length) => {
                let applies = is_first && contains(*network, *length, self.query.client);
                applies.then(|| (0, usize::from(hosts(*network, *length)), bits(*network)))
            }
            Trigger::Name(watched) => (watched == name).then_some((1, 0, 0)),
            Trigger::Below(above) => {
                let applies = name.ends_with(&format!(".{above}"));
                applies.then(|| (1, 1000 - above.len(), 0))
            }
            Trigger::Address(network, length) => {
                let applies = addresses.iter().any(|&address| contains(*network, *length, address));
                applies.then(|| (2, usize::from(hosts(*network, *length)), bits(*network)))
            }
        }
    }

    /// The rule for a reply, with the number of its zone and the place of its name in the chain.
    fn rule_for_said(
        &self,
        said: &Said,
        is_first: bool,
        addresses: &[IpAddr],
    ) -> Option<(usize, &'w Rule, usize)> {
        (0..said.seen).find_map(|place| {
            let addresses = if place + 1 == said.names.len() { addresses } else { &[] };
            let (zone, rule) = self.rule_for(&said.names[place], is_first && place == 0, addresses)?;
            Some((zone, rule, place))
        })
    }

    fn look_up(&mut self, name: &str) -> Step {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let kind = self.query.kind;
        let said = self.world.said(name, kind, self.follows());
        // Addresses that a client could get. An address under the prefix also counts as the one in it.
        let synthesizes = self.synthesizes();
        let own = |address: &IpAddr| match *address {
            IpAddr::V6(v6) if synthesizes => embedded(v6).is_none(),
            _ => true,
        };
        let mut addresses: Addresses = said.addresses.iter().copied().filter(own).collect();
        let is_real = !addresses.is_empty();
        let inner = addresses.iter().filter_map(|address| match *address {
            IpAddr::V6(v6) => embedded(v6).map(IpAddr::from),
            IpAddr::V4(_) => None,
        });
        let inner: Addresses = inner.collect();
        addresses.extend(inner);
        let asks_for_a = synthesizes && !is_real && !said.is_open && said.rcode != NXDOMAIN;
        if !self.is_exempt
            && let Some((zone, rule, place)) = self.rule_for_said(&said, is_first, &addresses)
        {
            let waits = asks_for_a && zone > self.world.first_address_zone();
            if !waits && let Some(step) = self.apply((zone, rule), &said, place) {
                return step;
            }
        }
        if !asks_for_a {
            return self.finish(&said);
        }
        // RFC 6147 section 5.1.2: a failure is like no AAAA records.
        let said = self.world.said(name, Kind::A, true);
        let v4: Vec<Ipv4Addr> = said
            .addresses
            .iter()
            .filter_map(|address| match address {
                IpAddr::V4(v4) => Some(*v4),
                IpAddr::V6(_) => None,
            })
            .filter(|&v4| self.world.is_embedded(v4))
            .collect();
        let mut addresses: Addresses = v4.iter().map(|&v4| v4.into()).collect();
        addresses.extend(v4.iter().map(|&v4| IpAddr::from(synthesized(v4))));
        if !self.is_exempt
            && let Some((zone, rule, place)) = self.rule_for_said(&said, is_first, &addresses)
            && let Some(step) = self.apply((zone, rule), &said, place)
        {
            return step;
        }
        let said = Said { addresses: v4.iter().map(|&v4| synthesized(v4).into()).collect(), ..said };
        self.is_synthesized = !v4.is_empty();
        self.finish(&said)
    }

    /// True if DNS64 applies to the query.
    fn synthesizes(&self) -> bool {
        self.query.kind == Kind::Aaaa && (self.query.is_recursive || !self.world.is_recursive_only)
    }

    /// True if aliases at which upstream's reply ends are followed.
    fn follows(&self) -> bool {
        self.query.is_recursive || self.synthesizes()
    }

    /// The end of the resolution. A loop of aliases is an error (RFC 1034 section 3.6.2).
    fn end(&mut self, rcode: u8) -> Step {
        if self.has_loop() {
            return self.fail(OTHER);
        }
        let records = std::mem::take(&mut self.records);
        Step::Answer(Answer::Records(rcode, records, self.marks()))
    }

    /// A failure: it is none of a rule.
    fn fail(&mut self, extended_error: u16) -> Step {
        let has_records = extended_error != OTHER;
        let records = if has_records { std::mem::take(&mut self.records) } else { BTreeSet::new() };
        let extended_error = self.query.has_edns.then_some(extended_error);
        Step::Answer(Answer::Records(SERVFAIL, records, Marks { zone: None, extended_error }))
    }

    fn marks(&self) -> Marks {
        let of_rule = self.mark.map(|(_, extended_error)| extended_error);
        let extended_error = if self.is_synthesized { Some(SYNTHESIZED) } else { of_rule };
        Marks {
            zone: self.mark.map(|(zone, _)| zone),
            extended_error: extended_error.filter(|_| self.query.has_edns),
        }
    }

    /// True if the aliases come back to a name.
    fn has_loop(&self) -> bool {
        // Who asks for all types follows no alias.
        if self.query.kind == Kind::Any {
            return false;
        }
        let mut passed = vec![self.query.name];
        loop {
            let last = passed[passed.len() - 1];
            let targets =
                self.records.iter().filter(|(owner, _)| owner == last).filter_map(|(_, data)| match data {
                    Data::Cname(target) => Some(target),
                    _ => None,
                });
            match targets.collect::<Vec<_>>()[..] {
                [] => return false,
                [target] if !passed.contains(&target.as_str()) => passed.push(target),
                _ => return true,
            }
        }
    }

    /// Takes over the aliases before a place.
    fn keep_aliases(&mut self, said: &Said, place: usize) {
        for pair in said.names[..=place].windows(2) {
            self.records.insert((pair[0].clone(), Data::Cname(pair[1].clone())));
        }
    }

    /// The answer that a reply is.
    fn finish(&mut self, said: &Said) -> Step {
        if said.rcode == SERVFAIL {
            return self.fail(NO_REACHABLE_AUTHORITY);
        }
        let last = said.names.len() - 1;
        self.keep_aliases(said, last);
        if said.is_open && self.follows() {
            return if self.has_loop() { self.fail(OTHER) } else { Step::Target(said.names[last].clone()) };
        }
        for address in &said.addresses {
            let data = match *address {
                IpAddr::V4(v4) => Data::A(v4),
                // An address under the prefix counts as absent for the type AAAA.
                IpAddr::V6(v6) if self.synthesizes() && said.rcode == NOERROR && self.is_absent(v6, said) => {
                    continue;
                }
                IpAddr::V6(v6) => Data::Aaaa(v6),
            };
            self.records.insert((said.names[last].clone(), data));
        }
        self.end(said.rcode)
    }

    /// True if a real AAAA record counts as absent; synthesized ones never do.
    fn is_absent(&self, v6: Ipv6Addr, said: &Said) -> bool {
        let is_of_upstream = number(said.names.last().expect("one name at least"))
            .is_some_and(|at| matches!(&self.world.names[at], Has::Addresses(_, real) if real.contains(&v6)));
        let is_synthesized =
            said.addresses.iter().all(|address| matches!(address, IpAddr::V6(v6) if embedded(*v6).is_some()));
        embedded(v6).is_some() && is_of_upstream && !is_synthesized
    }

    /// Carries out a rule of a zone. None: the query is exempt.
    fn apply(&mut self, (zone, rule): (usize, &Rule), said: &Said, place: usize) -> Option<Step> {
        let name = said.names[place].clone();
        self.mark = match &rule.action {
            Action::Passthru | Action::Drop => None,
            Action::TcpOnly if self.query.over_tcp => None,
            Action::NxDomain | Action::NoData => Some((zone, BLOCKED)),
            Action::TcpOnly | Action::Data(..) | Action::Alias(_) | Action::Suffix => Some((zone, FORGED)),
        };
        let step = match &rule.action {
            Action::Passthru => None,
            Action::TcpOnly if self.query.over_tcp => None,
            Action::TcpOnly => Some(Step::Answer(Answer::Truncated(self.marks()))),
            Action::Drop => Some(Step::Answer(Answer::Nothing)),
            Action::NxDomain | Action::NoData => {
                self.keep_aliases(said, place);
                let rcode = if rule.action == Action::NxDomain { NXDOMAIN } else { NOERROR };
                Some(self.end(rcode))
            }
            Action::Data(v4, v6, has_text) => {
                self.keep_aliases(said, place);
                self.is_synthesized =
                    self.synthesizes() && v6.is_empty() && v4.iter().any(|&v4| self.world.is_embedded(v4));
                self.records
                    .extend(self.data(v4, v6, *has_text).into_iter().map(|data| (name.clone(), data)));
                Some(self.end(NOERROR))
            }
            Action::Alias(target) => Some(self.lead_to(said, place, text(*target).to_owned())),
            Action::Suffix => Some(self.lead_to(said, place, format!("{name}.{SUFFIX}"))),
        };
        self.is_exempt = true;
        step
    }

    /// The records of a rule for the type of the question.
    fn data(&self, v4: &[Ipv4Addr], v6: &[Ipv6Addr], has_text: bool) -> Vec<Data> {
        let a = || v4.iter().map(|&v4| Data::A(v4));
        let aaaa = || v6.iter().map(|&v6| Data::Aaaa(v6));
        let text = has_text.then_some(Data::Txt);
        match self.query.kind {
            Kind::A => a().collect(),
            Kind::Txt => text.into_iter().collect(),
            Kind::Any => a().chain(aaaa()).chain(text).collect(),
            Kind::Aaaa if !v6.is_empty() || !self.synthesizes() => aaaa().collect(),
            Kind::Aaaa => {
                let embedded = v4.iter().filter(|&&v4| self.world.is_embedded(v4));
                embedded.map(|&v4| Data::Aaaa(synthesized(v4))).collect()
            }
        }
    }

    /// The target of a rule's alias, which is looked up as far as the type follows aliases.
    fn lead_to(&mut self, said: &Said, place: usize, target: String) -> Step {
        self.keep_aliases(said, place);
        self.records.insert((said.names[place].clone(), Data::Cname(target.clone())));
        match self.query.kind {
            Kind::Any => self.end(NOERROR),
            _ if self
                .records
                .iter()
                .any(|(owner, data)| *owner == target && matches!(data, Data::Cname(_))) =>
            {
                self.fail(OTHER)
            }
            _ => Step::Target(target),
        }
    }
}
