//! Answers from the cache: a copy of the cached answer for a query, or a cached reply for a waiter.
//!
//! A query whose complete answer is cached gets a copy at once, and no waiter. Any other query becomes a waiter, and the cache gives
//! replies to its questions as an upstream does. Expired data are used when the upstreams fail (RFC 8767).

use crate::answer::builder::{Written, append_opt};
use crate::answer::requestor::Requestor;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED, SILENT};
use crate::cache::index::Place;
use crate::cache::ttl::{Age, is_due, materialize, stale_ede, write_ttls};
use crate::client::Clients;
use crate::client::respond::{ResponseSink, send};
use crate::client::waiter::CacheHit;
use crate::counters::Counter;
use crate::dns64::config::Dnssec;
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::{Client, Outbox};
use crate::message::cname_chain::Chain;
use crate::message::question::{QueryFlags, Question};
use crate::message::reply::Outcome;
use crate::settings::Settings;
use crate::trace::{Subject, TraceEvent};
use wire::header::{self, Flags};
use wire::{Class, Message, Rcode, ede};

/// Result of looking for the answer to a query in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// The client has its answer.
    Answered,
    /// There is an entry, or there may be one, but it cannot be copied unchanged.
    Unfit,
    /// There is no entry for this question.
    Absent,
}

