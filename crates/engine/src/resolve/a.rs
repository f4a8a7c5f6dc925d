//! A flight is over: every client that waited for it gets its answer, or goes on to the A leg (RFC 6147 section 5.1).

use crate::answer::synthesis::{SynthesisInput, synthesize};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::client::respond::{ResponseSink, respond};
use crate::client::waiter::CacheHit;
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage, TTL_WITHOUT_SOA};
use crate::dns64::embed::{self, EmbeddingCounts};
use crate::engine::Engine;
use crate::event::TraceEvent;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::reply::{Outcome, negative_ttl};
use crate::resolve::to_cache::synthesize_for_cache;
use crate::upstream::in_flight::FlightState;
use crate::upstream::parked_replies::NOT_PARKED;
use wire::{Message, Rcode, Section, Type, ede};

impl Engine {
    /// The A leg decides what becomes of a client's question, for this reason.
    pub(crate) fn decide_by_a(
        &mut self,
        waiter: Index,
        cause: Cause,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let (negative_ttl, secure) = match outcome {
            Outcome::Reply(message, chain) => {
                let is_cacheable = self.cache.is_cacheable(&self.clients.waiters[waiter].as_question());
                let least = if is_cacheable { self.settings.cache.min_ttl_secs } else { 0 };
                (negative_ttl(message, chain).map(|ttl| ttl.max(least)), self.is_secure(message))
            }
            Outcome::Failed => (None, false),
        };
        out.trace(|| TraceEvent::AsksA {
            cause,
            rule: if cause == Cause::Ignored { self.ignores_real(waiter) } else { None },
        });
        let state = &mut self.clients.waiters[waiter];
        state.stage = Stage::A;
        state.cause = cause;
        state.negative_ttl = negative_ttl;
        state.secure = secure;
        let a_flight = core::mem::replace(&mut state.a_flight, NONE);
        if a_flight != NONE {
            return self.use_early_a(waiter, a_flight, now, out);
        }
        self.ask_a(waiter, now, out);
    }

