//! Layout of a cache entry: a head of one cache line, the offsets of the TTLs, and the message without its OPT record.
//!
//! ```text
//!  0  length u32 | kind u8 | visits u8 | marks u8 | query flags u8
//!  8  hash u64
//! 16  stored u64 (ns)
//! 24  expires u64 (ns)
//! 32  failure recheck, or born, u64 (ns)
//! 40  valid for u32 | valid for DNS64 u32
//! 48  group u32 | type u16 | class u16
//! 56  TTLs u16 | octets of the message u16 | extended DNS error u16 | reason u8 | failures u8
//! 64  offsets of the TTLs in the message, u16 each; then the message
//! ```

use crate::base::time::Instant;
use crate::reasons::AnswerReason;
use wire::{Class, EdeCode, Type};

/// Octets of the head of an entry.
pub const HEAD: usize = 64;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// The reply of an upstream, or the fact that there was none.
    Reply = 0,
    /// The answer for clients with DNS64, synthesized from two lookups.
    Synthesis = 1,
}

/// Mark: the entry has been refreshed once.
pub const REFRESHED: u8 = 1;
/// Mark: no upstream replied, so there is no message.
pub const SILENT: u8 = 2;
/// Mark: the message is a negative answer (RFC 2308) or a failure.
pub const NEGATIVE: u8 = 4;
/// Mark: the message is a resolution failure (RFC 9520).
pub const FAILURE: u8 = 8;

/// Value for no extended DNS error.
const NO_ERROR: u16 = u16::MAX;

/// Value for no reason: the message is no complete answer for clients with DNS64.
const NO_REASON: u8 = u8::MAX;

/// Key of an entry. Type and class do not lie side by side, as in a [`Question`](crate::message::question::Question).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CacheKey<'a> {
    /// Keyed hash: the upper half of all that follows, the lower half as `name_buckets.rs` says.
    pub hash: u64,
    /// Name in wire form, any letter case.
    pub name: &'a [u8],
    /// Number of the group of upstreams that was asked.
    pub group: u32,
    /// Type.
    pub qtype: Type,
    /// Query flags that change the answer: CD, AD, DO.
    pub query_flags: u8,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Class.
    pub class: Class,
}

/// Metadata of an entry beside its key and its message.
#[derive(Clone, Copy, Debug)]
pub struct EntryMeta {
    /// Time of storing: TTLs count down from here.
    pub stored: Instant,
    /// Expiry: from then on the entry is not fresh.
    pub expires: Instant,
    /// For a synthesis, the time at which the lookup that expires first was stored; else the time of storing.
    pub born: Instant,
    /// Any of [`SILENT`], [`NEGATIVE`], [`FAILURE`].
    pub marks: u8,
    /// Generation of the settings under which the message answers its question unchanged; 0: none. For a synthesis, which only clients
    /// with DNS64 get, the packed numbers of the addresses that it leaves out.
    pub valid_for: u32,
    /// Generation of the settings under which the message answers clients with DNS64 unchanged; 0: none.
    pub valid_for_dns64: u32,
    /// INFO-CODE of the extended DNS error.
    pub ede: Option<EdeCode>,
    /// Reason of the answer for clients with DNS64.
    pub reason: Option<AnswerReason>,
    /// Failures in a row. For a synthesis, the place of its prefix among the general ones, which matters if clients have different ones.
    pub failures: u8,
}

/// Octets that an entry takes, a multiple of `ring::UNIT`.
pub fn octets(ttls: usize, message: usize) -> usize {
    (HEAD + 2 * ttls + message).next_multiple_of(super::ring::UNIT)
}

/// A message to store: its header, and the rest from the question on.
#[derive(Clone, Copy)]
pub struct EntryMessage<'a> {
    /// The header.
    pub header: [u8; wire::HEADER],
    /// The octets behind the header.
    pub rest: &'a [u8],
}

