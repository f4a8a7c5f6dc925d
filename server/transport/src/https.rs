//! DNS over HTTPS for clients (RFC 8484), over HTTP/1.1 and HTTP/2, on the stream threads. hyper speaks HTTP/1.1, h2 HTTP/2, and rustls TLS;
//! this module maps requests to queries and answers to responses.
//!
//! A connection takes its place in the same admission as connections on TCP, and a PROXY header comes before TLS. Each request
//! that waits for its answer has a token of its own (`requests.rs`). `target.rs` reads the path and the query of GET, `request.rs` finds
//! the query of a request, `response.rs` builds what the client gets, `reply.rs` hands queries over and answers back, `http1.rs` and
//! `http2.rs` serve the requests of a connection, `connection.rs` drives it, `records.rs` begins a TLS record for each response, whose end `frames.rs` finds, and `serve.rs` holds the connections of a
//! thread.

mod connection;
mod frames;
mod http1;
mod http2;
mod records;
mod reply;
mod request;
mod response;
pub(crate) mod serve;
pub mod target;

pub use request::names_one_host;

use rustls::ServerConfig;
use std::fmt;
use std::sync::Arc;

/// The protocols of HTTPS in ALPN (RFC 7301), the preferred one first. A client that offers none speaks HTTP/1.1.
pub const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The service behind the HTTPS listeners: its certificate and its path.
#[derive(Clone)]
pub struct Service {
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) path: Box<str>,
}

impl Service {
    /// A service at this path, which requests must name exactly: `/dns-query`. `tls` should offer [`ALPN`].
    pub fn new(tls: Arc<ServerConfig>, path: &str) -> Service {
        Service { tls, path: path.into() }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("path", &self.path).finish_non_exhaustive()
    }
}
