//! Timeouts of questions in flight: the next try, a hedged query, or the end of the question.
//!
//! A question has one timer and up to four deadlines: that of its current try, that of the A leg (`stagger`), that of a repetition
//! of its query, and the client response timer (RFC 8767 section 5). The caller asks for what is due, acts on it, and asks for the
//! next step:
//!
//! ```text
//! pop_due -> take_due -> (A leg, repetition, stale answers) -> on_try_deadline -> next_try -> send, or the question has failed
//! ```
//!
//! The last try waits for the whole ceiling, so that late replies count. A reply that is lost does not come in that time either. So
//! an AAAA question whose failure leads to a synthesis repeats its query meanwhile (`repeat`): the synthesis would hide real
//! addresses (RFC 6147 section 5.1.3). Nobody waits longer for that.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::counters::{Counter, Counters};
use crate::interface::{Link, Outbox, Transport};
use crate::limits::TRIES;
use crate::message::question::QueryFlags;
use crate::upstream::Upstream;
use crate::upstream::in_flight::FlightState;
use crate::upstream::suspicion::Doubt;

/// Deadlines of a question, other than that of its current try, that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The A leg is to be asked as well.
    pub a_leg: bool,
    /// The query is to be repeated during the wait for its last try.
    pub repetition: bool,
    /// Clients that have expired data are to get them.
    pub client_response: bool,
}

/// State of the current try of a question when its timer has come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TryDeadline {
    /// It is not over; the timer was set again.
    NotYet,
    /// It is late, and waits on until this time before it is repeated. The caller asks the A leg if it may be needed, then
    /// sets the deadline.
    WaitUntil(Instant),
    /// It is over: the caller retries. Holds the server that was silent, if one was asked.
    Over(Option<u16>),
}

/// The next step of a question whose current try is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTry {
    /// A query can be sent: the caller asks the A leg if it may be needed, then sends.
    Send,
    /// Nothing to do: a probe was sent again, or an earlier try may still be answered.
    Wait,
    /// No server answers: the question has failed.
    Failed,
}

impl Upstream {
    /// Takes the deadlines of a question that have come, except that of its current try.
    pub fn take_due(&mut self, index: Index, now: Instant) -> Due {
        let flight = &mut self.flights[index];
        let a_leg = flight.stagger.take_if(|stagger| *stagger <= now).is_some();
        let repetition = flight.repeat_at.take_if(|time| *time <= now).is_some();
        let client_response = flight.client_response_timer.take_if(|timer| *timer <= now).is_some();
        Due { a_leg, repetition, client_response }
    }

    /// Looks at the current try of a question whose timer has come due. `is_crowded`: more than half of the room for client
    /// queries is taken, so queries are not hedged.
    pub fn on_try_deadline(
        &mut self,
        index: Index,
        is_crowded: bool,
        now: Instant,
        counters: &mut Counters,
    ) -> TryDeadline {
        let flight = &self.flights[index];
        if flight.deadline > now {
            let deadline = flight.deadline;
            self.set_deadline(index, deadline);
            return TryDeadline::NotYet;
        }
        let last = flight.attempts().last().copied();
        // An extended wait was counted when it began.
        if !flight.extended_wait {
            counters.count(Counter::Timeouts);
        }
        if let Some(attempt) = last
            && !flight.send_failed
            && !flight.extended_wait
        {
            if self.chose_tcp(index) && self.links.is_hung(attempt.link, attempt.sent) {
                return self.leave_tcp(index, attempt.link, now, counters);
            }
            let server = &mut self.servers.list[attempt.server as usize];
            if flight.query_flags.has(QueryFlags::PROBE) {
                server.breaker.on_probe_timeout(now);
            } else {
                server.on_timeout(now);
            }
            // The kernel gives up a connection only after minutes, so the next query opens another one.
            if self.links.is_hung(attempt.link, attempt.sent) {
                // This question waits on it, so it stays open.
                let _ = self.set_aside(attempt.link);
            }
        }
        match self.hedge_or_wait(index, is_crowded, now, counters) {
            Some(until) => TryDeadline::WaitUntil(until),
            None => TryDeadline::Over(last.map(|attempt| attempt.server)),
        }
    }

    /// Ends the try of a question that went over TCP by choice, and whose connection is silent. It goes over UDP, with all its tries.
    #[cold]
    fn leave_tcp(&mut self, index: Index, link: Link, now: Instant, counters: &mut Counters) -> TryDeadline {
        self.note_tcp_loss(self.links.server(link), now, counters);
        // This question waits on it, so it stays open.
        let _ = self.set_aside(link);
        let flight = &mut self.flights[index];
        flight.tries = flight.tries.saturating_sub(1);
        flight.reconnects = true;
        counters.count(Counter::StreamRetries);
        TryDeadline::Over(None)
    }

