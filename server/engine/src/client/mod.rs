//! Clients: pending queries, limits per network, cookies, CNAME chases, and the sending of responses.
//!
//! It knows no upstream and no cache: a pending query refers to the question in flight that it waits for by an index only.
//!
//! Read `pending_query.rs` first: one client query that waits for its answer.

pub(crate) mod chased;
pub(crate) mod cookies;
pub(crate) mod pending_query;
pub(crate) mod quota;
pub(crate) mod rate_limit;
pub(crate) mod refused;
pub(crate) mod respond;

use crate::base::name_hash::HashKey;
use crate::base::slab::{Index, NONE, Slab};
use crate::base::time::{Clock, Instant};
use crate::client::chased::{CnameChases, replies};
use crate::client::pending_query::PendingQuery;
use crate::client::quota::{ClientQuotas, QuotaKey};
use crate::client::rate_limit::RateLimiter;
use crate::client::refused::RefusedClients;
use crate::counters::Counters;
use crate::interface::{Client, ClientNetwork};
use crate::message::question::{CurrentQuestion, Question};
use crate::reasons::{CacheHit, Limit};
use wire::header::{self, Flags};
use wire::{Class, Type};

/// Client side of the engine: the pending queries, and the limits of each client network.
pub(crate) struct Clients {
    /// Pending client queries.
    pub pending_queries: Slab<PendingQuery>,
    /// CNAME chases of pending queries.
    pub chases: CnameChases,
    /// Query and response rates per network.
    pub rate_limiter: RateLimiter,
    /// Networks that are not allowed, and asked all the same.
    pub refused: RefusedClients,
    /// Wall clock, for the timestamps of server cookies.
    pub clock: Clock,
    quotas: ClientQuotas,
    limits: ClientLimits,
}

/// Limits of each client network.
#[derive(Clone, Copy)]
pub(crate) struct ClientLimits {
    /// Pending queries of each kind, with a proven source address and without.
    pub pending: u32,
    /// Queries per second; 0: no limit.
    pub queries_per_second: u32,
    /// Equal responses over UDP per second; 0: no limit.
    pub responses_per_second: u32,
    /// Prefix length of a customer.
    pub client_prefix: u8,
}

/// Result of looking for room for one more query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// A slot is free. Holds the entry of the client's network in the quotas, if it has one.
    Room(Option<Index>),
    /// No slot is free: a query of this network, the largest of the largest customer, gives way. Holds its entry in the quotas.
    Evict(Index),
    /// The network has as many queries as it may have: one of them gives way if it is late, else the new query is rejected. Holds its
    /// entry in the quotas, unless it has none.
    AtLimit(Option<Index>),
    /// No slot is free, and no customer has more than that of the client: a late query of its network gives way, or of any of the largest
    /// customers if it has none; else the new query is refused.
    Full(Option<Index>),
}

impl Clients {
    /// Reserves room for `pending` queries. `key` hashes networks and names as the rest of the engine does.
    pub fn new(pending: usize, key: HashKey, limits: ClientLimits) -> Clients {
        let mut clients = Clients {
            pending_queries: Slab::new(pending),
            chases: CnameChases::new(key),
            rate_limiter: RateLimiter::new(key),
            refused: RefusedClients::default(),
            clock: Clock::default(),
            quotas: ClientQuotas::new(pending, key),
            limits,
        };
        clients.configure(limits);
        clients
    }

    /// Sets the limits of each client network.
    pub fn configure(&mut self, limits: ClientLimits) {
        let ClientLimits { queries_per_second, responses_per_second, client_prefix, .. } = limits;
        self.rate_limiter.configure(queries_per_second, responses_per_second, client_prefix);
        self.limits = limits;
    }

    /// Customer of a client network.
    pub fn customer(&self, network: ClientNetwork) -> ClientNetwork {
        network.customer(self.limits.client_prefix)
    }

    /// Looks for room for one more query of a client.
    #[inline(always)]
    pub fn admission(&mut self, key: QuotaKey) -> Admission {
        let quota = self.quotas.find(key);
        let count = quota.map_or(0, |quota| self.quotas.count(quota));
        if count >= self.limits.pending {
            return Admission::AtLimit(quota);
        }
        if !self.pending_queries.is_full() {
            return Admission::Room(quota);
        }
        self.find_eviction(key, quota, count)
    }

    /// Finds the network that gives way to one more query of a network that has `count` of them.
    ///
    /// Queries without a proven source address give way as long as they take more than half of all slots, and the others
    /// otherwise: neither kind can push the other one below half. Within a kind the largest customer gives way, and in it the largest
    /// network.
    #[cold]
    fn find_eviction(&mut self, key: QuotaKey, quota: Option<Index>, count: u32) -> Admission {
        let unproven = self.quotas.total(false) + usize::from(!key.proven);
        let evicts_proven = unproven <= self.pending_queries.len() / 2;
        if evicts_proven == key.proven {
            let customer = key.network.customer(self.limits.client_prefix);
            let (_, customer_count) = self.quotas.counts(key, customer);
            // With this query, the client's own customer would have at least as many pending queries as any other.
            if customer_count + 1 >= self.quotas.highest(key.proven) {
                let largest = self.quotas.largest_in(QuotaKey { network: customer, ..key });
                let largest = largest.filter(|&largest| self.quotas.count(largest) > count + 1);
                return largest.map_or(Admission::Full(quota), Admission::Evict);
            }
        }
        self.quotas.largest(evicts_proven).map_or(Admission::Full(quota), Admission::Evict)
    }

