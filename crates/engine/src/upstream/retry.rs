//! Timeouts of queries: the next try, the hedged retry, the end.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Outbox, Transport};
use crate::message::question::QueryFlags;
use crate::upstream::in_flight::FlightState;

impl Engine {
    /// A deadline of a flight has come: the A leg is due, or the current try is given up.
    pub(crate) fn on_deadline(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.flights.slab[index].stagger.is_some_and(|stagger| stagger <= now) {
            self.flights.slab[index].stagger = None;
            self.ask_a_for_all(index, now, out);
        }
        if self.flights.slab[index]
            .client_response_timer
            .is_some_and(|client_response_timer| client_response_timer <= now)
        {
            self.flights.slab[index].client_response_timer = None;
            self.on_client_response_timer(index, now, out);
        }
        let flight = &self.flights.slab[index];
        if flight.deadline > now {
            let deadline = flight.deadline;
            return self.set_deadline(index, deadline);
        }
        let last = flight.attempts().last().copied();
        // It was counted when it began to wait on.
        if !flight.extended_wait {
            self.counters.count(Counter::Timeouts);
        }
        if let Some(attempt) = last
            && !flight.unsent
            && !flight.extended_wait
        {
            let server = &mut self.servers.list[attempt.server as usize];
            if flight.query_flags.has(QueryFlags::PROBE) {
                server.breaker.on_probe_timeout(now);
            } else {
                server.breaker.on_timeout(now);
            }
            // The kernel gives a connection up only after minutes: the next question opens another one.
            if self.links.is_hung(attempt.link, attempt.sent) {
                let current = &mut server.current[Transport::Tcp as usize];
                if *current == Some(attempt.link.slot) {
                    *current = None;
                }
                // It closes with its last question, of which this is one.
                let _ = self.links.retire(attempt.link);
            }
        }
        if self.hedge_or_wait(index, now, out) {
            return;
        }
        self.try_again(index, now, out);
        if let Some(attempt) = last {
            self.probe_idle_servers(index, attempt.server, now);
        }
    }

    /// A server was silent: those of its group that nobody asks have to show that they live.
    fn probe_idle_servers(&mut self, index: Index, silent: u16, now: Instant) {
        let flight = &self.flights.slab[index];
        if flight.state == FlightState::Asked && !flight.query_flags.has(QueryFlags::PROBE) {
            self.servers.probe_idle_servers(flight.name(), silent, now);
        }
    }

    /// The current try of a flight has failed: another one, or the flight settles.
    pub(crate) fn try_again(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &self.flights.slab[index];
        if flight.query_flags.has(QueryFlags::PROBE) {
            return self.probe_again(index, now, out);
        }
        if !self.is_wanted(index) || flight.tries >= self.settings.upstream.tries {
            return self.complete_flight(index, None, now, out);
        }
        if self.servers.is_dead(flight.name()) {
            return self.give_up(index, now, out);
        }
        self.ask_a_before_retry(index, now, out);
        self.ask(index, now, out);
    }

    /// Nobody is left to be asked. What was asked may still be answered until its time is over: whoever forges ICMP errors
    /// must not end a question, nor must servers that have become slow and so look dead.
    fn give_up(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &mut self.flights.slab[index];
        let ceiling = self.settings.upstream.timeout;
        let Some(&attempt) = flight.attempts().last() else {
            return self.complete_flight(index, None, now, out);
        };
        let wait = self.servers.list[usize::from(attempt.server)].last_wait(ceiling);
        if flight.deadline > now {
            let deadline = flight.deadline.min(now + wait);
            self.set_deadline(index, deadline);
        } else if attempt.sent + wait > now && !flight.unsent && !flight.extended_wait {
            flight.extended_wait = true;
            self.set_deadline(index, attempt.sent + wait);
        } else {
            self.complete_flight(index, None, now, out);
        }
    }

    /// A server has died: what it was asked last is asked of others now. Where no other server lives, clients for whom there
    /// are expired data wait no more, and no probe makes a long pause.
    #[cold]
    pub(crate) fn expedite_retries(&mut self, now: Instant) {
        for index in 0..self.flights.slab.touched() {
            let flight = &self.flights.slab[index];
            if flight.state != FlightState::Asked || flight.query_flags.has(QueryFlags::PROBE) {
                continue;
            }
            if self.servers.is_dead(flight.name()) {
                if flight.client_response_timer.is_some() {
                    self.set_client_response_timer(index, now);
                }
            } else if flight
                .attempts()
                .last()
                .is_some_and(|attempt| self.servers.list[usize::from(attempt.server)].is_dead())
                && flight.tries < self.settings.upstream.tries
            {
                self.set_deadline(index, now);
            }
        }
        let jitter = self.random.bits();
        self.servers.expedite_probes(now, jitter);
    }

    /// Whether a question whose last try is late has to wait on before it is asked again. The A leg of its clients does
    /// not wait: it is no repetition.
    pub(crate) fn hedge_or_wait(&mut self, index: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let flight = &mut self.flights.slab[index];
        let Some(&attempt) = flight.attempts().last() else { return false };
        let half = crate::Span(self.settings.upstream.timeout.0 / 2);
        let is_early = now - attempt.sent < half
            && !flight.unsent
            && !flight.over_tcp
            && !flight.extended_wait
            && !flight.query_flags.has(QueryFlags::PROBE)
            && (flight.waiters != NONE || flight.references > 0)
            && flight.tries < self.settings.upstream.tries
            && !self.servers.list[usize::from(attempt.server)].is_dead();
        if !is_early {
            return false;
        }
        if !self.waiters.is_crowded() && self.budget.take() {
            flight.next_is_hedge = true;
            self.counters.count(Counter::RepeatedEarly);
            return false;
        }
        flight.hedge_deferred = true;
        flight.extended_wait = true;
        self.counters.count(Counter::HeldBack);
        self.ask_a_before_retry(index, now, out);
        self.set_deadline(index, attempt.sent + half);
        true
    }

    /// A repetition was answered before what it repeats.
    #[cold]
    pub(crate) fn hedge_helped(&mut self) {
        self.counters.count(Counter::RepeatHelped);
        self.budget.helped();
    }
}
