//! The octets of a connection: a TCP socket, or a TLS stream over one. Everything above reads and writes octets and does not know which
//! it is.
//!
//! rustls encrypts into a buffer of its own, and keeps what the socket does not take. So more is written only after that buffer has left
//! ([`ByteStream::is_flushed`]): answers wait in the connection's own queue, which has a bound and a timer.

use rustls::ServerConnection;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The octets of a connection. TLS is boxed, so that a connection without it stays small.
pub(crate) enum ByteStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ByteStream {
    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            ByteStream::Tcp(socket) => socket,
            ByteStream::Tls(tls) => tls.get_ref().0,
        }
    }

    /// Reads octets; none means that the client has ended its side. With TLS it may have done so without a closure alert, as many
    /// clients do: messages have lengths of their own, so that a cut-off one is noticed (RFC 7858 section 3.4).
    //= RFC 7858 section 3.4: requirement 75
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            ByteStream::Tcp(socket) => Pin::new(socket).poll_read(context, room),
            ByteStream::Tls(tls) => match Pin::new(&mut **tls).poll_read(context, room) {
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    read_decrypted(tls.get_mut().1, room);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                other => other,
            },
        }
    }

    /// Writes octets. Pending while earlier ones have not left.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            ByteStream::Tcp(socket) => Pin::new(socket).poll_write(context, octets),
            ByteStream::Tls(tls) => {
                std::task::ready!(Pin::new(&mut **tls).poll_flush(context))?;
                Pin::new(&mut **tls).poll_write(context, octets)
            }
        }
    }

    /// Writes what TLS has encrypted.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ByteStream::Tcp(_) => Poll::Ready(Ok(())),
            ByteStream::Tls(tls) => Pin::new(&mut **tls).poll_flush(context),
        }
    }

    /// True if no encrypted octets wait.
    pub(crate) fn is_flushed(&self) -> bool {
        match self {
            ByteStream::Tcp(_) => true,
            ByteStream::Tls(tls) => !tls.get_ref().1.wants_write(),
        }
    }

    /// Sends the closure alert of TLS, if the socket takes it at once.
    //= RFC 7858 section 3.4: requirement 77
    pub(crate) fn close(&mut self, context: &mut Context<'_>) {
        if let ByteStream::Tls(tls) = self {
            // A client that does not read gets none.
            let _ = Pin::new(&mut **tls).poll_shutdown(context);
        }
    }
}

/// Reads the rest of what is decrypted already: each query has often come in a record of its own.
fn read_decrypted(session: &mut ServerConnection, room: &mut ReadBuf<'_>) {
    while room.remaining() > 0 {
        match session.reader().read(room.initialize_unfilled()) {
            Ok(octets) if octets > 0 => room.advance(octets),
            // The next read meets the end, or the error.
            _ => return,
        }
    }
}
