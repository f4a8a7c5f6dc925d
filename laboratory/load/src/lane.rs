//! State that a sending thread shares with the receiver of its replies: ports, slots, and a few growing counters.

use crate::cached_names::CachedNames;
use crate::error::LoadError;
use crate::order_check;
use crate::outstanding::OutstandingQueries;
use crate::plan::{Plan, Timing};
use crate::query_id::QueryIds;
use crate::sockets::Port;
use crate::stream_order;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter on its own pair of cache lines: the processor fetches two at a time.
#[repr(align(128))]
#[derive(Default)]
pub struct SharedCounter(AtomicU64);

impl SharedCounter {
    /// The value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets the value. Only one thread may call this.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    /// Adds to the value. Only one thread may call this.
    #[inline]
    pub fn add(&self, more: u64) {
        self.set(self.0.load(Ordering::Relaxed) + more);
    }
}

/// One sending thread's part of a load.
pub struct Lane {
    /// Index of the thread, from 0.
    pub index: u64,
    /// Index of the lane among those whose replies one receiver takes.
    pub place: usize,
    /// Its source ports over UDP.
    pub ports: Vec<Port>,
    /// The thread's last queries.
    pub outstanding: OutstandingQueries,
    /// Names to query again; `None` if the load queries none again.
    pub cached_names: Option<CachedNames>,
    /// Ports and IDs of its queries.
    pub query_ids: QueryIds,
    /// Number of queries sent, or about to be sent.
    pub sent: SharedCounter,
    /// Number of these that the kernel did not accept.
    pub unsent: SharedCounter,
    /// The first measured query; u64::MAX until it is known.
    pub first_measured: SharedCounter,
    /// Time when sending ended, in nanoseconds since the origin of the plan; u64::MAX before.
    pub ended: SharedCounter,
    /// Number of queries whose reply came in time.
    pub in_time: SharedCounter,
    /// Number of queries whose reply came late.
    pub late: SharedCounter,
    /// Number of queries that an ICMP message reported as refused.
    pub refused: SharedCounter,
    /// Number of queries whose connection ended without a reply, other than refused ones.
    pub failed: SharedCounter,
    /// Number of measured queries with a valid reply in time, for progress.
    pub valid: SharedCounter,
    /// Number of measured queries with an invalid reply in time, for progress.
    pub invalid: SharedCounter,
}

impl Lane {
    /// Binds the ports and reserves the memory of a thread.
    ///
    /// # Errors
    ///
    /// `LoadError::Bind`: a source address cannot be used. As [`Plan::slots`].
    pub fn new(plan: &Plan, index: u64) -> Result<Lane, LoadError> {
        let order = &plan.order;
        let any = if order.server.is_ipv6() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let sources = if order.lanes.sources.is_empty() { &[any][..] } else { &order.lanes.sources };
        let mut ports = Vec::new();
        // Over TCP one port shows that the source address can be used.
        let rounds = if order.transport.is_stream() { 1 } else { order.lanes.ports };
        for _ in 0..rounds {
            for source in sources {
                let port = Port::bind(*source, order.lanes.group > 1)
                    .and_then(|port| port.report_errors().map(|()| port));
                ports.push(port.map_err(|error| LoadError::Bind(*source, error))?);
            }
        }
        let (lines, group) = match stream_order::lines(order) {
            Some(lines) => {
                ports.clear();
                (lines, 1)
            }
            None => (ports.len(), order.lanes.group),
        };
        let seed = order.seed.wrapping_add(index << 32);
        let query_ids = QueryIds::new(lines, group, seed);
        let query_ids = if order.lanes.random_ports { query_ids.in_random_order(seed) } else { query_ids };
        let first_measured = match plan.timing {
            Timing::Open { warm, .. } => plan.share_of(index, warm),
            Timing::Closed { .. } => u64::MAX,
        };
        let lane = Lane {
            index,
            place: index.checked_div(u64::from(order.lanes.receivers)).unwrap_or(0) as usize,
            query_ids,
            ports,
            outstanding: OutstandingQueries::new(plan.slots()?),
            cached_names: (plan.cached_below > 0).then(|| {
                CachedNames::new(
                    plan.cached_names(),
                    order.timeout_ms,
                    order_check::max_requery_age_ms(order),
                )
            }),
            sent: SharedCounter::default(),
            unsent: SharedCounter::default(),
            first_measured: SharedCounter::default(),
            ended: SharedCounter::default(),
            in_time: SharedCounter::default(),
            late: SharedCounter::default(),
            refused: SharedCounter::default(),
            failed: SharedCounter::default(),
            valid: SharedCounter::default(),
            invalid: SharedCounter::default(),
        };
        lane.first_measured.set(first_measured);
        lane.ended.set(u64::MAX);
        Ok(lane)
    }

    /// Number of queries that a reply, an ICMP message or the end of their connection has completed.
    pub fn completed(&self) -> u64 {
        self.in_time.get() + self.late.get() + self.refused.get() + self.failed.get()
    }

    /// True if the last query was sent and every one is completed.
    pub fn is_complete(&self) -> bool {
        self.ended.get() != u64::MAX && self.completed() + self.unsent.get() >= self.sent.get()
    }
}
