//! An authoritative server whose zone is a rule instead of data: `AAA-BBB-CCC-DDD.<zone>` has the address that the
//! name says. Four billion names cost no memory, every answer can be foretold by who asks, and nothing is looked up,
//! so it outruns the DNS64 server that it is to feed.
//!
//! [`Zone`] turns a query into an answer: pure, without allocation, so that any datapath can call it. [`Server`] serves it
//! with threads of its own, [`Turns`] on the thread of its owner; both move datagrams in batches. [`Faults`] make answers
//! late, lost or wrong, reproducibly. With the feature `zone-file`, `Records` are a zone from a master file instead.
//!
//! Not here: DNSSEC, zone transfers, cookies.
#![forbid(unsafe_code)]

mod answer;
mod chaos;
mod counters;
mod delayed;
mod faults;
pub mod limits;
mod listen;
mod reply;
mod server;
mod service;
mod stream;
mod turns;
mod zone;
#[cfg(feature = "zone-file")]
mod zonefile;

pub use chaos::read_counters;
pub use counters::{Kind, Ledger};
pub use datapath::Steer;
pub use faults::{Failure, FaultError, Faults, Mishap};
pub use listen::Settings;
pub use reply::Answer;
pub use server::Server;
pub use service::Content;
pub use turns::Turns;
pub use zone::{Zone, ZoneError};
#[cfg(feature = "zone-file")]
pub use zonefile::{LoadError, Records};
