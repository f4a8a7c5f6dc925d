//! Message cache: the question that an entry answers, and the part of a reply or a synthesis that is stored.
//!
//! A message is stored under the question that it answers, as it would be forwarded, and answers no other question: records of
//! other names in a reply never become data of those names. Positive answers are fresh for their TTL, negative ones as RFC 2308
//! section 5 says, failures for seconds (RFC 9520 section 3.2). Expired data stay, to be served when the upstreams fail (RFC
//! 8767).

use crate::answer::forward::{ForwardedReply, forward_anew, verbatim_end};
use crate::answer::params::{ResponseParams, unlimited_params};
use crate::base::buffers::FramePool;
use crate::base::name_hash::HashKey;
use crate::base::time::{Instant, Span};
use crate::cache::Cache;
use crate::cache::entry::{
    self, CacheKey, Entry, EntryKind, EntryMessage, EntryMeta, FAILURE, NEGATIVE, REFRESHED, SILENT,
};
use crate::cache::index::Place;
use crate::cache::name_buckets::lower_half;
use crate::cache::ttl::{Caching, is_due, lifetime};
use crate::limits::{MESSAGE, REPLY_RECORDS};
use crate::message::cname_chain::Chain;
use crate::message::question::{QUESTION, QueryFlags, Question};
use crate::message::reply::{ede_to_store, first_ede};
use crate::reasons::AnswerReason;
use wire::header::{self, Flags};
use wire::{Class, EdeCode, Message, Section, Type, ede};

/// Lifetime of the first failure (RFC 9520 section 3.2: at least 1 s).
const FAILURE_SECS: u64 = 1;
/// Failures in a row double the lifetime, at most this many times.
const FAILURE_DOUBLINGS: u8 = 6;
/// Longest lifetime of a failure, in seconds.
pub(crate) const LONGEST_FAILURE_SECS: u64 = 32;
/// After this time without a failure, the next failure counts as the first.
const FAILURE_MEMORY: Span = Span::from_secs(60);

/// The message cache of one worker. It knows no client and no upstream: a group of upstreams is a number.
pub(crate) struct MessageCache {
    /// The entries.
    pub entries: Cache,
    /// Generation of the settings: an answer that was checked under an earlier generation has to be checked again.
    pub generation: u32,
    caching: Caching,
    key: HashKey,
    frames: FramePool,
    /// Offsets of the TTLs of the message that is stored at the moment.
    ttls: Box<[u16; REPLY_RECORDS]>,
}

/// A synthesized answer to store.
pub struct StoredSynthesis<'s> {
    /// The message.
    pub bytes: &'s [u8],
    /// Its reason.
    pub reason: AnswerReason,
    /// Packed numbers of addresses that it leaves out.
    pub omitted: u32,
    /// Place of its prefix among the general ones, if gateways are known. Its TTL is then a limit of the settings, and no time of a reply.
    pub prefix: Option<u8>,
}

impl MessageCache {
    /// Creates a cache of `octets`; 0 turns it off. `key` hashes names as the rest of the engine does.
    pub fn new(octets: usize, caching: Caching, key: HashKey) -> MessageCache {
        let mut entries = Cache::new(octets);
        entries.keep_stale(caching.stale);
        let ttls = Box::new([0; REPLY_RECORDS]);
        MessageCache { entries, generation: 1, caching, key, frames: FramePool::new(MESSAGE), ttls }
    }

    /// Has every answer checked again before it is given. Nothing is flushed.
    pub fn check_again(&mut self) {
        // 0 is no generation.
        self.generation = self.generation.wrapping_add(1).max(1);
    }

    /// Applies other settings. Nothing is flushed: the first query for an entry checks it again.
    pub fn configure(&mut self, caching: Caching) {
        self.entries.keep_stale(caching.stale);
        self.caching = caching;
        self.check_again();
    }

