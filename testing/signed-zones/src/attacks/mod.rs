//! Zones that cost much to validate: an attack each, with names that nobody has asked for before, and honest zones beside them.
//!
//! All are below one signed root, and answered as a resolver answers that does not validate. What must be valid for an attack to work is
//! signed, the rest has signatures that are wrong only after all arithmetic. Nothing changes after the start, so any number of threads may
//! answer. Read in this order: [`Attack`] has the list, `zone` the replies, `keys` the keys and signatures.

mod keys;
mod zone;

use crate::name::{Name, below, child, labels};
use crate::record::{Record, Reply, Rrset, rtype};
use crate::world::Anchor;
use crate::zone::{TTL, nsec};
use keys::Signer;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use zone::{Apex, Content, Zone};

/// Attacks on the time of validators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attack {
    /// Many keys of one tag, and many signatures that name it (KeyTrap, CVE-2023-50387).
    KeyTrap,
    /// KeyTrap with so few keys and signatures that no limit on records refuses them unseen.
    SmallKeyTrap,
    /// Many signatures that name one key (SigJam).
    SigJam,
    /// Many keys of one tag, and one signature (LockCram).
    LockCram,
    /// Many DS records and many keys of one tag, for each name a zone of its own (HashTrap).
    HashTrap,
    /// A long name to hash with every name above it (CVE-2023-50868).
    Nsec3,
    /// NSEC3 records with 65,535 iterations deny DS records.
    Iterations,
    /// Hundreds of NSEC3 records, all well signed, in each denial.
    Proofs,
    /// Honest answers of a zone that is signed with P-384.
    Hammer,
    /// An RSA key with a long exponent.
    Exponent,
    /// Chains of eight aliases over eight signed zones.
    Aliases,
    /// Five zone cuts below each other, for each name new ones.
    Cuts,
}

/// How large the attacks are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Keys of one tag.
    pub keys: usize,
    /// Signatures of one RRset.
    pub signatures: usize,
    /// DS records of a zone.
    pub ds: usize,
    /// NSEC3 records of a denial.
    pub proofs: usize,
}

impl Sizes {
    /// Sizes that fit messages of 64 KiB; keys and signatures are those of the paper on KeyTrap (Heftrig, Schulmann, Vogel, Waidner, 2024).
    pub const FULL: Sizes = Sizes { keys: 589, signatures: 519, ds: 300, proofs: 280 };
    /// Sizes that are made in a moment.
    pub const SMALL: Sizes = Sizes { keys: 3, signatures: 4, ds: 3, proofs: 5 };
}

/// Keys and signatures of the small KeyTrap.
const SMALL_TRAP: usize = 8;

/// Aliases of a chain.
const ALIASES: usize = 8;

/// First address of the honest names, 60.0.0.0: one that every server synthesizes from.
const FIRST_ADDRESS: u32 = 60 << 24;

impl Attack {
    /// All attacks.
    pub const ALL: [Attack; 12] = [
        Attack::KeyTrap,
        Attack::SmallKeyTrap,
        Attack::SigJam,
        Attack::LockCram,
        Attack::HashTrap,
        Attack::Nsec3,
        Attack::Iterations,
        Attack::Proofs,
        Attack::Hammer,
        Attack::Exponent,
        Attack::Aliases,
        Attack::Cuts,
    ];

    /// Name, which is that of its zone too.
    pub fn title(self) -> &'static str {
        match self {
            Attack::KeyTrap => "keytrap",
            Attack::SmallKeyTrap => "small-keytrap",
            Attack::SigJam => "sigjam",
            Attack::LockCram => "lockcram",
            Attack::HashTrap => "hashtrap",
            Attack::Nsec3 => "nsec3",
            Attack::Iterations => "iterations",
            Attack::Proofs => "proofs",
            Attack::Hammer => "hammer",
            Attack::Exponent => "exponent",
            Attack::Aliases => "aliases",
            Attack::Cuts => "cuts",
        }
    }

    /// Name of a number, to be asked for AAAA.
    pub fn name(self, number: u64) -> Name {
        let zone = child(self.title(), b"\0");
        let own = child(&format!("n{number}"), &zone);
        match self {
            Attack::HashTrap | Attack::Iterations => child("w", &own),
            Attack::Cuts => below("w.a.b.c.d", &own),
            // As many labels as 255 octets have room for.
            Attack::Nsec3 => (0..(255 - own.len()) / 2).fold(own, |name, _| child("a", &name)),
            _ => own,
        }
    }
}

