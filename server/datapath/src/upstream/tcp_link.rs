//! A TCP link to an upstream. Queries are collected and leave with one write per turn, or after a pause under load, many in one
//! segment. Replies are cut out of the stream as they come (pipelining, RFC 7766 section 6.2.1). Nothing here blocks.

use crate::limits::{BUSY_QUERIES, LONG_PAUSE, MANY_QUERIES, WRITE_AT_ONCE, WRITE_PAUSE, WRITES_IN_A_ROW};
use crate::upstream::framing::{Decoder, Encoder};
use crate::upstream::sources::SourceTable;
use engine::{Instant, Span};
use kernel::syscalls::set_option;
use socket2::Socket;
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
    /// Queries without a reply.
    unanswered: u32,
    /// Those of them that were not written yet.
    unwritten: u32,
    /// Octets came, queries wait for replies, and nothing was written since. An upstream that does not set TCP_NODELAY keeps its
    /// next replies back until what it has sent is acknowledged (RFC 1122 section 4.2.3.4), and the kernel delays that by 40 ms.
    owes_acknowledgment: bool,
    /// Time up to which the writes so far have used up the connection's share of writes, at one in [`WRITE_PAUSE`].
    writes_paid: Instant,
}

/// Next step of a connection at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamAction {
    /// There is nothing to send, or the poll will report when there is room for it.
    Nothing,
    /// The queries that wait are written.
    Write,
    /// No query waits, but what came is acknowledged.
    Acknowledge,
    /// There were many writes just now: more queries may join.
    Pause,
}

impl TcpLink {
    /// Starts to connect from one of the sources. The encoder may come from a closed link.
    ///
    /// # Errors
    ///
    /// As [`SourceTable::tcp`]. `AddrNotAvailable`: no source address or no port can be used. A connection that fails later is reported
    /// by the first send or read.
    pub(crate) fn open(
        upstream: SocketAddr,
        mut encoder: Encoder,
        fast_open: bool,
        sources: &SourceTable,
    ) -> io::Result<TcpLink> {
        encoder.clear();
        let socket = sources.tcp(upstream, |socket| {
            if fast_open {
                // RFC 7413: the first queries travel with the SYN if the upstream has given a Fast Open cookie. Without support for
                // it the connection is an ordinary one.
                let _ = set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
            }
            socket.set_tcp_nodelay(true)
        })?;
        Ok(TcpLink {
            socket,
            decoder: Decoder::new(),
            encoder,
            awaits_writable: true,
            unanswered: 0,
            unwritten: 0,
            owes_acknowledgment: false,
            writes_paid: Instant(0),
        })
    }

    /// The local address and port of the connection.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns a frame for a query of at most `size` octets; none if the buffer is full.
    #[inline]
    pub(crate) fn frame(&mut self, size: usize) -> Option<&mut [u8]> {
        self.encoder.frame(size)
    }

    /// Queues the query in the first `length` octets of the frame.
    #[inline]
    pub(crate) fn push(&mut self, length: usize) {
        self.encoder.push(length);
        self.unanswered = self.unanswered.saturating_add(1);
        self.unwritten = self.unwritten.saturating_add(1);
    }

    /// Records a read with so many replies. Returns true if the connection owes an acknowledgment.
    pub(crate) fn note_replies(&mut self, count: u32) -> bool {
        self.unanswered = self.unanswered.saturating_sub(count);
        self.owes_acknowledgment = self.unanswered > 0;
        self.owes_acknowledgment
    }

    /// Records a write, which acknowledges what came.
    pub(crate) fn note_write(&mut self, now: Instant) {
        self.owes_acknowledgment = false;
        let queries = std::mem::take(&mut self.unwritten);
        let was_busy = self.pause_end() + LONG_PAUSE > now;
        self.writes_paid = self.writes_paid.max(now) + WRITE_PAUSE;
        if was_busy && queries >= BUSY_QUERIES {
            // Where several queries leave together, the next ones are to do so, too.
            let pause = if queries >= MANY_QUERIES { LONG_PAUSE } else { WRITE_PAUSE };
            self.writes_paid = self.writes_paid.max(now + Span(WRITES_IN_A_ROW * WRITE_PAUSE.0 + pause.0));
        }
    }

