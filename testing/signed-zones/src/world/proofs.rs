//! Proofs of a world, with the fault in them (RFC 4035 section 3.1.3, RFC 5155 section 7.2, RFC 9824 section 3).

use super::{PARENT, World, ZONE};
use crate::faults::{Plant, ProofTwist};
use crate::name::{Name, below, child, labels, parent};
use crate::record::{Record, Rrset, rtype};
use crate::zone::{Denial, Hashing, TTL, hashed_owner, nsec, nsec3};
use std::collections::BTreeSet;

/// Part that a record has in a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It is the record of the name.
    Exact,
    /// It is the record of the closest encloser.
    Encloser,
    /// It covers the name, or with hashes the next closer name.
    NextCloser,
    /// It is the record of the wildcard, or covers it.
    Wildcard,
}

impl World {
    /// All records of a zone, with signatures and proofs, as a server would load them. `None` if no file can hold them: a zone with compact
    /// denial, or a fault that is in replies only.
    pub fn records(&self, zone: usize) -> Option<Vec<Record>> {
        let data = &self.zones[zone];
        let is_in_replies = match self.plant {
            Plant::Reply(_) => true,
            Plant::Proof(twist) => !is_in_records(twist),
            _ => false,
        };
        if data.denial == Denial::Compact || is_in_replies {
            return None;
        }
        let mut records: Vec<Record> =
            data.sets().flat_map(|set| self.signed(zone, set, &set.owner)).collect();
        let proofs: Vec<Rrset> = match &data.denial {
            Denial::Nsec => {
                data.owners().iter().map(|name| self.proof(zone, Role::Exact, name, None)).collect()
            }
            Denial::Nsec3(hashing) => {
                data.hashes(hashing).values().map(|name| self.hashed(zone, name, hashing)).collect()
            }
            Denial::None | Denial::Compact => vec![],
        };
        records.extend(proofs.iter().flat_map(|set| self.signed(zone, set, &set.owner)));
        Some(records)
    }

    /// Names that a denial is about, with the parts of their records (RFC 4035 section 3.1.3, RFC 5155 section 7.2).
    fn roles(&self, zone: usize, name: &[u8], is_answered: bool) -> Vec<(Role, Name)> {
        let data = &self.zones[zone];
        let encloser = data.encloser(name);
        let wildcard = child("*", encloser);
        let count = labels(encloser).len();
        let next_closer = || crate::name::suffix(name, count + 1).to_vec();
        match &data.denial {
            Denial::None => vec![],
            Denial::Compact => vec![(Role::Exact, name.to_vec())],
            Denial::Nsec if encloser == name => {
                let role =
                    if data.owners().iter().any(|it| it == name) { Role::Exact } else { Role::NextCloser };
                vec![(role, name.to_vec())]
            }
            Denial::Nsec if is_answered => vec![(Role::NextCloser, name.to_vec())],
            Denial::Nsec => vec![(Role::NextCloser, name.to_vec()), (Role::Wildcard, wildcard)],
            Denial::Nsec3(hashing) => {
                let has_hash = |name: &[u8]| data.hashes(hashing).values().any(|it| it == name);
                if has_hash(name) {
                    return vec![(Role::Exact, name.to_vec())];
                }
                if is_answered {
                    return vec![(Role::NextCloser, next_closer())];
                }
                // An unsigned delegation in a span with Opt-Out: a closest provable encloser is enough (RFC 5155 section 7.2.4).
                let above = if encloser == name { parent(name) } else { encloser };
                let closer = if encloser == name { name.to_vec() } else { next_closer() };
                let mut roles = vec![(Role::Encloser, above.to_vec()), (Role::NextCloser, closer)];
                if encloser != name {
                    roles.push((Role::Wildcard, wildcard));
                }
                roles
            }
        }
    }

