//! Moves batches of datagrams between sockets and a [`engine::Machine`]: one thread per worker, one wait, one clock
//! read, one receive and one send per batch. Nothing per packet allocates, locks, formats, logs or reads the clock.
//!
//! [`build`] binds all sockets; each [`Worker`] is then started with a machine of its own, and [`Shared`] is what other
//! threads use. Every bound is in [`limits`]. The way of a packet: [`listener`], `batch`, `worker`, the machine,
//! `upstream`, `outgoing`, and back: `batch`, `worker`, the machine, `answers`, `outgoing`.
//!
//! All unsafe code of the project is in this crate, each block with the argument for its safety.

pub mod counters;
pub mod laboratory;
pub mod limits;
mod listen;
pub mod privileges;
mod socket;
mod upstream;
mod worker;

pub use counters::{Counter, Snapshot};
pub use laboratory::{Reflector, ReflectorOptions, Responder};
pub use limits::TICK;
pub use listen::listener::{BindError, UdpListener};
pub use listen::steering::{Seed, Steer, owner};
pub use listen::{proxy_protocol, steering};
pub use socket::syscalls::{fast_open, now, pin};
pub use upstream::framing;
pub use worker::event_loop::{Hook, Worker};
pub use worker::group::{BuildError, Built, Options, build};
pub use worker::mailbox::{Mailbox, MailboxFull, NoStreams, QueuedMessage, StreamSink, Task};
pub use worker::shared::Shared;
