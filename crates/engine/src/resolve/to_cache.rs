//! What is kept of replies, and for how long: answers while their TTL lasts, negative ones as RFC 2308 section 5 says, failures
//! for seconds (RFC 9520 section 3.2). What has expired stays for when the upstreams fail (RFC 8767).
//!
//! A message is kept under the question that it answers, as it would be passed on, and is given for no other question: what a
//! reply says of other names never becomes data of those names.

use crate::answer::forward::{ForwardedReply, pass, verbatim_end};
use crate::answer::requestor::Requestor;
use crate::answer::requestor::unlimited_requestor;
use crate::answer::synthesis::{SynthesisInput, synthesize};
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Body, EntryKind, FAILURE, Facts, NEGATIVE, SILENT};
use crate::cache::store::{key_of, put, without_opt};
use crate::cache::ttl::lifetime;
use crate::client::waiter::{CacheHit, Waiter};
use crate::counters::Counter;
use crate::dns64::config::is_excluded;
use crate::dns64::decision::Cause;
use crate::dns64::embed::Tally;
use crate::engine::Engine;
use crate::limits::MESSAGE;
use crate::message::cname_chain::Chain;
use crate::message::question::{QueryFlags, Question};
use crate::message::reply::{ede_to_store, first_ede};
use wire::header::{self, Flags};
use wire::{Class, Message, Section, Type, ede};

/// How long a failure is kept at first (RFC 9520 section 3.2: at least 1 s).
const FAILURE_SECS: u64 = 1;
/// Failures in a row double that, so many times at most: 32 s.
const FAILURE_DOUBLINGS: u8 = 5;
/// A failure after so long without one is the first again.
const FAILURE_MEMORY: Span = Span::from_secs(60);

impl Engine {
    /// Whether the cache has to do with a question: class IN, and the client lets us ask others. What somebody
    /// keeps already is what RD=0 asks for, and that is not what we keep. Answers for client subnets are not kept: each
    /// would be one client's (RFC 7871 section 7.3.1 tells what a cache for them would have to do).
    #[inline]
    pub(crate) fn is_cacheable(&self, question: &Question<'_>) -> bool {
        let Question { class, query_flags, subnet, .. } = question;
        !self.cache.is_off()
            && *class == Class::IN
            && query_flags.has(QueryFlags::RD)
            && !query_flags.has(QueryFlags::PROBE)
            && subnet.is_none()
    }

    /// A frame of our own; it is given back with `frames.push`.
    #[inline]
    pub(crate) fn frame(&mut self) -> Box<[u8]> {
        self.frames.pop().unwrap_or_else(|| vec![0; MESSAGE].into())
    }

    /// Keeps an answer, if it may be kept.
    pub(crate) fn store_reply(
        &mut self,
        index: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        now: Instant,
    ) {
        let lifetime = lifetime(message, chain, &self.settings.cache);
        let Some((lifetime_secs, is_negative)) = lifetime.filter(|_| !self.flights.predates_flush(index))
        else {
            // RFC 8767 section 4: it has refreshed what was kept, though it is not kept itself.
            return self.expire_early(index);
        };
        let facts = Facts {
            stored: now,
            expires: now + Span::from_secs(u64::from(lifetime_secs)),
            born: now,
            marks: if is_negative { NEGATIVE } else { 0 },
            valid_for: 0,
            valid_for_dns64: 0,
            ede: first_ede(message),
            reason: 0,
            failures: 0,
        };
        self.store_message(index, message, chain, &facts, now);
    }

    /// Keeps a reply as it would be passed on to somebody without bounds: without OPT, and without what is off the chain.
    /// AD is what the upstream said; whether it is believed is decided when it is used.
    fn store_message(
        &mut self,
        index: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        facts: &Facts,
        now: Instant,
    ) {
        let query_flags = self.flights.slab[index].query_flags;
        let requestor =
            Requestor { flags: Flags::AD, ..unlimited_requestor(query_flags, message.question()) };
        let forwarded = ForwardedReply { message, chain, trusted: true, exclude: None, before: &[] };
        if let Some(end) = verbatim_end(&requestor, &forwarded)
            && let Some(mut body) = Body::of(&message.bytes()[..end])
        {
            let secure = message.flags().contains(Flags::AD);
            header::set_flags(&mut body.header, requestor.flags(message.rcode(), secure));
            let others = message.count(Section::Additional) - usize::from(message.opt_start().is_some());
            header::set_arcount(&mut body.header, others as u16);
            return self.store_as(index, message, body, facts, now);
        }
        let mut frame = self.frame();
        let written = pass(&mut frame, &requestor, &forwarded);
        if !written.truncated
            && written.rcode == message.rcode()
            && let Ok(written) = Message::parse(&frame[..written.len])
            && let Some(body) = without_opt(&written)
        {
            self.store_as(index, &written, body, facts, now);
        } else {
            self.expire_early(index);
        }
        self.frames.push(frame);
    }

