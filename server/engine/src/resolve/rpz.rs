//! Application of response policy zones: a rule replaces the reply of an upstream, before or after it is asked. `rpz/table.rs` finds
//! the rule.
//!
//! One rule decides a query, with all its lookups and its whole CNAME chase (draft-vixie-dnsop-dns-rpz-00 section 5.1). Local data of a
//! zone are the reply of each lookup, so DNS64 applies to them; a denial is the answer, and no lookup is asked. The pending query keeps the marks of
//! the rule (`rpz/mark.rs`), which `respond` adds to its answer, whatever follows.

use crate::answer::builder::write_truncated;
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::client::pending_query::NO_HOP_YET;
use crate::counters::Counter;
use crate::dns64::decision::{AaaaDecision, Stage, decide};
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::question::QUESTION;
use crate::message::reply::Outcome;
use crate::reasons::{PassReason, PolicyAction};
use crate::rpz::response::RewritePoint;
use crate::rpz::table::{Action, NO_RULE_YET, PASSTHRU, ReplyAddresses, RuleMatch};
use crate::trace::{RuleSource, Subject, TraceEvent};
use core::net::Ipv6Addr;
use wire::{Message, Rcode, Type, ede};

impl Engine {
    /// Applies the rules to a pending query's current question, before it is asked. Returns false if an upstream has to answer it.
    pub(crate) fn apply_rpz_to_question(
        &mut self,
        pending: Index,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let state = &self.clients.pending_queries[pending];
        match state.rpz_rule {
            PASSTHRU => return false,
            NO_RULE_YET => {}
            rule => {
                out.trace(Subject::PendingQuery(pending), || TraceEvent::LocalLookup);
                return self.answer_from(pending, rule, now, out);
            }
        }
        if !self.clients.current_question(pending).is_ours() {
            return false;
        }
        let client = self.client_to_compare(pending);
        let (lookup, policy) = (self.clients.current_question(pending), &self.settings.rpz);
        match policy.of_question(client, lookup.name) {
            Some(hit) if !policy.is_open(hit, lookup.qtype) => {
                let source = || policy.source(hit.rule, lookup.name, client, None);
                out.trace(Subject::PendingQuery(pending), || self.policy_event(pending, hit.rule, source()));
                self.apply_action(pending, hit.rule, None, now, out)
            }
            _ => false,
        }
    }

    /// Applies the rules to the outcome of a pending query's current question. Returns true if a rule has decided. `is_whole`: the reply is not
    /// cut off at an alias, so it says whether the A lookup follows.
    pub(crate) fn apply_rpz_to_reply(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        is_whole: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        if !self.clients.current_question(pending).is_ours() {
            return false;
        }
        let client = self.client_to_compare(pending);
        let state = &self.clients.pending_queries[pending];
        let lookup = self.clients.current_question(pending);
        let (policy, dns64) = (&self.settings.rpz, &self.settings.dns64);
        let Outcome::Reply(message, chain) = *outcome else {
            let Some(hit) = policy.of_question(client, lookup.name) else { return false };
            if is_whole && self.waits_for_addresses(pending, hit, outcome) {
                return false;
            }
            let source = || policy.source(hit.rule, lookup.name, client, None);
            out.trace(Subject::PendingQuery(pending), || self.policy_event(pending, hit.rule, source()));
            return self.apply_action(pending, hit.rule, None, now, out);
        };
        let rules = (state.stage == Stage::A).then(|| dns64.rules.of(state.client.address, state.name()));
        let reply = ReplyAddresses {
            message,
            chain,
            dns64,
            rules: rules.as_ref(),
            excludes: matches!(state.stage, Stage::Aaaa | Stage::NegativeAaaa),
            ignores_aaaa: state.stage == Stage::Aaaa && self.ignores_real(pending).is_some(),
        };
        let Some((hit, place)) = policy.of_reply(&reply, client) else { return false };
        let waits = is_whole
            && (self.waits_for_addresses(pending, hit, outcome)
                || place + 1 == chain.len() && self.waits_behind_alias(pending, hit, outcome));
        if waits {
            return false;
        }
        out.trace(Subject::PendingQuery(pending), || {
            let mut name = [0; wire::MAX_NAME];
            let length = chain.name(place).write(&mut name);
            let client = client.filter(|_| place == 0);
            let addresses = (place + 1 == chain.len()).then_some(&reply);
            self.policy_event(pending, hit.rule, policy.source(hit.rule, &name[..length], client, addresses))
        });
        self.apply_action(pending, hit.rule, Some(RewritePoint { message, chain, place }), now, out)
    }

