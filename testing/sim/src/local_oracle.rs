//! Answers that a naive server gives from its own configuration: local records, blocked names, the reverse names of addresses
//! under its prefixes (RFC 6147 section 5.3.1) and of mapped ones (RFC 7757), and `ipv4only.arpa` (RFC 8880). Each answer has the form of an upstream's reply,
//! so that the oracle treats both alike.

use crate::ground_truth::{A, AAAA, CNAME, GroundTruth, Kind, NameId, PTR, Said, TXT};
use crate::mappings::MappingLines;
use crate::prefix::Prefix;
use crate::reverse_name::in_addr;
use crate::rng::Rng;
use engine::local::{LocalData, LocalRecord};
use engine::settings::Reverse;
use splitmix::mix;
use std::collections::BTreeMap;
use std::rc::Rc;

/// TTL of local records, seconds.
const LOCAL_TTL: u32 = 7;
/// TTL of the denial of a blocked name, seconds.
const BLOCKED_TTL: u32 = 60;
/// TTL of the CNAME record of a reverse name, seconds.
const ALIAS_TTL: u32 = 600;
/// TTL of the empty answer while no prefix was discovered, seconds.
const UNDISCOVERED_TTL: u32 = 5;
/// TTL of all other data under `arpa`, seconds.
const ARPA_TTL: u32 = 3600;

/// The local data of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocalKind {
    V4,
    V6,
    Both,
    Alias(NameId),
    Blocked,
}

/// The local data of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    /// Names with local data, of a thousand names of the world.
    share: u64,
    salt: u64,
    /// The answer to each question that the configuration answers.
    said: BTreeMap<(NameId, u16), Rc<Said>>,
}

impl Owned {
    /// Draws local data for a few names, or for none.
    pub fn draw(rng: &mut Rng) -> Owned {
        Owned { share: *rng.choose(&[0, 0, 0, 100]), salt: rng.next_u64(), said: BTreeMap::new() }
    }

    /// The local answer to a question; none: an upstream is asked.
    pub fn lookup(&self, name: NameId, rtype: u16) -> Option<&Said> {
        self.said.get(&(name, rtype)).map(|said| &**said)
    }

    /// True if names outside `arpa` may have local data.
    pub fn is_in_use(&self) -> bool {
        self.share > 0
    }

    /// Computes the answers to all questions that the configuration answers. `prefixes`: all prefixes of the configuration, in
    /// order; `longest_ttl`: that with which clients learn of them, if it is short, seconds; `reverse`: the treatment of the reverse names
    /// of addresses under them, and of mapped ones.
    pub fn prepare(
        &mut self,
        ground_truth: &GroundTruth,
        prefixes: &[Prefix],
        longest_ttl: Option<u32>,
        mappings: &MappingLines,
        reverse: Reverse,
    ) {
        let mut said = BTreeMap::new();
        self.add_ordinary_names(ground_truth, &mut said);
        for name in ground_truth.arpa_ids() {
            for rtype in [A, AAAA, TXT, PTR] {
                let reply = match ground_truth.name(name).kind {
                    Kind::Reverse(address)
                        if reverse == Reverse::Off || mappings.to_v4(address).is_none() =>
                    {
                        reverse_reply(ground_truth, name, address, prefixes, reverse)
                    }
                    Kind::Reverse(address) => mappings.to_v4(address).map(|v4| alias(ground_truth, name, v4)),
                    Kind::Ipv4Only => Some(ipv4only_reply(rtype, prefixes, longest_ttl)),
                    _ => None,
                };
                if let Some(reply) = reply {
                    said.insert((name, rtype), Rc::new(reply));
                }
            }
        }
        self.said = said;
    }

    fn add_ordinary_names(&self, ground_truth: &GroundTruth, said: &mut BTreeMap<(NameId, u16), Rc<Said>>) {
        for name in 0..ground_truth.names.len() as NameId {
            let Some(kind) = self.kind_of(name, ground_truth.names.len() as u64) else { continue };
            for rtype in [A, AAAA, TXT, PTR] {
                let reply = match (kind, rtype) {
                    (LocalKind::V4 | LocalKind::Both, A) => {
                        Said { v4: vec![Owned::v4(name)], ttl: LOCAL_TTL, ..Said::default() }
                    }
                    (LocalKind::V6 | LocalKind::Both, AAAA) => {
                        Said { v6: vec![Owned::v6(name)], ttl: LOCAL_TTL, ..Said::default() }
                    }
                    (LocalKind::Alias(target), _) => {
                        Said { edges: vec![(name, target, LOCAL_TTL)], ..Said::default() }
                    }
                    (LocalKind::Blocked, _) => Said { rcode: 3, ..no_data(BLOCKED_TTL) },
                    _ => no_data(LOCAL_TTL),
                };
                said.insert((name, rtype), Rc::new(reply));
            }
        }
    }

