//! What an operator asks of the cache: what it holds of a name, and to forget.

use crate::base::time::Instant;
use crate::cache::entry::{Entry, EntryKind, FAILURE, NEGATIVE, SILENT};
use crate::cache::ttl::{Age, materialize};
use crate::engine::Engine;
use crate::message::question::QueryFlags;
use wire::Type;

/// Buckets of the cache that one step of [`Engine::flush_below`] looks at: at most 4,096 entries, about 1 ms if each of them
/// has to be fetched from memory.
const FLUSHED_BUCKETS: usize = 256;

/// One thing that the cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedEntry {
    /// Type of the question.
    pub qtype: Type,
    /// Synthesized, and kept for all clients that no rule is about.
    pub is_synthesized: bool,
    /// It says that there is nothing, or that asking failed.
    pub is_negative: bool,
    /// Asking failed; the message, if there is one, says how.
    pub is_failure: bool,
    /// QuestionBits of the question: RD and, each only if it was set, CD, AD, DO.
    pub bits: QuestionBits,
    /// Number of the group of upstreams that was asked.
    pub group: u32,
    /// Seconds until it expires; negative when that is past.
    pub expires_secs: i64,
    /// Octets that it takes.
    pub octets: usize,
    /// The message as it would be given now. None: no upstream replied.
    pub message: Option<Vec<u8>>,
}

/// QuestionBits of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionBits {
    /// Checking disabled.
    pub cd: bool,
    /// The asker understands AD.
    pub ad: bool,
    /// DNSSEC OK.
    pub dnssec_ok: bool,
}

impl Engine {
    /// What the cache holds of a name (wire form), of one type or of all; not what was synthesized under other settings, which
    /// nobody gets any more.
    pub fn cached_entries(&self, name: &[u8], qtype: Option<Type>, now: Instant) -> Vec<CachedEntry> {
        let is_meant = |entry: &Entry<'_>| {
            wire::eq_ignore_case(entry.name(), name)
                && qtype.is_none_or(|qtype| entry.qtype() == qtype)
                && (entry.kind() == EntryKind::Reply || entry.valid_for_dns64() == self.cache.generation)
        };
        let bucket = self.cache.entries.bucket_of(self.key.hash(name));
        self.cache.entries.entries(bucket).filter(is_meant).map(|entry| cached_entry(&entry, now)).collect()
    }

    /// Forgets all that the cache holds. Returns how many entries that were.
    pub fn flush_all(&mut self) -> usize {
        self.bump_flush_epoch();
        let all = self.cache.entries.len();
        self.cache.entries.clear();
        all
    }

    /// Forgets what the cache holds of a name (wire form). Returns how many entries that were.
    pub fn flush(&mut self, name: &[u8]) -> usize {
        self.bump_flush_epoch();
        let bucket = self.cache.entries.bucket_of(self.key.hash(name));
        self.cache.entries.remove_in(bucket, |entry| wire::eq_ignore_case(entry.name(), name))
    }

    /// A step of forgetting what the cache holds of a name and of all names below it: they may lie anywhere, and to look
    /// at all of them at once would take too long. Returns how many entries that were, and the next step, if there is one;
    /// the first one is 0.
    pub fn flush_below(&mut self, name: &[u8], step: usize) -> (usize, Option<usize>) {
        if step == 0 {
            self.bump_flush_epoch();
        }
        let buckets = self.cache.entries.buckets();
        let from = step.saturating_mul(FLUSHED_BUCKETS).min(buckets);
        let to = (from + FLUSHED_BUCKETS).min(buckets);
        let removed = (from..to)
            .map(|bucket| {
                self.cache.entries.remove_in(bucket, |entry| wire::is_at_or_below(entry.name(), name))
            })
            .sum();
        (removed, (to < buckets).then(|| step + 1))
    }

    /// What was asked before comes too late to be kept, whatever name it is about: it may be what is to be forgotten.
    fn bump_flush_epoch(&mut self) {
        self.upstream.flights.flush_epoch = self.upstream.flights.flush_epoch.wrapping_add(1);
    }
}

fn cached_entry(entry: &Entry<'_>, now: Instant) -> CachedEntry {
    let has = |wish| entry.query_flags() & QueryFlags::default().with(wish, true).kept() != 0;
    let mut frame = vec![0; entry.message().len() + wire::OPT_LEN + wire::EDE_LEN];
    let age = if entry.expires() > now { Age::of(entry, now) } else { Age::Stale };
    let length = materialize(entry, &mut frame, age, entry.ede());
    frame.truncate(length);
    let left = entry.expires().0 as i64 - now.0 as i64;
    CachedEntry {
        qtype: entry.qtype(),
        is_synthesized: entry.kind() == EntryKind::Synthesis,
        is_negative: entry.is(NEGATIVE),
        is_failure: entry.is(FAILURE),
        bits: QuestionBits {
            cd: has(QueryFlags::CD),
            ad: has(QueryFlags::AD),
            dnssec_ok: has(QueryFlags::DO),
        },
        group: entry.group(),
        expires_secs: left.div_euclid(1_000_000_000),
        octets: entry.length(),
        message: (!entry.is(SILENT)).then_some(frame),
    }
}
