//! The three inputs of the engine: a client's query, an upstream's reply (or the failure of a link), and time.
//!
//! `upstream` returns the result of a reply or a timeout as a value; this file passes it to the waiting clients (`resolve`).

use crate::base::network::Network;
use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::context::Context;
use crate::engine::Engine;
use crate::interface::{Client, ClientTransport, Link, Machine, Outbox};
use crate::packet_cache_entry::{PacketCacheEntry, PacketCacheEntryKind, PacketCacheHits};
use crate::trace::{Subject, TraceEvent, Unreachable, Untrusted};
use crate::upstream::receive::Received;
use crate::upstream::reconnect::{FailedLink, Reconnect};
use crate::upstream::retry::{AttemptDeadline, NextAttempt};
use wire::{Message, lower_question};

impl Machine for Engine {
    #[inline]
    fn prefetch_cache_lines<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) {
        if !self.cache.is_off() {
            self.touch_entries(messages);
        }
    }

    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.on_query(now, from, message, out);
    }

    // The way of a reply: `may_be_reply` (socket, QR), the parse, `receive` (ID, question, letter case, cookie; then TCP, EDNS or
    // another server if it is no answer), `complete_outbound_query` (store it), `serve_pending_queries`, `on_outcome` (RPZ), and the step of the pending query's
    // stage.
    fn reply(&mut self, now: Instant, via: Link, bytes: &mut [u8], out: &mut impl Outbox) {
        let Engine { upstream, counters, .. } = self;
        let cx = &mut Context { now, out, counters };
        if !upstream.may_be_reply(via, bytes, cx) {
            return;
        }
        let parsed = Message::parse(bytes);
        let Ok(message) = &parsed else {
            if let Received::Failed(outbound) = upstream.receive_bare(via, bytes, cx) {
                self.complete_outbound_query(outbound, None, now, out);
            }
            return;
        };
        let received = upstream.receive(via, message, cx);
        if received == Received::Nothing {
            return;
        }
        // The letter case of the query has done its work. Clients and operators see names in lower case.
        let offsets = message.offsets();
        let message = lower_question(bytes, offsets);
        match received {
            Received::Nothing => {}
            Received::Completed(outbound) => self.complete_outbound_query(outbound, Some(&message), now, out),
            Received::Failed(outbound) => self.complete_outbound_query(outbound, None, now, out),
            Received::Unusable(outbound, reason) => {
                self.complete_unusable(outbound, &message, reason, now, out);
            }
        }
    }

    //= RFC 7858 section 3.4: requirement 75
    fn on_link_failure(&mut self, now: Instant, via: Link, reason: Unreachable, out: &mut impl Outbox) {
        let Engine { upstream, counters, .. } = self;
        let cx = &mut Context { now, out, counters };
        let Some(mut failed) = upstream.fail_link(via, reason, cx) else { return };
        if let Unreachable::Untrusted(reason) = reason {
            return self.fail_untrusted(failed, reason, now, out);
        }
        // Every question whose current attempt used the link is asked again at once, over another server if possible.
        while let Some(outbound) = self.upstream.next_stranded(&mut failed) {
            out.trace(Subject::OutboundQuery(outbound), || TraceEvent::LinkFailed);
            let Engine { upstream, counters, .. } = self;
            let cx = &mut Context { now, out, counters };
            if upstream.reconnect(outbound, &failed.lost, cx) == Reconnect::Later {
                self.ask_a_before_retry(outbound, now, out);
            } else {
                self.retry(outbound, now, out);
            }
        }
        self.upstream.finish_failed_link(&failed, out);
    }

    fn is_idle(&self) -> bool {
        self.clients.pending_queries.len() == 0
    }

    fn packet_cache_entry(&self, now: Instant, query: &[u8], answer: &mut PacketCacheEntry) -> bool {
        self.write_packet_cache_entry(now, query, answer)
    }

    fn packet_cache_epoch(&self) -> u64 {
        self.packet_cache_epoch
    }

    fn packet_cache_clients(&self) -> &[Network] {
        &self.settings.allow.0
    }

    fn count_packet_cache_hits(
        &mut self,
        now: Instant,
        transport: ClientTransport,
        query: &[u8],
        kind: PacketCacheEntryKind,
        hits: PacketCacheHits,
    ) {
        Engine::count_packet_cache_hits(self, now, transport, query, kind, hits);
    }

    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        while let Some(outbound) = self.upstream.pop_due(now) {
            self.on_timer(outbound, now, out);
        }
        self.upstream.maintain(&mut Context { now, out, counters: &mut self.counters })
    }
}

impl Engine {
    /// Goes on with the questions on a TLS link whose upstream could not be authenticated.
    //= RFC 8310 section 5.1: requirement 78
    fn fail_untrusted(
        &mut self,
        mut failed: FailedLink,
        reason: Untrusted,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.upstream.distrust(failed.lost.server, reason);
        while let Some(outbound) = self.upstream.next_stranded(&mut failed) {
            out.trace(Subject::OutboundQuery(outbound), || TraceEvent::Untrusted(reason));
            if self.upstream.has_another(outbound, &failed.lost) {
                self.retry(outbound, now, out);
            } else {
                // Another connection would end in the same way, and there is no other way that is as safe.
                self.complete_outbound_query(outbound, None, now, out);
            }
        }
    }

    /// Handles the timer of a question in flight.
    fn on_timer(&mut self, outbound: Index, now: Instant, out: &mut impl Outbox) {
        let due = self.upstream.take_due(outbound, now);
        if due.a_lookup {
            self.ask_a_for_all(outbound, now, out);
        }
        if due.client_response {
            self.on_client_response_timer(outbound, now, out);
        }
        let is_crowded = self.clients.pending_queries.is_crowded();
        let Engine { upstream, counters, .. } = self;
        let cx = &mut Context { now, out, counters };
        if due.repetition {
            upstream.repeat(outbound, is_crowded, cx);
        }
        match upstream.on_attempt_deadline(outbound, is_crowded, cx) {
            AttemptDeadline::NotYet => {}
            AttemptDeadline::WaitUntil(until) => {
                self.ask_a_before_retry(outbound, now, out);
                self.upstream.set_deadline(outbound, until);
            }
            AttemptDeadline::Over(silent) => {
                // A query that could not be sent was told of then.
                if self.upstream.outbound_queries[outbound].awaits_reply() {
                    out.trace(Subject::OutboundQuery(outbound), || TraceEvent::NoReply);
                }
                self.retry(outbound, now, out);
                if let Some(server) = silent {
                    self.upstream.probe_idle_servers(outbound, server, now);
                }
            }
        }
    }

    /// Makes the next attempt of a question whose current attempt is over, or ends the question as failed.
    fn retry(&mut self, outbound: Index, now: Instant, out: &mut impl Outbox) {
        let Engine { upstream, counters, .. } = self;
        match upstream.next_attempt(outbound, &mut Context { now, out, counters }) {
            NextAttempt::Wait => {}
            NextAttempt::Failed => self.complete_outbound_query(outbound, None, now, out),
            NextAttempt::Send => {
                self.ask_a_before_retry(outbound, now, out);
                let Engine { upstream, counters, .. } = self;
                upstream.send(outbound, &mut Context { now, out, counters });
                if self.is_silence_synthesized(outbound) {
                    self.upstream.plan_repetition(outbound, now);
                }
            }
        }
    }
}
