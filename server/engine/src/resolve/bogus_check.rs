//! The bogus check: a SERVFAIL of the AAAA lookup may mean a bogus answer, which must never be papered over with A records (RFC 6147
//! section 5.5 (2)), or a broken server, where the A lookup decides (section 5.1.2).
//!
//! An extended DNS error (RFC 8914) in the SERVFAIL decides at once. Otherwise the AAAA lookup is asked again without validation, with
//! CD set (RFC 4035 section 3.2.2), and the A lookup at the same time:
//!
//! ```text
//! AAAA -> SERVFAIL -> AAAA with CD -> fails too: the server is broken -> the A lookup decides
//!                                  -> is answered -> AAAA once more -> SERVFAIL: bogus -> SERVFAIL
//!                                                                   -> any other reply -> used as the first reply
//! ```
//!
//! The last query distinguishes a bogus answer from a short failure of the server. A failure costs one more query, and no time if
//! the A lookup takes as long. A bogus answer costs two more queries. There is no check with `dnssec = "off"`, where the upstream's
//! validation is not trusted, nor where `on-failure` forwards failures.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage};
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_stale};
use crate::reasons::PassReason;
use crate::trace::{Subject, TraceEvent};
use wire::{Rcode, ede};

impl Engine {
    /// Starts or ends the check after a SERVFAIL without an extended DNS error. Returns the cause to continue with the A lookup; none
    /// if the client waits, or has its answer.
    pub(crate) fn start_bogus_check(
        &mut self,
        pending: Index,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Cause> {
        let state = &mut self.clients.pending_queries[pending];
        // The upstream does not validate for a client that sets CD.
        if state.query_flags.has(QueryFlags::CD) {
            return Some(Cause::Error);
        }
        if state.bogus_recheck {
            self.counters.count(PassReason::Bogus.counter());
            self.store_bogus(pending);
            out.trace(Subject::PendingQuery(pending), || TraceEvent::AnswerIs(PassReason::Bogus));
            //= RFC 6147 section 5.5: requirement 29
            self.respond_empty(pending, Rcode::SERVFAIL, Some(ede::DNSSEC_BOGUS), now, out);
            return None;
        }
        out.trace(Subject::PendingQuery(pending), || TraceEvent::ChecksBogus);
        state.stage = Stage::AaaaWithCd;
        if state.a_outbound_query == NONE {
            self.ask_a_early(pending, now, out);
        }
        self.counters.count(Counter::BogusChecks);
        self.ask_aaaa_again(pending, now, out);
        None
    }

    /// Handles the reply of the AAAA lookup that was asked without validation.
    pub(crate) fn on_aaaa_with_cd(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::PendingQuery(pending), || self.lookup_event(pending, outcome));
        match outcome {
            // Expired data do not show that a server answers now.
            Outcome::Reply(message, _) if is_stale(message) => {
                self.decide_by_a(pending, Cause::Error, &Outcome::Failed, now, out);
            }
            Outcome::Reply(message, _) if matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN) => {
                out.trace(Subject::PendingQuery(pending), || TraceEvent::ReasksAaaa);
                let state = &mut self.clients.pending_queries[pending];
                state.stage = Stage::Aaaa;
                state.bogus_recheck = true;
                self.ask_aaaa_again(pending, now, out);
            }
            _ => self.decide_by_a(pending, Cause::Error, outcome, now, out),
        }
    }

    /// Asks the AAAA lookup again. Without CD the cache holds only the failure that is being checked, so only a reply to a query with
    /// CD is taken from the cache.
    fn ask_aaaa_again(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) {
        self.clients.pending_queries[pending].has_stale = false;
        if self.clients.pending_queries[pending].stage == Stage::AaaaWithCd
            && self.answer_from_cache(pending, now, out)
        {
            return;
        }
        self.ask_upstream(pending, now, out);
    }
}
