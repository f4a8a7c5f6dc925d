//! The way of a reply through its validation, between its arrival and `driver.rs`: an untrusted reply becomes that of a perfect validating
//! upstream, and what follows works as if the upstream were trusted.
//!
//! ```text
//! complete ──> validate ──> run ──> Stepped::Verifies ──> Outbox::verify ──> on_verified ──┐
//!                            ▲  └─> Stepped::Asks ──────> a search: DS and DNSKEY asked     │
//!                            │  └─> Stepped::Ends ──┬───> conclude: stored and served       │
//!                            │                      └───> go_on with the search ──┐         │
//!                            └──────────── ready <────────────────────────────────┴─────────┘
//! ```
//!
//! The question is held meanwhile (`upstream/held.rs`), so equal questions join it. A failure of validation is never a failure of the
//! lookup: it is SERVFAIL with an extended error, from which nothing is synthesized (RFC 6147 section 5.5). A failure of the AAAA lookup is
//! believed in zones only that are proven to need no signatures: elsewhere it may be the work of somebody who drops replies.

use crate::base::slab::{Index, NONE};
use crate::context::Context;
use crate::counters::Counter;
use crate::engine::Resolver;
use crate::interface::{Outbox, SignedData, VerificationId};
use crate::limits::{PAYERS_COMPARED, SEARCHES_IN_A_ROW};
use crate::message::cname_chain::Chain;
use crate::message::question::{QUESTION, QueryFlags, Question as Asked};
use crate::message::reply::Outcome;
use crate::trace::{Subject, TraceEvent, ZoneState};
use crate::upstream::Upstream;
use crate::upstream::parked_replies::NOT_PARKED;
use crate::validator::budgets::Payer;
use crate::validator::jobs::{WaitingJob, price_us};
use crate::validator::reply::{write_insecure, write_refusal, write_secure, write_upstream_failure};
use crate::validator::searches::{Part, Search};
use crate::validator::tasks::{Purpose, Waits};
use crate::validator::zones::Knowledge;
use crate::validator::{Learned, Moment, Stepped, Validator, ends};
use dnssec::{Bogus, Groups, LowerName, Question, Status, Timestamp, Verdict};
use wire::{Class, EdeCode, Message, Rcode, Section, Type, ede};

/// Longest time for which it is known that a zone needs no signatures, in seconds, if no proof of its own says so: the zone above needs none.
const INHERITED_SECS: u32 = 300;

impl Resolver {
    /// True if the reply to a question goes through validation.
    pub(crate) fn is_validated(&self, index: Index) -> bool {
        let outbound = &self.upstream.outbound_queries[index];
        const UNCHECKED: QueryFlags =
            QueryFlags::CD.with(QueryFlags::PROBE, true).with(QueryFlags::OWN, true);
        outbound.query_flags.has(QueryFlags::CHAIN)
            || self.settings.validation.is_some()
                && outbound.class == Class::IN
                && !outbound.query_flags.has_any(UNCHECKED)
    }

