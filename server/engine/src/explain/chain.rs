//! Chain of trust of an explained answer: the zones whose keys were searched, and the replies that were validated (RFC 4035 section 5).
//!
//! The engine has decided already. This file reads from the replies what an operator compares with the zone: key tags, algorithms,
//! digests, and the time of signatures.

use crate::settings::{AnchorRecord, TrustAnchor};
use crate::trace::ZoneState;
use dnssec::{Dnskey, Ds, Rrsig, Status};
use wire::{Message, Record, Section, Type};

/// Zone on the way from a trust anchor to the answer, or a name that may be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name of the zone, in wire form and lower case.
    pub zone: Box<[u8]>,
    /// Result of the search.
    pub state: ZoneState,
    /// Trust anchors of the zone.
    pub anchors: Vec<Reference>,
    /// DS records of the zone, from its parent.
    pub ds: Vec<Reference>,
    /// Signatures of the DS records, or of the records that prove that there are none.
    pub ds_signatures: Vec<Signature>,
    /// Keys of the zone.
    pub keys: Vec<KeyRecord>,
    /// Signatures of the keys.
    pub key_signatures: Vec<Signature>,
}

/// Reference to a key: a DS record, or a trust anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Key tag.
    pub key_tag: u16,
    /// Number of the signature algorithm.
    pub algorithm: u8,
    /// Number of the digest algorithm. None: an anchor that is the key itself.
    pub digest: Option<u8>,
}

/// DNSKEY record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Key tag.
    pub key_tag: u16,
    /// Number of the algorithm.
    pub algorithm: u8,
    /// Flags: 257 for a key signing key, 256 for one that signs the zone alone (RFC 4034 section 2.1.1).
    pub flags: u16,
}

/// RRSIG record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Owner of the records that are signed, in wire form and lower case.
    pub owner: Box<[u8]>,
    /// Type of these records.
    pub covered: Type,
    /// Key tag of the key.
    pub key_tag: u16,
    /// Number of the algorithm.
    pub algorithm: u8,
    /// Zone of the key, in wire form and lower case.
    pub signer: Box<[u8]>,
    /// First second in which it is valid, since 1970 modulo 2^32.
    pub inception: u32,
    /// Last second in which it is valid.
    pub expiration: u32,
}

/// Reply that was validated, or a lookup that failed where validation decides about the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedReply {
    /// QNAME, in wire form and lower case.
    pub name: Box<[u8]>,
    /// QTYPE.
    pub qtype: Type,
    /// The verdict.
    pub status: Status,
    /// Signatures in the reply.
    pub signatures: Vec<Signature>,
}

impl Link {
    /// Number of labels of the name, without the root.
    pub(super) fn labels(&self) -> usize {
        let (mut rest, mut labels) = (&self.zone[..], 0);
        while let Some((&length, after)) = rest.split_first()
            && length > 0
        {
            rest = after.get(usize::from(length)..).unwrap_or_default();
            labels += 1;
        }
        labels
    }

    /// Reads the anchors of a zone, and the replies about its DS records and its keys.
    pub(super) fn of(
        zone: &[u8],
        state: ZoneState,
        anchors: &[TrustAnchor],
        ds: Option<&Vec<u8>>,
        keys: Option<&Vec<u8>>,
    ) -> Link {
        let own = anchors.iter().filter(|anchor| wire::eq_ignore_case(&anchor.zone, zone));
        Link {
            zone: lower_case(zone),
            state,
            anchors: own.filter_map(|anchor| of_anchor(&anchor.record)).collect(),
            ds: read(ds, of_ds),
            ds_signatures: ds.map(|reply| signatures(reply)).unwrap_or_default(),
            keys: read(keys, of_key),
            key_signatures: keys.map(|reply| signatures(reply)).unwrap_or_default(),
        }
    }
}

/// Returns a name in lower case: the letter case of upstream queries is random (`dns0x20.rs`) and means nothing.
pub(super) fn lower_case(name: &[u8]) -> Box<[u8]> {
    let mut name: Box<[u8]> = name.into();
    wire::fold(&mut name);
    name
}

/// Records of an answer that can be read.
fn read<T>(reply: Option<&Vec<u8>>, of: impl Fn(&Record<'_>) -> Option<T>) -> Vec<T> {
    let Some(message) = reply.and_then(|reply| Message::parse(reply).ok()) else { return Vec::new() };
    message.records(Section::Answer).filter_map(|record| of(&record)).collect()
}

fn of_anchor(record: &AnchorRecord) -> Option<Reference> {
    match record {
        AnchorRecord::Ds(rdata) => reference(rdata),
        AnchorRecord::Dnskey(rdata) => {
            let key = Dnskey::parse(rdata).ok()?;
            Some(Reference { key_tag: key.key_tag(), algorithm: key.algorithm.0, digest: None })
        }
    }
}

fn of_ds(record: &Record<'_>) -> Option<Reference> {
    if record.rtype == Type::DS { reference(record.rdata()) } else { None }
}

fn reference(rdata: &[u8]) -> Option<Reference> {
    let Ds { key_tag, algorithm, digest_type, .. } = Ds::parse(rdata).ok()?;
    Some(Reference { key_tag, algorithm: algorithm.0, digest: Some(digest_type.0) })
}

fn of_key(record: &Record<'_>) -> Option<KeyRecord> {
    if record.rtype != Type::DNSKEY {
        return None;
    }
    let key = Dnskey::parse(record.rdata()).ok()?;
    Some(KeyRecord { key_tag: key.key_tag(), algorithm: key.algorithm.0, flags: key.flags })
}

/// Signatures in the answer and in the authority section of a reply.
pub(super) fn signatures(reply: &[u8]) -> Vec<Signature> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    let both = [Section::Answer, Section::Authority];
    let records = both.into_iter().flat_map(|section| message.records(section));
    records.filter(|record| record.rtype == Type::RRSIG).filter_map(|record| of_signature(&record)).collect()
}

fn of_signature(record: &Record<'_>) -> Option<Signature> {
    let mut owner = [0; 255];
    let length = record.owner.write(&mut owner);
    let rrsig = Rrsig::parse(record.rdata()).ok()?;
    Some(Signature {
        owner: lower_case(&owner[..length]),
        covered: rrsig.covered,
        key_tag: rrsig.key_tag,
        algorithm: rrsig.algorithm.0,
        signer: lower_case(rrsig.signer),
        inception: rrsig.inception,
        expiration: rrsig.expiration,
    })
}
