//! The AAAA lookup (RFC 6147 sections 5.1.1 to 5.1.4): acts on the decision of `dns64/decision.rs`.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::dns64::decision::{AaaaDecision, Cause};
use crate::dns64::rules::Rule;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::reply::Outcome;
use crate::reasons::PassReason;
use crate::trace::{Subject, TraceEvent};

impl Engine {
    /// Handles the outcome of the AAAA lookup as the decision says.
    pub(crate) fn on_aaaa(
        &mut self,
        pending: Index,
        decision: AaaaDecision,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::PendingQuery(pending), || self.lookup_event(pending, outcome));
        let cause = match (decision, outcome) {
            (AaaaDecision::Pass(PassReason::RealAaaa), _) if self.ignores_real(pending).is_some() => {
                Cause::Ignored
            }
            (AaaaDecision::Pass(reason), Outcome::Reply(message, chain)) => {
                self.counters.count(reason.counter());
                out.trace(Subject::PendingQuery(pending), || TraceEvent::AnswerIs(reason));
                self.mark_valid_for_dns64(pending, message, reason);
                return self.forward_to(pending, message, chain, true, now, out);
            }
            (AaaaDecision::Pass(reason), Outcome::Failed) => {
                self.counters.count(reason.counter());
                out.trace(Subject::PendingQuery(pending), || TraceEvent::AnswerIs(reason));
                return self.on_direct(pending, outcome, now, out);
            }
            (AaaaDecision::ChaseCname, Outcome::Reply(message, chain)) => {
                return self.chase_cname(pending, message, chain.end(), now, out);
            }
            (AaaaDecision::ChaseCname, Outcome::Failed) => Cause::Timeout,
            (AaaaDecision::Synthesize(cause), _) => cause,
            (AaaaDecision::CheckBogus, _) => match self.start_bogus_check(pending, now, out) {
                Some(cause) => cause,
                None => return,
            },
        };
        self.decide_by_a(pending, cause, outcome, now, out);
    }

    /// Rule that makes DNS64 ignore real AAAA records for a query; none if they count.
    pub(crate) fn ignores_real(&self, pending: Index) -> Option<&Rule> {
        let pending = &self.clients.pending_queries[pending];
        self.settings.dns64.rules.of(pending.client.address, pending.name()).ignores_real()
    }
}
