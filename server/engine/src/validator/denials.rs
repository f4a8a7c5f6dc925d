//! Replies that deny a name with the proofs of replies to other questions (RFC 8198 section 5.1), as an upstream would have sent them.

use crate::validator::budgets::Payer;
use crate::validator::ranges::signatures;
use crate::validator::zones::KnownZones;
use crate::validator::{Moment, Validator};
use dnssec::aggressive::{Kept, NoName, by_nsec, by_nsec3};
use dnssec::chain::{Closest, closest, responsible};
use dnssec::nsec3::Hashing;
use dnssec::{LowerName, MessageBudget, Sentinel};
use wire::header::Flags;
use wire::{Builder, Class, Message, Name, Rcode, Section, Type};

/// Reply that denies a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DenialReply {
    /// Octets of the reply.
    pub length: usize,
    /// Zone that denies the name.
    pub zone: LowerName,
    /// Type of its proofs: NSEC or NSEC3.
    pub proof: Type,
}

impl Validator {
    /// Writes the reply to a question of class IN for a group of upstreams, if its name is proven not to exist. The deepest zone that is known
    /// above the name must be secure and deny it by itself: a proof of a zone above says nothing below a delegation. None: the upstreams have
    /// to be asked.
    pub fn deny(
        &mut self,
        (group, question): (u32, &[u8]),
        payer: Payer,
        moment: Moment,
        frame: &mut [u8],
    ) -> Option<DenialReply> {
        let Validator { config: Some(config), zones, budgets, ranges, .. } = self else { return None };
        if !config.aggressive_nsec || ranges.is_empty() {
            return None;
        }
        let (name, [high, low, ..]) = question.split_last_chunk::<4>()?;
        let (name, qtype) = (LowerName::from_wire(name)?, Type(u16::from_be_bytes([*high, *low])));
        // The reply says which keys are trusted, not whether the name exists (RFC 8509).
        if Sentinel::of(name.as_wire()).is_some() {
            return None;
        }
        let zones = KnownZones { table: zones, overlay: None, now: moment.now };
        let target = responsible(&name, qtype);
        let zone = config.with_anchors(|anchors| match closest(&zones, &anchors, &target, moment.unix) {
            Closest::Secure(zone) => Some(zone.apex),
            Closest::Ask(_) | Closest::Insecure(_) | Closest::Bogus(_) => None,
        })?;
        let ranges = ranges.of_zone(group, zone, moment.now);
        let soa = ranges.soa()?;
        let (found, proof) = match by_nsec(&zone, &name, &ranges) {
            Some(found) => (found, Type::NSEC),
            None => {
                let mut hashing = Hashing {
                    digests: &config.digests,
                    iterations: config.nsec3_iterations,
                    message: &mut MessageBudget::new(),
                    resolution: budgets.of(payer),
                };
                (by_nsec3(&zone, &name, &ranges, &mut hashing)?, Type::NSEC3)
            }
        };
        ranges.note_use(Type::SOA, &zone);
        for kept in found.records() {
            ranges.note_use(proof, &kept.owner);
        }
        let length = write(question, &soa, &found, proof, frame)?;
        Some(DenialReply { length, zone, proof })
    }
}

/// Writes a denial with its SOA record and its proofs, all with the TTL of the one that ends first. Returns its octets. None: there is no room.
fn write(
    question: &[u8],
    soa: &Kept<'_>,
    found: &NoName<'_>,
    proof: Type,
    frame: &mut [u8],
) -> Option<usize> {
    let ttl = found.records().map(|kept| kept.ttl).fold(soa.ttl, u32::min);
    let limit = frame.len();
    let flags = Flags::AD.with_rcode(Rcode::NXDOMAIN).with(Flags::QR);
    let mut builder = Builder::new(frame, limit, 0, flags, question)?;
    let proofs = found.records().map(|kept| (proof, kept));
    for (rtype, kept) in core::iter::once((Type::SOA, soa)).chain(proofs) {
        let owner = Name::from_wire(kept.owner.as_wire())?;
        builder.record(Section::Authority, owner, rtype, Class::IN, ttl, kept.rdata).ok()?;
        for rdata in signatures(kept) {
            builder.record(Section::Authority, owner, Type::RRSIG, Class::IN, ttl, rdata).ok()?;
        }
    }
    builder.opt(512, 0, 0, false, None).ok()?;
    let length = builder.finish();
    debug_assert!(Message::parse(&frame[..length]).is_ok(), "a reply of our own parses");
    Some(length)
}
