//! Chains of trust: from the DS records of a zone, or its anchors, to its keys (RFC 4035 section 5.2), and from the zones that are known to
//! the one that is responsible for an RRset, or to the question that finds it.

use crate::algorithm::{Algorithm, Algorithms, DigestType};
use crate::anchors::{AnchorData, Anchors, ClosestAnchor};
use crate::digest::Digests;
use crate::fields::{Dnskey, Ds};
use crate::groups::Rrset;
use crate::keys::{KeyError, ds_matches};
use crate::limits::KEY_RECORDS;
use crate::name::{LowerName, is_below, labels};
use crate::reason::{Bogus, Insecure};
use crate::signature::{SecureZone, Timestamp};
use crate::zone_keys::{ZoneKeys, ZoneKeysError};
use wire::Type;

/// Digests of keys for one zone. Honest zones need one for each DS record; many DS records and keys of one tag would need their product.
const DIGESTS: u32 = 32;

/// Zone, or a name that is none, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'a> {
    /// Nothing is known of a zone with this apex.
    Unknown,
    /// The name is no apex: its parent zone said so in a verified reply to a question for DS records.
    NoCut,
    /// Secure zone with these keys.
    Secure(ZoneKeys<'a>),
    /// The zone needs no signatures.
    Insecure(Insecure),
    /// The chain to the zone is broken: it has DS records or anchors, and no keys that they vouch for.
    Bogus(Bogus),
    /// There is no reply to a question for DS records of this name that can be trusted, so it is open whether a zone begins here. What the
    /// zone above has signed is verified nevertheless; nothing else at the name and below it can be trusted.
    Unproven(Bogus),
}

/// Zones that are known now. An entry must be gone when the proofs that made it are.
pub trait Zones {
    /// Zone with this apex, in lower case.
    fn get(&self, apex: &[u8]) -> Known<'_>;
}

/// Responsible zone, or the way to it.
#[derive(Clone, Copy, Debug)]
pub enum Closest<'z> {
    /// Deepest known zone, which is secure.
    Secure(SecureZone<'z>),
    /// Name below an insecure zone, below a negative anchor, or below none.
    Insecure(Insecure),
    /// Name below a zone whose chain is broken.
    Bogus(Bogus),
    /// The keys of this zone, which has anchors, are to be asked for.
    Ask(LowerName),
}

/// Question to be answered before validation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Keys of a zone that has anchors.
    Anchor(LowerName),
    /// DS records of a name, which may be the apex of a zone; if it is likely one, its keys at the same time.
    Delegation(LowerName),
}

/// Plan for an RRset.
#[derive(Clone, Copy, Debug)]
pub enum Plan<'z> {
    /// Signatures of this zone are to be verified.
    Verify(SecureZone<'z>),
    /// The RRset needs no signatures.
    Insecure(Insecure),
    /// No signature can make the RRset secure.
    Bogus(Bogus),
    /// This is to be asked first.
    Ask(Question),
}

/// Deepest zone that is known at or above a name, below the closest anchor.
pub fn closest<'z>(
    zones: &'z impl Zones,
    anchors: &Anchors<'_>,
    name: &LowerName,
    now: Timestamp,
) -> Closest<'z> {
    let anchor = match anchors.closest(name.as_wire(), now) {
        ClosestAnchor::None => return Closest::Insecure(Insecure::NoAnchor),
        ClosestAnchor::Negative => return Closest::Insecure(Insecure::NegativeAnchor),
        ClosestAnchor::Positive(labels) => labels,
    };
    for count in (anchor..=labels(name.as_wire())).rev() {
        let Some(apex) = name.suffix(count) else { continue };
        match zones.get(apex.as_wire()) {
            Known::Secure(keys) => return Closest::Secure(SecureZone { apex, keys }),
            Known::Insecure(reason) => return Closest::Insecure(reason),
            Known::Bogus(reason) => return Closest::Bogus(reason),
            // A zone with anchors begins here, whatever is said about it.
            Known::Unproven(reason) if count == anchor => return Closest::Bogus(reason),
            Known::Unknown | Known::NoCut | Known::Unproven(_) => {}
        }
    }
    Closest::Ask(name.suffix(anchor).unwrap_or(LowerName::ROOT))
}

/// Name whose closest zone is responsible for a name and a type: DS records are the parent's (RFC 4035 section 5.2).
pub fn responsible(name: &LowerName, rtype: Type) -> LowerName {
    if rtype == Type::DS { name.parent().unwrap_or(LowerName::ROOT) } else { *name }
}

