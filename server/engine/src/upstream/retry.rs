//! Timeouts of questions in flight: the next attempt, a hedged query, or the end of the question.
//!
//! A question has one timer and up to four deadlines: that of its current attempt, that of the A lookup (`stagger`), that of a repetition
//! of its query, and the client response timer (RFC 8767 section 5). The caller asks for what is due, acts on it, and asks for the
//! next step:
//!
//! ```text
//! pop_due -> take_due -> (A lookup, repetition, stale answers) -> on_attempt_deadline -> next_attempt -> send, or the question has failed
//! ```
//!
//! The last attempt waits for the whole ceiling, so that late replies count. A reply that is lost does not come in that time either. So
//! an AAAA question whose failure leads to a synthesis repeats its query meanwhile (`repeat`): the synthesis would hide real
//! addresses (RFC 6147 section 5.1.3). Nobody waits longer for that.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::context::Context;
use crate::counters::{Counter, Counters};
use crate::interface::{Outbox, Transport};
use crate::limits::TRIES;
use crate::message::question::QueryFlags;
use crate::upstream::Upstream;
use crate::upstream::in_flight::{OutboundQueryState, Wait};
use crate::upstream::suspicion::Doubt;

/// Deadlines of a question, other than that of its current attempt, that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The A lookup is to be asked as well.
    pub a_lookup: bool,
    /// The query is to be repeated during the wait for its last attempt.
    pub repetition: bool,
    /// Clients that have expired data are to get them.
    pub client_response: bool,
}

/// State of the current attempt of a question when its timer has come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptDeadline {
    /// It is not over; the timer was set again.
    NotYet,
    /// It is late, and waits on until this time before it is repeated. The caller asks the A lookup if it may be needed, then
    /// sets the deadline.
    WaitUntil(Instant),
    /// It is over: the caller retries. Holds the server that was silent, if one was asked.
    Over(Option<u16>),
}

/// The next step of a question whose current attempt is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAttempt {
    /// A query can be sent: the caller asks the A lookup if it may be needed, then sends.
    Send,
    /// Nothing to do: a probe was sent again, or an earlier attempt may still be answered.
    Wait,
    /// No server answers: the question has failed.
    Failed,
}

impl Upstream {
    /// Takes the deadlines of a question that have come, except that of its current attempt.
    pub fn take_due(&mut self, index: Index, now: Instant) -> Due {
        let outbound = &mut self.outbound_queries[index];
        let a_lookup = outbound.stagger.take_if(|stagger| *stagger <= now).is_some();
        let repetition = outbound.repeat_at.take_if(|time| *time <= now).is_some();
        let client_response = outbound.client_response_timer.take_if(|timer| *timer <= now).is_some();
        Due { a_lookup, repetition, client_response }
    }

    /// Looks at the current attempt of a question whose timer has come due. `is_crowded`: more than half of the room for client
    /// queries is taken, so queries are not hedged.
    pub fn on_attempt_deadline(
        &mut self,
        index: Index,
        is_crowded: bool,
        cx: &mut Context<'_, impl Outbox>,
    ) -> AttemptDeadline {
        let outbound = &self.outbound_queries[index];
        if outbound.deadline > cx.now {
            let deadline = outbound.deadline;
            self.set_deadline(index, deadline);
            return AttemptDeadline::NotYet;
        }
        let last = outbound.attempts().last().copied();
        // An extended wait was counted when it began, and a lost connection is no timeout.
        if matches!(outbound.wait, Wait::Reply | Wait::Unsent) {
            cx.counters.count(Counter::Timeouts);
        }
        if let Some(attempt) = last
            && outbound.wait == Wait::Reply
        {
            let server = &mut self.servers.list[attempt.server as usize];
            if outbound.query_flags.has(QueryFlags::PROBE) {
                server.breaker.on_probe_timeout(cx.now);
            } else {
                server.on_timeout(cx.now);
            }
            // The kernel gives up a connection only after minutes, so the next query opens another one.
            if self.links.is_hung(attempt.link, attempt.sent) {
                // This question waits on it, so it stays open.
                let _ = self.set_aside(attempt.link);
            }
        }
        match self.hedge_or_wait(index, is_crowded, cx) {
            Some(until) => AttemptDeadline::WaitUntil(until),
            None => AttemptDeadline::Over(last.map(|attempt| attempt.server)),
        }
    }

