//! The DNS64 engine: a state machine without I/O. Datagrams and the time go in, datagrams and the next deadline
//! come out. It has no socket, clock, thread, lock, random source of its own, `async`, `dyn` or allocation per
//! packet, so the same code runs over sockets and in a simulator with virtual time.
#![forbid(unsafe_code)]

mod aliased;
mod answer;
mod arpa;
mod ask;
pub mod breaker;
pub mod cache;
mod chain;
pub mod cookie;
pub mod counters;
mod doubt;
mod edns;
mod embed;
mod enforce;
mod engine;
pub mod explain;
pub mod face;
mod flight;
mod followed;
mod greed;
mod held;
pub mod inventory;
mod key;
mod lame;
pub mod limits;
mod links;
mod names;
pub mod note;
pub mod own;
#[cfg(test)]
mod planted_tests;
pub mod policy;
mod prefixes;
mod query;
mod random;
mod rate;
mod recall;
mod remember;
mod repeat;
mod reply;
pub mod rules;
pub mod servers;
pub mod settings;
mod settle;
mod siphash;
mod slab;
mod subnet;
pub mod time;
mod timer;
mod vouch;
mod waiter;
pub mod zone;

#[cfg(test)]
#[path = "../tests/world/statistics.rs"]
mod statistics;

pub use counters::{Counter, Counters};
pub use engine::Engine;
pub use face::{Carrier, Client, Hop, Link, Machine, Outbox};
pub use settings::{Capacity, Settings, Transport};
pub use time::{Instant, Span};
