//! A TLS link to an upstream (RFC 7858): a TCP link with a session of TLS on it. The queries of a turn are collected as octets of
//! DNS, become one record at its end, and leave with one write. The session does no I/O of its own, and nothing here blocks.
//!
//! Queries wait until the handshake is over: there is no early data, which an attacker could replay.

use crate::limits::TLS_READ_OCTETS;
use crate::upstream::tcp_link::TcpLink;
use crate::upstream::tls_upstreams::{TlsFailure, TlsFault, TlsUpstream};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use tls::records::{self, Fed};

/// A TLS connection, which may still be in its handshake.
pub(crate) struct TlsLink {
    /// The connection, with the queries that wait for the session.
    pub(crate) tcp: TcpLink,
    session: ClientConnection,
    upstream: SocketAddr,
    name: ServerName<'static>,
    /// The end of the handshake was counted.
    is_established: bool,
    /// The upstream has ended the session.
    pub(crate) is_over: bool,
}

/// Result of reading a TLS link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TlsRead {
    /// Octets of DNS; 0 if only the session had to be told something.
    Octets(usize),
    /// No data is there now.
    Nothing,
    /// The connection is over. The failure of a handshake has a reason.
    Failed(Option<TlsFailure>),
}

impl TlsLink {
    /// Starts a session on a connection that has begun to connect.
    ///
    /// # Errors
    ///
    /// The settings of TLS and the name of the upstream allow no session.
    pub(crate) fn open(tcp: TcpLink, upstream: SocketAddr, to: TlsUpstream) -> io::Result<TlsLink> {
        let session = ClientConnection::new(to.config, to.name.clone()).map_err(io::Error::other)?;
        Ok(TlsLink { tcp, session, upstream, name: to.name, is_established: false, is_over: false })
    }

    /// Address of the upstream.
    pub(crate) fn upstream(&self) -> SocketAddr {
        self.upstream
    }

    /// True once, after the handshake: whether an earlier session was resumed.
    pub(crate) fn take_established(&mut self) -> Option<bool> {
        if self.is_established || self.session.is_handshaking() {
            return None;
        }
        self.is_established = true;
        Some(self.session.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Encrypts and writes what waits. Returns true if the poll need not report when the connection is writable.
    ///
    /// # Errors
    ///
    /// As [`TcpLink::send`], but a connection that takes nothing now is no error; or the error of the session, which a fatal alert has
    /// ended.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        loop {
            if !self.session.is_handshaking() {
                let taken = self.session.writer().write(self.tcp.pending())?;
                self.tcp.advance(taken);
            }
            if !self.session.wants_write() {
                return Ok(true);
            }
            match self.session.write_tls(&mut Socket(&self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads once from the connection into `wire`, and decrypts into `chunk`, which is larger: the session may hold a part of a
    /// record from before.
    pub(crate) fn read(&mut self, wire: &mut [u8], chunk: &mut [u8]) -> TlsRead {
        debug_assert!(wire.len() <= TLS_READ_OCTETS && chunk.len() >= TLS_READ_OCTETS + (18 << 10));
        let octets = match self.tcp.read(wire) {
            Ok(Some(count)) => &wire[..count],
            Ok(None) => return TlsRead::Nothing,
            Err(error) => return TlsRead::Failed(self.failure(TlsFault::Closed, error.to_string())),
        };
        match records::decrypt(&mut self.session, octets, chunk) {
            Ok((filled, fed)) => {
                self.is_over |= fed == Fed::Over;
                if self.is_over && filled == 0 { TlsRead::Failed(None) } else { TlsRead::Octets(filled) }
            }
            Err(error) => {
                let failure = self.failure(TlsFault::of(&error), TlsFault::describe(&error));
                // The alert tells the upstream's operator of the reason.
                let _ = self.session.write_tls(&mut Socket(&self.tcp));
                TlsRead::Failed(failure)
            }
        }
    }

    /// The failure of the handshake; none if it was over.
    pub(crate) fn failure(&self, fault: TlsFault, text: String) -> Option<TlsFailure> {
        let name = self.name.to_str().into_owned();
        let failure = TlsFailure { address: self.upstream, name, fault, text };
        self.session.is_handshaking().then_some(failure)
    }

    /// Tells the upstream that the session is over, if there is room for that now.
    pub(crate) fn say_goodbye(&mut self) {
        if !self.session.is_handshaking() {
            self.session.send_close_notify();
            let _ = self.session.write_tls(&mut Socket(&self.tcp));
        }
    }
}

/// The sending side of a connection, for the session.
struct Socket<'l>(&'l TcpLink);

impl Write for Socket<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.send(&[IoSlice::new(octets)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