/// Plan for an RRset.
pub fn plan<'z>(set: &Rrset<'_>, zones: &'z impl Zones, anchors: &Anchors<'_>, now: Timestamp) -> Plan<'z> {
    let owner = LowerName::of(&set.owner());
    let has_signer = |zone: &SecureZone<'_>| {
        set.signatures().any(|signature| wire::eq_ignore_case(signature.rrsig.signer, zone.apex.as_wire()))
    };
    // The parent has an NSEC record at a delegation.
    if set.rtype() == Type::NSEC
        && let Some(above) = owner.parent()
    {
        let is_of_child = || {
            set.signatures().any(|signature| wire::eq_ignore_case(signature.rrsig.signer, owner.as_wire()))
        };
        match closest(zones, anchors, &above, now) {
            Closest::Secure(zone) if has_signer(&zone) => return Plan::Verify(zone),
            // The zone below may have an anchor.
            Closest::Insecure(reason) if !is_of_child() => return Plan::Insecure(reason),
            _ => {}
        }
    }
    let target = match set.rtype() {
        // The owner is a hash below the apex.
        Type::NSEC3 => owner.parent().unwrap_or(owner),
        rtype => responsible(&owner, rtype),
    };
    match closest(zones, anchors, &target, now) {
        Closest::Secure(zone) if has_signer(&zone) => Plan::Verify(zone),
        Closest::Secure(zone) => match next_cut(set, &zone.apex, &target, zones) {
            Ok(Some(question)) => Plan::Ask(question),
            Ok(None) if set.signatures().next().is_some() => Plan::Bogus(Bogus::Signer),
            Ok(None) => Plan::Bogus(Bogus::SignatureMissing),
            Err(reason) => Plan::Bogus(reason),
        },
        Closest::Insecure(reason) => Plan::Insecure(reason),
        Closest::Bogus(reason) => Plan::Bogus(reason),
        Closest::Ask(zone) => Plan::Ask(Question::Anchor(zone)),
    }
}

/// Question for the zone between a secure one and a name that may have signed an RRset, or may be unsigned. A signer between both is asked
/// for at once, without a walk over the labels above it.
///
/// # Errors
///
/// Those of [`unknown_cut`].
fn next_cut(
    set: &Rrset<'_>,
    apex: &LowerName,
    target: &LowerName,
    zones: &impl Zones,
) -> Result<Option<Question>, Bogus> {
    let is_between =
        |name: &[u8]| is_below(name, apex.as_wire()) && wire::is_at_or_below(target.as_wire(), name);
    let signers = set.signatures().filter_map(|signature| LowerName::from_wire(signature.rrsig.signer));
    let unknown = signers
        .filter(|signer| is_between(signer.as_wire()) && zones.get(signer.as_wire()) == Known::Unknown);
    // Of several signers the highest, so that the order of records does not matter.
    match unknown.min_by_key(|signer| signer.as_wire().len()) {
        Some(signer) => Ok(Some(Question::Delegation(signer))),
        None => unknown_cut(apex, target, zones),
    }
}

/// First name below a secure zone, on the way to another name, of which it is not known whether it is the apex of a zone. `None`: there is
/// no zone in between, so the name belongs to the secure zone.
///
/// # Errors
///
/// The reason why it cannot be found out: a name on the way is [`Known::Unproven`].
pub fn unknown_cut(
    apex: &LowerName,
    target: &LowerName,
    zones: &impl Zones,
) -> Result<Option<Question>, Bogus> {
    let below = labels(apex.as_wire()) + 1..=labels(target.as_wire());
    for name in below.filter_map(|count| target.suffix(count)) {
        match zones.get(name.as_wire()) {
            Known::Unknown => return Ok(Some(Question::Delegation(name))),
            Known::Unproven(reason) => return Err(reason),
            _ => {}
        }
    }
    Ok(None)
}

/// Keys that may vouch for the DNSKEY RRset of a zone, or the reason why none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A signature of one of these keys makes the DNSKEY RRset secure.
    Keys(ZoneKeys<'a>),
    /// The zone counts as unsigned.
    Insecure(Insecure),
    /// No key can make it secure.
    Bogus(Bogus),
}

