//! The workers: one thread each, which moves batches between sockets and a machine (`event_loop.rs`, with `listeners.rs` and
//! `listener.rs` for the listening sockets), its outbox, its mailbox, its pauses (`write_coalescing.rs`), and the handle that other
//! threads hold (`shared.rs`). With the feature `xdp` it also serves frames (`frames.rs`, `frame_queue.rs`, `replies.rs`) and keeps the
//! packet cache in the kernel (`kernel_cache_filler.rs`). `group.rs` builds all workers of a server.
//!
//! Nothing here knows DNS: each decision about a message is the machine's. Read `event_loop.rs` first.

pub(crate) mod event_loop;
#[cfg(feature = "xdp")]
mod frame_queue;
#[cfg(feature = "xdp")]
pub(crate) mod frames;
pub(crate) mod group;
#[cfg(feature = "xdp")]
mod kernel_cache_filler;
mod listener;
mod listeners;
pub(crate) mod mailbox;
pub(crate) mod message_queue;
mod outbox;
pub(crate) mod packet_cache_candidates;
pub(crate) mod packet_cache_task;
#[cfg(feature = "xdp")]
mod replies;
pub(crate) mod shared;
mod write_coalescing;
