//! The datapath: batches of datagrams between sockets and an [`engine::Machine`]. There is one thread per worker. A batch
//! costs one wait, one clock read, one receive and one send. Nothing per packet allocates, locks, formats, logs or reads
//! the clock.
//!
//! This crate knows no DNS beyond the query name that steers a query to its worker, the length prefix of a message on TCP
//! and the header of a truncated reply.
//!
//! [`build`] binds all sockets. The caller then starts each [`Worker`] with a machine of its own. Other threads use
//! [`Shared`]. Every bound is in [`limits`]. The folders, each of which uses only the ones before it:
//!
//! | folder | contents |
//! | --- | --- |
//! | `socket` | socket addresses, batches that are received and sent, system calls of workers |
//! | `listen` | listening sockets, steering, response batches, the PROXY protocol |
//! | `overload` | who is kept out of the queue of a listening socket, and how much |
//! | `upstream` | links to upstreams over UDP, TCP and TLS |
//! | `worker` | the event loop, the mailbox, the handle for other threads; with the feature `xdp` the queries and answers in frames of the crate `xdp` |
//!
//! The way of a packet: `socket/receive_batch`, `worker/event_loop`, the machine, `worker/outbox`, `upstream/links`,
//! `socket/send_batch`; and back: `socket/receive_batch`, `worker/event_loop`, the machine, `worker/outbox`,
//! `listen/response_batch`, `socket/send_batch`. Read `worker/event_loop.rs` first.
//!
//! [`Reflector`] is a machine without DNS, for tests of this crate and for benchmarks. [`ReceiveBatch`] and [`ResponseBatch`] also serve an
//! authority, which has no machine. Unsafe code is only in the modules that allow it; each block has the
//! argument for its safety.
#![deny(unsafe_code)]

pub mod counters;
pub mod limits;
mod listen;
mod overload;
#[allow(unsafe_code)]
pub mod privileges;
mod reflector;
mod socket;
mod upstream;
mod worker;

pub use counters::{Counter, Snapshot};
pub use kernel::{interfaces, remedy, router_options};
pub use limits::TICK;
pub use listen::activation::take_listen_fds;
pub use listen::listener::{BindError, LATE_ADDRESS, UdpListener, set_freebind};
pub use listen::response_batch::ResponseBatch;
pub use listen::steering::{Seed, Steer, home_worker};
pub use listen::{proxy_protocol, steering};
pub use reflector::{Reflector, ReflectorOptions};
pub use socket::receive_batch::ReceiveBatch;
pub use socket::send_batch::kernel_supports_gso;
pub use socket::syscalls::{ThreadClock, fast_open, now, pin, run_when_idle};
pub use upstream::framing;
pub use upstream::links::failure_reason;
pub use upstream::sources;
pub use upstream::tls_upstreams;
pub use worker::event_loop::{Hook, Worker};
pub use worker::group::{BuildError, Built, Given, Options, build, build_with};
pub use worker::mailbox::{Mailbox, MailboxFull, NoStreams, StreamSink, Task, TaskPlace};
pub use worker::message_queue::{MessageQueue, QueuedMessage};
pub use worker::shared::Shared;
pub use worker::signature_threads::VerifySignature;
#[cfg(feature = "xdp")]
pub use {
    worker::frames::attach,
    xdp::{AttachError, Attached, Mode},
};
