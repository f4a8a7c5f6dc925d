//! One client's connection: a state machine around its socket that only its own thread touches. [`Connection::poll`]
//! is polled when the socket is ready or something was changed from outside (an answer, a doom, a retry).
//!
//! Reading stops while [`limits::OUTSTANDING`] questions wait for answers, while answers pile up unread, and while
//! the server has no room for a question; what the client then sends stays in the kernel, and TCP slows it down
//! (RFC 7766 section 6.2.1 asks for pipelining, not for boundless pipelining).

use crate::QuerySink;
use crate::admission::{ConnectionSlot, Timeouts};
use crate::counters::Counter;
use crate::inbound::{Delivery, Inbound};
use crate::limits;
use crate::outbound::Outbound;
use crate::thread_context::ThreadContext;
use datapath::proxy_protocol::{self, Header};
use engine::Client;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Ended,
    Idle,
    SlowReader,
    SlowSender,
    MalformedLength,
    ProxyHeader,
    ClientLimit,
    Reset,
    Unanswered,
    Buffers,
    Drained,
}

impl CloseReason {
    pub(crate) fn counter(self) -> Counter {
        match self {
            CloseReason::Ended => Counter::ClosedEnded,
            CloseReason::Idle => Counter::ClosedIdle,
            CloseReason::SlowReader => Counter::ClosedSlowReader,
            CloseReason::SlowSender => Counter::ClosedSlowSender,
            CloseReason::MalformedLength => Counter::ClosedMalformedLength,
            CloseReason::ProxyHeader => Counter::ClosedProxyHeader,
            CloseReason::ClientLimit => Counter::ClosedClientLimit,
            CloseReason::Reset => Counter::ClosedReset,
            CloseReason::Unanswered => Counter::ClosedUnanswered,
            CloseReason::Buffers => Counter::ClosedBuffers,
            CloseReason::Drained => Counter::ClosedDrained,
        }
    }

    /// Whether what the kernel still holds for the client shall be thrown away instead of sent.
    fn is_abrupt(self) -> bool {
        matches!(
            self,
            CloseReason::SlowReader
                | CloseReason::Buffers
                | CloseReason::ProxyHeader
                | CloseReason::ClientLimit
        )
    }
}

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// The proxy, as long as its header has not come.
    client: Client,
    /// What has come of that header; none when it is complete, or when there is none to come.
    header: Option<Vec<u8>>,
    inbound: Inbound,
    outbound: Outbound,
    /// Questions handed over and not answered.
    outstanding: u32,
    /// The client has shut down its side; it still gets its answers.
    client_finished: bool,
    /// The server stops: nothing more is asked.
    draining: bool,
    /// How often the server has refused the question at the head of `inbound`.
    refusals: u32,
    /// A refused question is offered again when this is cleared.
    paused: bool,
    /// Somebody has to call [`Connection::retry`], and nobody knows yet.
    wants_retry: bool,
    /// When a question was last handed over, or all answers were written.
    active: Instant,
    close_reason: Option<CloseReason>,
    waker: Option<Waker>,
    /// Octets of buffers that the common account knows of.
    charged_octets: usize,
    slot: ConnectionSlot,
}

impl Connection {
    /// `proxied`: the peer is a proxy, and begins with a PROXY header.
    pub(crate) fn new(stream: TcpStream, client: Client, slot: ConnectionSlot, proxied: bool) -> Connection {
        Connection {
            stream,
            client,
            header: proxied.then(Vec::new),
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            outstanding: 0,
            client_finished: false,
            draining: false,
            refusals: 0,
            paused: false,
            wants_retry: false,
            active: Instant::now(),
            close_reason: None,
            waker: None,
            charged_octets: 0,
            slot,
        }
    }