    /// Proofs of a denial, or of an answer by wildcard, signed.
    pub(super) fn proofs(&self, zone: usize, name: &[u8], is_answered: bool) -> Vec<Record> {
        let twist = match self.plant {
            Plant::Proof(twist) if zone == ZONE => Some(twist),
            _ => None,
        };
        let roles = self.roles(zone, name, is_answered);
        let mut sets: Vec<(Role, Rrset)> = Vec::new();
        for (role, about) in roles {
            sets.push((role, self.proof(zone, role, &about, twist)));
        }
        match twist {
            Some(ProofTwist::WithoutExact) => without(&mut sets, Role::Exact),
            Some(ProofTwist::WithoutEncloser) => without(&mut sets, Role::Encloser),
            Some(ProofTwist::WithoutNextCloser) => without(&mut sets, Role::NextCloser),
            Some(ProofTwist::WithoutWildcard) => without(&mut sets, Role::Wildcard),
            Some(ProofTwist::OtherProof) if is_answered => {
                let other = ["four", "both", "hop"].map(|labels| below(labels, self.apex()));
                let covering = sets[0].1.clone();
                let exact = other.map(|name| self.proof(zone, Role::Exact, &name, None));
                sets = vec![(
                    Role::Exact,
                    exact.into_iter().find(|set| *set != covering).expect("another proof"),
                )];
            }
            Some(ProofTwist::ParentSide | ProofTwist::OfParent) => return self.proof_of_parent(),
            Some(ProofTwist::UnsignedBeside) => return self.unsigned_beside(&sets),
            Some(ProofTwist::WildcardMade) if name == below("plain", self.apex()) => {
                let (_, next) = self.zones[zone].span(name);
                let types = BTreeSet::from([rtype::NS, rtype::RRSIG, rtype::NSEC]);
                let set = Rrset::one(child("*", self.apex()), rtype::NSEC, TTL, nsec(&next, &types));
                return self.signed(zone, &set, name);
            }
            Some(ProofTwist::BothKinds) => {
                let hashing = Hashing { algorithm: 1, flags: 0, iterations: 0, salt: vec![] };
                sets.push((Role::Exact, self.hashed(zone, self.apex(), &hashing)));
            }
            Some(ProofTwist::Many) => sets.extend((10..19).map(|number| (Role::Exact, self.more(number)))),
            _ => {}
        }
        let mut told: Vec<Rrset> = Vec::new();
        for (_, set) in sets {
            if !told.contains(&set) {
                told.push(set);
            }
        }
        told.iter().flat_map(|set| self.signed(zone, set, &set.owner)).collect()
    }

    /// RRset of a proof about a name that the zone does not have, by its number.
    fn more(&self, number: u8) -> Rrset {
        let types = BTreeSet::from([rtype::A, rtype::RRSIG]);
        if let Denial::Nsec3(hashing) = &self.zones[ZONE].denial {
            let (hash, next) = ([number; 20], [number, number, number + 1]);
            let next = [&next[..], &[0; 17]].concat();
            return Rrset::one(
                hashed_owner(&hash, self.apex()),
                rtype::NSEC3,
                TTL,
                nsec3(hashing, &next, &types),
            );
        }
        let owner = |number: u8| child(&format!("zz{number}"), self.apex());
        let types = types.into_iter().chain([rtype::NSEC]).collect();
        Rrset::one(owner(number), rtype::NSEC, TTL, nsec(&owner(number + 1), &types))
    }

    /// Proofs without signatures, and an address of each of their owners, signed.
    fn unsigned_beside(&self, sets: &[(Role, Rrset)]) -> Vec<Record> {
        let mut records = Vec::new();
        for (_, set) in sets {
            let beside = Rrset::one(set.owner.clone(), rtype::A, TTL, vec![192, 0, 2, 77]);
            records.extend(set.records(&set.owner));
            records.extend(self.signed(ZONE, &beside, &set.owner));
        }
        records
    }

    /// Record of the parent at the cut, or at its own apex.
    fn proof_of_parent(&self) -> Vec<Record> {
        let above = self.zones[PARENT].apex.clone();
        let mut types = BTreeSet::from([rtype::NS, rtype::RRSIG, rtype::NSEC]);
        let owner = if self.plant == Plant::Proof(ProofTwist::ParentSide) {
            types.insert(rtype::DS);
            self.apex().to_vec()
        } else {
            types.extend([rtype::SOA, rtype::DNSKEY]);
            above.clone()
        };
        let set = Rrset::one(owner.clone(), rtype::NSEC, TTL, nsec(&above, &types));
        let key = &self.keys(PARENT).data;
        let rrsig = self.fields(PARENT, &set, key).sign(&set, key);
        set.records(&owner)
            .chain(Rrset::one(owner.clone(), rtype::RRSIG, TTL, rrsig).records(&owner))
            .collect()
    }

