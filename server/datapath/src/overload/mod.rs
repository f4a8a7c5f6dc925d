//! Overload of a listening socket: more datagrams come than the worker can read. Then a full queue would drop by arrival, and a network
//! that sends ten times what the worker can read would cost every other client nine queries in ten. So the kernel drops before it
//! queues, first of all what the heaviest networks send beyond an equal share.
//!
//! ```text
//!   datagrams that the worker reads                                 input
//!      |                              |
//!      | when did it come?            | who sent it?
//!      v  (queue_age.rs)              v
//!   controller.rs                  heavy_hitters.rs
//!      | first decision:              | second decision:
//!      | how much may pass?           | of whom?
//!      +------------ rates ---------->+
//!                                     | shares of networks
//!                                     v
//!   socket_filter.rs: only their shares get into the queue          output
//! ```
//!
//! The filter does not reach what waits already. Of that, the datagrams of networks that are shed are dropped unread if they are too old
//! ([`Overload::record`]), so that the next ones are answered in time. And all that is counted has passed the latest filter.

pub(crate) mod controller;
pub(crate) mod heavy_hitters;
pub(crate) mod queue_age;
#[allow(unsafe_code)]
pub(crate) mod socket_filter;

use crate::counters::Counter;
use crate::limits::{LATE_AGE, SHED_NETWORKS};
use crate::socket::syscalls::ReceiveQueue;
use controller::{Controller, Datagrams, Observation};
use engine::{ClientNetwork, Instant};
use heavy_hitters::{HeavyHitters, ShedNetwork};

/// The overload of one socket.
pub(crate) struct Overload {
    controller: Controller,
    heavy_hitters: HeavyHitters,
    /// The networks that are shed now, as in the kernel's filter.
    shed: Vec<ShedNetwork>,
    /// Working memory of an update.
    next: Vec<ShedNetwork>,
    /// The time at which that filter was attached: what came before has passed another one.
    filtered_since: Instant,
    /// True if more than one network has sent something since the queue became long.
    has_several: bool,
    datagrams: Datagrams,
    /// The time at which the latest datagram came that was read.
    arrival: Instant,
}

impl Overload {
    pub(crate) fn new() -> Overload {
        Overload {
            controller: Controller::new(),
            heavy_hitters: HeavyHitters::new(),
            shed: Vec::with_capacity(SHED_NETWORKS + 1),
            next: Vec::with_capacity(SHED_NETWORKS + 1),
            filtered_since: Instant(0),
            has_several: false,
            datagrams: Datagrams::default(),
            arrival: Instant(0),
        }
    }

    /// Records that a datagram was read, which came at `arrival`. Returns false if it must be dropped: its network is shed, and it is too
    /// old.
    #[inline]
    #[must_use]
    pub(crate) fn record(&mut self, now: Instant, arrival: Instant, network: ClientNetwork) -> bool {
        self.datagrams.read += 1;
        self.arrival = arrival;
        !self.is_alarmed() || self.record_alarmed(now, arrival, network)
    }

    #[cold]
    fn record_alarmed(&mut self, now: Instant, arrival: Instant, network: ClientNetwork) -> bool {
        if arrival >= self.filtered_since {
            self.datagrams.passed += 1;
            self.heavy_hitters.count(network);
        }
        let is_stale = now - arrival > LATE_AGE && self.shed.iter().any(|shed| shed.contains(network));
        self.datagrams.stale += u64::from(is_stale);
        !is_stale
    }

    /// Records that a datagram of a trusted proxy was read, which nobody sheds.
    #[inline]
    pub(crate) fn record_proxied(&mut self, arrival: Instant) {
        self.datagrams.read += 1;
        self.arrival = arrival;
        if self.is_alarmed() && arrival >= self.filtered_since {
            self.datagrams.passed += 1;
            self.heavy_hitters.count_proxied();
        }
    }

    /// True if the queue is long, or networks are shed: each batch must be reported.
    #[inline]
    pub(crate) fn is_alarmed(&self) -> bool {
        self.controller.is_alarmed()
    }

    /// True if networks are shed.
    pub(crate) fn is_active(&self) -> bool {
        !self.shed.is_empty()
    }

    /// The reason of drops by the filter, and of stale datagrams. Only networks that are shed for the sake of others flood.
    pub(crate) fn reason_of_drops(&self) -> Counter {
        let spares_others = self.shed.iter().all(|shed| shed.length > 0);
        match self.is_active() && self.has_several && spares_others {
            true => Counter::FloodingNetwork,
            false => Counter::ReceiveQueueOverflow,
        }
    }

    /// A batch was read. Returns the networks to shed if they have changed: none when the overload ends. `is_empty`: nothing waits.
    /// `knows_age`: the times at which datagrams came are true. `client_prefix`: the prefix length of a customer.
    pub(crate) fn on_batch(
        &mut self,
        now: Instant,
        is_empty: bool,
        knows_age: bool,
        queue: ReceiveQueue,
        client_prefix: u8,
    ) -> Option<&[ShedNetwork]> {
        let arrival = if is_empty { Some(now) } else { knows_age.then_some(self.arrival) };
        let observation = Observation {
            at: now,
            is_empty,
            arrival,
            datagrams: self.datagrams,
            filtered_since: self.filtered_since,
            queue,
        };
        let rates = self.controller.observe(observation);
        if self.controller.starts_at(&observation) {
            self.forget();
        }
        let rates = rates?;
        self.has_several |= self.heavy_hitters.has_several();
        if rates.offered > 0.0 && self.heavy_hitters.is_empty() {
            // Nothing that has passed the filter was read yet, so it stays.
            return None;
        }
        self.heavy_hitters.divide(rates, client_prefix, &self.shed, &mut self.next);
        if self.next.is_empty() {
            self.controller.end(&observation);
            self.forget();
        }
        if !self.has_changed() {
            self.heavy_hitters.decay();
            return None;
        }
        std::mem::swap(&mut self.shed, &mut self.next);
        self.heavy_hitters.clear();
        self.filtered_since = now;
        Some(&self.shed)
    }

    fn forget(&mut self) {
        self.heavy_hitters.clear();
        self.has_several = false;
    }

    /// True if the next filter differs from the present one. Each change costs some microseconds in the kernel, so changes are left out
    /// that are smaller than any that the queue asks for.
    fn has_changed(&self) -> bool {
        let is_new = |next: &ShedNetwork| {
            let is_same = |shed: &&ShedNetwork| (shed.network, shed.length) == (next.network, next.length);
            let present = self.shed.iter().find(is_same);
            present.is_none_or(|present| (next.share - present.share).abs() > present.share / 16.0)
        };
        self.next.len() != self.shed.len() || self.next.iter().any(is_new)
    }
}

#[cfg(test)]
mod tests;