impl<'a> EntryMessage<'a> {
    /// Splits a message.
    pub fn of(message: &'a [u8]) -> Option<EntryMessage<'a>> {
        let (header, rest) = message.split_first_chunk()?;
        Some(EntryMessage { header: *header, rest })
    }

    /// Octets of the message.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a message with its header is never empty")]
    pub fn len(&self) -> usize {
        wire::HEADER + self.rest.len()
    }
}

/// Writes an entry. `ttls` are offsets in the message.
pub fn write(room: &mut [u8], key: &CacheKey<'_>, meta: &EntryMeta, ttls: &[u16], message: EntryMessage<'_>) {
    // The ring has written the length.
    room[4..8].copy_from_slice(&[key.kind as u8, 0, meta.marks, key.query_flags]);
    room[8..16].copy_from_slice(&key.hash.to_le_bytes());
    room[16..24].copy_from_slice(&meta.stored.0.to_le_bytes());
    room[24..32].copy_from_slice(&meta.expires.0.to_le_bytes());
    room[32..40].copy_from_slice(&meta.born.0.to_le_bytes());
    room[40..44].copy_from_slice(&meta.valid_for.to_le_bytes());
    room[44..48].copy_from_slice(&meta.valid_for_dns64.to_le_bytes());
    room[48..52].copy_from_slice(&key.group.to_le_bytes());
    room[52..54].copy_from_slice(&key.qtype.0.to_le_bytes());
    room[54..56].copy_from_slice(&key.class.0.to_le_bytes());
    room[56..58].copy_from_slice(&(ttls.len() as u16).to_le_bytes());
    room[58..60].copy_from_slice(&(message.len() as u16).to_le_bytes());
    room[60..62].copy_from_slice(&meta.ede.unwrap_or(NO_ERROR).to_le_bytes());
    room[62] = meta.reason.map_or(NO_REASON, |reason| reason as u8);
    room[63] = meta.failures;
    let (offsets, rest) = room[HEAD..].split_at_mut(2 * ttls.len());
    for (place, offset) in offsets.as_chunks_mut::<2>().0.iter_mut().zip(ttls) {
        *place = offset.to_le_bytes();
    }
    rest[..wire::HEADER].copy_from_slice(&message.header);
    rest[wire::HEADER..message.len()].copy_from_slice(message.rest);
}

/// Reader of an entry. The octets begin with a head; octets behind the entry are ignored.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    head: &'a [u8; HEAD],
    rest: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads the entry at the beginning of some octets.
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

    /// Hash of the key.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.u64(8)
    }

    /// Number of recent uses, up to 3.
    #[inline]
    pub fn visits(&self) -> u8 {
        self.head[5]
    }

    /// Kind of the entry.
    #[inline]
    pub fn kind(&self) -> EntryKind {
        if self.head[4] == EntryKind::Synthesis as u8 { EntryKind::Synthesis } else { EntryKind::Reply }
    }

    /// True if all of `marks` are set.
    #[inline]
    pub fn is(&self, marks: u8) -> bool {
        self.head[6] & marks == marks
    }

    /// Query flags of the key.
    #[inline]
    pub fn query_flags(&self) -> u8 {
        self.head[7]
    }

    /// Time of storing.
    #[inline]
    pub fn stored(&self) -> Instant {
        Instant(self.u64(16))
    }

    /// Expiry.
    #[inline]
    pub fn expires(&self) -> Instant {
        Instant(self.u64(24))
    }

    /// For a synthesis, the time at which the lookup that expires first was stored; else the time of storing. Valid for a fresh entry.
    #[inline]
    pub fn born(&self) -> Instant {
        Instant(self.u64(32))
    }

    /// End of the failure recheck timer (RFC 8767 section 5): until then no upstream is asked again. Valid for an expired entry.
    #[inline]
    pub fn failure_recheck(&self) -> Instant {
        Instant(self.u64(32))
    }

    /// Generation of the settings under which the message answers its question unchanged; of a failure, under which a check has shown it to be a
    /// bogus answer.
    #[inline]
    pub fn valid_for(&self) -> u32 {
        self.u32(40)
    }

    /// Generation of the settings under which the message answers clients with DNS64 unchanged.
    #[inline]
    pub fn valid_for_dns64(&self) -> u32 {
        self.u32(44)
    }

    /// Number of the group of upstreams that was asked.
    pub fn group(&self) -> u32 {
        self.u32(48)
    }

    /// Type.
    #[inline]
    pub fn qtype(&self) -> Type {
        Type(self.u16(52))
    }

    /// INFO-CODE of the extended DNS error.
    #[inline]
    pub fn ede(&self) -> Option<EdeCode> {
        Some(self.u16(60)).filter(|&code| code != NO_ERROR)
    }

    /// Reason of the answer for clients with DNS64.
    #[inline]
    pub fn reason(&self) -> Option<AnswerReason> {
        AnswerReason::from_octet(self.head[62])
    }

    /// Packed numbers of the addresses that a synthesis leaves out. It stands in the place of `valid_for`, which a synthesis does not have.
    pub fn omitted(&self) -> u32 {
        self.u32(40)
    }

    /// Place of the prefix of a synthesis among the general ones. It stands in the place of `failures`, which a synthesis does not have.
    #[inline]
    pub fn prefix(&self) -> usize {
        usize::from(self.head[63])
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

    /// Message without its OPT record.
    #[inline]
    pub fn message(&self) -> &'a [u8] {
        let start = 2 * usize::from(self.u16(56));
        self.rest.get(start..start + usize::from(self.u16(58))).unwrap_or_default()
    }

    /// Name of the question in wire form, in the stored letter case.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        let message = self.message();
        let question = message.get(wire::HEADER..).unwrap_or_default();
        &question[..wire::name_len(question).unwrap_or(0)]
    }

    /// True if the entry has this key.
    #[inline]
    pub fn fits(&self, key: &CacheKey<'_>) -> bool {
        let question = self.message().get(wire::HEADER..).and_then(|rest| rest.get(..key.name.len()));
        self.hash() == key.hash
            && self.head[4] == key.kind as u8
            && self.query_flags() == key.query_flags
            && self.group() == key.group
            && self.qtype() == key.qtype
            && self.u16(54) == key.class.0
            // The zero octet at its end is the only length of zero in a name, so no name is the beginning of a longer one.
            && question.is_some_and(|name| wire::eq_ignore_case(name, key.name))
    }
}