    /// The client waits for the A leg from now on.
    fn ask_a(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        if self.lookup_local(waiter, now, out) || self.answer_from_cache(waiter, now, out) {
            return;
        }
        match self.flight_for(waiter, Type::A, now, out) {
            Some(flight) => self.attach(flight, waiter),
            None => self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out),
        }
    }

    /// The A leg was asked before the AAAA leg was decided: it is over, or the client waits for it now.
    fn use_early_a(&mut self, waiter: Index, a_flight: Index, now: Instant, out: &mut impl Outbox) {
        if self.upstream.flights[a_flight].state == FlightState::Asked {
            self.upstream.flights[a_flight].references -= 1;
            // There may be expired data, and reason enough to give them.
            if !self.answer_from_cache(waiter, now, out) {
                self.attach(a_flight, waiter);
            }
            return;
        }
        let scope = self.upstream.flights[a_flight].scope;
        self.clients.waiters[waiter].scope = self.clients.waiters[waiter].scope.max(scope);
        match self.upstream.flights[a_flight].parked {
            NONE => self.on_early_a(waiter, &Outcome::Failed, now, out),
            NOT_PARKED => self.ask_a(waiter, now, out),
            parked => {
                let bytes = self.upstream.parked.lend(parked);
                let message = Message::parse(&bytes).expect("it was parsed before it was kept");
                let chain = Chain::follow(&message);
                self.on_early_a(waiter, &Outcome::Reply(&message, &chain), now, out);
                self.upstream.parked.put_back(parked, bytes);
            }
        }
        self.upstream.release_flight(a_flight);
    }

    fn on_early_a(&mut self, waiter: Index, outcome: &Outcome<'_, '_>, now: Instant, out: &mut impl Outbox) {
        if !self.apply_rpz_to_reply(waiter, outcome, now, out) {
            self.on_a(waiter, outcome, now, out);
        }
    }

    /// The A leg decides; an empty or failed one is the basis of the answer.
    //= RFC 6147 section 5.1.6: requirement 11
    pub(crate) fn on_a(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(|| self.leg_event(waiter, outcome));
        let Outcome::Reply(message, chain) = outcome else {
            self.counters.count(Counter::NotSynthesizedAFailed);
            out.trace(|| TraceEvent::Passed(Counter::NotSynthesizedAFailed));
            return self.respond_empty(waiter, Rcode::SERVFAIL, Some(ede::NETWORK_ERROR), now, out);
        };
        if message.rcode() != Rcode::NOERROR {
            self.counters.count(Counter::NotSynthesizedAFailed);
            out.trace(|| TraceEvent::Passed(Counter::NotSynthesizedAFailed));
            return self.pass_on(waiter, message, chain, true, now, out);
        }
        let mut answers = message.records(Section::Answer);
        let Some(first) = answers.find(|record| chain.ends_in(record, Type::A)) else {
            if chain.is_unfinished(message)
                && self.chase_cname(waiter, message, chain.end(), Type::A, now, out)
            {
                return;
            }
            self.counters.count(Counter::NotSynthesizedNoA);
            out.trace(|| TraceEvent::Passed(Counter::NotSynthesizedNoA));
            return self.pass_on(waiter, message, chain, true, now, out);
        };
        let mut kept = if self.is_synthesis_stored(waiter) { Some(self.frames.take()) } else { None };
        let dns64 = &self.settings.dns64;
        let state = &self.clients.waiters[waiter];
        let rules = dns64.rules.of(state.client.address, state.name());
        let negative_ttl = state.negative_ttl;
        out.trace(|| TraceEvent::Addresses { reply: message, chain, rules: &rules, negative_ttl });
        let left_out = embed::all_left_out(&first, message, chain, dns64, &rules);
        if let Some(counts) = left_out
            && self.needs_negative_aaaa(waiter, message)
        {
            if let Some(frame) = kept {
                self.frames.give(frame);
            }
            self.account(waiter, &counts);
            out.trace(|| TraceEvent::Basis);
            return self.ask_negative_aaaa(waiter, now, out);
        }
        let secure =
            self.clients.waiters[waiter].secure && self.is_secure(message) && self.came_secure(waiter);
        out.trace(|| TraceEvent::Synthesizes { secure });
        let negative_ttl = negative_ttl.unwrap_or(TTL_WITHOUT_SOA);
        let before = replies(&self.clients.chases, self.clients.waiters[waiter].chase);
        let input = SynthesisInput { message, chain, dns64, rules, negative_ttl, secure, before };
        let written = kept
            .as_mut()
            .and_then(|frame| synthesize_for_cache(frame, &self.clients.waiters[waiter], &input));
        let mut counts = EmbeddingCounts::default();
        let (waiters, own_size) = (&self.clients.waiters, self.settings.udp_size);
        let sink = ResponseSink {
            counters: &mut self.counters,
            rate_limiter: Some(&mut self.clients.rate_limiter),
            now,
        };
        respond(waiters, sink, own_size, waiter, out, |frame, requestor| {
            let (written, counted) = synthesize(frame, requestor, &input);
            counts = counted;
            written
        });
        if let (Some(frame), Some(length)) = (&kept, written) {
            self.store_synthesis(waiter, &frame[..length], now);
        }
        if let Some(frame) = kept {
            self.frames.give(frame);
        }
        self.account(waiter, &counts);
        self.free_waiter(waiter);
    }

    /// Whether an answer without any address lacks the SOA that lets the client keep it (RFC 2308 section 5), and the
    /// AAAA answer had one.
    fn needs_negative_aaaa(&self, waiter: Index, message: &Message<'_>) -> bool {
        let waiter = &self.clients.waiters[waiter];
        waiter.cause == Cause::NoData
            && waiter.negative_ttl.is_some()
            && !message.records(Section::Authority).any(|record| record.rtype == Type::SOA)
    }

    /// Asks for the AAAA answer again, which was not kept: this is rare, and keeping it would cost every question.
    fn ask_negative_aaaa(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        self.clients.waiters[waiter].stage = Stage::NegativeAaaa;
        if self.lookup_local(waiter, now, out) || self.answer_from_cache(waiter, now, out) {
            return;
        }
        match self.flight_for(waiter, Type::AAAA, now, out) {
            Some(flight) => self.attach(flight, waiter),
            None => self.respond_aliases(waiter, now, out),
        }
    }

    pub(crate) fn on_negative_aaaa(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(|| self.leg_event(waiter, outcome));
        match outcome {
            Outcome::Reply(message, chain) if message.rcode() == Rcode::NOERROR => {
                self.pass_on(waiter, message, chain, true, now, out);
            }
            // The A leg has shown that the name exists.
            _ => self.respond_aliases(waiter, now, out),
        }
    }

    fn account(&mut self, waiter: Index, counts: &EmbeddingCounts) {
        let counters = &mut self.counters;
        for (counter, amount) in [
            (Counter::LeftOutNonGlobal, counts.non_global),
            (Counter::LeftOutNeverEmbed, counts.never_embed),
            (Counter::LeftOutRule, counts.by_rule),
            (Counter::LeftOutMaxRecords, counts.beyond_max),
        ] {
            if amount > 0 {
                counters.add(counter, amount);
            }
        }
        let state = &mut self.clients.waiters[waiter];
        if state.cache_hit == CacheHit::Positive && counts.records > 0 {
            state.cache_hit = CacheHit::Synthesized;
        }
        counters.count(match state.cause {
            _ if counts.records == 0 => Counter::NotSynthesizedPolicy,
            Cause::NoData => Counter::SynthesizedNoData,
            Cause::Excluded => Counter::SynthesizedExcluded,
            Cause::Ignored => Counter::SynthesizedIgnored,
            Cause::Error => Counter::SynthesizedError,
            Cause::Timeout => Counter::SynthesizedTimeout,
        });
    }
}
