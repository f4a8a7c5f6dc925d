//! Health of the gateways (NAT64) behind the prefixes: which probes are due, what their outcomes mean, and which prefixes drain.
//!
//! Nothing here has a socket, a clock, a thread or a random source of its own: time is a parameter, and outcomes are told. So the prober of
//! the server and a simulator drive the same state machine. Read `monitor.rs` first; `health.rs` has the state of one prefix, `drain.rs` the
//! share of the clients that have left a prefix which drains. What the states mean for answers is the engine's (`dns64/gateways.rs` there).
#![forbid(unsafe_code)]

pub mod drain;
pub mod health;
pub mod limits;
pub mod monitor;

pub use drain::Drain;
pub use health::{Health, HealthSettings, Liveness};
pub use monitor::{Change, Destination, Failure, Gateway, Monitor, Probe, Round, RoundId, Status};