    /// Begins the validation of the reply to a question, or takes a reply about the keys of a zone.
    pub(crate) fn validate(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        if self.upstream.outbound_queries[index].query_flags.has(QueryFlags::CHAIN) {
            return self.on_zone_reply(index, reply, cx);
        }
        let Some(validator) = &mut self.validator else { return };
        let has_data = |message: &&Message<'_>| {
            matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN)
        };
        let purpose = match reply.filter(has_data) {
            Some(_) => Purpose::Reply(index),
            None => {
                // A server that cannot answer does not make a bogus reply good.
                let place = validator.asked_again.iter().position(|(outbound, _)| *outbound == index);
                if let Some(place) = place {
                    let (_, reason) = validator.asked_again.swap_remove(place);
                    return self.refuse(index, reason.ede(), cx);
                }
                if self.upstream.outbound_queries[index].qtype != Type::AAAA {
                    return self.pass_on(index, reply, cx);
                }
                Purpose::Failure(index)
            }
        };
        let parked = reply.map_or(NONE, |message| self.upstream.parked.park(message.bytes()));
        let task = if parked == NOT_PARKED { None } else { validator.begin(purpose, parked) };
        if task.is_none() {
            self.upstream.parked.free(parked);
            return self.refuse(index, ede::NOT_READY, cx);
        }
        self.upstream.hold(index, cx.now, cx.out);
        self.work(cx);
    }

    /// Takes the outcome of a verification.
    pub(crate) fn on_verified(
        &mut self,
        id: VerificationId,
        is_valid: bool,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let unix = self.moment(cx).unix;
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let VerificationId { slot: index, serial } = id;
        if index >= validator.tasks.touched() {
            return;
        }
        let task = &mut validator.tasks[index];
        // A wrong signature is not remembered, so it costs a second time when the reply comes again.
        let extra_us = if is_valid { 0 } else { task.price_us };
        validator.jobs.come_back(task.flow, extra_us);
        if task.serial == serial && task.waits == Waits::Verification {
            task.waits = Waits::Turn;
            let message = task.message;
            validator.verified(index, upstream.parked.get(message), is_valid, unix);
            validator.ready.push_back(index);
        }
        self.send_waiting(cx);
        self.work(cx);
    }

    /// Does the next steps of all validations that can go on.
    fn work(&mut self, cx: &mut Context<'_, impl Outbox>) {
        while let Some(validator) = &mut self.validator
            && let Some(task) = validator.ready.pop_front()
        {
            self.run(task, cx);
        }
    }

    /// Does the next step of a validation.
    fn run(&mut self, task: Index, cx: &mut Context<'_, impl Outbox>) {
        let moment = self.moment(cx);
        let payer = self.payer(task);
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let stepped = match (payer, validator.tasks[task].purpose) {
            (None, _) => ends(Status::Bogus(Bogus::TooMuchWork)),
            (Some(_), Purpose::Failure(index)) => {
                match LowerName::from_wire(upstream.outbound_queries[index].name()) {
                    Some(name) => validator.step_to_zone(&name, moment),
                    None => ends(Status::Bogus(Bogus::Malformed)),
                }
            }
            (Some(payer), _) => {
                let message = upstream.parked.get(validator.tasks[task].message);
                validator.step(task, message, payer, moment)
            }
        };
        let payer = payer.unwrap_or(Payer::Task(task));
        match stepped {
            Stepped::Verifies => self.verify(task, payer, cx),
            Stepped::Asks { question, is_signer } => {
                if let Err(reason) = self.await_zone(task, &question, is_signer, payer, cx) {
                    let verdict =
                        Verdict { status: Status::Bogus(reason), outcome: dnssec::Outcome::Failure, ttl: 0 };
                    self.end_validation(task, &verdict, Some(Learned::Failed(reason)), cx);
                }
            }
            Stepped::Ends(verdict, learned) => self.end_validation(task, &verdict, learned, cx),
        }
    }

    /// Time of a step.
    fn moment(&self, cx: &Context<'_, impl Outbox>) -> Moment {
        Moment { now: cx.now, unix: Timestamp(self.clients.clock.unix_secs(cx.now)) }
    }

    /// Payer of a validation: the client query with the most left of those that wait for it, directly or over searches. None: nobody waits
    /// for a search any more.
    fn payer(&self, mut task: Index) -> Option<Payer> {
        let Resolver { validator: Some(validator), clients, upstream, .. } = self else { return None };
        for _ in 0..SEARCHES_IN_A_ROW {
            match validator.tasks[task].purpose {
                Purpose::Reply(index) | Purpose::Failure(index) => {
                    let some = |query: Index| (query != NONE).then_some(query);
                    let first = some(upstream.outbound_queries[index].pending_queries);
                    let next = |&query: &Index| some(clients.pending_queries[query].next);
                    let waiting = core::iter::successors(first, next).take(PAYERS_COMPARED);
                    let query = validator.budgets.richest(waiting).or_else(|| validator.budgets.asker(index));
                    return Some(query.map_or(Payer::Task(task), Payer::Query));
                }
                Purpose::Delegation(search) | Purpose::Keys(search) => {
                    task = validator.searches[search].waiting;
                    if task == NONE {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Has the driver verify the signature that the last step asked for, or puts it behind others.
    fn verify(&mut self, task: Index, payer: Payer, cx: &mut Context<'_, impl Outbox>) {
        let network = match payer {
            Payer::Query(query) => self.clients.pending_queries[query].client.network().bits(),
            Payer::Task(_) => 0,
        };
        let flow = self.key.hash_number(network);
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let Some(signed) = SignedData::read(validator.job()) else { return };
        let price_us = price_us(signed.algorithm, signed.signature);
        let octets = upstream.parked.park(validator.job());
        let state = &mut validator.tasks[task];
        (state.waits, state.flow, state.price_us) = (Waits::Verification, flow, price_us);
        if octets == NOT_PARKED {
            return self.end_unverified(task, cx);
        }
        validator.jobs.wait(flow, WaitingJob { task, octets, price_us });
        self.send_waiting(cx);
    }

    /// Gives verifications to the driver as long as there is room for them.
    fn send_waiting(&mut self, cx: &mut Context<'_, impl Outbox>) {
        while let Resolver { validator: Some(validator), upstream, .. } = self
            && let Some(WaitingJob { task, octets, .. }) = validator.jobs.next()
        {
            let id = VerificationId { slot: task, serial: validator.tasks[task].serial };
            let is_taken = SignedData::read(upstream.parked.get(octets))
                .is_some_and(|signed| cx.out.verify(id, &signed));
            upstream.parked.free(octets);
            match is_taken {
                true => validator.jobs.leave(),
                false => self.end_unverified(task, cx),
            }
        }
    }

    /// Ends a validation for which there is no room: what it is about stays unknown.
    #[cold]
    fn end_unverified(&mut self, task: Index, cx: &mut Context<'_, impl Outbox>) {
        let reason = Bogus::TooMuchWork;
        let verdict = Verdict { status: Status::Bogus(reason), outcome: dnssec::Outcome::Failure, ttl: 0 };
        self.end_validation(task, &verdict, Some(Learned::Failed(reason)), cx);
    }

    /// Has a validation wait for the search of a zone, which is under way or begins now.
    ///
    /// # Errors
    ///
    /// The reason why there is no such search: `TooMuchWork`, or `Denial` if the search would wait for itself.
    fn await_zone(
        &mut self,
        task: Index,
        question: &Question,
        is_signer: bool,
        payer: Payer,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Result<(), Bogus> {
        let (name, has_anchors) = match question {
            Question::Anchor(name) => (name, true),
            Question::Delegation(name) => (name, false),
        };
        let Resolver { validator: Some(validator), .. } = self else { return Err(Bogus::TooMuchWork) };
        let own = match validator.tasks[task].purpose {
            Purpose::Delegation(search) | Purpose::Keys(search) => Some(search),
            Purpose::Reply(_) | Purpose::Failure(_) => None,
        };
        let search = match validator.searches.find(name) {
            Some(search) if own.is_some_and(|own| validator.waits_for(search, own)) => {
                return Err(Bogus::Denial);
            }
            Some(search) => search,
            None => {
                if !validator.budgets.of(payer).ask() {
                    return Err(Bogus::TooMuchWork);
                }
                let asks_keys = has_anchors || is_signer && validator.budgets.of(payer).ask();
                let search = validator.searches.begin(name, has_anchors).ok_or(Bogus::TooMuchWork)?;
                self.ask_for_zone(search, Type::DS, !has_anchors, cx);
                self.ask_for_zone(search, Type::DNSKEY, asks_keys, cx);
                search
            }
        };
        let Resolver { validator: Some(validator), .. } = self else { return Err(Bogus::TooMuchWork) };
        let waiting = core::mem::replace(&mut validator.searches[search].waiting, task);
        let state = &mut validator.tasks[task];
        (state.waits, state.next) = (Waits::Zone(search), waiting);
        self.ask_a_meanwhile(task, cx);
        // A question for which there was no room has its end already.
        self.go_on(search, cx);
        Ok(())
    }

    /// Asks the A lookup of the clients whose negative AAAA reply waits for a zone (RFC 6147 section 5.1.8): both take a round trip. Nothing
    /// of the A reply is used before the AAAA reply is proven.
    fn ask_a_meanwhile(&mut self, task: Index, cx: &mut Context<'_, impl Outbox>) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let Purpose::Reply(index) = validator.tasks[task].purpose else { return };
        let is_negative = || {
            let octets = upstream.parked.get(validator.tasks[task].message);
            Message::parse(octets)
                .is_ok_and(|message| message.rcode() == Rcode::NOERROR && message.count(Section::Answer) == 0)
        };
        if upstream.outbound_queries[index].qtype == Type::AAAA && is_negative() {
            self.ask_a_for_all(index, cx);
        }
    }

    /// Asks one of the questions of a search, if it `is_wanted`.
    fn ask_for_zone(
        &mut self,
        search: Index,
        qtype: Type,
        is_wanted: bool,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Resolver { validator: Some(validator), upstream, key, .. } = self else { return };
        if !is_wanted {
            return;
        }
        let name = validator.searches[search].name;
        let name = name.as_wire();
        let question = Asked {
            name,
            hash: key.hash(name),
            qtype,
            class: Class::IN,
            query_flags: QueryFlags::RD.with(QueryFlags::CHAIN, true),
            subnet: None,
        };
        let outbound = match upstream.outbound_queries.find(&question) {
            Some(outbound) => Some(outbound),
            None => upstream.launch(&question, cx),
        };
        *validator.searches[search].part(qtype) = match outbound {
            Some(outbound) => {
                upstream.outbound_queries[outbound].early_a_users += 1;
                Part::Asked(outbound)
            }
            // As a question without a reply.
            None => Part::Replied(NONE),
        };
    }

    /// Takes the end of a question about the keys of a zone.
    fn on_zone_reply(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let _ = self.upstream.complete(index, cx.out);
        self.upstream.park_or_free(index, reply.map(|message| message.bytes()));
        let Some(validator) = &mut self.validator else { return };
        let Some((search, qtype)) = validator.searches.find_asked(index) else { return };
        *validator.searches[search].part(qtype) = Part::Replied(index);
        self.go_on(search, cx);
        self.work(cx);
    }

    /// Takes the next step of a search whose replies have come, or that was told what they say.
    fn go_on(&mut self, search: Index, cx: &mut Context<'_, impl Outbox>) {
        let Resolver { validator: Some(validator), .. } = self else { return };
        let Search { ds, keys, task, .. } = validator.searches[search];
        if task != NONE {
            return;
        }
        match (ds, keys) {
            (Part::Replied(outbound), _) => {
                validator.searches[search].ds = Part::Used;
                match self.take_zone_reply(outbound) {
                    Some(message) => self.begin_for(search, Purpose::Delegation(search), message, cx),
                    None => self.end_search(search, Some(Knowledge::Unproven(Bogus::Unreachable)), 0, cx),
                }
            }
            (Part::Used, Part::Replied(outbound)) => {
                validator.searches[search].keys = Part::Used;
                match self.take_zone_reply(outbound) {
                    Some(message) => self.try_keys(search, message, cx),
                    None => self.end_search(search, Some(Knowledge::Bogus(Bogus::Unreachable)), 0, cx),
                }
            }
            (Part::Used, Part::NotAsked) => self.ask_for_keys(search, cx),
            (Part::Asked(_) | Part::NotAsked, _) | (Part::Used, Part::Asked(_) | Part::Used) => {}
        }
    }

    /// Asks for the keys of a zone that has DS records.
    fn ask_for_keys(&mut self, search: Index, cx: &mut Context<'_, impl Outbox>) {
        let Some(validator) = &self.validator else { return };
        let waiting = validator.searches[search].waiting;
        let payer = if waiting == NONE { None } else { self.payer(waiting) };
        let Some(validator) = &mut self.validator else { return };
        if !payer.is_some_and(|payer| validator.budgets.of(payer).ask()) {
            return self.end_search(search, None, 0, cx);
        }
        self.ask_for_zone(search, Type::DNSKEY, true, cx);
        self.go_on(search, cx);
    }

    /// Takes the parked reply of a question about a zone. None: there is none.
    fn take_zone_reply(&mut self, outbound: Index) -> Option<Index> {
        if outbound == NONE {
            return None;
        }
        let parked = core::mem::replace(&mut self.upstream.outbound_queries[outbound].parked, NONE);
        self.upstream.release_outbound_query(outbound);
        (!matches!(parked, NONE | NOT_PARKED)).then_some(parked)
    }

    /// Begins the validation of a reply about a zone.
    fn begin_for(
        &mut self,
        search: Index,
        purpose: Purpose,
        message: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Some(validator) = &mut self.validator else { return };
        match validator.begin(purpose, message) {
            Some(task) => validator.searches[search].task = task,
            None => {
                self.upstream.parked.free(message);
                self.end_search(search, None, 0, cx);
            }
        }
    }

    /// Puts the keys of a zone on trial.
    fn try_keys(&mut self, search: Index, message: Index, cx: &mut Context<'_, impl Outbox>) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        match validator.try_keys(search, upstream.parked.get(message)) {
            Ok(()) => self.begin_for(search, Purpose::Keys(search), message, cx),
            Err(knowledge) => {
                let secs = validator.searches[search].ds_secs;
                upstream.parked.free(message);
                self.end_search(search, Some(knowledge), secs, cx);
            }
        }
    }

    /// Ends a search with what it has found, which holds for some seconds. None: it has found nothing, and those who wait go on without.
    fn end_search(
        &mut self,
        search: Index,
        found: Option<Knowledge>,
        secs: u32,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let Search { name, ds, keys, mut waiting, .. } = validator.searches[search];
        let state = found.as_ref().map_or(ZoneState::GivenUp, Knowledge::state);
        cx.out.trace(Subject::Query, || TraceEvent::ZoneSearched { zone: name.as_wire(), state });
        match found {
            Some(failure @ (Knowledge::Bogus(_) | Knowledge::Unproven(_))) => {
                validator.zones.enter_failure(name.as_wire(), failure, cx.now);
            }
            Some(knowledge) => validator.zones.enter(name.as_wire(), knowledge, secs, cx.now),
            None => {}
        }
        for part in [ds, keys] {
            if let Part::Asked(outbound) | Part::Replied(outbound) = part
                && outbound != NONE
            {
                upstream.release_outbound_query(outbound);
            }
        }
        validator.searches.end(search);
        while waiting != NONE {
            let task = &mut validator.tasks[waiting];
            task.waits = Waits::Turn;
            validator.ready.push_back(waiting);
            waiting = core::mem::replace(&mut task.next, NONE);
        }
    }

    /// Does what the verdict of a validation means for what it was about.
    fn end_validation(
        &mut self,
        task: Index,
        verdict: &Verdict,
        learned: Option<Learned>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let message = validator.tasks[task].message;
        match validator.tasks[task].purpose {
            Purpose::Reply(index) => self.conclude(task, index, verdict, cx),
            Purpose::Failure(index) => self.conclude_failure(task, index, verdict, cx),
            Purpose::Delegation(search) => {
                validator.searches[search].task = NONE;
                validator.tasks.give(task);
                upstream.parked.free(message);
                let secs = if verdict.ttl == u32::MAX { INHERITED_SECS } else { verdict.ttl };
                match learned {
                    Some(Learned::Signed) => self.go_on(search, cx),
                    Some(Learned::Known(knowledge)) => self.end_search(search, Some(knowledge), secs, cx),
                    // Another resolution may have more left.
                    Some(Learned::Failed(Bogus::TooMuchWork)) | None => self.end_search(search, None, 0, cx),
                    Some(Learned::Failed(reason)) => {
                        self.end_search(search, Some(Knowledge::Unproven(reason)), 0, cx);
                    }
                }
            }
            Purpose::Keys(search) => {
                let found = match verdict.status {
                    Status::Secure => Some(validator.all_keys(search, upstream.parked.get(message))),
                    Status::Bogus(Bogus::TooMuchWork) => None,
                    Status::Bogus(reason) => Some(Knowledge::Bogus(reason)),
                    // The keys on trial are those of a secure zone, and a failure was no reply with keys.
                    Status::Insecure(_) | Status::Failure => Some(Knowledge::Bogus(Bogus::Unreachable)),
                };
                let secs = verdict.ttl.min(validator.searches[search].ds_secs);
                validator.searches[search].task = NONE;
                validator.tasks.give(task);
                upstream.parked.free(message);
                self.end_search(search, found, secs, cx);
            }
        }
    }

    /// Ends the validation of a reply: the pending queries get it as its verdict says, or another server is asked.
    fn conclude(&mut self, task: Index, index: Index, verdict: &Verdict, cx: &mut Context<'_, impl Outbox>) {
        let Resolver { validator: Some(validator), upstream, frames, .. } = self else { return };
        trace_verdict(upstream, index, verdict, cx);
        let message = validator.tasks[task].message;
        let is_permissive = validator.config.as_ref().is_some_and(|config| config.permissive);
        let refused = match verdict.status {
            Status::Bogus(reason) if !is_permissive || reason == Bogus::Unreachable => Some(reason),
            _ => None,
        };
        let mut frame = frames.take();
        let length = match refused {
            Some(_) => None,
            None => write_verdict(validator, task, upstream.parked.get(message), verdict, &mut frame),
        };
        validator.tasks.give(task);
        upstream.parked.free(message);
        if let Some(reason) = refused
            && reason != Bogus::TooMuchWork
            && upstream.ask_another(index, cx)
        {
            if validator.asked_again.iter().all(|(outbound, _)| *outbound != index) {
                validator.asked_again.push((index, reason));
            }
            return self.frames.give(frame);
        }
        validator.asked_again.retain(|(outbound, _)| *outbound != index);
        validator.budgets.forget_asker(index);
        count(verdict.status, cx);
        match (refused, length.and_then(|length| Message::parse(&frame[..length]).ok())) {
            (None, Some(message)) => {
                let chain = Chain::follow(&message);
                self.store_and_serve(index, &Outcome::Reply(&message, &chain), cx);
            }
            (Some(reason), _) => self.refuse(index, reason.ede(), cx),
            // A reply that is too long once its names are compressed anew.
            (None, None) => self.refuse(index, ede::INVALID_DATA, cx),
        }
        self.frames.give(frame);
    }

    /// Ends the search for the zone of a name whose AAAA lookup has failed. Only where no signatures are needed is the failure what it
    /// seems.
    fn conclude_failure(
        &mut self,
        task: Index,
        index: Index,
        verdict: &Verdict,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Resolver { validator: Some(validator), upstream, frames, .. } = self else { return };
        trace_verdict(upstream, index, verdict, cx);
        let message = validator.tasks[task].message;
        let mut frame = frames.take();
        let length = match Message::parse(upstream.parked.get(message)) {
            Ok(message) => write_upstream_failure(&message, &mut frame),
            Err(_) => 0,
        };
        validator.tasks.give(task);
        upstream.parked.free(message);
        validator.budgets.forget_asker(index);
        let failure = Message::parse(&frame[..length]).ok();
        match verdict.status {
            Status::Insecure(_) => self.pass_on(index, failure.as_ref(), cx),
            status => {
                cx.counters.count(Counter::ValidatedIndeterminate);
                let reason = match (status, &failure) {
                    (Status::Bogus(reason), _) => reason.ede(),
                    (_, Some(_)) => ede::NO_REACHABLE_AUTHORITY,
                    (_, None) => ede::NETWORK_ERROR,
                };
                self.refuse(index, reason, cx);
            }
        }
        self.frames.give(frame);
    }

    /// Gives the end of a question to its pending queries, as it came.
    fn pass_on(&mut self, index: Index, reply: Option<&Message<'_>>, cx: &mut Context<'_, impl Outbox>) {
        match reply {
            Some(message) => {
                let chain = Chain::follow(message);
                self.store_and_serve(index, &Outcome::Reply(message, &chain), cx);
            }
            None => self.store_and_serve(index, &Outcome::Failed, cx),
        }
    }

    /// Gives SERVFAIL with an extended error to the pending queries of a question.
    fn refuse(&mut self, index: Index, reason: EdeCode, cx: &mut Context<'_, impl Outbox>) {
        let mut frame = self.frames.take();
        let outbound = &self.upstream.outbound_queries[index];
        let mut question = [0; QUESTION];
        let end = outbound.name().len();
        question[..end].copy_from_slice(outbound.name());
        wire::fold(&mut question[..end]);
        question[end..end + 2].copy_from_slice(&outbound.qtype.0.to_be_bytes());
        question[end + 2..end + 4].copy_from_slice(&outbound.class.0.to_be_bytes());
        let length = write_refusal(&question[..end + 4], reason, &mut frame);
        let failure = Message::parse(&frame[..length]);
        debug_assert!(failure.is_ok(), "a failure of our own parses");
        self.pass_on(index, failure.as_ref().ok(), cx);
        self.frames.give(frame);
    }
}

/// Writes a reply as its verdict says. Returns its octets. None: there is no room, or it does not parse.
fn write_verdict(
    validator: &Validator,
    task: Index,
    octets: &[u8],
    verdict: &Verdict,
    frame: &mut [u8],
) -> Option<usize> {
    let message = Message::parse(octets).ok()?;
    match verdict.status {
        Status::Secure => {
            let groups = Groups::of(&message).ok()?;
            write_secure(&groups, validator.tasks[task].validation.states(), verdict, frame)
        }
        Status::Insecure(reason) => write_insecure(&message, verdict, reason.ede(), frame),
        // Permissive.
        Status::Bogus(_) | Status::Failure => write_insecure(&message, verdict, None, frame),
    }
}

/// Tells of the verdict about the reply to a question, or about its failure.
fn trace_verdict(upstream: &Upstream, index: Index, verdict: &Verdict, cx: &mut Context<'_, impl Outbox>) {
    let outbound = &upstream.outbound_queries[index];
    cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::Validated {
        name: outbound.name(),
        qtype: outbound.qtype,
        status: verdict.status,
    });
}

/// Counts a verdict about a reply.
fn count(status: Status, cx: &mut Context<'_, impl Outbox>) {
    let result = match status {
        Status::Secure => Counter::ValidatedSecure,
        Status::Insecure(_) => Counter::ValidatedInsecure,
        Status::Bogus(Bogus::Unreachable) | Status::Failure => Counter::ValidatedIndeterminate,
        Status::Bogus(reason) => {
            cx.counters.count(Counter::of_bogus(reason.ede()));
            Counter::ValidatedBogus
        }
    };
    cx.counters.count(result);
}
