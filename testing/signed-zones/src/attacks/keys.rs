//! Keys that sign, keys of one tag, and signatures that are wrong.

use crate::keys::{Fields, signed_labels, tag};
use crate::record::{Rrset, rtype};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
};
use kit::Random;

/// Flags of a key that signs a zone and is its entry.
const ENTRY: u16 = 257;
/// Flag of a key that signs a zone.
const ZONE_KEY: u16 = 256;

/// Flags without a meaning, which validators ignore (RFC 4034 section 2.1.1), but for those that meant something in RFC 2535.
const FREE_FLAGS: u16 = 0x2c7f;

/// Octets of the modulus of an RSA key, and of its exponent. OpenSSL takes exponents above 64 bits up to this size only.
const RSA: usize = 384;

/// First and last second of signatures.
pub(super) type Times = (u32, u32);

/// Key that signs a zone. It remembers nothing, so new names cost no memory, and any thread may use it.
pub(super) struct Signer {
    algorithm: u8,
    pair: EcdsaKeyPair,
    /// RDATA of the DNSKEY record.
    pub rdata: Vec<u8>,
    tag: u16,
}

impl Signer {
    /// Key of the algorithm 13 or 14.
    pub fn new(algorithm: u8) -> Signer {
        let form = match algorithm {
            14 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            _ => &ECDSA_P256_SHA256_FIXED_SIGNING,
        };
        let pair = EcdsaKeyPair::generate(form).expect("a key");
        let rdata = dnskey(ENTRY, algorithm, &pair.public_key().as_ref()[1..]);
        Signer { algorithm, tag: tag(&rdata), pair, rdata }
    }

    /// RDATA of the DS record of a zone with this key.
    pub fn ds(&self, zone: &[u8]) -> Vec<u8> {
        let hash = digest(&SHA256, &[zone, &self.rdata].concat());
        [&self.tag.to_be_bytes()[..], &[self.algorithm, 2], hash.as_ref()].concat()
    }

    /// RDATA of the RRSIG record of a zone over an RRset.
    pub fn sign(&self, set: &Rrset, zone: &[u8], times: Times) -> Vec<u8> {
        let fields = fields(self.algorithm, self.tag, (set.rtype, set), zone, times);
        let octets = self.pair.sign(&SystemRandom::new(), &fields.signed_data(set)).expect("a signature");
        [&fields.head(), octets.as_ref()].concat()
    }
}

fn fields(
    algorithm: u8,
    tag: u16,
    (covered, set): (u16, &Rrset),
    zone: &[u8],
    (inception, expiration): Times,
) -> Fields {
    let labels = signed_labels(&set.owner) as u8;
    Fields { covered, algorithm, labels, ttl: set.ttl, expiration, inception, tag, signer: zone.to_vec() }
}

fn dnskey(flags: u16, algorithm: u8, public: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[3, algorithm], public].concat()
}

/// DNSKEY RDATA of so many keys of P-256 with one tag. All are points of the curve, so that a validator cannot refuse them before the
/// arithmetic: flags without a meaning make the tags equal, for one key in about 64.
pub(super) fn of_one_tag(count: usize) -> Vec<Vec<u8>> {
    let key = || {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        dnskey(ZONE_KEY, 13, &pair.public_key().as_ref()[1..])
    };
    let first = key();
    let wanted = tag(&first);
    let mut keys = vec![first];
    while keys.len() < count {
        keys.extend(with_tag(key(), wanted));
    }
    keys
}

/// The key with other flags, if they give it this tag.
fn with_tag(key: Vec<u8>, wanted: u16) -> Option<Vec<u8>> {
    let missing = wanted.wrapping_sub(tag(&key));
    // The carry of the sum may count once more.
    [missing, missing.wrapping_sub(1)].into_iter().filter(|flags| flags & !FREE_FLAGS == 0).find_map(
        |flags| {
            let mut other = key.clone();
            other[..2].copy_from_slice(&(ZONE_KEY | flags).to_be_bytes());
            (tag(&other) == wanted).then_some(other)
        },
    )
}

/// DNSKEY RDATA of an RSA key whose exponent is as long as its modulus.
pub(super) fn long_exponent() -> Vec<u8> {
    let mut random = Random::new(1);
    let mut number = || {
        let mut number = random.octets(RSA);
        // The highest and the lowest bit: odd, and as long as can be.
        number[0] |= 0x80;
        number[RSA - 1] |= 1;
        number
    };
    let (mut modulus, mut exponent) = (number(), number());
    // The exponent is below the modulus.
    (modulus[0], exponent[0]) = (0xff, 0x80);
    // RFC 3110 section 2: a length of two octets after a zero.
    let length = [&[0][..], &(RSA as u16).to_be_bytes()].concat();
    dnskey(ZONE_KEY, 8, &[length, exponent, modulus].concat())
}

/// RDATA of RRSIG records over a type of any name with so many labels: wrong, but only the arithmetic says so.
pub(super) fn wrong_signatures(
    (count, key): (usize, &[u8]),
    covered: u16,
    owner: &[u8],
    zone: &[u8],
    times: Times,
) -> Vec<Vec<u8>> {
    let mut random = Random::new(u64::from(covered));
    let set = Rrset::one(owner.to_vec(), rtype::A, crate::zone::TTL, vec![]);
    let head = fields(key[3], tag(key), (covered, &set), zone, times).head();
    let signature = |_| {
        let mut octets = random.octets(if key[3] == 8 { RSA } else { 64 });
        // Both numbers of ECDSA are below the order of the curve, and that of RSA is below the modulus.
        octets[0] &= 0x7f;
        octets[32] &= 0x7f;
        [&head[..], &octets].concat()
    };
    (0..count).map(signature).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_tag_are_different_zone_keys() {
        let keys = of_one_tag(4);
        let wanted = tag(&keys[0]);
        let publics: std::collections::BTreeSet<&[u8]> = keys.iter().map(|key| &key[4..]).collect();
        assert_eq!(publics.len(), 4);
        for key in &keys {
            assert_eq!((tag(key), key.len()), (wanted, 68));
            // RFC 4034 section 2.1.1, and RFC 5011 section 7 for the bit of revoked keys.
            assert_eq!(u16::from_be_bytes([key[0], key[1]]) & 0x0180, 0x0100);
        }
    }
}