    /// The client's address, if it is compared with the rules together with the pending query's current name: with the first name that is
    /// compared at all. That may be the target of a local alias, which no rule has seen.
    fn client_to_compare(&mut self, pending: Index) -> Option<Ipv6Addr> {
        let hop = replies(&self.clients.chases, self.clients.pending_queries[pending].chase).len() as u8;
        let state = &mut self.clients.pending_queries[pending];
        if state.rpz_hop == NO_HOP_YET {
            state.rpz_hop = hop;
        }
        (state.rpz_hop == hop).then_some(state.client.address)
    }

    /// True if the A lookup follows, whose addresses may match a rule of an earlier zone: that zone decides (draft section 5.2), so the rule
    /// waits for the A lookup.
    fn waits_for_addresses(&self, pending: Index, hit: RuleMatch, outcome: &Outcome<'_, '_>) -> bool {
        // Aliases without an end are an error, and no A lookup follows.
        let has_no_end = matches!(outcome, Outcome::Reply(message, chain) if chain.has_no_end(message));
        self.clients.pending_queries[pending].stage == Stage::Aaaa
            && !has_no_end
            && self.settings.rpz.gives_way_to_addresses(hit)
            && match decide(outcome, &self.settings.dns64) {
                AaaaDecision::Synthesize(_) | AaaaDecision::CheckBogus => true,
                AaaaDecision::Pass(PassReason::RealAaaa) => self.ignores_real(pending).is_some(),
                AaaaDecision::Pass(_) | AaaaDecision::ChaseCname => false,
            }
    }

    /// True if a rule for the end of an unfinished chain waits: that name is looked up next, and its addresses may match a rule of an
    /// earlier zone, which decides (draft section 5.2).
    fn waits_behind_alias(&self, pending: Index, hit: RuleMatch, outcome: &Outcome<'_, '_>) -> bool {
        let Outcome::Reply(message, chain) = *outcome else { return false };
        self.settings.rpz.is_open(hit, self.clients.pending_queries[pending].current_type())
            && !chain.has_no_end(message)
            && match self.clients.pending_queries[pending].stage {
                Stage::Direct => self.follows_to_the_end(pending, message, chain),
                Stage::Aaaa => matches!(decide(outcome, &self.settings.dns64), AaaaDecision::ChaseCname),
                Stage::A => chain.is_alias() && chain.is_unfinished(message),
                Stage::NegativeAaaa | Stage::AaaaWithCd => false,
            }
    }

