//! Authoritative DNS server for measurements. It computes its answers from the query name: `AAA-BBB-CCC-DDD.<zone>`
//! has the address that is written in the name. Four billion names need no memory, a client can predict every answer,
//! and no lookup takes place. So the server is faster than the DNS64 server whose upstream it is.
//!
//! [`Zone`] turns a query into an answer. It is pure and allocates nothing, so any datapath can call it. [`Server`]
//! serves a zone with its own threads, [`PolledServer`] on its caller's thread; both receive and send datagrams in
//! batches. [`Faults`] make answers late, lost or wrong, reproducibly. `Records` serve
//! a zone from a master file, and a [`Source`] has the replies of zones that the server's owner makes.
//!
//! Not implemented: DNSSEC, zone transfers, cookies.
//!
//! Read first: `zone.rs` (meaning of a name), `answer.rs` (records of an answer), `service.rs` (from message to
//! message).
#![forbid(unsafe_code)]

mod answer;
mod chaos;
mod counters;
mod delay_queue;
mod faults;
pub mod limits;
mod listen;
mod polled;
mod reply;
mod responder;
mod server;
mod service;
mod settings;
mod stream;
mod udp_worker;
mod zone;
mod zonefile;

pub use chaos::read_counters;
pub use counters::{Kind, ServerCounters};
pub use datapath::Steer;
pub use faults::{Failure, FailureKind, FaultError, Faults};
pub use polled::PolledServer;
pub use reply::{Answer, Body};
pub use server::{BoundServer, Server};
pub use service::{Content, Source};
pub use settings::Settings;
pub use zone::{Zone, ZoneError};
pub use zonefile::{LoadError, Records};
