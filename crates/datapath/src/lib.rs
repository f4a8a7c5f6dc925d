//! Moves batches of datagrams between sockets and a [`engine::Machine`]: one thread per worker, one wait, one clock
//! read, one receive and one send per batch. Nothing per packet allocates, locks, formats, logs or reads the clock.
//!
//! [`build`] binds all sockets; each [`Worker`] is then started with a machine of its own, and [`Shared`] is what other
//! threads use. Every bound is in [`limits`]. The way of a packet: [`listener`], `batch`, `worker`, the machine,
//! `upstream`, `outgoing`, and back: `batch`, `worker`, the machine, `answers`, `outgoing`.
//!
//! All unsafe code of the project is in this crate, each block with the argument for its safety.

mod address;
mod answers;
mod batch;
pub mod counters;
mod filter;
pub mod framing;
mod gate;
mod group;
pub mod identity;
mod kernel;
pub mod limits;
pub mod listener;
pub mod mailbox;
mod outgoing;
pub mod proxy;
mod reflector;
pub mod responder;
pub mod steering;
mod tcp_link;
pub mod tester;
pub mod tester_inlet;
pub mod tester_thread;
mod truncation;
mod udp_link;
mod upstream;
mod worker;

pub use counters::{Counter, Snapshot};
pub use group::{BuildError, Built, Options, Shared, build};
pub use kernel::{fast_open, now, pin};
pub use limits::TICK;
pub use listener::{BindError, UdpListener};
pub use mailbox::{Full, Letter, Mailbox, NoStreams, Order, StreamSink};
pub use reflector::{Reflection, Reflector};
pub use responder::Responder;
pub use steering::{Seed, Steer, owner};
pub use worker::{Hook, Worker};