    /// Goes as far as it can without waiting: answers first, they free memory.
    pub(crate) fn poll<Q: QuerySink>(
        &mut self,
        context: &mut Context<'_>,
        thread: &ThreadContext<Q>,
    ) -> Poll<CloseReason> {
        if let Some(close) = self.close_reason {
            return Poll::Ready(close);
        }
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
        let now = Instant::now();
        let went = self.write(context, now).and_then(|()| self.read(context, thread, now));
        self.inbound.update_timer(now, self.may_read());
        match went.and_then(|()| self.update_account(thread)) {
            Err(close) => Poll::Ready(close),
            Ok(()) if !self.has_ended() => Poll::Pending,
            Ok(()) => Poll::Ready(if self.draining { CloseReason::Drained } else { CloseReason::Ended }),
        }
    }

    /// Takes an answer. False: it cannot, and is doomed.
    pub(crate) fn accept<Q: QuerySink>(&mut self, message: &[u8], thread: &ThreadContext<Q>) -> bool {
        if self.close_reason.is_some() {
            return false;
        }
        self.outstanding = self.outstanding.saturating_sub(1);
        let taken = if self.outbound.push(message) {
            self.update_account(thread)
        } else {
            Err(CloseReason::SlowReader)
        };
        self.close_reason = taken.err();
        self.wake();
        taken.is_ok()
    }

    /// Ends the connection if it has taken too long over something.
    pub(crate) fn sweep(&mut self, now: Instant, timeouts: Timeouts) {
        if self.close_reason.is_none() {
            self.close_reason = self.overdue(now, timeouts);
            if self.close_reason.is_some() {
                self.wake();
            }
        }
    }