    /// True if the cache is turned off.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.entries.is_off()
    }

    /// Time for which expired data may be used.
    #[inline]
    pub fn stale(&self) -> Span {
        self.caching.stale
    }

    /// True if the cache may answer a question, or store its reply: class IN, and RD is set. A query with RD=0 asks for data
    /// that the upstream already has, and this cache does not know those. Answers for client subnets are not cached: each would
    /// be for one client (RFC 7871 section 7.3.1 says what a cache for them would have to do).
    #[inline]
    pub fn is_cacheable(&self, question: &Question<'_>) -> bool {
        let Question { class, query_flags, subnet, .. } = question;
        !self.is_off()
            && *class == Class::IN
            && query_flags.has(QueryFlags::RD)
            && !query_flags.has_any(QueryFlags::PROBE.with(QueryFlags::OWN, true))
            && subnet.is_none()
    }

    /// Key of the reply to a question, or of the synthesis for it; `group`: the upstreams that its name belongs to.
    #[inline]
    pub fn key<'a>(&self, question: &Question<'a>, qtype: Type, kind: EntryKind, group: u32) -> CacheKey<'a> {
        let query_flags = question.query_flags.kept();
        let rest = u64::from(qtype.0)
            | u64::from(question.class.0) << 16
            | u64::from(query_flags) << 32
            | (kind as u64) << 40
            | u64::from(group) << 48;
        let all = self.key.hash_number(u128::from(rest) << 64 | u128::from(question.hash));
        CacheKey {
            hash: all & !0xffff_ffff | lower_half(question.hash, all, qtype, query_flags),
            name: question.name,
            qtype,
            class: question.class,
            query_flags,
            kind,
            group,
        }
    }

    /// Finds the reply to a question for a type.
    #[inline]
    pub fn find_reply(&self, question: &Question<'_>, qtype: Type, group: u32) -> Option<Place> {
        self.entries.find(&self.key(question, qtype, EntryKind::Reply, group))
    }

    /// True if there is a fresh reply to a question for a type.
    pub fn has_fresh(&self, question: &Question<'_>, qtype: Type, group: u32, now: Instant) -> bool {
        let place = self.find_reply(question, qtype, group);
        place.is_some_and(|place| self.entries.entry(place).expires() > now)
    }

    /// Stores the reply to a question, in which this chain was followed, if it may be cached.
    pub fn store_reply(&mut self, question: &Question<'_>, group: u32, chain: &Chain<'_>, now: Instant) {
        let message = chain.message();
        let Some((lifetime_secs, is_negative)) = lifetime(message, chain, &self.caching) else {
            return self.expire_early(question, group);
        };
        let meta = EntryMeta {
            stored: now,
            expires: now + Span::from_secs(u64::from(lifetime_secs)),
            born: now,
            marks: if is_negative { NEGATIVE } else { 0 },
            valid_for: 0,
            valid_for_dns64: 0,
            ede: first_ede(message),
            reason: None,
            failures: 0,
        };
        self.store_message(question, group, chain, &meta);
    }

    /// Stores a reply as it would be forwarded to a requestor without limits: without OPT, and without records off the chain. Octets of the
    /// reply are stored unchanged only if no name runs through TTLs or other octets that will change.
    /// AD is that of the upstream; for each query that uses the entry, it is decided whether AD is trusted.
    fn store_message(&mut self, question: &Question<'_>, group: u32, chain: &Chain<'_>, meta: &EntryMeta) {
        // The cached synthesis was made of an older A or AAAA reply. It is looked for first: right behind the write of an entry, a read of its
        // whole bucket would wait for that write to leave the processor's store buffer.
        if meta.marks & FAILURE == 0 {
            self.remove_synthesis(question, group);
        }
        let key = self.key(question, question.qtype, EntryKind::Reply, group);
        let message = chain.message();
        let params =
            ResponseParams { flags: Flags::AD, ..unlimited_params(question.query_flags, message.question()) };
        let forwarded = ForwardedReply { message, chain, trusted: true, exclude: None, before: &[] };
        if let Some(end) = verbatim_end(&params, &forwarded)
            && (!message.points_behind_question() || message.has_plain_names())
            && let Some(mut body) = EntryMessage::of(&message.bytes()[..end])
        {
            let secure = message.flags().contains(Flags::AD);
            header::set_flags(&mut body.header, params.flags(message.rcode(), secure));
            let others = message.count(Section::Additional) - usize::from(message.opt_start().is_some());
            header::set_arcount(&mut body.header, others as u16);
            return self.put(&key, meta, message, body);
        }
        let mut frame = self.frames.take();
        let written = forward_anew(&mut frame, &params, &forwarded);
        if !written.truncated
            && written.rcode == message.rcode()
            && let Ok(written) = Message::parse(&frame[..written.len])
            && let Some(body) = without_opt(&written)
        {
            self.put(&key, meta, &written, body);
        } else {
            self.expire_early(question, group);
        }
        self.frames.give(frame);
    }

    /// Removes the reply to a question, and the synthesis that was made of it, as a newer reply may not be cached (RFC 8767 section 4).
    pub fn expire_early(&mut self, question: &Question<'_>, group: u32) {
        self.entries.remove(&self.key(question, question.qtype, EntryKind::Reply, group));
        self.remove_synthesis(question, group);
    }

    /// Removes the synthesis that was made of the reply to a question.
    fn remove_synthesis(&mut self, question: &Question<'_>, group: u32) {
        if matches!(question.qtype, Type::A | Type::AAAA) {
            self.entries.remove(&self.key(question, Type::AAAA, EntryKind::Synthesis, group));
        }
    }

    /// Writes an entry with the offsets of its TTLs, which are those in `records`.
    fn put(&mut self, key: &CacheKey<'_>, meta: &EntryMeta, records: &Message<'_>, body: EntryMessage<'_>) {
        let mut count = 0;
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            for record in records.records(section).filter(|record| record.rtype != Type::OPT) {
                let Some(place) = self.ttls.get_mut(count) else {
                    self.entries.remove(key);
                    return;
                };
                *place = record.ttl_start() as u16;
                count += 1;
            }
        }
        self.entries.put(meta.stored, key, meta, &self.ttls[..count], body);
    }

    /// Stores that a question failed, so that it is not asked again at once. Fresh data stay. `reply`: the failure that an
    /// upstream reported; none if no upstream replied. `longest_secs`: the longest lifetime.
    pub fn store_failure(
        &mut self,
        question: &Question<'_>,
        group: u32,
        (reply, longest_secs): (Option<&Message<'_>>, u64),
        now: Instant,
    ) {
        let key = self.key(question, question.qtype, EntryKind::Reply, group);
        let mut failures = 0;
        if let Some(place) = self.entries.find(&key) {
            let entry = self.entries.entry(place);
            if !entry.is(FAILURE) && entry.expires() > now {
                return;
            }
            if entry.is(FAILURE) && entry.expires() + FAILURE_MEMORY > now {
                failures = entry.failures();
            }
        }
        // A timeout is about the upstream, not about the name. A recovered upstream should be used at once.
        let doublings = if reply.is_some() { failures.min(FAILURE_DOUBLINGS) } else { 0 };
        let meta = EntryMeta {
            stored: now,
            expires: now + Span::from_secs((FAILURE_SECS << doublings).min(longest_secs)),
            born: now,
            marks: NEGATIVE | FAILURE | if reply.is_some() { 0 } else { SILENT },
            valid_for: 0,
            valid_for_dns64: 0,
            ede: reply.and_then(ede_to_store),
            reason: None,
            failures: failures.saturating_add(1),
        };
        match reply {
            Some(message) if message.rcode().0 <= 15 => {
                self.store_message(question, group, &Chain::follow(message), &meta);
            }
            // An extended RCODE is about this one exchange.
            Some(_) => {}
            None => {
                let mut bytes = [0; wire::HEADER + QUESTION];
                let end = wire::HEADER + question.name.len();
                bytes[wire::HEADER..end].copy_from_slice(question.name);
                bytes[end..end + 2].copy_from_slice(&question.qtype.0.to_be_bytes());
                bytes[end + 2..end + 4].copy_from_slice(&question.class.0.to_be_bytes());
                header::set_qdcount(&mut bytes, 1);
                if let Some(body) = EntryMessage::of(&bytes[..end + 4]) {
                    self.entries.put(now, &key, &meta, &[], body);
                }
            }
        }
    }

    /// Marks the cached failure of a question's AAAA lookup as a bogus answer, for the next queries under the current settings.
    pub fn mark_bogus(&mut self, question: &Question<'_>, group: u32) {
        if let Some(place) = self.find_reply(question, Type::AAAA, group)
            && self.entries.entry(place).is(FAILURE)
        {
            entry::mark_valid(self.entries.entry_mut(place), self.generation, None);
        }
    }

    /// Extended error of the answer with a failure: that a check under the current settings has shown it to be a bogus answer, what the upstream
    /// said, or that it is cached. Other settings may not trust the check.
    pub fn failure_ede(&self, entry: &Entry<'_>) -> EdeCode {
        match entry.valid_for() == self.generation {
            true => ede::DNSSEC_BOGUS,
            false => entry.ede().unwrap_or(ede::CACHED_ERROR),
        }
    }

    /// Marks the reply to a question as its unchanged answer under the current settings. `reason`: for clients with DNS64, the
    /// reason of that answer.
    pub fn mark_valid(&mut self, question: &Question<'_>, group: u32, reason: Option<AnswerReason>) {
        if let Some(place) = self.find_reply(question, question.qtype, group)
            && !self.entries.entry(place).is(FAILURE)
        {
            entry::mark_valid(self.entries.entry_mut(place), self.generation, reason);
        }
    }

    /// Stores the synthesized answer to a question, as every client without special rules gets it.
    pub fn store_synthesis(
        &mut self,
        question: &Question<'_>,
        group: u32,
        synthesis: &StoredSynthesis<'_>,
        now: Instant,
    ) {
        let StoredSynthesis { bytes, reason, omitted, prefix } = *synthesis;
        let Ok(message) = Message::parse(bytes) else { return };
        let ttl = message.records(Section::Answer).map(|record| record.ttl).min().unwrap_or(0);
        if ttl == 0 {
            return;
        }
        let lookup = |qtype| self.find_reply(question, qtype, group).map(|place| self.entries.entry(place));
        let (Some(aaaa), Some(a)) = (lookup(Type::AAAA), lookup(Type::A)) else { return };
        let expires = now + Span::from_secs(u64::from(ttl));
        let meta = EntryMeta {
            stored: now,
            // It outlives neither reply: excluded addresses may have a shorter TTL, and real ones may replace them.
            expires: expires.min(aaaa.expires()).min(a.expires()),
            born: match prefix {
                Some(_) => now,
                None if aaaa.expires() < a.expires() => aaaa.stored(),
                None => a.stored(),
            },
            marks: 0,
            valid_for: omitted,
            valid_for_dns64: self.generation,
            ede: Some(ede::SYNTHESIZED),
            reason: Some(reason),
            failures: prefix.unwrap_or(0),
        };
        let key = self.key(question, question.qtype, EntryKind::Synthesis, group);
        if let Some(body) = without_opt(&message) {
            self.put(&key, &meta, &message, body);
        }
    }

    /// True if a lookup is due for refresh, because a synthesis of it was served. The entry is marked, because the synthesis may
    /// be made again each time that its other lookup is.
    pub fn claim_refresh(&mut self, question: &Question<'_>, group: u32, now: Instant) -> bool {
        let Some(place) = self.find_reply(question, question.qtype, group) else { return true };
        let is_due = is_due(&self.entries.entry(place), now);
        if is_due {
            entry::mark(self.entries.entry_mut(place), REFRESHED);
        }
        is_due
    }

    /// True if an entry is fresh, and answers its question unchanged under the current settings.
    #[inline]
    pub fn is_valid(&self, entry: &Entry<'_>, dns64: bool, now: Instant) -> bool {
        let valid_for = if dns64 { entry.valid_for_dns64() } else { entry.valid_for() };
        valid_for == self.generation && entry.expires() > now && !entry.is(FAILURE)
    }
}

/// A message written by this server, without its OPT record, which is the last record.
fn without_opt<'a>(message: &Message<'a>) -> Option<EntryMessage<'a>> {
    let mut body = EntryMessage::of(&message.bytes()[..message.opt_start().unwrap_or(message.end())])?;
    if message.opt_start().is_some() {
        let others = header::arcount(&body.header);
        header::set_arcount(&mut body.header, others - 1);
    }
    Some(body)
}
