//! The way of a resolution: a loop over outcomes.
//!
//! ```text
//! begin ------> look_up --+--> Found --> step --+--> Found    the next question has its reply here: the loop goes on
//!                         |                     +--> Waits    for an upstream; `complete` goes on with its reply
//! complete --> step ------+--> Waits            +--> Ended    the client has its response
//!                         +--> Ended
//! ```
//!
//! `step` takes an outcome, matches the stage, and carries out the next step (`steps.rs`). `look_up` is the lookup order. `End`
//! (`write.rs`) lists what a resolution can end in. No step calls another one: what a lookup finds comes back as a value to `drive`, which
//! counts the steps.

use crate::base::slab::{Index, NONE};
use crate::client::Clients;
use crate::client::chased::NO_END;
use crate::client::pending_query::PendingQuery;
use crate::client::quota::QuotaKey;
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::config::{Dns64, Lookup};
use crate::dns64::decision::{AaaaDecision, Cause, Stage, decide};
use crate::dns64::embed::Lack;
use crate::dns64::rules::Applicable;
use crate::dns64::verdicts::Untried;
use crate::dns64::verify::{self, Usable};
use crate::engine::Resolver;
use crate::interface::Outbox;
use crate::limits::{CLIENT_TIMEOUT, STEPS};
use crate::local::special_use::Alias;
use crate::message::cname_chain::Chain;
use crate::message::question::{CurrentQuestion, QUESTION, QueryFlags, Question};
use crate::message::reply::Outcome;
use crate::reasons::{Limit, PassReason, Reaction};
use crate::resolve::admission;
use crate::resolve::from_cache::{CacheLookup, CacheParts, Copying, NewQuery};
use crate::resolve::here::Here;
use crate::resolve::join::{self, Sender};
use crate::resolve::progress::{Found, Progress};
use crate::resolve::steps::{self, Addresses, AskA, Next, Origin};
use crate::resolve::to_cache::Served;
use crate::resolve::write::{End, Writer, count_synthesis};
use crate::trace::{Subject, TraceEvent};
use crate::upstream::in_flight::OutboundQueryState;
use crate::upstream::parked_replies::NOT_PARKED;
use crate::validator::budgets::Payer;
use wire::{Class, Message, Rcode, Type, ede};

/// The end of a lookup.
struct LookupEnd<'o, 'm, 'a> {
    outcome: &'o Outcome<'m, 'a>,
    origin: Origin,
    /// Decision about an AAAA outcome, made once for all pending queries of a question.
    decision: Option<AaaaDecision>,
}

/// End of a query for which there is no room.
const NO_ROOM: End<'static, 'static> = End::Empty(Rcode::SERVFAIL, None);

