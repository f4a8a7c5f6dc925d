//! Reasons of verdicts, and their extended DNS errors (RFC 8914, RFC 9276).

use wire::EdeCode;

/// Reason why data are bogus: not what the owner of the zone published, as far as anybody can tell.
///
/// The order is that of the checks. Of an RRset whose signatures fail for several reasons, the last one counts: it belongs to the signature
/// that came furthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bogus {
    /// Validation would cost more than a message or a resolution may cost.
    TooMuchWork,
    /// Records of another class, or records that their types do not allow.
    Malformed,
    /// No signature covers the RRset.
    SignatureMissing,
    /// The signer is not the zone of the RRset.
    Signer,
    /// The signature is for a name with more labels than the owner has, or for a wildcard outside of the zone.
    Labels,
    /// The signature expires before it becomes valid.
    ExpiresBeforeValid,
    /// The signature is not valid yet.
    NotYetValid,
    /// The signature has expired.
    Expired,
    /// The zone has no key that can be used with the algorithm and key tag of the signature, or of the DS records.
    KeyMissing,
    /// The key that the DS records name is not one of a zone.
    NoZoneKey,
    /// The key that the DS records name is revoked.
    KeyRevoked,
    /// The arithmetic does not work out.
    Signature,
    /// The records that would prove what the answer denies are missing, or prove something else.
    Denial,
    /// Hashes of NSEC3 with so many iterations that they are refused.
    Iterations,
    /// Records in the answer that do not answer the question, or an alias that does not follow from its DNAME record.
    Unrelated,
    /// No answer of any upstream about the keys of a zone.
    Unreachable,
}

impl Bogus {
    /// Extended error.
    pub const fn ede(self) -> EdeCode {
        match self {
            Bogus::Expired => 7,
            Bogus::NotYetValid => 8,
            Bogus::KeyMissing => 9,
            Bogus::SignatureMissing => 10,
            Bogus::NoZoneKey => 11,
            Bogus::Denial => 12,
            Bogus::Unreachable => 22,
            Bogus::ExpiresBeforeValid => 25,
            Bogus::Iterations => 27,
            _ => 6,
        }
    }

    /// Name of the extended error, for metrics.
    pub const fn word(self) -> &'static str {
        match self.ede() {
            7 => "signature_expired",
            8 => "signature_not_yet_valid",
            9 => "dnskey_missing",
            10 => "rrsigs_missing",
            11 => "no_zone_key_bit_set",
            12 => "nsec_missing",
            22 => "no_reachable_authority",
            25 => "signature_expired_before_valid",
            27 => "unsupported_nsec3_iterations_value",
            _ => "dnssec_bogus",
        }
    }
}

impl core::fmt::Display for Bogus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Bogus::TooMuchWork => "validation would cost too much",
            Bogus::Malformed => "a record is malformed",
            Bogus::SignatureMissing => "a signature is missing",
            Bogus::Signer => "the signer is not the zone of the records",
            Bogus::Labels => {
                "a signature has more labels than the owner, or is for a wildcard outside of the zone"
            }
            Bogus::ExpiresBeforeValid => "a signature expires before it becomes valid",
            Bogus::NotYetValid => "a signature is not valid yet",
            Bogus::Expired => "a signature has expired",
            Bogus::KeyMissing => "the key that a signature or a DS record names is missing",
            Bogus::NoZoneKey => "the key that a DS record names is no zone key",
            Bogus::KeyRevoked => "the key that a DS record names is revoked",
            Bogus::Signature => "a signature is wrong",
            Bogus::Denial => "the proof that a record or a name does not exist is missing or wrong",
            Bogus::Iterations => "NSEC3 has too many iterations",
            Bogus::Unrelated => "a record does not answer the question",
            Bogus::Unreachable => "no upstream answers about the keys of a zone",
        })
    }
}

/// Reason why data need no signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Insecure {
    /// No trust anchor above the name.
    NoAnchor,
    /// A negative trust anchor above the name (RFC 7646).
    NegativeAnchor,
    /// A delegation without DS records.
    Delegation,
    /// A span of hashes that may have unsigned delegations (RFC 5155 section 6).
    OptOut,
    /// DS records with algorithms of keys that are not supported.
    Algorithm,
    /// DS records with digests that are not supported.
    Digest,
    /// Hashes of NSEC3 with more iterations than are computed (RFC 9276 section 3.2).
    Iterations,
    /// RRSIG records, which nothing signs (RFC 4035 section 2.2).
    Signatures,
}

impl core::fmt::Display for Insecure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Insecure::NoAnchor => "no trust anchor is above the name",
            Insecure::NegativeAnchor => {
                "a negative trust anchor, or an upstream zone that is not validated, is above the name"
            }
            Insecure::Delegation => "the delegation has no DS record",
            Insecure::OptOut => "the name lies in a span of unsigned delegations (opt-out)",
            Insecure::Algorithm => "no DS record has a supported signature algorithm",
            Insecure::Digest => "no DS record has a supported digest algorithm",
            Insecure::Iterations => "NSEC3 has more iterations than are computed",
            Insecure::Signatures => "nothing signs signatures",
        })
    }
}

impl Insecure {
    /// Word of the reason, for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Insecure::NoAnchor => "no_anchor",
            Insecure::NegativeAnchor => "negative_anchor",
            Insecure::Delegation => "delegation",
            Insecure::OptOut => "opt_out",
            Insecure::Algorithm => "algorithm",
            Insecure::Digest => "digest",
            Insecure::Iterations => "iterations",
            Insecure::Signatures => "signatures",
        }
    }

    /// Extended error, for those that say that a signed zone counts as unsigned.
    pub const fn ede(self) -> Option<EdeCode> {
        match self {
            Insecure::Algorithm => Some(1),
            Insecure::Digest => Some(2),
            Insecure::Iterations => Some(27),
            _ => None,
        }
    }
}
