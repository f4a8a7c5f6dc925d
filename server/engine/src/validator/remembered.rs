//! Signatures that were found valid lately. That of the SOA record comes with every denial of a zone, and that of an NSEC record with many,
//! so a new name costs the verifications of its own signatures alone.
//!
//! A signature over the same data by the same key is valid for ever; its times, and whether the key is one of the zone, are checked at each
//! use (RFC 4035 section 5.3.1). So what is remembered neither expires nor depends on settings, and no reply can add to it but by a valid
//! signature. Names are 128-bit digests by SipHash with a secret key: nobody can look for two inputs of one digest.

use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher24};

/// Digests. Each takes 16 octets: 128 KiB.
const DIGESTS: usize = 8192;

/// Digest of a key, a signature and the data that it signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest(u128);

/// Digests of signatures that were found valid. Each has two places, and the one that was used last stays: with one place, those of new names
/// would drive out that of the SOA record again and again, and all who wait for it would verify it at once.
pub(crate) struct RememberedSignatures {
    hasher: SipHasher24,
    /// Pairs, the one that was used last first.
    digests: Box<[[Digest; 2]]>,
}

impl RememberedSignatures {
    /// Nothing yet. `key` is secret.
    pub fn new(key: [u64; 2]) -> RememberedSignatures {
        let [first, second] = key;
        let hasher = SipHasher24::new_with_keys(first, second);
        RememberedSignatures { hasher, digests: vec![[Digest::default(); 2]; DIGESTS / 2].into() }
    }

    /// Digest of a verification, as [`crate::interface::SignedData::write`] writes it.
    pub fn digest(&self, verification: &[u8]) -> Digest {
        let mut hasher = self.hasher;
        hasher.write(verification);
        Digest(hasher.finish128().as_u128())
    }

    /// True if the signature was found valid.
    pub fn has(&mut self, digest: Digest) -> bool {
        let pair = &mut self.digests[place(digest)];
        if pair[1] == digest {
            pair.swap(0, 1);
        }
        pair[0] == digest
    }

    /// Takes a signature that was found valid.
    pub fn remember(&mut self, digest: Digest) {
        if !self.has(digest) {
            let pair = &mut self.digests[place(digest)];
            *pair = [digest, pair[0]];
        }
    }
}

fn place(Digest(digest): Digest) -> usize {
    digest as usize % (DIGESTS / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_remembered_and_one_that_differs_in_any_octet_is_not() {
        let mut remembered = RememberedSignatures::new([1, 2]);
        let octets: Vec<u8> = (0..200).collect();
        let digest = remembered.digest(&octets);
        assert!(!remembered.has(digest));
        remembered.remember(digest);
        assert!(remembered.has(remembered.digest(&octets)));
        for place in 0..octets.len() {
            let mut other = octets.clone();
            other[place] ^= 1;
            assert!(!remembered.has(remembered.digest(&other)), "{place}");
        }
        assert!(!remembered.has(remembered.digest(&octets[..199])));
    }

    #[test]
    fn the_digest_depends_on_the_key() {
        let digest = |key| RememberedSignatures::new(key).digest(b"octets");
        assert_ne!(digest([1, 2]), digest([1, 3]));
        assert_ne!(digest([1, 2]), digest([2, 2]));
    }

    #[test]
    fn the_latest_of_many_are_remembered() {
        let mut remembered = RememberedSignatures::new([1, 2]);
        let digests: Vec<Digest> =
            (0..4 * DIGESTS as u32).map(|number| remembered.digest(&number.to_be_bytes())).collect();
        digests.iter().for_each(|&digest| remembered.remember(digest));
        let last = &digests[digests.len() - 100..];
        // Three of the last hundred have one place with probability 0.01.
        assert!(last.iter().filter(|&&digest| remembered.has(digest)).count() >= 99);
        assert!(digests.iter().filter(|&&digest| remembered.has(digest)).count() <= DIGESTS);
    }

    #[test]
    fn one_that_is_used_stays_whatever_comes() {
        let mut remembered = RememberedSignatures::new([1, 2]);
        let used = remembered.digest(b"SOA");
        remembered.remember(used);
        for number in 0..16 * DIGESTS as u32 {
            let digest = remembered.digest(&number.to_be_bytes());
            remembered.remember(digest);
            assert!(remembered.has(used), "{number}");
        }
    }
}
