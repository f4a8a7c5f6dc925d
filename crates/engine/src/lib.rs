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
pub use interface::{Client, ClientTransport, Link, Machine, Outbox, Proxy, Transport};
pub use settings::{Capacity, Settings};
