//! Response policy zones, naively: rules in zones, and a search over all rules for the one that applies to a name, a client or
//! an address (draft-vixie-dnsop-dns-rpz-00 sections 3 to 5).

use crate::ground_truth::{A, AAAA, GroundTruth, NameId, Said, ZONES, zone_of};
use crate::rng::Rng;
use engine::local::LocalRecord;
use engine::rpz::{Action as EngineAction, PolicyRule, PolicyZone, ResponsePolicy, Trigger as EngineTrigger};
use engine::settings::Network;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

/// TTL of the data and of the denials of a rule, seconds.
const TTL: u32 = 9;

/// Trigger of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A query name or a CNAME target.
    Name(NameId),
    /// All names of one of the [`ZONES`].
    Below(usize),
    /// IPv4 addresses in an answer, by this many leading octets.
    Address([u8; 4], usize),
    /// A client: one IPv4 address, or the /64 of an IPv6 address.
    Client(IpAddr),
}

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// NXDOMAIN.
    NxDomain,
    /// NODATA.
    NoData,
    /// The query is exempt from all rules.
    Passthru,
    /// The query is not answered.
    Drop,
    /// Over UDP, an empty answer with TC.
    TcpOnly,
    /// An A record.
    V4,
    /// An AAAA record.
    V6,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    trigger: Trigger,
    /// Number of its zone. The first zone takes precedence.
    zone: usize,
    /// Action.
    pub action: Action,
    /// The replies to a question for A, for AAAA, and for any other type.
    said: [Rc<Said>; 3],
}

impl Rule {
    /// The reply to a question, if the rule has data.
    pub fn reply_to(&self, rtype: u16) -> &Said {
        match rtype {
            A => &self.said[0],
            AAAA => &self.said[1],
            _ => &self.said[2],
        }
    }

    /// Precedence: by zone; in a zone by client, name and address; then the closest match. The smallest rank applies.
    fn rank(&self) -> (usize, usize, usize) {
        match self.trigger {
            Trigger::Client(_) => (self.zone, 0, 0),
            Trigger::Name(_) => (self.zone, 1, 0),
            Trigger::Below(_) => (self.zone, 1, 1),
            Trigger::Address(_, octets) => (self.zone, 2, 4 - octets),
        }
    }

    fn matches_name(&self, name: NameId) -> bool {
        match self.trigger {
            Trigger::Name(watched) => watched == name,
            Trigger::Below(zone) => name < crate::ground_truth::FIRST_ARPA_ID && zone_of(name) == zone,
            _ => false,
        }
    }

    fn matches_client(&self, client: IpAddr) -> bool {
        match (self.trigger, client) {
            (Trigger::Client(IpAddr::V6(watched)), IpAddr::V6(client)) => {
                watched.octets()[..8] == client.octets()[..8]
            }
            (Trigger::Client(watched), client) => watched == client,
            _ => false,
        }
    }

    fn matches_address(&self, address: [u8; 4]) -> bool {
        match self.trigger {
            Trigger::Address(watched, octets) => watched[..octets] == address[..octets],
            _ => false,
        }
    }
}

