//! Digests and public-key arithmetic for tests: AWS-LC, and a few lines for RSA keys that it refuses as too short.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sixfold_dnssec::{Algorithm, Digests};

/// The digests of AWS-LC.
#[derive(Clone, Copy, Debug)]
pub struct AwsLc;

impl Digests for AwsLc {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        digest(&SHA1_FOR_LEGACY_USE_ONLY, octets).as_ref().try_into().expect("20 octets")
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        digest(&SHA256, octets).as_ref().try_into().expect("32 octets")
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        digest(&SHA384, octets).as_ref().try_into().expect("48 octets")
    }
}

/// True if the signature is that of the key over the data.
pub fn verifies(algorithm: Algorithm, key: &[u8], signature: &[u8], data: &[u8]) -> bool {
    let point = |form: &'static dyn VerificationAlgorithm, prefix: &[u8]| {
        UnparsedPublicKey::new(form, [prefix, key].concat()).verify(data, signature).is_ok()
    };
    match algorithm {
        Algorithm::ECDSAP256 => point(&ECDSA_P256_SHA256_FIXED, &[4]),
        Algorithm::ECDSAP384 => point(&ECDSA_P384_SHA384_FIXED, &[4]),
        Algorithm::ED25519 => point(&ED25519, &[]),
        Algorithm::RSASHA1 | Algorithm::RSASHA1_NSEC3 => rsa(
            &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
            SHA1_INFO,
            &AwsLc.sha1(data),
            key,
            signature,
            data,
        ),
        Algorithm::RSASHA256 => {
            let form = &RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY;
            rsa(form, SHA256_INFO, &AwsLc.sha256(data), key, signature, data)
        }
        Algorithm::RSASHA512 => {
            let hash = digest(&SHA512, data);
            rsa(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, &[], hash.as_ref(), key, signature, data)
        }
        _ => panic!("no arithmetic for {algorithm:?}"),
    }
}

fn rsa(form: &RsaParameters, info: &[u8], hash: &[u8], key: &[u8], signature: &[u8], data: &[u8]) -> bool {
    let (e, n) = key[1..].split_at(usize::from(key[0]));
    if n.len() >= 128 {
        return RsaPublicKeyComponents { e, n }.verify(form, data, signature).is_ok();
    }
    // RFC 8017 section 8.2.2, in numbers of 512 bits.
    let padding = vec![0xff; n.len() - 3 - info.len() - hash.len()];
    power(signature, e, n) == [&[0, 1], &padding[..], &[0], info, hash].concat()
}

/// Head of the encoded digest (RFC 8017 section 9.2, note 1).
const SHA1_INFO: &[u8] = b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14";
const SHA256_INFO: &[u8] = b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20";

/// `base` to the power of `exponent` modulo `modulus`, all with the highest octet first.
fn power(base: &[u8], exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
    let wide = |number: &[u8]| [&vec![0; modulus.len() + 1 - number.len()], number].concat();
    let (base, modulus) = (wide(base), wide(modulus));
    let mut result = vec![0; modulus.len()];
    *result.last_mut().expect("an octet") = 1;
    for bit in bits(exponent) {
        result = product(&result, &result, &modulus);
        if bit {
            result = product(&result, &base, &modulus);
        }
    }
    result.split_off(1)
}

fn product(a: &[u8], b: &[u8], modulus: &[u8]) -> Vec<u8> {
    let mut result = vec![0; modulus.len()];
    for bit in bits(b) {
        let doubled = result.clone();
        add(&mut result, &doubled, modulus);
        if bit {
            add(&mut result, a, modulus);
        }
    }
    result
}

fn bits(number: &[u8]) -> impl Iterator<Item = bool> + '_ {
    number.iter().flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1 == 1))
}

/// Adds a number that is less than the modulus, modulo the modulus.
fn add(sum: &mut [u8], other: &[u8], modulus: &[u8]) {
    let mut carry = 0;
    for (ours, theirs) in sum.iter_mut().rev().zip(other.iter().rev()) {
        let octet = u16::from(*ours) + u16::from(*theirs) + carry;
        (*ours, carry) = (octet as u8, octet >> 8);
    }
    if &*sum >= modulus {
        let mut borrow = 0;
        for (ours, theirs) in sum.iter_mut().rev().zip(modulus.iter().rev()) {
            let octet = i16::from(*ours) - i16::from(*theirs) - borrow;
            (*ours, borrow) = (octet as u8, i16::from(octet < 0));
        }
    }
}
