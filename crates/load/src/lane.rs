//! What a sending thread shares with whoever receives its replies: ports, slots, and a few numbers that only grow.

use crate::error::LoadError;
use crate::identity::Identity;
use crate::plan::{Plan, Timing, again_most_ms};
use crate::pool::Pool;
use crate::slots::Slots;
use datapath::laboratory::Port;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of its own pair of cache lines: the processor fetches two at a time.
#[repr(align(128))]
#[derive(Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Its value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Another value. One thread only.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    /// More. One thread only.
    #[inline]
    pub fn add(&self, more: u64) {
        self.set(self.0.load(Ordering::Relaxed) + more);
    }
}

/// One sending thread's part of a load.
pub struct Lane {
    /// Which one, from 0.
    pub index: u64,
    /// Its source ports.
    pub ports: Vec<Port>,
    /// Its last queries.
    pub slots: Slots,
    /// Names to ask again; nothing if none are.
    pub pool: Option<Pool>,
    /// Ports and IDs of its queries.
    pub identity: Identity,
    /// Queries sent, or about to be.
    pub sent: Number,
    /// Of these the kernel did not take.
    pub unsent: Number,
    /// The first query that is measured; until it is known none is.
    pub measured_from: Number,
    /// When the last query left; u64::MAX while there are more.
    pub ended: Number,
    /// Queries whose reply came in time.
    pub in_time: Number,
    /// Queries whose reply came late.
    pub late: Number,
    /// Measured ones with a valid reply in time, for progress.
    pub valid: Number,
    /// Measured ones with an invalid reply in time, for progress.
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

    /// Whether the last query has left and every reply has come.
    pub fn is_complete(&self) -> bool {
        self.ended.get() != u64::MAX
            && self.in_time.get() + self.late.get() + self.unsent.get() >= self.sent.get()
    }
}