/// Honest name of a number in a zone that is signed with P-256.
pub fn signed_name(number: u64) -> Name {
    child(&format!("n{number}"), SIGNED)
}

/// Honest name of a number in a zone that is not signed.
pub fn unsigned_name(number: u64) -> Name {
    child(&format!("n{number}"), UNSIGNED)
}

/// Name of the signed zone whose signature is wrong: who answers does not validate.
pub fn wrong_name() -> Name {
    child("wrong", SIGNED)
}

/// Address of the honest names of a number, which have no AAAA record.
pub fn address(number: u64) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_ADDRESS + (number & 0x00ff_ffff) as u32)
}

const SIGNED: &[u8] = b"\x06signed\0";
const UNSIGNED: &[u8] = b"\x08unsigned\0";

/// Root with all zones below it.
pub struct Attacked {
    now: u32,
    anchors: [Anchor; 1],
    root: Apex,
    /// NSEC records of the root, by their owners in order.
    spans: Vec<(Name, Vec<Record>)>,
    zones: BTreeMap<Vec<u8>, Zone>,
}

impl Attacked {
    /// Makes all zones. Signatures are valid from an hour before `now`, in seconds since 1970, for a day. Full sizes take a second.
    pub fn new(sizes: Sizes, now: u32) -> Attacked {
        let times = (now - 3600, now + 86_400);
        let apex = |zone: &[u8], algorithm| Apex::new(zone, Signer::new(algorithm), times);
        let root = apex(b"\0", 13);
        let mut zones = BTreeMap::new();
        for attack in Attack::ALL {
            let algorithm = if attack == Attack::Hammer { 14 } else { 13 };
            let apex = apex(&child(attack.title(), b"\0"), algorithm);
            zones.insert(attack.title().as_bytes().to_vec(), Zone::of(attack, sizes, apex));
        }
        for number in 1..ALIASES {
            let (label, next) = (format!("alias{number}"), format!("alias{}", number + 1));
            let content = Content::Alias((number + 1 < ALIASES).then(|| child(&next, b"\0")));
            let apex = apex(&child(&label, b"\0"), 13);
            zones.insert(label.into_bytes(), Zone { apex, content });
        }
        zones.insert(b"signed".to_vec(), Zone { apex: apex(SIGNED, 13), content: Content::Honest });
        zones.insert(b"unsigned".to_vec(), Zone { apex: apex(UNSIGNED, 13), content: Content::Unsigned });
        let spans = spans(&root, &zones);
        let anchors = [Anchor::Ds(vec![0], root.ds())];
        Attacked { now, anchors, root, spans, zones }
    }

    /// Time for which the zones were made, in seconds since 1970.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Trust anchor of the root.
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// Reply of a resolver that does not validate to a question with DO.
    pub fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        let labels = labels(name);
        let Some(zone) = labels.last().map(|label| self.zones.get(*label)) else {
            return match rtype {
                rtype::DNSKEY => answer(self.root.keys.clone()),
                _ => self.deny(0, name),
            };
        };
        match zone {
            None => self.deny(3, name),
            Some(zone) if labels.len() == 1 && rtype == rtype::DS => match zone.content {
                Content::Unsigned => self.deny(0, name),
                _ => {
                    let set = Rrset::one(name.to_vec(), rtype::DS, TTL, zone.apex.ds());
                    answer(self.root.sign(&set))
                }
            },
            Some(zone) => self.chase(zone, name, rtype),
        }
    }

    /// Reply with the aliases of a chain, and what its end says.
    fn chase(&self, zone: &Zone, name: &[u8], rtype: u16) -> Reply {
        let mut reply = zone.reply(name, rtype);
        let alias = reply.answer.first().filter(|record| record.rtype == rtype::CNAME);
        if let Some(target) = alias.map(|record| record.rdata.clone()) {
            let end = self.reply(&target, rtype);
            reply.answer.extend(end.answer);
            reply.authority = end.authority;
        }
        reply
    }

    /// Denial by the root: of a type of a name, or of a name, whose wildcard the NSEC record of the root covers.
    fn deny(&self, rcode: u8, name: &[u8]) -> Reply {
        let order = crate::name::order(name);
        let place = self.spans.iter().rposition(|(owner, _)| crate::name::order(owner) <= order);
        let mut authority = self.root.soa.clone();
        authority.extend(self.spans[0].1.clone());
        if let Some(place @ 1..) = place {
            authority.extend(self.spans[place].1.clone());
        }
        Reply { rcode, answer: vec![], authority }
    }
}

