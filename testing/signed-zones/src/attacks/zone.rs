//! Zones below the root, and their replies.

use super::keys::{Signer, Times, long_exponent, of_one_tag, wrong_signatures};
use super::{Attack, SMALL_TRAP, Sizes, address, answer};
use crate::keys::tag;
use crate::name::{Name, child, labels, parent, suffix};
use crate::record::{IN, Record, Reply, Rrset, rtype};
use crate::zone::{Hashing, TTL, hash, hashed_owner, nsec, nsec3};
use std::collections::BTreeSet;

/// Iterations up to which all validators hash (RFC 9276 section 3.2 allows less).
const HASHED: u16 = 50;

/// Signatures under the key with the long exponent.
const LONG_EXPONENTS: usize = 8;

/// Apex of a zone: name, key, and the RRsets that are there.
pub(super) struct Apex {
    pub name: Name,
    signer: Signer,
    times: Times,
    /// Keys with their signature.
    pub keys: Vec<Record>,
    /// SOA with its signature.
    pub soa: Vec<Record>,
}

impl Apex {
    /// Apex with one key.
    pub fn new(name: &[u8], signer: Signer, times: Times) -> Apex {
        let mut apex = Apex { name: name.to_vec(), signer, times, keys: vec![], soa: vec![] };
        apex.add_keys([]);
        apex.soa = apex.sign(&soa(name));
        apex
    }

    /// Adds keys beside that which signs.
    fn add_keys(&mut self, others: impl IntoIterator<Item = Vec<u8>>) {
        let mut set = Rrset::one(self.name.clone(), rtype::DNSKEY, TTL, self.signer.rdata.clone());
        set.data.extend(others);
        self.keys = self.sign(&set);
    }

    /// RDATA of the DS record.
    pub fn ds(&self) -> Vec<u8> {
        self.signer.ds(&self.name)
    }

    /// RRset with its signature.
    pub fn sign(&self, set: &Rrset) -> Vec<Record> {
        self.sign_as(set, &self.name)
    }

    /// RRset with its signature by a zone that has the same key.
    fn sign_as(&self, set: &Rrset, zone: &[u8]) -> Vec<Record> {
        with(set, [self.signer.sign(set, zone, self.times)])
    }

    /// Denial of a type at a name, by an NSEC record that is made for it.
    fn deny(&self, name: &[u8], types: &[u16]) -> Reply {
        let set = denial(name, types);
        Reply { authority: [self.soa.clone(), self.sign(&set)].concat(), ..Reply::default() }
    }
}

fn soa(zone: &[u8]) -> Rrset {
    let numbers = [1u32, 7200, 3600, 1_209_600, 300].map(u32::to_be_bytes).concat();
    let rdata = [&child("ns", zone)[..], &child("hostmaster", zone), &numbers].concat();
    Rrset::one(zone.to_vec(), rtype::SOA, TTL, rdata)
}

fn denial(name: &[u8], types: &[u16]) -> Rrset {
    let mut types: BTreeSet<u16> = types.iter().copied().collect();
    types.extend([rtype::RRSIG, rtype::NSEC]);
    Rrset::one(name.to_vec(), rtype::NSEC, TTL, nsec(&[b"\x01\0", name].concat(), &types))
}

/// RRset with these signatures.
fn with(set: &Rrset, signatures: impl IntoIterator<Item = Vec<u8>>) -> Vec<Record> {
    let mut records: Vec<Record> = set.records(&set.owner).collect();
    let signature =
        |rdata| Record { owner: set.owner.clone(), rtype: rtype::RRSIG, class: IN, ttl: set.ttl, rdata };
    records.extend(signatures.into_iter().map(signature));
    records
}

/// Contents of a zone beside its apex.
pub(super) enum Content {
    /// Every name has an address and is signed.
    Honest,
    /// Every name has an address, and nothing is signed.
    Unsigned,
    /// Every name is an alias of the same label in another zone; in the last one it has an address.
    Alias(Option<Name>),
    /// Every name has wrong signatures: those over A and over AAAA.
    Trap([Vec<Vec<u8>>; 2]),
    /// Every name of one label is a zone of its own, with DS records and keys none of which belong together.
    Zones { ds: Vec<Vec<u8>>, keys: Vec<Vec<u8>>, times: Times },
    /// No name exists, which these records say, whatever the name is.
    Nothing(Vec<Record>),
    /// Every name has an address, nothing is signed, and these records deny all DS records.
    NoDs(Vec<Record>),
    /// Every name is a zone, but for those whose first label is `w`.
    Cuts,
}

/// Zone below the root.
pub(super) struct Zone {
    pub apex: Apex,
    pub content: Content,
}

