//! Storing of answers: the mark that a cached reply is a complete answer, and the synthesis.
//!
//! A cached entry may be copied to a client unchanged only if it was checked under the current settings (`valid_for`). After a
//! reload the first query checks it again. So the cache does not depend on policy, and answers never ignore it.
//!
//! The check includes the response policy zones: the names and addresses of the answer were compared with all rules, and none applied. So
//! the copy is for clients for whose address there is no rule. If a rule applied, even PASSTHRU, or may yet apply, the next query is
//! checked anew.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::cache::entry::EntryKind;
use crate::cache::store::{LONGEST_FAILURE_SECS, StoredSynthesis};
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::config::{NonGlobal, is_excluded};
use crate::dns64::decision::Cause;
use crate::dns64::gateways::{Gateways, Spread};
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_bogus, is_no_answer};
use crate::reasons::{AnswerReason, CacheHit, PassReason};
use crate::resolve::from_cache::{CacheParts, has_no_rule, write_usable};
use crate::resolve::serve_stale;
use crate::resolve::steps::Addresses;
use crate::validator::zones::LONGEST_FAILURE_SECS as LONGEST_REFUSAL_SECS;
use pref64::Pref64;
use wire::{Message, Section, Type};

/// Outcome that the pending queries of a question get.
pub(crate) enum Served {
    /// The outcome as it is.
    AsItIs,
    /// The reply of this length in a frame of the engine's.
    Instead(Box<[u8]>, usize),
    /// Nothing: they go on waiting.
    Nothing,
}

