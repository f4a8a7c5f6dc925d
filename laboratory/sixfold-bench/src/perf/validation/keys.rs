//! Keys of the signed zones, made anew for each run: their records, their signatures, and the bare verification of one.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use servers::TrustAnchor;
use std::io;

/// Octets of the DER form of an RSA-2048 key with the exponent 65537 (RFC 8017 appendix A.1.1): the modulus follows 9 octets of headers
/// and signs, and is followed by the exponent with its header.
const RSA_DER: usize = 270;
const RSA_MODULUS: std::ops::Range<usize> = 9..265;
const RSA_EXPONENT: [u8; 3] = [1, 0, 1];

/// Flags of a key that signs all of its zone (RFC 4034 section 2.1.1): zone key and secure entry point.
const FLAGS: u16 = 257;

/// Algorithm with which a zone is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256 (RFC 6605).
    EcdsaP256,
    /// Ed25519 (RFC 8080).
    Ed25519,
    /// RSA with SHA-256 (RFC 5702) and a modulus of 2,048 bits.
    Rsa2048,
}

impl Algorithm {
    /// Number of IANA's registry.
    pub fn number(self) -> u8 {
        match self {
            Algorithm::EcdsaP256 => 13,
            Algorithm::Ed25519 => 15,
            Algorithm::Rsa2048 => 8,
        }
    }

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::EcdsaP256 => "P-256",
            Algorithm::Ed25519 => "Ed25519",
            Algorithm::Rsa2048 => "RSA-2048",
        }
    }
}

enum Secret {
    EcdsaP256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa2048(rsa::KeyPair),
}

/// Key of a zone.
pub struct Key {
    secret: Secret,
    /// Public key as in a DNSKEY record.
    public: Vec<u8>,
}

impl Key {
    /// Makes a key of an algorithm.
    ///
    /// # Errors
    ///
    /// AWS-LC makes none.
    pub fn generate(algorithm: Algorithm) -> io::Result<Key> {
        let key = match algorithm {
            Algorithm::EcdsaP256 => {
                EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map(|pair| Key {
                    // RFC 6605 section 4: without the octet that says that the point is not compressed.
                    public: pair.public_key().as_ref()[1..].to_vec(),
                    secret: Secret::EcdsaP256(pair),
                })
            }
            Algorithm::Ed25519 => Ed25519KeyPair::generate().map(|pair| Key {
                public: pair.public_key().as_ref().to_vec(),
                secret: Secret::Ed25519(pair),
            }),
            Algorithm::Rsa2048 => rsa::KeyPair::generate(rsa::KeySize::Rsa2048).and_then(|pair| {
                let der = pair.public_key().as_ref();
                if der.len() != RSA_DER {
                    return Err(Unspecified);
                }
                // RFC 3110 section 2: length of the exponent, exponent, modulus.
                let public = [&[RSA_EXPONENT.len() as u8], &RSA_EXPONENT[..], &der[RSA_MODULUS]].concat();
                Ok(Key { public, secret: Secret::Rsa2048(pair) })
            }),
        };
        key.map_err(|_| io::Error::other(format!("no {} key can be made", algorithm.name())))
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match self.secret {
            Secret::EcdsaP256(_) => Algorithm::EcdsaP256,
            Secret::Ed25519(_) => Algorithm::Ed25519,
            Secret::Rsa2048(_) => Algorithm::Rsa2048,
        }
    }

    /// Octets of its signatures.
    pub fn signature_octets(&self) -> usize {
        match self.secret {
            Secret::EcdsaP256(_) | Secret::Ed25519(_) => 64,
            Secret::Rsa2048(_) => 256,
        }
    }

