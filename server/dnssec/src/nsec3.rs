//! Proofs by NSEC3 records (RFC 5155 section 8, RFC 6840 section 4, RFC 9276).
//!
//! An NSEC3 record says which types the name with its hash has, and that no name of the zone has a hash between its own and the next one,
//! other than unsigned delegations if it is marked so (Opt-Out). Hashes cost work that the zone decides about, so it is paid for before
//! the first hash of a proof.

use crate::budget::{Budget, MessageBudget};
use crate::digest::Digests;
use crate::fields::{NSEC3_HASH, Nsec3, Nsec3Param};
use crate::limits::PROOFS;
use crate::name::{LowerName, labels, parent, suffix};
use crate::nsec::{NXNAME, says_all_below};
use crate::reason::Bogus;
use crate::type_bitmap::TypeBitmap;
use wire::MAX_NAME;

/// Iterations above which no hash is computed and the answer fails, with extended error 27 (RFC 9276 section 3.2).
pub const MAX_ITERATIONS: u16 = 500;

type Hash = [u8; NSEC3_HASH];

/// Means to compute hashes: the digest, what may be spent, and the iterations up to which hashes are computed.
pub struct Hashing<'h, D> {
    /// Digests.
    pub digests: &'h D,
    /// Iterations above which proofs count as insecure.
    pub iterations: u16,
    /// Left of what the message may cost.
    pub message: &'h mut MessageBudget,
    /// Left of what the resolution may cost.
    pub resolution: &'h mut Budget,
}

/// NSEC3 record of a zone, with the hash in its owner.
#[derive(Clone, Copy, Debug)]
struct Span<'a> {
    owner: Hash,
    next: Hash,
    is_opt_out: bool,
    types: TypeBitmap<'a>,
}

impl Span<'_> {
    /// True if the hash lies between those of the record. The last record of a zone leads back to the first (RFC 5155 section 3.1.7).
    fn covers(&self, hash: &Hash) -> bool {
        if self.owner < self.next {
            self.owner < *hash && *hash < self.next
        } else {
            self.owner < *hash || *hash < self.next
        }
    }
}

/// NSEC3 records of one zone in a message.
#[derive(Clone, Copy, Debug)]
pub struct Nsec3Spans<'a> {
    zone: LowerName,
    parameters: Option<Nsec3Param<'a>>,
    spans: [Option<Span<'a>>; PROOFS],
}

/// Proof about the closest encloser of a name that does not exist (RFC 5155 section 8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encloser {
    /// Labels of the closest encloser.
    pub labels: usize,
    /// True if the span of the next closer name may have unsigned delegations.
    pub is_opt_out: bool,
}

