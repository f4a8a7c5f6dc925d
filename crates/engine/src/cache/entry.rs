//! One entry as octets: a head of one cache line, where the TTLs stand, and the message without its OPT record.
//!
//! ```text
//!  0  length u32 | kind u8 | visits u8 | marks u8 | wishes u8
//!  8  hash u64
//! 16  stored u64 (ns)
//! 24  expires u64 (ns)
//! 32  again, or born, u64 (ns)
//! 40  approved u32 | approved for DNS64 u32
//! 48  group u32 | type u16 | class u16
//! 56  TTLs u16 | octets of the message u16 | extended error u16 | reason u8 | failures u8
//! 64  offsets of the TTLs in the message, u16 each; then the message
//! ```

use crate::base::time::Instant;
use wire::{Class, EdeCode, Type};

/// Octets of the head.
pub const HEAD: usize = 64;

/// What kind of entry it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// What an upstream said, or that it said nothing.
    Reply = 0,
    /// What clients with DNS64 get, synthesized out of two legs.
    Synthesis = 1,
}

/// Refreshed once already.
pub const REFRESHED: u8 = 1;
/// No upstream replied: there is no message.
pub const SILENT: u8 = 2;
/// The message says that there is nothing (RFC 2308), or that something failed.
pub const NEGATIVE: u8 = 4;
/// The message is a failure of the upstream (RFC 9520).
pub const FAILURE: u8 = 8;

/// No extended error.
const NO_ERROR: u16 = u16::MAX;

/// What makes two entries the same.
#[derive(Clone, Copy)]
pub struct CacheKey<'a> {
    /// Keyed hash: the upper half of all that follows, the lower half of the name alone.
    pub hash: u64,
    /// Name in wire form, any letter case.
    pub name: &'a [u8],
    /// Type.
    pub qtype: Type,
    /// Class.
    pub class: Class,
    /// Bits of the question that change the answer: CD, AD, DO.
    pub query_flags: u8,
    /// Leg or answer.
    pub kind: EntryKind,
    /// The upstreams that were asked, by their number.
    pub group: u32,
}

/// What is known of an entry beside its key and its message.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// When it was stored: TTLs count from here.
    pub stored: Instant,
    /// When it may no longer be used as fresh.
    pub expires: Instant,
    /// When that of what it was made of was stored which expires first.
    pub born: Instant,
    /// Of [`SILENT`], [`NEGATIVE`], [`FAILURE`].
    pub marks: u8,
    /// The settings under which it is the answer to its question as it stands; 0: none.
    pub valid_for: u32,
    /// The same for clients with DNS64.
    pub valid_for_dns64: u32,
    /// Info code of an extended error.
    pub ede: Option<EdeCode>,
    /// The counter that an answer to a client with DNS64 counts.
    pub reason: u8,
    /// Failures in a row.
    pub failures: u8,
}

/// Octets that an entry takes, a multiple of the unit of `ring.rs`.
pub fn octets(ttls: usize, message: usize) -> usize {
    (HEAD + 2 * ttls + message).next_multiple_of(super::ring::UNIT)
}

/// A message to keep: its header, and what is behind it from the question on.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    /// The header.
    pub header: [u8; wire::HEADER],
    /// All that follows it.
    pub rest: &'a [u8],
}

