//! The A lookup (RFC 6147 sections 5.1.6 and 5.1.7): when it decides, when it was asked early, and the synthesis from its addresses.

use crate::answer::params::ResponseParams;
use crate::answer::synthesis::{SynthesisInput, synthesize};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::Clients;
use crate::client::chased::replies;
use crate::client::respond::{ResponseContext, respond};
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage, TTL_WITHOUT_SOA, is_secure};
use crate::dns64::embed::{self, EmbeddingCounts};
use crate::dns64::rules::Applicable;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::reply::{Outcome, negative_ttl};
use crate::reasons::{CacheHit, PassReason};
use crate::resolve::to_cache::synthesize_for_cache;
use crate::trace::{Subject, TraceEvent};
use crate::upstream::in_flight::OutboundQueryState;
use crate::upstream::parked_replies::NOT_PARKED;
use wire::{Message, Rcode, Record, Section, Type};

impl Engine {
    /// Continues with the A lookup because of `cause`. `outcome`: outcome of the AAAA lookup.
    pub(crate) fn decide_by_a(
        &mut self,
        pending: Index,
        cause: Cause,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let (negative_ttl, secure) = match outcome {
            Outcome::Reply(message, chain) => {
                let is_cacheable =
                    self.cache.is_cacheable(&self.clients.pending_queries[pending].own_question());
                let least = if is_cacheable { self.settings.cache.min_ttl_secs } else { 0 };
                (
                    negative_ttl(message, chain).map(|ttl| ttl.max(least)),
                    is_secure(message, &self.settings.dns64),
                )
            }
            Outcome::Failed => (None, false),
        };
        out.trace(Subject::PendingQuery(pending), || TraceEvent::AsksA {
            cause,
            rule: if cause == Cause::Ignored { self.ignores_real(pending) } else { None },
        });
        let state = &mut self.clients.pending_queries[pending];
        state.stage = Stage::A;
        state.cause = cause;
        state.negative_ttl = negative_ttl;
        state.aaaa_secure = secure;
        let a_outbound_query = core::mem::replace(&mut state.a_outbound_query, NONE);
        if a_outbound_query != NONE {
            return self.use_early_a(pending, a_outbound_query, now, out);
        }
        self.look_up(pending, now, out);
    }

    /// Uses an A question that was asked before the AAAA lookup was decided: takes its reply, or has the client wait for it.
    fn use_early_a(&mut self, pending: Index, a_outbound_query: Index, now: Instant, out: &mut impl Outbox) {
        if self.upstream.outbound_queries[a_outbound_query].state == OutboundQueryState::Asked {
            self.upstream.outbound_queries[a_outbound_query].early_a_users -= 1;
            // The cache may have expired data, and the upstream may be dead: then answer with them now.
            if !self.answer_from_cache(pending, now, out) {
                self.attach(a_outbound_query, pending);
            }
            return;
        }
        let scope = self.upstream.outbound_queries[a_outbound_query].scope;
        self.clients.pending_queries[pending].scope = self.clients.pending_queries[pending].scope.max(scope);
        match self.upstream.outbound_queries[a_outbound_query].parked {
            NONE => self.on_outcome(pending, &Outcome::Failed, &mut None, now, out),
            NOT_PARKED => self.look_up(pending, now, out),
            parked => {
                let bytes = self.upstream.parked.borrow(parked);
                // `serve_pending_queries` parks the octets of its outcome, which is a parsed message.
                if let Ok(message) = Message::parse(&bytes) {
                    let chain = Chain::follow(&message);
                    self.on_outcome(pending, &Outcome::Reply(&message, &chain), &mut None, now, out);
                } else {
                    debug_assert!(false, "a parked reply does not parse");
                    self.on_outcome(pending, &Outcome::Failed, &mut None, now, out);
                }
                self.upstream.parked.give_back(parked, bytes);
            }
        }
        self.upstream.release_outbound_query(a_outbound_query);
    }

