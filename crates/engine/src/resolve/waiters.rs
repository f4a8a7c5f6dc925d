//! Waiters: admission, the list of a question in flight, and what a waiter asks for at the moment.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::quota::client_network;
use crate::client::waiter::{CacheHit, Waiter};
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage};
use crate::engine::{CLIENT_RESPONSE_TIMER, Engine};
use crate::interface::{Client, Outbox};
use crate::limits::CLIENT_WAITS;
use crate::message::question::CurrentQuestion;
use crate::rpz::table::NO_RULE_YET;
use wire::{Rcode, Type};

impl Engine {
    /// A waiter has got its answer (or never will): its room is free again.
    pub(crate) fn free_waiter(&mut self, index: Index) {
        let Waiter { quota, older, newer, a_flight, chase, cache_hit, missed, .. } = self.waiters[index];
        match cache_hit {
            CacheHit::Nothing => {}
            CacheHit::Stale => self.counters.count(Counter::CacheHitsStale),
            _ if missed => {}
            CacheHit::Positive => self.counters.count(Counter::CacheHitsPositive),
            CacheHit::Negative => self.counters.count(Counter::CacheHitsNegative),
            CacheHit::Synthesized => self.counters.count(Counter::CacheHitsSynthesized),
            CacheHit::Failure => self.counters.count(Counter::CacheHitsFailure),
        }
        if a_flight != NONE {
            self.release_flight(a_flight);
        }
        if chase != NONE {
            self.chases.give(chase);
        }
        if newer == NONE {
            self.quotas.set_newest(quota, older);
        } else {
            self.waiters[newer].older = older;
        }
        if older != NONE {
            self.waiters[older].newer = newer;
        }
        self.quotas.remove(quota);
        self.waiters.give(index);
    }

    /// A waiter joins the clients of a flight.
    #[inline]
    pub(crate) fn attach(&mut self, flight: Index, index: Index) {
        let first = self.flights.slab[flight].waiters;
        let waiter = &mut self.waiters[index];
        if !core::mem::replace(&mut waiter.missed, true) && !self.cache.is_off() {
            self.counters.count(Counter::CacheMisses);
        }
        waiter.flight = flight;
        waiter.previous = NONE;
        waiter.next = first;
        if first != NONE {
            self.waiters[first].previous = index;
        }
        self.flights.slab[flight].waiters = index;
        if self.waiters[index].has_stale {
            self.set_client_response_timer(flight, self.waiters[index].arrived + CLIENT_RESPONSE_TIMER);
        }
    }

    /// A waiter leaves its flight before that has settled.
    pub(crate) fn detach(&mut self, index: Index) {
        let Waiter { flight, previous, next, .. } = self.waiters[index];
        if previous == NONE {
            self.flights.slab[flight].waiters = next;
        } else {
            self.waiters[previous].next = next;
        }
        if next != NONE {
            self.waiters[next].previous = previous;
        }
    }

    /// Room for one more question. When all is taken, the newest question of the greediest network gives way; when
    /// that is the asker's own network, it is refused.
    pub(crate) fn admit(&mut self, from: &Client, now: Instant, out: &mut impl Outbox) -> Option<Index> {
        let network = client_network(from.address);
        if self.quotas.highest() >= self.settings.pending_per_client || self.waiters.is_full() {
            let count = self.quotas.find(network).map_or(0, |quota| self.quotas.count(quota));
            if count >= self.settings.pending_per_client {
                self.counters.count(Counter::RefusedPendingPerClient);
                return None;
            }
            if self.waiters.is_full() {
                self.counters.count(Counter::RefusedPending);
                if count + 1 >= self.quotas.highest() {
                    return None;
                }
                let largest = self.quotas.largest()?;
                let newest = self.quotas.newest(largest);
                self.detach(newest);
                self.respond_empty(newest, Rcode::REFUSED, None, now, out);
            }
        }
        let index = self.waiters.take()?;
        let quota = self.quotas.add(network);
        let older = if self.quotas.count(quota) == 1 { NONE } else { self.quotas.newest(quota) };
        if older != NONE {
            self.waiters[older].newer = index;
        }
        self.quotas.set_newest(quota, index);
        let waiter = &mut self.waiters[index];
        waiter.client = *from;
        waiter.arrived = now;
        waiter.useful_until = now + CLIENT_WAITS.max(self.settings.upstream.longest());
        waiter.quota = quota;
        waiter.older = older;
        waiter.newer = NONE;
        waiter.a_flight = NONE;
        waiter.chase = NONE;
        waiter.cause = Cause::NoData;
        waiter.policy = NO_RULE_YET;
        waiter.secure = false;
        waiter.bogus_recheck = false;
        waiter.cache_hit = CacheHit::Nothing;
        waiter.missed = false;
        waiter.has_stale = false;
        waiter.client_timer_expired = false;
        Some(index)
    }

    /// The name and the type that a client waits for.
    pub(crate) fn current_name_and_type(&self, waiter: Index) -> (&[u8], Type) {
        let state = &self.waiters[waiter];
        let qtype = match state.stage {
            Stage::Direct => state.asks_for().0,
            Stage::Aaaa | Stage::NegativeAaaa | Stage::AaaaWithCd => Type::AAAA,
            Stage::A => Type::A,
        };
        match state.chase {
            NONE => (state.name(), qtype),
            chain => (&self.chases[chain].name, qtype),
        }
    }

    /// What is to be asked next for a waiter.
    pub(crate) fn current_question(&self, waiter: Index) -> CurrentQuestion<'_> {
        let (name, qtype) = self.current_name_and_type(waiter);
        CurrentQuestion { name, qtype, class: self.waiters[waiter].asks_for().1 }
    }
}
