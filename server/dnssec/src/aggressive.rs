//! Aggressive use of verified denials (RFC 8198): the proof that a name does not exist, found among the records of earlier messages.
//!
//! Only names are denied, and no types of a name: load balancers are known that deny all types of a name as soon as it lacks one, so what
//! one question was told about types is no answer to another question. The records of a delegation or a DNAME say nothing about names below
//! it, those with Opt-Out nothing about unsigned delegations; neither makes a proof (RFC 5155 section 6, RFC 6840 section 4.1).

use crate::digest::Digests;
use crate::fields::{Nsec, Nsec3};
use crate::limits::SEARCH_BLOCKS;
use crate::name::{LowerName, labels};
use crate::nsec::NsecSpans;
use crate::nsec3::{Hashing, Nsec3Spans, Place, Wildcard, hash, hashed_owner, price};

/// NSEC or NSEC3 record of a zone that was verified, and has not expired.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'k> {
    /// Owner.
    pub owner: LowerName,
    /// RDATA.
    pub rdata: &'k [u8],
    /// Its signatures, in a form that the caller knows.
    pub signatures: &'k [u8],
    /// Time for which it holds, in seconds.
    pub ttl: u32,
}

/// Records of one zone in the order of their owners (RFC 4034 section 6.1).
pub trait KeptRecords<'k> {
    /// Last NSEC record whose owner is not behind a name.
    fn nsec(&self, name: &LowerName) -> Option<Kept<'k>>;
    /// Last NSEC3 record whose owner is not behind a name; if there is none, the last of all, which leads back to the first.
    fn nsec3(&self, name: &LowerName) -> Option<Kept<'k>>;
}

/// Records that prove that a name does not exist: those of the closest encloser, if the zone has hashes, of the name, and of the wildcard
/// that would stand for it.
#[derive(Clone, Copy, Debug)]
pub struct NoName<'k> {
    records: [Option<Kept<'k>>; 3],
}

impl<'k> NoName<'k> {
    /// The records, each once.
    pub fn records(&self) -> impl Iterator<Item = &Kept<'k>> {
        let records = &self.records;
        let is_first = |at: usize, kept: &Kept<'_>| {
            records[..at].iter().flatten().all(|other| other.owner != kept.owner)
        };
        let all = records.iter().enumerate();
        all.filter_map(move |(at, kept)| kept.as_ref().filter(|kept| is_first(at, kept)))
    }
}

/// Proof that a name of a zone does not exist, by NSEC records.
pub fn by_nsec<'k>(zone: &LowerName, name: &LowerName, records: &impl KeptRecords<'k>) -> Option<NoName<'k>> {
    let mut spans = NsecSpans::new(*zone);
    let mut add = |kept: &Kept<'k>| spans.add(kept.owner, Nsec::parse(kept.rdata).ok()?).then_some(());
    let of_name = records.nsec(name)?;
    add(&of_name)?;
    let wildcard = spans.wildcard_for(name.as_wire())?;
    let of_wildcard = records.nsec(&wildcard)?;
    if of_wildcard.owner != of_name.owner {
        spans.add(of_wildcard.owner, Nsec::parse(of_wildcard.rdata).ok()?);
    }
    let found = NoName { records: [Some(of_name), Some(of_wildcard), None] };
    spans.proves_no_name(name.as_wire()).then_some(found)
}

/// Proof that a name of a zone does not exist, by NSEC3 records. It is not searched if that costs more than [`SEARCH_BLOCKS`] blocks of
/// SHA-1, and the hashes that check it are paid for.
pub fn by_nsec3<'k, D: Digests>(
    zone: &LowerName,
    name: &LowerName,
    records: &impl KeptRecords<'k>,
    hashing: &mut Hashing<'_, D>,
) -> Option<NoName<'k>> {
    let parameters = Nsec3::parse(records.nsec3(zone)?.rdata).ok()?.parameters;
    let (apex, depth) = (labels(zone.as_wire()), labels(name.as_wire()));
    let suffixes = || (apex..=depth).rev().filter_map(|count| name.suffix(count));
    // That of the wildcard costs no more than that of the name.
    let longest = price(name.as_wire().len() + 2, &parameters);
    let blocks = suffixes().map(|suffix| price(suffix.as_wire().len(), &parameters)).sum::<u32>() + longest;
    if parameters.iterations > hashing.iterations || blocks > SEARCH_BLOCKS {
        return None;
    }
    // Record at or before the hash of a name, and true if it is that of the name.
    let find = |name: &LowerName| {
        let owner = hashed_owner(&hash(name.as_wire(), &parameters, hashing.digests), zone)?;
        let kept = records.nsec3(&owner)?;
        Some((kept, kept.owner == owner))
    };
    let mut next_closer = None;
    for suffix in suffixes() {
        let (kept, exists) = find(&suffix)?;
        if !exists {
            next_closer = Some(kept);
            continue;
        }
        let (of_wildcard, _) = find(&LowerName::wildcard_of(suffix.as_wire())?)?;
        let found = NoName { records: [Some(kept), Some(next_closer?), Some(of_wildcard)] };
        return proves(zone, name, &found, hashing).then_some(found);
    }
    None
}

/// True if NSEC3 records prove that a name does not exist.
fn proves<D: Digests>(
    zone: &LowerName,
    name: &LowerName,
    found: &NoName<'_>,
    hashing: &mut Hashing<'_, D>,
) -> bool {
    let mut spans = Nsec3Spans::new(*zone);
    let mut is_complete = true;
    for kept in found.records() {
        let added = Nsec3::parse(kept.rdata).is_ok_and(|nsec3| spans.add(&kept.owner, nsec3).is_ok());
        is_complete &= added;
    }
    let place = spans.place(name, hashing);
    is_complete
        && matches!(place, Ok(Some(Place::Missing(encloser, Wildcard::Missing))) if !encloser.is_opt_out)
}
