//! The truth of a keyed world: a tree of zones, what their names have at each time, and which zones a validator can trust.
//!
//! Addresses change in every epoch, and tell their zone, name and epoch, so a reply that was replayed is recognized. Keys of a zone change
//! from generation to generation, each of them known for three.

use crate::keyed_worlds::names::{Name, ancestors, below, compare, is_at_or_below, labels, wildcard};
use crate::keyed_worlds::signer::{Key, Verifier};
use crate::rng::Rng;
use splitmix::mix;
use std::collections::BTreeMap;

pub(super) const A: u16 = 1;
pub(super) const NS: u16 = 2;
pub(super) const CNAME: u16 = 5;
pub(super) const SOA: u16 = 6;
pub(super) const TXT: u16 = 16;
pub(super) const AAAA: u16 = 28;
pub(super) const DNAME: u16 = 39;
pub(super) const DS: u16 = 43;
pub(super) const RRSIG: u16 = 46;
pub(super) const NSEC: u16 = 47;
pub(super) const DNSKEY: u16 = 48;
pub(super) const NSEC3: u16 = 50;

/// Longest time of a world, seconds.
pub(super) const LONGEST_SECS: u64 = 4000;

/// Delegation of a zone, and its signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Signed, with DS records or an anchor.
    Signed,
    /// Without signatures and DS records.
    Unsigned,
    /// Signed, without DS records.
    Island,
    /// Signed, with DS records of an algorithm that nobody supports.
    Unsupported,
    /// With DS records, and a chain that is broken.
    Broken(Break),
}

/// Break of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The DS records are those of another key.
    Ds,
    /// All signatures have expired.
    Expired,
    /// The signatures have expired, but for those of keys.
    DataExpired,
    /// The signatures are valid in the future only.
    Early,
    /// The data are signed with a key that is not one of the zone.
    Key,
    /// Data have no signatures.
    Unsigned,
    /// Questions about keys fail.
    Mute,
}

/// Trust that a validator owes a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Secure,
    Insecure,
    Bogus,
    /// Secure, with keys that the forger has.
    Forger,
}

/// Denial of a signed zone.
#[derive(Clone, Debug)]
pub(super) enum Denial {
    Nsec,
    Nsec3 { opts_out: bool, iterations: u16, salt: Vec<u8> },
}

/// Presence of AAAA records at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Never,
    Always,
    /// In some epochs.
    Sometimes,
}

/// What a name has.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Host {
        has_a: bool,
        aaaa: Presence,
        count: u8,
    },
    Alias(Name),
    Redirection(Name),
    /// A zone begins below.
    Cut(usize),
}

/// Zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) apex: Name,
    pub(super) parent: Option<usize>,
    pub(super) kind: Kind,
    pub(super) trust: Trust,
    pub(super) has_anchor: bool,
    pub(super) has_negative_anchor: bool,
    pub(super) denial: Denial,
    pub(super) nodes: BTreeMap<Name, Node>,
    /// Owners of NSEC records in canonical order, or of NSEC3 records in the order of their hashes.
    pub(super) chain: Vec<(Vec<u8>, Name)>,
    has_split_keys: bool,
    rolls: bool,
    secret: u64,
}

/// Keys of a zone at a time.
pub(super) struct ZoneKeys {
    /// All of them; signatures of now are made with `entry` over the keys, and with `data` over anything else.
    pub(super) all: Vec<Key>,
    pub(super) entry: Key,
    pub(super) data: Key,
    /// Keys that the DS records name.
    pub(super) delegated: Vec<Key>,
}

/// Fate of a name and a type, without following aliases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Data(Vec<Vec<u8>>),
    Alias(Name),
    NoData,
    NoName,
}

/// Place of the records that decide about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The name exists, perhaps as an empty non-terminal.
    Exact,
    /// The wildcard below this name.
    Wildcard(Name),
    /// The DNAME record of this name.
    Redirection(Name),
    /// Nothing below this name.
    Nowhere(Name),
}

/// Tree of zones.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) zones: Vec<Zone>,
    /// Zone whose keys the forger has.
    pub(super) forgers: usize,
    /// TTL of all records, seconds.
    pub(super) ttl: u32,
    /// Time for which a signature is valid, seconds.
    pub(super) validity: u64,
    epoch_secs: u64,
    generation_secs: u64,
    /// Time of day at the start, seconds since 1970 modulo 2^32.
    pub(super) base: u32,
    pub(super) verifier: Verifier,
}

