//! Queries to upstream servers and their replies: everything between "ask this" and "this came back".
//!
//! It knows no client and no cache. Results leave as values.
//!
//! Read `in_flight.rs` first (one question under way), then `send.rs` and `receive.rs`.

pub mod circuit_breaker;
pub(crate) mod cookies;
pub(crate) mod dns0x20;
pub(crate) mod edns_support;
pub(crate) mod fallback;
pub mod groups;
pub(crate) mod in_flight;
pub(crate) mod links;
pub(crate) mod parked_replies;
#[cfg(test)]
mod planted_tests;
pub(crate) mod probe;
pub(crate) mod receive;
pub(crate) mod retry;
pub(crate) mod retry_budget;
pub(crate) mod send;
pub mod server;

use crate::base::slab::{Index, NONE};
use crate::engine::Engine;
use crate::interface::{Link, Outbox};
use crate::upstream::in_flight::FlightState;
use crate::upstream::links::Release;

impl Engine {
    /// A waiter no longer needs a flight that it held. An asked question stays in flight until its reply, which
    /// would otherwise look like a forgery.
    pub(crate) fn release_flight(&mut self, flight: Index) {
        let state = {
            let flight = &mut self.flights.slab[flight];
            flight.references -= 1;
            if flight.references > 0 { FlightState::Asked } else { flight.state }
        };
        if state == FlightState::Completed {
            self.free_flight(flight);
        }
    }

    /// Frees a flight that has left the table.
    pub(crate) fn free_flight(&mut self, flight: Index) {
        let parked = core::mem::replace(&mut self.flights.slab[flight].parked, NONE);
        if parked != NONE {
            self.parked.forget(parked);
        }
        self.flights.slab[flight].state = FlightState::Free;
        self.flights.slab.give(flight);
    }

    /// All tries of a flight are over: its links may close.
    pub(crate) fn release_links(&mut self, flight: Index, out: &mut impl Outbox) {
        for place in 0..self.flights.slab[flight].attempts_len as usize {
            let link = self.flights.slab[flight].attempts[place].link;
            if self.links.release(link) == Release::Close {
                self.close(link, out);
            }
        }
        self.flights.slab[flight].attempts_len = 0;
    }

    /// Retires the links to servers that the configuration no longer names.
    pub(crate) fn close_stale_links(&mut self, out: &mut impl Outbox) {
        for number in 0..self.servers.list.len() {
            let server = &mut self.servers.list[number];
            if server.configured {
                continue;
            }
            for slot in core::mem::take(&mut server.current).into_iter().flatten() {
                let link = self.links.link(slot).expect("a current link is open");
                if self.links.retire(link) == Release::Close {
                    self.close(link, out);
                }
            }
        }
    }

    /// Closes a link.
    pub(crate) fn close(&mut self, link: Link, out: &mut impl Outbox) {
        self.forget_link(link);
        out.close(link);
    }

    /// A link is gone: no new question takes it, its slot is free.
    pub(crate) fn forget_link(&mut self, link: Link) {
        let server = self.links.server(link);
        for current in &mut self.servers.list[server as usize].current {
            if *current == Some(link.slot) {
                *current = None;
            }
        }
        self.links.free(link);
    }
}
