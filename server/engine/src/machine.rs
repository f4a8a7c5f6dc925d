//! The three inputs of the engine: a client's query, an upstream's reply (or the failure of a link), and time.
//!
//! `upstream` returns the result of a reply or a timeout as a value; this file passes it to the waiting clients (`resolve`).

use crate::base::network::Network;
use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::common_answer::{CommonAnswer, CommonAnswerKind, PacketCacheHits};
use crate::engine::Engine;
use crate::interface::{Client, ClientTransport, Link, Machine, Outbox};
use crate::trace::{Subject, TraceEvent, Unreachable, Untrusted};
use crate::upstream::receive::{FailedLink, Received};
use crate::upstream::reconnect::Reconnect;
use crate::upstream::retry::{NextTry, TryDeadline};
use wire::{Message, ede, lower_question};

impl Machine for Engine {
    #[inline]
    fn announce<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) {
        if !self.cache.is_off() {
            self.load_entries(messages);
        }
    }

    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.on_query(now, from, message, out);
    }

    // The way of a reply: `may_be_reply` (socket, QR), the parse, `receive` (ID, question, letter case, cookie; then TCP, EDNS or
    // another server if it is no answer), `complete_flight` (store it), `serve_waiters`, `proceed` (RPZ), and the step of the waiter's
    // stage.
    fn reply(&mut self, now: Instant, via: Link, bytes: &mut [u8], out: &mut impl Outbox) {
        let Engine { upstream, counters, .. } = self;
        if !upstream.may_be_reply(via, bytes, now, counters) {
            return;
        }
        let parsed = Message::parse(bytes);
        let Ok(message) = &parsed else {
            if let Received::Failed(flight) = upstream.receive_bare(via, bytes, now, counters, out) {
                self.complete_flight(flight, None, now, out);
            }
            return;
        };
        let received = upstream.receive(via, message, now, counters, out);
        if received == Received::Nothing {
            return;
        }
        // The letter case of the query has done its work. Clients and operators see names in lower case.
        let places = message.places();
        let message = lower_question(bytes, places);
        match received {
            Received::Nothing => {}
            Received::Completed(flight) => self.complete_flight(flight, Some(&message), now, out),
            Received::Failed(flight) => self.complete_flight(flight, None, now, out),
            Received::Unusable(flight) => {
                self.complete_unusable(flight, &message, ede::NO_REACHABLE_AUTHORITY, now, out);
            }
            // Of the codes that rule out bogus data (RFC 8914), this one is about the data. A failure that may be bogus would be
            // asked for once more.
            Received::TooManyRecords(flight) => {
                self.complete_unusable(flight, &message, ede::INVALID_DATA, now, out);
            }
        }
    }

    //= RFC 7858 section 3.4: requirement 75
    fn unreachable(&mut self, now: Instant, via: Link, reason: Unreachable, out: &mut impl Outbox) {
        let Some(mut failed) = self.upstream.fail_link(via, reason, now, &mut self.counters) else { return };
        if let Unreachable::Untrusted(reason) = reason {
            return self.fail_untrusted(failed, reason, now, out);
        }
        // Every question whose current try used the link is asked again at once, over another server if possible.
        while let Some(flight) = self.upstream.next_stranded(&mut failed) {
            out.trace(Subject::Flight(flight), || TraceEvent::LinkFailed);
            if self.upstream.reconnect(flight, &failed.lost, now, &mut self.counters) == Reconnect::Later {
                self.ask_a_before_retry(flight, now, out);
            } else {
                self.retry(flight, now, out);
            }
        }
        self.upstream.finish_failed_link(&failed, out);
    }

    fn idle(&self) -> bool {
        self.clients.waiters.len() == 0
    }

    fn common_answer(&self, now: Instant, query: &[u8], answer: &mut CommonAnswer) -> bool {
        self.write_common_answer(now, query, answer)
    }

    fn common_version(&self) -> u64 {
        self.common_version
    }

    fn common_clients(&self) -> &[Network] {
        &self.settings.allow.0
    }

    fn count_packet_cache_hits(
        &mut self,
        now: Instant,
        transport: ClientTransport,
        query: &[u8],
        kind: CommonAnswerKind,
        hits: PacketCacheHits,
    ) {
        Engine::count_packet_cache_hits(self, now, transport, query, kind, hits);
    }

    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        while let Some(flight) = self.upstream.pop_due(now) {
            self.on_timer(flight, now, out);
        }
        self.upstream.maintain(now, &mut self.counters, out)
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
        while let Some(flight) = self.upstream.next_stranded(&mut failed) {
            out.trace(Subject::Flight(flight), || TraceEvent::Untrusted(reason));
            if self.upstream.has_another(flight, &failed.lost) {
                self.retry(flight, now, out);
            } else {
                // Another connection would end in the same way, and there is no other way that is as safe.
                self.complete_flight(flight, None, now, out);
            }
        }
    }

    /// Handles the timer of a question in flight.
    fn on_timer(&mut self, flight: Index, now: Instant, out: &mut impl Outbox) {
        let due = self.upstream.take_due(flight, now);
        if due.a_leg {
            self.ask_a_for_all(flight, now, out);
        }
        if due.client_response {
            self.on_client_response_timer(flight, now, out);
        }
        let is_crowded = self.clients.waiters.is_crowded();
        if due.repetition {
            self.upstream.repeat(flight, is_crowded, now, &mut self.counters, out);
        }
        match self.upstream.on_try_deadline(flight, is_crowded, now, &mut self.counters) {
            TryDeadline::NotYet => {}
            TryDeadline::WaitUntil(until) => {
                self.ask_a_before_retry(flight, now, out);
                self.upstream.set_deadline(flight, until);
            }
            TryDeadline::Over(silent) => {
                // A query that could not be sent was told of then.
                if !self.upstream.flights[flight].send_failed {
                    out.trace(Subject::Flight(flight), || TraceEvent::NoReply);
                }
                self.retry(flight, now, out);
                if let Some(server) = silent {
                    self.upstream.probe_idle_servers(flight, server, now);
                }
            }
        }
    }

    /// Makes the next try of a question whose current try is over, or ends the question as failed.
    fn retry(&mut self, flight: Index, now: Instant, out: &mut impl Outbox) {
        match self.upstream.next_try(flight, now, &mut self.counters, out) {
            NextTry::Wait => {}
            NextTry::Failed => self.complete_flight(flight, None, now, out),
            NextTry::Send => {
                self.ask_a_before_retry(flight, now, out);
                self.upstream.send(flight, now, &mut self.counters, out);
                if self.is_silence_synthesized(flight) {
                    self.upstream.plan_repetition(flight, now);
                }
            }
        }
    }
}
