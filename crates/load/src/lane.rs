//! State that a sending thread shares with the receiver of its replies: ports, slots, and a few growing counters.

use crate::cached_names::Pool;
use crate::error::LoadError;
use crate::outstanding::Slots;
use crate::plan::{Plan, Timing, again_most_ms};
use crate::query_id::Identity;
use datapath::tester::Port;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter on its own pair of cache lines: the processor fetches two at a time.
#[repr(align(128))]
#[derive(Default)]
pub struct Number(AtomicU64);

impl Number {
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
    /// Its source ports.
    pub ports: Vec<Port>,
    /// The thread's last queries.
    pub slots: Slots,
    /// Names to query again; `None` if the load queries none again.
    pub pool: Option<Pool>,
    /// Ports and IDs of its queries.
    pub identity: Identity,
    /// Number of queries sent, or about to be sent.
    pub sent: Number,
    /// Number of these that the kernel did not accept.
    pub unsent: Number,
    /// The first measured query; u64::MAX until it is known.
    pub measured_from: Number,
    /// Time when sending ended; u64::MAX before.
    pub ended: Number,
    /// Number of queries whose reply came in time.
    pub in_time: Number,
    /// Number of queries whose reply came late.
    pub late: Number,
    /// Number of measured queries with a valid reply in time, for progress.
    pub valid: Number,
    /// Number of measured queries with an invalid reply in time, for progress.
    pub invalid: Number,
}

impl Lane {
    /// Binds the ports and reserves the memory of a thread.
    pub fn new(plan: &Plan, index: u64) -> Result<Lane, LoadError> {
        let order = &plan.order;
        let any = if order.server.is_ipv6() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let sources = if order.lanes.sources.is_empty() { &[any][..] } else { &order.lanes.sources };
        let mut ports = Vec::new();
        for _ in 0..order.lanes.ports {
            for source in sources {
                ports.push(Port::bind(*source).map_err(|error| LoadError::Bind(*source, error))?);
            }
        }
        let measured_from = match plan.timing {
            Timing::Open { warm, .. } => plan.part(index, warm),
            Timing::Closed { .. } => u64::MAX,
        };
        let lane = Lane {
            index,
            identity: Identity::new(ports.len(), order.lanes.group, order.seed.wrapping_add(index << 32)),
            ports,
            slots: Slots::new(plan.slots()?),
            pool: (plan.again_below > 0)
                .then(|| Pool::new(plan.pool(), order.timeout_ms, again_most_ms(order))),
            sent: Number::default(),
            unsent: Number::default(),
            measured_from: Number::default(),
            ended: Number::default(),
            in_time: Number::default(),
            late: Number::default(),
            valid: Number::default(),
            invalid: Number::default(),
        };
        lane.measured_from.set(measured_from);
        lane.ended.set(u64::MAX);
        Ok(lane)
    }

    /// True if the last query was sent and every reply has come.
    pub fn is_complete(&self) -> bool {
        self.ended.get() != u64::MAX
            && self.in_time.get() + self.late.get() + self.unsent.get() >= self.sent.get()
    }
}
