//! An authoritative server whose zone is a rule instead of data: `AAA-BBB-CCC-DDD.<zone>` has the address that the
//! name says. Four billion names cost no memory, every answer can be foretold by who asks, and nothing is looked up,
//! so it outruns the DNS64 server that it is to feed.
//!
//! [`Zone`] turns a query into an answer: pure, without allocation, so that any datapath can call it.
//! [`Server`] is the plain one over blocking sockets, for demonstrations and tests.
//!
//! Not here: delegations, DNSSEC, zone files, cookies.
#![forbid(unsafe_code)]

mod answer;
mod counters;
pub mod limits;
mod server;
mod stream;
mod zone;

pub use answer::Answer;
pub use counters::{Counters, Kind};
pub use server::Server;
pub use zone::{Zone, ZoneError};
