//! Keys of zones: from a seed, with their tags, digests and signatures.

use crate::name::Name;
use crate::record::{Rrset, rtype};
use crate::rsa::RsaKey;
use aws_lc_rs::agreement::{ECDH_P256, ECDH_P384, PrivateKey};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _,
};
use kit::Random;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Algorithms with which zones are signed.
pub const ALGORITHMS: [u8; 5] = [8, 10, 13, 14, 15];

enum Secret {
    Rsa(RsaKey),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    /// A public key alone: its signatures are wrong.
    None,
}

/// Pair of keys. It remembers its signatures, so that zones that differ in one fault share the others.
pub struct Pair {
    algorithm: u8,
    public: Vec<u8>,
    secret: Secret,
    signed: RefCell<HashMap<Vec<u8>, Vec<u8>>>,
}

impl Pair {
    /// Pair of an algorithm. `bits` is the size of a modulus.
    ///
    /// ECDSA signatures have a random part that AWS-LC draws, so their octets differ from run to run; all else follows from the seed.
    pub fn new(algorithm: u8, bits: usize, random: &mut Random) -> Pair {
        let (public, secret) = match algorithm {
            8 | 10 => {
                let key = RsaKey::new(bits, 65537, random);
                (key.public(), Secret::Rsa(key))
            }
            13 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, &ECDH_P256, &random.octets(32)),
            // The highest octet is zero, so the number is below the order of the curve.
            14 => {
                ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, &ECDH_P384, &[&[0][..], &random.octets(47)].concat())
            }
            15 => {
                let key =
                    Ed25519KeyPair::from_seed_unchecked(&random.octets(32)).expect("a seed of 32 octets");
                (key.public_key().as_ref().to_vec(), Secret::Ed25519(key))
            }
            _ => panic!("no signer for algorithm {algorithm}"),
        };
        Pair { algorithm, public, secret, signed: RefCell::default() }
    }

    /// Public key without a private one.
    pub fn public_only(algorithm: u8, public: Vec<u8>) -> Pair {
        Pair { algorithm, public, secret: Secret::None, signed: RefCell::default() }
    }

    /// Algorithm.
    pub fn algorithm(&self) -> u8 {
        self.algorithm
    }

    /// Public key in the form of the algorithm.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    fn sign(&self, data: &[u8]) -> Vec<u8> {
        let octets = match &self.secret {
            // RFC 8017 section 9.2, note 1.
            Secret::Rsa(key) if self.algorithm == 8 => {
                let info = b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20";
                key.sign(info, digest(&SHA256, data).as_ref())
            }
            Secret::Rsa(key) => {
                let info = b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40";
                key.sign(info, digest(&SHA512, data).as_ref())
            }
            Secret::Ecdsa(key) => {
                key.sign(&SystemRandom::new(), data).expect("a signature").as_ref().to_vec()
            }
            Secret::Ed25519(key) => key.sign(data).as_ref().to_vec(),
            Secret::None => vec![7; if self.algorithm == 14 { 96 } else { 64 }],
        };
        self.signed.borrow_mut().entry(data.to_vec()).or_insert(octets).clone()
    }
}

fn ecdsa(
    form: &'static aws_lc_rs::signature::EcdsaSigningAlgorithm,
    curve: &'static aws_lc_rs::agreement::Algorithm,
    private: &[u8],
) -> (Vec<u8>, Secret) {
    let key = PrivateKey::from_private_key(curve, private).expect("a number below the order of the curve");
    let point = key.compute_public_key().expect("a point").as_ref().to_vec();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(form, private, &point).expect("a pair");
    // RFC 6605 section 4: the point without the octet that says that it is not compressed.
    (point[1..].to_vec(), Secret::Ecdsa(pair))
}

/// Key of a zone as its DNSKEY record shows it.
#[derive(Clone)]
pub struct Key {
    /// Public and private key.
    pub pair: Rc<Pair>,
    /// Flags.
    pub flags: u16,
    /// Protocol.
    pub protocol: u8,
}

impl Key {
    /// Key of a zone with the flags 256 or 257.
    pub fn new(pair: Rc<Pair>, is_entry_point: bool) -> Key {
        Key { pair, flags: 256 | u16::from(is_entry_point), protocol: 3 }
    }

    /// RDATA of the DNSKEY record (RFC 4034 section 2.1).
    pub fn rdata(&self) -> Vec<u8> {
        [&self.flags.to_be_bytes()[..], &[self.protocol, self.pair.algorithm], &self.pair.public].concat()
    }

    /// Key tag.
    pub fn tag(&self) -> u16 {
        tag(&self.rdata())
    }

    /// RDATA of a DS record with a digest of SHA-1 (1), SHA-256 (2) or SHA-384 (4).
    pub fn ds(&self, zone: &[u8], digest_type: u8) -> Vec<u8> {
        let form = match digest_type {
            1 => &SHA1_FOR_LEGACY_USE_ONLY,
            4 => &SHA384,
            _ => &SHA256,
        };
        let hash = digest(form, &[zone, &self.rdata()].concat());
        [&self.tag().to_be_bytes()[..], &[self.pair.algorithm, digest_type], hash.as_ref()].concat()
    }
}

/// Keys of a zone. They may be one and the same.
#[derive(Clone)]
pub struct Keys {
    /// Key that DS records name, and that signs the keys.
    pub entry: Key,
    /// Key that signs everything else.
    pub data: Key,
}

