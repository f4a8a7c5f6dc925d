//! TLS of one connection: records between the kernel's socket and the framed messages (RFC 7858 section 3.3). rustls keeps the
//! state and does no I/O of its own.

use crate::sockets::Connection;
use datapath::framing::Encoder;
use rustls::{ClientConnection, HandshakeKind};
use std::io::{self, IoSlice, Read, Write};

/// TLS state of a connection.
pub struct TlsSession {
    connection: ClientConnection,
    /// Octets of the waiting queries that left as early data. They stay in the encoder until the server has decided.
    early: usize,
}

/// Result of a handshake.
pub struct Handshake {
    /// True if it resumed a session.
    pub is_resumed: bool,
    /// True if a query left as early data, and true if the server accepted it.
    pub early_data: (bool, bool),
}

impl TlsSession {
    /// Begins a handshake. The waiting queries leave as early data if the session allows it.
    ///
    /// # Errors
    ///
    /// rustls does not take the early data. It has said how many octets it takes, so this does not happen.
    pub fn begin(mut connection: ClientConnection, encoder: &Encoder) -> io::Result<TlsSession> {
        let mut early = 0;
        if let Some(mut data) = connection.early_data() {
            let waiting = encoder.pending();
            // Part of a query would only wait for its rest.
            if waiting.len() <= data.bytes_left() {
                data.write_all(waiting)?;
                early = waiting.len();
            }
        }
        Ok(TlsSession { connection, early })
    }

    /// True if the first query is under way as early data.
    pub fn has_early_data(&self) -> bool {
        self.early > 0
    }

    /// True until the handshake is over.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Ends the handshake: early data that was accepted is no longer waiting.
    pub fn end_handshake(&mut self, encoder: &mut Encoder) -> Handshake {
        let (has_early, is_accepted) = (self.early > 0, self.connection.is_early_data_accepted());
        if has_early && is_accepted {
            encoder.advance(self.early);
        }
        self.early = 0;
        let is_resumed = self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
        Handshake { is_resumed, early_data: (has_early, has_early && is_accepted) }
    }

    /// Encrypts what waits once the handshake is over, and writes as far as the kernel has room. Returns true if queries were
    /// taken.
    ///
    /// # Errors
    ///
    /// The error of send(2), for example `ConnectionReset`. A connection that has no room is no error.
    pub fn flush(&mut self, connection: &Connection, encoder: &mut Encoder) -> io::Result<bool> {
        let mut has_taken = false;
        loop {
            if !self.is_handshaking() && !encoder.pending().is_empty() {
                // rustls takes as much as its buffer has room for.
                let taken = self.connection.writer().write(encoder.pending())?;
                encoder.advance(taken);
                has_taken |= taken > 0;
            }
            if !self.connection.wants_write() {
                return Ok(has_taken);
            }
            match self.connection.write_tls(&mut Socket(connection)) {
                Ok(_) => {}
                // The next event says that there is room.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes octets of records from the front of `records`, as much as rustls takes at once, and checks them. Each call makes `records`
    /// shorter: octets behind the end of the session, which nothing vouches for, are left out.
    ///
    /// # Errors
    ///
    /// An error of TLS has the kind `InvalidData` and a [`rustls::Error`] inside: a record cannot be decrypted, the certificate is
    /// refused, or the server has sent an alert.
    pub fn take(&mut self, records: &mut &[u8]) -> io::Result<()> {
        let fed = tls::records::feed(&mut self.connection, records);
        fed.map(drop).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Reads decrypted octets; 0 means that there are none for now.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof`: the server has closed the connection without a close_notify alert.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.connection.reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            octets => octets,
        }
    }

    /// Tells the server that nothing more comes (RFC 8446 section 6.1), or the alert of an error, as far as the kernel has room.
    pub fn end_sending(&mut self, connection: &Connection) {
        self.connection.send_close_notify();
        self.send_alert(connection);
    }

    /// Sends the alert of an error. The connection ends in any case, so a failure changes nothing.
    pub fn send_alert(&mut self, connection: &Connection) {
        while self.connection.wants_write() && self.connection.write_tls(&mut Socket(connection)).is_ok() {}
    }
}

/// A connection as a writer.
struct Socket<'a>(&'a Connection);

impl Write for Socket<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.write(octets)
    }

    /// Writes the records together. The end of the handshake and the first query leave in one packet then; each write has a packet
    /// of its own (TCP_NODELAY).
    fn write_vectored(&mut self, records: &[IoSlice<'_>]) -> io::Result<usize> {
        match records {
            [record] => self.0.write(record),
            _ => {
                let together: Vec<u8> = records.iter().flat_map(|record| record.iter().copied()).collect();
                self.0.write(&together)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