    /// Decides whether to hedge a question whose last try is late, at the cost of a token (`retry_budget.rs`). Returns the end
    /// of the extended wait if not.
    fn hedge_or_wait(
        &mut self,
        index: Index,
        is_crowded: bool,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<Instant> {
        let flight = &mut self.flights[index];
        let &attempt = flight.attempts().last()?;
        let half = Span(self.parameters.timeout.0 / 2);
        let is_early = now - attempt.sent < half
            && !flight.send_failed
            && !flight.over_tcp
            && !flight.extended_wait
            && !flight.query_flags.has(QueryFlags::PROBE)
            && flight.is_wanted()
            && flight.tries < self.parameters.tries
            && !self.servers.list[usize::from(attempt.server)].is_dead();
        if !is_early {
            return None;
        }
        if !is_crowded && self.budget.take() {
            flight.next_is_hedge = true;
            counters.count(Counter::Hedged);
            return None;
        }
        flight.hedge_deferred = true;
        flight.extended_wait = true;
        counters.count(Counter::HedgeDeferred);
        Some(attempt.sent + half)
    }

    /// Decides the next step of a question whose current try is over.
    pub fn next_try(
        &mut self,
        index: Index,
        now: Instant,
        counters: &mut Counters,
        out: &mut impl Outbox,
    ) -> NextTry {
        let flight = &self.flights[index];
        if flight.query_flags.has(QueryFlags::PROBE) {
            return self.continue_probe(index, now, counters, out);
        }
        // Nothing came over TCP that would end the doubt, and nobody else can be asked there.
        let Doubt { is_raised, compares, server, .. } = flight.doubt;
        if is_raised
            && (flight.over_tcp || compares)
            && !self.can_ask_another(index, server)
            && self.compare(index, now, counters, out)
        {
            return NextTry::Wait;
        }
        let flight = &self.flights[index];
        if !flight.is_wanted() || flight.tries >= self.parameters.tries {
            return NextTry::Failed;
        }
        if flight.reconnects {
            return self.await_restart(index, now).unwrap_or(NextTry::Send);
        }
        if self.servers.is_dead(flight.forward_key()) {
            return self.await_last_reply(index, now);
        }
        NextTry::Send
    }

    /// Sets the time at which a question repeats its query while it waits for the reply to its last try, if such a reply could come
    /// in time. It repeats nothing unless all queries so far went over UDP and had no reply at all, to servers that usually reply.
    pub fn plan_repetition(&mut self, index: Index, now: Instant) {
        let flight = &self.flights[index];
        let Some(attempt) = flight.attempts().last() else { return };
        let server = &self.servers.list[usize::from(attempt.server)];
        let wait = server.wait(0, self.parameters.timeout);
        let deadline = flight.deadline;
        let is_useful = flight.tries >= self.parameters.tries
            && flight.attempts().len() < TRIES
            && flight.is_wanted()
            && !flight.over_tcp
            && !flight.attempts().iter().any(|attempt| attempt.failed)
            && server.round_trip.is_some()
            && !server.is_dead()
            && now + wait + wait <= deadline;
        if is_useful {
            self.flights[index].repeat_at = Some(now + wait);
            self.set_deadline(index, deadline);
        }
    }

    /// Repeats the query of a question that waits for the reply to its last try, at the cost of a spare token (`retry_budget.rs`). This
    /// is no try: it does not change how long the question waits. `is_crowded`: as in [`Upstream::on_try_deadline`].
    pub fn repeat(
        &mut self,
        index: Index,
        is_crowded: bool,
        now: Instant,
        counters: &mut Counters,
        out: &mut impl Outbox,
    ) {
        let flight = &self.flights[index];
        let is_answered = flight.over_tcp || flight.attempts().iter().any(|attempt| attempt.failed);
        if is_crowded || is_answered || !flight.is_wanted() {
            return;
        }
        let Some(server) = self.next_server(index) else { return };
        let state = &self.servers.list[usize::from(server)];
        if state.is_dead() || state.transport(false) != Transport::Udp || !self.budget.take_spare() {
            return;
        }
        self.flights[index].next_is_hedge = true;
        let link = self.link_to(server, Transport::Udp, now, counters, out);
        let is_sent = link.is_some_and(|link| self.send_over(index, link, server, now, out));
        self.flights[index].next_is_hedge = false;
        if is_sent {
            counters.count(Counter::Hedged);
            self.plan_repetition(index, now);
        }
    }

    /// Waits for replies to the queries under way, because no server is left to be asked. A forger of ICMP errors must not end
    /// a question, nor must servers that have become slow and so look dead.
    fn await_last_reply(&mut self, index: Index, now: Instant) -> NextTry {
        let flight = &mut self.flights[index];
        let ceiling = self.parameters.timeout;
        let Some(&attempt) = flight.attempts().last() else { return NextTry::Failed };
        let wait = self.servers.list[usize::from(attempt.server)].last_wait(ceiling);
        let deadline = if flight.deadline > now {
            flight.deadline.min(now + wait)
        } else if attempt.sent + wait > now && !flight.send_failed && !flight.extended_wait {
            flight.extended_wait = true;
            attempt.sent + wait
        } else {
            return NextTry::Failed;
        };
        self.set_deadline(index, deadline);
        NextTry::Wait
    }

    /// Probes the idle servers of a question's group, because one of its servers (`silent`) did not reply.
    pub fn probe_idle_servers(&mut self, index: Index, silent: u16, now: Instant) {
        let flight = &self.flights[index];
        if flight.state == FlightState::Asked && !flight.query_flags.has(QueryFlags::PROBE) {
            self.servers.probe_idle_servers(flight.forward_key(), silent, now);
        }
    }

    /// Sends questions whose latest query went to a dead server to other servers now. Called when a server has died. If no
    /// server of the group is alive, clients that can get expired data wait no more, and probes make no long pauses.
    #[cold]
    pub(super) fn expedite_retries(&mut self, now: Instant) {
        for index in 0..self.flights.slab.touched() {
            let flight = &self.flights[index];
            if flight.state != FlightState::Asked || flight.query_flags.has(QueryFlags::PROBE) {
                continue;
            }
            let is_dead = |server: u16| self.servers.list[usize::from(server)].is_dead();
            if self.servers.is_dead(flight.forward_key()) {
                if flight.client_response_timer.is_some() {
                    self.set_client_response_timer(index, now);
                }
            } else if flight.attempts().last().is_some_and(|attempt| is_dead(attempt.server))
                && flight.tries < self.parameters.tries
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
