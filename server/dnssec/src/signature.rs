//! Verification of an RRset: the checks of a signature that need no arithmetic (RFC 4035 section 5.3.1), the choice of signatures and keys,
//! and what follows from a signature that is valid.
//!
//! The order in which signatures are tried does not depend on their order in the message: it is that of their RDATA, then that of the keys.
//! So two workers that get the same records in another order reach the same verdict with the same work.

use crate::algorithm::Algorithm;
use crate::budget::{Budget, MessageBudget};
use crate::canonical::{SignedDataError, signed_data, signed_labels};
use crate::fields::Rrsig;
use crate::groups::{Rrset, Signature};
use crate::keys::signature_length;
use crate::limits::FAILURES;
use crate::name::{LowerName, is_below, labels};
use crate::reason::Bogus;
use crate::zone_keys::{ZoneKey, ZoneKeys};
use wire::Type;

/// Point in time: seconds since 1970-01-01T00:00:00Z modulo 2^32 (RFC 4034 section 3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u32);

impl Timestamp {
    /// Seconds from this point to another one, as RFC 1982 orders serial numbers; `None` if that is before this one, or as far away as
    /// possible, for which RFC 1982 has no order.
    #[inline]
    pub const fn until(self, other: u32) -> Option<u32> {
        let distance = other.wrapping_sub(self.0);
        if distance < 1 << 31 { Some(distance) } else { None }
    }
}

/// Secure zone, as far as its signatures need it.
#[derive(Clone, Copy, Debug)]
pub struct SecureZone<'a> {
    /// Apex.
    pub apex: LowerName,
    /// Keys.
    pub keys: ZoneKeys<'a>,
}

/// Verification to be computed.
#[derive(Clone, Copy)]
pub struct SignatureJob<'a> {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Public key in the form of the algorithm (RFC 3110, 6605, 8080), which was checked.
    pub key: &'a [u8],
    /// Signature, of the length that the key requires.
    pub signature: &'a [u8],
    set: Rrset<'a>,
    rrsig: Rrsig<'a>,
}

impl SignatureJob<'_> {
    /// Writes the octets that are signed, and returns their number. 64 KiB take any RRset that honest zones have.
    ///
    /// # Errors
    ///
    /// Those of [`signed_data`]. A signature whose data cannot be written counts as wrong.
    pub fn write_signed_data(&self, out: &mut [u8]) -> Result<usize, SignedDataError> {
        signed_data(&self.set, &self.rrsig, out)
    }
}

/// Consequence of a valid signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// Labels of the name under which the RRset was signed, without an asterisk: the closest encloser, if the RRset was expanded from a
    /// wildcard.
    pub labels: u8,
    /// True if the RRset was expanded from a wildcard. Then it also takes a proof that the owner does not exist (RFC 4035 section 5.3.4).
    pub is_expanded: bool,
    /// Longest TTL that the RRset may have, in seconds (RFC 4035 section 5.3.3).
    pub ttl: u32,
    /// Last second in which the signature is valid.
    pub expiration: u32,
}

/// Step of a [`Verification`].
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "without allocation there is no box, and a step is used up at once"
)]
pub enum Step<'a> {
    /// A signature is to be verified; then [`Verification::valid`] or [`Verification::wrong`] is called.
    Verify(SignatureJob<'a>),
    /// No signature can make the RRset secure.
    Bogus(Bogus),
}

/// Place of a signature and a key in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    /// Start of the RRSIG record.
    signature: u32,
    /// Number of the key.
    key: u8,
}

/// Verification of an RRset under way. It holds positions only, so it can wait beside the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    last: Option<Attempt>,
    failures: u8,
}