impl Engine {
    /// Answers a query with a copy of its cached answer, if there is one.
    #[inline]
    pub(crate) fn answer_query_from_cache(
        &mut self,
        question: &Question<'_>,
        stage: Stage,
        from: &Client,
        requestor: &Requestor<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> CacheLookup {
        let Settings { local_data, rpz, .. } = &self.settings;
        if !self.cache.is_cacheable(question)
            || local_data.has_name(question.name)
            // A response policy may depend on the client and its transport.
            || !rpz.is_empty()
        {
            return CacheLookup::Unfit;
        }
        let dns64 = stage != Stage::Direct;
        // A rule may depend on the client.
        if dns64 && !self.has_no_rule(from, question.name) {
            return CacheLookup::Unfit;
        }
        let kinds: &[EntryKind] =
            if dns64 { &[EntryKind::Synthesis, EntryKind::Reply] } else { &[EntryKind::Reply] };
        let mut found = CacheLookup::Absent;
        // A loop, so that the copy is inlined: a function of its own would read the question from memory, where it was written just
        // before in other pieces, and would have to wait for that.
        for &kind in kinds {
            found = self.copy_from_cache(question, kind, dns64, from, requestor, now, out);
            if found == CacheLookup::Answered {
                break;
            }
        }
        found
    }

    /// True if no rule applies to a client and a name.
    #[inline]
    pub(crate) fn has_no_rule(&self, from: &Client, name: &[u8]) -> bool {
        let rules = &self.settings.dns64.rules;
        rules.is_empty() || rules.of(from.address, name).is_empty()
    }

    /// Copies the entry of a question to a client, if it is the complete answer and fits.
    #[expect(clippy::too_many_arguments, reason = "the question, the client, and how it is answered")]
    #[inline(always)]
    fn copy_from_cache(
        &mut self,
        question: &Question<'_>,
        kind: EntryKind,
        dns64: bool,
        from: &Client,
        requestor: &Requestor<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> CacheLookup {
        let group = self.upstream.servers.group_number(question.name);
        let key = self.cache.key(question, question.qtype, kind, group);
        let Some(place) = self.cache.entries.find(&key) else { return CacheLookup::Absent };
        let entry = self.cache.entries.entry(place);
        let octets = requestor.opt_octets(entry.ede());
        if !self.cache.is_valid(&entry, dns64, now) || entry.message().len() + octets > requestor.limit {
            return CacheLookup::Unfit;
        }
        let is_refreshed = self.settings.cache.prefetch && is_due(&entry, now);
        let trusted = self.settings.dns64.dnssec == Dnssec::Trust;
        let reason = dns64.then(|| entry.reason());
        let cache_hit = hit_counter(&entry);
        out.trace(Subject::Query, || TraceEvent::Cached(cache_hit));
        let sink = ResponseSink {
            counters: &mut self.counters,
            rate_limiter: Some(&mut self.clients.rate_limiter),
            now,
            identity: &self.settings.server_names.identity,
        };
        send(sink, from, requestor, out, |frame, requestor| copy(&entry, frame, requestor, trusted, now));
        if let Some(&counter) = reason.and_then(|reason| Counter::ALL.get(usize::from(reason))) {
            self.counters.count(counter);
        }
        self.counters.count(cache_hit);
        self.counters.duration(Span::ZERO);
        entry::visit(self.cache.entries.entry_mut(place));
        if is_refreshed {
            entry::mark(self.cache.entries.entry_mut(place), REFRESHED);
            self.refresh(question, kind, now, out);
        }
        CacheLookup::Answered
    }

    /// Continues a waiter with the cached reply to its current question. Returns false if there is none that may be used.
    pub(crate) fn answer_from_cache(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let Some((place, is_stale)) = self.find_usable(waiter, now) else { return false };
        let entry = self.cache.entries.entry(place);
        let is_fresh = !is_stale;
        let mut frame = self.frames.take();
        let length = if is_fresh {
            let ede = if entry.is(FAILURE) { entry.ede().or(Some(ede::CACHED_ERROR)) } else { entry.ede() };
            materialize(&entry, &mut frame, Age::of(&entry, now), ede)
        } else {
            materialize(&entry, &mut frame, Age::Stale, Some(stale_ede(&entry)))
        };
        let is_silent = entry.is(SILENT);
        let state = &mut self.clients.waiters[waiter];
        // The client response timer has expired: answer with stale data now, and refresh in the background.
        let is_asked = is_stale && state.client_timer_expired;
        let is_refreshed = is_asked || is_fresh && self.settings.cache.prefetch && is_due(&entry, now);
        let qtype = state.current_type();
        state.cache_hit = match () {
            () if is_stale => CacheHit::Stale,
            () if state.cache_hit == CacheHit::Stale => CacheHit::Stale,
            () if entry.is(FAILURE) => CacheHit::Failure,
            () if entry.is(NEGATIVE) => CacheHit::Negative,
            () => CacheHit::Positive,
        };
        out.trace(Subject::Waiter(waiter), || TraceEvent::Cached(reply_counter(&entry, is_stale)));
        entry::visit(self.cache.entries.entry_mut(place));
        if is_refreshed {
            if is_fresh {
                entry::mark(self.cache.entries.entry_mut(place), REFRESHED);
            }
            self.refresh_for(waiter, qtype, is_fresh, now, out);
        }
        if is_silent {
            self.proceed(waiter, &Outcome::Failed, &mut None, now, out);
        } else if let Ok(message) = Message::parse(&frame[..length]) {
            let chain = Chain::follow(&message);
            self.proceed(waiter, &Outcome::Reply(&message, &chain), &mut None, now, out);
        } else {
            // It was parsed before it was stored.
            debug_assert!(false, "a cached message does not parse");
            self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out);
        }
        self.frames.give(frame);
        true
    }

    /// Finds the cached reply to a waiter's current question: a fresh one, or expired data (true) if they may be used now. Sets
    /// `has_stale` of the waiter.
    #[inline(always)]
    fn find_usable(&mut self, waiter: Index, now: Instant) -> Option<(Place, bool)> {
        if self.cache.is_off() {
            return None;
        }
        let Engine { cache, clients, upstream, settings, key, .. } = self;
        let Clients { waiters, chases, .. } = clients;
        let state = &mut waiters[waiter];
        let (qtype, class) = (state.current_type(), state.qtype_and_class().1);
        if class != Class::IN || !state.query_flags.has(QueryFlags::RD) || state.subnet.is_some() {
            return None;
        }
        let (name, hash) = match state.chase {
            NONE => (state.name(), state.hash),
            chase => (&chases[chase].name[..], key.hash(&chases[chase].name)),
        };
        let question =
            Question { name, hash, qtype, class, query_flags: state.query_flags_for(qtype), subnet: None };
        let found = cache.find_reply(&question, qtype, upstream.servers.group_number(name));
        let Some(place) = found else {
            state.has_stale = false;
            return None;
        };
        let entry = cache.entries.entry(place);
        let is_fresh = entry.expires() > now;
        let has_stale = !is_fresh && !entry.is(FAILURE) && entry.expires() + settings.cache.stale > now;
        // Expired data are used at once when a try has just failed, when the servers are dead or in slow start, or when the
        // client response timer has expired.
        let is_stale = has_stale
            && (entry.failure_recheck() > now
                || state.client_timer_expired
                || upstream.servers.is_dead(name)
                || upstream.in_slow_start(name, now));
        state.has_stale = has_stale;
        (is_fresh || is_stale).then_some((place, is_stale))
    }
}

/// The counter of a cache hit, by the kind of entry.
fn hit_counter(entry: &Entry<'_>) -> Counter {
    match entry.kind() {
        EntryKind::Synthesis => Counter::CacheHitsSynthesized,
        EntryKind::Reply if entry.is(NEGATIVE) => Counter::CacheHitsNegative,
        EntryKind::Reply => Counter::CacheHitsPositive,
    }
}

/// The counter that names the kind of a cached reply.
fn reply_counter(entry: &Entry<'_>, is_stale: bool) -> Counter {
    match () {
        () if is_stale => Counter::CacheHitsStale,
        () if entry.is(FAILURE) => Counter::CacheHitsFailure,
        () => hit_counter(entry),
    }
}

/// Writes a cached answer after the requestor's question, with a new header, OPT record and TTLs.
#[inline(always)]
fn copy(
    entry: &Entry<'_>,
    frame: &mut [u8],
    requestor: &Requestor<'_>,
    trusted: bool,
    now: Instant,
) -> Written {
    let message = entry.message();
    let (question_end, end) = (wire::HEADER + requestor.question.len(), message.len());
    let kept = header::flags(message);
    let rcode = kept.rcode();
    frame[wire::HEADER..question_end].copy_from_slice(requestor.question);
    frame[question_end..end].copy_from_slice(&message[question_end..]);
    let secure = trusted && kept.contains(Flags::AD) && requestor.wants_ad();
    header::set_id(frame, requestor.id);
    header::set_flags(frame, requestor.flags(rcode, secure));
    frame[4..wire::HEADER].copy_from_slice(&message[4..wire::HEADER]);
    write_ttls(entry, frame, Age::of(entry, now));
    let mut len = end;
    if requestor.edns.is_some() {
        let others = header::arcount(frame);
        header::set_arcount(frame, others + 1);
        len += append_opt(&mut frame[end..], requestor, rcode, entry.ede());
    }
    Written { len, rcode, truncated: false, ede: requestor.edns.and(entry.ede()) }
}
