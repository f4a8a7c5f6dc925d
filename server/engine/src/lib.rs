//! The DNS64 engine: a state machine without I/O. Datagrams and the time go in, datagrams and the next deadline come out. It has
//! no socket, clock, thread, lock, random source of its own, `async`, `dyn` or allocation per packet, so the same code runs over
//! sockets and in a simulator with virtual time.
//!
//! The modules are layers; a file uses only layers below its own (`tests/layers.rs` holds that):
//!
//! ```text
//! observed                             an engine with an observer of its messages and events
//! explain                              the reasons for one answer, of an engine of its own
//! machine                              the three inputs: query, reply, time
//! query                                checks of a client's query
//! resolve   cache_control              what happens to a query; `resolve/driver.rs` has the loop
//! engine                               struct Engine: its parts and settings
//! packet_cache                         answers that others give in front of the engine
//! client    settings                   who asks, how much, how the response leaves
//! rpz                                  response policy zones
//! cache     local     validator        cached messages; local data and special-use names; validation of replies
//! answer    upstream                   responses as bytes; everything between "ask this" and "this came back"
//! needs                                what still needs DNS64: names and networks, counted
//! context                              what every step gets: time, output, counters
//! interface                            Client, Link, Outbox
//! trace                                events, told to `explain` and to observers
//! dns64                                RFC 6147 and RFC 6052: rules, decision, embedding
//! message                              meaning of one message: question, CNAME chain, kind of reply, EDNS options
//! reasons                              what is decided about a query; each reason has its counter
//! limits    counters
//! base                                 slab, timer wheel, hashes, random numbers, tables, time
//! ```
//!
//! Read `machine.rs` first (the inputs), then `resolve/driver.rs` (the way of a query).
#![forbid(unsafe_code)]

pub mod answer;
pub mod base;
pub mod cache;
pub mod cache_control;
mod client;
mod context;
pub mod counters;
pub mod dns64;
mod engine;
pub mod explain;
pub mod interface;
pub mod limits;
pub mod local;
mod machine;
pub mod message;
pub mod needs;
mod observed;
pub mod packet_cache;
mod query;
pub mod reasons;
mod resolve;
pub mod rpz;
pub mod settings;
pub mod trace;
pub mod upstream;
pub mod validator;

#[cfg(test)]
#[path = "../tests/world/statistics.rs"]
mod statistics;

pub use base::time::{Instant, Span};
pub use client::refused::RefusedClients;
pub use counters::{Counter, Counters};
pub use engine::Engine;
pub use interface::{
    Client, ClientNetwork, ClientTransport, IdleTimeout, Link, Outbox, Proxy, SignedData, Transport,
    VerificationId,
};
pub use machine::Machine;
pub use observed::{Moment, ObservedEngine, ObservedLink, Observer};
pub use settings::{Capacity, Settings};
pub use trace::{RuleSource, Unreachable, Untrusted};