/// Knowledge of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The name exists with these types, which may be none.
    Exists(TypeBitmap<'a>),
    /// The name does not exist; of the wildcard that stands for it these types are known, or that it does not exist, or nothing.
    Missing(Encloser, Wildcard<'a>),
}

/// Knowledge of a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcard<'a> {
    /// It exists with these types.
    Exists(TypeBitmap<'a>),
    /// It does not exist.
    Missing,
    /// There is no record about it.
    Unknown,
}

impl<'a> Nsec3Spans<'a> {
    /// No records of this zone.
    pub fn new(zone: LowerName) -> Nsec3Spans<'a> {
        Nsec3Spans { zone, parameters: None, spans: [None; PROOFS] }
    }

    /// Adds a verified record. It is left out if the owner is not a hash directly below the apex (CVE-2026-10723), or if its algorithm (RFC
    /// 5155 section 8.1) or its flags (section 8.2) are unknown.
    ///
    /// # Errors
    ///
    /// `Denial`: the parameters are not those of the records before it, which RFC 5155 section 8.2 lets be bogus. `TooMuchWork`: there is
    /// no room.
    pub fn add(&mut self, owner: &LowerName, nsec3: Nsec3<'a>) -> Result<(), Bogus> {
        let parameters = nsec3.parameters;
        let (Some(hash), Ok(next)) = (self.hash_in(owner), Hash::try_from(nsec3.next)) else { return Ok(()) };
        if parameters.hash != Nsec3::SHA1 || parameters.flags > 1 {
            return Ok(());
        }
        if self.parameters.is_some_and(|first| !first.same_hash(&parameters)) {
            return Err(Bogus::Denial);
        }
        let place = self.spans.iter_mut().find(|place| place.is_none()).ok_or(Bogus::TooMuchWork)?;
        *place = Some(Span { owner: hash, next, is_opt_out: nsec3.is_opt_out(), types: nsec3.types });
        self.parameters = Some(parameters);
        Ok(())
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_none()
    }

    /// Iterations of the records; 0 without records.
    pub fn iterations(&self) -> u16 {
        self.parameters.map_or(0, |parameters| parameters.iterations)
    }

    fn hash_in(&self, owner: &LowerName) -> Option<Hash> {
        let owner = owner.as_wire();
        let label = owner.get(1..1 + usize::from(*owner.first()?))?;
        if parent(owner)? != self.zone.as_wire() { None } else { from_base32(label) }
    }

    fn matching(&self, hash: &Hash) -> Option<&Span<'a>> {
        self.spans.iter().flatten().find(|span| span.owner == *hash)
    }

    /// True and false: the hash is covered, by a record with Opt-Out or without. Of several records, one with Opt-Out decides.
    fn covered(&self, hash: &Hash) -> Option<bool> {
        let covering = self.spans.iter().flatten().filter(|span| span.covers(hash));
        covering.map(|span| span.is_opt_out).reduce(|a, b| a || b)
    }

    /// Finds out what is known of a name of the zone. `None`: the records do not tell.
    ///
    /// # Errors
    ///
    /// `TooMuchWork`: the hashes cost more than message or resolution have left; none was computed.
    pub fn place<D: Digests>(
        &self,
        name: &LowerName,
        hashing: &mut Hashing<'_, D>,
    ) -> Result<Option<Place<'a>>, Bogus> {
        let (name, zone) = (name.as_wire(), self.zone.as_wire());
        let Some(parameters) = self.parameters.filter(|_| wire::is_at_or_below(name, zone)) else {
            return Ok(None);
        };
        let (depth, apex) = (labels(name), labels(zone));
        let suffixes = (apex..=depth).rev().filter_map(|count| suffix(name, count));
        let price: u32 = suffixes.clone().map(|suffix| price(suffix.len(), &parameters)).sum();
        // The wildcard has a label of one octet in place of those that the name has above the closest encloser.
        if !hashing.pay(price.saturating_add(self::price(name.len(), &parameters))) {
            return Err(Bogus::TooMuchWork);
        }
        let mut next_closer = None;
        for (count, suffix) in (apex..=depth).rev().zip(suffixes) {
            let hash = hash(suffix, &parameters, hashing.digests);
            if let Some(span) = self.matching(&hash) {
                return Ok(match next_closer {
                    None => Some(Place::Exists(span.types)),
                    Some(next_closer) => self.missing(span, suffix, count, &next_closer, hashing.digests),
                });
            }
            next_closer = Some(hash);
        }
        Ok(None)
    }

    /// A name whose closest encloser has this record.
    fn missing(
        &self,
        encloser: &Span<'a>,
        name: &[u8],
        labels: usize,
        next_closer: &Hash,
        digests: &impl Digests,
    ) -> Option<Place<'a>> {
        // RFC 5155 section 8.3 and RFC 6840 section 4.1: the record of a delegation or a DNAME says nothing about names below it.
        if !says_all_below(encloser.types) || encloser.types.contains(NXNAME) {
            return None;
        }
        let is_opt_out = self.covered(next_closer)?;
        let wildcard = match LowerName::wildcard_of(name) {
            // No name is as long as this wildcard would be.
            None => Wildcard::Missing,
            Some(wildcard) => {
                let hash = hash(wildcard.as_wire(), &self.parameters?, digests);
                match self.matching(&hash) {
                    Some(span) => Wildcard::Exists(span.types),
                    None if self.covered(&hash).is_some() => Wildcard::Missing,
                    None => Wildcard::Unknown,
                }
            }
        };
        Some(Place::Missing(Encloser { labels, is_opt_out }, wildcard))
    }

    /// Finds out whether a name exists that is closer to this one than its last `labels` labels (RFC 5155 section 8.8). `None`: one may
    /// exist; else true if the span may have unsigned delegations.
    ///
    /// # Errors
    ///
    /// `TooMuchWork`: the hash costs more than message or resolution have left; it was not computed.
    pub fn no_closer<D: Digests>(
        &self,
        name: &LowerName,
        labels: usize,
        hashing: &mut Hashing<'_, D>,
    ) -> Result<Option<bool>, Bogus> {
        let name = name.as_wire();
        let next_closer =
            suffix(name, labels + 1).filter(|_| wire::is_at_or_below(name, self.zone.as_wire()));
        let (Some(next_closer), Some(parameters)) = (next_closer, self.parameters) else { return Ok(None) };
        if !hashing.pay(price(next_closer.len(), &parameters)) {
            return Err(Bogus::TooMuchWork);
        }
        Ok(self.covered(&hash(next_closer, &parameters, hashing.digests)))
    }
}