    /// Acknowledges what came.
    pub(crate) fn acknowledge(&mut self, now: Instant) {
        self.note_write(now);
        // Without it, replies are late at worst.
        let _ = set_option(self.descriptor(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
    }

    /// The next step at the end of a turn.
    pub(crate) fn next_action(&self, now: Instant) -> StreamAction {
        let waiting = self.waiting();
        if self.awaits_writable || waiting == 0 && !self.owes_acknowledgment {
            StreamAction::Nothing
        } else if self.pause_end() > now && waiting < WRITE_AT_ONCE {
            StreamAction::Pause
        } else if waiting > 0 {
            StreamAction::Write
        } else {
            StreamAction::Acknowledge
        }
    }

    /// End of the pause after the latest write. There is none before some writes have followed one another closely.
    pub(crate) fn pause_end(&self) -> Instant {
        Instant(self.writes_paid.0.saturating_sub(WRITES_IN_A_ROW * WRITE_PAUSE.0))
    }

    /// Octets that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.encoder.pending().len()
    }

    /// Writes the waiting octets with one call. Returns true if all of them left.
    ///
    /// # Errors
    ///
    /// As [`TcpLink::send`], but a connection that takes nothing now is no error.
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

    /// Sends octets with one call.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`]: the connection takes nothing now. All others end the link: the connection could not be
    /// established, or was reset.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        // With flags, because a closed connection must not raise SIGPIPE.
        match self.socket.send_vectored_with_flags(parts, libc::MSG_NOSIGNAL) {
            Err(error) if is_transient(&error) => match self.socket.take_error()? {
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

    /// Removes the first `octets` of [`TcpLink::pending`], which the connection has taken.
    pub(crate) fn advance(&mut self, octets: usize) {
        self.encoder.advance(octets);
    }

    /// Reads as much as fits into `chunk`. Returns `None` if no data is there now.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`]: the upstream has closed its direction. All others end the link, too: the connection could not
    /// be established, or was reset.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::WRITE_BUFFER;

    const SIZE: usize = 100;

    /// An open connection, and the other end.
    fn link() -> (TcpLink, std::net::TcpListener) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut link =
            TcpLink::open(address, Encoder::new(WRITE_BUFFER), false, &SourceTable::default()).unwrap();
        link.awaits_writable = false;
        (link, listener)
    }

    /// Queues a query. Returns false if there is no room.
    fn queue(link: &mut TcpLink) -> bool {
        let has_room = link.frame(SIZE).is_some();
        if has_room {
            link.push(SIZE);
        }
        has_room
    }

    fn written(link: &mut TcpLink, now: Instant) {
        link.advance(link.waiting());
        link.note_write(now);
    }

    /// The time after so many writes in a row that the next one pauses.
    fn busy(link: &mut TcpLink) -> Instant {
        let now = Instant(0) + Span::from_secs(1);
        for _ in 0..=WRITES_IN_A_ROW {
            assert!(queue(link));
            assert_eq!(link.next_action(now), StreamAction::Write);
            written(link, now);
        }
        now
    }

    #[test]
    fn queries_travel_together_after_many_writes_in_a_row() {
        let (mut link, _listener) = link();
        let now = busy(&mut link);
        assert_eq!(link.next_action(now), StreamAction::Nothing);
        assert!(queue(&mut link));
        assert_eq!(link.next_action(now), StreamAction::Pause);
        assert_eq!(link.pause_end(), now + WRITE_PAUSE);
        assert_eq!(link.next_action(link.pause_end()), StreamAction::Write);
        link.awaits_writable = true;
        assert_eq!(link.next_action(link.pause_end()), StreamAction::Nothing);
    }

    #[test]
    fn the_second_lookup_of_a_question_does_not_wait_behind_the_first() {
        let (mut link, _listener) = link();
        let mut now = Instant(0) + Span::from_secs(1);
        // 1,000 questions a second, with two queries each, 0.1 ms apart.
        for query in 0..2_000 {
            assert!(queue(&mut link));
            assert_eq!(link.next_action(now), StreamAction::Write, "query {query}");
            written(&mut link, now);
            now += if query % 2 == 0 { Span(100_000) } else { Span(900_000) };
        }
    }

    /// Writes so many queries after each pause, for 100 ms; the kernel ends the pauses late. Returns true if the connection is still
    /// busy then.
    fn stays_busy(queries: u32) -> bool {
        let (mut link, _listener) = link();
        let mut now = busy(&mut link);
        for _ in 0..200 {
            for _ in 0..queries {
                assert!(queue(&mut link));
            }
            now = now.max(link.pause_end()) + Span(60_000);
            assert_eq!(link.next_action(now), StreamAction::Write);
            written(&mut link, now);
        }
        let pause = if queries >= MANY_QUERIES { LONG_PAUSE } else { WRITE_PAUSE };
        link.pause_end() == now + pause
    }

    #[test]
    fn a_connection_stays_busy_while_several_queries_leave_together() {
        assert!(stays_busy(BUSY_QUERIES));
        assert!(stays_busy(MANY_QUERIES));
        assert!(!stays_busy(1));
    }

    #[test]
    fn queries_that_come_together_do_not_make_a_connection_busy() {
        let (mut link, _listener) = link();
        let mut now = Instant(0) + Span::from_secs(1);
        for _ in 0..100 {
            for _ in 0..2 * BUSY_QUERIES {
                assert!(queue(&mut link));
            }
            assert_eq!(link.next_action(now), StreamAction::Write);
            written(&mut link, now);
            now += Span::from_millis(1);
        }
    }

    #[test]
    fn many_queries_do_not_pause() {
        let (mut link, _listener) = link();
        let now = busy(&mut link);
        while link.waiting() < WRITE_AT_ONCE {
            assert_eq!(link.next_action(now) == StreamAction::Pause, link.waiting() > 0);
            assert!(queue(&mut link));
        }
        assert_eq!(link.next_action(now), StreamAction::Write);
    }

    #[test]
    fn a_reply_is_acknowledged_while_queries_wait_unless_a_write_does_it() {
        let (mut link, _listener) = link();
        let now = busy(&mut link);
        assert!(link.note_replies(1));
        assert_eq!(link.next_action(now), StreamAction::Pause);
        let later = now + WRITE_PAUSE;
        assert_eq!(link.next_action(later), StreamAction::Acknowledge);
        link.acknowledge(later);
        assert_eq!(link.next_action(later + WRITE_PAUSE), StreamAction::Nothing);
        assert!(link.note_replies(1) && queue(&mut link));
        assert_eq!(link.next_action(later + WRITE_PAUSE), StreamAction::Write);
        written(&mut link, later + WRITE_PAUSE);
        assert!(!link.note_replies(u32::MAX), "no query waits");
    }
}
