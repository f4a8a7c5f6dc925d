//! Cache commands of an operator: listing the entries of a name, and flushing.

use crate::base::time::Instant;
use crate::cache::entry::{Entry, EntryKind, FAILURE, NEGATIVE, SILENT};
use crate::cache::ttl::{Age, write_cached_message};
use crate::engine::Engine;
use crate::message::question::QueryFlags;
use core::ops::Range;
use wire::Type;

/// Buckets of the cache that one step of [`Engine::flush_below`] checks: at most 4,096 entries, about 1 ms if each of them has to
/// be fetched from memory.
const CHECKED_BUCKETS: usize = 256;
/// Buckets of the cache that one step of [`Engine::flush_all`] clears without reading their entries: 1 MiB, about 0.2 ms. A cache
/// of 10 GiB takes 1,024 steps.
const CLEARED_BUCKETS: usize = 8192;

/// One entry of the cache, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedEntry {
    /// Type of the question.
    pub qtype: Type,
    /// True for a synthesized answer, which is for all clients without special rules.
    pub is_synthesized: bool,
    /// True for a negative answer or a failure.
    pub is_negative: bool,
    /// True for a failure; the message, if there is one, has the RCODE.
    pub is_failure: bool,
    /// Flags of the question: CD, AD, DO. RD is always set.
    pub bits: QuestionBits,
    /// Forwarders that were asked.
    pub forwarders: AskedForwarders,
    /// Seconds until it expires; negative if it has expired.
    pub expires_secs: i64,
    /// Octets that the entry takes.
    pub octets: usize,
    /// The message as it would be served now. None: no upstream replied.
    pub message: Option<Vec<u8>>,
}

/// Group of forwarders that a cached reply came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedForwarders {
    /// The default forwarders.
    Default,
    /// The forwarders of this zone (wire form).
    Zone(Box<[u8]>),
    /// Forwarders that a reload has replaced: the entry is no longer used.
    Replaced,
}

/// Flags of a question that change its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionBits {
    /// Checking disabled.
    pub cd: bool,
    /// The requestor understands AD.
    pub ad: bool,
    /// DNSSEC OK.
    pub dnssec_ok: bool,
}

impl Engine {
    /// Lists the entries of a name (wire form), of one type or of all. Answers synthesized under earlier settings are left out, as
    /// they are no longer served.
    pub fn cached_entries(&self, name: &[u8], qtype: Option<Type>, now: Instant) -> Vec<CachedEntry> {
        let is_match = |entry: &Entry<'_>| {
            wire::eq_ignore_case(entry.name(), name)
                && qtype.is_none_or(|qtype| entry.qtype() == qtype)
                && (entry.kind() == EntryKind::Reply
                    || entry.valid_for_dns64() == self.resolver.cache.generation)
        };
        let entries = &self.resolver.cache.entries;
        let buckets = entries.buckets_of_name(self.resolver.key.hash(name)).into_iter();
        let found = buckets.flat_map(|bucket| entries.entries(bucket)).filter(is_match);
        found.map(|entry| cached_entry(&entry, self.asked_forwarders(&entry), now)).collect()
    }

    /// The forwarders that an entry came from.
    fn asked_forwarders(&self, entry: &Entry<'_>) -> AskedForwarders {
        match self.resolver.upstream.servers.zone_of(entry.group()) {
            Some((_, true)) => AskedForwarders::Default,
            Some((zone, false)) => AskedForwarders::Zone(zone.into()),
            None => AskedForwarders::Replaced,
        }
    }

    /// Flushes the cache, one step per call, as the memory of all buckets takes too long to write at once. The first step is 0.
    /// Returns the number of removed entries, and the next step, if there is one.
    pub fn flush_all(&mut self, step: usize) -> (usize, Option<usize>) {
        if step == 0 {
            self.bump_flush_epoch();
            self.forget_denials(&[0]);
        }
        self.end_packet_cache_entries();
        let (buckets, next) = self.buckets_of_step(step, CLEARED_BUCKETS);
        (self.resolver.cache.entries.clear_buckets(buckets), next)
    }

    /// Flushes the entries of a name (wire form). Returns the number of removed entries.
    pub fn flush(&mut self, name: &[u8]) -> usize {
        self.bump_flush_epoch();
        self.forget_denials(name);
        self.end_packet_cache_entries();
        let entries = &mut self.resolver.cache.entries;
        let buckets = entries.buckets_of_name(self.resolver.key.hash(name)).into_iter();
        buckets
            .map(|bucket| entries.remove_in(bucket, |entry| wire::eq_ignore_case(entry.name(), name)))
            .sum()
    }

    /// Flushes the entries of a name and of all names below it, one step per call: they may lie in any bucket, and a walk over all
    /// buckets at once would take too long. The first step is 0. Returns the number of removed entries, and the next step, if
    /// there is one.
    pub fn flush_below(&mut self, name: &[u8], step: usize) -> (usize, Option<usize>) {
        if step == 0 {
            self.bump_flush_epoch();
            self.forget_denials(name);
        }
        // In each step, as a packet cache may have got an entry of a later one meanwhile.
        self.end_packet_cache_entries();
        let (buckets, next) = self.buckets_of_step(step, CHECKED_BUCKETS);
        let entries = &mut self.resolver.cache.entries;
        let remove = |bucket| entries.remove_in(bucket, |entry| wire::is_at_or_below(entry.name(), name));
        (buckets.map(remove).sum(), next)
    }

    /// Buckets of one step of a walk over all of them, and the next step, if there is one.
    fn buckets_of_step(&self, step: usize, length: usize) -> (Range<usize>, Option<usize>) {
        let buckets = self.resolver.cache.entries.buckets();
        let from = step.saturating_mul(length).min(buckets);
        let to = (from + length).min(buckets);
        (from..to, (to < buckets).then(|| step + 1))
    }

    /// Forgets the proofs that may deny a name, or one below it.
    fn forget_denials(&mut self, name: &[u8]) {
        if let Some(validator) = &mut self.resolver.validator {
            validator.ranges.forget(name);
        }
    }

    /// Begins a new flush epoch: replies to queries sent before a flush are not cached, whatever their name is, as they may hold
    /// the data that were flushed.
    fn bump_flush_epoch(&mut self) {
        self.resolver.upstream.outbound_queries.flush_epoch =
            self.resolver.upstream.outbound_queries.flush_epoch.wrapping_add(1);
    }
}

/// Makes the displayed form of an entry.
fn cached_entry(entry: &Entry<'_>, forwarders: AskedForwarders, now: Instant) -> CachedEntry {
    let has = |flag| entry.query_flags() & QueryFlags::default().with(flag, true).kept() != 0;
    let mut frame = vec![0; entry.message().len() + wire::OPT_LEN + wire::EDE_LEN];
    let age = if entry.expires() > now { Age::of(entry, now) } else { Age::Stale };
    let length = write_cached_message(entry, &mut frame, age, entry.ede());
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
        forwarders,
        expires_secs: left.div_euclid(1_000_000_000),
        octets: entry.length(),
        message: (!entry.is(SILENT)).then_some(frame),
    }
}
