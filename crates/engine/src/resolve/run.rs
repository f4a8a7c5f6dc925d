//! The next step of a waiter, when what it waited for is there.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::dns64::decision::Stage;
use crate::dns64::decision::decide;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::reply::Outcome;

impl Engine {
    /// What one client waited for is there, though no flight brought it.
    pub(crate) fn proceed(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match self.waiters[waiter].stage {
            Stage::Direct => self.pass_direct(waiter, outcome, now, out),
            Stage::Aaaa => {
                let verdict = decide(outcome, &self.settings.dns64);
                self.on_aaaa(waiter, verdict, outcome, now, out);
            }
            Stage::A => self.on_a(waiter, outcome, now, out),
            Stage::NegativeAaaa => self.on_negative_aaaa(waiter, outcome, now, out),
            Stage::AaaaWithCd => self.on_aaaa_with_cd(waiter, outcome, now, out),
        }
    }

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
