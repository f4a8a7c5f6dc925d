//! What is made of what the cache holds. A question whose answer lies there as it is gets it at once, as a copy; any other
//! goes its usual way, with kept replies in the place of new ones.
//!
//! An entry is the answer as it stands only under the settings that have looked at it (`approved`): after a reload, the
//! first question goes the long way again. So what is cached does not depend on policy, and answers never ignore it.

use crate::answer::builder::{Written, append_opt};
use crate::answer::requestor::Asker;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, Entry, EntryKind, FAILURE, NEGATIVE, REFRESHED, SILENT};
use crate::cache::store::key_of;
use crate::cache::ttl::{Age, is_due, materialize, stale_reason, write_ttls};
use crate::client::respond::{Exit, send};
use crate::client::waiter::Recalled;
use crate::counters::Counter;
use crate::dns64::config::Dnssec;
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::{Client, Outbox};
use crate::limits::MESSAGE;
use crate::message::cname_chain::Chain;
use crate::message::question::{Question, Wishes};
use crate::message::reply::Outcome;
use crate::settings::Settings;
use wire::header::{self, Flags};
use wire::{Class, Message, Rcode, ede};

/// What came of a look into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
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
    pub(crate) fn recall(
        &mut self,
        question: &Question<'_>,
        stage: Stage,
        from: &Client,
        asker: &Asker<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Look {
        let Settings { own, policy, .. } = &self.settings;
        if !self.is_cacheable(question)
            || own.knows(question.name)
            // What a response policy says may depend on who asks, and how.
            || !policy.is_empty()
        {
            return Look::Unfit;
        }
        if stage == Stage::Direct {
            return self.recall_kept(question, EntryKind::Reply, false, from, asker, now, out);
        }
        // What a rule says may depend on who asks.
        if !self.is_general(from, question.name) {
            return Look::Unfit;
        }
        match self.recall_kept(question, EntryKind::Synthesis, true, from, asker, now, out) {
            Look::Answered => Look::Answered,
            _ => self.recall_kept(question, EntryKind::Reply, true, from, asker, now, out),
        }
    }

    /// Whether no rule has to do with a question.
    #[inline]
    pub(crate) fn is_general(&self, from: &Client, name: &[u8]) -> bool {
        let rules = &self.settings.dns64.rules;
        rules.is_empty() || rules.of(from.address, name).is_empty()
    }

    #[expect(clippy::too_many_arguments, reason = "the question, who asks, and how it is answered")]
    #[inline]
    fn recall_kept(
        &mut self,
        question: &Question<'_>,
        kind: EntryKind,
        dns64: bool,
        from: &Client,
        asker: &Asker<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Look {
        let key = key_of(self.key, &self.servers, question, question.qtype, kind);
        let Some(place) = self.cache.find(&key) else { return Look::Absent };
        let entry = self.cache.entry(place);
        let approved = if dns64 { entry.approved64() } else { entry.approved() };
        let octets = asker.opt_octets(entry.ede());
        if approved != self.generation
            || entry.expires() <= now
            || entry.message().len() + octets > asker.limit
        {
            return Look::Unfit;
        }
        let is_refreshed = self.settings.cache.prefetch && is_due(&entry, now);
        let trusted = self.settings.dns64.dnssec == Dnssec::Trust;
        let reason = dns64.then(|| entry.reason());
        let recalled = recalled(&entry);
        let exit = Exit { counters: &mut self.counters, rates: Some(&mut self.rates), now };
        send(exit, from, asker, out, |frame, asker| copy(&entry, frame, asker, trusted, now));
        if let Some(&counter) = reason.and_then(|reason| Counter::ALL.get(usize::from(reason))) {
            self.counters.count(counter);
        }
        self.counters.count(recalled);
        self.counters.duration(Span::ZERO);
        entry::visit(self.cache.entry_mut(place));
        if is_refreshed {
            entry::mark(self.cache.entry_mut(place), REFRESHED);
            self.refresh(question, kind, now, out);
        }
        Look::Answered
    }

    /// Answers a waiter with a kept reply to what it asks now, or goes on with it. False: there is none.
    pub(crate) fn answer_recalled(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) -> bool {
        if self.cache.is_off() {
            return false;
        }
        let (_, qtype) = self.sought(waiter);
        let Engine { cache, waiters, chains, servers, settings, key, random, .. } = self;
        let state = &waiters[waiter];
        let class = state.asks_for().1;
        if class != Class::IN || !state.wishes.has(Wishes::RD) || state.subnet.is_some() {
            return false;
        }
        let (name, hash) = match state.chain {
            NONE => (state.name(), state.hash),
            chain => (&chains[chain].name[..], key.hash(&chains[chain].name)),
        };
        let question = Question { name, hash, qtype, class, wishes: state.wishes_for(qtype), subnet: None };
        let leg = key_of(*key, servers, &question, qtype, EntryKind::Reply);
        let place = cache.find(&leg);
        let Some(place) = place else {
            waiters[waiter].has_stale = false;
            return false;
        };
        let entry = cache.entry(place);
        let is_fresh = entry.expires() > now;
        let has_stale = !is_fresh && !entry.is(FAILURE) && entry.expires() + settings.cache.stale > now;
        // At once when a try has just failed, or would fail, or this client has waited long enough already.
        let is_stale = has_stale
            && (entry.again() > now
                || state.impatient
                || servers.is_dead(name)
                || servers.in_slow_start(name, now, |bound| random.below(bound)));
        let is_impatient = state.impatient;
        waiters[waiter].has_stale = has_stale;
        if !is_fresh && !is_stale {
            return false;
        }
        let mut frame = self.frames.pop().unwrap_or_else(|| vec![0; MESSAGE].into());
        let length = if is_fresh {
            let reason =
                if entry.is(FAILURE) { entry.ede().or(Some(ede::CACHED_ERROR)) } else { entry.ede() };
            materialize(&entry, &mut frame, Age::of(&entry, now), reason)
        } else {
            materialize(&entry, &mut frame, Age::Stale, Some(stale_reason(&entry)))
        };
        // Who has waited long enough waits no more; what it does not wait for is asked all the same.
        let is_asked = is_stale && is_impatient;
        let is_refreshed = is_asked || is_fresh && settings.cache.prefetch && is_due(&entry, now);
        let is_silent = entry.is(SILENT);
        waiters[waiter].recalled = match () {
            () if is_stale => Recalled::Stale,
            () if waiters[waiter].recalled == Recalled::Stale => Recalled::Stale,
            () if entry.is(FAILURE) => Recalled::Failure,
            () if entry.is(NEGATIVE) => Recalled::Negative,
            () => Recalled::Positive,
        };
        entry::visit(cache.entry_mut(place));
        if is_refreshed {
            if is_fresh {
                entry::mark(cache.entry_mut(place), REFRESHED);
            }
            self.refresh_for(waiter, qtype, is_fresh, now, out);
        }
        if is_silent {
            self.go_on_with(waiter, &Outcome::Failed, now, out);
        } else if let Ok(message) = Message::parse(&frame[..length]) {
            let chain = Chain::follow(&message);
            self.go_on_with(waiter, &Outcome::Reply(&message, &chain), now, out);
        } else {
            // It was parsed before it was kept.
            debug_assert!(false, "a kept message does not parse");
            self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out);
        }
        self.frames.push(frame);
        true
    }

    /// Clients of a flight have waited long enough: those for whom there are expired data get them. The flight goes on,
    /// for who comes next.
    pub(crate) fn lose_patience(&mut self, flight: Index, now: Instant, out: &mut impl Outbox) {
        let mut waiter = self.flights.slab[flight].waiters;
        while waiter != NONE {
            let next = self.waiters[waiter].next;
            if self.waiters[waiter].has_stale {
                self.part(waiter);
                self.waiters[waiter].impatient = true;
                if !self.answer_recalled(waiter, now, out) {
                    // It had to give way to something else meanwhile.
                    self.join(flight, waiter);
                }
            }
            waiter = next;
        }
    }
}

