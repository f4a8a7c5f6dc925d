//! Pending queries and the questions in flight that they wait for: admit, attach, detach, free.

use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::client::Admission;
use crate::client::pending_query::PendingQuery;
use crate::client::quota::QuotaKey;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Client, Outbox};
use crate::limits::{CLIENT_TIMEOUT, JOSTLE_AGE, JOSTLE_COMPARED};
use crate::reasons::{Limit, Reaction};
use crate::trace::{Subject, TraceEvent};
use wire::Rcode;

/// Client response timer: time that a client waits for fresh data if the cache has expired data (RFC 8767 section 5: 1.8 s, because
/// many clients give up after 2 s).
const CLIENT_RESPONSE_TIMER: Span = Span::from_millis(1_800);

impl Engine {
    /// Admits a query; `proven`: its source address is not forged. If its network has all of its share, or the table is full, a late
    /// query gives way: of its network, or of the largest network of the largest customer. If none is late, the newest query of that
    /// largest network is evicted. `outbound`: the question in flight for which the query will wait.
    ///
    /// # Errors
    ///
    /// The limit, with the reaction, for a query for which there is no place. Its network has all of its share, and none of its queries
    /// is late: `Limit::RefusedPendingPerClient` if the address is proven, else `Limit::SlippedPendingPerClient` or
    /// `Limit::DroppedPendingPerClient`. The table is full, and no late query can give way: `Limit::RefusedPending`.
    pub(crate) fn admit(
        &mut self,
        from: &Client,
        proven: bool,
        outbound: Option<Index>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Result<Index, Limit> {
        let key = QuotaKey { network: from.network(), proven };
        let quota = match self.clients.admission(key) {
            Admission::Room(quota) => quota,
            Admission::AtLimit(network) => {
                let late = network.and_then(|network| self.find_late(network, now));
                let late = late.ok_or_else(|| self.clients.reject(network, proven))?;
                // Its source address may be forged unless it is proven, as that of the new query.
                let limit = match proven {
                    true => Limit::RefusedPendingPerClient,
                    false => Limit::SlippedPendingPerClient,
                };
                self.evict(late, limit, outbound, now, out);
                None
            }
            Admission::Full(network) => {
                let late = match network {
                    Some(network) => self.find_late(network, now),
                    None => self.find_late_of_any(proven, now),
                };
                self.evict(late.ok_or(Limit::RefusedPending)?, Limit::RefusedPending, outbound, now, out);
                None
            }
            Admission::Evict(network) => {
                let evicted = self.find_late(network, now).unwrap_or(self.clients.newest_of(network));
                self.evict(evicted, Limit::RefusedPending, outbound, now, out);
                None
            }
        };
        let useful_until = now + CLIENT_TIMEOUT.max(self.settings.upstream.longest());
        self.clients.admit(from, (key, quota), now, useful_until).ok_or(Limit::RefusedPending)
    }

    /// Finds a late query of a network among its oldest ones: one that has waited for [`JOSTLE_AGE`], and whose upstream has not
    /// replied in its usual time.
    #[cold]
    fn find_late(&self, network: Index, now: Instant) -> Option<Index> {
        let mut oldest = self.clients.oldest_of(network).take(JOSTLE_COMPARED);
        oldest.find(|&pending| {
            let pending = &self.clients.pending_queries[pending];
            now - pending.arrived >= JOSTLE_AGE && self.upstream.is_late(pending.outbound, now)
        })
    }

    /// Finds a late query of the largest customers. Each call goes on behind the last result, so all of them have their turn.
    #[cold]
    fn find_late_of_any(&mut self, proven: bool, now: Instant) -> Option<Index> {
        (0..JOSTLE_COMPARED).find_map(|_| {
            let network = self.clients.next_largest(proven, JOSTLE_COMPARED)?;
            self.find_late(network, now)
        })
    }

    /// Ends a pending query in favour of a new one, and tells its client: it is refused, or sent to TCP, as the limit says. Its question stays
    /// in flight until the current attempt is over, so that its reply is cached; if questions in flight have little room, it ends at once,
    /// unless it is `wanted`.
    #[cold]
    fn evict(
        &mut self,
        pending: Index,
        limit: Limit,
        wanted: Option<Index>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.counters.count(limit.counter());
        out.trace(Subject::PendingQuery(pending), || TraceEvent::Limited(limit));
        let PendingQuery { outbound, a_outbound_query, .. } = self.clients.pending_queries[pending];
        self.detach(pending);
        match limit.reaction() {
            Reaction::Slip => self.respond_truncated(pending, now, out),
            Reaction::Refuse | Reaction::Drop => self.respond_empty(pending, Rcode::REFUSED, None, now, out),
        }
        for outbound in [outbound, a_outbound_query] {
            if outbound != NONE && Some(outbound) != wanted {
                self.upstream.end_if_crowded(outbound, out);
            }
        }
    }

    /// Frees a pending query that has its answer, or will not get one.
    pub(crate) fn free_pending_query(&mut self, pending: Index, out: &mut impl Outbox) {
        out.trace(Subject::PendingQuery(pending), || TraceEvent::Freed);
        let a_outbound_query = self.clients.free(pending, &mut self.counters);
        if a_outbound_query != NONE {
            self.upstream.release_outbound_query(a_outbound_query);
        }
    }

    /// Attaches a pending query to a question in flight.
    #[inline]
    pub(crate) fn attach(&mut self, outbound: Index, index: Index) {
        let first = self.upstream.outbound_queries[outbound].pending_queries;
        let pending = &mut self.clients.pending_queries[index];
        if !core::mem::replace(&mut pending.cache_missed, true) && !self.cache.is_off() {
            self.counters.count(Counter::CacheMisses);
        }
        pending.outbound = outbound;
        pending.previous = NONE;
        pending.next = first;
        if first != NONE {
            self.clients.pending_queries[first].previous = index;
        }
        self.upstream.outbound_queries[outbound].pending_queries = index;
        let pending = &self.clients.pending_queries[index];
        if pending.has_stale {
            self.upstream.set_client_response_timer(outbound, pending.arrived + CLIENT_RESPONSE_TIMER);
        }
    }

    /// Detaches a pending query from a question that is still in flight.
    pub(crate) fn detach(&mut self, index: Index) {
        let pending = &self.clients.pending_queries[index];
        let (outbound, previous, next) = (pending.outbound, pending.previous, pending.next);
        if previous == NONE {
            self.upstream.outbound_queries[outbound].pending_queries = next;
        } else {
            self.clients.pending_queries[previous].next = next;
        }
        if next != NONE {
            self.clients.pending_queries[next].previous = previous;
        }
    }
}