impl Tree {
    /// Draws a tree.
    pub(super) fn draw(rng: &mut Rng) -> Tree {
        let ttl = *rng.choose(&[5, 20, 60, 120]);
        let mut tree = Tree {
            zones: vec![],
            forgers: usize::MAX,
            ttl,
            validity: *rng.choose(&[20, 60, 150, 400]),
            epoch_secs: *rng.choose(&[60, 120, 300]),
            generation_secs: *rng.choose(&[250, 500, 1000]),
            // Serial numbers of time go round in 2106.
            base: *rng.choose(&[1_800_000_000, u32::MAX - 700]),
            verifier: Verifier::default(),
        };
        tree.draw_zones(rng);
        for zone in 0..tree.zones.len() {
            tree.fill(zone, rng);
        }
        tree.judge();
        tree.forgers = tree.draw_forgers(rng);
        tree.judge();
        for zone in 0..tree.zones.len() {
            tree.link(zone);
            let generations = 2 + LONGEST_SECS / tree.generation_secs;
            for generation in 0..=generations {
                let keys = tree.keys_of(zone, generation);
                keys.all.iter().for_each(|key| tree.verifier.add(key));
                let twin = tree.twin(zone, generation * tree.generation_secs);
                tree.verifier.add(&twin);
            }
        }
        tree
    }

    fn draw_zones(&mut self, rng: &mut Rng) {
        self.zones.push(Zone::draw(vec![0], None, rng));
        let count = 4 + rng.below(8) as usize;
        while self.zones.len() < count {
            let number = self.zones.len();
            let parent = rng.below(number as u64) as usize;
            if labels(&self.zones[parent].apex) > 3 {
                continue;
            }
            let middle = if rng.permille(120) { ".co" } else { "" };
            let apex = below(&format!("z{number}{middle}"), &self.zones[parent].apex);
            let zone = Zone::draw(apex.clone(), Some(parent), rng);
            self.zones[parent].nodes.insert(apex, Node::Cut(number));
            self.zones.push(zone);
        }
    }

    /// Has a leaf of the tree be a secure zone with keys of the forger.
    fn draw_forgers(&mut self, rng: &mut Rng) -> usize {
        let is_fit = |number: &usize| self.zones[*number].trust == Trust::Secure;
        let parents: Vec<usize> = (0..self.zones.len()).filter(is_fit).collect();
        let parent = *rng.choose(&parents);
        let number = self.zones.len();
        let apex = below("evil", &self.zones[parent].apex);
        let mut zone = Zone::draw(apex.clone(), Some(parent), rng);
        zone.kind = Kind::Signed;
        zone.has_negative_anchor = false;
        self.zones[parent].nodes.insert(apex, Node::Cut(number));
        self.zones.push(zone);
        self.fill(number, rng);
        number
    }

    /// Fills a zone with names. Aliases lead to names that were there before, so they end.
    fn fill(&mut self, zone: usize, rng: &mut Rng) {
        let apex = self.zones[zone].apex.clone();
        let mut hosts = vec!["h0", "h1", "h2", "deep.ent", "own.wild", "*.wild"];
        hosts.extend(["", "zz.h1", "*", "h3"].iter().filter(|_| rng.permille(400)));
        for label in hosts {
            let has_a = !rng.permille(150);
            let aaaa = *rng.choose(&[
                Presence::Never,
                Presence::Never,
                Presence::Always,
                Presence::Always,
                Presence::Sometimes,
            ]);
            let host = Node::Host { has_a, aaaa, count: 1 + u8::from(rng.permille(300)) };
            self.zones[zone].nodes.insert(below(label, &apex), host);
        }
        for label in ["c0", "c1", "*.cwild", "own.cwild"] {
            let target = self.target(zone, rng);
            self.zones[zone].nodes.insert(below(label, &apex), Node::Alias(target));
        }
        if zone > 0 && rng.permille(400) {
            let target = self.zones[rng.below(zone as u64) as usize].apex.clone();
            self.zones[zone].nodes.insert(below("d", &apex), Node::Redirection(target));
        }
    }

