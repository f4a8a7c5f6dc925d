//! Clients: pending queries, limits per network, cookies, CNAME chases, and the sending of responses.
//!
//! It knows no upstream and no cache: a waiter refers to the question in flight that it waits for by an index only.
//!
//! Read `waiter.rs` first: one client query that waits for its answer.

pub(crate) mod chased;
pub(crate) mod cookies;
pub(crate) mod quota;
pub(crate) mod rate_limit;
pub(crate) mod refused;
pub(crate) mod respond;
pub(crate) mod waiter;

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Slab};
use crate::base::time::{Clock, Instant};
use crate::client::chased::CnameChases;
use crate::client::quota::{ClientQuotas, client_network};
use crate::client::rate_limit::RateLimiter;
use crate::client::refused::RefusedClients;
use crate::client::waiter::{CacheHit, Waiter};
use crate::counters::{Counter, Counters};
use crate::interface::Client;
use crate::message::question::CurrentQuestion;

/// Client side of the engine: the waiters, and the limits of each client network.
pub(crate) struct Clients {
    /// Pending client queries.
    pub waiters: Slab<Waiter>,
    /// CNAME chases of waiters.
    pub chases: CnameChases,
    /// Query and response rates per network.
    pub rate_limiter: RateLimiter,
    /// Networks that are not allowed, and asked all the same.
    pub refused: RefusedClients,
    /// Wall clock, for the timestamps of server cookies.
    pub clock: Clock,
    quotas: ClientQuotas,
}

/// Result of looking for room for one more query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// A slot is free.
    Room,
    /// No slot is free: this waiter, the newest query of the network with the most pending queries, gives way.
    Evict(Index),
    /// The query is refused and counted here.
    Refused(Counter),
}

impl Clients {
    /// Reserves room for `pending` queries. `key` hashes networks and names as the rest of the engine does.
    pub fn new(pending: usize, key: HashKey) -> Clients {
        Clients {
            waiters: Slab::new(pending),
            chases: CnameChases::new(key),
            rate_limiter: RateLimiter::new(key),
            refused: RefusedClients::default(),
            clock: Clock::default(),
            quotas: ClientQuotas::new(pending, key),
        }
    }

    /// Looks for room for one more query of a client. At most `limit` queries of its network may be pending.
    pub fn admission(&mut self, from: &Client, limit: u32) -> Admission {
        if self.quotas.highest() < limit && !self.waiters.is_full() {
            return Admission::Room;
        }
        let quota = self.quotas.find(client_network(from.address));
        let count = quota.map_or(0, |quota| self.quotas.count(quota));
        if count >= limit {
            return Admission::Refused(Counter::RefusedPendingPerClient);
        }
        if !self.waiters.is_full() {
            return Admission::Room;
        }
        // With this query, the client's own network would have at least as many pending queries as any other.
        if count + 1 >= self.quotas.highest() {
            return Admission::Refused(Counter::RefusedPending);
        }
        match self.quotas.largest() {
            Some(largest) => Admission::Evict(self.quotas.newest(largest)),
            None => Admission::Refused(Counter::RefusedPending),
        }
    }

    /// Creates a waiter for a query that was admitted; it may be answered until `useful_until`.
    pub fn admit(&mut self, from: &Client, now: Instant, useful_until: Instant) -> Option<Index> {
        let index = self.waiters.take()?;
        let quota = self.quotas.add(client_network(from.address));
        let older = if self.quotas.count(quota) == 1 { NONE } else { self.quotas.newest(quota) };
        if older != NONE {
            self.waiters[older].newer = index;
        }
        self.quotas.set_newest(quota, index);
        self.waiters[index].reset(from, now, useful_until, quota, older);
        Some(index)
    }

    /// Frees a waiter that was answered or dropped, and counts its cache hit. Returns the A flight that it referred to, or
    /// [`NONE`].
    pub fn free(&mut self, index: Index, counters: &mut Counters) -> Index {
        let Waiter { quota, older, newer, a_flight, chase, cache_hit, cache_missed, .. } =
            self.waiters[index];
        match cache_hit {
            CacheHit::Nothing => {}
            CacheHit::Stale => counters.count(Counter::CacheHitsStale),
            _ if cache_missed => {}
            CacheHit::Positive => counters.count(Counter::CacheHitsPositive),
            CacheHit::Negative => counters.count(Counter::CacheHitsNegative),
            CacheHit::Synthesized => counters.count(Counter::CacheHitsSynthesized),
            CacheHit::Failure => counters.count(Counter::CacheHitsFailure),
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
        a_flight
    }

    /// Starts the CNAME chase of a waiter that has none yet. None: its network has reached its limit of chases.
    pub fn start_chase(&mut self, waiter: Index) -> Option<Index> {
        let chase = self.chases.take(client_network(self.waiters[waiter].client.address))?;
        self.waiters[waiter].chase = chase;
        Some(chase)
    }

    /// Question that a waiter waits for at the moment: the client's own, or one on the way to its answer.
    pub fn current_question(&self, waiter: Index) -> CurrentQuestion<'_> {
        let waiter = &self.waiters[waiter];
        let name = match waiter.chase {
            NONE => waiter.name(),
            chase => &self.chases[chase].name,
        };
        CurrentQuestion { name, qtype: waiter.current_type(), class: waiter.qtype_and_class().1 }
    }
}
