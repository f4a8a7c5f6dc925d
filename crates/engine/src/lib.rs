//! The DNS64 engine: a state machine without I/O. Datagrams and the time go in, datagrams and the next deadline
//! come out. It has no socket, clock, thread, lock, random source of its own, `async`, `dyn` or allocation per
//! packet, so the same code runs over sockets and in a simulator with virtual time.
#![forbid(unsafe_code)]

mod answer;
pub mod base;
pub mod cache;
pub mod cache_control;
mod client;
pub mod counters;
pub mod dns64;
mod engine;
pub mod event;
pub mod explain;
pub mod interface;
pub mod limits;
pub mod local;
mod machine;
pub mod message;
mod query;
mod resolve;
pub mod rpz;
pub mod settings;
pub mod upstream;

#[cfg(test)]
#[path = "../tests/world/statistics.rs"]
mod statistics;

pub use base::time::{Instant, Span};
pub use counters::{Counter, Counters};
pub use engine::Engine;
pub use interface::{Carrier, Client, Hop, Link, Machine, Outbox, Transport};
pub use settings::{Capacity, Settings};

// Former names, for other crates.
#[allow(missing_docs)]
pub mod former {
    pub mod breaker {
        pub use crate::upstream::circuit_breaker::BreakerState as State;
    }
    pub mod servers {
        pub use crate::upstream::server::{QueryKind as Kind, Server};
    }
    pub mod own {
        pub use crate::local::{local_data::LocalData as Own, record::LocalRecord as Record};
    }
    pub mod policy {
        pub use crate::rpz::table::{
            self, Action, NETWORKS, PolicyRule as Entry, TRIGGERS, TooMany, Trigger, ZONES,
        };
        pub use crate::rpz::table::{PolicyRule as _Entry, PolicyZone as Zone, ResponsePolicy as Policy};
    }
    pub mod zone {
        pub use crate::rpz::zone_record::{RpzRecordError as Unfit, RpzZoneBuilder as Reading};
    }
    pub mod rules {
        pub use crate::dns64::rules::{RulesTooLarge as Entangled, *};
    }
}
pub use base::time;
pub use cache_control as inventory;
pub use event as note;
pub use former::*;
pub use interface as face;
pub use message::cookie;
