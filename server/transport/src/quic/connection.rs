//! The state of a QUIC connection that its streams and the sweep share.

use crate::admission::{ConnectionSlot, Timeouts};
use crate::budget::Buffered;
use crate::close_reason::CloseReason;
use crate::limits;
use crate::quic::error_code;
use engine::Client;
use quinn::VarInt;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// A connection.
pub(crate) struct QuicConnection {
    pub(crate) quic: quinn::Connection,
    /// The client. Its address does not change, because migration is disabled.
    pub(crate) client: Client,
    /// Octets of queries and answers that are kept.
    pub(crate) buffered: Arc<Buffered>,
    /// The place in the admission, once the address is validated.
    pub(crate) slot: RefCell<Option<ConnectionSlot>>,
    /// True once the handshake is completed, and the signal for it.
    completed: Cell<bool>,
    completion: Notify,
    /// Streams under way: until the client has acknowledged the answer, or cancelled the query.
    streams: Cell<u32>,
    /// Streams under way whose answer is written, and not acknowledged yet.
    unacknowledged: Cell<u32>,
    /// Time at which an answer was last written.
    written: Cell<Instant>,
    /// Time at which a stream last began or ended.
    active: Cell<Instant>,
    /// Queries that the client has cancelled, less those that were answered.
    cancelled: Cell<u32>,
    close: Cell<Option<CloseReason>>,
    /// Wakes the task of the connection: to close it, and then for each stream that ends.
    pub(crate) wakeup: Notify,
}

/// A stream under way, until it is dropped.
pub(crate) struct UnderWay<'c> {
    connection: &'c QuicConnection,
    is_written: bool,
}

impl UnderWay<'_> {
    /// Notes that the answer is written. Only its acknowledgement is missing.
    pub(crate) fn note_written(&mut self) {
        self.is_written = true;
        self.connection.unacknowledged.update(|written| written + 1);
        self.connection.written.set(Instant::now());
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let connection = self.connection;
        connection.streams.update(|streams| streams - 1);
        connection.unacknowledged.update(|written| written - u32::from(self.is_written));
        connection.active.set(Instant::now());
        if connection.close.get().is_some() {
            connection.wakeup.notify_one();
        }
    }
}

impl QuicConnection {
    pub(crate) fn new(
        quic: quinn::Connection,
        client: Client,
        buffered: Buffered,
        slot: Option<ConnectionSlot>,
    ) -> QuicConnection {
        QuicConnection {
            quic,
            client,
            buffered: Arc::new(buffered),
            slot: RefCell::new(slot),
            completed: Cell::new(false),
            completion: Notify::new(),
            streams: Cell::new(0),
            unacknowledged: Cell::new(0),
            written: Cell::new(Instant::now()),
            active: Cell::new(Instant::now()),
            cancelled: Cell::new(0),
            close: Cell::new(None),
            wakeup: Notify::new(),
        }
    }

    pub(crate) fn begin_stream(&self) -> UnderWay<'_> {
        self.streams.update(|streams| streams + 1);
        self.active.set(Instant::now());
        UnderWay { connection: self, is_written: false }
    }

    /// True if streams are under way.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.get() > 0
    }

    /// True if streams wait for an answer, or for an acknowledgement that may come. Once another process reads the sockets none comes, and
    /// a short time after the last answer must do ([`limits::QUIC_UNACKNOWLEDGED`]).
    pub(crate) fn awaits_answers(&self, is_read_elsewhere: bool) -> bool {
        let is_repeated = || self.written.get().elapsed() < limits::QUIC_UNACKNOWLEDGED;
        match self.unacknowledged.get() {
            written if is_read_elsewhere && written > 0 => written < self.streams.get() || is_repeated(),
            _ => self.has_streams(),
        }
    }

    /// Lets the messages go on that wait for the end of the handshake.
    pub(crate) fn complete(&self) {
        self.completed.set(true);
        self.completion.notify_waiters();
    }

    /// Waits for the end of the handshake, or of the connection.
    pub(crate) async fn completed(&self) {
        while !self.completed.get() && self.quic.close_reason().is_none() {
            self.completion.notified().await;
        }
    }

    /// Wakes the messages that wait for the end of a handshake that has failed.
    pub(crate) fn abandon(&self) {
        self.completion.notify_waiters();
    }

    pub(crate) fn note_answered(&self) {
        self.cancelled.update(|cancelled| cancelled.saturating_sub(1));
    }

    /// Notes a cancelled query. A client that cancels too many loses its connection.
    pub(crate) fn note_cancelled(&self) {
        self.cancelled.update(|cancelled| cancelled + 1);
        if self.cancelled.get() > limits::QUIC_CANCELLATIONS {
            self.close_at_once(CloseReason::Cancellations, "too many cancelled queries");
        }
    }

    /// Ends the connection if a timeout has expired, or if its client leaves too many answers unread. Queries that wait have timeouts
    /// of their own. `is_read_elsewhere`: a successor of this process reads the socket. No acknowledgements come here then, so the
    /// connection only checks again how long it waits for them.
    pub(crate) fn sweep(&self, now: Instant, timeouts: Timeouts, is_read_elsewhere: bool) {
        if is_read_elsewhere {
            // It may have waited long enough for acknowledgements, which do not come.
            return self.wakeup.notify_one();
        }
        let is_quiet = now.saturating_duration_since(self.active.get()) >= timeouts.idle;
        let is_overdue = self.buffered.unread.is_overdue(now, timeouts.idle);
        if self.buffered.octets() > limits::WRITE_QUEUE_OCTETS || is_overdue {
            self.close_at_once(CloseReason::SlowReader, "answers are not read");
        } else if is_quiet && !self.has_streams() && self.completed.get() {
            self.close(CloseReason::Idle);
        }
    }

    /// Closes the connection if it pays for the budget of buffered octets.
    pub(crate) fn pay(&self) {
        if self.close.get().is_none() && self.buffered.pays() {
            self.close_at_once(CloseReason::Buffers, "out of memory");
        }
    }

    /// Ends the connection once no stream is under way.
    pub(crate) fn close(&self, reason: CloseReason) {
        if self.close.get().is_none() {
            self.close.set(Some(reason));
            self.wakeup.notify_one();
        }
    }

    /// Ends the connection, and its streams with it.
    pub(crate) fn close_at_once(&self, reason: CloseReason, text: &str) {
        self.close(reason);
        self.quic.close(code_of(reason), text.as_bytes());
    }

    /// The reason why this server ends the connection, if it does.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.close.get()
    }
}

/// The error code that tells the client the reason.
fn code_of(reason: CloseReason) -> VarInt {
    match reason {
        CloseReason::ProtocolError | CloseReason::SlowSender => error_code::PROTOCOL_ERROR,
        CloseReason::SlowReader
        | CloseReason::Buffers
        | CloseReason::Cancellations
        | CloseReason::ClientLimit => error_code::EXCESSIVE_LOAD,
        _ => error_code::NO_ERROR,
    }
}
