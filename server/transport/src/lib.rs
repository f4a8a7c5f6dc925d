//! Client streams: DNS over TCP for clients (RFC 7766, RFC 9210), and over TLS (RFC 7858), on threads of their own.
//!
//! A stream thread accepts connections, cuts their streams into messages and hands the queries to the server through
//! [`QuerySink`]. The worker that owns the name answers through [`datapath::StreamSink`], which [`Streams`] implements with
//! one bounded queue per thread. Queries are pipelined, and answers leave in the order in which the workers give them (RFC
//! 7766 sections 6.2.1.1 and 7), several in one write.
//!
//! DNS over HTTPS is in [`https`], and DNS over QUIC in [`quic`], on a thread of its own: each of their requests is a connection of its
//! own to the engine (`requests.rs`).
//!
//! This crate reads no DNS beyond the QR bit and the TTLs that HTTP caches need, and does not put answers into an order. It never waits for a worker, and no
//! worker waits for it.
//!
//! Read `stream_thread.rs` first (one thread: accept, deliver, sweep, drain), then `connection.rs` (one client) with
//! `byte_stream.rs` (its socket, with or without TLS), `inbound.rs` and `outbound.rs` (its buffers). `handshake.rs` begins encrypted
//! connections, as often as `handshake_rate.rs` allows. `listen.rs` binds the listening sockets before privileges are dropped,
//! `admission.rs` limits connections and `budget.rs` their buffers, `shared.rs` holds the state that all threads share, and `streams.rs` is the handle to
//! it all. Every bound is in [`limits`].
#![forbid(unsafe_code)]

mod account;
mod admission;
mod budget;
mod byte_stream;
mod close_reason;
mod connection;
pub mod counters;
mod handshake;
mod handshake_rate;
pub mod https;
mod idle_order;
pub mod inbound;
pub mod limits;
mod listen;
pub mod outbound;
mod packet_cache;
pub mod proxy_header;
pub mod quic;
mod requests;
mod server_failure;
mod shared;
mod socket;
mod stream_thread;
mod streams;
mod thread_context;
mod timeout_order;
mod unread;

pub use counters::Counter;
pub use limits::Limits;
pub use listen::{BoundStreams, Error, Options};
pub use packet_cache::PacketCacheRequest;
pub use streams::Streams;

use engine::Client;

/// A sink for the queries of streams: the way to the worker that owns the name. The stream threads call it, so it must not
/// block.
pub trait QuerySink: Send + Sync + 'static {
    /// Hands over a message of at least 12 octets. Returns false if there is no room now. The stream then stops reading, and
    /// offers the message again at most [`limits::RETRIES`] times, every [`limits::RETRY`].
    ///
    /// The worker may sleep until [`QuerySink::wake`].
    fn post(&self, client: &Client, message: &[u8]) -> bool;

    /// Wakes the workers that have messages. The stream threads call it after all connections that were ready have posted their
    /// queries, or after [`limits::QUERIES_PER_WAKE`] queries: a wake-up costs more than a query.
    fn wake(&self) {}

    /// The worker that owns the query name of a message.
    fn home_worker(&self, _message: &[u8]) -> usize {
        0
    }

    /// Gives a worker a request of the packet cache of a stream thread. Returns false if there is no room for it.
    fn submit(&self, _request: PacketCacheRequest) -> bool {
        false
    }
}
