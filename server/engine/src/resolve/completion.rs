//! Completion of a question in flight: store the reply, then serve the pending queries.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_bogus, is_no_answer};
use wire::header::{self, Flags};
use wire::{EdeCode, Message, Rcode};

impl Engine {
    /// Ends a question in flight: stores the reply, and gives it to the pending queries. After a failure they get expired data if there are
    /// any. `reply` is none if no reply came, or none that clients can use.
    pub(crate) fn complete_outbound_query(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let outbound = &self.upstream.outbound_queries[index];
        // The reply came to a query without EDNS, so it carries no signatures: never cache it under a DO query.
        let lacks_dnssec_records = outbound.lacks_dnssec_records && outbound.query_flags.has(QueryFlags::DO);
        // After a reload the name may belong to other upstreams. The cache must not hold a reply of the former ones for it.
        let is_of_group = outbound.group == self.upstream.servers.group_number(outbound.forward_key());
        if lacks_dnssec_records || !is_of_group || !self.cache.is_cacheable(&outbound.question()) {
            return self.serve_reply(index, reply, now, out);
        }
        // Failures: expired data first, then the failure is cached.
        let Some(message) = reply.filter(|message| !is_no_answer(message)) else {
            return self.complete_failed(index, reply, now, out);
        };
        if self.settings.cache.is_out_of_range(message) {
            return self.complete_clamped(index, message, now, out);
        }
        // The reply is stored before it is served: a pending query that asks the next question may find it in the cache.
        let chain = Chain::follow(message);
        self.store_reply(index, message, &chain, now);
        self.serve_pending_queries(index, &Outcome::Reply(message, &chain), now, out);
    }

    /// Ends a question that was not answered, or whose reply is a failure.
    fn complete_failed(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        // A bogus answer is an answer: older data would hide it.
        if !reply.is_some_and(is_bogus) && self.complete_with_stale(index, reply.is_some(), now, out) {
            return;
        }
        if !self.upstream.outbound_queries.predates_flush(index) {
            let outbound = &self.upstream.outbound_queries[index];
            self.cache.store_failure(&outbound.question(), outbound.group, reply, now);
        }
        self.serve_reply(index, reply, now, out);
    }

    /// Ends a question with a reply that has TTLs out of the configured range.
    fn complete_clamped(&mut self, index: Index, message: &Message<'_>, now: Instant, out: &mut impl Outbox) {
        let mut frame = self.frames.take();
        let bytes = &mut frame[..message.bytes().len()];
        bytes.copy_from_slice(message.bytes());
        self.settings.cache.clamp(message, bytes);
        if let Ok(clamped) = Message::parse(&frame[..message.bytes().len()]) {
            let chain = Chain::follow(&clamped);
            self.store_reply(index, &clamped, &chain, now);
            self.serve_pending_queries(index, &Outcome::Reply(&clamped, &chain), now, out);
        } else {
            // A name overlapped a TTL. The pending queries go on waiting, as after any malformed reply.
            self.counters.count(Counter::DroppedMalformedReply);
        }
        self.frames.give(frame);
    }

    fn store_reply(&mut self, index: Index, message: &Message<'_>, chain: &Chain<'_>, now: Instant) {
        let predates_flush = self.upstream.outbound_queries.predates_flush(index);
        let outbound = &self.upstream.outbound_queries[index];
        self.cache.store_reply(&outbound.question(), outbound.group, message, chain, predates_flush, now);
    }

    /// Ends a question that got only unusable replies: its clients get SERVFAIL with this extended DNS error (RFC 8914).
    #[cold]
    pub(crate) fn complete_unusable(
        &mut self,
        index: Index,
        message: &Message<'_>,
        reason: EdeCode,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let mut frame = self.frames.take();
        let end = wire::HEADER + message.question().len();
        frame[..end].copy_from_slice(&message.bytes()[..end]);
        let flags = message.flags().without(Flags::TC).without(Flags::AD).with_rcode(Rcode::SERVFAIL);
        header::set_flags(&mut frame, flags);
        header::set_ancount(&mut frame, 0);
        header::set_nscount(&mut frame, 0);
        header::set_arcount(&mut frame, 1);
        let room = &mut frame[end..];
        let octets = wire::write_opt(room, 512, 0, 0, false, Some(reason));
        if let Ok(failure) = Message::parse(&frame[..end + octets.unwrap_or(0)]) {
            self.complete_outbound_query(index, Some(&failure), now, out);
        } else {
            debug_assert!(false, "a failure of our own does not parse");
            self.complete_outbound_query(index, None, now, out);
        }
        self.frames.give(frame);
    }

    pub(crate) fn serve_reply(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match reply {
            None => self.serve_pending_queries(index, &Outcome::Failed, now, out),
            Some(message) => {
                let chain = Chain::follow(message);
                self.serve_pending_queries(index, &Outcome::Reply(message, &chain), now, out);
            }
        }
    }

    /// Gives the outcome of a question in flight to every pending query: each is answered, or continues with its next question.
    fn serve_pending_queries(
        &mut self,
        index: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let scope = self.upstream.outbound_queries[index].scope;
        let mut pending = self.upstream.complete(index, out);
        // Replies and new queries no longer find this question, so the steps below cannot reach it again.
        let mut decision = None;
        let mut is_shared = false;
        while pending != NONE {
            let state = &mut self.clients.pending_queries[pending];
            let next = state.next;
            state.scope = state.scope.max(scope);
            if next != NONE && !is_shared {
                is_shared = true;
                self.answer_memo.begin();
            }
            self.on_outcome(pending, outcome, &mut decision, now, out);
            pending = next;
        }
        if is_shared {
            self.counters.add(Counter::CopiedAnswers, self.answer_memo.end());
        }
        let reply = match outcome {
            Outcome::Reply(message, _) => Some(message.bytes()),
            Outcome::Failed => None,
        };
        self.upstream.park_or_free(index, reply);
    }
}
