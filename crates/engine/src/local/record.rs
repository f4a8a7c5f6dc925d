//! A record of local data, and the SOA of a local denial.

use crate::dns64::config::Arpa;
use wire::header::Flags;
use wire::{Builder, Class, Full, Message, Name, Section, Type};

/// One record in class IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRecord {
    /// Its name in wire form, lower case.
    pub owner: Box<[u8]>,
    /// Its type.
    pub rtype: Type,
    /// Its TTL in seconds.
    pub ttl: u32,
    /// Its data; names in it are not compressed.
    pub rdata: Box<[u8]>,
}

impl LocalRecord {
    /// Whether it can be read when it stands in a message.
    pub fn is_sound(&self) -> bool {
        let written = || {
            // The question for all that the root has; the record, whose owner takes two octets if that is a pointer.
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

/// Writes the records of a name that are of the type asked, or that there are none. Whether there are.
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
        // A part is better than nothing for a name with hundreds of addresses.
        if builder.record(Section::Answer, owner, *rtype, Class::IN, *ttl, rdata).is_err() {
            break;
        }
        answered = true;
    }
    if !answered {
        // As long as the longest of its records, so that the TTL of a synthesis is that of its A records.
        let ttl = records.iter().map(|record| record.ttl).max().unwrap_or(BLOCKED_TTL);
        deny(builder, owner, ttl, arpa)?;
    }
    Ok(answered)
}

/// The SOA that lets a client keep that there is nothing (RFC 2308 section 3).
pub(crate) fn deny(builder: &mut Builder<'_>, apex: Name<'_>, ttl: u32, arpa: &Arpa) -> Result<(), Full> {
    let mut room = [0; crate::local::record::SOA];
    builder.record(Section::Authority, apex, Type::SOA, Class::IN, ttl, soa(arpa, ttl, &mut room))
}

/// How long clients may keep that a name is blocked, in seconds: what is unblocked can be reached a minute later.
pub(crate) const BLOCKED_TTL: u32 = 60;

/// Serial, refresh, retry and expire of the zones, which nobody transfers.
const SOA_TIMERS: [u32; 4] = [1, 86_400, 7200, 604_800];

/// Octets of the SOA's RDATA: two names and five numbers.
pub const SOA: usize = 2 * 255 + 5 * 4;

/// RDATA of the SOA of our zones, with this MINIMUM.
pub fn soa<'r>(arpa: &Arpa, minimum: u32, room: &'r mut [u8; SOA]) -> &'r [u8] {
    let mut at = 0;
    for name in [&arpa.server, &arpa.contact] {
        room[at..at + name.len()].copy_from_slice(name);
        at += name.len();
    }
    for timer in SOA_TIMERS.into_iter().chain([minimum]) {
        room[at..at + 4].copy_from_slice(&timer.to_be_bytes());
        at += 4;
    }
    &room[..at]
}
