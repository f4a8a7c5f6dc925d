//! The three inputs of the engine: a query of a client, a reply of an upstream, time.

use crate::base::time::{Instant, Span};
use crate::engine::Engine;
use crate::interface::{Client, Link, Machine, Outbox};

impl Machine for Engine {
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.on_query(now, from, message, out);
    }

    fn reply(&mut self, now: Instant, via: Link, message: &[u8], out: &mut impl Outbox) {
        self.on_reply(now, via, message, out);
    }

    fn unreachable(&mut self, now: Instant, via: Link, out: &mut impl Outbox) {
        self.on_unreachable(now, via, out);
    }

    fn idle(&self) -> bool {
        self.waiters.len() == 0
    }

    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        while let Some(flight) = self.wheel.pop(&mut self.flights.slab, now) {
            self.on_deadline(flight, now, out);
        }
        if core::mem::take(&mut self.stale_links) {
            self.close_stale_links(out);
        }
        let mut next = None;
        let mut has_died = false;
        for number in 0..self.servers.list.len() {
            has_died |= self.servers.list[number].breaker.take_has_opened();
            if self.servers.list[number].take_probe(now) {
                self.probe(number as u16, now, out);
            }
            if let Some(probe) = self.servers.list[number].next_probe() {
                next = Some(next.map_or(probe, |next: Instant| next.min(probe)));
            }
        }
        if has_died {
            self.expedite_retries(now);
        }
        // Probes have set deadlines of their own.
        let next = next.into_iter().chain(self.wheel.next()).min();
        // A tick never comes due in the same look again.
        next.map(|next| next.max(now + Span(1)))
    }
}
