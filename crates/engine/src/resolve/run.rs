//! The next step of a waiter, when the reply to its current question is there.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::dns64::decision::{AaaaDecision, Stage, decide};
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::reply::Outcome;

impl Engine {
    /// Goes on with a waiter by the outcome of its current question, according to its stage. `decision`: the decision about
    /// an AAAA outcome, which is made once for all waiters of a question.
    pub(crate) fn step(
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

    /// Goes on with a waiter by a reply that was made here. RPZ does not apply to it.
    pub(crate) fn proceed(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.step(waiter, outcome, &mut None, now, out);
    }

    /// Goes on with a waiter by an upstream's reply, unless a response policy zone takes it over.
    pub(crate) fn proceed_after_rpz(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if !self.apply_rpz_to_reply(waiter, outcome, now, out) {
            self.proceed(waiter, outcome, now, out);
        }
    }
}
