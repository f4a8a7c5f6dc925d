//! What is made of what the cache holds. A question whose answer lies there as it is gets it at once, as a copy; any other
//! goes its usual way, with kept replies in the place of new ones.
//!
//! An entry is the answer as it stands only under the settings that have looked at it (`valid_for`): after a reload, the
//! first question goes the long way again. So what is cached does not depend on policy, and answers never ignore it.

use crate::answer::builder::{Written, append_opt};
use crate::answer::requestor::Requestor;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED, SILENT};
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
use wire::header::{self, Flags};
use wire::{Class, Message, Rcode, ede};

/// What came of a look into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// The client has its answer.
    Answered,
    /// There is something, or there may be, but not the answer as it is.
    Unfit,
    /// Nothing is kept of this question.
    Absent,
}

impl Engine {
    /// Answers a question out of the cache, if its answer lies there as it is. Else it has to go its way.
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
            || local_data.knows(question.name)
            // What a response policy says may depend on who asks, and how.
            || !rpz.is_empty()
        {
            return CacheLookup::Unfit;
        }
        if stage == Stage::Direct {
            return self.copy_from_cache(question, EntryKind::Reply, false, from, requestor, now, out);
        }
        // What a rule says may depend on who asks.
        if !self.has_no_rule(from, question.name) {
            return CacheLookup::Unfit;
        }
        match self.copy_from_cache(question, EntryKind::Synthesis, true, from, requestor, now, out) {
            CacheLookup::Answered => CacheLookup::Answered,
            _ => self.copy_from_cache(question, EntryKind::Reply, true, from, requestor, now, out),
        }
    }

    /// Whether no rule has to do with a question.
    #[inline]
    pub(crate) fn has_no_rule(&self, from: &Client, name: &[u8]) -> bool {
        let rules = &self.settings.dns64.rules;
        rules.is_empty() || rules.of(from.address, name).is_empty()
    }

    #[expect(clippy::too_many_arguments, reason = "the question, who asks, and how it is answered")]
    #[inline]
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
        let sink = ResponseSink {
            counters: &mut self.counters,
            rate_limiter: Some(&mut self.clients.rate_limiter),
            now,
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

    /// Answers a waiter with a kept reply to what it asks now, or goes on with it. False: there is none.
    pub(crate) fn answer_from_cache(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        if self.cache.is_off() {
            return false;
        }
        let Engine { cache, clients, upstream, settings, key, .. } = self;
        let Clients { waiters, chases, .. } = clients;
        let state = &waiters[waiter];
        let (asked, class) = state.asks_for();
        let qtype = state.stage.qtype().unwrap_or(asked);
        if class != Class::IN || !state.query_flags.has(QueryFlags::RD) || state.subnet.is_some() {
            return false;
        }
        let (name, hash) = match state.chase {
            NONE => (state.name(), state.hash),
            chase => (&chases[chase].name[..], key.hash(&chases[chase].name)),
        };
        let question =
            Question { name, hash, qtype, class, query_flags: state.query_flags_for(qtype), subnet: None };
        let found = cache.find_reply(&question, qtype, upstream.servers.group_number(name));
        let Some(place) = found else {
            waiters[waiter].has_stale = false;
            return false;
        };
        let entry = cache.entries.entry(place);
        let is_fresh = entry.expires() > now;
        let has_stale = !is_fresh && !entry.is(FAILURE) && entry.expires() + settings.cache.stale > now;
        // At once when a try has just failed, or would fail, or this client has waited long enough already.
        let is_stale = has_stale
            && (entry.failure_recheck() > now
                || state.client_timer_expired
                || upstream.servers.is_dead(name)
                || upstream.in_slow_start(name, now));
        let has_timer_expired = state.client_timer_expired;
        waiters[waiter].has_stale = has_stale;
        if !is_fresh && !is_stale {
            return false;
        }
        let mut frame = self.frames.take();
        let length = if is_fresh {
            let ede = if entry.is(FAILURE) { entry.ede().or(Some(ede::CACHED_ERROR)) } else { entry.ede() };
            materialize(&entry, &mut frame, Age::of(&entry, now), ede)
        } else {
            materialize(&entry, &mut frame, Age::Stale, Some(stale_ede(&entry)))
        };
        // Who has waited long enough waits no more; what it does not wait for is asked all the same.
        let is_asked = is_stale && has_timer_expired;
        let is_refreshed = is_asked || is_fresh && settings.cache.prefetch && is_due(&entry, now);
        let is_silent = entry.is(SILENT);
        waiters[waiter].cache_hit = match () {
            () if is_stale => CacheHit::Stale,
            () if waiters[waiter].cache_hit == CacheHit::Stale => CacheHit::Stale,
            () if entry.is(FAILURE) => CacheHit::Failure,
            () if entry.is(NEGATIVE) => CacheHit::Negative,
            () => CacheHit::Positive,
        };
        entry::visit(cache.entries.entry_mut(place));
        if is_refreshed {
            if is_fresh {
                entry::mark(cache.entries.entry_mut(place), REFRESHED);
            }
            self.refresh_for(waiter, qtype, is_fresh, now, out);
        }
        if is_silent {
            self.proceed_after_rpz(waiter, &Outcome::Failed, now, out);
        } else if let Ok(message) = Message::parse(&frame[..length]) {
            let chain = Chain::follow(&message);
            self.proceed_after_rpz(waiter, &Outcome::Reply(&message, &chain), now, out);
        } else {
            // It was parsed before it was kept.
            debug_assert!(false, "a kept message does not parse");
            self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out);
        }
        self.frames.give(frame);
        true
    }

    /// Clients of a flight have waited long enough: those for whom there are expired data get them. The flight goes on,
    /// for who comes next.
    pub(crate) fn on_client_response_timer(&mut self, flight: Index, now: Instant, out: &mut impl Outbox) {
        let mut waiter = self.upstream.flights[flight].waiters;
        while waiter != NONE {
            let next = self.clients.waiters[waiter].next;
            if self.clients.waiters[waiter].has_stale {
                self.detach(waiter);
                self.clients.waiters[waiter].client_timer_expired = true;
                if !self.answer_from_cache(waiter, now, out) {
                    // It had to give way to something else meanwhile.
                    self.attach(flight, waiter);
                }
            }
            waiter = next;
        }
    }
}

/// What kind of hit an entry is.
fn hit_counter(entry: &Entry<'_>) -> Counter {
    match entry.kind() {
        EntryKind::Synthesis => Counter::CacheHitsSynthesized,
        EntryKind::Reply if entry.is(NEGATIVE) => Counter::CacheHitsNegative,
        EntryKind::Reply => Counter::CacheHitsPositive,
    }
}

/// Copies a kept answer behind the question of who asks; header, OPT record and TTLs are of now.
#[inline]
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