    /// Handles the outcome of the A lookup: synthesizes from its addresses, or answers with the empty or failed reply.
    //= RFC 6147 section 5.1.6: requirement 11
    pub(crate) fn on_a(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::PendingQuery(pending), || self.lookup_event(pending, outcome));
        let Outcome::Reply(message, chain) = outcome else {
            self.counters.count(PassReason::AFailed.counter());
            out.trace(Subject::PendingQuery(pending), || TraceEvent::AnswerIs(PassReason::AFailed));
            return self.respond_failed(pending, now, out);
        };
        let Some(first) = first_a(message, chain) else {
            return self.answer_without_addresses(pending, message, chain, now, out);
        };
        let dns64 = &self.settings.dns64;
        let state = &self.clients.pending_queries[pending];
        let mut rules = Applicable::none(&dns64.rules);
        rules.find(state.client.address, state.name());
        let negative_ttl = state.negative_ttl;
        out.trace(Subject::PendingQuery(pending), || TraceEvent::Addresses {
            reply: message,
            chain,
            rules: &rules,
            negative_ttl,
        });
        let omitted = embed::all_omitted(&first, message, chain, dns64, &rules);
        if let Some(counts) = omitted
            && self.needs_negative_aaaa(pending, message)
        {
            return self.ask_negative_aaaa(pending, &counts, now, out);
        }
        let secure = self.clients.pending_queries[pending].aaaa_secure
            && is_secure(message, dns64)
            && self.came_secure(pending);
        out.trace(Subject::PendingQuery(pending), || TraceEvent::Synthesizes { secure });
        let mut stored = if self.is_synthesis_stored(pending, now) { Some(self.frames.take()) } else { None };
        let Clients { pending_queries, chases, rate_limiter, .. } = &mut self.clients;
        let state = &pending_queries[pending];
        let negative_ttl = state.negative_ttl.unwrap_or(TTL_WITHOUT_SOA);
        let before = replies(chases, state.chase);
        let input = SynthesisInput { message, chain, dns64, rules: &rules, negative_ttl, secure, before };
        let written = stored.as_mut().and_then(|frame| synthesize_for_cache(frame, state, &input));
        let mut counts = EmbeddingCounts::default();
        let identity = &self.settings.server_names.identity;
        let rate_limiter = Some(rate_limiter);
        let context = ResponseContext { counters: &mut self.counters, rate_limiter, now, identity };
        respond(pending_queries, context, self.settings.udp_size, pending, out, |frame, params| {
            let compose = |frame: &mut [u8], params: &ResponseParams<'_>| synthesize(frame, params, &input);
            let composition = || input.composition();
            let written = self.answer_memo.write(message.bytes(), composition, frame, params, compose);
            counts = written.1;
            written.0
        });
        if let Some(frame) = stored {
            if let Some((length, omitted)) = written {
                self.store_synthesis(pending, &frame[..length], omitted, now);
            }
            self.frames.give(frame);
        }
        self.count_synthesis(pending, &counts);
        self.free_pending_query(pending, out);
    }

    /// Handles a reply of the A lookup without addresses: chases a CNAME that it ends in, or forwards the reply.
    fn answer_without_addresses(
        &mut self,
        pending: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let is_failure = message.rcode() != Rcode::NOERROR;
        if chain.is_unfinished(message) {
            return self.chase_cname(pending, message, chain.end(), now, out);
        }
        let reason = if is_failure { PassReason::AFailed } else { PassReason::NoA };
        self.counters.count(reason.counter());
        out.trace(Subject::PendingQuery(pending), || TraceEvent::AnswerIs(reason));
        self.forward_to(pending, message, chain, true, now, out);
    }

    /// True if an answer without addresses lacks the SOA that lets the client cache it (RFC 2308 section 5), and the AAAA reply
    /// had one.
    fn needs_negative_aaaa(&self, pending: Index, message: &Message<'_>) -> bool {
        let pending = &self.clients.pending_queries[pending];
        pending.cause == Cause::NoData
            && pending.negative_ttl.is_some()
            && !message.records(Section::Authority).any(|record| record.rtype == Type::SOA)
    }

    /// Asks for the negative AAAA reply again. The AAAA lookup does not store its reply for this: the case is rare, and storing would
    /// cost every query.
    fn ask_negative_aaaa(
        &mut self,
        pending: Index,
        counts: &EmbeddingCounts,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.count_synthesis(pending, counts);
        out.trace(Subject::PendingQuery(pending), || TraceEvent::AsksNegativeAaaa);
        self.clients.pending_queries[pending].stage = Stage::NegativeAaaa;
        self.look_up(pending, now, out);
    }

    /// Answers with the negative AAAA reply, which was asked again because no address of the A lookup may be embedded.
    pub(crate) fn on_negative_aaaa(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::PendingQuery(pending), || self.lookup_event(pending, outcome));
        match outcome {
            Outcome::Reply(message, chain) if message.rcode() == Rcode::NOERROR => {
                self.forward_to(pending, message, chain, true, now, out);
            }
            // The A lookup has shown that the name exists.
            _ => self.respond_aliases(pending, now, out),
        }
    }

    /// Counts the addresses of a synthesis, and why it was made or not.
    fn count_synthesis(&mut self, pending: Index, counts: &EmbeddingCounts) {
        self.count_omitted(counts);
        let state = &mut self.clients.pending_queries[pending];
        if state.cache_hit == Some(CacheHit::Positive) && counts.records > 0 {
            state.cache_hit = Some(CacheHit::Synthesized);
        }
        self.counters.count(match state.cause {
            _ if counts.records == 0 => Counter::NotSynthesizedPolicy,
            Cause::NoData => Counter::SynthesizedNoData,
            Cause::Excluded => Counter::SynthesizedExcluded,
            Cause::Ignored => Counter::SynthesizedIgnored,
            Cause::Error => Counter::SynthesizedError,
            Cause::Timeout => Counter::SynthesizedTimeout,
        });
    }

    /// Counts the addresses that a synthesis leaves out.
    pub(crate) fn count_omitted(&mut self, counts: &EmbeddingCounts) {
        for (counter, amount) in [
            (Counter::OmittedNonGlobal, counts.non_global),
            (Counter::OmittedNeverEmbed, counts.never_embed),
            (Counter::OmittedRule, counts.by_rule),
            (Counter::OmittedMaxRecords, counts.beyond_max),
        ] {
            if amount > 0 {
                self.counters.add(counter, amount);
            }
        }
    }
}

/// First A record at the end of the chain of a reply without an error.
#[inline(always)]
fn first_a<'m>(message: &Message<'m>, chain: &Chain<'_>) -> Option<Record<'m>> {
    if message.rcode() != Rcode::NOERROR {
        return None;
    }
    let mut answers = message.records(Section::Answer);
    // Not `find`: the copies of the engine would share one function of it, and call it.
    loop {
        let record = answers.next()?;
        if chain.ends_in(&record, Type::A) {
            return Some(record);
        }
    }
}
