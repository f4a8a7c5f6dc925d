//! A client's connection: a state machine around its octets, with or without TLS, which only its own thread uses.
//! [`Connection::poll`] is called when the socket is ready, and after a change from outside (an answer, a timeout, a retry).
//!
//! Reading stops while [`limits::OUTSTANDING`] queries wait for answers, while unread answers pile up, and while the server
//! has no room for a query. The client's further queries then stay in the kernel, and TCP slows the client down (RFC 7766
//! section 6.2.1 asks for pipelining, and not for unbounded pipelining).

use crate::QuerySink;
use crate::admission::{ConnectionSlot, Timeouts};
use crate::budget::Buffered;
use crate::byte_stream::ByteStream;
use crate::close_reason::CloseReason;
use crate::counters::Counter;
use crate::idle_order::Standing;
use crate::inbound::{Delivery, Inbound};
use crate::limits;
use crate::outbound::Outbound;
use crate::server_failure;
use crate::thread_context::ThreadContext;
use datapath::proxy_protocol::{self, Header};
use engine::{Client, IdleTimeout};
use socket2::SockRef;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::ReadBuf;

/// A connection.
pub(crate) struct Connection {
    stream: ByteStream,
    /// The client. Until the header of a proxy has come, the proxy.
    client: Client,
    /// The octets of the PROXY header so far. `None` after the header, and if the peer is not a proxy.
    header: Option<Vec<u8>>,
    inbound: Inbound,
    outbound: Outbound,
    /// Queries that were handed over and not answered.
    outstanding: u32,
    /// The client has shut down its side. It still gets its answers.
    client_finished: bool,
    /// The thread itself has answered queries since the last write.
    has_answered: bool,
    /// The last turn of reading ended before the octets that have arrived.
    has_more_input: bool,
    /// Another process accepts the new connections: this one may be idle for a short time only.
    retiring: bool,
    /// The connection is closed as soon as all answers have left and no query waits in the socket.
    finishing: bool,
    /// The server stops: no more queries are handed over.
    draining: bool,
    /// Number of times that the server has refused the first query in `inbound`.
    refusals: u32,
    /// A refused query is offered again when this is cleared.
    paused: bool,
    /// [`Connection::retry`] must be called, and the caller was not told yet.
    wants_retry: bool,
    /// Time at which a query was last handed over, or answers were last written.
    active: Instant,
    close_reason: Option<CloseReason>,
    waker: Option<Waker>,
    /// Its octets among those of all connections.
    buffered: Buffered,
    /// The connection's place. None once another connection has it.
    slot: Option<ConnectionSlot>,
}

impl Connection {
    /// A new connection. `proxied`: the peer is a proxy, and sends a PROXY header first.
    pub(crate) fn new(
        stream: ByteStream,
        client: Client,
        slot: ConnectionSlot,
        buffered: Buffered,
        proxied: bool,
    ) -> Connection {
        Connection {
            stream,
            client,
            header: proxied.then(Vec::new),
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            outstanding: 0,
            client_finished: false,
            has_answered: false,
            has_more_input: false,
            retiring: false,
            finishing: false,
            draining: false,
            refusals: 0,
            paused: false,
            wants_retry: false,
            active: Instant::now(),
            close_reason: None,
            waker: None,
            buffered,
            slot: Some(slot),
        }
    }

    /// Makes as much progress as is possible without blocking. Answers go first, because they free memory.
    pub(crate) fn poll<Q: QuerySink>(
        &mut self,
        context: &mut Context<'_>,
        thread: &ThreadContext<Q>,
    ) -> Poll<CloseReason> {
        if let Some(close) = self.close_reason {
            return self.end(context, close);
        }
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
        let now = Instant::now();
        let went = self.write(context, now);
        let went = went.and_then(|()| self.read(context, thread, now));
        let went = went.and_then(|()| self.write_answered(context, now));
        self.inbound.update_timer(now, self.may_read());
        match went.and_then(|()| self.update_account()) {
            Err(close) => self.end(context, close),
            Ok(()) if !self.has_ended() => Poll::Pending,
            Ok(()) if self.draining || self.finishing => self.end(context, CloseReason::Drained),
            Ok(()) => self.end(context, CloseReason::Ended),
        }
    }

    /// The end of the state machine.
    fn end(&mut self, context: &mut Context<'_>, close: CloseReason) -> Poll<CloseReason> {
        if !close.is_abrupt() {
            self.stream.close(context);
        }
        Poll::Ready(close)
    }

    /// Queues an answer. Returns false if it cannot: the connection is then closed.
    pub(crate) fn accept(&mut self, message: &[u8]) -> bool {
        if self.close_reason.is_some() {
            return false;
        }
        self.outstanding = self.outstanding.saturating_sub(1);
        let taken =
            if self.outbound.push(message) { self.update_account() } else { Err(CloseReason::SlowReader) };
        self.close_reason = taken.err();
        self.wake();
        taken.is_ok()
    }

