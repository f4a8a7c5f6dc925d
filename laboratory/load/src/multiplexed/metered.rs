//! TCP connection that reports the kernel's counters when it ends.

use crate::multiplexed::event::{Event, Reporter};
use crate::sockets::ConnectionInfo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection of a load. It is closed when it is dropped.
pub struct MeteredStream {
    stream: TcpStream,
    reporter: Reporter,
    received: u64,
    has_ended: bool,
}

impl MeteredStream {
    /// A connection whose counters go to `reporter`.
    pub fn new(stream: TcpStream, reporter: Reporter) -> MeteredStream {
        MeteredStream { stream, reporter, received: 0, has_ended: false }
    }
}

impl Drop for MeteredStream {
    fn drop(&mut self) {
        if let Some(info) = ConnectionInfo::of_socket(&self.stream) {
            self.reporter.report(Event::Segments(info, self.received));
        }
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.received += (buffer.filled().len() - before) as u64;
        read
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, octets)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Closes the direction to the server, then waits for the end of the other one, so that its last packets are counted.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.has_ended {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.has_ended = true;
        }
        let mut rest = [0; 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut rest);
            match ready!(Pin::new(&mut *self).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // A reset ends the connection, too.
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}