    /// Writes its signature over data into `out`, which has [`Key::signature_octets`].
    ///
    /// # Errors
    ///
    /// AWS-LC makes none.
    pub fn sign(&self, data: &[u8], out: &mut [u8]) -> io::Result<()> {
        let random = SystemRandom::new();
        let signed = match &self.secret {
            Secret::EcdsaP256(pair) => {
                pair.sign(&random, data).map(|signature| out.copy_from_slice(signature.as_ref()))
            }
            Secret::Ed25519(pair) => {
                pair.try_sign(data).map(|signature| out.copy_from_slice(signature.as_ref()))
            }
            Secret::Rsa2048(pair) => pair.sign(&RSA_PKCS1_SHA256, &random, data, out),
        };
        signed.map_err(|_| io::Error::other("a signature cannot be made"))
    }

    /// Verifies a signature with the public key as a DNSKEY record has it, with nothing around the arithmetic. Returns true if it is valid.
    pub fn verifies(&self, data: &[u8], signature: &[u8]) -> bool {
        let verified = match self.secret {
            Secret::EcdsaP256(_) => {
                let mut point = [4; 65];
                point[1..].copy_from_slice(&self.public);
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(data, signature)
            }
            Secret::Ed25519(_) => UnparsedPublicKey::new(&ED25519, &self.public).verify(data, signature),
            Secret::Rsa2048(_) => {
                let modulus = &self.public[1 + RSA_EXPONENT.len()..];
                let key = RsaPublicKeyComponents { n: modulus, e: &RSA_EXPONENT };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, data, signature)
            }
        };
        verified.is_ok()
    }

    /// RDATA of its DNSKEY record (RFC 4034 section 2.1).
    pub fn dnskey(&self) -> Vec<u8> {
        let protocol = 3;
        [&FLAGS.to_be_bytes()[..], &[protocol, self.algorithm().number()], &self.public].concat()
    }

    /// Key tag (RFC 4034 appendix B).
    pub fn tag(&self) -> u16 {
        let octets = self.dnskey().into_iter().enumerate();
        let sum: u32 =
            octets.map(|(place, octet)| u32::from(octet) << if place % 2 == 0 { 8 } else { 0 }).sum();
        ((sum >> 16) + (sum & 0xffff)) as u16
    }

    /// RDATA of a DS record for it in a zone (RFC 4034 section 5.1), with a digest of SHA-256 (RFC 4509).
    pub fn ds(&self, zone: &[u8]) -> Vec<u8> {
        let head = [&self.tag().to_be_bytes()[..], &[self.algorithm().number(), 2]].concat();
        [&head[..], self.digest(zone).as_ref()].concat()
    }

    fn digest(&self, zone: &[u8]) -> aws_lc_rs::digest::Digest {
        digest(&SHA256, &[zone, &self.dnskey()].concat())
    }

    /// Trust anchor for a zone with this key. `text`: its name, with the final dot.
    pub fn trust_anchor(&self, zone: &[u8], text: &str) -> TrustAnchor {
        TrustAnchor::of_rdata(text.to_owned(), &self.ds(zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_valid_for_its_data_alone() {
        for algorithm in [Algorithm::EcdsaP256, Algorithm::Ed25519, Algorithm::Rsa2048] {
            let key = Key::generate(algorithm).unwrap();
            let mut signature = vec![0; key.signature_octets()];
            key.sign(b"data", &mut signature).unwrap();
            assert!(key.verifies(b"data", &signature), "{}", algorithm.name());
            assert!(!key.verifies(b"Data", &signature), "{}", algorithm.name());
        }
    }

    // RFC 5702 section 2, RFC 6605 section 4 and RFC 8080 section 3: 4 octets of fields, then exponent and modulus, point, or key.
    #[test]
    fn a_key_has_the_length_of_its_algorithm() {
        for (algorithm, octets) in
            [(Algorithm::EcdsaP256, 64), (Algorithm::Ed25519, 32), (Algorithm::Rsa2048, 1 + 3 + 256)]
        {
            let key = Key::generate(algorithm).unwrap();
            assert_eq!(key.dnskey().len(), 4 + octets);
            assert_eq!(key.dnskey()[..4], [1, 1, 3, algorithm.number()]);
            assert_eq!(key.ds(b"\x04test\0").len(), 4 + 32);
        }
    }
}
