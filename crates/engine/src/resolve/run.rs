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
    pub(crate) fn go_on(
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
                self.after_aaaa(waiter, verdict, outcome, now, out);
            }
            Stage::A => self.after_a(waiter, outcome, now, out),
            Stage::Basis => self.after_basis(waiter, outcome, now, out),
            Stage::Unchecked => self.after_unchecked(waiter, outcome, now, out),
        }
    }

    pub(crate) fn go_on_with(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if !self.police(waiter, outcome, now, out) {
            self.go_on(waiter, outcome, now, out);
        }
    }
}
