//! DNS over the laboratory's TCP and T/TCP: messages with a length of two octets before them (RFC 1035 section 4.2.2,
//! RFC 7766 section 8) on a `ttcp::Stack`.
//!
//! [`Client`] asks: one question on a connection of its own, in one call (T/TCP, or TCP without it), by the calls of a
//! socket, or many questions on one connection. [`Server`] collects whole messages, hands them out and sends the answers.
//! Neither does I/O: the caller moves packets and time, and passes the events of the stack on.

mod client;
mod framing;
pub mod limits;
mod server;

pub use client::{AskError, Client, Outcome};
pub use framing::{FrameError, Frames, frame};
pub use server::{Close, Counts, Request, Server};