    /// Takes a query off the outstanding ones, as it gets no answer. The exchange is over now, so the idle timeout begins (RFC 7766 section
    /// 6.2.3). Returns false if the connection is closed.
    pub(crate) fn drop_query(&mut self) -> bool {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.active = Instant::now();
        self.wake();
        self.close_reason.is_none()
    }

    /// Closes the connection, because an answer to it is lost.
    pub(crate) fn lose_answer(&mut self) {
        self.close_reason.get_or_insert(CloseReason::Unanswered);
        self.wake();
    }

    /// Closes the connection if a timeout has expired. Returns the time since which one runs, or none if the connection closes.
    pub(crate) fn sweep(&mut self, now: Instant, timeouts: Timeouts) -> Option<Instant> {
        if self.close_reason.is_none() {
            self.close_reason = self.overdue(now, timeouts);
            if self.close_reason.is_some() {
                self.wake();
            } else if self.retiring && !self.finishing && self.is_idle_for(now, limits::RETIRED_IDLE) {
                self.finish();
            }
        }
        self.close_reason.is_none().then(|| self.timeouts_since())
    }

    /// The time since which the timeout runs that began first.
    fn timeouts_since(&self) -> Instant {
        let others = [self.outbound.blocked_since(), self.inbound.arriving_since()];
        others.into_iter().flatten().fold(self.active, Instant::min)
    }

    /// The standing in the order of idle connections.
    pub(crate) fn standing(&self, now: Instant) -> Standing {
        match self.close_reason {
            Some(_) => Standing::Gone,
            None if self.is_idle_for(now, Duration::ZERO) => Standing::IdleSince(self.active),
            None => Standing::Busy,
        }
    }

    /// Closes the connection, and frees its place at once.
    pub(crate) fn displace(&mut self) {
        self.close_reason = Some(CloseReason::Displaced);
        self.slot = None;
        self.wake();
    }

    /// Makes the connection close when it has been idle for a short time.
    pub(crate) fn retire(&mut self) {
        self.retiring = true;
    }