impl Verification {
    /// Next signature to verify. `now` is the time of this step. The budgets of message and resolution pay for it.
    pub fn step<'b>(
        &mut self,
        set: &Rrset<'b>,
        zone: &SecureZone<'b>,
        now: Timestamp,
        (message, resolution): (&mut MessageBudget, &mut Budget),
    ) -> Step<'b> {
        if self.failures >= FAILURES {
            return Step::Bogus(Bogus::Signature);
        }
        let (attempt, signature, key) = match self.next(set, zone, now) {
            Ok(found) => found,
            Err(_) if self.failures > 0 => return Step::Bogus(Bogus::Signature),
            Err(reason) => return Step::Bogus(reason),
        };
        if !message.verify(resolution) {
            return Step::Bogus(Bogus::TooMuchWork);
        }
        self.last = Some(attempt);
        let ZoneKey { algorithm, key, .. } = key;
        let rrsig = signature.rrsig;
        Step::Verify(SignatureJob { algorithm, key, signature: rrsig.signature, set: *set, rrsig })
    }

    /// The signature of the last step was wrong.
    pub fn wrong(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// The signature of the last step is valid. `None` if there was no such step, or if the signature has expired since.
    pub fn valid(&self, set: &Rrset<'_>, now: Timestamp) -> Option<Proven> {
        let last = self.last?;
        let signature = set.signatures().find(|signature| signature.start == last.signature)?;
        let rrsig = &signature.rrsig;
        let left = now.until(rrsig.expiration)?;
        let owner = LowerName::of(&set.owner());
        // A TTL with the highest bit counts as 0 (RFC 2181 section 8).
        let original = if rrsig.original_ttl > i32::MAX as u32 { 0 } else { rrsig.original_ttl };
        Some(Proven {
            labels: rrsig.labels,
            is_expanded: signed_labels(owner.as_wire()) > usize::from(rrsig.labels),
            ttl: set.ttl().min(signature.ttl).min(original).min(left),
            expiration: rrsig.expiration,
        })
    }

    /// First attempt behind the last one.
    fn next<'b>(
        &self,
        set: &Rrset<'b>,
        zone: &SecureZone<'b>,
        now: Timestamp,
    ) -> Result<(Attempt, Signature<'b>, ZoneKey<'b>), Bogus> {
        let last = self.last.and_then(|last| {
            let signature = set.signatures().find(|signature| signature.start == last.signature)?;
            Some((signature.rdata, last.key))
        });
        let owner = LowerName::of(&set.owner());
        let mut best: Option<(Attempt, Signature<'b>, ZoneKey<'b>)> = None;
        let mut reason = Bogus::SignatureMissing;
        for signature in set.signatures() {
            if let Err(error) = check(&signature.rrsig, &owner, zone.apex.as_wire(), now) {
                reason = reason.max(error);
                continue;
            }
            let mut fits = Bogus::KeyMissing;
            for (number, key) in (0u8..).zip(zone.keys.iter()) {
                if (key.algorithm, key.key_tag) != (signature.rrsig.algorithm, signature.rrsig.key_tag) {
                    continue;
                }
                fits = Bogus::Signature;
                let place = (signature.rdata, number);
                let is_next = last.is_none_or(|last| place > last)
                    && best.is_none_or(|(attempt, found, _)| place < (found.rdata, attempt.key));
                let length = Some(signature.rrsig.signature.len());
                if is_next && signature_length(key.algorithm, key.key) == length {
                    best = Some((Attempt { signature: signature.start, key: number }, signature, key));
                }
            }
            reason = reason.max(fits);
        }
        best.ok_or(reason)
    }
}

/// Checks of a signature that need no key and no arithmetic (RFC 4035 section 5.3.1). Owner and type fit, as the signature was found
/// by these.
///
/// # Errors
///
/// The first check that fails, in this order: `Signer`, `Labels`, `ExpiresBeforeValid`, `NotYetValid`, `Expired`.
pub fn check(rrsig: &Rrsig<'_>, owner: &LowerName, apex: &[u8], now: Timestamp) -> Result<(), Bogus> {
    let owner = owner.as_wire();
    let is_signer = wire::eq_ignore_case(rrsig.signer, apex)
        // DS records belong to the parent, although they stand at the apex of the child (RFC 4034 section 5).
        && if rrsig.covered == Type::DS { is_below(owner, apex) } else { wire::is_at_or_below(owner, apex) };
    if !is_signer {
        return Err(Bogus::Signer);
    }
    // A wildcard above the apex is outside of the zone (CVE-2026-44690).
    if usize::from(rrsig.labels) > signed_labels(owner) || usize::from(rrsig.labels) < labels(apex) {
        return Err(Bogus::Labels);
    }
    let inception = Timestamp(rrsig.inception);
    if inception.until(rrsig.expiration).is_none() {
        return Err(Bogus::ExpiresBeforeValid);
    }
    if inception.until(now.0).is_none() {
        return Err(Bogus::NotYetValid);
    }
    now.until(rrsig.expiration).map(|_| ()).ok_or(Bogus::Expired)
}