impl<'a> Body<'a> {
    /// A message as it is.
    pub fn of(message: &'a [u8]) -> Option<Body<'a>> {
        let (header, rest) = message.split_first_chunk()?;
        Some(Body { header: *header, rest })
    }

    /// Octets of the message.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a message with its header is never empty")]
    pub fn len(&self) -> usize {
        wire::HEADER + self.rest.len()
    }
}

/// Writes an entry. `ttls` are offsets in the message.
pub fn write(room: &mut [u8], key: &CacheKey<'_>, facts: &Facts, ttls: &[u16], message: Body<'_>) {
    // The length is the ring's.
    room[4..8].copy_from_slice(&[key.kind as u8, 0, facts.marks, key.query_flags]);
    room[8..16].copy_from_slice(&key.hash.to_le_bytes());
    room[16..24].copy_from_slice(&facts.stored.0.to_le_bytes());
    room[24..32].copy_from_slice(&facts.expires.0.to_le_bytes());
    room[32..40].copy_from_slice(&facts.born.0.to_le_bytes());
    room[40..44].copy_from_slice(&facts.valid_for.to_le_bytes());
    room[44..48].copy_from_slice(&facts.valid_for_dns64.to_le_bytes());
    room[48..52].copy_from_slice(&key.group.to_le_bytes());
    room[52..54].copy_from_slice(&key.qtype.0.to_le_bytes());
    room[54..56].copy_from_slice(&key.class.0.to_le_bytes());
    room[56..58].copy_from_slice(&(ttls.len() as u16).to_le_bytes());
    room[58..60].copy_from_slice(&(message.len() as u16).to_le_bytes());
    room[60..62].copy_from_slice(&facts.ede.unwrap_or(NO_ERROR).to_le_bytes());
    room[62] = facts.reason;
    room[63] = facts.failures;
    let (offsets, rest) = room[HEAD..].split_at_mut(2 * ttls.len());
    for (place, offset) in offsets.as_chunks_mut::<2>().0.iter_mut().zip(ttls) {
        *place = offset.to_le_bytes();
    }
    rest[..wire::HEADER].copy_from_slice(&message.header);
    rest[wire::HEADER..message.len()].copy_from_slice(message.rest);
}

/// An entry to read. The octets begin with a head; what is behind the entry is not looked at.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    head: &'a [u8; HEAD],
    rest: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The entry at the beginning of some octets.
    #[inline]
    pub fn new(octets: &'a [u8]) -> Option<Entry<'a>> {
        let (head, rest) = octets.split_first_chunk::<HEAD>()?;
        Some(Entry { head, rest })
    }

    #[inline]
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.head[at], self.head[at + 1]])
    }

    #[inline]
    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    #[inline]
    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    /// Octets of the whole entry.
    #[inline]
    pub fn length(&self) -> usize {
        self.u32(0) as usize
    }

    /// Its hash.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.u64(8)
    }

    /// How often it was used lately, up to a small number.
    #[inline]
    pub fn visits(&self) -> u8 {
        self.head[5]
    }

    /// Leg or answer.
    #[inline]
    pub fn kind(&self) -> EntryKind {
        if self.head[4] == EntryKind::Synthesis as u8 { EntryKind::Synthesis } else { EntryKind::Reply }
    }

    /// Whether all of some marks are set.
    #[inline]
    pub fn is(&self, marks: u8) -> bool {
        self.head[6] & marks == marks
    }

    /// The bits of its question.
    #[inline]
    pub fn query_flags(&self) -> u8 {
        self.head[7]
    }

    /// When it was stored.
    #[inline]
    pub fn stored(&self) -> Instant {
        Instant(self.u64(16))
    }

    /// When it is no longer fresh.
    #[inline]
    pub fn expires(&self) -> Instant {
        Instant(self.u64(24))
    }

    /// When that of what it was made of was stored which expires first; of an entry that is fresh.
    #[inline]
    pub fn born(&self) -> Instant {
        Instant(self.u64(32))
    }

    /// Until when nobody is asked again, as that has just failed; of an entry that has expired.
    #[inline]
    pub fn failure_recheck(&self) -> Instant {
        Instant(self.u64(32))
    }

    /// The settings under which it is the answer as it stands.
    #[inline]
    pub fn valid_for(&self) -> u32 {
        self.u32(40)
    }

    /// The same for clients with DNS64.
    #[inline]
    pub fn valid_for_dns64(&self) -> u32 {
        self.u32(44)
    }

    /// The upstreams that were asked, by their number.
    pub fn group(&self) -> u32 {
        self.u32(48)
    }

    /// Type.
    #[inline]
    pub fn qtype(&self) -> Type {
        Type(self.u16(52))
    }

    /// Info code of the extended error.
    #[inline]
    pub fn ede(&self) -> Option<EdeCode> {
        Some(self.u16(60)).filter(|&code| code != NO_ERROR)
    }

    /// The counter that an answer to a client with DNS64 counts.
    #[inline]
    pub fn reason(&self) -> u8 {
        self.head[62]
    }

    /// Failures in a row.
    #[inline]
    pub fn failures(&self) -> u8 {
        self.head[63]
    }

    /// Offsets of the TTLs in the message.
    #[inline]
    pub fn ttls(&self) -> impl Iterator<Item = usize> + 'a {
        let offsets = self.rest.get(..2 * usize::from(self.u16(56))).unwrap_or_default();
        offsets.as_chunks::<2>().0.iter().map(|offset| usize::from(u16::from_le_bytes(*offset)))
    }

    /// The message.
    #[inline]
    pub fn message(&self) -> &'a [u8] {
        let start = 2 * usize::from(self.u16(56));
        self.rest.get(start..start + usize::from(self.u16(58))).unwrap_or_default()
    }

    /// The name of its question in wire form, as it was stored.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        let message = self.message();
        let question = message.get(wire::HEADER..).unwrap_or_default();
        &question[..wire::name_len(question).unwrap_or(0)]
    }

    /// Whether it is what a key asks for.
    #[inline]
    pub fn fits(&self, key: &CacheKey<'_>) -> bool {
        let question = self.message().get(wire::HEADER..).and_then(|rest| rest.get(..key.name.len()));
        self.hash() == key.hash
            && self.head[4] == key.kind as u8
            && self.query_flags() == key.query_flags
            && self.group() == key.group
            && self.qtype() == key.qtype
            && self.u16(54) == key.class.0
            // A name ends with its only zero octet of length, so no longer name begins with it.
            && question.is_some_and(|name| wire::eq_ignore_case(name, key.name))
    }
}