    /// Target of an alias of a zone: a name that was drawn before.
    fn target(&self, zone: usize, rng: &mut Rng) -> Name {
        let zone = rng.below(zone as u64 + 1) as usize;
        let zone = &self.zones[zone];
        let is_end = |node: &(&Name, &Node)| !matches!(node.1, Node::Alias(_) | Node::Cut(_));
        let wants_end = !rng.permille(400);
        let nodes: Vec<_> = zone.nodes.iter().filter(|node| !wants_end || is_end(node)).collect();
        match nodes.get(rng.below(nodes.len() as u64 + 1) as usize) {
            Some((name, Node::Redirection(_))) => below("h0", name),
            Some((name, _)) if name.starts_with(b"\x01*") => below("some", &name[2..]),
            Some((name, _)) => name.to_vec(),
            None => below("nothing", &zone.apex),
        }
    }

    /// Decides about anchors and trust, from the root down.
    fn judge(&mut self) {
        self.zones[0].has_anchor = true;
        self.zones[0].kind = Kind::Signed;
        self.zones[0].has_negative_anchor = false;
        for number in 0..self.zones.len() {
            let above = self.zones[number].parent.map_or(Trust::Secure, |parent| self.zones[parent].trust);
            let zone = &mut self.zones[number];
            zone.trust = match (zone.has_negative_anchor, zone.has_anchor, above, zone.kind) {
                (true, ..) => Trust::Insecure,
                (_, true, ..) | (_, _, Trust::Secure, Kind::Signed) => Trust::Secure,
                (_, _, Trust::Secure, Kind::Broken(_)) => Trust::Bogus,
                (_, _, Trust::Secure, _) => Trust::Insecure,
                (_, _, above, _) => above,
            };
            // The anchor is the first key.
            zone.rolls &= !zone.has_anchor;
        }
        if let Some(forgers) = self.zones.get_mut(self.forgers) {
            forgers.trust = Trust::Forger;
        }
    }

    /// Builds the chain of denials of a zone.
    fn link(&mut self, number: usize) {
        let zone = &self.zones[number];
        let is_hashed = matches!(zone.denial, Denial::Nsec3 { .. });
        let mut owners: Vec<Name> = vec![zone.apex.clone()];
        for (owner, node) in &zone.nodes {
            let is_left_out = zone.opts_out()
                && matches!(node, Node::Cut(child) if matches!(self.zones[*child].kind, Kind::Unsigned | Kind::Island));
            if !is_left_out {
                owners.push(owner.clone());
            }
            if is_hashed {
                let between = ancestors(owner).skip(1).take_while(|it| it.len() > zone.apex.len());
                owners.extend(between.map(<[u8]>::to_vec));
            }
        }
        owners.sort_by(|a, b| compare(a, b));
        owners.dedup();
        let mut chain: Vec<_> = owners.into_iter().map(|owner| (zone.hash(&owner), owner)).collect();
        if is_hashed {
            chain.sort();
        }
        self.zones[number].chain = chain;
    }

    /// Zone to which a name belongs: the parent's for DS records.
    pub(super) fn zone_of(&self, name: &[u8], rtype: u16) -> usize {
        let is_it = |zone: &Zone| {
            is_at_or_below(name, &zone.apex) && !(rtype == DS && name == zone.apex && zone.parent.is_some())
        };
        let zones = self.zones.iter().enumerate().filter(|(_, zone)| is_it(zone));
        zones.max_by_key(|(_, zone)| zone.apex.len()).map_or(0, |(number, _)| number)
    }

    /// Keys of a zone at a time in seconds.
    pub(super) fn keys(&self, zone: usize, secs: u64) -> ZoneKeys {
        self.keys_of(zone, secs / self.generation_secs)
    }

    /// Key of the forger with the key tag of the first key of a zone.
    pub(super) fn twin(&self, zone: usize, secs: u64) -> Key {
        let secret = !self.zones[zone].secret ^ mix(secs / self.generation_secs);
        Key::with_tag(secret, self.keys(zone, secs).entry.tag())
    }