    /// Has it end as soon as the answers that it is owed have left.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        self.wake();
    }

    /// Whether the server has refused a question, so that [`Connection::retry`] must be called soon. Says so once.
    pub(crate) fn wants_retry(&mut self) -> bool {
        std::mem::take(&mut self.wants_retry)
    }

    /// Offers the refused question again.
    pub(crate) fn retry(&mut self) {
        self.paused = false;
        self.wake();
    }

    /// Settles what the desk knows of the connection. Workers are not told: an answer that is still owed finds the
    /// connection gone, and is counted.
    pub(crate) fn release<Q: QuerySink>(&mut self, close: CloseReason, thread: &ThreadContext<Q>) {
        thread.adjust_buffered(self.charged_octets, 0);
        self.charged_octets = 0;
        if close.is_abrupt() {
            let _ = self.stream.set_zero_linger(); // Failing, it ends a little later by the kernel's own timers.
        }
    }

    fn write(&mut self, context: &mut Context<'_>, now: Instant) -> Result<(), CloseReason> {
        while !self.outbound.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, self.outbound.pending()) {
                Poll::Ready(Ok(octets)) if octets > 0 => self.outbound.advance(octets),
                Poll::Ready(_) => return Err(CloseReason::Reset),
                Poll::Pending => {
                    self.outbound.block(now);
                    return Ok(());
                }
            }
            self.active = now;
        }
        Ok(())
    }

    fn read<Q: QuerySink>(
        &mut self,
        context: &mut Context<'_>,
        thread: &ThreadContext<Q>,
        now: Instant,
    ) -> Result<(), CloseReason> {
        let scratch = &mut *thread.scratch.borrow_mut();
        if self.draining {
            self.inbound = Inbound::default();
        } else if self.may_ask() && self.inbound.has_backlog() {
            self.ask(thread, now, None)?;
        }
        for _ in 0..limits::READS_PER_TURN {
            if !self.may_read() {
                return Ok(());
            }
            let mut room = ReadBuf::new(scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut room) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_)) => return Err(CloseReason::Reset),
                Poll::Ready(Ok(())) if room.filled().is_empty() => self.client_finished = true,
                // Read all the same: a close with unread octets is a reset, and could cost the client its answers.
                Poll::Ready(Ok(())) if self.draining => {}
                Poll::Ready(Ok(())) => self.on_read(thread, now, room.filled())?,
            }
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    /// Takes what was read: questions, or what stands before them.
    fn on_read<Q: QuerySink>(
        &mut self,
        thread: &ThreadContext<Q>,
        now: Instant,
        input: &[u8],
    ) -> Result<(), CloseReason> {
        let Some(mut octets) = self.header.take() else { return self.ask(thread, now, Some(input)) };
        octets.extend_from_slice(input);
        match Header::read(&octets) {
            Ok(header) => {
                self.client = header.client(&self.client);
                self.slot.assign_client(self.client.address).map_err(|_| CloseReason::ClientLimit)?;
                match &octets[header.length..] {
                    [] => Ok(()),
                    questions => self.ask(thread, now, Some(questions)),
                }
            }
            Err(proxy_protocol::Error::Incomplete(_)) => {
                self.header = Some(octets);
                Ok(())
            }
            Err(_) => Err(CloseReason::ProxyHeader),
        }
    }

    /// Hands over the questions in `input`, or those that were kept.
    fn ask<Q: QuerySink>(
        &mut self,
        thread: &ThreadContext<Q>,
        now: Instant,
        input: Option<&[u8]>,
    ) -> Result<(), CloseReason> {
        let Connection { client, outstanding, refusals, paused, wants_retry, active, .. } = self;
        let on_read = |message: &[u8]| {
            if thread.post(client, message) {
                *refusals = 0;
                *active = now;
                // A response is no question; nobody will answer it.
                *outstanding += u32::from(message[2] & 0x80 == 0);
            } else if *refusals < limits::RETRIES {
                *refusals += 1;
                (*paused, *wants_retry) = (true, true);
                return Delivery::Refused;
            } else {
                *refusals = 0;
                thread.count(Counter::QuestionsRefused);
            }
            if *outstanding < limits::OUTSTANDING { Delivery::Continue } else { Delivery::Pause }
        };
        match input {
            Some(input) => self.inbound.feed(input, on_read),
            None => self.inbound.resume(on_read),
        }
        .map_err(|_| CloseReason::MalformedLength)
    }

    fn may_ask(&self) -> bool {
        !self.draining
            && !self.paused
            && self.outstanding < limits::OUTSTANDING
            && self.outbound.pending().len() < limits::UNREAD_OCTETS
    }

    fn may_read(&self) -> bool {
        !self.client_finished && (self.draining || self.may_ask() && !self.inbound.has_backlog())
    }

    /// Whether nothing is left to do. A message that has come in part when the client ends goes nowhere.
    fn has_ended(&self) -> bool {
        (self.client_finished || self.draining)
            && !self.inbound.has_backlog()
            && self.outstanding == 0
            && self.outbound.is_empty()
    }

    fn overdue(&self, now: Instant, timeouts: Timeouts) -> Option<CloseReason> {
        let quiet = now.saturating_duration_since(self.active);
        if self.outbound.is_overdue(now, timeouts.idle) {
            Some(CloseReason::SlowReader)
        } else if let Some(since) = self.inbound.arriving_since()
            && now.saturating_duration_since(since) >= timeouts.idle
        {
            Some(CloseReason::SlowSender)
        } else if self.outstanding > 0 {
            (quiet >= timeouts.answer_wait).then_some(CloseReason::Unanswered)
        } else {
            let idle = self.outbound.is_empty() && self.inbound.is_empty();
            (idle && quiet >= timeouts.idle).then_some(CloseReason::Idle)
        }
    }

    /// Brings the common account of buffers up to date.
    fn update_account<Q: QuerySink>(&mut self, thread: &ThreadContext<Q>) -> Result<(), CloseReason> {
        let header = self.header.as_ref().map_or(0, Vec::capacity);
        let octets = self.inbound.octets() + self.outbound.octets() + header;
        let within = thread.adjust_buffered(self.charged_octets, octets);
        self.charged_octets = octets;
        if within || octets <= limits::SMALL_OCTETS { Ok(()) } else { Err(CloseReason::Buffers) }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
