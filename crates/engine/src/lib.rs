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
pub mod message;
mod query;
mod resolve;
pub mod rpz;
pub mod settings;
pub mod upstream;

#[cfg(test)]
#[path = "../tests/world/statistics.rs"]
mod statistics;

pub use base::time;
pub use base::time::{Instant, Span};
pub use cache_control as inventory;
pub use counters::{Counter, Counters};
pub use dns64::rules;
pub use engine::Engine;
pub use event as note;
pub use interface as face;
pub use interface::{Carrier, Client, Hop, Link, Machine, Outbox};
pub use local::local_data as own;
pub use message::cookie;
pub use rpz::{table as policy, zone_record as zone};
pub use settings::{Capacity, Settings, Transport};
pub use upstream::{circuit_breaker as breaker, groups as servers};