impl Resolver {
    /// Begins the resolution of a query: for the name asked, or for the name that this is an alias of (`alias`).
    ///
    /// # Errors
    ///
    /// The limit that applies to the query, which is not resolved then.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        query: &mut NewQuery<'_>,
        alias: Option<Alias>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Result<(), Limit> {
        // Cache: with a complete answer the query never waits. The answer for a reverse alias begins with our own
        // CNAME record, so no cached answer is complete.
        let Resolver { settings, clients, upstream, cache, needs, .. } = self;
        let (rate_limiter, servers) = (&mut clients.rate_limiter, &upstream.servers);
        let needs = needs.as_deref_mut();
        let cached = match alias {
            None => Copying { settings, rate_limiter, servers, cache, needs }.answer(query, cx),
            Some(_) => CacheLookup::Unfit,
        };
        match cached {
            CacheLookup::Answered => return Ok(()),
            CacheLookup::AnsweredAndDue(kind) => {
                self.cache_parts().refresh(&query.question, kind, cx);
                return Ok(());
            }
            CacheLookup::Unfit | CacheLookup::Absent => {}
        }
        let scope = self.upstream.drop_subnet_if_crowded(&mut query.question, cx.counters);
        let NewQuery { from, params, ref question, stage } = *query;
        // A retransmission gets the answer to the first query.
        let known = self.upstream.outbound_queries.find(question);
        let sender = Sender { client: from, id: params.id, question: params.question };
        if known.is_some_and(|known| join::is_repeated(&self.clients, &self.upstream, known, &sender)) {
            return Err(Limit::DroppedRepeated);
        }
        // Admission: from here on the query is a pending query.
        let proven = !from.transport.is_datagram() || params.has_valid_cookie();
        let key = QuotaKey { network: from.network(), proven };
        let place = admission::find_place(&mut self.clients, &self.upstream, key, cx.now)?;
        if let Some((late, limit)) = place.evicted {
            self.evict(late, limit, known, cx);
        }
        let useful_until = cx.now + CLIENT_TIMEOUT.max(self.settings.upstream.longest());
        let admitted = self.clients.admit(from, (key, place.quota), cx.now, useful_until);
        let pending = admitted.ok_or(Limit::RefusedPending)?;
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Admitted);
        self.clients.pending_queries[pending].fill(params, stage, question, scope);
        if let Some(validator) = &mut self.validator {
            validator.budgets.renew(pending);
        }
        let has_room = alias.is_none_or(|alias| self.clients.begin_at(pending, question.name, alias.reply));
        let progress = match has_room {
            true => match self.look_up_here(pending, cached != CacheLookup::Absent, cx) {
                Some(progress) => progress,
                None => self.wait_for_first(pending, question, known, cx),
            },
            false => Progress::Ends(NO_ROOM),
        };
        self.drive(pending, progress, cx);
        Ok(())
    }

    /// Ends a question in flight: stores the reply, and gives it to the pending queries. After a failure they get expired data if there are
    /// any. `reply` is none if no reply came, or none that clients can use.
    pub(crate) fn complete(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        if self.validator.is_some() && self.is_validated(index) {
            return self.validate(index, reply, cx);
        }
        let Some(message) = reply else { return self.store_and_serve(index, &Outcome::Failed, cx) };
        let chain = Chain::follow(message);
        self.store_and_serve(index, &Outcome::Reply(message, &chain), cx);
    }

    /// Stores the outcome of a question in flight, and gives it to the pending queries.
    pub(crate) fn store_and_serve(
        &mut self,
        index: Index,
        outcome: &Outcome<'_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        match self.cache_parts().store(index, outcome, cx) {
            Served::AsItIs => self.serve(index, outcome, cx),
            Served::Instead(frame, length) => {
                // It was parsed before it was stored.
                if let Ok(message) = Message::parse(&frame[..length]) {
                    let chain = Chain::follow(&message);
                    self.serve(index, &Outcome::Reply(&message, &chain), cx);
                } else {
                    debug_assert!(false, "a stored message does not parse");
                    self.serve(index, outcome, cx);
                }
                self.frames.give(frame);
            }
            Served::Nothing => {}
        }
    }

    /// Gives the outcome of a question in flight to every pending query: each is answered, or continues with its next question.
    fn serve(&mut self, index: Index, outcome: &Outcome<'_, '_>, cx: &mut Context<'_, impl Outbox>) {
        let scope = self.upstream.outbound_queries[index].scope;
        let mut pending = self.upstream.complete(index, cx.out);
        // Replies and new queries no longer find this question, so the steps below cannot reach it again.
        let mut ended = LookupEnd { outcome, origin: Origin::Upstream, decision: None };
        let mut is_shared = false;
        while pending != NONE {
            let state = &mut self.clients.pending_queries[pending];
            let next = state.next;
            state.scope = state.scope.max(scope);
            if next != NONE && !is_shared {
                is_shared = true;
                self.answer_memo.begin();
            }
            let progress = self.step(pending, &mut ended, cx);
            self.drive(pending, progress, cx);
            pending = next;
        }
        if is_shared {
            cx.counters.add(Counter::CopiedAnswers, self.answer_memo.end());
        }
        let reply = match outcome {
            Outcome::Reply(message, _) => Some(message.bytes()),
            Outcome::Failed => None,
        };
        self.upstream.park_or_free(index, reply);
    }

    /// The loop: as long as the current question of a pending query has its outcome here, takes the next step.
    #[inline(always)]
    pub(crate) fn drive(&mut self, pending: Index, progress: Progress, cx: &mut Context<'_, impl Outbox>) {
        if !matches!(progress, Progress::Waits | Progress::Ended) {
            self.take_steps(pending, progress, STEPS, cx);
        }
    }

    /// Takes at most `room` steps. A resolution takes fewer than [`STEPS`]; one that takes as many has no end, and its client gets SERVFAIL.
    fn take_steps(
        &mut self,
        pending: Index,
        mut progress: Progress,
        room: usize,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        for _ in 0..room {
            progress = match progress {
                Progress::Found(found) => self.step_with(pending, found, cx),
                Progress::FoundSilence => {
                    let outcome = &Outcome::Failed;
                    let mut ended = LookupEnd { outcome, origin: Origin::Upstream, decision: None };
                    self.step(pending, &mut ended, cx)
                }
                Progress::Ends(end) => self.end(pending, &end, cx),
                Progress::Waits | Progress::Ended => return,
            };
        }
        match progress {
            Progress::Found(found) => self.frames.give(found.frame),
            Progress::FoundSilence | Progress::Ends(_) => {}
            Progress::Waits | Progress::Ended => return,
        }
        self.end(pending, &End::Endless(NO_END), cx);
    }

    /// Takes the next step with a reply that was found here.
    fn step_with(&mut self, pending: Index, found: Found, cx: &mut Context<'_, impl Outbox>) -> Progress {
        let Found { frame, length, origin } = found;
        let progress = match Message::parse(&frame[..length]) {
            Ok(message) => {
                let chain = Chain::follow(&message);
                let outcome = &Outcome::Reply(&message, &chain);
                self.step(pending, &mut LookupEnd { outcome, origin, decision: None }, cx)
            }
            // Local record data do not have the form of their type.
            Err(_) => Progress::Ends(End::Empty(Rcode::SERVFAIL, None)),
        };
        self.frames.give(frame);
        progress
    }

    /// Takes the next step of a pending query after the outcome of its current question: every stage, and every way on from it.
    fn step(
        &mut self,
        pending: Index,
        ended: &mut LookupEnd<'_, '_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Progress {
        let LookupEnd { outcome, origin, decision } = ended;
        let (outcome, origin) = (*outcome, *origin);
        match (origin, outcome) {
            (Origin::Alias, Outcome::Reply(reply, chain)) => return self.chase(pending, reply, chain, cx),
            (Origin::Upstream, _) => {
                if let Some(progress) = self.here().overrule(pending, outcome, cx) {
                    return progress;
                }
            }
            (Origin::Filtered | Origin::Local | Origin::Alias | Origin::Denial, _) => {}
        }
        if let Outcome::Reply(message, chain) = outcome
            && chain.has_no_end(message)
        {
            return Progress::Ends(End::Endless(NO_END));
        }
        cx.out.trace(Subject::PendingQuery(pending), || lookup_ended(&self.clients, pending, outcome));
        if let (Origin::Denial, Outcome::Reply(reply, chain)) = (origin, outcome) {
            return self.end(pending, &End::Reply(reply, chain), cx);
        }
        let (query, dns64) = (&self.clients.pending_queries[pending], &self.settings.dns64);
        let mut rules;
        let next = match query.stage {
            Stage::Direct => steps::direct(query, outcome, origin),
            Stage::SuppressedA => steps::suppressed_a(query, outcome, origin),
            Stage::Aaaa => {
                let decision = *decision.get_or_insert_with(|| decide(outcome, dns64));
                let usable = match (decision, outcome) {
                    (AaaaDecision::Pass(PassReason::RealAaaa), Outcome::Reply(reply, chain))
                        if dns64.rules.may_verify() && origin != Origin::Local =>
                    {
                        verify_real(pending, query, (reply, chain), dns64, &mut self.untried, cx)
                    }
                    _ => Usable::All,
                };
                steps::aaaa(query, decision, outcome, dns64, usable)
            }
            Stage::AaaaWithCd => steps::aaaa_with_cd(outcome, dns64),
            Stage::A => {
                rules = Applicable::none(&dns64.rules);
                steps::a(query, outcome, dns64, &mut rules)
            }
            Stage::NegativeAaaa => steps::negative_aaaa(outcome),
            // A reload has put an alias in the place of the addresses: its target is resolved as any other name.
            Stage::DeadAaaa
                if *decision.get_or_insert_with(|| decide(outcome, dns64)) == AaaaDecision::ChaseCname =>
            {
                steps::aaaa(query, AaaaDecision::ChaseCname, outcome, dns64, Usable::All)
            }
            Stage::DeadAaaa => {
                let is_verified = steps::verifies_real(query, dns64).is_some();
                let usable = match outcome {
                    // The verdicts count only if there are other addresses by now.
                    Outcome::Reply(reply, chain)
                        if is_verified && !verify::are_all_dead(reply, chain, dns64) =>
                    {
                        verify_real(pending, query, (reply, chain), dns64, &mut self.untried, cx)
                    }
                    _ => Usable::None,
                };
                steps::dead_aaaa(outcome, usable)
            }
        };
        match next {
            Next::Chase(reply, chain) => {
                let state = &mut self.clients.pending_queries[pending];
                if state.stage == Stage::DeadAaaa {
                    state.stage = Stage::Aaaa;
                }
                self.chase(pending, reply, chain, cx)
            }
            Next::AskA(ask) => self.ask_a(pending, ask, cx),
            Next::CheckBogus => self.check_bogus(pending, cx),
            Next::RecheckBogus => {
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::ReasksAaaa);
                let state = &mut self.clients.pending_queries[pending];
                (state.stage, state.bogus_recheck, state.has_stale) = (Stage::Aaaa, true, false);
                // Without CD the cache holds only the failure that is being checked.
                self.ask_upstream(pending, cx)
            }
            Next::AskNegativeAaaa(addresses, counts) => {
                let state = &mut self.clients.pending_queries[pending];
                trace_addresses(pending, state.negative_ttl, &addresses, cx);
                count_synthesis(state, cx.counters, &counts);
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::AsksNegativeAaaa);
                state.stage = Stage::NegativeAaaa;
                self.look_up(pending, cx)
            }
            Next::NoGateway(addresses, counts) => {
                let state = &mut self.clients.pending_queries[pending];
                trace_addresses(pending, state.negative_ttl, &addresses, cx);
                count_synthesis(state, cx.counters, &counts);
                let lack = counts.lack().unwrap_or(Lack::Gateway);
                self.end(pending, &End::NoGateway(addresses.reply, addresses.chain, lack), cx)
            }
            Next::Synthesize(addresses) => {
                trace_addresses(pending, query.negative_ttl, &addresses, cx);
                let settings = &self.settings;
                let Resolver { clients, upstream, cache, frames, answer_memo, needs, .. } = self;
                let parts = CacheParts { settings, clients, upstream, cache, frames };
                let mut copy = parts.frame_for_synthesis(pending, &addresses, cx.now);
                let writer = Writer { settings, clients, upstream, answer_memo };
                let needs = needs.as_deref_mut();
                let written = writer.synthesize(pending, &addresses, copy.as_deref_mut(), needs, cx);
                if let Some(copy) = copy {
                    let parts = CacheParts { settings, clients, upstream, cache, frames };
                    parts.store_synthesis(pending, copy, written, cx.now);
                }
                self.free(pending, cx)
            }
            Next::Forward(forward) => {
                match forward.reason {
                    Some(reason) => {
                        self.tell_reason(pending, reason, cx);
                        self.cache_parts().mark_valid_for_dns64(pending, forward.reply, reason);
                    }
                    None if forward.is_for_all => self.cache_parts().mark_valid(pending, None),
                    None => {}
                }
                let steps::Forward { reply, chain, .. } = forward;
                let end = match forward.is_filtered {
                    true => End::FilteredReply(reply, chain),
                    false => End::Reply(reply, chain),
                };
                self.end(pending, &end, cx)
            }
            Next::ForwardReal(forward) => {
                self.tell_reason(pending, PassReason::RealAaaa, cx);
                match self.here().real_addresses(pending, &forward) {
                    Some(found) => self.end_with(pending, found, cx),
                    None => Progress::Ends(NO_ROOM),
                }
            }
            Next::AskDeadAaaa => {
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::AsksDeadAaaa);
                self.clients.pending_queries[pending].stage = Stage::DeadAaaa;
                self.look_up(pending, cx)
            }
            Next::SuppressA(reply, chain) => {
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::SuppressesA {
                    rule: steps::suppresses_a(query, dns64),
                });
                cx.counters.count(Counter::SuppressedA);
                match self.here().without_addresses(pending, reply, chain) {
                    Some(found) => self.end_with(pending, found, cx),
                    None => Progress::Ends(NO_ROOM),
                }
            }
            Next::Bogus => {
                self.cache_parts().mark_bogus(pending);
                self.tell_reason(pending, PassReason::Bogus, cx);
                Progress::Ends(End::Empty(Rcode::SERVFAIL, Some(ede::DNSSEC_BOGUS)))
            }
            Next::AliasesOnly => Progress::Ends(End::AliasesOnly),
            Next::Failed(reason) => {
                if let Some(reason) = reason {
                    self.tell_reason(pending, reason, cx);
                }
                Progress::Ends(End::Failed)
            }
        }
    }

    /// Ends a resolution with a reply that was made here.
    fn end_with(&mut self, pending: Index, found: Found, cx: &mut Context<'_, impl Outbox>) -> Progress {
        let Found { frame, length, .. } = found;
        let progress = match Message::parse(&frame[..length]) {
            Ok(message) => self.end(pending, &End::Reply(&message, &Chain::follow(&message)), cx),
            Err(_) => Progress::Ends(End::Empty(Rcode::SERVFAIL, None)),
        };
        self.frames.give(frame);
        progress
    }

    /// Counts and tells why the result of the last lookup is the answer of a query with DNS64.
    fn tell_reason(&mut self, pending: Index, reason: PassReason, cx: &mut Context<'_, impl Outbox>) {
        cx.counters.count(reason.counter());
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::AnswerIs(reason));
    }

    /// Looks up the current question of a pending query. This is the lookup order of the engine: special-use names behind an alias, local data, RPZ,
    /// cache, questions in flight, upstreams.
    fn look_up(&mut self, pending: Index, cx: &mut Context<'_, impl Outbox>) -> Progress {
        match self.look_up_here(pending, true, cx) {
            Some(progress) => progress,
            None => self.ask_upstream(pending, cx),
        }
    }

    /// Looks up the current question of a pending query without the upstreams. None: they have to be asked. `may_be_cached`: the cache may
    /// have the reply.
    #[inline]
    fn look_up_here(
        &mut self,
        pending: Index,
        may_be_cached: bool,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        let mut found = None;
        if self.clients.pending_queries[pending].chase != NONE {
            found = self.here().look_in_special_use(pending, cx);
        }
        if found.is_none() && !self.settings.local_data.is_empty() {
            found = self.here().look_in_local_data(pending, cx);
        }
        if found.is_none() && !self.settings.rpz.is_empty() {
            found = self.here().apply_to_question(pending, cx);
        }
        if found.is_none() && may_be_cached && !self.cache.is_off() {
            found = self.look_in_cache(pending, cx);
        }
        if found.is_none() && self.validator.is_some() {
            found = self.look_in_denials(pending, cx);
        }
        found
    }

    /// Finds the denial of a pending query's current name among the proofs of earlier replies, under the conditions under which the cache may
    /// have the reply (RFC 8198).
    #[inline(never)]
    fn look_in_denials(&mut self, pending: Index, cx: &mut Context<'_, impl Outbox>) -> Option<Progress> {
        let moment = self.moment(cx);
        let Resolver { validator: Some(validator), clients, upstream, cache, frames, .. } = self else {
            return None;
        };
        let lookup = clients.current_question(pending);
        let question = clients.upstream_question(pending, lookup.qtype);
        // Who sets CD gets the reply of an upstream.
        if lookup.class != Class::IN
            || !cache.is_cacheable(&question)
            || question.query_flags.has(QueryFlags::CD)
        {
            return None;
        }
        let group = upstream.servers.group_number(question.forward_key());
        let mut room = [0; QUESTION];
        let asked = (group, lookup.question(&mut room));
        let mut frame = frames.take();
        let Some(reply) = validator.deny(asked, Payer::Query(pending), moment, &mut frame) else {
            frames.give(frame);
            return None;
        };
        cx.counters.count(match reply.proof {
            Type::NSEC => Counter::DeniedByNsec,
            _ => Counter::DeniedByNsec3,
        });
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::DeniesName {
            zone: reply.zone.as_wire(),
            proof: reply.proof,
        });
        self.refresh_zones(cx);
        Some(Progress::Found(Found { frame, length: reply.length, origin: Origin::Upstream }))
    }

    /// Has a pending query wait for the upstreams' reply to its current question, which is in flight already or is asked now.
    fn ask_upstream(&mut self, pending: Index, cx: &mut Context<'_, impl Outbox>) -> Progress {
        let Resolver { clients, upstream, .. } = self;
        let state = &clients.pending_queries[pending];
        let (qtype, stage) = (state.current_type(), state.stage);
        match join::ask(clients, upstream, pending, qtype, cx) {
            Some(outbound) => {
                join::trace_wait(clients, pending, qtype, outbound, cx);
                self.wait(pending, outbound, cx)
            }
            // The A lookup has shown that the name exists.
            None if stage == Stage::NegativeAaaa => Progress::Ends(End::AliasesOnly),
            None => Progress::Ends(NO_ROOM),
        }
    }

    /// Has a pending query wait for a question in flight.
    #[inline]
    pub(crate) fn wait(
        &mut self,
        pending: Index,
        outbound: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Progress {
        if join::attach(&mut self.clients, &mut self.upstream, outbound, pending) && !self.cache.is_off() {
            cx.counters.count(Counter::CacheMisses);
        }
        Progress::Waits
    }

    /// Has a new pending query wait for its question: one in flight already (`known`), or a new one. For a query with DNS64 the A lookup
    /// is asked with it, or later, as configured.
    fn wait_for_first(
        &mut self,
        pending: Index,
        question: &Question<'_>,
        known: Option<Index>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Progress {
        let Some(outbound) = join::join_or_launch(&mut self.upstream, question, known, cx) else {
            return Progress::Ends(NO_ROOM);
        };
        join::trace_wait(&self.clients, pending, question.qtype, outbound, cx);
        let progress = self.wait(pending, outbound, cx);
        if self.clients.pending_queries[pending].stage == Stage::Aaaa {
            //= RFC 6147 section 5.1.8: requirements 15, 15b
            match self.settings.dns64.lookup {
                _ if known.is_some() => {
                    if join::asks_a_at_once(&self.settings.dns64, &self.upstream, outbound) {
                        self.ask_a_early(pending, cx);
                    }
                }
                Lookup::Sequential => {}
                Lookup::Parallel => self.ask_a_early(pending, cx),
                Lookup::Stagger(span) => self.upstream.set_stagger(outbound, cx.now + span),
            }
        }
        progress
    }

    /// Asks the A lookup of a pending query before its AAAA lookup is decided.
    pub(crate) fn ask_a_early(&mut self, pending: Index, cx: &mut Context<'_, impl Outbox>) {
        let Resolver { clients, upstream, cache, .. } = self;
        join::ask_a_early(clients, upstream, cache, pending, cx);
        let outbound = clients.pending_queries[pending].a_outbound_query;
        if let Some(validator) = &mut self.validator
            && outbound != NONE
        {
            validator.budgets.note_asker(outbound, pending);
        }
    }

    /// Asks for the name at the end of the chain of a reply, or answers SERVFAIL if there are too many aliases or chases.
    fn chase(
        &mut self,
        pending: Index,
        reply: &Message<'_>,
        chain: &Chain<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Progress {
        if let Err(reason) = self.clients.follow_alias(pending, reply, chain.end()) {
            return Progress::Ends(End::Endless(reason));
        }
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::ChasesCname {
            reply,
            name: self.clients.current_question(pending).name,
        });
        // The bogus check and the early A question were about another name.
        self.clients.pending_queries[pending].bogus_recheck = false;
        join::release_early_a(&mut self.clients, &mut self.upstream, pending);
        cx.counters.count(Counter::CnameHops);
        self.look_up(pending, cx)
    }

    /// Continues with the A lookup.
    fn ask_a(&mut self, pending: Index, ask: AskA, cx: &mut Context<'_, impl Outbox>) -> Progress {
        let AskA { cause, negative_ttl, is_secure } = ask;
        let state = &mut self.clients.pending_queries[pending];
        let dns64 = &self.settings.dns64;
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::AsksA {
            cause,
            rule: match cause {
                Cause::Ignored => steps::ignores_real(state, dns64),
                Cause::Dead => steps::verifies_real(state, dns64),
                _ => None,
            },
        });
        let is_cacheable = self.cache.is_cacheable(&state.own_question());
        let least = if is_cacheable { self.settings.cache.min_ttl_secs } else { 0 };
        state.stage = Stage::A;
        state.cause = cause;
        state.negative_ttl = negative_ttl.map(|ttl| ttl.max(least));
        state.aaaa_secure = is_secure;
        match core::mem::replace(&mut state.a_outbound_query, NONE) {
            NONE => self.look_up(pending, cx),
            early => self.use_early_a(pending, early, cx),
        }
    }

    /// Uses an A question that was asked before the AAAA lookup was decided: takes its reply, or has the client wait for it.
    fn use_early_a(&mut self, pending: Index, early: Index, cx: &mut Context<'_, impl Outbox>) -> Progress {
        let outbound = &mut self.upstream.outbound_queries[early];
        if outbound.state != OutboundQueryState::Completed {
            outbound.early_a_users -= 1;
            // The cache may have expired data, and the upstream may be dead: then answer with them now.
            return match self.look_in_cache(pending, cx) {
                Some(progress) => progress,
                None => self.wait(pending, early, cx),
            };
        }
        let (scope, parked) = (outbound.scope, outbound.parked);
        let state = &mut self.clients.pending_queries[pending];
        state.scope = state.scope.max(scope);
        let found = match parked {
            NONE => Some(Progress::FoundSilence),
            NOT_PARKED => None,
            parked => {
                let mut frame = self.frames.take();
                let length = self.upstream.parked.copy(parked, &mut frame);
                Some(Progress::Found(Found { frame, length, origin: Origin::Upstream }))
            }
        };
        self.upstream.release_outbound_query(early);
        match found {
            Some(progress) => progress,
            None => self.look_up(pending, cx),
        }
    }

    /// Starts the check of a SERVFAIL that may mean a bogus answer: asks the AAAA lookup with CD set, and the A lookup.
    fn check_bogus(&mut self, pending: Index, cx: &mut Context<'_, impl Outbox>) -> Progress {
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::ChecksBogus);
        self.clients.pending_queries[pending].stage = Stage::AaaaWithCd;
        if self.clients.pending_queries[pending].a_outbound_query == NONE {
            self.ask_a_early(pending, cx);
        }
        cx.counters.count(Counter::BogusChecks);
        self.clients.pending_queries[pending].has_stale = false;
        match self.look_in_cache(pending, cx) {
            Some(progress) => progress,
            None => self.ask_upstream(pending, cx),
        }
    }

    /// Ends a pending query in favour of a new one, and tells its client: it is refused, or sent to TCP, as the limit says. Its question stays
    /// in flight until the current attempt is over, so that its reply is cached; if questions in flight have little room, it ends at once,
    /// unless it is `wanted`.
    #[cold]
    fn evict(
        &mut self,
        pending: Index,
        limit: Limit,
        wanted: Option<Index>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        cx.counters.count(limit.counter());
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Limited(limit));
        let PendingQuery { outbound, a_outbound_query, .. } = self.clients.pending_queries[pending];
        join::detach(&mut self.clients, &mut self.upstream, pending);
        let end = match limit.reaction() {
            Reaction::Slip => End::Evicted,
            Reaction::Refuse | Reaction::Drop => End::Empty(Rcode::REFUSED, None),
        };
        self.end(pending, &end, cx);
        for outbound in [outbound, a_outbound_query] {
            if outbound != NONE && Some(outbound) != wanted {
                self.upstream.end_if_crowded(outbound, cx.out);
            }
        }
    }

    /// Finds the reply to a pending query's current question in the cache, if it may be used.
    pub(crate) fn look_in_cache(
        &mut self,
        pending: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Progress> {
        self.cache_parts().look_up(pending, cx)
    }

    #[inline]
    fn cache_parts(&mut self) -> CacheParts<'_> {
        let Resolver { settings, clients, upstream, cache, frames, .. } = self;
        CacheParts { settings, clients, upstream, cache, frames }
    }

    #[inline]
    fn here(&mut self) -> Here<'_> {
        let Resolver { settings, clients, upstream, frames, .. } = self;
        Here { settings, clients, upstream, frames }
    }

    /// Ends a resolution: the client gets its response, and the pending query is free.
    fn end(&mut self, pending: Index, end: &End<'_, '_>, cx: &mut Context<'_, impl Outbox>) -> Progress {
        let Resolver { settings, clients, upstream, answer_memo, .. } = self;
        Writer { settings, clients, upstream, answer_memo }.end(pending, end, cx);
        self.free(pending, cx)
    }

    /// Frees a pending query that has its response, or will not get one.
    fn free(&mut self, pending: Index, cx: &mut Context<'_, impl Outbox>) -> Progress {
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Freed);
        let a_outbound_query = self.clients.free(pending, cx.counters);
        if a_outbound_query != NONE {
            self.upstream.release_outbound_query(a_outbound_query);
        }
        Progress::Ended
    }
}

