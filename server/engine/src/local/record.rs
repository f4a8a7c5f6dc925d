//! Local records, and the SOA record of a local negative answer.

use crate::dns64::config::Arpa;
use wire::header::Flags;
use wire::{Builder, Class, Full, Message, Name, Section, Type};

/// One record in class IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRecord {
    /// Owner name in wire form, lower case.
    pub owner: Box<[u8]>,
    /// Type.
    pub rtype: Type,
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA; names in it are not compressed.
    pub rdata: Box<[u8]>,
}

impl LocalRecord {
    /// True if a message with this record is well formed.
    pub fn is_sound(&self) -> bool {
        let written = || {
            // The question is the root name with type ANY. The owner takes two octets if it is compressed to a pointer.
            let mut frame = vec![0; wire::HEADER + 5 + self.owner.len().max(2) + 10 + self.rdata.len()];
            let (limit, question) = (frame.len(), [0, 0, 255, 0, 1]);
            let mut builder = Builder::new(&mut frame, limit, 0, Flags(0), &question)?;
            let (owner, LocalRecord { rtype, ttl, rdata, .. }) = (Name::from_wire(&self.owner)?, self);
            builder.record(Section::Answer, owner, *rtype, Class::IN, *ttl, rdata).ok()?;
            let length = builder.finish();
            frame.truncate(length);
            Some(frame)
        };
        written().is_some_and(|message| Message::parse(&message).is_ok())
    }
}

/// Writes the records of a name that have the type asked for, or a negative answer. Returns true if there are such records.
///
/// # Errors
///
/// `Full`: there is no such record, and the message has no room for the SOA record of the negative answer. A record that does not fit
/// is no error: the records before it are the answer, or the negative answer if there are none.
pub(crate) fn answer_records(
    builder: &mut Builder<'_>,
    owner: Name<'_>,
    qtype: Type,
    records: &[LocalRecord],
    arpa: &Arpa,
) -> Result<bool, Full> {
    //= RFC 8482 section 4.1: requirement 53; one RRset is enough for ANY.
    let first = records.first().filter(|_| qtype == Type::ANY).map_or(qtype, |record| record.rtype);
    let is_alias = records.iter().any(|record| record.rtype == Type::CNAME);
    let wanted = if is_alias { Type::CNAME } else { first };
    let mut answered = false;
    for record in records.iter().filter(|record| record.rtype == wanted) {
        let LocalRecord { rtype, ttl, rdata, .. } = record;
        // Part of the RRset is better than no answer for a name with hundreds of addresses.
        if builder.record(Section::Answer, owner, *rtype, Class::IN, *ttl, rdata).is_err() {
            break;
        }
        answered = true;
    }
    if !answered {
        // The longest TTL of its records, so that a synthesis has the TTL of the A records.
        let ttl = records.iter().map(|record| record.ttl).max().unwrap_or(BLOCKED_TTL);
        write_denial(builder, owner, ttl, arpa)?;
    }
    Ok(answered)
}

/// Writes the SOA record with which a client may cache the negative answer (RFC 2308 section 3).
///
/// # Errors
///
/// `Full`: the message has no room for the SOA record. Nothing was written.
pub(crate) fn write_denial(
    builder: &mut Builder<'_>,
    apex: Name<'_>,
    ttl: u32,
    arpa: &Arpa,
) -> Result<(), Full> {
    let mut room = [0; SOA_RDATA];
    builder.record(
        Section::Authority,
        apex,
        Type::SOA,
        Class::IN,
        ttl,
        soa(&arpa.server, &arpa.contact, ttl, &mut room),
    )
}

/// TTL of the answer for a blocked name, in seconds: a name that is no longer blocked is reachable a minute later.
pub(crate) const BLOCKED_TTL: u32 = 60;

/// Serial, refresh, retry and expire of the local zones, which are never transferred.
const SOA_TIMERS: [u32; 4] = [1, 86_400, 7200, 604_800];

/// Octets of the RDATA of an SOA record: two names and five numbers.
pub const SOA_RDATA: usize = 2 * 255 + 5 * 4;

/// Writes the RDATA of the SOA record of a local zone, with these names in wire form and this MINIMUM.
pub fn soa<'r>(server: &[u8], contact: &[u8], minimum: u32, room: &'r mut [u8; SOA_RDATA]) -> &'r [u8] {
    let mut at = 0;
    for name in [server, contact] {
        room[at..at + name.len()].copy_from_slice(name);
        at += name.len();
    }
    for timer in SOA_TIMERS.into_iter().chain([minimum]) {
        room[at..at + 4].copy_from_slice(&timer.to_be_bytes());
        at += 4;
    }
    &room[..at]
}
