//! What the configuration says of names by itself, naively: records of its own, blocked names, the reverse names of addresses under
//! its prefixes (RFC 6147 section 5.3.1), and `ipv4only.arpa` (RFC 8880). Each is what an upstream would say that knew it.

use crate::config::{Config, Prefix};
use crate::rng::{Rng, mix};
use crate::truth::{A, AAAA, Kind, NameId, PTR, Said, TXT, Truth};
use engine::own::{Own, Record};
use engine::settings::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

/// TTL of records of its own, seconds.
const OWN_TTL: u32 = 7;
/// TTL of what is said of a blocked name.
const BLOCKED_TTL: u32 = 60;
/// TTLs of aliases of reverse names, and of everything else under `arpa`.
const ALIAS_TTL: u32 = 600;
const ARPA_TTL: u32 = 3600;

/// What the configuration has of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    V4,
    V6,
    Both,
    Alias(NameId),
    Blocked,
}

/// What is configured.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    /// Names of the world, of a thousand, that it says something of.
    share: u64,
    salt: u64,
    /// What it says to each question that it answers.
    said: HashMap<(NameId, u16), Rc<Said>>,
}

impl Owned {
    /// Says something of a few names, or of none.
    pub fn draw(rng: &mut Rng) -> Owned {
        Owned { share: *rng.choose(&[0, 0, 0, 100]), salt: rng.next_u64(), said: HashMap::new() }
    }

    /// What is said to a question; none: an upstream is asked.
    pub fn say(&self, name: NameId, rtype: u16) -> Option<&Said> {
        self.said.get(&(name, rtype)).map(|said| &**said)
    }

    /// Whether it says anything of ordinary names.
    pub fn is_in_use(&self) -> bool {
        self.share > 0
    }

    fn has(&self, name: NameId, count: u64) -> Option<Has> {
        let luck = mix(self.salt ^ u64::from(name));
        if luck % 1000 >= self.share {
            return None;
        }
        let target = ((luck >> 32) % count) as NameId;
        Some(match luck >> 16 & 7 {
            0 | 1 => Has::V4,
            2 => Has::V6,
            3 => Has::Both,
            4..=6 if target != name => Has::Alias(target),
            _ => Has::Blocked,
        })
    }

    /// Addresses that nobody else says.
    fn v4(name: NameId) -> [u8; 4] {
        [44, (name >> 8) as u8, name as u8, 250]
    }

    fn v6(name: NameId) -> [u8; 16] {
        [0x20, 1, 0xd, 0xb8, 0, 6, 0, 0, 0, 0, (name >> 8) as u8, name as u8, 0, 0, 250, 9]
    }

    /// The same for the engine.
    pub fn compiled(&self, truth: &Truth) -> Own {
        let (mut records, mut blocked) = (vec![], vec![]);
        for name in 0..truth.names.len() as NameId {
            let mut add = |rtype: u16, rdata: &[u8]| {
                let owner = truth.name(name).wire.clone().into();
                records.push(Record { owner, rtype: engine_type(rtype), ttl: OWN_TTL, rdata: rdata.into() });
            };
            match self.has(name, truth.names.len() as u64) {
                Some(Has::V4) => add(A, &Owned::v4(name)),
                Some(Has::V6) => add(AAAA, &Owned::v6(name)),
                Some(Has::Both) => {
                    add(A, &Owned::v4(name));
                    add(AAAA, &Owned::v6(name));
                }
                Some(Has::Alias(target)) => add(crate::truth::CNAME, &truth.name(target).wire),
                Some(Has::Blocked) => blocked.push(truth.name(name).wire.clone().into()),
                None => {}
            }
        }
        Own::new(records, blocked)
    }
}

/// A type as the engine has it.
fn engine_type(rtype: u16) -> wire::Type {
    wire::Type(rtype)
}

