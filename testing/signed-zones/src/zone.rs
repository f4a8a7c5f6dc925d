//! Zone: its RRsets, and the chains of names and hashes that deny others.

use crate::keys::Keys;
use crate::name::{Name, ancestors, child, order, parent};
use crate::record::{Rrset, bitmap, rtype};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use data_encoding::BASE32_DNSSEC;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// TTL of all records, in seconds.
pub const TTL: u32 = 3600;

/// Parameters of NSEC3 (RFC 5155 section 3.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hashing {
    /// Hash algorithm, as records say; SHA-1 is used whatever it is.
    pub algorithm: u8,
    /// Flags.
    pub flags: u8,
    /// Iterations.
    pub iterations: u16,
    /// Salt.
    pub salt: Vec<u8>,
}

/// Denial of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// None: the zone is not signed.
    None,
    /// NSEC.
    Nsec,
    /// NSEC3. In zones with Opt-Out unsigned delegations have no hash.
    Nsec3(Hashing),
    /// NSEC records for each answer.
    Compact,
}

/// Zone.
#[derive(Clone)]
pub struct Zone {
    /// Apex.
    pub apex: Name,
    /// Keys of a zone that is signed.
    pub keys: Option<Keys>,
    /// Denial.
    pub denial: Denial,
    sets: BTreeMap<(Vec<Vec<u8>>, u16), Rrset>,
    /// Chains of hashes that were computed since the last record was added.
    chains: RefCell<HashMap<Hashing, Rc<Chain>>>,
}

/// Hashes, and the names that they stand for.
type Chain = BTreeMap<Vec<u8>, Name>;

impl Zone {
    /// Zone with an SOA record and a name server.
    pub fn new(apex: &[u8], keys: Option<Keys>, denial: Denial) -> Zone {
        let mut zone =
            Zone { apex: apex.to_vec(), keys, denial, sets: BTreeMap::new(), chains: RefCell::default() };
        let server = child("ns", apex);
        let numbers = [1u32, 7200, 3600, 1_209_600, 300].map(u32::to_be_bytes).concat();
        zone.add(apex, rtype::SOA, [&server[..], &child("hostmaster", apex), &numbers].concat());
        zone.add(apex, rtype::NS, server.clone());
        zone.add(&server, rtype::A, vec![192, 0, 2, 53]);
        if let Some(Keys { entry, data }) = zone.keys.clone() {
            zone.add(apex, rtype::DNSKEY, entry.rdata());
            zone.add(apex, rtype::DNSKEY, data.rdata());
        }
        if let Denial::Nsec3(Hashing { algorithm, iterations, salt, .. }) = zone.denial.clone() {
            let head = [&[algorithm, 0][..], &iterations.to_be_bytes(), &[salt.len() as u8]].concat();
            zone.add(apex, rtype::NSEC3PARAM, [head, salt].concat());
        }
        zone
    }

    /// Adds a record.
    pub fn add(&mut self, owner: &[u8], rtype: u16, rdata: Vec<u8>) {
        self.chains.get_mut().clear();
        let empty = || Rrset { owner: owner.to_vec(), rtype, ttl: TTL, data: BTreeSet::new() };
        self.sets.entry((order(owner), rtype)).or_insert_with(empty).data.insert(rdata);
    }

    /// RRset of a name.
    pub fn get(&self, name: &[u8], rtype: u16) -> Option<&Rrset> {
        self.sets.get(&(order(name), rtype))
    }

    /// All RRsets.
    pub fn sets(&self) -> impl Iterator<Item = &Rrset> {
        self.sets.values()
    }

    /// True if the name has records, or is an empty non-terminal.
    pub fn exists(&self, name: &[u8]) -> bool {
        self.sets.values().any(|set| crate::name::is_at_or_below(&set.owner, name))
    }