impl Zone {
    /// Zone of an attack.
    pub fn of(attack: Attack, sizes: Sizes, mut apex: Apex) -> Zone {
        let content = match attack {
            Attack::Hammer => Content::Honest,
            Attack::Aliases => Content::Alias(Some(child("alias1", b"\0"))),
            Attack::Cuts => Content::Cuts,
            Attack::KeyTrap => trap(&mut apex, of_one_tag(sizes.keys), sizes.signatures),
            Attack::SmallKeyTrap => trap(&mut apex, of_one_tag(SMALL_TRAP), SMALL_TRAP),
            Attack::SigJam => trap(&mut apex, of_one_tag(1), sizes.signatures),
            Attack::LockCram => trap(&mut apex, of_one_tag(sizes.keys), 1),
            Attack::Exponent => trap(&mut apex, vec![long_exponent()], LONG_EXPONENTS),
            Attack::HashTrap => zones(&apex, sizes.ds),
            Attack::Nsec3 => Content::Nothing(hashed(&apex, HASHED, 0, 1)),
            Attack::Proofs => Content::Nothing(hashed(&apex, 0, 0, sizes.proofs)),
            // Opt-Out: the names below are insecure delegations.
            Attack::Iterations => Content::NoDs(hashed(&apex, u16::MAX, 1, 1)),
        };
        Zone { apex, content }
    }

    /// Reply to a question about a name in the zone, or below it.
    pub fn reply(&self, name: &[u8], rtype: u16) -> Reply {
        let apex = &self.apex;
        if name == apex.name && !matches!(self.content, Content::Unsigned) {
            return match rtype {
                rtype::DNSKEY => answer(apex.keys.clone()),
                rtype::SOA => answer(apex.soa.clone()),
                _ => apex.deny(name, &[rtype::NS, rtype::SOA, rtype::DNSKEY]),
            };
        }
        match &self.content {
            Content::Honest => self.honest(name, rtype),
            Content::Unsigned if rtype == rtype::A => answer(with(&host(name), [])),
            Content::Unsigned => Reply { authority: with(&soa(&apex.name), []), ..Reply::default() },
            Content::Alias(None) => self.honest(name, rtype),
            Content::Alias(Some(next)) => {
                let first = &name[..=usize::from(name[0])];
                let set = Rrset::one(name.to_vec(), rtype::CNAME, TTL, [first, next].concat());
                answer(apex.sign(&set))
            }
            Content::Trap([of_a, of_aaaa]) => match rtype {
                rtype::A => answer(with(&host(name), of_a.iter().cloned())),
                rtype::AAAA => answer(with(&host6(name), of_aaaa.iter().cloned())),
                _ => apex.deny(name, &[rtype::A, rtype::AAAA]),
            },
            Content::Zones { ds, keys, times } => self.own_zone((ds, keys, *times), name, rtype),
            Content::Nothing(records) => {
                Reply { rcode: 3, answer: vec![], authority: [apex.soa.clone(), records.clone()].concat() }
            }
            Content::NoDs(records) => match rtype {
                rtype::A => answer(with(&host(name), [])),
                rtype::DS => {
                    Reply { authority: [apex.soa.clone(), records.clone()].concat(), ..Reply::default() }
                }
                _ => Reply { authority: with(&soa(parent(name)), []), ..Reply::default() },
            },
            Content::Cuts => self.cut(name, rtype),
        }
    }

    fn honest(&self, name: &[u8], rtype: u16) -> Reply {
        let apex = &self.apex;
        if rtype != rtype::A {
            return apex.deny(name, &[rtype::A]);
        }
        let mut records = apex.sign(&host(name));
        if name.starts_with(b"\x05wrong")
            && let Some(last) = records.last_mut().and_then(|record| record.rdata.last_mut())
        {
            *last ^= 1;
        }
        answer(records)
    }

    /// Reply of a zone of its own, whose keys are not those of its DS records.
    fn own_zone(&self, (ds, keys, times): (&[Vec<u8>], &[Vec<u8>], Times), name: &[u8], rtype: u16) -> Reply {
        let zone = suffix(name, labels(&self.apex.name).len() + 1);
        let many = |rtype, data: &[Vec<u8>]| Rrset {
            owner: name.to_vec(),
            rtype,
            ttl: TTL,
            data: data.iter().cloned().collect(),
        };
        let wrong =
            |set: &Rrset| with(set, wrong_signatures((1, &keys[0]), set.rtype, &set.owner, zone, times));
        match rtype {
            rtype::DS if name == zone => answer(self.apex.sign(&many(rtype, ds))),
            rtype::DNSKEY if name == zone => answer(wrong(&many(rtype, keys))),
            rtype::A => answer(wrong(&host(name))),
            rtype::AAAA => answer(wrong(&host6(name))),
            _ => {
                let authority = [wrong(&soa(zone)), wrong(&denial(name, &[rtype::A]))].concat();
                Reply { authority, ..Reply::default() }
            }
        }
    }

