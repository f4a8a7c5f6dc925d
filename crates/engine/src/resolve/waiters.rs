//! Waiters: admission, the list of a question in flight, and what a waiter asks for at the moment.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::quota::network_of;
use crate::client::waiter::{Recalled, Waiter};
use crate::counters::Counter;
use crate::dns64::decision::{Cause, Stage};
use crate::engine::{Engine, PATIENCE};
use crate::interface::{Client, Outbox};
use crate::limits::CLIENT_WAITS;
use crate::message::question::CurrentQuestion;
use crate::rpz::table::UNDECIDED;
use wire::{Rcode, Type};

impl Engine {
    /// A waiter has got its answer (or never will): its room is free again.
    pub(crate) fn forget(&mut self, index: Index) {
        let Waiter { holder, older, newer, second, chain, recalled, missed, .. } = self.waiters[index];
        match recalled {
            Recalled::Nothing => {}
            Recalled::Stale => self.counters.count(Counter::CacheHitsStale),
            _ if missed => {}
            Recalled::Positive => self.counters.count(Counter::CacheHitsPositive),
            Recalled::Negative => self.counters.count(Counter::CacheHitsNegative),
            Recalled::Synthesized => self.counters.count(Counter::CacheHitsSynthesized),
            Recalled::Failure => self.counters.count(Counter::CacheHitsFailure),
        }
        if second != NONE {
            self.let_go(second);
        }
        if chain != NONE {
            self.chains.give(chain);
        }
        if newer == NONE {
            self.ledger.set_newest(holder, older);
        } else {
            self.waiters[newer].older = older;
        }
        if older != NONE {
            self.waiters[older].newer = newer;
        }
        self.ledger.remove(holder);
        self.waiters.give(index);
    }

    /// A waiter joins the clients of a flight.
    #[inline]
    pub(crate) fn join(&mut self, flight: Index, index: Index) {
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
            self.set_patience(flight, self.waiters[index].arrived + PATIENCE);
        }
    }

    /// A waiter leaves its flight before that has settled.
    pub(crate) fn part(&mut self, index: Index) {
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
        let network = network_of(from.address);
        if self.ledger.highest() >= self.settings.pending_per_client || self.waiters.is_full() {
            let count = self.ledger.find(network).map_or(0, |holder| self.ledger.count(holder));
            if count >= self.settings.pending_per_client {
                self.counters.count(Counter::RefusedPendingPerClient);
                return None;
            }
            if self.waiters.is_full() {
                self.counters.count(Counter::RefusedPending);
                if count + 1 >= self.ledger.highest() {
                    return None;
                }
                let greediest = self.ledger.greediest()?;
                let newest = self.ledger.newest(greediest);
                self.part(newest);
                self.respond_empty(newest, Rcode::REFUSED, None, now, out);
            }
        }
        let index = self.waiters.take()?;
        let holder = self.ledger.add(network);
        let older = if self.ledger.count(holder) == 1 { NONE } else { self.ledger.newest(holder) };
        if older != NONE {
            self.waiters[older].newer = index;
        }
        self.ledger.set_newest(holder, index);
        let waiter = &mut self.waiters[index];
        waiter.client = *from;
        waiter.arrived = now;
        waiter.useful_until = now + CLIENT_WAITS.max(self.settings.upstream.longest());
        waiter.holder = holder;
        waiter.older = older;
        waiter.newer = NONE;
        waiter.second = NONE;
        waiter.chain = NONE;
        waiter.cause = Cause::NoData;
        waiter.policy = UNDECIDED;
        waiter.secure = false;
        waiter.doubtful = false;
        waiter.recalled = Recalled::Nothing;
        waiter.missed = false;
        waiter.has_stale = false;
        waiter.impatient = false;
        Some(index)
    }

    /// The name and the type that a client waits for.
    pub(crate) fn sought(&self, waiter: Index) -> (&[u8], Type) {
        let state = &self.waiters[waiter];
        let qtype = match state.stage {
            Stage::Direct => state.asks_for().0,
            Stage::Aaaa | Stage::Basis | Stage::Unchecked => Type::AAAA,
            Stage::A => Type::A,
        };
        match state.chain {
            NONE => (state.name(), qtype),
            chain => (&self.chains[chain].name, qtype),
        }
    }

    /// What is to be asked next for a waiter.
    pub(crate) fn leg(&self, waiter: Index) -> CurrentQuestion<'_> {
        let (name, qtype) = self.sought(waiter);
        CurrentQuestion { name, qtype, class: self.waiters[waiter].asks_for().1 }
    }
}
