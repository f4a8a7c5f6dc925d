//! Arithmetic of DNSSEC, by AWS-LC: digests, and the verification of one signature with one key.
//!
//! Everything that decides is in `dnssec`: which keys and signatures are tried, and what a valid signature proves. This crate computes what
//! `dnssec` leaves to its caller, and nothing here depends on a name, a time or a budget. It needs no state, so any thread can do it.
//!
//! A verification takes 20 (RSA-2048) to 250 microseconds (P-384), a hundred times as long as an answer from the cache: it belongs on a
//! thread of its own. A digest takes less than a microsecond.
#![forbid(unsafe_code)]

use aws_lc_rs::digest::{Algorithm as Form, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use dnssec::{Algorithm, Digests, RsaKey};

/// Octets of the longest public key of an elliptic curve: both coordinates of a point on P-384, and the octet before them.
const POINT: usize = 1 + 96;

/// Digests of AWS-LC, which uses the processor's instructions for SHA.
#[derive(Clone, Copy, Debug, Default)]
pub struct AwsLc;

impl Digests for AwsLc {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        hash(&SHA1_FOR_LEGACY_USE_ONLY, octets)
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        hash(&SHA256, octets)
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        hash(&SHA384, octets)
    }
}

fn hash<const LENGTH: usize>(form: &'static Form, octets: &[u8]) -> [u8; LENGTH] {
    let mut out = [0; LENGTH];
    out.copy_from_slice(digest(form, octets).as_ref());
    out
}

/// Signature, and what it is verified with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed<'a> {
    /// Algorithm of key and signature.
    pub algorithm: Algorithm,
    /// Public key in the form of the algorithm (RFC 3110, 6605, 8080), as in a DNSKEY record.
    pub key: &'a [u8],
    /// Signature, as in an RRSIG record.
    pub signature: &'a [u8],
    /// Octets that are signed (RFC 4034 section 3.1.8.1).
    pub data: &'a [u8],
}

impl Signed<'_> {
    /// True if the signature is that of the key over the data. A key or signature without the form of its algorithm, and any other
    /// algorithm than 5, 7, 8, 10, 13, 14 and 15, make it false.
    ///
    /// RSA with SHA-1 (5 and 7) is verified here like the others (RFC 9905 section 2 wants implementations to be able to): whether a zone
    /// may rely on it is for [`dnssec::Algorithms`] to say.
    pub fn is_valid(&self) -> bool {
        match self.algorithm {
            Algorithm::RSASHA1 | Algorithm::RSASHA1_NSEC3 => {
                self.is_valid_rsa(&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY)
            }
            Algorithm::RSASHA256 => self.is_valid_rsa(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
            Algorithm::RSASHA512 => self.is_valid_rsa(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
            Algorithm::ECDSAP256 => self.is_valid_on_curve(&ECDSA_P256_SHA256_FIXED, 64),
            Algorithm::ECDSAP384 => self.is_valid_on_curve(&ECDSA_P384_SHA384_FIXED, 96),
            Algorithm::ED25519 => {
                UnparsedPublicKey::new(&ED25519, self.key).verify(self.data, self.signature).is_ok()
            }
            _ => false,
        }
    }

    /// RSASSA-PKCS1-v1_5 (RFC 3110, RFC 5702).
    fn is_valid_rsa(&self, form: &RsaParameters) -> bool {
        let Some(RsaKey { exponent, modulus }) = RsaKey::parse(self.key) else { return false };
        let key = RsaPublicKeyComponents { n: modulus, e: exponent };
        key.verify(form, self.data, self.signature).is_ok()
    }

    /// ECDSA (RFC 6605 section 4): the key is a point without the octet that says that it is not compressed (SEC 1 section 2.3.3), the
    /// signature is both integers one after the other.
    fn is_valid_on_curve(&self, form: &'static dyn VerificationAlgorithm, octets: usize) -> bool {
        const UNCOMPRESSED: u8 = 4;
        if self.key.len() != octets {
            return false;
        }
        let mut point = [0; POINT];
        point[0] = UNCOMPRESSED;
        point[1..=octets].copy_from_slice(self.key);
        UnparsedPublicKey::new(form, &point[..=octets]).verify(self.data, self.signature).is_ok()
    }
}
