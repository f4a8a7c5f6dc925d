//! Keys: their tags (RFC 4034 appendix B), their shapes (RFC 3110, 6605, 8080), and the digests of DS records (RFC 4034 section 5.1.4).

use crate::algorithm::{Algorithm, Algorithms, DigestType};
use crate::digest::Digests;
use crate::fields::{Dnskey, Ds};
use crate::limits::{DIGEST_INPUT, RSA_MODULUS};
use crate::name::LowerName;

/// Reason why a DNSKEY cannot verify signatures of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyError {
    /// The protocol is not 3 (RFC 4034 section 2.1.2).
    Protocol,
    /// The flags do not say that the key is one of a zone (RFC 4034 section 2.1.1).
    NoZoneKey,
    /// The key is revoked (RFC 5011 section 2.1).
    Revoked,
    /// The algorithm is not supported.
    Algorithm,
    /// The public key does not have the form or size that its algorithm requires.
    Shape,
}

impl core::fmt::Display for KeyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            KeyError::Protocol => "the protocol is not 3",
            KeyError::NoZoneKey => "the key is not one of a zone",
            KeyError::Revoked => "the key is revoked",
            KeyError::Algorithm => "the algorithm is not supported",
            KeyError::Shape => "the public key does not have the form of its algorithm",
        })
    }
}

impl core::error::Error for KeyError {}

impl Dnskey<'_> {
    /// Key tag (RFC 4034 appendix B).
    pub fn key_tag(&self) -> u16 {
        if self.algorithm == Algorithm::RSAMD5 {
            // Appendix B.1: the upper 16 of the lowest 24 bits of the modulus, which is the end of the key.
            return match self.key {
                [.., high, low, _] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            };
        }
        let mut sum: u32 = 0;
        for pair in self.rdata.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
        (sum + (sum >> 16)) as u16
    }

    /// Checks that the key may verify signatures of a zone, and that its form is one that costs what its size says.
    ///
    /// # Errors
    ///
    /// The first reason why not, in the order of [`KeyError`].
    pub fn check(&self, supported: Algorithms) -> Result<(), KeyError> {
        if self.protocol != 3 {
            return Err(KeyError::Protocol);
        }
        if !self.is_zone_key() {
            return Err(KeyError::NoZoneKey);
        }
        if self.is_revoked() {
            return Err(KeyError::Revoked);
        }
        if !supported.contains(self.algorithm) {
            return Err(KeyError::Algorithm);
        }
        signature_length(self.algorithm, self.key).map(|_| ()).ok_or(KeyError::Shape)
    }
}

/// Octets that a signature of this key has; `None` if the key does not have the form and size of its algorithm.
pub fn signature_length(algorithm: Algorithm, key: &[u8]) -> Option<usize> {
    match algorithm {
        // RFC 6605 section 4: both coordinates, and both integers of the signature. RFC 8080 sections 3 and 4.
        Algorithm::ECDSAP256 => (key.len() == 64).then_some(64),
        Algorithm::ECDSAP384 => (key.len() == 96).then_some(96),
        Algorithm::ED25519 => (key.len() == 32).then_some(64),
        _ if algorithm.is_rsa() => RsaKey::parse(key).map(|rsa| rsa.modulus.len()),
        _ => None,
    }
}

/// Public key of RSA (RFC 3110 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RsaKey<'a> {
    /// Public exponent.
    pub exponent: &'a [u8],
    /// Modulus.
    pub modulus: &'a [u8],
}

