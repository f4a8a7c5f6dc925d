//! World of zones, from the root down to a zone with a fault, and the replies that a resolver with CD gives about them.
//!
//! Replies are those of RFC 4035 section 3.1 and RFC 5155 section 7.2, but for the fault.

mod forest;
mod made;
mod proofs;
mod signatures;
mod spoiled;

use crate::faults::{AnchorTwist, DsTwist, Fault, Plant, ReplyTwist};
use crate::keys::{ALGORITHMS, Key, Keys, Store};
use crate::name::{Name, ancestors, below, child, is_at_or_below, parent};
use crate::record::{Reply, Rrset, rtype};
use crate::verdict::{Kind, QUESTIONS};
use crate::zone::{Denial, Hashing, TTL, Zone};
pub use forest::{Forest, is_of_root_anchor};
use kit::Random;
use made::{algorithm_of, denial, fill, needs_two_keys, pair, slip_in, zone_keys};

/// Places in the list of zones.
const ROOT: usize = 0;
const PARENT: usize = 1;
const ZONE: usize = 2;

/// Trust anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// RDATA of a DS record.
    Ds(Name, Vec<u8>),
    /// RDATA of a DNSKEY record.
    Dnskey(Name, Vec<u8>),
    /// Negative anchor, and its last second.
    Negative(Name, Option<u32>),
}

/// Zones with one fault.
pub struct World {
    /// The root, the parent, the zone, and an unsigned child.
    zones: [Zone; 4],
    plant: Plant,
    /// Key that is none of the zone's, unless the fault slips it in.
    stranger: Key,
    anchors: Vec<Anchor>,
    now: u32,
}

impl World {
    /// World of a seed, with a fault. Worlds of one store share keys and signatures.
    pub fn new(store: &Store, kind: Kind, fault: &Fault) -> World {
        // Serial numbers of time go round in 2106.
        let now = if store.seed().is_multiple_of(2) { 1_800_000_000 } else { u32::MAX - 500 };
        World::at(store, kind, fault, now)
    }

    /// World of a seed, with a fault, at a time in seconds since 1970 modulo 2^32: for a validator that has the system's clock. Signatures
    /// hold for a day before and after it.
    pub fn at(store: &Store, kind: Kind, fault: &Fault, now: u32) -> World {
        World::numbered(store, kind, fault, now, "")
    }

    /// World at a time, whose top-level name has an ending.
    fn numbered(store: &Store, kind: Kind, fault: &Fault, now: u32, ending: &str) -> World {
        let mut random = Random::new(store.seed());
        let plant = fault.plant;
        let mut algorithm = || random.pick(&ALGORITHMS);
        let [of_root, of_parent, of_zone] = [algorithm(), algorithm(), algorithm()];
        let of_zone = algorithm_of(plant, of_zone);
        let word = |random: &mut Random| {
            (0..3 + random.place(6)).map(|_| char::from(random.pick(b"abcdefghijklm"))).collect::<String>()
        };
        let tld = child(&(word(&mut random) + ending), b"\0");
        let middle = if random.one_in(2) { tld.clone() } else { child("co", &tld) };
        let apex = child(&word(&mut random), &middle);
        let is_split = random.one_in(2) || matches!(plant, Plant::Keys(twist) if needs_two_keys(twist));
        let split = |number: u8, algorithm| {
            let entry = Key::new(pair(store, number, algorithm), true);
            Keys { data: Key::new(pair(store, number + 1, algorithm), false), entry }
        };
        let keys = zone_keys(store, plant, of_zone, is_split);
        let hashing =
            Hashing { algorithm: 1, flags: u8::from(random.one_in(2)), iterations: 0, salt: vec![] };
        let parent_denial = if random.one_in(2) { Denial::Nsec } else { Denial::Nsec3(hashing) };
        let mut zones = [
            Zone::new(b"\0", Some(split(1, of_root)), Denial::Nsec),
            Zone::new(&tld, Some(split(3, of_parent)), parent_denial),
            Zone::new(&apex, Some(keys), denial(kind, plant, &mut random)),
            Zone::new(&child("plain", &apex), None, Denial::None),
        ];
        let stranger = Key::new(pair(store, 7, of_zone), true);
        fill(&mut zones[ZONE], &mut random);
        zones[3].add(&below("host.plain", &apex), rtype::A, vec![192, 0, 2, 99]);
        slip_in(&mut zones[ZONE], plant, &stranger);
        let mut world = World { zones, plant, stranger, anchors: vec![], now };
        world.delegate();
        world.anchors = world.trust();
        world
    }

    /// Time of the world, in seconds since 1970 modulo 2^32.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Trust anchors.
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// Zones, from the root down.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Apex of the zone with the fault.
    pub fn apex(&self) -> &[u8] {
        &self.zones[ZONE].apex
    }

    /// Name and type of a question, by its place in [`QUESTIONS`].
    pub fn question(&self, place: usize) -> (Name, u16) {
        (below(QUESTIONS[place].labels, self.apex()), QUESTIONS[place].rtype)
    }

    /// Keys of a zone that is signed.
    fn keys(&self, zone: usize) -> &Keys {
        self.zones[zone].keys.as_ref().expect("the zone is signed")
    }