    /// Longest name above one, or the name itself, that exists.
    pub fn encloser<'n>(&self, name: &'n [u8]) -> &'n [u8] {
        ancestors(name).find(|it| self.exists(it)).expect("the apex exists")
    }

    /// True at a delegation.
    pub fn is_cut(&self, name: &[u8]) -> bool {
        name != self.apex && self.get(name, rtype::NS).is_some()
    }

    /// True for names of other zones below this one: glue.
    pub fn is_below_cut(&self, name: &[u8]) -> bool {
        ancestors(parent(name)).take_while(|it| it.len() >= self.apex.len()).any(|it| self.is_cut(it))
    }

    /// True if the zone has signatures over an RRset (RFC 4035 section 2.2).
    pub fn signs(&self, set: &Rrset) -> bool {
        let is_at_cut = self.is_cut(&set.owner) && !matches!(set.rtype, rtype::DS | rtype::NSEC);
        self.keys.is_some() && !is_at_cut && !self.is_below_cut(&set.owner)
    }

    /// Types of a name, with those of its signatures and its NSEC record.
    pub fn types(&self, name: &[u8]) -> BTreeSet<u16> {
        let of_name = |set: &&Rrset| set.owner == name;
        let mut types: BTreeSet<u16> = self.sets.values().filter(of_name).map(|set| set.rtype).collect();
        let has_nsec = matches!(self.denial, Denial::Nsec | Denial::Compact);
        if has_nsec || self.sets.values().filter(of_name).any(|set| self.signs(set)) {
            types.insert(rtype::RRSIG);
        }
        if has_nsec {
            types.insert(rtype::NSEC);
        }
        types
    }

    /// Owners of NSEC records, in order (RFC 4035 section 2.3).
    pub fn owners(&self) -> Vec<Name> {
        let mut owners: Vec<Name> = Vec::new();
        for set in self.sets.values().filter(|set| !self.is_below_cut(&set.owner)) {
            if owners.last() != Some(&set.owner) {
                owners.push(set.owner.clone());
            }
        }
        owners
    }

    /// NSEC record that a name has, or that covers it: owner and next name.
    pub fn span(&self, name: &[u8]) -> (Name, Name) {
        let owners = self.owners();
        let place = owners.iter().rposition(|it| order(it) <= order(name)).expect("the apex comes first");
        (owners[place].clone(), owners.get(place + 1).unwrap_or(&owners[0]).clone())
    }

    /// Hashes of all names that NSEC3 records stand for, empty non-terminals too (RFC 5155 section 7.1).
    pub fn hashes(&self, hashing: &Hashing) -> Rc<Chain> {
        if let Some(chain) = self.chains.borrow().get(hashing) {
            return chain.clone();
        }
        let is_left_out =
            |name: &Name| hashing.flags & 1 == 1 && self.is_cut(name) && self.get(name, rtype::DS).is_none();
        let mut chain = Chain::new();
        for owner in self.owners().iter().filter(|owner| !is_left_out(owner)) {
            for name in ancestors(owner).take_while(|name| name.len() >= self.apex.len()) {
                chain.entry(hash(name, hashing)).or_insert_with(|| name.to_vec());
            }
        }
        let chain = Rc::new(chain);
        self.chains.borrow_mut().insert(hashing.clone(), chain.clone());
        chain
    }

    /// NSEC3 record whose hash is that of a name, or covers it: hash, next hash and original owner.
    pub fn hashed_span(&self, name: &[u8], hashing: &Hashing) -> (Vec<u8>, Vec<u8>, Name) {
        let hashes = self.hashes(hashing);
        let wanted = hash(name, hashing);
        let last = || hashes.last_key_value().expect("the apex has a hash");
        let (owner, original) = hashes.range(..=wanted.clone()).next_back().unwrap_or_else(last);
        let after = (std::ops::Bound::Excluded(owner.clone()), std::ops::Bound::Unbounded);
        let next = hashes.range(after).next().or_else(|| hashes.first_key_value()).expect("a hash").0;
        (owner.clone(), next.clone(), original.clone())
    }
}

/// Hash of a name (RFC 5155 section 5).
pub fn hash(name: &[u8], hashing: &Hashing) -> Vec<u8> {
    let once = |octets: &[u8]| {
        digest(&SHA1_FOR_LEGACY_USE_ONLY, &[octets, &hashing.salt].concat()).as_ref().to_vec()
    };
    (0..hashing.iterations).fold(once(name), |hash, _| once(&hash))
}

/// Owner of an NSEC3 record.
pub fn hashed_owner(hash: &[u8], zone: &[u8]) -> Name {
    child(&BASE32_DNSSEC.encode(hash), zone)
}

/// RDATA of an NSEC3 record (RFC 5155 section 3.2).
pub fn nsec3(hashing: &Hashing, next: &[u8], types: &BTreeSet<u16>) -> Vec<u8> {
    let Hashing { algorithm, flags, iterations, salt } = hashing;
    let head = [&[*algorithm, *flags][..], &iterations.to_be_bytes(), &[salt.len() as u8], salt].concat();
    [&head[..], &[next.len() as u8], next, &bitmap(types)].concat()
}

/// RDATA of an NSEC record.
pub fn nsec(next: &[u8], types: &BTreeSet<u16>) -> Vec<u8> {
    [next, &bitmap(types)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 5155 appendix A: salt aabbccdd, 12 iterations.
    #[test]
    fn the_hashes_of_rfc_5155_are_computed() {
        let hashing = Hashing { algorithm: 1, flags: 0, iterations: 12, salt: vec![0xaa, 0xbb, 0xcc, 0xdd] };
        for (name, expected) in [
            ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            ("a.example", "35mthgpgcu1qg68fab165klnsnk3dpvl"),
            ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
        ] {
            assert_eq!(BASE32_DNSSEC.encode(&hash(&kit::name(name), &hashing)), expected, "{name}");
        }
    }

    #[test]
    fn empty_non_terminals_have_hashes_and_no_nsec_record() {
        let mut zone = Zone::new(b"\x01z\0", None, Denial::Nsec);
        zone.add(b"\x04deep\x03ent\x01z\0", rtype::A, vec![192, 0, 2, 1]);
        zone.add(b"\x05plain\x01z\0", rtype::NS, b"\x02ns\x05plain\x01z\0".to_vec());
        zone.add(b"\x02ns\x05plain\x01z\0", rtype::A, vec![192, 0, 2, 2]);
        let hashing = |flags| Hashing { algorithm: 1, flags, iterations: 0, salt: vec![] };
        // The apex, deep.ent, ns and plain; with ent.
        assert_eq!(
            (zone.owners().len(), zone.hashes(&hashing(0)).len(), zone.hashes(&hashing(1)).len()),
            (4, 5, 4)
        );
        assert_eq!(zone.span(b"\x03ent\x01z\0"), (b"\x01z\0".to_vec(), b"\x04deep\x03ent\x01z\0".to_vec()));
        assert_eq!(zone.encloser(b"\x01x\x03ent\x01z\0"), b"\x03ent\x01z\0");
        assert!(zone.is_below_cut(b"\x02ns\x05plain\x01z\0") && !zone.is_below_cut(b"\x05plain\x01z\0"));
    }
}