    /// Reply of a zone at every label. All have the key of this one.
    fn cut(&self, name: &[u8], rtype: u16) -> Reply {
        let apex = &self.apex;
        let is_host = name.starts_with(b"\x01w");
        // DS records are in the zone above.
        let zone = if is_host || rtype == rtype::DS { parent(name) } else { name };
        match rtype {
            rtype::A if is_host => answer(apex.sign_as(&host(name), zone)),
            rtype::DS if !is_host => {
                let set = Rrset::one(name.to_vec(), rtype, TTL, apex.signer.ds(name));
                answer(apex.sign_as(&set, zone))
            }
            rtype::DNSKEY if !is_host => {
                let set = Rrset::one(name.to_vec(), rtype, TTL, apex.signer.rdata.clone());
                answer(apex.sign_as(&set, zone))
            }
            _ => {
                let types: &[u16] =
                    if is_host { &[rtype::A] } else { &[rtype::NS, rtype::SOA, rtype::DNSKEY] };
                let denied = apex.sign_as(&denial(name, types), zone);
                Reply { authority: [apex.sign_as(&soa(zone), zone), denied].concat(), ..Reply::default() }
            }
        }
    }
}

/// Address of a name whose first label is a letter and a number.
fn host(name: &[u8]) -> Rrset {
    let label = labels(name).first().copied().unwrap_or_default();
    let number = std::str::from_utf8(label).ok().and_then(|label| label.get(1..)?.parse().ok());
    Rrset::one(name.to_vec(), rtype::A, TTL, address(number.unwrap_or_default()).octets().to_vec())
}

fn host6(name: &[u8]) -> Rrset {
    let rdata = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[1]].concat();
    Rrset::one(name.to_vec(), rtype::AAAA, TTL, rdata)
}

/// Adds keys to a zone, and signs its names wrongly under the first of them.
fn trap(apex: &mut Apex, keys: Vec<Vec<u8>>, signatures: usize) -> Content {
    let example = child("n1", &apex.name);
    let over = |covered| wrong_signatures((signatures, &keys[0]), covered, &example, &apex.name, apex.times);
    let content = Content::Trap([over(rtype::A), over(rtype::AAAA)]);
    apex.add_keys(keys);
    content
}

/// DS records and keys of one tag, none of which belong together.
fn zones(apex: &Apex, count: usize) -> Content {
    let keys = of_one_tag(count);
    let mut random = kit::Random::new(2);
    let ds = (0..count).map(|_| {
        let digest = random.octets(32);
        [&tag(&keys[0]).to_be_bytes()[..], &[13, 2], &digest].concat()
    });
    Content::Zones { ds: ds.collect(), keys, times: apex.times }
}

/// NSEC3 records, all signed: that of the apex, and others at even distances, which together cover every hash. Alone, that of the apex
/// covers every other one (RFC 5155 section 3.1.7).
fn hashed(apex: &Apex, iterations: u16, flags: u8, count: usize) -> Vec<Record> {
    let salt = if iterations == 0 { vec![] } else { vec![0xaa; 255] };
    let hashing = Hashing { algorithm: 1, flags, iterations, salt };
    let own = hash(&apex.name, &hashing);
    let step = u64::MAX / count as u64;
    let others = (1..count as u64).map(|place| {
        let first = u64::from_be_bytes(*own.first_chunk().expect("20 octets")).wrapping_add(place * step);
        [&first.to_be_bytes()[..], &own[8..]].concat()
    });
    let mut hashes: Vec<Vec<u8>> = others.chain([own.clone()]).collect();
    hashes.sort();
    let of_apex = BTreeSet::from([rtype::NS, rtype::SOA, rtype::RRSIG, rtype::DNSKEY, rtype::NSEC3PARAM]);
    let of_others = BTreeSet::from([rtype::A, rtype::RRSIG]);
    let record = |place: usize| {
        let types = if hashes[place] == own { &of_apex } else { &of_others };
        let rdata = nsec3(&hashing, &hashes[(place + 1) % hashes.len()], types);
        apex.sign(&Rrset::one(hashed_owner(&hashes[place], &apex.name), rtype::NSEC3, TTL, rdata))
    };
    (0..hashes.len()).flat_map(record).collect()
}