    /// Decides whether to hedge a question whose last attempt is late, at the cost of a token (`retry_budget.rs`). Returns the end
    /// of the extended wait if not.
    fn hedge_or_wait(
        &mut self,
        index: Index,
        is_crowded: bool,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Instant> {
        let outbound = &mut self.outbound_queries[index];
        let &attempt = outbound.attempts().last()?;
        let half = Span(self.parameters.timeout.0 / 2);
        let is_early = cx.now - attempt.sent < half
            && outbound.wait == Wait::Reply
            && !outbound.form.is_over_stream()
            && !outbound.query_flags.has(QueryFlags::PROBE)
            && outbound.is_wanted()
            && outbound.tries < self.parameters.tries
            && !self.servers.list[usize::from(attempt.server)].is_dead();
        if !is_early {
            return None;
        }
        if !is_crowded && self.budget.take() {
            outbound.next_is_hedge = true;
            cx.counters.count(Counter::Hedged);
            return None;
        }
        outbound.hedge_deferred = true;
        outbound.wait = Wait::Extended;
        cx.counters.count(Counter::HedgeDeferred);
        Some(attempt.sent + half)
    }

    /// Decides the next step of a question whose current attempt is over.
    pub fn next_attempt(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) -> NextAttempt {
        let outbound = &self.outbound_queries[index];
        if outbound.query_flags.has(QueryFlags::PROBE) {
            return self.continue_probe(index, cx);
        }
        // Nothing came over TCP that would end the doubt, and nobody else can be asked there.
        let Doubt { is_raised, compares, server, .. } = outbound.doubt;
        if is_raised
            && (outbound.form.is_over_stream() || compares)
            && !self.can_ask_another(index, server)
            && self.compare(index, cx)
        {
            return NextAttempt::Wait;
        }
        let outbound = &self.outbound_queries[index];
        if !outbound.is_wanted() || outbound.tries >= self.parameters.tries {
            return NextAttempt::Failed;
        }
        if outbound.wait == Wait::Reconnect {
            return self.await_restart(index, cx.now).unwrap_or(NextAttempt::Send);
        }
        if self.servers.is_dead(outbound.forward_key()) {
            return self.await_last_reply(index, cx.now);
        }
        NextAttempt::Send
    }

    /// Sets the time at which a question repeats its query while it waits for the reply to its last attempt, if such a reply could come
    /// in time. It repeats nothing unless all queries so far went over UDP and had no reply at all, to servers that usually reply.
    pub fn plan_repetition(&mut self, index: Index, now: Instant) {
        let outbound = &self.outbound_queries[index];
        let Some(attempt) = outbound.attempts().last() else { return };
        let server = &self.servers.list[usize::from(attempt.server)];
        let wait = server.wait(0, self.parameters.timeout);
        let deadline = outbound.deadline;
        let is_useful = outbound.tries >= self.parameters.tries
            && outbound.attempts().len() < TRIES
            && outbound.is_wanted()
            && !outbound.form.is_over_stream()
            && !outbound.attempts().iter().any(|attempt| attempt.failed)
            && server.round_trip.is_some()
            && !server.is_dead()
            && now + wait + wait <= deadline;
        if is_useful {
            self.outbound_queries[index].repeat_at = Some(now + wait);
            self.set_deadline(index, deadline);
        }
    }

    /// Repeats the query of a question that waits for the reply to its last attempt, at the cost of a spare token (`retry_budget.rs`). This
    /// is no attempt: it does not change how long the question waits. `is_crowded`: as in [`Upstream::on_attempt_deadline`].
    pub fn repeat(&mut self, index: Index, is_crowded: bool, cx: &mut Context<'_, impl Outbox>) {
        let outbound = &self.outbound_queries[index];
        let is_answered =
            outbound.form.is_over_stream() || outbound.attempts().iter().any(|attempt| attempt.failed);
        if is_crowded || is_answered || !outbound.is_wanted() {
            return;
        }
        let Some(server) = self.next_server(index) else { return };
        let state = &self.servers.list[usize::from(server)];
        if state.is_dead() || state.transport(Transport::Udp) != Transport::Udp || !self.budget.take_spare() {
            return;
        }
        self.outbound_queries[index].next_is_hedge = true;
        let is_sent = self.transmit(index, server, Transport::Udp, cx);
        self.outbound_queries[index].next_is_hedge = false;
        if is_sent {
            cx.counters.count(Counter::Hedged);
            self.plan_repetition(index, cx.now);
        }
    }

    /// Waits for replies to the queries under way, because no server is left to be asked. A forger of ICMP errors must not end
    /// a question, nor must servers that have become slow and so look dead.
    fn await_last_reply(&mut self, index: Index, now: Instant) -> NextAttempt {
        let outbound = &mut self.outbound_queries[index];
        let ceiling = self.parameters.timeout;
        let Some(&attempt) = outbound.attempts().last() else { return NextAttempt::Failed };
        let wait = self.servers.list[usize::from(attempt.server)].last_wait(ceiling);
        let deadline = if outbound.deadline > now {
            outbound.deadline.min(now + wait)
        } else if attempt.sent + wait > now && outbound.wait == Wait::Reply {
            outbound.wait = Wait::Extended;
            attempt.sent + wait
        } else {
            return NextAttempt::Failed;
        };
        self.set_deadline(index, deadline);
        NextAttempt::Wait
    }

    /// Probes the idle servers of a question's group, because one of its servers (`silent`) did not reply.
    pub fn probe_idle_servers(&mut self, index: Index, silent: u16, now: Instant) {
        let outbound = &self.outbound_queries[index];
        if outbound.state == OutboundQueryState::Asked && !outbound.query_flags.has(QueryFlags::PROBE) {
            self.servers.probe_idle_servers(outbound.forward_key(), silent, now);
        }
    }

    /// Sends questions whose latest query went to a dead server to other servers now. Called when a server has died. If no
    /// server of the group is alive, clients that can get expired data wait no more, and probes make no long pauses.
    #[cold]
    pub(super) fn expedite_retries(&mut self, now: Instant) {
        for index in 0..self.outbound_queries.slab.touched() {
            let outbound = &self.outbound_queries[index];
            if outbound.state != OutboundQueryState::Asked || outbound.query_flags.has(QueryFlags::PROBE) {
                continue;
            }
            let is_dead = |server: u16| self.servers.list[usize::from(server)].is_dead();
            if self.servers.is_dead(outbound.forward_key()) {
                if outbound.client_response_timer.is_some() {
                    self.set_client_response_timer(index, now);
                }
            } else if outbound.attempts().last().is_some_and(|attempt| is_dead(attempt.server))
                && outbound.tries < self.parameters.tries
            {
                self.set_deadline(index, now);
            }
        }
        let jitter = self.random.bits();
        self.servers.expedite_probes(now, jitter);
    }

    /// Records a hedge that was answered before the query that it repeats.
    #[cold]
    pub(super) fn hedge_helped(&mut self, counters: &mut Counters) {
        counters.count(Counter::HedgeHelped);
        self.budget.helped();
    }
}
