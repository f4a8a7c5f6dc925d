//! A TCP link to an upstream. Queries are collected and leave with one write per turn, many in one segment. Replies are cut
//! out of the stream as they come (pipelining, RFC 7766 section 6.2.1). Nothing here blocks.

use crate::socket::syscalls::{set_option, take_error};
use crate::upstream::framing::{Decoder, Encoder};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

/// A TCP connection, which may still be in its handshake.
pub(crate) struct TcpLink {
    socket: Socket,
    decoder: Decoder,
    encoder: Encoder,
    /// True while the poll reports when the connection becomes writable.
    pub(crate) awaits_writable: bool,
}

impl TcpLink {
    /// Starts to connect. The encoder may come from a closed link.
    pub(crate) fn open(upstream: SocketAddr, mut encoder: Encoder, fast_open: bool) -> io::Result<TcpLink> {
        encoder.clear();
        let socket =
            Socket::new(Domain::for_address(upstream), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if fast_open {
            // RFC 7413: the first queries travel with the SYN if the upstream has given a Fast Open cookie. Without support for
            // it the connection is an ordinary one.
            let _ = set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
        }
        match socket.connect(&SockAddr::from(upstream)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(TcpLink { socket, decoder: Decoder::new(), encoder, awaits_writable: true }),
        }
    }

    /// The local address and port of the connection.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Queues a query. Returns false if the buffer is full.
    #[inline]
    pub(crate) fn push(&mut self, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        self.encoder.push(size, fill)
    }

    /// Octets that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.encoder.pending().len()
    }

    /// Writes the waiting octets with one call. Returns true if all of them left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if self.encoder.pending().is_empty() {
            return Ok(true);
        }
        match self.send(&[IoSlice::new(self.encoder.pending())]) {
            Ok(written) => {
                self.encoder.advance(written);
                Ok(self.encoder.pending().is_empty())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends octets with one call. [`io::ErrorKind::WouldBlock`]: the connection takes none now.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        // With flags, because a closed connection must not raise SIGPIPE.
        match self.socket.send_vectored_with_flags(parts, libc::MSG_NOSIGNAL) {
            Err(error) if is_transient(&error) => match take_error(self.descriptor()) {
                None => Err(io::ErrorKind::WouldBlock.into()),
                Some(error) => Err(error),
            },
            result => result,
        }
    }

    /// The octets of queries that wait.
    pub(crate) fn pending(&self) -> &[u8] {
        self.encoder.pending()
    }

    /// The first `octets` of [`TcpLink::pending`] were taken.
    pub(crate) fn advance(&mut self, octets: usize) {
        self.encoder.advance(octets);
    }

    /// Reads as much as fits into `chunk`. Returns `None` if no data is there now. The end of the stream is an error.
    pub(crate) fn read(&self, chunk: &mut [u8]) -> io::Result<Option<usize>> {
        match io::Read::read(&mut &self.socket, chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The decoder. A caller that takes it must put it back.
    pub(crate) fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// The encoder, for use by another link.
    pub(crate) fn into_encoder(self) -> Encoder {
        self.encoder
    }
}

/// True for errors that mean "try later": the connection is in its handshake (EINPROGRESS also for a Fast Open whose cookie was
/// rejected), its buffer is full, or a signal came.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINPROGRESS | libc::EALREADY | libc::EINTR))
}
