//! Next step of a pending query after the outcome of its current question.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::dns64::decision::{AaaaDecision, Stage, decide};
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::question::CurrentQuestion;
use crate::message::reply::Outcome;
use crate::resolve::chase::NO_END;
use crate::rpz::table::NO_RULE_YET;
use crate::trace::TraceEvent;
use wire::Type;

impl Engine {
    /// Continues a pending query with an upstream's reply, new or cached, unless a response policy zone replaces it or an alias in it leads
    /// elsewhere (`divert.rs`). `decision`: decision about an AAAA outcome, made once for all pending queries of a question.
    #[inline]
    pub(crate) fn on_outcome(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        decision: &mut Option<AaaaDecision>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if let Outcome::Reply(message, chain) = outcome
            && chain.is_alias()
            && self.divert(pending, message, chain, now, out)
        {
            return;
        }
        if self.is_subject_to_rpz(pending) && self.apply_rpz_to_reply(pending, outcome, true, now, out) {
            return;
        }
        match outcome {
            Outcome::Reply(message, chain) if chain.has_no_end(message) => {
                self.respond_endless(pending, NO_END, now, out);
            }
            _ => self.dispatch(pending, outcome, decision, now, out),
        }
    }

    /// True if a rule of a response policy zone may still decide about a pending query.
    #[inline]
    pub(crate) fn is_subject_to_rpz(&self, pending: Index) -> bool {
        let state = &self.clients.pending_queries[pending];
        !self.settings.rpz.is_empty()
            && state.rpz_rule == NO_RULE_YET
            // The client never gets the reply without validation.
            && state.stage != Stage::AaaaWithCd
    }

    /// Continues a pending query with a local reply. RPZ does not apply to it.
    pub(crate) fn on_local_outcome(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.dispatch(pending, outcome, &mut None, now, out);
    }

    /// Dispatches on the stage of a pending query.
    fn dispatch(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        decision: &mut Option<AaaaDecision>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match self.clients.pending_queries[pending].stage {
            Stage::Direct => self.on_direct(pending, outcome, now, out),
            Stage::Aaaa => {
                let decision = *decision.get_or_insert_with(|| decide(outcome, &self.settings.dns64));
                self.on_aaaa(pending, decision, outcome, now, out);
            }
            Stage::A => self.on_a(pending, outcome, now, out),
            Stage::NegativeAaaa => self.on_negative_aaaa(pending, outcome, now, out),
            Stage::AaaaWithCd => self.on_aaaa_with_cd(pending, outcome, now, out),
        }
    }

    /// Trace event for a pending query that waits for an outbound query.
    pub(crate) fn wait_event(&self, pending: Index, qtype: Type, outbound: Index) -> TraceEvent<'_> {
        TraceEvent::WaitsFor { outbound, name: self.clients.current_question(pending).name, qtype }
    }

    /// Trace event for the end of a pending query's lookup.
    pub(crate) fn lookup_event<'n>(&'n self, pending: Index, outcome: &Outcome<'n, 'n>) -> TraceEvent<'n> {
        let CurrentQuestion { name, qtype, .. } = self.clients.current_question(pending);
        let reply = match *outcome {
            Outcome::Reply(message, _) => Some(message),
            Outcome::Failed => None,
        };
        TraceEvent::LookupEnded { name, qtype, reply }
    }
}