impl<D> Hashing<'_, D> {
    fn pay(&mut self, blocks: u32) -> bool {
        self.message.hash(self.resolution, blocks)
    }
}

/// Blocks of SHA-1 for the hash of a name of this length.
pub(crate) fn price(name: usize, parameters: &Nsec3Param<'_>) -> u32 {
    // FIPS 180-4 section 5.1.1: an octet and the length in eight octets follow the input, in blocks of 64 octets.
    let blocks = |octets: usize| (octets + 9).div_ceil(64) as u32;
    let salt = parameters.salt.len();
    blocks(name + salt) + u32::from(parameters.iterations) * blocks(NSEC3_HASH + salt)
}

/// Hash of a name in lower case (RFC 5155 section 5).
pub fn hash(name: &[u8], parameters: &Nsec3Param<'_>, digests: &impl Digests) -> Hash {
    let mut input = [0; MAX_NAME + u8::MAX as usize];
    let salt = parameters.salt;
    let mut digest = |octets: &[u8]| {
        let length = octets.len() + salt.len();
        let room = input.get_mut(..length).unwrap_or_default();
        if let Some((start, end)) = room.split_at_mut_checked(octets.len()) {
            start.copy_from_slice(octets);
            end.copy_from_slice(salt);
        }
        digests.sha1(room)
    };
    let mut hash = digest(name);
    for _ in 0..parameters.iterations {
        hash = digest(&hash);
    }
    hash
}

/// First 32 bits of the distance between the hash in an owner and the next one. `None`: the owner has no hash.
pub fn span_width(owner: &LowerName, nsec3: &Nsec3<'_>) -> Option<u32> {
    let owner = owner.as_wire();
    let hash = from_base32(owner.get(1..1 + usize::from(*owner.first()?))?)?;
    let first = |hash: &[u8]| hash.first_chunk::<4>().map(|octets| u32::from_be_bytes(*octets));
    // The only record of a zone leads back to itself.
    if hash == *nsec3.next { Some(u32::MAX) } else { Some(first(nsec3.next)?.wrapping_sub(first(&hash)?)) }
}

/// Owner of the record of a hash in a zone, in lower case (RFC 5155 section 3). `None`: it would be too long.
pub(crate) fn hashed_owner(hash: &Hash, zone: &LowerName) -> Option<LowerName> {
    let mut owner = [0; MAX_NAME];
    owner[0] = 32;
    for (octets, digits) in hash.as_chunks::<5>().0.iter().zip(owner[1..33].as_chunks_mut::<8>().0) {
        let bits = octets.iter().fold(0u64, |bits, &octet| bits << 8 | u64::from(octet));
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdefghijklmnopqrstuv"[(bits >> (5 * place)) as usize & 31];
        }
    }
    let length = 33 + zone.as_wire().len();
    owner.get_mut(33..length)?.copy_from_slice(zone.as_wire());
    LowerName::from_wire(&owner[..length])
}

/// Hash in base32 with the alphabet "extended hex" (RFC 4648 section 7), in either letter case.
fn from_base32(label: &[u8]) -> Option<Hash> {
    let label: &[u8; 32] = label.try_into().ok()?;
    let mut hash = [0; NSEC3_HASH];
    for (digits, octets) in label.as_chunks::<8>().0.iter().zip(hash.as_chunks_mut::<5>().0) {
        let mut bits: u64 = 0;
        for digit in digits {
            let value = match digit.to_ascii_lowercase() {
                digit @ b'0'..=b'9' => digit - b'0',
                letter @ b'a'..=b'v' => letter - b'a' + 10,
                _ => return None,
            };
            bits = bits << 5 | u64::from(value);
        }
        octets.copy_from_slice(&bits.to_be_bytes()[3..]);
    }
    Some(hash)
}
