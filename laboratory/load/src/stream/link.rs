//! One connection of a load with its queries.

use crate::sockets::Connection;
use crate::stream::tls::TlsSession;
use datapath::framing::{Decoder, Encoder};
use std::io;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The handshake is not over.
    Opening,
    /// Queries and replies flow.
    Open,
    /// The tester has closed its direction.
    Closing,
}

/// A connection of a load.
pub struct Link {
    /// The connection.
    pub connection: Connection,
    /// State of it.
    pub phase: Phase,
    /// Its line among the lane's ones.
    pub line: usize,
    /// Its first query.
    pub first: u64,
    /// Time of its SYN. This and the other times are in nanoseconds since the origin of the plan.
    pub opened: u64,
    /// End of the handshake of TCP.
    pub connected: Option<u64>,
    /// State of TLS, once the handshake of TCP is over.
    pub tls: Option<Box<TlsSession>>,
    /// Time at which its first query was handed to the kernel; `None` before.
    pub handed: Option<u64>,
    /// Octets of data in the SYN, with Fast Open.
    pub in_syn: usize,
    /// Octets of data that were read.
    pub received: u64,
    /// True if it is in the list of connections to write to.
    pub is_dirty: bool,
    /// Queries that wait to be written.
    pub encoder: Encoder,
    /// A reply that has come in part.
    pub decoder: Decoder,
}

impl Link {
    /// Queues a query. Returns false if there is no room.
    pub fn push(&mut self, query: &[u8]) -> bool {
        push(&mut self.encoder, query)
    }

    /// Writes what waits, as far as the kernel has room. `now`: nanoseconds since the origin of the plan.
    ///
    /// # Errors
    ///
    /// The error of send(2), for example `ConnectionReset`, or that of the TLS session. A connection that has no room is no error.
    pub fn flush(&mut self, now: u64) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            if tls.flush(&self.connection, &mut self.encoder)? {
                self.handed.get_or_insert(now);
            }
            return Ok(());
        }
        while !self.encoder.pending().is_empty() {
            match self.connection.write(self.encoder.pending()) {
                Ok(written) => {
                    self.encoder.advance(written);
                    self.handed.get_or_insert(now);
                }
                // The next event says that there is room.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes the direction to the server.
    pub fn end_sending(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.end_sending(&self.connection);
        }
        self.connection.end_sending();
        self.phase = Phase::Closing;
    }
}

/// Queues a query with its length. Returns false if there is no room.
pub fn push(encoder: &mut Encoder, query: &[u8]) -> bool {
    encoder.add(query)
}