/// Counts a visit, up to three: more says nothing new, and the line stays clean.
#[inline]
pub fn visit(entry: &mut [u8]) {
    if entry[5] < 3 {
        entry[5] += 1;
    }
}

/// Sets how often an entry was used lately.
#[inline]
pub fn set_visits(entry: &mut [u8], visits: u8) {
    entry[5] = visits;
}

/// Sets marks.
#[inline]
pub fn mark(entry: &mut [u8], marks: u8) {
    entry[6] |= marks;
}

/// Sets the extended error.
pub fn set_ede(entry: &mut [u8], code: EdeCode) {
    entry[60..62].copy_from_slice(&code.to_le_bytes());
}

/// Notes until when nobody is asked again, and one more failure.
pub fn set_failure_recheck(entry: &mut [u8], again: Instant) {
    entry[32..40].copy_from_slice(&again.0.to_le_bytes());
    entry[63] = entry[63].saturating_add(1);
}

/// Approves an entry under these settings: as it stands, or for clients with DNS64 who count `reason`.
pub fn mark_valid(entry: &mut [u8], settings: u32, reason: Option<u8>) {
    match reason {
        None => entry[40..44].copy_from_slice(&settings.to_le_bytes()),
        Some(reason) => {
            entry[44..48].copy_from_slice(&settings.to_le_bytes());
            entry[62] = reason;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_it_was_written() {
        let key = CacheKey {
            hash: 0x1122_3344_5566_7788,
            name: b"\x03wWw\x02xY\x00",
            qtype: Type::AAAA,
            class: Class::IN,
            query_flags: 8,
            kind: EntryKind::Synthesis,
            group: 70_000,
        };
        let message = b"0123456789ab\x03www\x02xy\x00\0\x1c\0\x01rest";
        let facts = Facts {
            stored: Instant(5),
            expires: Instant(1 << 40),
            born: Instant(6),
            marks: NEGATIVE,
            valid_for: 3,
            valid_for_dns64: 4,
            ede: Some(29),
            reason: 17,
            failures: 2,
        };
        let mut room = vec![0xee; octets(2, message.len())];
        write(&mut room, &key, &facts, &[27, 31], Body::of(message).unwrap());
        let entry = Entry::new(&room).unwrap();
        assert!(entry.fits(&key));
        for other in [
            CacheKey { hash: 1, ..key },
            CacheKey { name: b"\x03www\x02xz\x00", ..key },
            CacheKey { name: b"\x03www\x00", ..key },
            CacheKey { qtype: Type::A, ..key },
            CacheKey { class: Class::ANY, ..key },
            CacheKey { query_flags: 0, ..key },
            CacheKey { kind: EntryKind::Reply, ..key },
            CacheKey { group: 1, ..key },
        ] {
            assert!(!entry.fits(&other));
        }
        assert_eq!(
            (entry.stored(), entry.expires(), entry.failure_recheck()),
            (Instant(5), Instant(1 << 40), Instant(6))
        );
        assert_eq!((entry.valid_for(), entry.valid_for_dns64(), entry.ede()), (3, 4, Some(29)));
        assert_eq!((entry.reason(), entry.failures(), entry.visits()), (17, 2, 0));
        assert!(entry.is(NEGATIVE) && !entry.is(FAILURE) && !entry.is(NEGATIVE | SILENT));
        assert_eq!(entry.ttls().collect::<Vec<_>>(), [27, 31]);
        assert_eq!((entry.message(), entry.name()), (&message[..], &b"\x03www\x02xy\x00"[..]));
        for _ in 0..9 {
            visit(&mut room);
        }
        set_failure_recheck(&mut room, Instant(77));
        mark(&mut room, REFRESHED);
        mark_valid(&mut room, 8, None);
        mark_valid(&mut room, 9, Some(1));
        let entry = Entry::new(&room).unwrap();
        assert_eq!((entry.visits(), entry.failure_recheck(), entry.failures()), (3, Instant(77), 3));
        assert_eq!((entry.valid_for(), entry.valid_for_dns64(), entry.reason()), (8, 9, 1));
        assert!(entry.is(REFRESHED | NEGATIVE));
    }
}
