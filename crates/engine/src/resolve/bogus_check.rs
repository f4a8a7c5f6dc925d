//! A failure of the AAAA leg that may mean a bogus answer, which must never be papered over with A records (RFC 6147 section
//! 5.5 (2)), or a dead server, where the A leg decides (section 5.1.2).
//!
//! Upstreams that say why (RFC 8914) are believed. Of the others it is found out by asking without validation, CD set (RFC
//! 4035 section 3.2.2), while the A leg is asked as well:
//!
//! ```text
//! AAAA -> SERVFAIL -> AAAA with CD -> also fails: nothing to validate, a dead server      -> the A leg decides
//!                                  -> is answered -> AAAA once more -> SERVFAIL: bogus    -> SERVFAIL
//!                                                                   -> whatever comes now -> as if it had come at first
//! ```
//!
//! The last question tells a bogus answer from a server that failed for a moment. So a failure costs one question more and
//! no time if the A leg takes as long; a bogus answer costs two. With `dnssec = "off"` nobody is trusted to have validated,
//! and where `on-failure` passes failures on, nothing is at stake: neither is doubted.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage};
use crate::engine::Engine;
use crate::event::TraceEvent;
use crate::interface::Outbox;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_stale};
use wire::{Rcode, Type, ede};

impl Engine {
    /// The AAAA leg of a client has failed, and nobody says why. Returns the reason to go on with the A leg; none: the
    /// client waits, or has its answer.
    pub(crate) fn start_bogus_check(
        &mut self,
        waiter: Index,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Cause> {
        let state = &mut self.clients.waiters[waiter];
        // Nobody has validated for a client that asks with CD.
        if state.query_flags.has(QueryFlags::CD) {
            return Some(Cause::Error);
        }
        if state.bogus_recheck {
            self.counters.count(Counter::NotSynthesizedBogus);
            self.store_bogus(waiter);
            out.trace(|| TraceEvent::AnswerIs(Counter::NotSynthesizedBogus));
            //= RFC 6147 section 5.5: requirement 29
            self.respond_empty(waiter, Rcode::SERVFAIL, Some(ede::DNSSEC_BOGUS), now, out);
            return None;
        }
        out.trace(|| TraceEvent::ChecksBogus);
        state.stage = Stage::AaaaWithCd;
        if state.a_flight == NONE {
            self.ask_a_early(waiter, now, out);
        }
        self.counters.count(Counter::BogusChecks);
        self.ask_aaaa_again(waiter, now, out);
        None
    }

    /// The AAAA leg was asked without validation.
    pub(crate) fn on_aaaa_with_cd(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(|| self.leg_event(waiter, outcome));
        match outcome {
            // What has expired shows that somebody answered once, not that anybody does now.
            Outcome::Reply(message, _) if is_stale(message) => {
                self.decide_by_a(waiter, Cause::Error, &Outcome::Failed, now, out);
            }
            Outcome::Reply(message, _) if matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN) => {
                out.trace(|| TraceEvent::ReasksAaaa);
                let state = &mut self.clients.waiters[waiter];
                state.stage = Stage::Aaaa;
                state.bogus_recheck = true;
                self.ask_aaaa_again(waiter, now, out);
            }
            _ => self.decide_by_a(waiter, Cause::Error, outcome, now, out),
        }
    }

    fn ask_aaaa_again(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        // To ask once more means to ask: what is kept is the failure that is in doubt.
        self.clients.waiters[waiter].has_stale = false;
        if self.clients.waiters[waiter].stage == Stage::AaaaWithCd && self.answer_from_cache(waiter, now, out)
        {
            return;
        }
        match self.flight_for(waiter, Type::AAAA, now, out) {
            Some(flight) => self.attach(flight, waiter),
            None => self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out),
        }
    }
}