    /// RRset of a proof about a name.
    fn proof(&self, zone: usize, role: Role, name: &[u8], twist: Option<ProofTwist>) -> Rrset {
        let data = &self.zones[zone];
        match &data.denial {
            Denial::Nsec3(hashing) => {
                let mut hashing = hashing.clone();
                if twist == Some(ProofTwist::MixedSalt) && role == Role::NextCloser {
                    hashing.salt = vec![1, 2, 3];
                }
                self.hashed(zone, name, &hashing)
            }
            Denial::Compact => {
                let source = if data.exists(name) { name.to_vec() } else { child("*", data.encloser(name)) };
                let mut types = data.types(&source);
                types.extend([rtype::RRSIG, rtype::NSEC]);
                if !data.exists(&source) {
                    types.insert(rtype::NXNAME);
                }
                self.change_types(zone, &source, &mut types);
                // RFC 9824 section 3: the next name is the first one behind that which was asked for.
                Rrset::one(name.to_vec(), rtype::NSEC, TTL, nsec(&[b"\x01\0", name].concat(), &types))
            }
            _ => {
                let (owner, mut next) = data.span(name);
                let mut types = data.types(&owner);
                self.change_types(zone, &owner, &mut types);
                if twist == Some(ProofTwist::NextOutside) && role == Role::NextCloser {
                    next = child("zzzz", parent(self.apex()));
                }
                Rrset::one(owner, rtype::NSEC, TTL, nsec(&next, &types))
            }
        }
    }

    fn hashed(&self, zone: usize, name: &[u8], hashing: &Hashing) -> Rrset {
        let (hash, next, original) = self.zones[zone].hashed_span(name, hashing);
        let mut types = self.zones[zone].types(&original);
        self.change_types(zone, &original, &mut types);
        let is_of_child = zone == ZONE && self.plant == Plant::Proof(ProofTwist::OwnerOfChild);
        let below = if is_of_child { child("sub", self.apex()) } else { self.zones[zone].apex.clone() };
        Rrset::one(hashed_owner(&hash, &below), rtype::NSEC3, TTL, nsec3(hashing, &next, &types))
    }

    /// Bit map with the fault.
    fn change_types(&self, zone: usize, name: &[u8], types: &mut BTreeSet<u16>) {
        let Plant::Proof(twist) = self.plant else { return };
        let is_at = |labels: &str| zone == ZONE && name == below(labels, self.apex());
        let is_denied = [("four", rtype::AAAA), ("*.wild", rtype::AAAA), ("plain", rtype::DS)];
        for (labels, rtype) in is_denied {
            if is_at(labels) && twist == ProofTwist::TypeBit {
                types.insert(rtype);
            }
            if is_at(labels) && twist == ProofTwist::AliasBit {
                types.insert(rtype::CNAME);
            }
        }
        if is_at("plain") && twist == ProofTwist::NoNsBit {
            types.remove(&rtype::NS);
        }
        if is_at("plain") && twist == ProofTwist::SoaBit {
            types.insert(rtype::SOA);
        }
    }
}

/// True for faults that the records of a zone have, and not only replies.
fn is_in_records(twist: ProofTwist) -> bool {
    use ProofTwist::{
        AliasBit, Flags, Iterations, LongSalt, NoNsBit, OwnerOfChild, SoaBit, TypeBit, UnknownHash,
        UnsignedIterations,
    };
    matches!(
        twist,
        AliasBit
            | Flags
            | Iterations(_)
            | LongSalt
            | NoNsBit
            | OwnerOfChild
            | SoaBit
            | TypeBit
            | UnknownHash
            | UnsignedIterations
    )
}

/// Leaves out the record that has a part, and with it all parts that the same record has.
fn without(sets: &mut Vec<(Role, Rrset)>, role: Role) {
    let left_out: Vec<Rrset> = sets.iter().filter(|set| set.0 == role).map(|set| set.1.clone()).collect();
    sets.retain(|set| !left_out.contains(&set.1));
}
