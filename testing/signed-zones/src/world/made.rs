//! Parts of the zone of a world: its keys, its denial and its records, with the fault in them.

use crate::faults::{DsTwist, KeyTwist, Plant, ProofTwist};
use crate::keys::{Key, Keys, Pair, Store, collision};
use crate::name::below;
use crate::record::rtype;
use crate::verdict::Kind;
use crate::zone::{Denial, Hashing, Zone};
use kit::Random;
use std::rc::Rc;

/// Pair of keys by its number, with 1,024 bits if it is of RSA.
pub(super) fn pair(store: &Store, number: u8, algorithm: u8) -> Rc<Pair> {
    store.pair(number, algorithm, 1024)
}

pub(super) fn algorithm_of(plant: Plant, drawn: u8) -> u8 {
    match plant {
        Plant::Keys(
            KeyTwist::Rsa(_)
            | KeyTwist::RsaExponentLong
            | KeyTwist::RsaExponentOne
            | KeyTwist::RsaExponentEven
            | KeyTwist::RsaModulusEven
            | KeyTwist::RsaModulusZero
            | KeyTwist::RsaModulusLong,
        ) => 8,
        // A public key of any octets, so that its tag can be chosen.
        Plant::Keys(KeyTwist::Collision | KeyTwist::KeyTrap) if drawn < 13 => 15,
        _ => drawn,
    }
}

pub(super) fn needs_two_keys(twist: KeyTwist) -> bool {
    matches!(
        twist,
        KeyTwist::DataNoZoneKey
            | KeyTwist::DataProtocol
            | KeyTwist::DataRevoked
            | KeyTwist::SignedByDataKey
            | KeyTwist::KeyTrap
            | KeyTwist::Collision
    )
}

/// Keys of the zone, with the fault.
pub(super) fn zone_keys(store: &Store, plant: Plant, algorithm: u8, is_split: bool) -> Keys {
    let mut entry = Key::new(pair(store, 5, algorithm), true);
    let mut data = if is_split { Key::new(pair(store, 6, algorithm), false) } else { entry.clone() };
    let Plant::Keys(twist) = plant else { return Keys { entry, data } };
    match twist {
        KeyTwist::EntryNoZoneKey => entry.flags = 1,
        KeyTwist::EntryProtocol => entry.protocol = 4,
        KeyTwist::EntryRevoked => entry.flags |= 0x80,
        KeyTwist::DataNoZoneKey => data.flags = 0,
        KeyTwist::DataProtocol => data.protocol = 4,
        KeyTwist::DataRevoked => data.flags |= 0x80,
        KeyTwist::Rsa(bits) => entry = Key::new(store.pair(5, 8, bits), true),
        _ => {
            if let Some(public) = odd_rsa(twist, entry.pair.public()) {
                entry = Key::new(Rc::new(Pair::public_only(8, public)), true);
            }
        }
    }
    if !is_split {
        data = entry.clone();
    }
    Keys { entry, data }
}

/// RSA key of an odd shape from one with the exponent 65537.
fn odd_rsa(twist: KeyTwist, key: &[u8]) -> Option<Vec<u8>> {
    let modulus = &key[4..];
    let with = |exponent: &[u8], modulus: &[u8]| [&[exponent.len() as u8], exponent, modulus].concat();
    let usual = &[1, 0, 1];
    Some(match twist {
        KeyTwist::RsaExponentLong => with(&[2, 0, 0, 0, 1], modulus),
        KeyTwist::RsaExponentOne => with(&[1], modulus),
        KeyTwist::RsaExponentEven => with(&[1, 0, 0], modulus),
        KeyTwist::RsaModulusEven => with(usual, &[&modulus[..modulus.len() - 1], &[0x54]].concat()),
        KeyTwist::RsaModulusZero => with(usual, &[&[0], modulus].concat()),
        KeyTwist::RsaModulusLong => with(usual, &[&[0x80], &[0x55; 512][..]].concat()),
        _ => return None,
    })
}

/// Denial of a kind, with the fault.
pub(super) fn denial(kind: Kind, plant: Plant, random: &mut Random) -> Denial {
    let count = random.place(9);
    let mut hashing = Hashing {
        algorithm: 1,
        flags: u8::from(kind == Kind::OptOut),
        iterations: random.place(3) as u16,
        salt: random.octets(count),
    };
    match plant {
        Plant::Proof(ProofTwist::UnknownHash) => hashing.algorithm = 2,
        Plant::Proof(ProofTwist::Flags) => hashing.flags |= 2,
        Plant::Proof(ProofTwist::Iterations(iterations)) => hashing.iterations = iterations,
        Plant::Proof(ProofTwist::UnsignedIterations) => hashing.iterations = 51,
        Plant::Proof(ProofTwist::LongSalt) => (hashing.iterations, hashing.salt) = (50, vec![0xaa; 255]),
        _ => {}
    }
    match kind {
        Kind::Nsec => Denial::Nsec,
        Kind::Compact => Denial::Compact,
        Kind::Nsec3 | Kind::OptOut => Denial::Nsec3(hashing),
    }
}

/// Records of the zone that the questions are about, and some others.
pub(super) fn fill(zone: &mut Zone, random: &mut Random) {
    let apex = zone.apex.clone();
    let at = |labels: &str| below(labels, &apex);
    let address = |number: u8| vec![192, 0, 2, number];
    let long = |number: u8| [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[number]].concat();
    zone.add(&at("both"), rtype::A, address(1));
    zone.add(&at("both"), rtype::A, address(2));
    zone.add(&at("both"), rtype::AAAA, long(1));
    zone.add(&at("four"), rtype::A, address(4));
    zone.add(&at("*.wild"), rtype::A, address(5));
    zone.add(&at("chain"), rtype::CNAME, at("hop"));
    zone.add(&at("hop"), rtype::CNAME, at("both"));
    zone.add(&at("deep.ent"), rtype::A, address(6));
    zone.add(&at("dname"), rtype::DNAME, at("sub"));
    zone.add(&at("both.sub"), rtype::A, address(7));
    zone.add(&at("*.alias"), rtype::CNAME, at("both"));
    for number in 0..random.place(6) {
        zone.add(&at(&format!("q{}{number}", random.place(1000))), rtype::A, address(8));
    }
}

/// DNSKEY records that the fault adds.
pub(super) fn slip_in(zone: &mut Zone, plant: Plant, stranger: &Key) {
    let Keys { entry, data } = zone.keys.clone().expect("the zone is signed");
    let apex = zone.apex.clone();
    let added: Vec<Vec<u8>> = match plant {
        Plant::Keys(KeyTwist::SignedByStranger) | Plant::Ds(DsTwist::Sha1OfStranger) => {
            vec![stranger.rdata()]
        }
        Plant::Keys(KeyTwist::Collision) => vec![collision(&data, 1).rdata()],
        Plant::Keys(KeyTwist::KeyTrap) => (1..=10).map(|number| collision(&data, number).rdata()).collect(),
        Plant::Keys(KeyTwist::Malformed) => vec![vec![1, 0, 3, entry.pair.algorithm()]],
        Plant::Keys(KeyTwist::UnknownBeside) => vec![vec![1, 0, 3, 253, 1, 2, 3]],
        _ => vec![],
    };
    for rdata in added {
        zone.add(&apex, rtype::DNSKEY, rdata);
    }
}
