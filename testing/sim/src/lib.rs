//! The engine in a simulated world that follows from one seed: a virtual clock, a network that loses, delays, duplicates and
//! damages messages, upstreams that misbehave, clients of many kinds, an off-path attacker. A small naive DNS64 ([`oracle`])
//! compares every answer with the true data and the upstream replies, and tells whether the answer is allowed.
//!
//! The crate uses no sockets, no real clock and no configuration files; no other crate depends on it. Read [`world`] first (the
//! data), then `event_loop.rs` (the order of events), `judge.rs` (the invariants) and [`oracle`] (the rules of DNS64). The
//! world around the engine is in [`ground_truth`], [`client`], [`upstream`], [`network_faults`], [`gateways`] and [`forger`]. [`policy_worlds`]
//! and [`keyed_worlds`] stand apart: worlds of response policy zones, and worlds of signed zones with a validating engine.
//!
//! `docs/simulation.md` of the project lists the checks, and tells how to replay a failing seed.
#![forbid(unsafe_code)]

pub mod case;
pub mod client;
pub mod client_view;
mod comparison;
pub mod config;
pub mod cookie;
pub mod discovery;
mod event_loop;
pub mod forger;
pub mod gateway_config;
pub mod gateways;
pub mod ground_truth;
mod judge;
pub mod keyed_worlds;
pub mod local_oracle;
mod lookup;
pub mod mappings;
pub mod message;
pub mod network_faults;
pub mod oracle;
pub mod outbox;
pub mod pending;
pub mod policy;
pub mod policy_worlds;
pub mod prefix;
mod rate_check;
pub mod rates;
pub mod reverse_name;
pub mod rng;
mod rpz_oracle;
pub mod run;
pub mod spoofing;
pub mod timeline;
pub mod trials;
pub mod upstream;
pub mod world;