/// Counts a use, up to three: a higher count has no effect, and the cache line need not be written back.
#[inline]
pub fn visit(entry: &mut [u8]) {
    if entry[5] < 3 {
        entry[5] += 1;
    }
}

/// Sets the number of recent uses.
#[inline]
pub fn set_visits(entry: &mut [u8], visits: u8) {
    entry[5] = visits;
}

/// Sets marks.
#[inline]
pub fn mark(entry: &mut [u8], marks: u8) {
    entry[6] |= marks;
}

/// Starts the failure recheck timer, which ends at `again`, and counts one more failure.
pub fn set_failure_recheck(entry: &mut [u8], again: Instant) {
    entry[32..40].copy_from_slice(&again.0.to_le_bytes());
    entry[63] = entry[63].saturating_add(1);
}

/// Marks an entry as valid under a generation of the settings. With `reason`, it is valid for clients with DNS64, for that reason.
pub fn mark_valid(entry: &mut [u8], settings: u32, reason: Option<AnswerReason>) {
    match reason {
        None => entry[40..44].copy_from_slice(&settings.to_le_bytes()),
        Some(reason) => {
            entry[44..48].copy_from_slice(&settings.to_le_bytes());
            entry[62] = reason as u8;
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
        let meta = EntryMeta {
            stored: Instant(5),
            expires: Instant(1 << 40),
            born: Instant(6),
            marks: NEGATIVE,
            valid_for: 3,
            valid_for_dns64: 4,
            ede: Some(29),
            reason: Some(AnswerReason::NoData),
            failures: 2,
        };
        let mut room = vec![0xee; octets(2, message.len())];
        write(&mut room, &key, &meta, &[27, 31], EntryMessage::of(message).unwrap());
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
        assert_eq!((entry.reason(), entry.failures(), entry.visits()), (Some(AnswerReason::NoData), 2, 0));
        assert!(entry.is(NEGATIVE) && !entry.is(FAILURE) && !entry.is(NEGATIVE | SILENT));
        assert_eq!(entry.ttls().collect::<Vec<_>>(), [27, 31]);
        assert_eq!((entry.message(), entry.name()), (&message[..], &b"\x03www\x02xy\x00"[..]));
        for _ in 0..9 {
            visit(&mut room);
        }
        set_failure_recheck(&mut room, Instant(77));
        mark(&mut room, REFRESHED);
        mark_valid(&mut room, 8, None);
        mark_valid(&mut room, 9, Some(AnswerReason::RealAaaa));
        let entry = Entry::new(&room).unwrap();
        assert_eq!((entry.visits(), entry.failure_recheck(), entry.failures()), (3, Instant(77), 3));
        assert_eq!((entry.valid_for(), entry.valid_for_dns64()), (8, 9));
        assert_eq!(entry.reason(), Some(AnswerReason::RealAaaa));
        assert!(entry.is(REFRESHED | NEGATIVE));
    }
}