    fn keys_of(&self, zone: usize, generation: u64) -> ZoneKeys {
        let Zone { has_split_keys, rolls, secret, .. } = self.zones[zone];
        let key = |role: u64, generation: u64| Key::new(mix(secret ^ mix(generation << 8 | role)));
        // Before it signs, a key is there for a generation, and after that for another one.
        let around = generation.saturating_sub(1)..=generation + 1;
        let [entry, mut data] = [if rolls { generation } else { 0 }; 2].map(|it| key(0, it));
        let delegated = match rolls {
            true => around.clone().map(|it| key(0, it)).collect(),
            false => vec![entry.clone()],
        };
        let mut all = delegated.clone();
        if has_split_keys {
            data = key(1, generation);
            all.extend(around.map(|it| key(1, it)));
        }
        ZoneKeys { all, entry, data, delegated }
    }

    /// Epochs whose data a validator may believe at a time: that of now, and those whose last signatures are valid still. Of insecure zones
    /// only the TTL counts.
    pub(super) fn epochs(&self, zone: usize, secs: u64) -> core::ops::RangeInclusive<u64> {
        let is_insecure = self.zones[zone].trust == Trust::Insecure;
        let oldest = if is_insecure { u64::from(self.ttl) } else { self.validity };
        let first = secs.saturating_sub(oldest + super::PATIENCE_SECS) / self.epoch_secs;
        first..=secs / self.epoch_secs
    }

    /// Start of an epoch, in seconds.
    pub(super) fn start(&self, epoch: u64) -> u64 {
        epoch * self.epoch_secs
    }

    /// Records of a name that owns some, of a type.
    pub(super) fn records(&self, zone: usize, owner: &[u8], rtype: u16, secs: u64) -> Vec<Vec<u8>> {
        let data = &self.zones[zone];
        let epoch = secs / self.epoch_secs;
        if owner == data.apex {
            match rtype {
                SOA => return vec![self.soa(zone)],
                NS => return vec![below("ns", owner)],
                DNSKEY if data.is_signed() => {
                    return self.keys(zone, secs).all.iter().map(Key::rdata).collect();
                }
                _ => {}
            }
        }
        let Some(node) = data.nodes.get(owner) else { return vec![] };
        let number = data.nodes.keys().take_while(|name| name[..] < *owner).count() as u8;
        match (node, rtype) {
            (Node::Host { has_a: true, count, .. }, A) => {
                (0..*count).map(|turn| vec![11 + turn, zone as u8, number, epoch as u8]).collect()
            }
            (Node::Host { aaaa, count, .. }, AAAA) => {
                let is_there = match aaaa {
                    Presence::Never => false,
                    Presence::Always => true,
                    Presence::Sometimes => mix(epoch ^ u64::from(number) << 32).is_multiple_of(2),
                };
                let address = |turn: u8| {
                    let mut address = [0; 16];
                    address[..6].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 1]);
                    address[12..].copy_from_slice(&[turn, zone as u8, number, epoch as u8]);
                    address.to_vec()
                };
                (0..if is_there { *count } else { 0 }).map(address).collect()
            }
            (Node::Alias(target), CNAME) | (Node::Redirection(target), DNAME) => vec![target.clone()],
            (Node::Cut(_), NS) => vec![below("ns", owner)],
            (Node::Cut(child), DS) => self.ds(*child, secs),
            _ => vec![],
        }
    }

    fn ds(&self, child: usize, secs: u64) -> Vec<Vec<u8>> {
        let zone = &self.zones[child];
        let change = |place: usize, octet: u8| {
            move |mut ds: Vec<u8>| {
                ds[place] ^= octet;
                ds
            }
        };
        let all = self.keys(child, secs).delegated;
        let good = all.iter().map(|key| key.ds(&zone.apex));
        match zone.kind {
            Kind::Unsigned | Kind::Island => vec![],
            Kind::Unsupported => good.map(change(2, 0xf0)).collect(),
            Kind::Broken(Break::Ds) => good.map(change(10, 1)).collect(),
            _ => good.collect(),
        }
    }

    fn soa(&self, zone: usize) -> Vec<u8> {
        let apex = &self.zones[zone].apex;
        let fields = [1, 2, 3, 4, self.ttl].map(u32::to_be_bytes);
        [&below("ns", apex)[..], &below("host", apex), fields.as_flattened()].concat()
    }

    /// Types that an owner has. For an empty non-terminal there are none.
    pub(super) fn types(&self, zone: usize, owner: &[u8], secs: u64) -> Vec<u16> {
        let all = [A, NS, CNAME, SOA, AAAA, DNAME, DS, DNSKEY];
        all.into_iter().filter(|&rtype| !self.records(zone, owner, rtype, secs).is_empty()).collect()
    }

    /// Fate of a name and a type in the zone to which they belong, and the place of the records that decide.
    pub(super) fn fate(&self, zone: usize, name: &[u8], rtype: u16, secs: u64) -> (Fate, Source) {
        let data = &self.zones[zone];
        let inside = || ancestors(name).take_while(|it| it.len() >= data.apex.len());
        let redirection = inside().skip(1).find_map(|above| match data.nodes.get(above) {
            Some(Node::Redirection(target)) => Some((above, target)),
            _ => None,
        });
        if let Some((above, target)) = redirection {
            let moved = [&name[..name.len() - above.len()], target].concat();
            return (Fate::Alias(moved), Source::Redirection(above.to_vec()));
        }
        let of = |owner: &[u8], source: Source| {
            let records = self.records(zone, owner, rtype, secs);
            let fate = match data.nodes.get(owner) {
                _ if !records.is_empty() => Fate::Data(records),
                Some(Node::Alias(target)) => Fate::Alias(target.clone()),
                _ => Fate::NoData,
            };
            (fate, source)
        };
        if data.exists(name) {
            return of(name, Source::Exact);
        }
        let encloser = inside().skip(1).find(|above| data.exists(above)).unwrap_or(&data.apex).to_vec();
        let star = wildcard(&encloser);
        match data.nodes.contains_key(&star) {
            true => of(&star, Source::Wildcard(encloser)),
            false => (Fate::NoName, Source::Nowhere(encloser)),
        }
    }
}