impl<'a> RsaKey<'a> {
    /// Reads a public key. `None` unless modulus and exponent begin without zero octets (RFC 3110 section 2), the modulus is odd and has
    /// 1,024 to 4,096 bits, and the exponent is odd, greater than 1 and has at most 33 bits. Verification with larger exponents or odd
    /// shapes costs many times more, and no zone needs them.
    pub fn parse(key: &'a [u8]) -> Option<RsaKey<'a>> {
        // A zero octet would announce the length of an exponent of more than 255 octets.
        let (&length @ 1.., rest) = key.split_first()? else { return None };
        let (exponent, modulus) = rest.split_at_checked(usize::from(length))?;
        let is_odd = |number: &[u8]| number.last().is_some_and(|octet| octet % 2 == 1);
        let exponent_is_good = match *exponent {
            [] | [0, ..] | [1] => false,
            [first, _, _, _, _] => first == 1,
            _ => exponent.len() < 5,
        };
        let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
        let modulus_is_good = modulus[0] != 0 && (1024..=RSA_MODULUS * 8).contains(&bits);
        (exponent_is_good && modulus_is_good && is_odd(exponent) && is_odd(modulus))
            .then_some(RsaKey { exponent, modulus })
    }
}

/// True if a DS record names this key of a zone: same key tag and algorithm, and the digest over the zone's name and the RDATA.
///
/// Keys that are longer than any that can be used match nothing, so a digest has a bounded input.
pub fn ds_matches(ds: &Ds<'_>, zone: &LowerName, key: &Dnskey<'_>, digests: &impl Digests) -> bool {
    if (ds.algorithm, ds.key_tag) != (key.algorithm, key.key_tag()) {
        return false;
    }
    let mut input = [0; DIGEST_INPUT];
    let owner = zone.as_wire();
    let length = owner.len() + key.rdata.len();
    let Some(octets) = input.get_mut(..length) else { return false };
    octets[..owner.len()].copy_from_slice(owner);
    octets[owner.len()..].copy_from_slice(key.rdata);
    match ds.digest_type {
        DigestType::SHA1 => digests.sha1(octets) == ds.digest,
        DigestType::SHA256 => digests.sha256(octets) == ds.digest,
        DigestType::SHA384 => digests.sha384(octets) == ds.digest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// An RSA key with a length octet, an exponent, and a modulus of this number of octets that begins with `first`.
    fn rsa(exponent: &[u8], first: u8, octets: usize) -> Vec<u8> {
        let mut key = vec![exponent.len() as u8];
        key.extend(exponent);
        key.push(first);
        key.extend(vec![0x55; octets - 1]);
        key
    }

    // BIND's rsabigexponent test, and V83: moduli of 1,024 to 4,096 bits, exponents of at most 33 bits.
    #[test]
    fn rsa_keys_of_odd_shape_are_refused() {
        let usual = &[1, 0, 1][..];
        for (key, is_good) in [
            (rsa(usual, 0x80, 128), true),
            (rsa(usual, 0x80, 512), true),
            (rsa(&[3], 0xff, 160), true),
            (rsa(&[1, 0, 0, 0, 1], 0x80, 128), true),
            // 1,023 bits and 4,104.
            (rsa(usual, 0x7f, 128), false),
            (rsa(usual, 0x80, 513), false),
            (rsa(usual, 0x80, 1024), false),
            (rsa(usual, 0x80, 64), false),
            // 34 bits, one, even, none, with a zero octet before.
            (rsa(&[2, 0, 0, 0, 1], 0x80, 128), false),
            (rsa(&[1, 0, 0, 0, 0, 1], 0x80, 128), false),
            (rsa(&[1], 0x80, 128), false),
            (rsa(&[1, 0, 0], 0x80, 128), false),
            (rsa(&[], 0x80, 128), false),
            (rsa(&[0, 1, 0, 1], 0x80, 128), false),
            (rsa(usual, 0, 129), false),
            (vec![], false),
            (vec![0], false),
            (vec![0, 0], false),
            (vec![3, 1, 0], false),
            (vec![3, 1, 0, 1], false),
        ] {
            assert_eq!(RsaKey::parse(&key).is_some(), is_good, "{:02x?}", &key[..key.len().min(12)]);
        }
        let mut even = rsa(usual, 0x80, 128);
        *even.last_mut().unwrap() = 0x54;
        assert_eq!(RsaKey::parse(&even), None);
        // The length of the exponent in three octets where one would do, and where two are needed.
        let long = [&[0, 0, 3, 1, 0, 1, 0x80][..], &[0x55; 127]].concat();
        assert_eq!(RsaKey::parse(&long), None);
        let longer = [&[0, 1, 0][..], &vec![1; 256], &[0x80], &[0x55; 127]].concat();
        assert_eq!(RsaKey::parse(&longer), None);
    }

    #[test]
    fn keys_have_the_length_of_their_algorithm_and_tell_that_of_their_signatures() {
        for (algorithm, octets, signature) in
            [(Algorithm::ECDSAP256, 64, 64), (Algorithm::ECDSAP384, 96, 96), (Algorithm::ED25519, 32, 64)]
        {
            for (length, expected) in [(octets - 1, None), (octets, Some(signature)), (octets + 1, None)] {
                assert_eq!(signature_length(algorithm, &vec![1; length]), expected);
            }
        }
        assert_eq!(signature_length(Algorithm::RSASHA256, &rsa(&[3], 0x80, 256)), Some(256));
        assert_eq!(signature_length(Algorithm(16), &[1; 57]), None);
        assert_eq!(signature_length(Algorithm::RSAMD5, &rsa(&[3], 0x80, 256)), None);
    }

    #[test]
    fn a_key_is_refused_for_the_first_reason_of_the_list() {
        let key = |flags: u16, protocol: u8, algorithm: u8, length: usize| {
            let rdata = [&flags.to_be_bytes()[..], &[protocol, algorithm], &vec![1; length]].concat();
            Dnskey::parse(&rdata).unwrap().check(Algorithms::CURRENT).err()
        };
        assert_eq!(key(256, 3, 13, 64), None);
        assert_eq!(key(257, 3, 15, 32), None);
        assert_eq!(key(0, 4, 1, 1), Some(KeyError::Protocol));
        assert_eq!(
            (key(0, 3, 13, 64), key(1, 3, 13, 64)),
            (Some(KeyError::NoZoneKey), Some(KeyError::NoZoneKey))
        );
        assert_eq!(key(384, 3, 13, 64), Some(KeyError::Revoked));
        assert_eq!(
            (key(256, 3, 16, 57), key(256, 3, 5, 64)),
            (Some(KeyError::Algorithm), Some(KeyError::Algorithm))
        );
        assert_eq!(key(256, 3, 13, 63), Some(KeyError::Shape));
    }

    // Appendix B.1: of algorithm 1 the tag is part of the modulus.
    #[test]
    fn the_tag_of_a_key_of_algorithm_1_is_part_of_its_modulus() {
        let tag = |algorithm: u8, key: &[u8]| {
            let rdata = [&[1, 0, 3, algorithm], key].concat();
            Dnskey::parse(&rdata).unwrap().key_tag()
        };
        assert_eq!(tag(1, &[1, 3, 0xaa, 0x12, 0x34, 0x56]), 0x1234);
        assert_eq!(tag(1, &[1, 3]), 0);
        assert_eq!(tag(5, &[1, 3, 0xaa]), 0x0100 + 0x0305 + 0x0103 + 0xaa00);
        // The carry is added: 0x0100 + 0x0305 + 0xffff = 0x10404.
        assert_eq!(tag(5, &[0xff, 0xff]), 0x0405);
    }
}
