//! The TLS records of an HTTPS connection: one for each HTTP/2 response that is due. All of them leave in one write.
//!
//! HTTP/2 hands over many responses at once, and rustls would make one record of them. Clients that take one response out of each record
//! lose the others, and an observer learns nothing more from several records than from several writes. dnsperf is such a client, up to
//! 2.14.0 at least: at a second response its `net_doh.c` pauses nghttp2, which does not give it that data again.

use crate::https::frames::FrameBoundaries;
use crate::limits;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Octets that encryption adds to a record, at most: a header of 5, in TLS 1.3 one for the type and a tag of 16 (RFC 8446 section 5.2), in
/// TLS 1.2 a nonce of 8 and a tag of 16 (RFC 5288 section 3).
const RECORD_OVERHEAD: usize = 29;

/// A TLS stream that begins a new record after each response.
pub(crate) struct ResponseRecords {
    tls: TlsStream<TcpStream>,
    /// The place within the frames of HTTP/2. None for HTTP/1.1, whose responses are written one by one.
    frames: Option<FrameBoundaries>,
    /// The octets of the record that is not complete.
    record: Vec<u8>,
    /// Octets of the records since the stream was last flushed: at least as many as wait in the TLS session.
    encrypted: usize,
}

impl ResponseRecords {
    pub(crate) fn new(tls: TlsStream<TcpStream>, is_http2: bool) -> ResponseRecords {
        let frames = is_http2.then(FrameBoundaries::default);
        ResponseRecords { tls, frames, record: Vec::new(), encrypted: 0 }
    }

    /// Encrypts the octets of the record. The TLS session has room for them: see [`limits::HTTPS_ENCRYPTED_OCTETS`].
    fn end_record(&mut self) -> io::Result<()> {
        if !self.record.is_empty() {
            self.encrypted += RECORD_OVERHEAD + self.record.len();
            self.tls.get_mut().1.writer().write_all(&self.record)?;
            self.record.clear();
        }
        Ok(())
    }

    /// Writes the complete records to the socket.
    fn poll_flush_records(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tls).poll_flush(context))?;
        self.encrypted = 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for ResponseRecords {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_read(context, room)
    }
}

impl AsyncWrite for ResponseRecords {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.frames.is_none() {
            return Pin::new(&mut self.tls).poll_write(context, octets);
        }
        if self.record.len() >= limits::HTTPS_ENCRYPTED_OCTETS {
            self.end_record()?;
        }
        if self.encrypted >= limits::HTTPS_ENCRYPTED_OCTETS {
            ready!(self.poll_flush_records(context))?;
        }
        let mut rest = &octets[..octets.len().min(limits::HTTPS_ENCRYPTED_OCTETS)];
        let taken = rest.len();
        while !rest.is_empty() {
            let Some(frames) = &mut self.frames else { break };
            let (part, ends_response) = frames.next(&mut rest);
            self.record.extend_from_slice(part);
            if ends_response {
                self.end_record()?;
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end_record()?;
        ready!(self.poll_flush_records(context))?;
        if self.record.capacity() > limits::SMALL_OCTETS {
            self.record = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}
