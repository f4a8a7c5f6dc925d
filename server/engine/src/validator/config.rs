//! Settings of validation: trust anchors, algorithms, limits, and the digests of the driver.

use dnssec::{Algorithms, Anchor, AnchorData, Anchors, Digests, NegativeAnchor};

/// Anchors of each kind that need no allocation when a message is validated: the root has two to four, and each island one or two.
const FEW: usize = 16;

/// Digest functions of the driver. The engine has no cryptography, and no `dyn`.
#[derive(Clone, Copy, Debug)]
pub struct DigestFunctions {
    /// SHA-1.
    pub sha1: fn(&[u8]) -> [u8; 20],
    /// SHA-256.
    pub sha256: fn(&[u8]) -> [u8; 32],
    /// SHA-384.
    pub sha384: fn(&[u8]) -> [u8; 48],
}

impl Digests for DigestFunctions {
    fn sha1(&self, octets: &[u8]) -> [u8; 20] {
        (self.sha1)(octets)
    }

    fn sha256(&self, octets: &[u8]) -> [u8; 32] {
        (self.sha256)(octets)
    }

    fn sha384(&self, octets: &[u8]) -> [u8; 48] {
        (self.sha384)(octets)
    }
}

/// Trust anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchor {
    /// Zone in wire form.
    pub zone: Box<[u8]>,
    /// Record that the anchor is.
    pub record: AnchorRecord,
}

/// Record of a trust anchor, with its RDATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorRecord {
    /// DS record.
    Ds(Box<[u8]>),
    /// DNSKEY record.
    Dnskey(Box<[u8]>),
}

impl TrustAnchor {
    fn borrowed(&self) -> Anchor<'_> {
        let data = match &self.record {
            AnchorRecord::Ds(rdata) => AnchorData::Ds(rdata),
            AnchorRecord::Dnskey(rdata) => AnchorData::Dnskey(rdata),
        };
        Anchor { zone: &self.zone, data }
    }
}

/// Zone whose signatures are not looked at: a negative trust anchor (RFC 7646), or a zone with upstreams of its own that is not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncheckedZone {
    /// Zone in wire form.
    pub zone: Box<[u8]>,
    /// Last second in which this holds, since 1970 modulo 2^32; none without an end.
    pub until: Option<u32>,
}

/// Settings of validation.
#[derive(Clone, Debug)]
pub struct ValidationConfig {
    /// Digest functions.
    pub digests: DigestFunctions,
    /// Trust anchors.
    pub anchors: Vec<TrustAnchor>,
    /// Zones whose signatures are not looked at.
    pub unchecked: Vec<UncheckedZone>,
    /// Algorithms that count as supported.
    pub algorithms: Algorithms,
    /// Iterations of NSEC3 above which proofs count as insecure (RFC 9276 section 3.2).
    pub nsec3_iterations: u16,
    /// Bogus data are answered as insecure ones.
    pub permissive: bool,
    /// Names are denied by the proofs of replies to other questions (RFC 8198).
    pub aggressive_nsec: bool,
}

/// Digest functions are those of the driver, and no setting.
impl PartialEq for ValidationConfig {
    fn eq(&self, other: &ValidationConfig) -> bool {
        let settings = |config: &ValidationConfig| {
            let ValidationConfig { algorithms, nsec3_iterations, permissive, aggressive_nsec, .. } = *config;
            (algorithms, nsec3_iterations, permissive, aggressive_nsec)
        };
        settings(self) == settings(other)
            && self.anchors == other.anchors
            && self.unchecked == other.unchecked
    }
}

impl ValidationConfig {
    /// Lends the anchors in the form of `dnssec`.
    pub(crate) fn with_anchors<T>(&self, then: impl FnOnce(Anchors<'_>) -> T) -> T {
        const NO_ANCHOR: Anchor<'static> = Anchor { zone: b"", data: AnchorData::Ds(b"") };
        const NO_ZONE: NegativeAnchor<'static> = NegativeAnchor { zone: b"", until: None };
        if self.anchors.len() > FEW || self.unchecked.len() > FEW {
            return self.with_many_anchors(then);
        }
        let (mut positive, mut unchecked) = ([NO_ANCHOR; FEW], [NO_ZONE; FEW]);
        for (place, anchor) in positive.iter_mut().zip(&self.anchors) {
            *place = anchor.borrowed();
        }
        for (place, zone) in unchecked.iter_mut().zip(&self.unchecked) {
            *place = zone.borrowed();
        }
        let (positive, negative) = (&positive[..self.anchors.len()], &unchecked[..self.unchecked.len()]);
        then(Anchors { positive, negative })
    }

    #[cold]
    fn with_many_anchors<T>(&self, then: impl FnOnce(Anchors<'_>) -> T) -> T {
        let positive: Vec<Anchor<'_>> = self.anchors.iter().map(TrustAnchor::borrowed).collect();
        let negative: Vec<NegativeAnchor<'_>> = self.unchecked.iter().map(UncheckedZone::borrowed).collect();
        then(Anchors { positive: &positive, negative: &negative })
    }
}

impl UncheckedZone {
    fn borrowed(&self) -> NegativeAnchor<'_> {
        NegativeAnchor { zone: &self.zone, until: self.until }
    }
}