    /// The event that a rule decides a pending query's query.
    fn policy_event(&self, pending: Index, rule: u32, source: Option<RuleSource>) -> TraceEvent<'_> {
        let state = &self.clients.pending_queries[pending];
        let over_udp = state.client.transport.is_datagram();
        let found = self.settings.rpz.rule_of(rule);
        let action = found.map_or(PolicyAction::Passthru, |(found, _)| found.action.applied(over_udp));
        let (client, name, qtype) = (state.client.address, state.name(), state.qtype_and_class().0);
        TraceEvent::PolicyRule { action, source, client, name, qtype }
    }

    /// Executes the action of a rule. Returns false for PASSTHRU. `from`: the part of the reply that led to the rule.
    fn apply_action(
        &mut self,
        pending: Index,
        rule: u32,
        from: Option<RewritePoint<'_, '_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let Some((found, _)) = self.settings.rpz.rule_of(rule) else { return false };
        let over_udp = self.clients.pending_queries[pending].client.transport.is_datagram();
        let action = found.action.applied(over_udp);
        self.counters.count(action.counter());
        if action == PolicyAction::Passthru {
            self.clients.pending_queries[pending].rpz_rule = PASSTHRU;
            return false;
        }
        self.clients.pending_queries[pending].policy_mark = self.settings.rpz.mark(rule);
        if action == PolicyAction::LocalData {
            let state = &mut self.clients.pending_queries[pending];
            state.rpz_rule = rule;
            // The name has the data of the rule and no others, so DNS64 begins anew: AAAA data of a rule that only the A lookup has met are the
            // answer (draft section 3.6, RFC 6147 section 5.1.1).
            if matches!(state.stage, Stage::A | Stage::NegativeAaaa) {
                state.stage = Stage::Aaaa;
            }
            // The early A question is not about the zone's data.
            let a_outbound_query =
                core::mem::replace(&mut self.clients.pending_queries[pending].a_outbound_query, NONE);
            if a_outbound_query != NONE {
                self.upstream.release_outbound_query(a_outbound_query);
            }
            return match from {
                Some(from) if from.place > 0 => self.lead_to(pending, from, now, out),
                _ => self.answer_from(pending, rule, now, out),
            };
        }
        if self.clients.pending_queries[pending].stage != Stage::Direct {
            self.counters.count(Counter::NotSynthesizedPolicy);
        }
        match action {
            PolicyAction::Drop => self.drop_pending_query(pending, out),
            // Draft section 3.5: TC, and no records but the mark of the rule.
            PolicyAction::TcpOnly => self.respond_with(pending, now, out, write_truncated),
            _ => self.deny_by(pending, rule, from, now, out),
        }
        true
    }

    /// Ends a pending query without an answer (draft section 3.4).
    fn drop_pending_query(&mut self, pending: Index, out: &mut impl Outbox) {
        let client = self.clients.pending_queries[pending].client;
        if !client.transport.is_datagram() {
            out.drop_query(&client);
        }
        self.free_pending_query(pending, out);
    }

    /// Answers a pending query with a denial, NXDOMAIN or NODATA, on any lookup.
    fn deny_by(
        &mut self,
        pending: Index,
        rule: u32,
        from: Option<RewritePoint<'_, '_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let mut frame = self.frames.take();
        let mut room = [0; QUESTION];
        let question = self.clients.current_question(pending).question(&mut room);
        let length = self.settings.rpz.denial(rule, question, from, &self.settings.dns64.arpa, &mut frame);
        match length.and_then(|length| Message::parse(&frame[..length]).ok()) {
            Some(message) => {
                let chain = Chain::follow(&message);
                out.trace(Subject::PendingQuery(pending), || {
                    self.lookup_event(pending, &Outcome::Reply(&message, &chain))
                });
                self.forward_to(pending, &message, &chain, false, now, out);
            }
            None => self.respond_empty(pending, Rcode::SERVFAIL, Some(ede::BLOCKED), now, out),
        }
        self.frames.give(frame);
    }

    /// Continues with a name on the CNAME chain of the reply for which a rule has data: the upstream's reply ends there.
    fn lead_to(
        &mut self,
        pending: Index,
        from: RewritePoint<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let mut frame = self.frames.take();
        let mut room = [0; QUESTION];
        let lookup = self.clients.current_question(pending);
        let question = lookup.question(&mut room);
        let length = from.way(question, &mut frame);
        match length.and_then(|length| Message::parse(&frame[..length]).ok()) {
            Some(message) => {
                self.chase_cname(pending, &message, from.chain.name(from.place), now, out);
            }
            None => self.respond_empty(pending, Rcode::SERVFAIL, Some(ede::BLOCKED), now, out),
        }
        self.frames.give(frame);
        true
    }

    /// Answers a lookup with the data of a rule. Returns false if the rule is gone after a reload.
    fn answer_from(&mut self, pending: Index, rule: u32, now: Instant, out: &mut impl Outbox) -> bool {
        let policy = &self.settings.rpz;
        let Some((found, _)) = policy.rule_of(rule) else {
            let state = &mut self.clients.pending_queries[pending];
            (state.rpz_rule, state.policy_mark) = (PASSTHRU, None);
            return false;
        };
        let is_alias = match &found.action {
            Action::Data(records) => records.iter().any(|record| record.rtype == Type::CNAME),
            _ => true,
        };
        let lookup = self.clients.current_question(pending);
        let qtype = lookup.qtype;
        let mut room = [0; QUESTION];
        let question = lookup.question(&mut room);
        let mut frame = self.frames.take();
        let length = self.settings.rpz.data(rule, question, &self.settings.dns64.arpa, &mut frame);
        if is_alias {
            // No second rule is applied to its target.
            self.clients.pending_queries[pending].rpz_rule = PASSTHRU;
        }
        match length {
            Some(length) => self.use_local_reply(pending, &frame[..length], qtype, now, out),
            None => self.respond_empty(pending, Rcode::SERVFAIL, Some(ede::BLOCKED), now, out),
        }
        self.frames.give(frame);
        true
    }
}
