//! TCP and TLS connections to an upstream: those that are idle or stall, and the lessons of those that end
//! (RFC 7766 sections 6.2.1.1, 6.2.3 and 6.2.4).
//!
//! A connection stalls if queries wait on it and nothing comes for half of `upstream.timeout`. New queries go over another
//! connection, and the questions on it are asked there as well, at the cost of half an attempt. It stays open with its last question,
//! because its replies may only be late.

use crate::base::time::{Instant, Span};
use crate::context::Context;
use crate::counters::{Counter, Counters};
use crate::interface::{Link, Outbox};
use crate::limits::TRIES;
use crate::message::question::QueryFlags;
use crate::upstream::Upstream;
use crate::upstream::connection_policy::LearnedHabit;
use crate::upstream::in_flight::Wait;

/// Queries on a silent connection from which the silence is a lesson: one name may be slow to resolve, but not eight.
const CROWD: u32 = 8;

impl Upstream {
    /// Closes the connections to a server that are idle, and moves the questions of those that stall. Returns the time of the next
    /// such step.
    #[inline(always)]
    pub(super) fn maintain_streams(
        &mut self,
        number: usize,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Instant> {
        let mut next = None;
        for place in (0..self.servers.list[number].connections.len()).rev() {
            let slot = self.servers.list[number].connections[place];
            next = next.into_iter().chain(self.maintain_stream(slot, number, cx)).min();
        }
        next
    }

    fn maintain_stream(
        &mut self,
        slot: u16,
        number: usize,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Instant> {
        let link = self.links.link(slot)?;
        let server = &self.servers.list[number];
        if let Some(end) = server.connection_policy.idle_end(self.links.usage(link)) {
            if end > cx.now {
                return Some(end);
            }
            self.close(link, cx.out);
            return None;
        }
        let end = self.links.silent_since(link)? + Span(self.parameters.timeout.0 / 2);
        if end > cx.now {
            return Some(end);
        }
        self.on_stall(link, cx);
        None
    }

    /// Handles a connection that stalls: its questions are asked again now, if they have an attempt left.
    #[cold]
    fn on_stall(&mut self, link: Link, cx: &mut Context<'_, impl Outbox>) {
        cx.counters.count(Counter::StreamsStalled);
        let server = self.links.server(link);
        // One failure for all questions: eight would make the server look dead.
        self.servers.list[usize::from(server)].on_timeout(cx.now);
        if self.links.outstanding(link) >= CROWD {
            self.learn_from_ending(link, cx);
        }
        // Questions wait on it, so it stays open.
        let _ = self.set_aside(link);
        // Nothing is asked over the link here, so the places stay.
        for place in 0.. {
            let Some((id, index)) = self.links.issued_at(link, place) else { break };
            if !self.outbound_queries[index].is_current(link, id)
                || self.outbound_queries[index].query_flags.has(QueryFlags::PROBE)
            {
                continue;
            }
            let outbound = &mut self.outbound_queries[index];
            let tries_left = self.parameters.tries.saturating_sub(outbound.tries);
            let has_room = usize::from(outbound.attempts_len + tries_left) <= TRIES;
            outbound.half_attempt = !outbound.half_attempt && has_room;
            // Two stalls take as long as one attempt, so they cost one: a slow upstream has its whole time.
            if outbound.half_attempt {
                outbound.tries = outbound.tries.saturating_sub(1);
            }
            if outbound.tries < self.parameters.tries {
                // The timer must not blame the server once more.
                outbound.wait = Wait::Reconnect;
                cx.counters.count(Counter::StreamRetries);
                self.set_deadline(index, cx.now);
            }
        }
    }

    /// Learns from a connection that its upstream has closed after at least one reply.
    #[cold]
    pub(super) fn learn_from_ending(&mut self, link: Link, cx: &mut Context<'_, impl Outbox>) {
        let usage = self.links.usage(link);
        let policy = &mut self.servers.list[usize::from(self.links.server(link))].connection_policy;
        let learned = policy.on_ending(usage, cx.now);
        count_learned(learned, cx.counters);
    }

    /// Learns from a reply over a connection.
    #[inline]
    pub(super) fn learn_from_reply(
        &mut self,
        link: Link,
        round_trip: Span,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let usage = self.links.usage(link);
        let policy = &mut self.servers.list[usize::from(self.links.server(link))].connection_policy;
        let learned = policy.on_reply(usage, round_trip, cx.now);
        count_learned(learned, cx.counters);
    }
}

fn count_learned(learned: Option<LearnedHabit>, counters: &mut Counters) {
    let Some(learned) = learned else { return };
    counters.count(match learned {
        LearnedHabit::Questions => Counter::LimitQuestions,
        LearnedHabit::Idle => Counter::LimitIdle,
        LearnedHabit::OneAtATime => Counter::LimitOneAtATime,
    });
}