    fn kind_of(&self, name: NameId, count: u64) -> Option<LocalKind> {
        let random = mix(self.salt ^ u64::from(name));
        if random % 1000 >= self.share {
            return None;
        }
        let target = ((random >> 32) % count) as NameId;
        Some(match random >> 16 & 7 {
            0 | 1 => LocalKind::V4,
            2 => LocalKind::V6,
            3 => LocalKind::Both,
            4..=6 if target != name => LocalKind::Alias(target),
            _ => LocalKind::Blocked,
        })
    }

    /// The local IPv4 address of a name. Upstreams never return it.
    fn v4(name: NameId) -> [u8; 4] {
        [44, (name >> 8) as u8, name as u8, 250]
    }

    /// The local IPv6 address of a name. Upstreams never return it.
    fn v6(name: NameId) -> [u8; 16] {
        [0x20, 1, 0xd, 0xb8, 0, 6, 0, 0, 0, 0, (name >> 8) as u8, name as u8, 0, 0, 250, 9]
    }

    /// The local data as the engine's type.
    pub fn to_engine(&self, ground_truth: &GroundTruth) -> LocalData {
        let (mut records, mut blocked) = (vec![], vec![]);
        for name in 0..ground_truth.names.len() as NameId {
            let mut add = |rtype: u16, rdata: &[u8]| {
                let owner = ground_truth.name(name).wire.clone().into();
                records.push(LocalRecord {
                    owner,
                    rtype: wire::Type(rtype),
                    ttl: LOCAL_TTL,
                    rdata: rdata.into(),
                });
            };
            match self.kind_of(name, ground_truth.names.len() as u64) {
                Some(LocalKind::V4) => add(A, &Owned::v4(name)),
                Some(LocalKind::V6) => add(AAAA, &Owned::v6(name)),
                Some(LocalKind::Both) => {
                    add(A, &Owned::v4(name));
                    add(AAAA, &Owned::v6(name));
                }
                Some(LocalKind::Alias(target)) => add(CNAME, &ground_truth.name(target).wire),
                Some(LocalKind::Blocked) => blocked.push(ground_truth.name(name).wire.clone().into()),
                None => {}
            }
        }
        LocalData::new(records, blocked)
    }
}

/// A NODATA answer whose SOA record has this TTL and MINIMUM.
fn no_data(ttl: u32) -> Said {
    Said { soa: Some((ttl, ttl)), ..Said::default() }
}

/// The local answer for a reverse name under the longest of the prefixes or under the Well-Known Prefix; none: under no prefix. Bits
/// 64 to 71 of the addresses are zero here (RFC 6052 section 2.2): the truth embeds them.
fn reverse_reply(
    ground_truth: &GroundTruth,
    name: NameId,
    address: [u8; 16],
    prefixes: &[Prefix],
    reverse: Reverse,
) -> Option<Said> {
    let well_known = Prefix::well_known();
    let containing = prefixes.iter().chain([&well_known]).filter(|prefix| prefix.contains(&address));
    let prefix = containing.max_by_key(|prefix| prefix.length)?;
    match reverse {
        Reverse::Off => None,
        Reverse::Local => Some(Said { rcode: 3, ..no_data(ARPA_TTL) }),
        Reverse::Cname => Some(
            prefix.extract(&address).map_or_else(|| no_data(ARPA_TTL), |v4| alias(ground_truth, name, v4)),
        ),
    }
}

/// The alias of the reverse name of an IPv4 address.
fn alias(ground_truth: &GroundTruth, name: NameId, v4: [u8; 4]) -> Said {
    match ground_truth.find(&in_addr(v4)) {
        Some(target) => Said { edges: vec![(name, target, ALIAS_TTL)], ..Said::default() },
        None => no_data(ARPA_TTL),
    }
}

/// RFC 8880 section 7.1: the well-known IPv4 addresses, and their IPv6 addresses under every prefix.
fn ipv4only_reply(rtype: u16, all: &[Prefix], longest_ttl: Option<u32>) -> Said {
    let both = [[192, 0, 0, 170], [192, 0, 0, 171]];
    let mut prefixes: Vec<&Prefix> = vec![];
    for prefix in all {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    match rtype {
        A => Said { v4: both.to_vec(), ttl: ARPA_TTL, ..Said::default() },
        AAAA if prefixes.is_empty() => no_data(UNDISCOVERED_TTL),
        AAAA => {
            let ttl = longest_ttl.map_or(ARPA_TTL, |ttl| ttl.min(ARPA_TTL));
            let all = |v4: [u8; 4]| prefixes.iter().map(move |prefix| prefix.embed(v4)).collect::<Vec<_>>();
            Said { v6: both.into_iter().flat_map(all).collect(), ttl, ..Said::default() }
        }
        _ => no_data(ARPA_TTL),
    }
}
