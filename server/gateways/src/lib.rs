//! Health of the gateways (NAT64) behind the prefixes: which probes are due, what their outcomes mean, and which prefixes drain; life of the
//! addresses in real AAAA records, which rules may have verified; and discovery of prefixes: what upstreams (RFC 7050) and routers (RFC
//! 8781) tell of them.
//!
//! Nothing here has a socket, a clock, a thread or a random source of its own: time is a parameter, and outcomes are told. So the prober of
//! the server and a simulator drive the same state machines. Read `monitor.rs` first; `health.rs` has the state of one prefix, `drain.rs` the
//! share of the clients that have left a prefix which drains, `verifier.rs` the trials of addresses; `discovery.rs` puts together what
//! `told.rs` and `pref64_option.rs` read. The meaning of the states for answers is the engine's (`dns64/gateways.rs` and `dns64/verify.rs`
//! there).
#![forbid(unsafe_code)]

pub mod discovery;
pub mod drain;
pub mod health;
pub mod limits;
pub mod monitor;
pub mod pref64_option;
pub mod told;
pub mod verifier;

pub use discovery::{Announcement, Announcer, Discovery, News, Source, Trouble};
pub use drain::Drain;
pub use health::{Health, HealthSettings, Liveness};
pub use monitor::{Change, Destination, Failure, Gateway, Monitor, Probe, Round, RoundId, Status};
pub use told::Told;
pub use verifier::{Report, Trials, Verifier};