impl Zone {
    fn draw(apex: Name, parent: Option<usize>, rng: &mut Rng) -> Zone {
        let kind = match rng.below(100) {
            0..60 => Kind::Signed,
            60..78 => Kind::Unsigned,
            78..83 => Kind::Island,
            83..86 => Kind::Unsupported,
            _ => Kind::Broken(*rng.choose(&[
                Break::Ds,
                Break::Expired,
                Break::DataExpired,
                Break::DataExpired,
                Break::Early,
                Break::Key,
                Break::Unsigned,
                Break::Mute,
            ])),
        };
        let has_anchor = kind == Kind::Island && rng.permille(500);
        let salt = (0..rng.below(5)).map(|_| rng.next_u64() as u8).collect();
        let denial = match rng.permille(450) {
            true => Denial::Nsec,
            false => {
                let iterations = *rng.choose(&[0, 0, 0, 1, 5]);
                Denial::Nsec3 { opts_out: rng.permille(500), iterations, salt }
            }
        };
        Zone {
            apex,
            parent,
            kind,
            trust: Trust::Bogus,
            has_anchor,
            has_negative_anchor: !has_anchor && rng.permille(40),
            denial,
            nodes: BTreeMap::new(),
            chain: vec![],
            has_split_keys: rng.permille(500),
            rolls: rng.permille(600),
            secret: rng.next_u64(),
        }
    }

    /// True if the zone has signatures, right or wrong.
    pub(super) fn is_signed(&self) -> bool {
        self.kind != Kind::Unsigned
    }

    /// True if spans of hashes may have unsigned delegations.
    pub(super) fn opts_out(&self) -> bool {
        matches!(self.denial, Denial::Nsec3 { opts_out: true, .. })
    }

    /// True if a name owns records or is an empty non-terminal.
    pub(super) fn exists(&self, name: &[u8]) -> bool {
        name == self.apex || self.nodes.keys().any(|owner| is_at_or_below(owner, name))
    }

    /// Hash of a name (RFC 5155 section 5). Nothing for zones without hashes.
    pub(super) fn hash(&self, name: &[u8]) -> Vec<u8> {
        let Denial::Nsec3 { iterations, salt, .. } = &self.denial else { return vec![] };
        let digest = |octets: &[u8]| (super::signer::DIGESTS.sha1)(&[octets, salt].concat()).to_vec();
        (0..*iterations).fold(digest(name), |hash, _| digest(&hash))
    }
}