    /// Delegations with the DS records that the fault says.
    fn delegate(&mut self) {
        let [_, tld, apex, plain] = [0, 1, 2, 3].map(|zone| self.zones[zone].apex.clone());
        let is_island = self.plant == Plant::Anchor(AnchorTwist::Island);
        self.zones[ROOT].add(&tld, rtype::NS, child("ns", &tld));
        if !is_island {
            let ds = self.keys(PARENT).entry.ds(&tld, 2);
            self.zones[ROOT].add(&tld, rtype::DS, ds);
        }
        self.zones[PARENT].add(&apex, rtype::NS, child("ns", &apex));
        for ds in self.ds() {
            self.zones[PARENT].add(&apex, rtype::DS, ds);
        }
        self.zones[ZONE].add(&plain, rtype::NS, child("ns", &plain));
        self.zones[ZONE].add(&child("ns", &plain), rtype::A, vec![192, 0, 2, 54]);
    }

    /// DS records of the zone.
    fn ds(&self) -> Vec<Vec<u8>> {
        let apex = self.apex();
        let entry = &self.keys(ZONE).entry;
        let good = entry.ds(apex, 2);
        let changed = |place: usize, octet: u8| {
            let mut ds = good.clone();
            ds[place] = octet;
            ds
        };
        let Plant::Ds(twist) = self.plant else { return vec![good] };
        let other_algorithm = if good[2] == 13 { 15 } else { 13 };
        match twist {
            DsTwist::Digest => vec![changed(10, good[10] ^ 1)],
            DsTwist::Tag => vec![changed(1, good[1] ^ 1)],
            DsTwist::Algorithm => vec![changed(2, other_algorithm)],
            DsTwist::OnlyAlgorithm(algorithm) => vec![changed(2, algorithm)],
            DsTwist::OnlyDigest(digest) => vec![changed(3, digest)],
            DsTwist::UnknownBeside => vec![changed(2, 253), changed(3, 9), good],
            DsTwist::Sha1 => vec![entry.ds(apex, 1)],
            DsTwist::Sha384 => vec![entry.ds(apex, 4)],
            DsTwist::Sha1OfStranger => vec![self.stranger.ds(apex, 1), changed(10, good[10] ^ 1)],
            DsTwist::Short => vec![good[..good.len() - 1].to_vec()],
            DsTwist::WrongBeside => vec![changed(10, good[10] ^ 1), good],
            DsTwist::None => vec![],
        }
    }

    fn trust(&self) -> Vec<Anchor> {
        let entry = &self.keys(ROOT).entry;
        let root = Anchor::Ds(vec![0], entry.ds(b"\0", 2));
        let apex = self.apex().to_vec();
        let Plant::Anchor(twist) = self.plant else { return vec![root] };
        match twist {
            AnchorTwist::Digest => vec![Anchor::Ds(vec![0], self.stranger.ds(b"\0", 2))],
            AnchorTwist::OtherOwner => vec![Anchor::Ds(child("other", b"\0"), entry.ds(b"\0", 2))],
            AnchorTwist::None => vec![],
            AnchorTwist::Dnskey => vec![Anchor::Dnskey(vec![0], entry.rdata())],
            AnchorTwist::Island => vec![root, Anchor::Ds(apex.clone(), self.keys(ZONE).entry.ds(&apex, 2))],
            AnchorTwist::Negative => vec![root, Anchor::Negative(apex, None)],
            AnchorTwist::NegativeEnded => vec![root, Anchor::Negative(apex, Some(self.now.wrapping_sub(1)))],
        }
    }

    /// Zone that answers a question: DS records are the parent's.
    fn zone_of(&self, name: &[u8], rtype: u16) -> usize {
        let is_it = |zone: &Zone| {
            let is_child = rtype == rtype::DS && name == zone.apex && name.len() > 1;
            is_at_or_below(name, &zone.apex) && !is_child
        };
        self.zones.iter().rposition(is_it).expect("the root has all names")
    }

    /// Reply to a question.
    pub fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        let mut reply = Reply::default();
        let mut at = name.to_vec();
        let mut zone = self.zone_of(&at, rtype);
        while let Some(target) = self.answer(zone, &at, rtype, &mut reply) {
            at = target;
            zone = self.zone_of(&at, rtype);
        }
        self.spoil(zone, name, rtype, reply)
    }

    /// Answers from a zone. The target of an alias is asked about next.
    fn answer(&self, zone: usize, name: &[u8], rtype: u16, reply: &mut Reply) -> Option<Name> {
        let data = &self.zones[zone];
        let redirection = ancestors(parent(name)).take_while(|it| it.len() >= data.apex.len());
        if let Some(set) = redirection.filter_map(|it| data.get(it, rtype::DNAME)).next() {
            reply.answer.extend(self.signed(zone, set, &set.owner));
            let target =
                [&name[..name.len() - set.owner.len()], set.data.first().expect("a target")].concat();
            let told = if self.plant == Plant::Reply(ReplyTwist::AliasOfDname) {
                child("forged", &target)
            } else {
                target.clone()
            };
            reply.answer.extend(Rrset::one(name.to_vec(), rtype::CNAME, TTL, told).records(name));
            return Some(target);
        }
        let encloser = data.encloser(name);
        let is_missing = encloser.len() < name.len();
        let source = if is_missing { child("*", encloser) } else { name.to_vec() };
        let set = data.get(&source, rtype).or_else(|| data.get(&source, rtype::CNAME));
        if let Some(set) = set {
            reply.answer.extend(self.signed(zone, set, name));
            if is_missing && data.denial != Denial::Compact {
                reply.authority.extend(self.proofs(zone, name, true));
            }
            return (set.rtype != rtype).then(|| set.data.first().expect("a target").clone());
        }
        let has_name = !is_missing || data.exists(&source);
        reply.rcode = if has_name || data.denial == Denial::Compact { 0 } else { 3 };
        let soa = data.get(&data.apex, rtype::SOA).expect("an SOA record");
        reply.authority.extend(self.signed(zone, soa, &data.apex));
        reply.authority.extend(self.proofs(zone, name, false));
        None
    }
}
