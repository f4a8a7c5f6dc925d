//! The A leg ahead of the AAAA reply: with the AAAA query, after a stagger, or when the AAAA query is repeated.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::dns64::config::{Lookup, OnFailure};
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::question::Question;
use crate::trace::Subject;
use wire::Type;

impl Engine {
    /// Asks the A leg when an AAAA query is repeated, if a failed AAAA leg leads to the A leg: the client waits for both at the
    /// same time.
    pub(crate) fn ask_a_before_retry(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.is_silence_synthesized(index) {
            self.upstream.flights[index].stagger = None;
            self.ask_a_for_all(index, now, out);
        }
    }

    /// True if a question that gets no reply leads to a synthesis, which hides real addresses if the replies were lost.
    pub(crate) fn is_silence_synthesized(&self, flight: Index) -> bool {
        self.upstream.flights[flight].qtype == Type::AAAA
            && self.settings.dns64.on_failure.timeout == OnFailure::Synthesize
    }

    /// Asks the A leg for every waiter of an AAAA question that may need it.
    pub(crate) fn ask_a_for_all(&mut self, flight: Index, now: Instant, out: &mut impl Outbox) {
        let mut index = self.upstream.flights[flight].waiters;
        while index != NONE {
            let next = self.clients.waiters[index].next;
            if self.clients.waiters[index].stage == Stage::Aaaa
                && self.clients.waiters[index].a_flight == NONE
            {
                self.ask_a_early(index, now, out);
            }
            index = next;
        }
    }

    /// Asks the A leg of a waiter before its AAAA leg is decided.
    //= RFC 6147 section 5.1.8: requirements 15, 15b
    pub(crate) fn ask_a_early(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.has_fresh(index, Type::A, now) {
            return;
        }
        if let Some(flight) = self.flight_for(index, Type::A, now, out) {
            out.trace(Subject::Waiter(index), || self.wait_event(index, Type::A, flight));
            self.upstream.flights[flight].references += 1;
            self.clients.waiters[index].a_flight = flight;
        }
    }

    /// True if the A leg of a new waiter of an AAAA question is asked at once.
    pub(crate) fn asks_a_at_once(&self, flight: Index) -> bool {
        let flight = &self.upstream.flights[flight];
        match self.settings.dns64.lookup {
            Lookup::Parallel => true,
            Lookup::Stagger(_) => flight.stagger.is_none(),
            Lookup::Sequential => {
                flight.tries > 1 && self.settings.dns64.on_failure.timeout == OnFailure::Synthesize
            }
        }
    }

    /// True if the cache has a fresh reply to a leg of a waiter.
    pub(crate) fn has_fresh(&self, waiter: Index, qtype: Type, now: Instant) -> bool {
        let state = &self.clients.waiters[waiter];
        let question = Question { qtype, ..state.own_question() };
        if !self.cache.is_cacheable(&question) || state.chase != NONE {
            return false;
        }
        self.cache.has_fresh(
            &question,
            qtype,
            self.upstream.servers.group_number(question.forward_key()),
            now,
        )
    }
}