    /// What is kept of a flight's question is no longer so, and what was made of it neither.
    fn expire_early(&mut self, index: Index) {
        let Engine { cache, flights, servers, key, .. } = self;
        let question = flights.slab[index].question();
        cache.remove(&key_of(*key, servers, &question, question.qtype, EntryKind::Reply));
        if matches!(question.qtype, Type::A | Type::AAAA) {
            cache.remove(&key_of(*key, servers, &question, Type::AAAA, EntryKind::Synthesis));
        }
    }

    /// Keeps a message whose records stand as in another one, but for OPT.
    fn store_as(&mut self, index: Index, records: &Message<'_>, body: Body<'_>, facts: &Facts, now: Instant) {
        if records.points_behind_question() && !self.is_ageless(records) {
            return self.expire_early(index);
        }
        let Engine { cache, flights, servers, key, .. } = self;
        let question = flights.slab[index].question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        put(cache, now, &leg, facts, records, body);
        // What was made of an older one, though that be gone, is not what would be made of this one.
        if facts.marks & FAILURE == 0 && matches!(question.qtype, Type::A | Type::AAAA) {
            cache.remove(&key_of(*key, servers, &question, Type::AAAA, EntryKind::Synthesis));
        }
    }

    /// Whether a message stays well formed when its TTLs count down. A pointer may lead anywhere before it, and whoever made
    /// the message may have had a name run through a TTL.
    fn is_ageless(&mut self, message: &Message<'_>) -> bool {
        let mut frame = self.frame();
        let copy = &mut frame[..message.end()];
        copy.copy_from_slice(&message.bytes()[..message.end()]);
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            for record in message.records(section).filter(|record| record.rtype != Type::OPT) {
                // The length of no label, and no pointer.
                copy[record.ttl_start()..record.ttl_start() + 4].fill(0x80);
            }
        }
        let is_ageless = Message::parse(copy).is_ok();
        self.frames.push(frame);
        is_ageless
    }

    /// Keeps that a question failed, so that it is not asked again at once. What is known and has not expired stays.
    pub(crate) fn store_failure(&mut self, index: Index, reply: Option<&Message<'_>>, now: Instant) {
        if self.flights.predates_flush(index) {
            return;
        }
        let Engine { cache, flights, servers, key, .. } = self;
        let question = flights.slab[index].question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        let mut failures = 0;
        if let Some(place) = cache.find(&leg) {
            let entry = cache.entry(place);
            if !entry.is(FAILURE) && entry.expires() > now {
                return;
            }
            if entry.is(FAILURE) && entry.expires() + FAILURE_MEMORY > now {
                failures = entry.failures();
            }
        }
        // Silence is the upstream's, not the name's: its return shall be noticed at once.
        let doublings = if reply.is_some() { failures.min(FAILURE_DOUBLINGS) } else { 0 };
        let facts = Facts {
            stored: now,
            expires: now + Span::from_secs(FAILURE_SECS << doublings),
            born: now,
            marks: NEGATIVE | FAILURE | if reply.is_some() { 0 } else { SILENT },
            valid_for: 0,
            valid_for_dns64: 0,
            ede: reply.and_then(ede_to_store),
            reason: 0,
            failures: failures.saturating_add(1),
        };
        match reply {
            Some(message) if message.rcode().0 <= 15 => {
                self.store_message(index, message, &Chain::follow(message), &facts, now);
            }
            // An extended RCODE says something of this one exchange.
            Some(_) => {}
            None => {
                let mut bytes = [0; wire::HEADER + crate::message::question::QUESTION];
                let end = wire::HEADER + question.name.len();
                bytes[wire::HEADER..end].copy_from_slice(question.name);
                bytes[end..end + 2].copy_from_slice(&question.qtype.0.to_be_bytes());
                bytes[end + 2..end + 4].copy_from_slice(&question.class.0.to_be_bytes());
                header::set_qdcount(&mut bytes, 1);
                if let Some(body) = Body::of(&bytes[..end + 4]) {
                    cache.put(now, &leg, &facts, &[], body);
                }
            }
        }
    }

    /// The failure of a client's AAAA leg was found to mean that the answer is bogus: whoever asks soon is told so.
    pub(crate) fn store_bogus(&mut self, waiter: Index) {
        let Engine { cache, waiters, servers, key, .. } = self;
        let state = &waiters[waiter];
        if state.chase != NONE {
            return;
        }
        let question = state.as_question();
        let leg = key_of(*key, servers, &question, Type::AAAA, EntryKind::Reply);
        if let Some(place) = cache.find(&leg)
            && cache.entry(place).is(FAILURE)
        {
            entry::set_ede(cache.entry_mut(place), ede::DNSSEC_BOGUS);
        }
    }

    /// A waiter's answer was a kept reply as it stands: from now on that is known. `reason`: for clients with DNS64,
    /// and what they count.
    pub(crate) fn mark_valid(&mut self, waiter: Index, reason: Option<Counter>) {
        let Engine { cache, waiters, servers, key, generation, .. } = self;
        let state = &waiters[waiter];
        if !state.is_all_from_cache() || state.chase != NONE {
            return;
        }
        let question = state.as_question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        if let Some(place) = cache.find(&leg)
            && !cache.entry(place).is(FAILURE)
        {
            entry::mark_valid(cache.entry_mut(place), *generation, reason.map(|reason| reason as u8));
        }
    }

    /// The same for a client with DNS64 whose AAAA leg is the answer, if that is so for all of them.
    pub(crate) fn mark_valid_for_dns64(&mut self, waiter: Index, message: &Message<'_>, reason: Counter) {
        let state = &self.waiters[waiter];
        let dns64 = &self.settings.dns64;
        if state.is_all_from_cache()
            && self.is_general(&state.client, state.name())
            && !message.records(Section::Answer).any(|record| is_excluded(&record, Some(dns64)))
        {
            self.mark_valid(waiter, Some(reason));
        }
    }

    /// Keeps a synthesis, made by [`synthesize_for_cache`]: it is the answer for all clients that no rule is about.
    pub(crate) fn store_synthesis(&mut self, waiter: Index, bytes: &[u8], now: Instant) {
        let state = &self.waiters[waiter];
        let counter = match state.cause {
            Cause::Excluded => Counter::SynthesizedExcluded,
            _ => Counter::SynthesizedNoData,
        };
        let Ok(message) = Message::parse(bytes) else { return };
        let ttl = message.records(Section::Answer).map(|record| record.ttl).min().unwrap_or(0);
        if ttl == 0 {
            return;
        }
        let question = state.as_question();
        let leg = |qtype| {
            let leg = key_of(self.key, &self.servers, &question, qtype, EntryKind::Reply);
            self.cache.find(&leg).map(|place| self.cache.entry(place))
        };
        let (Some(aaaa), Some(a)) = (leg(Type::AAAA), leg(Type::A)) else { return };
        let expires = now + Span::from_secs(u64::from(ttl));
        let facts = Facts {
            stored: now,
            // It outlives neither: excluded addresses may have a shorter TTL, and real ones come in their place.
            expires: expires.min(aaaa.expires()).min(a.expires()),
            born: if aaaa.expires() < a.expires() { aaaa.stored() } else { a.stored() },
            marks: 0,
            valid_for: 0,
            valid_for_dns64: self.generation,
            ede: Some(ede::SYNTHESIZED),
            reason: counter as u8,
            failures: 0,
        };
        let key = key_of(self.key, &self.servers, &question, question.qtype, EntryKind::Synthesis);
        if let Some(body) = without_opt(&message) {
            put(&mut self.cache, now, &key, &facts, &message, body);
        }
    }

    /// Whether the synthesis for a waiter is worth keeping: it came out of the cache, so somebody asks again and again.
    pub(crate) fn is_synthesis_stored(&self, waiter: Index) -> bool {
        let state = &self.waiters[waiter];
        state.is_all_from_cache()
            && state.cache_hit == CacheHit::Positive
            // Failures are soon over, and rules are not for all.
            && matches!(state.cause, Cause::NoData | Cause::Excluded)
            && state.chase == NONE
            && !self.settings.own.knows(state.name())
            && self.is_general(&state.client, state.name())
    }
}

/// Writes the synthesis as everybody gets it whose question has the same bits. Returns its octets; None: it is not the
/// same for everybody, or has nothing to keep.
pub(crate) fn synthesize_for_cache(
    frame: &mut [u8],
    waiter: &Waiter,
    input: &SynthesisInput<'_, '_>,
) -> Option<usize> {
    let requestor =
        Requestor { flags: waiter.flags, ..unlimited_requestor(waiter.query_flags, waiter.question()) };
    let (written, tally) = synthesize(frame, &requestor, input);
    // What is left out is counted for each answer, which a copy would not do.
    let is_whole = tally == Tally { records: tally.records, ..Tally::default() };
    (is_whole && tally.records > 0 && !written.truncated).then_some(written.len)
}