/// Keys of a DNSKEY RRset that DS records name. `ds` has the RDATA of a verified DS RRset.
///
/// Without a DS record whose algorithms are both supported, the zone is insecure (RFC 4035 section 5.2, RFC 6840 section 5.2). A record
/// that is malformed, but of a supported algorithm, is not unsupported, so the chain is broken then. It is broken without any record, too:
/// that a zone has none is for a denial to prove.
pub fn entry_by_ds<'a, 'k>(
    ds: impl Iterator<Item = &'a [u8]> + Clone,
    keys: &Rrset<'_>,
    supported: Algorithms,
    digests: &impl Digests,
    out: &'k mut [u8],
) -> Entry<'k> {
    if ds.clone().nth(KEY_RECORDS).is_some() {
        return Entry::Bogus(Bogus::TooMuchWork);
    }
    let parsed = ds.clone().filter_map(|rdata| Ds::parse(rdata).ok());
    if usable(parsed.clone(), supported).next().is_none() {
        let is_broken = |rdata: &[u8]| {
            Ds::parse(rdata).is_err()
                && rdata.get(2).is_none_or(|number| supported.contains(Algorithm(*number)))
        };
        let has_digest = parsed.clone().any(|ds| ds.digest_type.length().is_some());
        return match ds.clone().next().is_none() || ds.clone().any(is_broken) {
            true => Entry::Bogus(Bogus::KeyMissing),
            false if has_digest => Entry::Insecure(Insecure::Algorithm),
            false => Entry::Insecure(Insecure::Digest),
        };
    }
    let zone = LowerName::of(&keys.owner());
    let mut left = DIGESTS;
    let accepts = |key: &Dnskey<'_>| names(usable(parsed.clone(), supported), &zone, key, digests, &mut left);
    entry(ZoneKeys::of(keys, supported, accepts, out))
}

/// Keys of a DNSKEY RRset that anchors of its owner name. Without an anchor that is supported the zone is bogus: who configures an anchor
/// wants the zone to be checked.
pub fn entry_by_anchors<'k>(
    anchors: &Anchors<'_>,
    keys: &Rrset<'_>,
    supported: Algorithms,
    digests: &impl Digests,
    out: &'k mut [u8],
) -> Entry<'k> {
    let zone = LowerName::of(&keys.owner());
    let of_zone = anchors.of_zone(zone.as_wire());
    let parsed = of_zone.clone().filter_map(|data| match data {
        AnchorData::Ds(rdata) => Ds::parse(rdata).ok(),
        AnchorData::Dnskey(_) => None,
    });
    let mut left = DIGESTS;
    let accepts = |key: &Dnskey<'_>| {
        of_zone.clone().any(|data| data == AnchorData::Dnskey(key.rdata))
            || names(usable(parsed.clone(), supported), &zone, key, digests, &mut left)
    };
    entry(ZoneKeys::of(keys, supported, accepts, out))
}

/// DS records that count: those whose algorithms are both supported. SHA-1 counts only if none of them has another digest (RFC 4509
/// section 3).
fn usable<'d>(
    ds: impl Iterator<Item = Ds<'d>> + Clone,
    supported: Algorithms,
) -> impl Iterator<Item = Ds<'d>> + Clone {
    let known = ds.filter(move |ds| supported.contains(ds.algorithm) && ds.digest_type.length().is_some());
    let has_better = known.clone().any(|ds| ds.digest_type != DigestType::SHA1);
    known.filter(move |ds| !has_better || ds.digest_type != DigestType::SHA1)
}

/// True if one of the DS records names the key. Each digest costs one of those that are left.
fn names<'d>(
    ds: impl Iterator<Item = Ds<'d>>,
    zone: &LowerName,
    key: &Dnskey<'_>,
    digests: &impl Digests,
    left: &mut u32,
) -> bool {
    let tag = key.key_tag();
    let mut alike = ds.filter(|ds| (ds.key_tag, ds.algorithm) == (tag, key.algorithm));
    alike.any(|ds| {
        let is_paid = *left > 0;
        *left = left.saturating_sub(1);
        is_paid && ds_matches(&ds, zone, key, digests)
    })
}

fn entry(keys: Result<ZoneKeys<'_>, ZoneKeysError>) -> Entry<'_> {
    match keys {
        Ok(keys) => Entry::Keys(keys),
        Err(ZoneKeysError::TooMany | ZoneKeysError::Buffer) => Entry::Bogus(Bogus::TooMuchWork),
        Err(ZoneKeysError::Unusable(Some(KeyError::NoZoneKey))) => Entry::Bogus(Bogus::NoZoneKey),
        Err(ZoneKeysError::Unusable(Some(KeyError::Revoked))) => Entry::Bogus(Bogus::KeyRevoked),
        Err(ZoneKeysError::Unusable(_)) => Entry::Bogus(Bogus::KeyMissing),
    }
}
