//! A TCP link to an upstream: questions are collected and leave with one write per turn, many in one segment; replies are
//! cut out of the stream as they come (RFC 7766 section 6.2.1, pipelining). Nothing here waits.

use crate::socket::syscalls::{set_option, take_error};
use crate::upstream::framing::{Decoder, Encoder};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};

/// A TCP connection, perhaps still under way.
pub(crate) struct TcpLink {
    socket: Socket,
    decoder: Decoder,
    encoder: Encoder,
    /// Whether the poll reports when the connection can be written to.
    pub(crate) awaits_writable: bool,
}

impl TcpLink {
    /// Begins to connect. The encoder may be one that another link has left.
    pub(crate) fn open(upstream: SocketAddr, mut encoder: Encoder, fast_open: bool) -> io::Result<TcpLink> {
        encoder.clear();
        let socket =
            Socket::new(Domain::for_address(upstream), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if fast_open {
            // RFC 7413: the first questions travel with the SYN when the upstream has given a cookie. Without support
            // for it the connection is an ordinary one.
            let _ = set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
        }
        match socket.connect(&SockAddr::from(upstream)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(TcpLink { socket, decoder: Decoder::new(), encoder, awaits_writable: true }),
        }
    }

    /// The address of this host that it goes out from.
    pub(crate) fn local(&self) -> Option<IpAddr> {
        self.socket.local_addr().ok()?.as_socket().map(|address| address.ip())
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Queues a question; false when the buffer is full.
    #[inline]
    pub(crate) fn push(&mut self, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        self.encoder.push(size, fill)
    }

    /// Octets that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.encoder.pending().len()
    }

    /// Writes what waits, with one call. True: all of it left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if self.encoder.pending().is_empty() {
            return Ok(true);
        }
        // `send_with_flags`: a connection that is gone must not raise SIGPIPE.
        match self.socket.send_with_flags(self.encoder.pending(), libc::MSG_NOSIGNAL) {
            Ok(written) => {
                self.encoder.advance(written);
                Ok(self.encoder.pending().is_empty())
            }
            Err(error) if is_transient(&error) => match take_error(self.descriptor()) {
                None => Ok(false),
                Some(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Reads up to a chunk; `None`: nothing is there now. The end of the stream is an error.
    pub(crate) fn read(&self, chunk: &mut [u8]) -> io::Result<Option<usize>> {
        match io::Read::read(&mut &self.socket, chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The state of the decoder, which whoever decodes has to bring back.
    pub(crate) fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// The encoder, for another link.
    pub(crate) fn into_encoder(self) -> Encoder {
        self.encoder
    }
}

/// Errors that mean "later": the connection is being made (EINPROGRESS also for a fast open whose cookie did not do), its
/// buffer is full, or a signal came.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINPROGRESS | libc::EALREADY | libc::EINTR))
}
