//! Searches of zones for validation: the questions about DS records and keys, what their replies lead to, and who pays for them.
//!
//! ```text
//! await_zone ──> ask_for_zone: DS, DNSKEY ──> on_zone_reply ──> go_on ──┬──> learn: DS records, or what their denial says
//!                     ▲                                                 ├──> try_keys: keys that these or trust anchors vouch for
//!                     └── ask_for_zone_again <── bogus ─────────────────┤
//!                                                                       └──> end_search: known; those who wait go on
//! ```
//!
//! A search that nobody waits for refreshes what is known of a zone before it expires.

use crate::base::slab::{Index, NONE};
use crate::context::Context;
use crate::counters::Counter;
use crate::engine::Resolver;
use crate::interface::{ClientNetwork, Outbox};
use crate::limits::{REFRESHES, SEARCHES_IN_A_ROW};
use crate::message::question::{QueryFlags, Question as Asked};
use crate::trace::{Subject, TraceEvent, ZoneState};
use crate::upstream::in_flight::OutboundQuery;
use crate::upstream::parked_replies::NOT_PARKED;
use crate::validator::Learned;
use crate::validator::budgets::Payer;
use crate::validator::searches::{Part, Search};
use crate::validator::tasks::{Purpose, Task, Waits};
use crate::validator::zones::{DueZone, Knowledge};
use dnssec::{Bogus, Question, Status, Verdict};
use wire::{Class, Message, Type};

/// Longest time for which it is known that a zone needs no signatures, in seconds, if no proof of its own says so: the zone above needs none.
const INHERITED_SECS: u32 = 300;

impl Resolver {
    /// Begins searches of zones that are in use and soon expire. Nobody waits for them; who looks for the zone after its expiry joins.
    pub(super) fn refresh_zones(&mut self, cx: &mut Context<'_, impl Outbox>) {
        let now = self.moment(cx).unix;
        while let Some(validator) = &mut self.validator
            && let Some(DueZone { name, has_keys }) = validator.zones.take_due()
        {
            if validator.searches.find(&name).is_some() || validator.searches.refreshes() == REFRESHES {
                continue;
            }
            let has_anchors = validator.anchored_zone(&name, now).is_some_and(|zone| zone == name);
            let Some(search) = validator.searches.begin(&name, has_anchors, None) else { continue };
            validator.searches[search].is_refresh = true;
            self.ask_for_zone(search, Type::DS, !has_anchors, cx);
            self.ask_for_zone(search, Type::DNSKEY, has_keys, cx);
            self.go_on(search, cx);
        }
    }

    /// Payer of a search. Of the validations that wait for it, a number is looked at: one that has used up its budget must not end the search
    /// of those that joined it.
    pub(super) fn payer_of_search(&self, search: Index) -> Option<Payer> {
        let validator = self.validator.as_ref()?;
        let mut open = vec![validator.searches[search].waiting];
        let mut queries = Vec::new();
        let mut without_client = None;
        for _ in 0..SEARCHES_IN_A_ROW {
            let Some(task) = open.pop() else { break };
            if task == NONE {
                continue;
            }
            let Task { purpose, next, .. } = validator.tasks[task];
            open.push(next);
            match purpose {
                Purpose::Reply(index) | Purpose::Failure(index) => match self.payer_of_question(index) {
                    Some(query) => queries.push(query),
                    None => without_client = Some(Payer::Task(task)),
                },
                Purpose::Delegation(other) | Purpose::Keys(other) => {
                    open.push(validator.searches[other].waiting)
                }
            }
        }
        validator.budgets.richest(queries.into_iter()).map(Payer::Query).or(without_client)
    }

    /// Customer of the client that pays.
    fn customer_of(&self, payer: Payer) -> Option<ClientNetwork> {
        let Payer::Query(query) = payer else { return None };
        Some(self.clients.customer(self.clients.pending_queries[query].client.network()))
    }

