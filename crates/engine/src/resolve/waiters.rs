//! Waiters and the questions in flight that they wait for: admit, attach, detach, free.

use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::client::quota::QuotaKey;
use crate::client::{Admission, Rejection};
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Client, Outbox};
use crate::limits::CLIENT_TIMEOUT;
use crate::trace::{Subject, TraceEvent};
use wire::Rcode;

/// Client response timer: time that a client waits for fresh data if the cache has expired data (RFC 8767 section 5: 1.8 s, because
/// many clients give up after 2 s).
const CLIENT_RESPONSE_TIMER: Span = Span::from_millis(1_800);

impl Engine {
    /// Admits a query; `proven`: its source address is not forged. If the table is full, the newest query of the largest network
    /// of the largest site is evicted; if that is the client's own network, the new query is refused.
    pub(crate) fn admit(
        &mut self,
        from: &Client,
        proven: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Result<Index, Rejection> {
        let key = QuotaKey { network: from.network(), proven };
        let quota = match self.clients.admission(key) {
            Admission::Room(quota) => quota,
            Admission::Rejected(rejection) => return Err(rejection),
            Admission::Evict(newest) => {
                self.counters.count(Counter::RefusedPending);
                out.trace(Subject::Waiter(newest), || TraceEvent::Limited(Counter::RefusedPending));
                self.detach(newest);
                self.respond_empty(newest, Rcode::REFUSED, None, now, out);
                None
            }
        };
        let useful_until = now + CLIENT_TIMEOUT.max(self.settings.upstream.longest());
        let refused = Rejection::Refused(Counter::RefusedPending);
        self.clients.admit(from, (key, quota), now, useful_until).ok_or(refused)
    }

    /// Frees a waiter that has its answer, or will not get one.
    pub(crate) fn free_waiter(&mut self, waiter: Index, out: &mut impl Outbox) {
        out.trace(Subject::Waiter(waiter), || TraceEvent::Freed);
        let a_flight = self.clients.free(waiter, &mut self.counters);
        if a_flight != NONE {
            self.upstream.release_flight(a_flight);
        }
    }

    /// Attaches a waiter to a question in flight.
    #[inline]
    pub(crate) fn attach(&mut self, flight: Index, index: Index) {
        let first = self.upstream.flights[flight].waiters;
        let waiter = &mut self.clients.waiters[index];
        if !core::mem::replace(&mut waiter.cache_missed, true) && !self.cache.is_off() {
            self.counters.count(Counter::CacheMisses);
        }
        waiter.flight = flight;
        waiter.previous = NONE;
        waiter.next = first;
        if first != NONE {
            self.clients.waiters[first].previous = index;
        }
        self.upstream.flights[flight].waiters = index;
        let waiter = &self.clients.waiters[index];
        if waiter.has_stale {
            self.upstream.set_client_response_timer(flight, waiter.arrived + CLIENT_RESPONSE_TIMER);
        }
    }

    /// Detaches a waiter from a question that is still in flight.
    pub(crate) fn detach(&mut self, index: Index) {
        let waiter = &self.clients.waiters[index];
        let (flight, previous, next) = (waiter.flight, waiter.previous, waiter.next);
        if previous == NONE {
            self.upstream.flights[flight].waiters = next;
        } else {
            self.clients.waiters[previous].next = next;
        }
        if next != NONE {
            self.clients.waiters[next].previous = previous;
        }
    }
}
