//! TTL rules of cached messages: lifetime (RFC 2308), stale data (RFC 8767), prefetch.

use crate::base::time::{Instant, Span};
use crate::cache::entry::{Entry, FAILURE, NEGATIVE, REFRESHED};
use crate::message::cname_chain::Chain;
use crate::message::reply::negative_ttl;
use wire::{EdeCode, Message, Rcode, Record, Section, Type, ede, header};

/// Settings of `[cache]`, except its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Smallest TTL, in seconds.
    pub min_ttl_secs: u32,
    /// Largest TTL, in seconds.
    pub max_ttl_secs: u32,
    /// Largest lifetime of a negative answer, in seconds.
    pub max_negative_ttl_secs: u32,
    /// Time after expiry for which data may still be served when the upstreams fail (RFC 8767); zero: never.
    pub stale: Span,
    /// True if an entry that is in use is refreshed before it expires.
    pub prefetch: bool,
}

impl Default for Caching {
    fn default() -> Caching {
        Caching {
            min_ttl_secs: 0,
            max_ttl_secs: 86_400,
            max_negative_ttl_secs: 3_600,
            stale: Span::from_secs(86_400),
            prefetch: true,
        }
    }
}

/// Lifetime of a message in the cache, in seconds, and true if the message is a negative answer. None: it is not cached.
pub(crate) fn lifetime(message: &Message<'_>, chain: &Chain<'_>, caching: &Caching) -> Option<(u32, bool)> {
    let (mut ttl, mut is_answered) = (u32::MAX, false);
    for record in message.records(Section::Answer).filter(|record| chain.keeps(record)) {
        ttl = ttl.min(record.ttl);
        is_answered |= message.qtype() == Type::ANY || chain.ends_in(&record, message.qtype());
    }
    if !is_answered || message.rcode() != Rcode::NOERROR {
        ttl = match negative_ttl(message, chain) {
            // RFC 2308 section 5: the smaller of the SOA's TTL and its MINIMUM.
            Some(negative) => ttl.min(negative).min(caching.max_negative_ttl_secs),
            // An alias that the upstream did not chase.
            None if chain.is_alias() && message.rcode() == Rcode::NOERROR => ttl,
            // RFC 2308 section 5: a negative answer without SOA is not cached.
            None => return None,
        };
    }
    let ttl = ttl.clamp(caching.min_ttl_secs, caching.max_ttl_secs.max(caching.min_ttl_secs));
    (ttl > 0).then_some((ttl, !is_answered))
}

/// Age of a cached message, from which the TTLs in an answer follow.
#[derive(Clone, Copy)]
pub(crate) enum Age {
    /// A fresh message: the seconds since it was stored, and the largest TTL of its SOA record, in seconds.
    Seconds(u32, u32),
    /// An expired message.
    Stale,
}

impl Age {
    /// Age of an entry that has not expired. The SOA record of a negative answer says how long the answer may be cached, so its
    /// TTL ends with the entry (RFC 2308 sections 5 and 6), even if it was longer than MINIMUM or than the settings allow.
    #[inline]
    pub fn of(entry: &Entry<'_>, now: Instant) -> Age {
        let age = seconds(now - entry.stored());
        let rest = || seconds(entry.expires() - entry.stored()).saturating_sub(age);
        Age::Seconds(age, if entry.is(NEGATIVE) { rest() } else { u32::MAX })
    }
}

#[inline]
fn seconds(span: Span) -> u32 {
    (span.0 / 1_000_000_000).min(u64::from(u32::MAX)) as u32
}

/// TTL of expired data in an answer (RFC 8767 section 4).
const STALE_TTL: u32 = 30;

