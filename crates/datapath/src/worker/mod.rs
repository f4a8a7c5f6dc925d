//! The workers: one thread each, which moves batches between sockets and a machine (`event_loop.rs`), its outbox, its
//! mailbox, and the handle that other threads hold (`shared.rs`). With the feature `xdp` it also serves frames (`frames.rs`). `group.rs` builds all workers of a server.
//!
//! Nothing here knows DNS: each decision about a message is the machine's. Read `event_loop.rs` first.

pub(crate) mod event_loop;
#[cfg(feature = "xdp")]
pub(crate) mod frames;
pub(crate) mod group;
pub(crate) mod mailbox;
mod outbox;
#[cfg(feature = "xdp")]
mod publisher;
pub(crate) mod shared;