    /// Has a validation wait for the search of a zone, which is under way or begins now.
    ///
    /// # Errors
    ///
    /// The reason why there is no such search: `TooMuchWork`, or `Denial` if the search would wait for itself.
    pub(super) fn await_zone(
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
        let customer = self.customer_of(payer);
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
                let search =
                    validator.searches.begin(name, has_anchors, customer).ok_or(Bogus::TooMuchWork)?;
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
            None => {
                count_question(validator.searches[search].is_refresh, cx);
                upstream.launch(&question, cx)
            }
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
    pub(super) fn on_zone_reply(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Resolver { validator: Some(validator), upstream, .. } = self else { return };
        if let Some(place) = validator.checks.iter().position(|check| check.outbound == index) {
            return self.on_signature_check(place, reply, cx);
        }
        let Some((search, qtype)) = validator.searches.find_asked(index) else {
            let _ = upstream.complete(index, cx.out);
            upstream.end_checking(index);
            return upstream.park_or_free(index, None);
        };
        *validator.searches[search].part(qtype) = Part::Replied(index);
        upstream.hold(index, cx.now, cx.out);
        upstream.outbound_queries[index].parked =
            reply.map_or(NONE, |message| upstream.parked.park(message.bytes()));
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
        // A server that cannot answer does not make the bogus reply of another one good.
        let failure = validator.searches[search].refused.unwrap_or(Bogus::Unreachable);
        match (ds, keys) {
            (Part::Replied(outbound), _) => {
                validator.searches[search].ds = Part::Judged(outbound);
                match self.take_zone_reply(outbound) {
                    Some(message) => self.begin_for(search, Purpose::Delegation(search), message, cx),
                    None => self.end_search(search, Some(Knowledge::Unproven(failure)), 0, cx),
                }
            }
            (Part::Used, Part::Replied(outbound)) => {
                validator.searches[search].keys = Part::Judged(outbound);
                match self.take_zone_reply(outbound) {
                    Some(message) => self.try_keys(search, message, cx),
                    None => self.end_search(search, Some(Knowledge::Bogus(failure)), 0, cx),
                }
            }
            (Part::Used, Part::NotAsked) => self.ask_for_keys(search, cx),
            (Part::Asked(_) | Part::NotAsked | Part::Judged(_), _)
            | (Part::Used, Part::Asked(_) | Part::Judged(_) | Part::Used) => {}
        }
    }

    /// Asks one of the questions of a search again, whose reply is bogus: of another server, or with CD clear. False: it is not asked.
    fn ask_for_zone_again(
        &mut self,
        search: Index,
        qtype: Type,
        reason: Bogus,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let payer = self.payer_of_search(search);
        let Resolver { validator: Some(validator), .. } = self else { return false };
        let Part::Judged(outbound) = *validator.searches[search].part(qtype) else { return false };
        let is_paid = payer.is_some_and(|payer| validator.budgets.of(payer).ask());
        if outbound == NONE || reason == Bogus::TooMuchWork || !is_paid || !self.ask_again(outbound, cx) {
            return false;
        }
        let Some(validator) = &mut self.validator else { return false };
        let search = &mut validator.searches[search];
        count_question(search.is_refresh, cx);
        (*search.part(qtype), search.refused) = (Part::Asked(outbound), Some(reason));
        true
    }

    /// Ends a question that is held, whose reply is not given to anybody.
    fn end_held(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) {
        if index != NONE {
            let _ = self.upstream.complete(index, cx.out);
            self.upstream.end_checking(index);
            self.upstream.release_outbound_query(index);
        }
    }

    /// Asks for the keys of a zone that has DS records.
    fn ask_for_keys(&mut self, search: Index, cx: &mut Context<'_, impl Outbox>) {
        let payer = self.payer_of_search(search);
        let Some(validator) = &mut self.validator else { return };
        let is_refresh = validator.searches[search].is_refresh;
        if !payer.map_or(is_refresh, |payer| validator.budgets.of(payer).ask()) {
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
        let tried = validator.try_keys(search, upstream.parked.get(message));
        let secs = validator.searches[search].ds_secs;
        match tried {
            Ok(()) => self.begin_for(search, Purpose::Keys(search), message, cx),
            Err(Some(Knowledge::Bogus(reason))) => self.refuse_keys(search, message, reason, cx),
            Err(knowledge) => {
                upstream.parked.free(message);
                self.end_search(search, knowledge, secs, cx);
            }
        }
    }

    /// Refuses a reply with keys: they are asked for again, or the chain is broken.
    pub(super) fn refuse_keys(
        &mut self,
        search: Index,
        message: Index,
        reason: Bogus,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        self.doubt_zone_reply(search, Type::DNSKEY, message, cx);
        self.upstream.parked.free(message);
        if !self.ask_for_zone_again(search, Type::DNSKEY, reason, cx) {
            self.end_search(search, Some(Knowledge::Bogus(reason)), 0, cx);
        }
    }

    /// Looks at a bogus reply to one of the questions of a search: its server may strip signatures.
    fn doubt_zone_reply(
        &mut self,
        search: Index,
        qtype: Type,
        message: Index,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let Some(validator) = &mut self.validator else { return };
        if let Part::Judged(outbound) = *validator.searches[search].part(qtype)
            && outbound != NONE
        {
            self.doubt_signatures(outbound, message, cx);
        }
    }

    /// Ends a search with what it has found, which holds for some seconds. None: it was too much work for those who wait, and none of them
    /// begins it again. Nothing is remembered, as another resolution may have more left.
    pub(super) fn end_search(
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
        // A refresh that fails leaves what is known as it is, until it expires.
        let is_kept = validator.searches[search].is_refresh && waiting == NONE;
        match &found {
            Some(Knowledge::Bogus(_) | Knowledge::Unproven(_)) if is_kept => {}
            Some(failure @ (Knowledge::Bogus(_) | Knowledge::Unproven(_))) => {
                validator.zones.enter_failure(name.as_wire(), failure.clone(), cx.now);
                for part in [ds, keys] {
                    if let Part::Judged(outbound) = part
                        && outbound != NONE
                    {
                        let OutboundQuery { hash, qtype, .. } = upstream.outbound_queries[outbound];
                        validator.refusals.note(hash, qtype, cx.now);
                    }
                }
            }
            Some(knowledge) => validator.zones.enter(name.as_wire(), knowledge.clone(), secs, cx.now),
            None => {}
        }
        validator.searches.end(search);
        while waiting != NONE {
            let task = &mut validator.tasks[waiting];
            task.waits = Waits::Turn;
            task.is_exhausted = found.is_none();
            validator.ready.push_back(waiting);
            waiting = core::mem::replace(&mut task.next, NONE);
        }
        for part in [ds, keys] {
            match part {
                Part::Asked(outbound) => self.upstream.release_outbound_query(outbound),
                Part::Replied(outbound) | Part::Judged(outbound) => self.end_held(outbound, cx),
                Part::NotAsked | Part::Used => {}
            }
        }
    }

    /// Takes what a reply about DS records says.
    pub(super) fn learn(
        &mut self,
        search: Index,
        message: Index,
        verdict: &Verdict,
        learned: Option<Learned>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let secs = if verdict.ttl == u32::MAX { INHERITED_SECS } else { verdict.ttl };
        if let Some(Learned::Failed(_)) = learned {
            self.doubt_zone_reply(search, Type::DS, message, cx);
        }
        self.upstream.parked.free(message);
        match learned {
            Some(Learned::Signed) => {
                let Some(validator) = &mut self.validator else { return };
                let of_zone = &mut validator.searches[search];
                of_zone.refused = None;
                if let Part::Judged(outbound) = core::mem::replace(&mut of_zone.ds, Part::Used) {
                    self.end_held(outbound, cx);
                }
                self.go_on(search, cx);
            }
            Some(Learned::Known(knowledge)) => self.end_search(search, Some(knowledge), secs, cx),
            // Another resolution may have more left.
            Some(Learned::Failed(Bogus::TooMuchWork)) | None => self.end_search(search, None, 0, cx),
            Some(Learned::Failed(reason)) => {
                // The upstreams were asked one after the other already if they failed.
                let is_failure = verdict.status == Status::Failure;
                if is_failure || !self.ask_for_zone_again(search, Type::DS, reason, cx) {
                    let Some(validator) = &self.validator else { return };
                    let earlier = validator.searches[search].refused.filter(|_| is_failure);
                    let unproven = Knowledge::Unproven(earlier.unwrap_or(reason));
                    self.end_search(search, Some(unproven), 0, cx);
                }
            }
        }
    }
}

/// Counts a question about the keys of a zone.
fn count_question(is_refresh: bool, cx: &mut Context<'_, impl Outbox>) {
    cx.counters.count(if is_refresh { Counter::ChainRefresh } else { Counter::ChainNeeded });
}