/// Writes the TTLs of a cached message that was copied to a frame.
#[inline]
pub(crate) fn write_ttls(entry: &Entry<'_>, frame: &mut [u8], age: Age) {
    for at in entry.ttls() {
        // The TTL stands behind type and class.
        let record = at.checked_sub(4).and_then(|at| frame.get_mut(at..));
        if let Some([high, low, _, _, ttl @ ..]) = record.and_then(|rest| rest.first_chunk_mut::<8>()) {
            let rtype = Type(u16::from_be_bytes([*high, *low]));
            let given = match age {
                Age::Seconds(age, most) => {
                    let left = u32::from_be_bytes(*ttl).saturating_sub(age);
                    if rtype == Type::SOA { left.min(most) } else { left }
                }
                Age::Stale => STALE_TTL,
            };
            *ttl = given.to_be_bytes();
        }
    }
}

/// Extended DNS error for an answer with expired data (RFC 8914 sections 4.4 and 4.20).
pub(crate) fn stale_ede(entry: &Entry<'_>) -> EdeCode {
    let is_nxdomain = header::flags(entry.message()).rcode() == Rcode::NXDOMAIN;
    if is_nxdomain { ede::STALE_NXDOMAIN } else { ede::STALE }
}

/// Writes a cached message as an upstream would send it now. Returns its octets.
pub(crate) fn write_cached_message(
    entry: &Entry<'_>,
    frame: &mut [u8],
    age: Age,
    ede: Option<EdeCode>,
) -> usize {
    let message = entry.message();
    let length = message.len();
    frame[..length].copy_from_slice(message);
    write_ttls(entry, frame, age);
    if ede.is_none() {
        return length;
    }
    match wire::write_opt(&mut frame[length..], 512, 0, 0, false, ede) {
        Some(octets) => {
            let others = header::arcount(frame);
            header::set_arcount(frame, others + 1);
            length + octets
        }
        None => length,
    }
}

impl Caching {
    /// Range of allowed TTLs.
    fn range(&self) -> core::ops::RangeInclusive<u32> {
        self.min_ttl_secs..=self.max_ttl_secs.max(self.min_ttl_secs)
    }

    /// True if some TTL is smaller or larger than allowed, or has its highest bit set and so stands for 0 (RFC 2181 section 8):
    /// counted down as a number, it would be many years.
    pub(crate) fn is_out_of_range(&self, message: &Message<'_>) -> bool {
        let range = self.range();
        let is_negative = |record: &Record<'_>| message.bytes()[record.ttl_start()] & 0x80 != 0;
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        sections.into_iter().any(|section| {
            let mut records = message.records(section).filter(|record| record.rtype != Type::OPT);
            records.any(|record| !range.contains(&record.ttl) || is_negative(&record))
        })
    }

    /// Clamps all TTLs to the allowed range, in a copy of the message.
    pub(crate) fn clamp(&self, message: &Message<'_>, copy: &mut [u8]) {
        let range = self.range();
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            for record in message.records(section).filter(|record| record.rtype != Type::OPT) {
                let ttl = record.ttl.clamp(*range.start(), *range.end());
                copy[record.ttl_start()..record.ttl_start() + 4].copy_from_slice(&ttl.to_be_bytes());
            }
        }
    }
}

/// True if an entry is due for prefetch: in the last tenth of its lifetime, and not refreshed yet.
#[inline]
pub(crate) fn is_due(entry: &Entry<'_>, now: Instant) -> bool {
    let life = entry.expires() - entry.born();
    (entry.expires() - now).0.saturating_mul(REFRESH_SHARE) <= life.0
        && life >= REFRESH_LIFE
        && !entry.is(REFRESHED)
        && !entry.is(FAILURE)
}

/// Time from which an entry is due for prefetch; none if its lifetime is too short for that.
pub(crate) fn due_at(entry: &Entry<'_>) -> Option<Instant> {
    let life = entry.expires() - entry.born();
    (life >= REFRESH_LIFE).then(|| Instant(entry.expires().0 - life.0 / REFRESH_SHARE))
}

/// Data are refreshed when a query comes in the last tenth of their lifetime.
const REFRESH_SHARE: u64 = 10;

/// Least lifetime of data that are refreshed. For shorter ones a refresh costs as much as the upstream queries that it saves.
const REFRESH_LIFE: Span = Span::from_secs(10);