/// The rules of all zones.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Draws some rules in up to two zones, or none. The rules of a zone have different triggers.
    pub fn draw(rng: &mut Rng) -> Rules {
        let zones = *rng.choose(&[0, 0, 0, 1, 2]);
        let mut rules: Vec<Rule> = vec![];
        for zone in 0..zones {
            for _ in 0..1 + rng.below(6) {
                let number = rng.below(30) as u32;
                let trigger = match rng.below(8) {
                    0 => Trigger::Address([45, 0, 0, 0], 1),
                    1 => Trigger::Address([44, 0, number as u8, 0], 3),
                    2 => {
                        let client = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xc, number as u16, 0, 0, 0, 1);
                        Trigger::Client(client.into())
                    }
                    3 => Trigger::Client(Ipv4Addr::new(10, 0, 0, number as u8 | 1).into()),
                    4 => Trigger::Below(1 + rng.below(3) as usize),
                    _ => Trigger::Name(number % 5),
                };
                let action = *rng.choose(&[
                    Action::NxDomain,
                    Action::NoData,
                    Action::Passthru,
                    Action::TcpOnly,
                    Action::V4,
                    Action::V6,
                    Action::Drop,
                ]);
                // Only for a client rule of the first zone can the simulator predict at once that a query is dropped.
                let is_clear = zone == 0 && matches!(trigger, Trigger::Client(_));
                let action = if action == Action::Drop && !is_clear { Action::NxDomain } else { action };
                if rules.iter().all(|rule| (rule.trigger, rule.zone) != (trigger, zone)) {
                    let said = Rules::replies(action).map(Rc::new);
                    rules.push(Rule { trigger, zone, action, said });
                }
            }
        }
        Rules { rules }
    }

    fn replies(action: Action) -> [Said; 3] {
        let nothing = Said { soa: Some((TTL, TTL)), ..Said::default() };
        let mut said = [nothing.clone(), nothing.clone(), nothing];
        match action {
            Action::V4 => said[0] = Said { v4: vec![V4], ttl: TTL, ..Said::default() },
            Action::V6 => said[1] = Said { v6: vec![V6], ttl: TTL, ..Said::default() },
            _ => {}
        }
        said
    }

    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule for a question before there is a reply. `client`: only for the first name of a chain.
    pub fn for_question(&self, client: Option<IpAddr>, name: NameId) -> Option<&Rule> {
        let matches = |rule: &&Rule| {
            rule.matches_name(name) || client.is_some_and(|client| rule.matches_client(client))
        };
        self.rules.iter().filter(matches).min_by_key(|rule| rule.rank())
    }

    /// True if an address in the reply may match a rule that takes precedence over this one.
    pub fn may_be_overridden(&self, rule: &Rule, rtype: u16) -> bool {
        let matches = |other: &Rule| matches!(other.trigger, Trigger::Address(..)) && other.zone < rule.zone;
        matches!(rtype, A | AAAA) && self.rules.iter().any(matches)
    }

    /// The rule for a reply, and the number of CNAME records that lead to the name that the rule is about.
    pub fn for_reply(&self, client: Option<IpAddr>, name: NameId, said: &Said) -> Option<(&Rule, usize)> {
        let mut names = vec![name];
        names.extend(said.edges.iter().map(|edge| edge.1));
        if said.is_loop {
            names.pop();
        }
        let last = names.len() - 1;
        names.into_iter().enumerate().find_map(|(place, name)| {
            let client = client.filter(|_| place == 0);
            let addresses = if place == last && !said.is_loop { &said.v4[..] } else { &[] };
            let matching =
                self.rules.iter().filter(|rule| addresses.iter().any(|&v4| rule.matches_address(v4)));
            let found = self.for_question(client, name).into_iter().chain(matching);
            found.min_by_key(|rule| rule.rank()).map(|rule| (rule, place))
        })
    }

    /// The rules as the engine's type.
    pub fn to_engine(&self, ground_truth: &GroundTruth) -> ResponsePolicy {
        let zones = self.rules.iter().map(|rule| rule.zone + 1).max().unwrap_or(0);
        let soa = |zone: usize| {
            let mut rdata = b"\x02ns\x00\x04host\x00".to_vec();
            rdata.extend([1, 2, 3, 4, 60].map(u32::to_be_bytes).as_flattened());
            let owner = format!("\x05zone{zone}\0").into_bytes().into();
            LocalRecord { owner, rtype: wire::Type::SOA, ttl: 60, rdata: rdata.into() }
        };
        let all = |zone: usize| PolicyZone { soa: soa(zone), entries: self.entries(ground_truth, zone) };
        // There are few rules, so the limit of the engine is never reached.
        ResponsePolicy::build((0..zones).map(all).collect()).unwrap_or_default()
    }

    fn entries(&self, ground_truth: &GroundTruth, zone: usize) -> Vec<PolicyRule> {
        let entry = |rule: &Rule| {
            let trigger = match rule.trigger {
                Trigger::Name(name) => EngineTrigger::Name(ground_truth.name(name).wire.clone().into()),
                Trigger::Below(zone) => EngineTrigger::Below(ZONES[zone].into()),
                Trigger::Address(v4, octets) => {
                    EngineTrigger::Address(Network::v4(v4.into(), 8 * octets as u8))
                }
                Trigger::Client(IpAddr::V4(v4)) => EngineTrigger::Client(Network::v4(v4, 32)),
                Trigger::Client(IpAddr::V6(v6)) => EngineTrigger::Client(Network::new(v6, 64)),
            };
            let data = |rtype: wire::Type, rdata: &[u8]| {
                let owner = Box::from(&b"\x01x\0"[..]);
                EngineAction::Data([LocalRecord { owner, rtype, ttl: TTL, rdata: rdata.into() }].into())
            };
            let action = match rule.action {
                Action::NxDomain => EngineAction::NxDomain,
                Action::NoData => EngineAction::NoData,
                Action::Passthru => EngineAction::Passthru,
                Action::Drop => EngineAction::Drop,
                Action::TcpOnly => EngineAction::TcpOnly,
                Action::V4 => data(wire::Type::A, &V4),
                Action::V6 => data(wire::Type::AAAA, &V6),
            };
            PolicyRule { trigger, action, ttl: TTL }
        };
        self.rules.iter().filter(|rule| rule.zone == zone).map(entry).collect()
    }
}

/// The data of rules.
const V4: [u8; 4] = [44, 255, 255, 251];
const V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 6, 0, 0, 0, 0, 255, 255, 0, 0, 251, 9];

/// TTL and MINIMUM of the SOA record in a denial.
pub const DENIAL_SOA: (u32, u32) = (TTL, TTL);