    /// The limit, with the reaction, that applies to a query of a network that has as many as it may have. `network`: its entry in the
    /// quotas.
    pub fn reject(&mut self, network: Option<Index>, proven: bool) -> Limit {
        match network {
            // The pending queries may have forged source addresses, and this one may not.
            Some(network) if !proven && self.quotas.slips(network) => Limit::SlippedPendingPerClient,
            Some(_) if !proven => Limit::DroppedPendingPerClient,
            _ => Limit::RefusedPendingPerClient,
        }
    }

    /// The next network that is the largest of a largest customer; see [`ClientQuotas::next_largest`].
    pub fn next_largest(&mut self, proven: bool, places: usize) -> Option<Index> {
        self.quotas.next_largest(proven, places)
    }

    /// The newest pending query of a network, by its entry in the quotas.
    pub fn newest_of(&self, network: Index) -> Index {
        self.quotas.newest(network)
    }

    /// The pending queries of a network, by its entry in the quotas, the oldest one first.
    pub fn oldest_of(&self, network: Index) -> impl Iterator<Item = Index> + '_ {
        let newer =
            |&pending: &Index| Some(self.pending_queries[pending].newer).filter(|&newer| newer != NONE);
        core::iter::successors(Some(self.quotas.oldest(network)), newer)
    }

    /// Creates a pending query for a query that was admitted; it may be answered until `useful_until`. `quota`: the entry of its network,
    /// where it is known.
    #[inline(always)]
    pub fn admit(
        &mut self,
        from: &Client,
        (key, quota): (QuotaKey, Option<Index>),
        now: Instant,
        useful_until: Instant,
    ) -> Option<Index> {
        let index = self.pending_queries.take()?;
        let quota = quota.or_else(|| self.quotas.find(key));
        let quota = self.quotas.add(key, quota, self.limits.client_prefix);
        let older = if self.quotas.count(quota) == 1 { NONE } else { self.quotas.newest(quota) };
        match older {
            NONE => self.quotas.set_oldest(quota, index),
            older => self.pending_queries[older].newer = index,
        }
        self.quotas.set_newest(quota, index);
        self.pending_queries[index].reset(from, now, useful_until, quota, older);
        Some(index)
    }

    /// Frees a pending query that was answered or dropped, and counts its cache hit. Returns the An outbound query that it referred to, or
    /// [`NONE`].
    #[inline(always)]
    pub fn free(&mut self, index: Index, counters: &mut Counters) -> Index {
        let PendingQuery { quota, older, newer, a_outbound_query, chase, cache_hit, cache_missed, .. } =
            self.pending_queries[index];
        if let Some(hit) = cache_hit
            && (hit == CacheHit::Stale || !cache_missed)
        {
            counters.count(hit.counter());
        }
        if chase != NONE {
            self.chases.give(chase);
        }
        if newer == NONE {
            self.quotas.set_newest(quota, older);
        } else {
            self.pending_queries[newer].older = older;
        }
        match older {
            NONE => self.quotas.set_oldest(quota, newer),
            older => self.pending_queries[older].newer = newer,
        }
        self.quotas.remove(quota);
        self.pending_queries.give(index);
        a_outbound_query
    }

    /// The replies that led a pending query to the name that it asks for now, in order.
    pub fn replies(&self, pending: Index) -> &[Vec<u8>] {
        replies(&self.chases, self.pending_queries[pending].chase)
    }

    /// Starts the CNAME chase of a pending query that has none yet. None: its network has reached its limit of chases.
    pub fn start_chase(&mut self, pending: Index) -> Option<Index> {
        let key = self.quotas.key(self.pending_queries[pending].quota);
        let chase = self.chases.take(key, self.limits.client_prefix)?;
        self.pending_queries[pending].chase = chase;
        Some(chase)
    }

    /// Question that a pending query waits for at the moment: the client's own, or one on the way to its answer.
    pub fn current_question(&self, pending: Index) -> CurrentQuestion<'_> {
        let pending = &self.pending_queries[pending];
        let name = match pending.chase {
            NONE => pending.name(),
            chase => &self.chases[chase].name,
        };
        CurrentQuestion { name, qtype: pending.current_type(), class: pending.qtype_and_class().1 }
    }

    /// Question of class IN that an upstream is asked for a pending query's current name.
    #[inline]
    pub fn upstream_question(&self, pending: Index, qtype: Type) -> Question<'_> {
        let pending = &self.pending_queries[pending];
        let (name, hash) = match pending.chase {
            NONE => (pending.name(), pending.hash),
            chase => (&self.chases[chase].name[..], self.chases[chase].hash),
        };
        let query_flags = pending.query_flags_for(qtype);
        Question { name, hash, qtype, class: Class::IN, query_flags, subnet: pending.subnet.as_ref() }
    }

    /// True if every reply of a pending query's CNAME chase was secure: AD covers all records of an answer (RFC 4035 section
    /// 3.2.3).
    pub fn came_secure(&self, pending: Index) -> bool {
        self.replies(pending).iter().all(|reply| header::flags(reply).contains(Flags::AD))
    }
}
