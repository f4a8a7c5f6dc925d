//! Storing of answers: the mark that a cached reply is a complete answer, and the synthesis.
//!
//! A cached entry may be copied to a client unchanged only if it was checked under the current settings (`valid_for`). After a
//! reload the first query checks it again. So the cache does not depend on policy, and answers never ignore it.
//!
//! The check includes the response policy zones: the names and addresses of the answer were compared with all rules, and none applied. So
//! the copy is for clients for whose address there is no rule. If a rule applied, even PASSTHRU, or may yet apply, the next query is
//! checked anew.

use crate::answer::params::{ResponseParams, unlimited_params};
use crate::answer::synthesis::{SynthesisInput, synthesize};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::cache::entry::EntryKind;
use crate::client::pending_query::PendingQuery;
use crate::dns64::config::is_excluded;
use crate::dns64::decision::Cause;
use crate::engine::Engine;
use crate::reasons::{AnswerReason, CacheHit, PassReason};
use wire::{Message, Section};

impl Engine {
    /// Stores that the failure of a pending query's AAAA lookup meant a bogus answer.
    pub(crate) fn store_bogus(&mut self, pending: Index) {
        let state = &self.clients.pending_queries[pending];
        if state.chase == NONE {
            let question = state.own_question();
            self.cache.mark_bogus(&question, self.upstream.servers.group_number(question.forward_key()));
        }
    }

    /// Marks the cached reply that was a pending query's answer without a change. `reason`: for clients with DNS64, the reason of that
    /// answer.
    pub(crate) fn mark_valid(&mut self, pending: Index, reason: Option<AnswerReason>) {
        let state = &self.clients.pending_queries[pending];
        if state.is_all_from_cache() && state.has_met_no_rule() && state.chase == NONE {
            let question = state.own_question();
            self.cache.mark_valid(
                &question,
                self.upstream.servers.group_number(question.forward_key()),
                reason,
            );
        }
    }

    /// Marks the cached AAAA reply that was the answer of a pending query with DNS64, if it is the answer of all such clients.
    pub(crate) fn mark_valid_for_dns64(&mut self, pending: Index, message: &Message<'_>, reason: PassReason) {
        let Some(reason) = AnswerReason::passed(reason) else { return };
        let state = &self.clients.pending_queries[pending];
        let dns64 = &self.settings.dns64;
        if state.is_all_from_cache()
            && self.has_no_rule(&state.client, state.name())
            && !message.records(Section::Answer).any(|record| is_excluded(&record, Some(dns64)))
        {
            self.mark_valid(pending, Some(reason));
        }
    }

    /// Stores a synthesis of [`synthesize_for_cache`]: the answer for all clients to which no rule applies.
    pub(crate) fn store_synthesis(&mut self, pending: Index, bytes: &[u8], omitted: u32, now: Instant) {
        let state = &self.clients.pending_queries[pending];
        let reason = match (state.cause, omitted) {
            (Cause::Excluded, 0) => AnswerReason::Excluded,
            (Cause::Excluded, _) => AnswerReason::ExcludedInPart,
            (_, 0) => AnswerReason::NoData,
            (_, _) => AnswerReason::NoDataInPart,
        };
        let question = state.own_question();
        let group = self.upstream.servers.group_number(question.forward_key());
        self.cache.store_synthesis(&question, group, bytes, reason, omitted, now);
    }

    /// True if the synthesis for a pending query is worth storing: its replies came from the cache, so the name is asked often.
    #[inline(always)]
    pub(crate) fn is_synthesis_stored(&self, pending: Index, now: Instant) -> bool {
        let state = &self.clients.pending_queries[pending];
        state.is_all_from_cache()
            && state.cache_hit == Some(CacheHit::Positive)
            // Failures are short, and rules do not apply to all clients.
            && matches!(state.cause, Cause::NoData | Cause::Excluded)
            && state.has_met_no_rule()
            && state.chase == NONE
            && !self.settings.local_data.has_name(state.name())
            && self.has_no_rule(&state.client, state.name())
            && !self.has_synthesis(pending, now)
    }

    /// True if the synthesis for a pending query's question is stored, and valid under the current settings.
    fn has_synthesis(&self, pending: Index, now: Instant) -> bool {
        let question = self.clients.pending_queries[pending].own_question();
        let group = self.upstream.servers.group_number(question.forward_key());
        let key = self.cache.key(&question, question.qtype, EntryKind::Synthesis, group);
        let place = self.cache.entries.find(&key);
        place.is_some_and(|place| self.cache.is_valid(&self.cache.entries.entry(place), true, now))
    }
}

/// Writes the synthesis that every client with the same query flags gets. Returns its octets, and the packed numbers of addresses that
/// it leaves out, which each answer counts; none if it depends on the client, or has no address.
pub(crate) fn synthesize_for_cache(
    frame: &mut [u8],
    pending: &PendingQuery,
    input: &SynthesisInput<'_, '_>,
) -> Option<(usize, u32)> {
    let params =
        ResponseParams { flags: pending.flags, ..unlimited_params(pending.query_flags, pending.question()) };
    let (written, counts) = synthesize(frame, &params, input);
    let omitted = counts.pack_omitted()?;
    (counts.records > 0 && !written.truncated).then_some((written.len, omitted))
}
