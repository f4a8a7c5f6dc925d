//! Signatures, digests and keys of the keyed worlds. In place of the arithmetic stands SipHash: whoever has the secret of a key can make its
//! signatures, and nobody else. The engine has no cryptography either: verifications leave it, and their outcomes come back.

use crate::keyed_worlds::names::{Name, labels};
use core::hash::Hasher as _;
use engine::SignedData;
use engine::settings::DigestFunctions;
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use splitmix::mix;
use std::collections::HashMap;

/// Algorithm of all keys: keys and signatures have 64 octets (RFC 6605 section 4).
pub(super) const ALGORITHM: u8 = 13;

/// Digests of the engine and of the worlds. They stand for SHA-1, SHA-256 and SHA-384.
pub(super) const DIGESTS: DigestFunctions = DigestFunctions { sha1: digest, sha256: digest, sha384: digest };

fn digest<const N: usize>(octets: &[u8]) -> [u8; N] {
    expand(0x6469_6765_7374, octets)
}

/// A keyed hash of this many octets.
fn expand<const N: usize>(key: u64, octets: &[u8]) -> [u8; N] {
    let mut hasher = SipHasher24::new_with_keys(key, N as u64);
    hasher.write(octets);
    let first = hasher.finish128();
    let mut out = [0; N];
    for (number, part) in (0..).zip(out.chunks_mut(8)) {
        let word = mix(first.h1 ^ mix(first.h2.wrapping_add(number)));
        part.copy_from_slice(&word.to_be_bytes()[..part.len()]);
    }
    out
}

/// Key with its secret.
#[derive(Clone, Debug)]
pub(super) struct Key {
    secret: u64,
    public: [u8; 64],
}

impl Key {
    /// The key of a secret.
    pub(super) fn new(secret: u64) -> Key {
        Key { secret, public: expand(secret, b"public") }
    }

    /// A key with a chosen key tag: the last two octets of the public key make up the sum.
    pub(super) fn with_tag(secret: u64, tag: u16) -> Key {
        let mut key = Key::new(secret);
        key.public[62..].fill(0);
        let rest = (u32::from(tag) + 0xffff - u32::from(key.tag())) % 0xffff;
        key.public[62..].copy_from_slice(&(rest as u16).to_be_bytes());
        key
    }

    /// RDATA of the DNSKEY record.
    pub(super) fn rdata(&self) -> Vec<u8> {
        [&[1, 1, 3, ALGORITHM][..], &self.public].concat()
    }

    /// Key tag (RFC 4034 appendix B).
    pub(super) fn tag(&self) -> u16 {
        let sum: u32 = self.rdata().chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        (sum + (sum >> 16)) as u16
    }

    /// RDATA of the DS record of a zone with this key.
    pub(super) fn ds(&self, apex: &[u8]) -> Vec<u8> {
        let digest: [u8; 32] = digest(&[apex, &self.rdata()].concat());
        [&self.tag().to_be_bytes()[..], &[ALGORITHM, 2], &digest].concat()
    }

    fn sign(&self, octets: &[u8]) -> [u8; 64] {
        expand(self.secret, octets)
    }
}

/// What a signature says besides the RRset.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) ttl: u32,
    pub(super) inception: u32,
    pub(super) expiration: u32,
    pub(super) signer: Name,
    /// Key tag that is written.
    pub(super) tag: u16,
}

/// RDATA of an RRSIG record over an RRset whose owner, perhaps a wildcard, is the one at which it stands in its zone (RFC 4034 section 3.1).
pub(super) fn rrsig(key: &Key, terms: &Terms, owner: &[u8], rtype: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let labels = labels(owner) - usize::from(owner.starts_with(b"\x01*"));
    let mut rdata = rtype.to_be_bytes().to_vec();
    rdata.extend([ALGORITHM, labels as u8]);
    rdata.extend([terms.ttl, terms.expiration, terms.inception].map(u32::to_be_bytes).as_flattened());
    rdata.extend(terms.tag.to_be_bytes());
    rdata.extend(&terms.signer);
    let mut data = rdata.clone();
    let mut sorted: Vec<&Vec<u8>> = records.iter().collect();
    sorted.sort();
    for record in sorted {
        data.extend(kit::message::record(owner, rtype, terms.ttl, record));
    }
    rdata.extend(key.sign(&data));
    rdata
}

/// All keys there are, by public key.
#[derive(Debug, Default)]
pub(super) struct Verifier(HashMap<[u8; 64], u64>);

impl Verifier {
    /// Has signatures of a key verified.
    pub(super) fn add(&mut self, key: &Key) {
        self.0.insert(key.public, key.secret);
    }

    /// True if the signature is one of the key over the data.
    pub(super) fn verify(&self, signed: &SignedData<'_>) -> bool {
        let secret = <[u8; 64]>::try_from(signed.key).ok().and_then(|public| self.0.get(&public));
        signed.algorithm == ALGORITHM
            && secret.is_some_and(|&secret| expand::<64>(secret, signed.data) == *signed.signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_tag_that_was_chosen_and_only_its_own_signatures_are_valid() {
        let (own, other) = (Key::new(7), Key::new(8));
        let twin = Key::with_tag(9, own.tag());
        assert_eq!(twin.tag(), own.tag());
        let mut verifier = Verifier::default();
        [&own, &twin].into_iter().for_each(|key| verifier.add(key));
        let is_valid = |key: &Key, signer: &Key| {
            let signature = signer.sign(b"data");
            let (key, signature) = (&key.public[..], &signature[..]);
            verifier.verify(&SignedData { algorithm: ALGORITHM, key, signature, data: b"data" })
        };
        assert!(is_valid(&own, &own) && is_valid(&twin, &twin));
        assert!(!is_valid(&own, &twin) && !is_valid(&twin, &own) && !is_valid(&other, &other));
    }
}