/// What kind of hit an entry is.
fn recalled(entry: &Entry<'_>) -> Counter {
    match entry.kind() {
        EntryKind::Synthesis => Counter::CacheHitsSynthesized,
        EntryKind::Reply if entry.is(NEGATIVE) => Counter::CacheHitsNegative,
        EntryKind::Reply => Counter::CacheHitsPositive,
    }
}

/// Copies a kept answer behind the question of who asks; header, OPT record and TTLs are of now.
#[inline]
fn copy(entry: &Entry<'_>, frame: &mut [u8], asker: &Asker<'_>, trusted: bool, now: Instant) -> Written {
    let message = entry.message();
    let (question_end, end) = (wire::HEADER + asker.question.len(), message.len());
    let kept = header::flags(message);
    let rcode = kept.rcode();
    frame[wire::HEADER..question_end].copy_from_slice(asker.question);
    frame[question_end..end].copy_from_slice(&message[question_end..]);
    let secure = trusted && kept.contains(Flags::AD) && asker.wants_ad();
    header::set_id(frame, asker.id);
    header::set_flags(frame, asker.flags(rcode, secure));
    frame[4..wire::HEADER].copy_from_slice(&message[4..wire::HEADER]);
    write_ttls(entry, frame, Age::of(entry, now));
    let mut len = end;
    if asker.edns.is_some() {
        let others = header::arcount(frame);
        header::set_arcount(frame, others + 1);
        len += append_opt(&mut frame[end..], asker, rcode, entry.ede());
    }
    Written { len, rcode, truncated: false, reason: asker.edns.and(entry.ede()) }
}
