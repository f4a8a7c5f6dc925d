//! dnstap (<https://dnstap.info>): DNS messages, encoded as protobuf, written to a reader over Frame Streams.
//!
//! ```text
//! worker:  Tap::record -> message -> buffer -+   bounded: a full queue drops messages and counts them
//! worker:  Tap::record -> message -> buffer -+-> queues -> thread "dnstap" -> socket -> reader
//! ```
//!
//! A worker encodes a message into its own buffer, which is a piece of the stream, and makes no system call. Buffers go back and forth
//! between worker and thread, so a warm worker allocates nothing. Only the thread connects, writes and waits: a reader that hangs
//! slows nobody. This crate knows no DNS: a message is a string of octets.
//!
//! Read `output.rs` first, then `buffer.rs` and `message.rs`.
#![forbid(unsafe_code)]

mod buffer;
mod control;
mod message;
mod output;
mod socket;

pub use buffer::Tap;
pub use message::{Exchange, Kind, Origin, Protocol};
pub use output::{Counts, Output, Report};
pub use socket::Destination;