/// Key tag (RFC 4034 appendix B).
pub fn tag(rdata: &[u8]) -> u16 {
    let octets = rdata.iter().enumerate();
    let sum: u32 = octets.map(|(place, &octet)| u32::from(octet) << if place % 2 == 0 { 8 } else { 0 }).sum();
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// Public key of 64 or 32 octets that begins with zeros and a number, and gives this DNSKEY the tag of another one.
pub fn collision(of: &Key, number: u8) -> Key {
    let mut public = vec![0; of.pair.public.len()];
    public[1] = number;
    let end = public.len() - 2;
    // The last pair of octets takes every value once, and every tag is reached by one of them.
    let key = |last: u16| {
        let mut public = public.clone();
        public[end..].copy_from_slice(&last.to_be_bytes());
        Key { pair: Rc::new(Pair::public_only(of.pair.algorithm, public)), ..of.clone() }
    };
    (0..=u16::MAX).map(key).find(|key| key.tag() == of.tag()).expect("a key with this tag")
}

/// Fields of a signature before it is made (RFC 4034 section 3.1).
#[derive(Clone, Debug)]
pub struct Fields {
    /// Type that is covered.
    pub covered: u16,
    /// Algorithm.
    pub algorithm: u8,
    /// Labels of the owner.
    pub labels: u8,
    /// Original TTL.
    pub ttl: u32,
    /// Last second of the signature.
    pub expiration: u32,
    /// First second of the signature.
    pub inception: u32,
    /// Key tag.
    pub tag: u16,
    /// Signer.
    pub signer: Name,
}

impl Fields {
    /// RDATA without the signature.
    pub fn head(&self) -> Vec<u8> {
        let mut octets = self.covered.to_be_bytes().to_vec();
        octets.extend([self.algorithm, self.labels]);
        octets.extend(self.ttl.to_be_bytes());
        octets.extend(self.expiration.to_be_bytes());
        octets.extend(self.inception.to_be_bytes());
        octets.extend(self.tag.to_be_bytes());
        octets.extend(&self.signer);
        octets
    }

    /// Octets that are signed (RFC 4034 section 3.1.8.1): of a name with more labels than the field says, those of the wildcard that it
    /// was made from.
    pub fn signed_data(&self, set: &Rrset) -> Vec<u8> {
        let signed = usize::from(self.labels);
        let owner = match signed_labels(&set.owner) > signed {
            true => crate::name::child("*", crate::name::suffix(&set.owner, signed)),
            false => set.owner.clone(),
        };
        let mut octets = self.head();
        for rdata in &set.data {
            octets.extend(&owner);
            octets.extend(set.rtype.to_be_bytes());
            octets.extend([0, 1]);
            octets.extend(self.ttl.to_be_bytes());
            octets.extend((rdata.len() as u16).to_be_bytes());
            octets.extend(rdata);
        }
        octets
    }

    /// RDATA of the RRSIG record over an RRset.
    pub fn sign(&self, set: &Rrset, key: &Key) -> Vec<u8> {
        debug_assert_ne!(set.rtype, rtype::RRSIG);
        let data = self.signed_data(set);
        let known = key.pair.signed.borrow().get(&data).cloned();
        [self.head(), known.unwrap_or_else(|| key.pair.sign(&data))].concat()
    }
}

/// Labels of a name without an asterisk at the left (RFC 4034 section 3.1.3).
pub fn signed_labels(name: &[u8]) -> usize {
    crate::name::labels(name).len() - usize::from(name.starts_with(b"\x01*"))
}

/// Pairs of keys that follow from a seed, each made once.
#[derive(Clone, Default)]
pub struct Store {
    seed: u64,
    pairs: Rc<RefCell<Pairs>>,
}

/// Pairs by number, algorithm and size.
type Pairs = HashMap<(u8, u8, usize), Rc<Pair>>;

impl Store {
    /// Keys of a seed.
    pub fn new(seed: u64) -> Store {
        Store { seed, pairs: Rc::default() }
    }

    /// Seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Pair by its number, algorithm and size.
    pub fn pair(&self, number: u8, algorithm: u8, bits: usize) -> Rc<Pair> {
        let make = || {
            let mut random =
                Random::new(self.seed << 24 | u64::from(number) << 16 | u64::from(algorithm) << 8);
            Rc::new(Pair::new(algorithm, bits, &mut random))
        };
        self.pairs.borrow_mut().entry((number, algorithm, bits)).or_insert_with(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_from_the_seed_and_have_the_length_of_their_algorithm() {
        for (algorithm, length) in [(8, 132), (10, 132), (13, 64), (14, 96), (15, 32)] {
            let public = |seed| Store::new(seed).pair(1, algorithm, 1024).public().to_vec();
            assert_eq!(public(3), public(3));
            assert_ne!(public(3), public(4));
            assert_eq!(public(3).len(), length);
        }
    }

    #[test]
    fn a_key_of_the_same_tag_is_found() {
        for algorithm in [13, 14, 15] {
            let key = Key::new(Store::new(1).pair(1, algorithm, 0), false);
            let other = collision(&key, 2);
            assert_eq!((key.tag(), key.rdata() == other.rdata()), (other.tag(), false));
        }
    }
}
