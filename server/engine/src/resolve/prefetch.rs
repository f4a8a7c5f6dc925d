//! Prefetch: refreshes a cached entry that is in use before it expires, and an expired entry after it was served (RFC 8767).

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::cache::entry::EntryKind;
use crate::context::Context;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::question::Question;
use wire::Type;

impl Engine {
    /// Refreshes the cached reply that a pending query has just got and that expires soon, or has expired.
    pub(crate) fn refresh_for(
        &mut self,
        pending: Index,
        qtype: Type,
        is_fresh: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let state = &self.clients.pending_queries[pending];
        let question = Question { qtype, query_flags: state.query_flags_for(qtype), ..state.own_question() };
        if state.chase == NONE
            && !self.settings.local_data.has_name(state.name())
            && self.upstream.outbound_queries.find(&question).is_none()
            // No pending query is attached: the reply goes to the cache.
            && self.outbound_query_for(pending, qtype, now, out).is_some()
            && is_fresh
        {
            self.counters.count(Counter::Refreshed);
        }
    }

    /// Refreshes a cached answer that was copied to a client: the reply itself, or both lookups of a synthesis.
    #[cold]
    pub(crate) fn refresh(
        &mut self,
        question: &Question<'_>,
        kind: EntryKind,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let types: &[Type] =
            if kind == EntryKind::Synthesis { &[Type::AAAA, Type::A] } else { &[question.qtype] };
        let group = self.upstream.servers.group_number(question.forward_key());
        for &qtype in types {
            let question = Question { qtype, ..*question };
            let is_wanted = kind == EntryKind::Reply || self.cache.claim_refresh(&question, group, now);
            if is_wanted && self.upstream.outbound_queries.find(&question).is_none() {
                self.counters.count(Counter::Refreshed);
                let _ =
                    self.upstream.launch(&question, &mut Context { now, out, counters: &mut self.counters });
            }
        }
    }
}
