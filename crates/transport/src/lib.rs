//! Client streams: DNS over TCP for clients (RFC 7766, RFC 9210), on threads of their own.
//!
//! A stream thread accepts connections, cuts them into messages and hands the questions to the server through
//! [`QuerySink`]; the worker that owns the name answers through [`datapath::StreamSink`], which [`Streams`]
//! implements with a bounded ring per thread. Questions are pipelined and answers leave in the order in which they
//! come (RFC 7766 sections 6.2.1.1 and 7), several in one write.
//!
//! The way through the files: [`BoundStreams`] (listening sockets, before privileges are dropped), `desk` (one
//! thread: accept, deliver, sweep, drain), `connection` (one client), with `inbound` and `outbound` (what it has
//! buffered) and `admission` (who may connect). Every bound is in [`limits`].
//!
//! What this crate does not do: it reads no DNS beyond the QR bit, keeps no order among answers, and never waits for
//! a worker nor lets one wait.
#![forbid(unsafe_code)]

mod admission;
mod connection;
pub mod counters;
pub mod inbound;
pub mod limits;
mod listen;
mod outbound;
mod shared;
mod stream_thread;
mod streams;
mod thread_context;

pub use counters::Counter;
pub use limits::Limits;
pub use listen::{BoundStreams, Error, Options};
pub use streams::Streams;

use engine::Client;

/// What streams need of the server: a way to the worker that owns the name. Called from the stream threads; must not
/// wait.
pub trait QuerySink: Send + Sync + 'static {
    /// Hands over a message of at least 12 octets. False: there is no room now. The stream then stops reading and
    /// offers the message again, a few times over about [`limits::RETRIES`] x [`limits::RETRY`].
    fn post(&self, client: &Client, message: &[u8]) -> bool;
}
