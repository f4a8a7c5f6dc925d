//! A random world: what the names have, which policy zones there are, and what is local. The model reads these values; the engine gets
//! them as settings and replies.

use crate::rng::Rng;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Number of policy zones, at most.
pub const ZONES: usize = 3;

/// Number of names upstream.
pub const NAMES: usize = 10;

/// The first name that only rules are aliases of: a rule whose alias leads back to its trigger makes a loop, and says nothing about
/// policy.
const GARDENS: usize = 8;

/// Names upstream, by number.
const TEXTS: [&str; NAMES] = [
    "a.test",
    "b.test",
    "c.test",
    "d.test",
    "a.test.garden.test",
    "f.b.test",
    "g.f.b.test",
    "h.c.test",
    "walled.garden.test",
    "other.garden.test",
];

/// Names that a wildcard may stand below.
const PARENTS: [&str; 5] = ["test", "b.test", "f.b.test", "garden.test", "c.test"];

/// Suffix of the walled garden of a wildcard CNAME.
pub const SUFFIX: &str = "garden.test";

/// Local aliases: a name that only local data have.
pub const LOCAL: &str = "www.home.example";

/// Addresses of names. Two are not embedded: 10.0.0.0/8 is not global, and 198.51.0.0/16 is in `never-embed` of some worlds.
const V4: [[u8; 4]; 5] = [[44, 1, 0, 1], [44, 1, 0, 2], [45, 2, 0, 1], [10, 0, 0, 1], [198, 51, 1, 1]];

/// Addresses of names; the last one is under the prefix and thus excluded.
const V6: [&str; 3] = ["2001:470:1::1", "2001:470:2::1", "64:ff9b::2c01:9"];

/// The prefix of synthesis, which is the well-known one.
pub const PREFIX: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// Clients that ask.
pub const CLIENTS: [&str; 3] = ["192.0.2.1", "192.0.2.200", "2001:db8:c::1"];

/// What upstream says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Has {
    /// An alias of another name, with a greater number. True: the reply ends there, and the target has to be asked.
    Alias(usize, bool),
    /// Addresses of both families, perhaps none (NODATA).
    Addresses(Vec<Ipv4Addr>, Vec<Ipv6Addr>),
    /// NXDOMAIN.
    Nothing,
    /// SERVFAIL.
    Failure,
}

/// Trigger of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Exactly this name.
    Name(String),
    /// All names below this one.
    Below(String),
    /// An address in an answer: network and length of its prefix.
    Address(IpAddr, u8),
    /// The address of a client.
    Client(IpAddr, u8),
}

/// Action of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// NXDOMAIN.
    NxDomain,
    /// NODATA.
    NoData,
    /// Exempt.
    Passthru,
    /// No answer.
    Drop,
    /// TC over UDP.
    TcpOnly,
    /// Records of the zone: A, AAAA, TXT.
    Data(Vec<Ipv4Addr>, Vec<Ipv6Addr>, bool),
    /// An alias of one of the names upstream.
    Alias(usize),
    /// An alias of the name itself below the garden.
    Suffix,
}

/// A rule of a policy zone.
#[derive(Clone, Debug)]
pub struct Rule {
    /// When it applies.
    pub trigger: Trigger,
    /// What it does.
    pub action: Action,
    /// A passthru in the form of a CNAME to the trigger itself.
    pub is_old_form: bool,
}

/// A world.
#[derive(Clone, Debug)]
pub struct World {
    /// What each name has.
    pub names: Vec<Has>,
    /// Policy zones, in their order.
    pub zones: Vec<Vec<Rule>>,
    /// Target of the local alias.
    pub local: usize,
    /// Networks that are never embedded, of 198.51.0.0/16 and none.
    pub never_embeds: bool,
    /// Both lookups at once.
    pub is_parallel: bool,
    /// No synthesis for queries without RD.
    pub is_recursive_only: bool,
}

/// Text of a name upstream.
pub fn text(name: usize) -> &'static str {
    TEXTS[name]
}

/// Number of a name upstream.
pub fn number(name: &str) -> Option<usize> {
    TEXTS.iter().position(|text| *text == name)
}

fn some<T: Clone>(rng: &mut Rng, of: &[T], most: u64) -> Vec<T> {
    let count = rng.below(most + 1);
    let mut chosen: Vec<usize> = (0..count).map(|_| rng.below(of.len() as u64) as usize).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|place| of[place].clone()).collect()
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, has) in self.names.iter().enumerate() {
            writeln!(f, "  {}: {has:?}", text(name))?;
        }
        for (zone, rules) in self.zones.iter().enumerate() {
            rules.iter().try_for_each(|rule| writeln!(f, "  zone {zone}: {rule:?}"))?;
        }
        let World { local, never_embeds, is_parallel, is_recursive_only, .. } = self;
        writeln!(f, "  {LOCAL}: {}; 198.51.0.0/16 never embedded: {never_embeds}", text(*local))?;
        write!(f, "  parallel: {is_parallel}; recursive only: {is_recursive_only}")
    }
}