/// Judges the real AAAA records in a reply, if a rule verifies those of the query.
#[cold]
fn verify_real(
    pending: Index,
    query: &PendingQuery,
    reply: (&Message<'_>, &Chain<'_>),
    dns64: &Dns64,
    untried: &mut Untried,
    cx: &mut Context<'_, impl Outbox>,
) -> Usable {
    let Some(rule) = steps::verifies_real(query, dns64) else { return Usable::All };
    cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Verifies { rule, now: cx.now });
    verify::judge(reply, dns64, query.name(), cx.now, untried)
}

/// The event that a pending query's lookup has ended.
fn lookup_ended<'n>(clients: &'n Clients, pending: Index, outcome: &Outcome<'n, 'n>) -> TraceEvent<'n> {
    let CurrentQuestion { name, qtype, .. } = clients.current_question(pending);
    let reply = match *outcome {
        Outcome::Reply(message, _) => Some(message),
        Outcome::Failed => None,
    };
    TraceEvent::LookupEnded { name, qtype, reply }
}

/// Tells of the addresses in a reply of the A lookup.
fn trace_addresses(
    pending: Index,
    negative_ttl: Option<u32>,
    addresses: &Addresses<'_, '_, '_>,
    cx: &mut Context<'_, impl Outbox>,
) {
    let Addresses { reply, chain, rules } = *addresses;
    cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Addresses {
        reply,
        chain,
        rules,
        negative_ttl,
    });
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
