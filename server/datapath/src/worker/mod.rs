//! The workers: one thread each, which moves batches between sockets and a machine (`event_loop.rs`, with `listeners.rs` and
//! `listener.rs` for the listening sockets), its outbox, its mailbox, its pauses (`write_coalescing.rs`), and the handle that other
//! threads hold (`shared.rs`). With the feature `xdp` it also serves frames (`frames.rs`, `frame_queue.rs`, `replies.rs`), and fills the
//! packet cache in the kernel. `group.rs` builds all workers of a server.
//!
//! Nothing here knows DNS: each decision about a message is the machine's. Read `event_loop.rs` first.

pub(crate) mod event_loop;
#[cfg(feature = "xdp")]
mod frame_queue;
#[cfg(feature = "xdp")]
pub(crate) mod frames;
pub(crate) mod group;
mod listener;
mod listeners;
pub(crate) mod mailbox;
pub(crate) mod message_queue;
mod outbox;
#[cfg(feature = "xdp")]
mod replies;
pub(crate) mod shared;
pub(crate) mod signature_threads;
mod write_coalescing;
