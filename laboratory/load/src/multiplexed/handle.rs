//! The way to ask on an open connection, of either protocol, and a query for it.

use h2::client::SendRequest;
use quinn::{Connection, VarInt};
use std::io::Cursor;
use std::time::Duration;

/// DOQ_NO_ERROR (RFC 9250 section 4.3).
const NO_ERROR: VarInt = VarInt::from_u32(0);

/// Body of a request over HTTPS.
pub type Body = Cursor<Vec<u8>>;

/// A connection that takes queries.
pub enum Handle {
    /// HTTP/2. The connection closes when the last handle and the last stream are gone.
    Https(SendRequest<Body>),
    /// QUIC.
    Quic(Connection),
}

impl Handle {
    /// Closes the connection, over HTTPS once its open streams have ended.
    pub fn close(self) {
        match self {
            Handle::Https(requests) => drop(requests),
            Handle::Quic(connection) => connection.close(NO_ERROR, b""),
        }
    }

    /// Closes the connection a little later. The tickets for the next connections come one round-trip time after the end of the
    /// handshake.
    pub fn close_later(self) {
        let wait = match &self {
            Handle::Https(_) => Duration::ZERO,
            Handle::Quic(connection) => connection.rtt() * 2,
        };
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            self.close();
        });
    }

    /// Streams that the server allows at a time; `None` if only a query that waits shows it.
    pub fn allowed_streams(&self) -> Option<usize> {
        match self {
            Handle::Https(requests) => Some(requests.current_max_send_streams()),
            Handle::Quic(_) => None,
        }
    }
}

/// A query for a connection.
pub struct Query {
    /// Token of the connection.
    pub token: u64,
    /// Number of the query.
    pub k: u64,
    /// The message.
    pub octets: Vec<u8>,
}