impl Config {
    /// Finds out what it says to all questions that it answers by itself.
    pub fn prepare(&mut self, truth: &Truth) {
        let mut said = HashMap::new();
        let nothing = |ttl| Said { soa: Some((ttl, ttl)), ..Said::default() };
        for name in 0..truth.names.len() as NameId {
            let Some(has) = self.own.has(name, truth.names.len() as u64) else { continue };
            for rtype in [A, AAAA, TXT, PTR] {
                let says = match (has, rtype) {
                    (Has::V4 | Has::Both, A) => {
                        Said { v4: vec![Owned::v4(name)], ttl: OWN_TTL, ..Said::default() }
                    }
                    (Has::V6 | Has::Both, AAAA) => {
                        Said { v6: vec![Owned::v6(name)], ttl: OWN_TTL, ..Said::default() }
                    }
                    (Has::Alias(target), _) => {
                        Said { edges: vec![(name, target, OWN_TTL)], ..Said::default() }
                    }
                    (Has::Blocked, _) => Said { rcode: 3, ..nothing(BLOCKED_TTL) },
                    _ => nothing(OWN_TTL),
                };
                said.insert((name, rtype), Rc::new(says));
            }
        }
        for name in truth.arpa_ids() {
            for rtype in [A, AAAA, TXT, PTR] {
                let says = match truth.name(name).kind {
                    Kind::Reverse(address) => self.say_reverse(truth, name, address),
                    Kind::Ipv4Only => Some(self.say_ipv4only(rtype)),
                    _ => None,
                };
                if let Some(says) = says {
                    said.insert((name, rtype), Rc::new(says));
                }
            }
        }
        self.own.said = said;
    }

    /// A reverse name under the longest of its prefixes, and the well-known one.
    fn say_reverse(&self, truth: &Truth, name: NameId, address: [u8; 16]) -> Option<Said> {
        let well_known = Prefix::well_known();
        let all = self.prefixes.iter().chain(&self.legacy).chain([&well_known]);
        let under = all.filter(|prefix| address[..prefix.length / 8] == prefix.address[..prefix.length / 8]);
        let prefix = under.max_by_key(|prefix| prefix.length)?;
        let nothing = Said { soa: Some((ARPA_TTL, ARPA_TTL)), ..Said::default() };
        match self.reverse {
            Reverse::Off => None,
            Reverse::Local => Some(Said { rcode: 3, ..nothing }),
            Reverse::Cname => Some(match prefix.extract(&address).and_then(|v4| truth.find(&in_addr(v4))) {
                Some(target) => Said { edges: vec![(name, target, ALIAS_TTL)], ..Said::default() },
                None => nothing,
            }),
        }
    }

    /// RFC 8880 section 7.1: the well-known addresses, under every prefix.
    fn say_ipv4only(&self, rtype: u16) -> Said {
        let both = [[192, 0, 0, 170], [192, 0, 0, 171]];
        let mut prefixes: Vec<&Prefix> = vec![];
        for prefix in self.prefixes.iter().chain(&self.legacy) {
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        match rtype {
            A => Said { v4: both.to_vec(), ttl: ARPA_TTL, ..Said::default() },
            AAAA => {
                let all =
                    |v4: [u8; 4]| prefixes.iter().map(move |prefix| prefix.embed(v4)).collect::<Vec<_>>();
                Said { v6: both.into_iter().flat_map(all).collect(), ttl: ARPA_TTL, ..Said::default() }
            }
            _ => Said { soa: Some((ARPA_TTL, ARPA_TTL)), ..Said::default() },
        }
    }
}

/// The reverse name of an IPv4 address in wire form.
pub fn in_addr(v4: [u8; 4]) -> Vec<u8> {
    let mut wire = vec![];
    for octet in v4.iter().rev() {
        let digits = octet.to_string();
        wire.push(digits.len() as u8);
        wire.extend(digits.bytes());
    }
    wire.extend(b"\x07in-addr\x04arpa\x00");
    wire
}

/// The reverse name of an IPv6 address in wire form.
pub fn ip6(address: [u8; 16]) -> Vec<u8> {
    let mut wire = vec![];
    for octet in address.iter().rev() {
        for nibble in [octet & 15, octet >> 4] {
            wire.extend([1, b"0123456789abcdef"[usize::from(nibble)]]);
        }
    }
    wire.extend(b"\x03ip6\x04arpa\x00");
    wire
}