impl CacheParts<'_> {
    /// Stores the outcome of a question in flight before it is served: a pending query that asks the next question may find it in the cache.
    /// After a failure there may be expired data for it.
    pub(crate) fn store(
        self,
        index: Index,
        outcome: &Outcome<'_, '_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Served {
        let CacheParts { settings, clients, upstream, cache, frames } = self;
        let outbound = &upstream.outbound_queries[index];
        // The reply came to a query without EDNS, so it carries no signatures: never cache it under a DO query.
        let lacks_dnssec_records = outbound.lacks_dnssec_records && outbound.query_flags.has(QueryFlags::DO);
        // After a reload the name may belong to other upstreams. The cache must not hold a reply of the former ones for it.
        let is_of_group = outbound.group == upstream.servers.group_number(outbound.forward_key());
        if lacks_dnssec_records || !is_of_group || !cache.is_cacheable(&outbound.question()) {
            let reply = match outcome {
                Outcome::Reply(message, _) => Some(message.bytes()),
                Outcome::Failed => None,
            };
            upstream.note_own_reply(index, reply);
            return Served::AsItIs;
        }
        let reply = match *outcome {
            Outcome::Reply(message, chain) if !is_no_answer(&message) => {
                let parts = CacheParts { settings, clients, upstream, cache, frames };
                if parts.settings.cache.is_out_of_range(message) {
                    return parts.store_clamped(index, message, cx);
                }
                parts.store_reply(index, chain, cx.now);
                return Served::AsItIs;
            }
            Outcome::Reply(message, _) => Some(message),
            Outcome::Failed => None,
        };
        // Failures: expired data first, then the failure is cached. A bogus answer is an answer: older data would hide it.
        if !reply.is_some_and(is_bogus)
            && let Some(usable) =
                serve_stale::stand_in(cache, clients, upstream, (index, reply.is_some()), cx.now)
        {
            let mut frame = frames.take();
            let length = write_usable(cache, usable, &mut frame, cx.now);
            return Served::Instead(frame, length);
        }
        if !upstream.outbound_queries.predates_flush(index) {
            let outbound = &upstream.outbound_queries[index];
            let is_refused = settings.validation.is_some() && reply.is_some_and(is_bogus);
            let longest_secs = if is_refused { LONGEST_REFUSAL_SECS } else { LONGEST_FAILURE_SECS };
            cache.store_failure(&outbound.question(), outbound.group, (reply, longest_secs), cx.now);
        }
        Served::AsItIs
    }

    /// Stores a reply, in which this chain was followed. A reply to a question that was asked before a flush may hold the data that were
    /// flushed.
    #[inline]
    fn store_reply(self, index: Index, chain: &Chain<'_>, now: Instant) {
        let CacheParts { upstream, cache, .. } = self;
        let outbound = &upstream.outbound_queries[index];
        if upstream.outbound_queries.predates_flush(index) {
            return cache.expire_early(&outbound.question(), outbound.group);
        }
        cache.store_reply(&outbound.question(), outbound.group, chain, now);
    }

    /// Stores a reply that has TTLs out of the configured range.
    fn store_clamped(self, index: Index, message: &Message<'_>, cx: &mut Context<'_, impl Outbox>) -> Served {
        let (mut frame, length) = (self.frames.take(), message.bytes().len());
        frame[..length].copy_from_slice(message.bytes());
        self.settings.cache.clamp(message, &mut frame[..length]);
        let Ok(clamped) = Message::parse(&frame[..length]) else {
            // A name overlapped a TTL. The pending queries go on waiting, as after any malformed reply.
            cx.counters.count(Counter::DroppedMalformedReply);
            self.frames.give(frame);
            return Served::Nothing;
        };
        let chain = Chain::follow(&clamped);
        self.store_reply(index, &chain, cx.now);
        Served::Instead(frame, length)
    }

    /// Stores that the failure of a pending query's AAAA lookup meant a bogus answer.
    pub(crate) fn mark_bogus(self, pending: Index) {
        if self.clients.pending_queries[pending].chase == NONE {
            let question = self.clients.pending_queries[pending].own_question();
            self.cache.mark_bogus(&question, self.upstream.servers.group_number(question.forward_key()));
        }
    }

    /// Marks the cached reply that was a pending query's answer without a change. `reason`: for clients with DNS64, the reason of that
    /// answer.
    pub(crate) fn mark_valid(self, pending: Index, reason: Option<AnswerReason>) {
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
    pub(crate) fn mark_valid_for_dns64(self, pending: Index, message: &Message<'_>, reason: PassReason) {
        let Some(reason) = AnswerReason::passed(reason) else { return };
        let state = &self.clients.pending_queries[pending];
        let dns64 = &self.settings.dns64;
        if state.is_all_from_cache()
            && has_no_rule(dns64, &state.client, state.name())
            && !message.records(Section::Answer).any(|record| is_excluded(&record, Some(dns64)))
        {
            self.mark_valid(pending, Some(reason));
        }
    }

    /// A frame for a copy of the synthesis for a pending query, if it is worth storing: its replies came from the cache, so the name is asked
    /// often.
    #[inline(always)]
    pub(crate) fn frame_for_synthesis(
        self,
        pending: Index,
        addresses: &Addresses<'_, '_, '_>,
        now: Instant,
    ) -> Option<Box<[u8]>> {
        let state = &self.clients.pending_queries[pending];
        let is_wanted = state.is_all_from_cache()
            && state.cache_hit == Some(CacheHit::Positive)
            // Failures are short, and rules do not apply to all clients.
            && matches!(state.cause, Cause::NoData | Cause::Excluded)
            && state.has_met_no_rule()
            && state.chase == NONE
            && !self.settings.local_data.has_name(state.name())
            && has_no_rule(&self.settings.dns64, &state.client, state.name())
            && self.settings.dns64.gateways.as_ref().is_none_or(|gateways| self.suits_all(gateways, addresses))
            && !self.has_synthesis(pending, now);
        is_wanted.then(|| self.frames.take())
    }

    /// True if a synthesis for one client is that of all, but for the prefix: clients have different ones with [`Spread::Client`]. A rule of
    /// a response policy zone may be for addresses under one prefix, only 64:ff9b::/96 does not take all addresses, and a mapping has none.
    #[cold]
    fn suits_all(&self, gateways: &Gateways, addresses: &Addresses<'_, '_, '_>) -> bool {
        if gateways.table().spread != Spread::Client {
            return true;
        }
        let dns64 = &self.settings.dns64;
        let takes_all =
            dns64.non_global == NonGlobal::Embed || !dns64.prefixes.iter().any(Pref64::is_well_known);
        // A mapped address is under no prefix, and must not be taken for one that is.
        let suits = |address| (takes_all || pref64::is_global(address)) && dns64.mapped(address).is_none();
        let Addresses { reply, chain, .. } = *addresses;
        let mut ends = reply.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A));
        self.settings.rpz.is_empty() && ends.all(|record| record.address4().is_none_or(suits))
    }

    /// Stores a synthesis that `write.rs` has written, if there is one: the answer for all clients to which no rule applies.
    pub(crate) fn store_synthesis(
        self,
        pending: Index,
        frame: Box<[u8]>,
        written: Option<(usize, u32)>,
        now: Instant,
    ) {
        if let Some((length, omitted)) = written {
            let state = &self.clients.pending_queries[pending];
            let reason = match (state.cause, omitted) {
                (Cause::Excluded, 0) => AnswerReason::Excluded,
                (Cause::Excluded, _) => AnswerReason::ExcludedInPart,
                (_, 0) => AnswerReason::NoData,
                (_, _) => AnswerReason::NoDataInPart,
            };
            let question = state.own_question();
            let group = self.upstream.servers.group_number(question.forward_key());
            let gateways = self.settings.dns64.gateways.as_ref();
            let prefix = gateways.map(|gateways| {
                gateways.general(state.client.address).trailing_zeros().min(u32::from(u8::MAX)) as u8
            });
            let synthesis = StoredSynthesis { bytes: &frame[..length], reason, omitted, prefix };
            self.cache.store_synthesis(&question, group, &synthesis, now);
        }
        self.frames.give(frame);
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
