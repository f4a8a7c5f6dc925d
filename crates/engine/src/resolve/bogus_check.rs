//! The bogus check: a SERVFAIL of the AAAA leg may mean a bogus answer, which must never be papered over with A records (RFC 6147
//! section 5.5 (2)), or a broken server, where the A leg decides (section 5.1.2).
//!
//! An upstream that gives a reason (RFC 8914) is believed. Otherwise the AAAA leg is asked without validation, with CD set (RFC 4035
//! section 3.2.2), while the A leg is asked as well:
//!
//! ```text
//! AAAA -> SERVFAIL -> AAAA with CD -> fails, too: nothing to validate, a broken server -> the A leg decides
//!                                  -> is answered -> AAAA once more -> SERVFAIL: bogus -> SERVFAIL
//!                                                                   -> any other reply -> as if it had come at first
//! ```
//!
//! The last query tells a bogus answer from a server that failed for a moment. So a failure costs one more query and no time if
//! the A leg takes as long; a bogus answer costs two. There is no check with `dnssec = "off"`, where the upstream's validation is
//! not trusted, nor where `on-failure` forwards failures.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage};
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_stale};
use crate::trace::TraceEvent;
use wire::{Rcode, ede};

impl Engine {
    /// Starts or ends the check after a SERVFAIL without a reason. Returns the reason to go on with the A leg; none if the client
    /// waits, or has its answer.
    pub(crate) fn start_bogus_check(
        &mut self,
        waiter: Index,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Cause> {
        let state = &mut self.clients.waiters[waiter];
        // The upstream does not validate for a client that sets CD.
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

    /// Handles the reply of the AAAA leg that was asked without validation.
    pub(crate) fn on_aaaa_with_cd(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(|| self.leg_event(waiter, outcome));
        match outcome {
            // Expired data show that a server answered once, not that one does now.
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

    /// Asks the AAAA leg again. Its cached reply is the failure in question, so only a reply to a query with CD is taken from the
    /// cache.
    fn ask_aaaa_again(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        self.clients.waiters[waiter].has_stale = false;
        if self.clients.waiters[waiter].stage == Stage::AaaaWithCd && self.answer_from_cache(waiter, now, out)
        {
            return;
        }
        self.ask_upstream(waiter, now, out);
    }
}
