//! The way of a reply through its validation, between its arrival and `driver.rs`: an untrusted reply becomes that of a perfect validating
//! upstream, and what follows works as if the upstream were trusted.
//!
//! ```text
//! complete ──> validate ──> run ──> Stepped::Verifies ──> Outbox::verify ──> on_verified ──┐
//!                            ▲  └─> Stepped::Asks ──────> zone_searches.rs                  │
//!                            │  └─> Stepped::Ends ──┬───> conclude: stored and served       │
//!                            │                      └───> go_on with the search ──┐         │
//!                            └──────────── ready <────────────────────────────────┴─────────┘
//! ```
//!
//! The question is held meanwhile (`upstream/held.rs`), so equal questions join it. If the reply is bogus, it is asked again. A failure of
//! validation is never a failure of the lookup: it is SERVFAIL with an extended error, from which nothing is synthesized (RFC 6147 section
//! 5.5). A failure of the AAAA lookup is believed in zones only that are proven to need no signatures: elsewhere it may be the work of
//! somebody who drops replies.

use crate::base::slab::{Index, NONE};
use crate::cache::ttl::Caching;
use crate::context::Context;
use crate::counters::Counter;
use crate::engine::Resolver;
use crate::interface::{ClientNetwork, Outbox, SignedData, VerificationId};
use crate::limits::PAYERS_COMPARED;
use crate::message::cname_chain::Chain;
use crate::message::question::{QUESTION, QueryFlags};
use crate::message::reply::{Outcome, has_nxname};
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::in_flight::OutboundQuery;
use crate::upstream::parked_replies::NOT_PARKED;
use crate::validator::budgets::Payer;
use crate::validator::jobs::{Share, WaitingJob, price_us};
use crate::validator::reply::{write_insecure, write_refusal, write_secure, write_upstream_failure};
use crate::validator::tasks::{Purpose, Task, Waits};
use crate::validator::zones::Knowledge;
use crate::validator::{Learned, Moment, Stepped, Validator, ends};
use dnssec::{Answered, Bogus, Groups, LowerName, Sentinel, Status, Timestamp, Verdict};
use wire::{Class, EdeCode, Message, Rcode, Section, Type, ede};

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
                if let Some(reason) = validator.asked_again.take(index) {
                    let OutboundQuery { hash, qtype, .. } = self.upstream.outbound_queries[index];
                    validator.refusals.note(hash, qtype, cx.now);
                    self.upstream.end_checking(index);
                    count(Status::Bogus(reason), cx);
                    return self.give_kept_or_refuse(index, reason, cx);
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
        let (extra_us, outcome) = match is_valid {
            true => (0, Counter::SignatureValid),
            false => (task.price_us, Counter::SignatureWrong),
        };
        cx.counters.count(outcome);
        validator.jobs.come_back(task.share, extra_us);
        if task.serial == serial && task.waits == Waits::Verification {
            task.waits = Waits::Turn;
            if is_valid {
                validator.remembered.remember(task.digest);
            }
            let message = task.message;
            validator.verified(index, upstream.parked.get(message), is_valid, unix);
            validator.ready.push_back(index);
        }
        self.send_waiting(cx);
        self.work(cx);
    }

    /// Does the next steps of all validations that can go on.
    pub(super) fn work(&mut self, cx: &mut Context<'_, impl Outbox>) {
        while let Some(validator) = &mut self.validator
            && let Some(task) = validator.ready.pop_front()
        {
            self.run(task, cx);
            self.refresh_zones(cx);
        }
    }

    /// Does the next step of a validation.
    fn run(&mut self, task: Index, cx: &mut Context<'_, impl Outbox>) {
        let moment = self.moment(cx);
        let payer = self.payer(task);
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let stepped = match (payer, validator.tasks[task].purpose) {
            (None, _) => ends(Status::Bogus(Bogus::TooMuchWork)),
            _ if validator.tasks[task].is_exhausted => ends(Status::Bogus(Bogus::TooMuchWork)),
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
    pub(super) fn moment(&self, cx: &Context<'_, impl Outbox>) -> Moment {
        Moment { now: cx.now, unix: Timestamp(self.clients.clock.unix_secs(cx.now)) }
    }

    /// Payer of a validation: the client query with the most left of those that wait for it, directly or over searches. None: nobody waits
    /// for a search any more.
    fn payer(&self, task: Index) -> Option<Payer> {
        let validator = self.validator.as_ref()?;
        match validator.tasks[task].purpose {
            Purpose::Reply(index) | Purpose::Failure(index) => {
                Some(self.payer_of_question(index).map_or(Payer::Task(task), Payer::Query))
            }
            Purpose::Delegation(search) | Purpose::Keys(search) => {
                let of_itself = validator.searches[search].is_refresh.then_some(Payer::Task(task));
                self.payer_of_search(search).or(of_itself)
            }
        }
    }

    /// Client query with the most left of those that wait for a question.
    pub(super) fn payer_of_question(&self, index: Index) -> Option<Index> {
        let Resolver { validator: Some(validator), clients, upstream, .. } = self else { return None };
        let some = |query: Index| (query != NONE).then_some(query);
        let first = some(upstream.outbound_queries[index].pending_queries);
        let next = |&query: &Index| some(clients.pending_queries[query].next);
        let waiting = core::iter::successors(first, next).take(PAYERS_COMPARED);
        validator.budgets.richest(waiting).or_else(|| validator.budgets.asker(index))
    }

    /// Has the driver verify the signature that the last step asked for, or puts it behind others. One that was found valid lately is not
    /// verified again.
    fn verify(&mut self, task: Index, payer: Payer, cx: &mut Context<'_, impl Outbox>) {
        let unix = self.moment(cx).unix;
        let share = match payer {
            Payer::Query(query) => {
                let network = self.clients.pending_queries[query].client.network();
                let hash = |network: ClientNetwork| self.key.hash_number(network.bits());
                Share { customer: hash(self.clients.customer(network)), network: hash(network) }
            }
            Payer::Task(_) => Share::default(),
        };
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let digest = validator.remembered.digest(validator.job());
        if validator.remembered.has(digest) {
            cx.counters.count(Counter::SignatureRemembered);
            let message = validator.tasks[task].message;
            validator.verified(task, upstream.parked.get(message), true, unix);
            return validator.ready.push_back(task);
        }
        let Some(signed) = SignedData::read(validator.job()) else { return };
        let price_us = price_us(signed.algorithm, signed.signature);
        let octets = upstream.parked.park(validator.job());
        let state = &mut validator.tasks[task];
        (state.waits, state.share, state.price_us) = (Waits::Verification, share, price_us);
        state.digest = digest;
        if octets == NOT_PARKED {
            return self.end_unverified(task, cx);
        }
        validator.jobs.wait(share, WaitingJob { task, octets, price_us });
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

    /// Asks the A lookup of the clients whose negative AAAA reply waits for a zone (RFC 6147 section 5.1.8): both take a round trip. Nothing
    /// of the A reply is used before the AAAA reply is proven.
    pub(super) fn ask_a_meanwhile(&mut self, task: Index, cx: &mut Context<'_, impl Outbox>) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        let Purpose::Reply(index) = validator.tasks[task].purpose else { return };
        let is_negative = || {
            let octets = upstream.parked.get(validator.tasks[task].message);
            Message::parse(octets).is_ok_and(|message| {
                message.rcode() == Rcode::NOERROR
                    && message.count(Section::Answer) == 0
                    // A name that does not exist has no A records either.
                    && !has_nxname(&message, &Chain::follow(&message))
            })
        };
        if upstream.outbound_queries[index].qtype == Type::AAAA && is_negative() {
            self.ask_a_for_all(index, cx);
        }
    }

    /// Asks a question that is held again, because its reply is bogus: of another server, or once with CD clear. False: that was done, or was
    /// in vain a short time ago.
    pub(super) fn ask_again(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) -> bool {
        self.upstream.ask_another(index, cx)
            || !self.was_refused(index, cx) && self.upstream.ask_with_checking(index, cx)
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
                self.learn(search, message, verdict, learned, cx);
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
                if let Some(Knowledge::Bogus(reason)) = found {
                    return self.refuse_keys(search, message, reason, cx);
                }
                upstream.parked.free(message);
                self.end_search(search, found, secs, cx);
            }
        }
    }

    /// Ends the validation of a reply: the pending queries get it as its verdict says, or another server is asked.
    fn conclude(&mut self, task: Index, index: Index, verdict: &Verdict, cx: &mut Context<'_, impl Outbox>) {
        if verdict.status == Status::Secure {
            self.keep_denials(task, index, cx);
        }
        let is_permissive = self.is_permissive();
        let Resolver { validator: Some(validator), upstream, frames, .. } = self else { return };
        trace_verdict(upstream, index, verdict, cx);
        let message = validator.tasks[task].message;
        let bogus = match verdict.status {
            Status::Bogus(reason) => Some(reason),
            _ => None,
        };
        let refused = match verdict.status {
            Status::Bogus(reason) if !is_permissive || reason == Bogus::Unreachable => Some(reason),
            _ => None,
        };
        let mut frame = frames.take();
        let length = match refused {
            Some(_) => None,
            None => {
                let dnssec_ok = upstream.outbound_queries[index].query_flags.has(QueryFlags::DO);
                let octets = upstream.parked.get(message);
                write_verdict(validator, (task, dnssec_ok), octets, verdict, &mut frame)
            }
        };
        validator.tasks.give(task);
        self.note_signatures(index, message, verdict.status, cx);
        let is_asked_again = bogus.is_some_and(|reason| reason != Bogus::TooMuchWork)
            // An answer without AD is not cached, so every query would be asked of everybody.
            && !(is_permissive && self.was_refused(index, cx))
            && !self.has_broken_chain(index, cx)
            && self.ask_again(index, cx);
        let kept = &mut self.upstream.outbound_queries[index].parked;
        match is_asked_again && refused.is_none() && *kept == NONE {
            true => *kept = message,
            false => self.upstream.parked.free(message),
        }
        if let Some(reason) = bogus.filter(|_| is_asked_again) {
            if let Some(validator) = &mut self.validator {
                validator.asked_again.note(index, reason);
            }
            return self.frames.give(frame);
        }
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        validator.asked_again.take(index);
        upstream.end_checking(index);
        validator.budgets.forget_asker(index);
        if bogus.is_some() {
            let OutboundQuery { hash, qtype, .. } = upstream.outbound_queries[index];
            validator.refusals.note(hash, qtype, cx.now);
        }
        count(verdict.status, cx);
        match (refused, length.and_then(|length| Message::parse(&frame[..length]).ok())) {
            (None, Some(_)) if verdict.status == Status::Secure && self.fails_sentinel(index) => {
                self.refuse(index, ede::OTHER, cx);
            }
            (None, Some(message)) => {
                let chain = Chain::follow(&message);
                self.store_and_serve(index, &Outcome::Reply(&message, &chain), cx);
            }
            (Some(reason), _) => self.give_kept_or_refuse(index, reason, cx),
            // A reply that is too long once its names are compressed anew.
            (None, None) => self.refuse(index, ede::INVALID_DATA, cx),
        }
        self.frames.give(frame);
    }

    /// Keeps the denials of a secure reply for other names (RFC 8198), under the conditions under which the reply itself is cached.
    fn keep_denials(&mut self, task: Index, index: Index, cx: &Context<'_, impl Outbox>) {
        let Resolver { validator: Some(validator), upstream, cache, settings, .. } = self else { return };
        let outbound = &upstream.outbound_queries[index];
        if !validator.config.as_ref().is_some_and(|config| config.aggressive_nsec)
            || !cache.is_cacheable(&outbound.question())
            || outbound.group != upstream.servers.group_number(outbound.forward_key())
            || upstream.outbound_queries.predates_flush(index)
        {
            return;
        }
        let Validator { tasks, ranges, .. } = &mut **validator;
        let Task { validation, message, .. } = &tasks[task];
        if let Ok(message) = Message::parse(upstream.parked.get(*message))
            && let Ok(groups) = Groups::of(&message)
        {
            let Caching { max_ttl_secs, max_negative_ttl_secs, .. } = settings.cache;
            let longest_secs = max_ttl_secs.min(max_negative_ttl_secs);
            ranges.learn(outbound.group, &groups, validation.states(), longest_secs, cx.now);
        }
    }

    fn is_permissive(&self) -> bool {
        let config = self.validator.as_ref().and_then(|validator| validator.config.as_ref());
        config.is_some_and(|config| config.permissive)
    }

    /// True if all replies to a question were bogus a short time ago.
    fn was_refused(&self, index: Index, cx: &Context<'_, impl Outbox>) -> bool {
        let OutboundQuery { hash, qtype, .. } = self.upstream.outbound_queries[index];
        self.validator.as_ref().is_some_and(|validator| validator.refusals.has(hash, qtype, cx.now))
    }

    /// Ends a question that was asked again in vain: with `permissive` its first reply is given, without AD; otherwise it is refused.
    fn give_kept_or_refuse(&mut self, index: Index, reason: Bogus, cx: &mut Context<'_, impl Outbox>) {
        let kept = if self.is_permissive() { self.upstream.outbound_queries[index].parked } else { NONE };
        let mut frame = self.frames.take();
        let written = Message::parse(self.upstream.parked.get(kept)).ok().and_then(|message| {
            let verdict =
                Verdict { status: Status::Bogus(reason), outcome: dnssec::Outcome::Failure, ttl: 0 };
            write_insecure(&message, &verdict, None, &mut frame)
        });
        match written.and_then(|length| Message::parse(&frame[..length]).ok()) {
            Some(message) => self.pass_on(index, Some(&message), cx),
            None => self.refuse(index, reason.ede(), cx),
        }
        self.frames.give(frame);
    }

    /// True if the name of a question asks if a key of the root is trusted, and its secure reply is withheld to say so (RFC 8509). With DNS64
    /// that of the AAAA lookup counts, so nothing is synthesized then. Only the name that the client asks for is such a question, and not
    /// one that an alias leads to.
    fn fails_sentinel(&self, index: Index) -> bool {
        let Resolver { validator: Some(validator), clients, upstream, .. } = self else { return false };
        let outbound = &upstream.outbound_queries[index];
        let Some(sentinel) = Sentinel::of(outbound.name()) else { return false };
        let query = outbound.pending_queries;
        let is_alias = query != NONE && clients.pending_queries[query].chase != NONE;
        let answered = Answered {
            qtype: outbound.qtype,
            // Replies to questions with CD are not validated.
            checking_disabled: false,
            is_secure: true,
            is_synthesized: false,
        };
        !is_alias && sentinel.fails(&answered, |tag| validator.trusts_root_key(tag))
    }

    /// True if the chain to the zone of a question's name is broken: then no other reply to it is better.
    fn has_broken_chain(&self, index: Index, cx: &Context<'_, impl Outbox>) -> bool {
        let Some(validator) = &self.validator else { return false };
        let name = LowerName::from_wire(self.upstream.outbound_queries[index].name());
        let stepped = name.map(|name| validator.step_to_zone(&name, self.moment(cx)));
        matches!(stepped, Some(Stepped::Ends(Verdict { status: Status::Bogus(_), .. }, _)))
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
        // Whatever the lack of signatures looked like here, it is their lack.
        let is_stripped = self.upstream.servers.has_only_stripping(outbound.forward_key());
        let reason = if is_stripped { ede::RRSIGS_MISSING } else { reason };
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

/// Writes a reply as its verdict says, for clients with or without DO. Returns its octets. None: there is no room, or it does not parse.
fn write_verdict(
    validator: &Validator,
    (task, dnssec_ok): (Index, bool),
    octets: &[u8],
    verdict: &Verdict,
    frame: &mut [u8],
) -> Option<usize> {
    let message = Message::parse(octets).ok()?;
    match verdict.status {
        Status::Secure => {
            let groups = Groups::of(&message).ok()?;
            write_secure(&groups, validator.tasks[task].validation.states(), verdict, dnssec_ok, frame)
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