impl World {
    /// Draws the world of a seed.
    pub fn draw(seed: u64) -> World {
        let rng = &mut Rng::new(seed);
        let names = (0..NAMES).map(|name| World::draw_name(rng, name)).collect();
        let zones = (0..1 + rng.below(ZONES as u64)).map(|_| World::draw_zone(rng)).collect();
        World {
            names,
            zones,
            local: rng.below(NAMES as u64) as usize,
            never_embeds: rng.permille(300),
            is_parallel: rng.permille(400),
            is_recursive_only: rng.permille(300),
        }
    }

    fn draw_name(rng: &mut Rng, name: usize) -> Has {
        let later = GARDENS.saturating_sub(name + 1) as u64;
        match rng.below(10) {
            0..4 if later > 0 => Has::Alias(name + 1 + rng.below(later) as usize, rng.permille(300)),
            4 => Has::Nothing,
            5 if rng.permille(300) => Has::Failure,
            _ => {
                let v4 = some(rng, &V4, 2).into_iter().map(Ipv4Addr::from).collect();
                let v6: Vec<Ipv6Addr> = V6.iter().map(|text| text.parse().expect("a constant")).collect();
                let v6 = if rng.permille(600) { vec![] } else { some(rng, &v6, 2) };
                Has::Addresses(v4, v6)
            }
        }
    }

    fn draw_zone(rng: &mut Rng) -> Vec<Rule> {
        let mut rules: Vec<Rule> = vec![];
        for _ in 0..rng.below(6) {
            let trigger = World::draw_trigger(rng);
            if rules.iter().all(|rule| rule.trigger != trigger) {
                let action = match (World::draw_action(rng), &trigger) {
                    // An alias to the trigger itself, a wildcard too, is the old form of an exemption.
                    (Action::Suffix, Trigger::Below(above)) if above == SUFFIX => Action::Passthru,
                    (Action::Alias(target), Trigger::Name(name)) if text(target) == name => Action::Passthru,
                    (action, _) => action,
                };
                // A wildcard owner has no form of an alias to itself, and an address has.
                let is_old_form = !matches!(trigger, Trigger::Below(_)) && rng.permille(300);
                rules.push(Rule { trigger, action, is_old_form });
            }
        }
        rules
    }

    fn draw_trigger(rng: &mut Rng) -> Trigger {
        let any = |rng: &mut Rng| rng.below(NAMES as u64) as usize;
        match rng.below(10) {
            0..4 => Trigger::Name(text(any(rng)).to_owned()),
            4 => Trigger::Below((*rng.choose(&PARENTS)).to_owned()),
            5..8 => {
                let v4 = Ipv4Addr::from(*rng.choose(&V4));
                let v6: Ipv6Addr = rng.choose(&V6).parse().expect("a constant");
                let mut synthesized = [0; 16];
                synthesized[..12].copy_from_slice(&PREFIX);
                synthesized[12..].copy_from_slice(&v4.octets());
                let (address, lengths): (IpAddr, &[u8]) = match rng.below(4) {
                    0 => (v6.into(), &[48, 64, 128]),
                    1 => (Ipv6Addr::from(synthesized).into(), &[96, 104, 128]),
                    _ => (v4.into(), &[8, 16, 24, 32]),
                };
                let length = *rng.choose(lengths);
                Trigger::Address(first_address(address, length), length)
            }
            _ => {
                let client: IpAddr = rng.choose(&CLIENTS).parse().expect("a constant");
                let length = *rng.choose(if client.is_ipv4() { &[24, 32] } else { &[64, 128] });
                Trigger::Client(first_address(client, length), length)
            }
        }
    }

    fn draw_action(rng: &mut Rng) -> Action {
        match rng.below(12) {
            0 | 1 => Action::NxDomain,
            2 => Action::NoData,
            3 | 4 => Action::Passthru,
            5 => Action::Drop,
            6 => Action::TcpOnly,
            7 => Action::Alias(GARDENS + rng.below((NAMES - GARDENS) as u64) as usize),
            8 => Action::Suffix,
            _ => {
                let v4 = [Ipv4Addr::new(46, 0, 0, 1), Ipv4Addr::new(10, 9, 9, 9)];
                let v6 = ["2001:470:9::80".parse().expect("a constant")];
                let (v4, v6) = (some(rng, &v4, 2), some(rng, &v6, 1));
                // A rule has at least one record.
                let has_text = v4.is_empty() && v6.is_empty() || rng.permille(300);
                Action::Data(v4, v6, has_text)
            }
        }
    }
}

/// The first address of a network.
fn first_address(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4) >> (32 - length) << (32 - length)).into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> (128 - length) << (128 - length)).into(),
    }
}
