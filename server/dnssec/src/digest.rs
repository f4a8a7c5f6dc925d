//! Digests, which the caller computes.
//!
//! This crate has no digest of its own. The server has AWS-LC for TLS, with the processor's instructions for SHA; a second implementation
//! beside it would be slower, would have to be kept, and would have to agree with the first. One call digests one piece of octets, because
//! every input of DNSSEC fits on the stack: an NSEC3 hash takes 510 octets at most, a digest of a DS record [`DIGEST_INPUT`].
//!
//! [`DIGEST_INPUT`]: crate::limits::DIGEST_INPUT

/// Digest functions of FIPS 180-4.
pub trait Digests {
    /// SHA-1, for hashes of NSEC3 and old DS records.
    fn sha1(&self, octets: &[u8]) -> [u8; 20];

    /// SHA-256.
    fn sha256(&self, octets: &[u8]) -> [u8; 32];

    /// SHA-384.
    fn sha384(&self, octets: &[u8]) -> [u8; 48];
}

impl<T: Digests + ?Sized> Digests for &T {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        (**self).sha1(octets)
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        (**self).sha256(octets)
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        (**self).sha384(octets)
    }
}
