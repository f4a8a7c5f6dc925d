//! DNS over QUIC for clients (RFC 9250), on a thread of its own. quinn speaks QUIC, rustls speaks TLS; this module maps streams to queries
//! and answers.
//!
//! - Addresses: a handshake with an unvalidated address takes no place in the admission, because the address may be forged. Once
//!   [`crate::limits::QUIC_UNVALIDATED`] of them are under way, further clients must return a token (Retry). Until an address is
//!   validated, QUIC itself sends it at most three times the octets that came from it (RFC 9000 section 8.1).
//! - Migration is disabled: the limits and rules of a connection are those of the address from which it was opened. A client whose
//!   address changes connects again, with 0-RTT at no cost in time. Idle connections end after `tcp-idle`, which is shorter than the time
//!   for which NATs keep the port of a client.
//! - 0-RTT: a session can be resumed once only, by the process that began it, so 0-RTT data cannot be replayed to this process. Another
//!   process with the same certificate does not know the session and refuses the data. The address of a query in 0-RTT data is not
//!   validated, as that of a query over UDP is not.
//! - Fleets: with the secret of a fleet, sessions are tickets, which every server of the fleet resumes, as often as the client likes. There
//!   is no 0-RTT then, because its data could be replayed to each server of the fleet until the ticket expires. RFC 9250 section 4.5
//!   allows replayable queries in 0-RTT data, but RFC 8446 section 8.1 wants a server to take them once, and rustls enforces that.
//!
//! A stream that waits for its answer has a token of its own (`requests.rs`). `thread.rs` is the main loop of the thread, `accept.rs` admits
//! connections, `connection.rs` is one connection, `stream.rs` answers one stream, `query.rs` reads a query. `socket.rs` stands between
//! quinn and the UDP socket, and `settings.rs` holds the settings of QUIC.

mod accept;
mod connection;
mod error;
pub mod error_code;
pub mod query;
mod settings;
mod socket;
mod stream;
mod thread;

pub use error::Error;
pub(crate) use settings::Settings;
pub(crate) use socket::bind;
pub(crate) use thread::{QuicThread, Sockets};

use rustls::ServerConfig;
use std::fmt;
use std::sync::Arc;

/// The protocol of DNS over QUIC in ALPN (RFC 9250 section 4.1.1).
pub const ALPN: &[u8] = b"doq";

/// The service behind the QUIC sockets: its certificate.
#[derive(Clone)]
pub struct Service {
    pub(crate) tls: Arc<ServerConfig>,
}

impl Service {
    /// A service with the certificate, the cryptography and the tickets of `tls`. The protocol is set here ([`ALPN`]), and without tickets
    /// the sessions, with 0-RTT.
    pub fn new(tls: Arc<ServerConfig>) -> Service {
        Service { tls }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
