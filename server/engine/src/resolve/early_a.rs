//! The A lookup ahead of the AAAA reply: with the AAAA query, after a stagger, or when the AAAA query is repeated.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::dns64::config::{Lookup, OnFailure};
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::question::Question;
use crate::trace::Subject;
use wire::Type;

impl Engine {
    /// Asks the A lookup when an AAAA query is repeated, if a failed AAAA lookup leads to the A lookup: the client waits for both at the
    /// same time.
    pub(crate) fn ask_a_before_retry(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.is_silence_synthesized(index) {
            self.upstream.outbound_queries[index].stagger = None;
            self.ask_a_for_all(index, now, out);
        }
    }

    /// True if a question that gets no reply leads to a synthesis, which hides real addresses if the replies were lost.
    pub(crate) fn is_silence_synthesized(&self, outbound: Index) -> bool {
        self.upstream.outbound_queries[outbound].qtype == Type::AAAA
            && self.settings.dns64.on_failure.timeout == OnFailure::Synthesize
    }

    /// Asks the A lookup for every pending query of an AAAA question that may need it.
    pub(crate) fn ask_a_for_all(&mut self, outbound: Index, now: Instant, out: &mut impl Outbox) {
        let mut index = self.upstream.outbound_queries[outbound].pending_queries;
        while index != NONE {
            let next = self.clients.pending_queries[index].next;
            if self.clients.pending_queries[index].stage == Stage::Aaaa
                && self.clients.pending_queries[index].a_outbound_query == NONE
            {
                self.ask_a_early(index, now, out);
            }
            index = next;
        }
    }

    /// Asks the A lookup of a pending query before its AAAA lookup is decided.
    //= RFC 6147 section 5.1.8: requirements 15, 15b
    pub(crate) fn ask_a_early(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.has_fresh(index, Type::A, now) {
            return;
        }
        if let Some(outbound) = self.outbound_query_for(index, Type::A, now, out) {
            out.trace(Subject::PendingQuery(index), || self.wait_event(index, Type::A, outbound));
            self.upstream.outbound_queries[outbound].early_a_users += 1;
            self.clients.pending_queries[index].a_outbound_query = outbound;
        }
    }

    /// True if the A lookup of a new pending query of an AAAA question is asked at once.
    pub(crate) fn asks_a_at_once(&self, outbound: Index) -> bool {
        let outbound = &self.upstream.outbound_queries[outbound];
        match self.settings.dns64.lookup {
            Lookup::Parallel => true,
            Lookup::Stagger(_) => outbound.stagger.is_none(),
            Lookup::Sequential => {
                outbound.tries > 1 && self.settings.dns64.on_failure.timeout == OnFailure::Synthesize
            }
        }
    }

    /// True if the cache has a fresh reply to a lookup of a pending query.
    pub(crate) fn has_fresh(&self, pending: Index, qtype: Type, now: Instant) -> bool {
        let state = &self.clients.pending_queries[pending];
        let question = Question { qtype, ..state.own_question() };
        if !self.cache.is_cacheable(&question) || state.chase != NONE {
            return false;
        }
        self.cache.has_fresh(
            &question,
            qtype,
            self.upstream.servers.group_number(question.forward_key()),
            now,
        )
    }
}
