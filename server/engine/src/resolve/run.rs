//! Next step of a waiter after the outcome of its current question.

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
    /// Continues a waiter with an upstream's reply, new or cached, unless a response policy zone replaces it or an alias in it leads
    /// elsewhere (`divert.rs`). `decision`: decision about an AAAA outcome, made once for all waiters of a question.
    #[inline]
    pub(crate) fn proceed(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        decision: &mut Option<AaaaDecision>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if let Outcome::Reply(message, chain) = outcome
            && chain.is_alias()
            && self.divert(waiter, message, chain, now, out)
        {
            return;
        }
        if self.is_subject_to_rpz(waiter) && self.apply_rpz_to_reply(waiter, outcome, true, now, out) {
            return;
        }
        match outcome {
            Outcome::Reply(message, chain) if chain.has_no_end(message) => {
                self.respond_endless(waiter, NO_END, now, out);
            }
            _ => self.step(waiter, outcome, decision, now, out),
        }
    }

    /// True if a rule of a response policy zone may still decide about a waiter.
    #[inline]
    pub(crate) fn is_subject_to_rpz(&self, waiter: Index) -> bool {
        let state = &self.clients.waiters[waiter];
        !self.settings.rpz.is_empty()
            && state.rpz_rule == NO_RULE_YET
            // The client never gets the reply without validation.
            && state.stage != Stage::AaaaWithCd
    }

    /// Continues a waiter with a local reply. RPZ does not apply to it.
    pub(crate) fn proceed_locally(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.step(waiter, outcome, &mut None, now, out);
    }

    /// Dispatches on the stage of a waiter.
    fn step(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        decision: &mut Option<AaaaDecision>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match self.clients.waiters[waiter].stage {
            Stage::Direct => self.on_direct(waiter, outcome, now, out),
            Stage::Aaaa => {
                let decision = *decision.get_or_insert_with(|| decide(outcome, &self.settings.dns64));
                self.on_aaaa(waiter, decision, outcome, now, out);
            }
            Stage::A => self.on_a(waiter, outcome, now, out),
            Stage::NegativeAaaa => self.on_negative_aaaa(waiter, outcome, now, out),
            Stage::AaaaWithCd => self.on_aaaa_with_cd(waiter, outcome, now, out),
        }
    }

    /// Trace event for a waiter that waits for a flight.
    pub(crate) fn wait_event(&self, waiter: Index, qtype: Type, flight: Index) -> TraceEvent<'_> {
        TraceEvent::WaitsFor { flight, name: self.clients.current_question(waiter).name, qtype }
    }

    /// Trace event for the end of a waiter's leg.
    pub(crate) fn leg_event<'n>(&'n self, waiter: Index, outcome: &Outcome<'n, 'n>) -> TraceEvent<'n> {
        let CurrentQuestion { name, qtype, .. } = self.clients.current_question(waiter);
        let reply = match *outcome {
            Outcome::Reply(message, _) => Some(message),
            Outcome::Failed => None,
        };
        TraceEvent::Leg { name, qtype, reply }
    }
}