    /// Makes the connection close as soon as all answers have left and no more queries have arrived.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
        self.wake();
    }

    /// Makes the connection close as soon as all pending answers have left.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        self.wake();
    }

    /// True if the server has refused a query, so that [`Connection::retry`] must be called soon. Returns true once.
    pub(crate) fn wants_retry(&mut self) -> bool {
        std::mem::take(&mut self.wants_retry)
    }

    /// Offers the refused query again.
    pub(crate) fn retry(&mut self) {
        self.paused = false;
        self.wake();
    }

    /// Closes the connection if it pays for the budget of buffered octets.
    pub(crate) fn pay(&mut self) {
        if self.close_reason.is_none() && self.buffered.pays() {
            self.close_reason = Some(CloseReason::Buffers);
            self.wake();
        }
    }

    /// Ends the connection. Workers are not told: a pending answer finds the connection gone, and is counted.
    pub(crate) fn release(&self, close: CloseReason) {
        self.buffered.set(0);
        if close.is_abrupt() {
            let _ = self.stream.socket().set_zero_linger(); // If this fails, the kernel's own timers end it a little later.
        }
    }

    fn write(&mut self, context: &mut Context<'_>, now: Instant) -> Result<(), CloseReason> {
        while !self.outbound.is_empty() {
            match self.stream.poll_write(context, self.outbound.pending()) {
                Poll::Ready(Ok(octets)) if octets > 0 => self.outbound.advance(octets),
                Poll::Ready(_) => return Err(CloseReason::Reset),
                Poll::Pending => {
                    self.outbound.block(now);
                    return Ok(());
                }
            }
            self.active = now;
        }
        self.flush(context)
    }

    /// Writes the answers that the thread itself gave to what was read.
    fn write_answered(&mut self, context: &mut Context<'_>, now: Instant) -> Result<(), CloseReason> {
        if !std::mem::take(&mut self.has_answered) {
            return Ok(());
        }
        self.write(context, now)?;
        // Reading may have paused for these answers.
        if self.may_ask() && self.inbound.has_backlog() {
            context.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Lets octets leave that TLS has encrypted: the last answers, or replies of its own to what was read.
    fn flush(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        match self.stream.poll_flush(context) {
            Poll::Ready(Err(_)) => Err(CloseReason::Reset),
            _ => Ok(()),
        }
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
        self.has_more_input = false;
        for _ in 0..limits::READS_PER_TURN {
            if !self.may_read() {
                return Ok(());
            }
            let mut room = ReadBuf::new(scratch);
            match self.stream.poll_read(context, &mut room) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_)) => return Err(CloseReason::Reset),
                Poll::Ready(Ok(())) if room.filled().is_empty() => self.client_finished = true,
                // Octets are read even now: a close with unread octets is a reset, which could cost the client its answers.
                Poll::Ready(Ok(())) if self.draining => {}
                Poll::Ready(Ok(())) => self.on_read(thread, now, room.filled())?,
            }
        }
        self.has_more_input = true;
        context.waker().wake_by_ref();
        Ok(())
    }

    /// Takes the octets that were read: a PROXY header, then queries.
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
                let slot = self.slot.as_mut().ok_or(CloseReason::Displaced)?;
                slot.assign_client(&self.client)?;
                self.buffered = thread.shared.budget.begin(&self.client);
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

    /// Answers the queries in `input`, or those that were kept, or hands them over.
    fn ask<Q: QuerySink>(
        &mut self,
        thread: &ThreadContext<Q>,
        now: Instant,
        input: Option<&[u8]>,
    ) -> Result<(), CloseReason> {
        self.client.idle_timeout = self.told_idle_timeout(thread);
        let Connection { client, outbound, outstanding, refusals, paused, wants_retry, active, .. } = self;
        let (mut has_answered, mut has_room) = (false, true);
        let on_read = |message: &[u8]| {
            if let Some(taken) = thread.answer(client, message, |response| outbound.push(response)) {
                *refusals = 0;
                *active = now;
                has_answered = true;
                has_room &= taken;
                let is_read = outbound.pending().len() < limits::UNREAD_OCTETS;
                return if is_read { Delivery::Continue } else { Delivery::Pause };
            }
            if thread.post(client, message) {
                *refusals = 0;
                *active = now;
                // A message with QR set is a response, so no answer will come.
                *outstanding += u32::from(message[2] & 0x80 == 0);
            } else if *refusals < limits::RETRIES {
                *refusals += 1;
                (*paused, *wants_retry) = (true, true);
                return Delivery::Refused;
            } else {
                *refusals = 0;
                thread.count(Counter::QuestionsRefused);
                if message[2] & 0x80 == 0 {
                    has_answered = true;
                    has_room &= outbound.push(&server_failure::to(message));
                }
            }
            if *outstanding < limits::OUTSTANDING { Delivery::Continue } else { Delivery::Pause }
        };
        let fed = match input {
            Some(input) => self.inbound.feed(input, on_read),
            None => self.inbound.resume(on_read),
        };
        self.has_answered |= has_answered;
        fed.map_err(|_| CloseReason::MalformedLength)?;
        if has_room { Ok(()) } else { Err(CloseReason::SlowReader) }
    }

    /// The idle timeout that the client is told. A connection that closes soon, as another process accepts the new ones, asks the client to
    /// close it.
    //= RFC 7828 section 3.3.2: requirement 67
    fn told_idle_timeout<Q: QuerySink>(&self, thread: &ThreadContext<Q>) -> IdleTimeout {
        if self.retiring || self.finishing { IdleTimeout::CLOSE } else { thread.idle_timeout.get() }
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

    /// True if nothing is left to do. A partial message is dropped when the client ends the stream.
    fn has_ended(&self) -> bool {
        let is_closing = self.client_finished || self.draining || self.finishing;
        is_closing
            && !self.inbound.has_backlog()
            && self.outstanding == 0
            && self.outbound.is_empty()
            && self.stream.is_flushed()
            && (self.client_finished || self.draining || self.has_no_more_queries())
    }

    /// True if the client has sent no query, and no part of one, that was not handed over. The socket itself is asked: the runtime
    /// learns of new octets a little later, and a close with unread octets is a reset.
    fn has_no_more_queries(&self) -> bool {
        let mut octet = [std::mem::MaybeUninit::uninit()];
        let waiting = SockRef::from(self.stream.socket()).peek(&mut octet);
        !self.has_more_input && self.inbound.is_empty() && !waiting.is_ok_and(|octets| octets > 0)
    }

    /// True if nothing is under way, and nothing was for this time.
    fn is_idle_for(&self, now: Instant, time: Duration) -> bool {
        self.outstanding == 0
            && self.outbound.is_empty()
            && self.inbound.is_empty()
            && now.saturating_duration_since(self.active) >= time
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
            self.is_idle_for(now, timeouts.idle).then_some(CloseReason::Idle)
        }
    }

    /// Updates the connection's octets among those of all.
    fn update_account(&self) -> Result<(), CloseReason> {
        let header = self.header.as_ref().map_or(0, Vec::capacity);
        let octets = self.inbound.octets() + self.outbound.octets() + header;
        if self.buffered.set(octets) { Ok(()) } else { Err(CloseReason::Buffers) }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