fn answer(records: Vec<Record>) -> Reply {
    Reply { answer: records, ..Reply::default() }
}

/// NSEC records of the root, signed: the name itself, and the delegations in order.
fn spans(root: &Apex, zones: &BTreeMap<Vec<u8>, Zone>) -> Vec<(Name, Vec<Record>)> {
    let tops = zones.iter().map(|(label, zone)| {
        let types: &[u16] = match zone.content {
            Content::Unsigned => &[rtype::NS],
            _ => &[rtype::NS, rtype::DS],
        };
        ([&[label.len() as u8], &label[..], &[0]].concat(), types)
    });
    let apex: (Name, &[u16]) = (vec![0], &[rtype::NS, rtype::SOA, rtype::DNSKEY]);
    let owners: Vec<_> = [apex].into_iter().chain(tops).collect();
    let of = |place: usize| {
        let (owner, types) = &owners[place];
        let mut types: BTreeSet<u16> = types.iter().copied().collect();
        types.extend([rtype::RRSIG, rtype::NSEC]);
        let next = &owners[(place + 1) % owners.len()].0;
        let set = Rrset::one(owner.clone(), rtype::NSEC, TTL, nsec(next, &types));
        (owner.clone(), root.sign(&set))
    };
    (0..owners.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tag;

    #[test]
    fn every_reply_fits_a_message_and_every_number_has_names_of_its_own() {
        let sizes = Sizes { keys: 20, ds: 20, ..Sizes::FULL };
        let world = Attacked::new(sizes, 1_800_000_000);
        for attack in Attack::ALL {
            let name = attack.name(1_000_000);
            assert_ne!(name, attack.name(1_000_001));
            assert!(name.len() <= 255, "{attack:?}");
            for rtype in [rtype::A, rtype::AAAA] {
                let length = world.reply(&name, rtype).octets(&name, rtype).len();
                assert!(length <= 65_535, "{attack:?}: {length}");
            }
            let zone = child(attack.title(), b"\0");
            let ds = world.reply(&zone, rtype::DS).answer;
            let keys = world.reply(&zone, rtype::DNSKEY).answer;
            let of_ds = u16::from_be_bytes([ds[0].rdata[0], ds[0].rdata[1]]);
            assert!(keys.iter().any(|key| key.rtype == rtype::DNSKEY && tag(&key.rdata) == of_ds));
        }
        // 589 keys of 68 octets under the name of the longest title.
        assert!(Sizes::FULL.keys * (68 + 10 + "small-keytrap".len() + 2) < 65_000);
    }

    #[test]
    fn a_chain_of_aliases_ends_with_the_address_and_its_last_zone_denies_other_types() {
        let world = Attacked::new(Sizes::SMALL, 1_800_000_000);
        let name = Attack::Aliases.name(7);
        let is_of = |rtype| move |record: &&Record| record.rtype == rtype;
        let reply = world.reply(&name, rtype::A);
        assert_eq!(reply.answer.iter().filter(is_of(rtype::CNAME)).count(), ALIASES - 1);
        assert_eq!(reply.answer.iter().filter(is_of(rtype::A)).count(), 1);
        let reply = world.reply(&name, rtype::AAAA);
        assert_eq!((reply.answer.len(), reply.authority.len()), (2 * (ALIASES - 1), 4));
    }
}
