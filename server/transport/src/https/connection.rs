//! An HTTPS connection, from its handshake to its end. A sweep of its thread ends it when it is
//! idle, and when its client does not read.

use crate::admission::{ConnectionSlot, Timeouts};
use crate::budget::Buffered;
use crate::close_reason::CloseReason;
use crate::idle_order::Standing;
use crate::limits;
use engine::Client;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The state of a connection that its requests and the sweep share.
pub(crate) struct HttpsConnection {
    /// The client, behind a proxy the one that the proxy named.
    pub(crate) client: Client,
    /// Octets of requests and responses that HTTP holds.
    pub(crate) buffered: Arc<Buffered>,
    /// Requests that have no response yet.
    requests: Cell<u32>,
    /// Time at which a request last began or ended.
    active: Cell<Instant>,
    close: Cell<Option<CloseReason>>,
    closing: Notify,
    is_http2: bool,
    /// Another process accepts the new connections: this one ends after the next response, or when it is idle for a short time.
    retiring: Cell<bool>,
    /// The connection's place. None once another connection has it.
    slot: Cell<Option<ConnectionSlot>>,
}

/// A request that is under way, until it is dropped.
pub(crate) struct UnderWay(Rc<HttpsConnection>);

impl UnderWay {
    pub(crate) fn begin(connection: &Rc<HttpsConnection>) -> UnderWay {
        connection.requests.update(|requests| requests + 1);
        connection.active.set(Instant::now());
        UnderWay(connection.clone())
    }

    /// The connection of the request.
    pub(crate) fn connection(&self) -> &Rc<HttpsConnection> {
        &self.0
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.requests.update(|requests| requests - 1);
        self.0.active.set(Instant::now());
    }
}

impl HttpsConnection {
    pub(crate) fn new(
        client: Client,
        slot: ConnectionSlot,
        buffered: Buffered,
        is_http2: bool,
    ) -> HttpsConnection {
        HttpsConnection {
            client,
            buffered: Arc::new(buffered),
            requests: Cell::new(0),
            active: Cell::new(Instant::now()),
            close: Cell::new(None),
            closing: Notify::new(),
            is_http2,
            retiring: Cell::new(false),
            slot: Cell::new(Some(slot)),
        }
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.is_http2
    }

    /// Number of requests that are under way.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.get()
    }

    /// Ends the connection if a timeout has expired, or if its client leaves too many answers unread. Requests that wait have timeouts
    /// of their own. Returns the time since which the timeouts run, or none if the connection ends.
    pub(crate) fn sweep(&self, now: Instant, timeouts: Timeouts) -> Option<Instant> {
        let is_quiet = now.saturating_duration_since(self.active.get()) >= timeouts.idle;
        let unread_since = self.buffered.unread.since();
        let is_overdue = self.buffered.unread.is_overdue(now, timeouts.idle);
        let is_idle = self.requests.get() == 0 && self.buffered.octets() == 0;
        let is_retired_and_quiet =
            self.retiring.get() && now.saturating_duration_since(self.active.get()) >= limits::RETIRED_IDLE;
        if is_retired_and_quiet && is_idle {
            self.close(CloseReason::Drained);
        }
        if self.has_too_many_unread() || is_overdue {
            self.close(CloseReason::SlowReader);
        } else if is_quiet && is_idle {
            self.close(CloseReason::Idle);
        }
        let since = unread_since.map_or(self.active.get(), |since| since.min(self.active.get()));
        self.close.get().is_none().then_some(since)
    }

    /// Closes the connection if it pays for the budget of buffered octets.
    pub(crate) fn pay(&self) {
        if self.close.get().is_none() && self.buffered.pays() {
            self.close(CloseReason::Buffers);
        }
    }

    /// True if the client leaves more octets unread than a connection may have.
    pub(crate) fn has_too_many_unread(&self) -> bool {
        self.buffered.octets() > limits::WRITE_QUEUE_OCTETS
    }

    /// The standing in the order of idle connections.
    pub(crate) fn standing(&self) -> Standing {
        if self.close.get().is_some() {
            Standing::Gone
        } else if self.requests.get() == 0 && self.buffered.octets() == 0 {
            Standing::IdleSince(self.active.get())
        } else {
            Standing::Busy
        }
    }

    /// Closes the connection, and frees its place at once.
    pub(crate) fn displace(&self) {
        self.close(CloseReason::Displaced);
        self.slot.set(None);
    }

    /// Ends the connection soon, because another process accepts the new ones. HTTP/2 tells the client up to which stream it is served
    /// (GOAWAY). HTTP/1.1 cannot: a request may be on its way to an idle connection, so that ends after a response.
    pub(crate) fn retire(&self) {
        if self.is_http2 {
            self.close(CloseReason::Drained);
        } else {
            self.retiring.set(true);
        }
    }

    /// True if the next response is the last one.
    pub(crate) fn is_retiring(&self) -> bool {
        self.retiring.get()
    }

    /// Ends the connection: abruptly for a slow reader and for want of buffers, otherwise after the responses that are due.
    pub(crate) fn close(&self, reason: CloseReason) {
        if self.close.get().is_none() {
            self.close.set(Some(reason));
            self.closing.notify_one();
        }
    }

    /// Drives HTTP to its end. `farewell` tells it to finish the requests that are under way, and to take no more.
    pub(crate) async fn drive<H: Future<Output = Result<(), E>>, E>(
        &self,
        http: H,
        farewell: impl FnOnce(Pin<&mut H>),
        reason_of: impl FnOnce(E) -> CloseReason,
    ) -> CloseReason {
        let mut http = pin!(http);
        let outcome = tokio::select! {
            outcome = &mut http => Some(outcome),
            () = self.closing.notified() => None,
        };
        match (outcome, self.close.get().unwrap_or(CloseReason::Drained)) {
            (Some(Ok(())), _) => CloseReason::Ended,
            (Some(Err(error)), _) => reason_of(error),
            (None, reason) if reason.is_abrupt() => reason,
            (None, reason) => {
                farewell(http.as_mut());
                // The answers that are due may take as long as they would otherwise; the client has a little longer to read them.
                while tokio::time::timeout(limits::HTTPS_FAREWELL, &mut http).await.is_err() {
                    if self.requests.get() == 0 {
                        break;
                    }
                }
                reason
            }
        }
    }
}

/// HTTP/1.1 with the bounds of this server.
pub(crate) fn http1(idle: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_headers(limits::HTTPS_HEADER_FIELDS)
        .max_buf_size(limits::HTTPS_HEADER_OCTETS as usize)
        .auto_date_header(false);
    builder
}
