//! Numbers of signature and digest algorithms, and those that are supported (RFC 9904, RFC 9905).

/// Signature algorithm of a key and its signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithm(pub u8);

impl Algorithm {
    /// RSA with MD5 (RFC 2537): its key tag is computed in another way, and nothing else is supported.
    pub const RSAMD5: Algorithm = Algorithm(1);
    /// RSA with SHA-1 (RFC 3110).
    pub const RSASHA1: Algorithm = Algorithm(5);
    /// RSA with SHA-1, for zones with NSEC3 (RFC 5155 section 2).
    pub const RSASHA1_NSEC3: Algorithm = Algorithm(7);
    /// RSA with SHA-256 (RFC 5702).
    pub const RSASHA256: Algorithm = Algorithm(8);
    /// RSA with SHA-512 (RFC 5702).
    pub const RSASHA512: Algorithm = Algorithm(10);
    /// ECDSA on P-256 with SHA-256 (RFC 6605).
    pub const ECDSAP256: Algorithm = Algorithm(13);
    /// ECDSA on P-384 with SHA-384 (RFC 6605).
    pub const ECDSAP384: Algorithm = Algorithm(14);
    /// Ed25519 (RFC 8080).
    pub const ED25519: Algorithm = Algorithm(15);

    /// True for RSA with any digest but MD5.
    pub const fn is_rsa(self) -> bool {
        matches!(self, Self::RSASHA1 | Self::RSASHA1_NSEC3 | Self::RSASHA256 | Self::RSASHA512)
    }
}

/// Set of the signature algorithms that count as supported. Zones that have no other are insecure (RFC 4035 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithms(u32);

impl Algorithms {
    /// Algorithms that a validator has to support today, without those that use SHA-1: RFC 9905 section 2 has operators treat these as
    /// unsupported. Ed448 (16) is optional, and the library of the server does not have it.
    pub const CURRENT: Algorithms = Algorithms::of(&[
        Algorithm::RSASHA256,
        Algorithm::RSASHA512,
        Algorithm::ECDSAP256,
        Algorithm::ECDSAP384,
        Algorithm::ED25519,
    ]);

    /// The current algorithms, RSASHA1 and RSASHA1-NSEC3-SHA1.
    pub const ALL: Algorithms =
        Algorithms(Self::CURRENT.0 | Self::of(&[Algorithm::RSASHA1, Algorithm::RSASHA1_NSEC3]).0);

    const fn of(list: &[Algorithm]) -> Algorithms {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at].0;
            at += 1;
        }
        Algorithms(bits)
    }

    /// True if the algorithm is in the set.
    pub const fn contains(self, algorithm: Algorithm) -> bool {
        algorithm.0 < 32 && self.0 >> algorithm.0 & 1 == 1
    }
}

/// Digest algorithm of a DS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DigestType(pub u8);

impl DigestType {
    /// SHA-1 (RFC 3658).
    pub const SHA1: DigestType = DigestType(1);
    /// SHA-256 (RFC 4509).
    pub const SHA256: DigestType = DigestType(2);
    /// SHA-384 (RFC 6605).
    pub const SHA384: DigestType = DigestType(4);

    /// Octets of the digest; `None` for digests that are not supported.
    pub const fn length(self) -> Option<usize> {
        match self {
            Self::SHA1 => Some(20),
            Self::SHA256 => Some(32),
            Self::SHA384 => Some(48),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 9904: RSAMD5, DSA, DSA-NSEC3-SHA1 and ECC-GOST are not supported. RFC 9905: those with SHA-1 only where asked for.
    #[test]
    fn only_the_algorithms_of_the_registry_that_are_recommended_are_supported_by_default() {
        let supported = |set: Algorithms| {
            (0..=255u8).filter(|&number| set.contains(Algorithm(number))).fold(0u64, |bits, n| bits | 1 << n)
        };
        assert_eq!(supported(Algorithms::CURRENT), 1 << 8 | 1 << 10 | 1 << 13 | 1 << 14 | 1 << 15);
        assert_eq!(supported(Algorithms::ALL), supported(Algorithms::CURRENT) | 1 << 5 | 1 << 7);
    }

    // RFC 9904: digest 3 (GOST) is not supported.
    #[test]
    fn three_digests_are_supported() {
        let lengths = [1, 2, 3, 4, 5].map(|number| DigestType(number).length());
        assert_eq!(lengths, [Some(20), Some(32), None, Some(48), None]);
    }
}
