//! Probes of servers that do not reply.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::limits::TRIES;
use crate::message::question::{QueryFlags, Question};
use crate::upstream::in_flight::prepare;
use wire::{Class, Type};

impl Engine {
    /// A question of a probe was not answered: it is repeated until the ceiling is over, so that late replies count.
    pub(crate) fn probe_again(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &self.flights.slab[index];
        let Some(&first) = flight.attempts().first() else {
            return self.complete_flight(index, None, now, out);
        };
        let is_over = now - first.sent >= self.settings.upstream.timeout;
        let server = &self.servers.list[usize::from(first.server)];
        if !is_over && !flight.unsent && flight.attempts().len() < TRIES && server.configured {
            return self.ask_server(index, first.server, now, out);
        }
        self.on_probe_failed(first.server, now);
        self.complete_flight(index, None, now, out);
    }

    fn on_probe_failed(&mut self, server: u16, now: Instant) {
        let (urgent, jitter) = (self.servers.is_urgent(server), self.random.bits());
        self.servers.list[usize::from(server)].breaker.on_probe_failed(now, urgent, jitter);
    }

    /// Asks a server that counts as dead whether it lives.
    pub(crate) fn probe(&mut self, server: u16, now: Instant, out: &mut impl Outbox) {
        let root = [0u8];
        let question = Question {
            name: &root,
            hash: self.key.hash(&root),
            qtype: Type::NS,
            class: Class::IN,
            query_flags: QueryFlags::RD.with(QueryFlags::PROBE, true),
            subnet: None,
        };
        let Engine { flights, random, settings, servers, .. } = self;
        match prepare(flights, random, settings, servers, &question) {
            Some(index) => self.ask_server(index, server, now, out),
            None => self.on_probe_failed(server, now),
        }
    }
}
