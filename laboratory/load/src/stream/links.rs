//! All connections of one thread, and their events: end of the handshake, writing, reading. `opening` begins connections,
//! `ending` ends them and their queries.

use crate::lane::Lane;
use crate::limits;
use crate::plan::Plan;
use crate::query_times::Words;
use crate::receiver::{Completed, Received};
use crate::sockets::{ConnectionEvent, ConnectionWaiter};
use crate::stream::arrival;
use crate::stream::check::capacity;
use crate::stream::link::{Link, Phase};
use crate::stream::local_ports::LocalPorts;
use crate::stream::stats::{Fault, StreamStats};
use crate::stream_order::lines;
use crate::thread_stats::ThreadStats;
use crate::tls_client::TlsClient;
use std::collections::VecDeque;
use std::io;

/// The connections of a thread.
pub struct Links<'a> {
    pub(super) plan: &'a Plan,
    pub(super) lane: &'a Lane,
    pub(super) local_ports: LocalPorts,
    pub(super) waiter: ConnectionWaiter,
    /// The connections by their place, and how often the place was used before: both are the token of an event.
    pub(super) places: Vec<Option<Link>>,
    pub(super) uses: Vec<u32>,
    pub(super) free: Vec<usize>,
    pub(super) capacity: usize,
    /// True if each query has a connection of its own.
    pub(super) is_single: bool,
    /// Token of the open connection of each line, with many queries on a connection.
    pub(super) lines: Vec<Option<u64>>,
    /// Opening times and tokens, oldest first, of connections with a query of their own.
    pub(super) ages: VecDeque<(u64, u64)>,
    /// Tokens of connections with new queries to write, and of those with more to read.
    pub(super) dirty: Vec<u64>,
    pub(super) unread: Vec<u64>,
    /// Queries that failed while they were sent.
    pub(super) failed: Vec<(u64, Fault)>,
    pub(super) buffer: Box<[u8]>,
    /// Settings of TLS, and room for decrypted octets; `None` and empty over TCP.
    pub(super) tls: Option<TlsClient>,
    pub(super) plain: Box<[u8]>,
    /// The reason why the certificate of the server is refused. The load ends then.
    pub(super) refusal: Option<String>,
    /// Time since which more connections were ready than one wait reports, and the longest such time.
    pub(super) ready_since: Option<u64>,
    pub(super) backlog: u64,
    pub(super) stats: ThreadStats,
    pub(super) streams: StreamStats,
}

/// Result of the work on a connection.
#[derive(PartialEq, Eq)]
enum Fate {
    Alive,
    Over,
}

impl<'a> Links<'a> {
    /// No connections yet.
    ///
    /// # Errors
    ///
    /// As `ConnectionWaiter::new`: the process may have no more open files.
    pub fn new(plan: &'a Plan, lane: &'a Lane) -> io::Result<Links<'a>> {
        let mut stats = ThreadStats::new(plan);
        if plan.query_times {
            stats.times = vec![Words::new(plan, lane.index)];
        }
        Ok(Links {
            plan,
            lane,
            local_ports: LocalPorts::new(plan, lane.index),
            waiter: ConnectionWaiter::new()?,
            places: Vec::new(),
            uses: Vec::new(),
            free: Vec::new(),
            capacity: capacity(plan),
            is_single: plan.order.has_connection_per_query(),
            lines: vec![None; lines(&plan.order).unwrap_or(0)],
            ages: VecDeque::new(),
            dirty: Vec::new(),
            unread: Vec::new(),
            failed: Vec::new(),
            buffer: vec![0; limits::STREAM_READ].into(),
            plain: vec![0; if plan.tls.is_some() { limits::PLAIN_READ } else { 0 }].into(),
            tls: plan.tls.as_ref().map(TlsClient::for_thread),
            refusal: None,
            ready_since: None,
            backlog: 0,
            stats,
            streams: StreamStats::new(),
        })
    }

    /// True if a connection has octets that were not read because it had too many.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The counters, and the longest time in nanoseconds that ready connections waited for the thread.
    pub fn into_reports(mut self) -> (ThreadStats, StreamStats, u64) {
        self.streams.tickets = self.tls.as_ref().map_or(0, TlsClient::tickets);
        (self.stats, self.streams, self.backlog)
    }

    /// Writes what the last poll of the sender has queued, ends the queries that failed, and gives up old connections. `now`:
    /// nanoseconds since the origin of the plan.
    pub fn settle(&mut self, now: u64) {
        for token in std::mem::take(&mut self.dirty) {
            let Some(link) = self.link(token) else { continue };
            link.is_dirty = false;
            // The failed connection is reported by an event, too.
            if link.phase == Phase::Open && link.flush(now).is_err() {
                self.unread.push(token);
            }
        }
        for (k, fault) in std::mem::take(&mut self.failed) {
            self.fail(k, fault, now);
        }
        while let Some((opened, token)) = self.ages.front().copied()
            && opened + self.plan.timeout * limits::LATE_TIMEOUTS < now
        {
            self.ages.pop_front();
            self.give_up(token, now);
        }
    }

    /// Waits for at most `wait` nanoseconds, and does what the connections need.
    pub fn receive(&mut self, wait: u64) {
        let ready = self.waiter.wait(wait);
        for token in std::mem::take(&mut self.unread) {
            let event = ConnectionEvent { token, writable: true, readable: true, ended: true, over: false };
            self.handle(event);
        }
        for index in 0..ready {
            self.handle(self.waiter.event(index));
        }
        let now = self.plan.now();
        self.ready_since = if self.waiter.is_full() { self.ready_since.or(Some(now)) } else { None };
        self.backlog = self.backlog.max(self.ready_since.map_or(0, |since| now - since));
    }

    /// Closes all connections, and waits until the server has closed its side, for [`limits::CLOSE_WAIT`] at most.
    pub fn close(&mut self) {
        let end = self.plan.now() + limits::CLOSE_WAIT.as_nanos() as u64;
        let is_single = self.is_single;
        for place in 0..self.places.len() {
            let token = self.token(place);
            match self.link(token) {
                // Nobody waits for the reply any longer.
                Some(link) if link.phase == Phase::Opening || link.phase == Phase::Open && is_single => {
                    self.give_up(token, end);
                }
                Some(link) if link.phase == Phase::Open => link.end_sending(),
                _ => {}
            }
        }
        while self.places.len() > self.free.len() && self.plan.now() < end {
            self.receive(limits::MAX_WAIT_NS);
        }
        (0..self.places.len()).for_each(|place| self.give_up(self.token(place), end));
    }

    pub(super) fn token(&self, place: usize) -> u64 {
        u64::from(self.uses[place]) << 32 | place as u64
    }

    /// Place of a connection, if it is still that of the token.
    pub(super) fn place(&self, token: u64) -> Option<usize> {
        let place = (token & u64::from(u32::MAX)) as usize;
        (self.uses.get(place).copied() == Some((token >> 32) as u32)).then_some(place)
    }

    pub(super) fn link(&mut self, token: u64) -> Option<&mut Link> {
        let place = self.place(token)?;
        self.places[place].as_mut()
    }

    /// Does what an event asks for.
    fn handle(&mut self, event: ConnectionEvent) {
        let Some(place) = self.place(event.token) else { return };
        let Some(mut link) = self.places[place].take() else { return };
        match self.advance(&mut link, event) {
            Fate::Alive => self.places[place] = Some(link),
            Fate::Over => self.finish(place, link, false),
        }
    }

    /// Goes on with a connection: end of the handshake, writing, reading, closing.
    fn advance(&mut self, link: &mut Link, event: ConnectionEvent) -> Fate {
        let now = self.plan.now();
        let mut written = Ok(());
        if link.phase == Phase::Opening && link.connected.is_none() {
            let error = if event.over { link.connection.error() } else { None };
            match error {
                None => {}
                // A reset during the handshake is ECONNREFUSED: this one came after its end, before this thread saw that.
                Some(error) if Fault::of(&error) == Fault::Reset => written = Err(error),
                Some(error) => {
                    let fault = Fault::of(&error);
                    self.streams.refused += u64::from(fault == Fault::Refused);
                    self.streams.timed_out += u64::from(fault == Fault::Handshake);
                    self.fail_all(link, fault, now);
                    return Fate::Over;
                }
            }
            link.connected = Some(now);
            if self.tls.is_none() {
                self.establish(link, now);
            } else if written.is_ok() {
                written = self.begin_handshake(link, now);
            }
        }
        if event.writable && written.is_ok() {
            written = link.flush(now);
        }
        // Replies that came before the failure can still be read.
        match self.read(link, event).and_then(|ended| written.map(|()| ended)) {
            Err(error) => {
                if link.phase == Phase::Open {
                    let fault = Fault::of_open(&error);
                    self.streams.reset += u64::from(fault == Fault::Reset);
                    self.fail_all(link, fault, self.plan.now());
                } else if link.phase == Phase::Opening {
                    self.fail_handshake(link, &error);
                }
                Fate::Over
            }
            Ok(true) if link.phase == Phase::Opening => {
                self.fail_handshake(link, &io::ErrorKind::UnexpectedEof.into());
                Fate::Over
            }
            // A connection that is over is read to the end of its stream, or to its error.
            Ok(false) => Fate::Alive,
            Ok(true) => {
                if link.phase == Phase::Open {
                    self.streams.closed_by_server += 1;
                    self.fail_all(link, Fault::Closed, self.plan.now());
                    link.end_sending();
                    self.release_line(link.line, event.token);
                }
                // The last acknowledgement may be under way: an event will say that it came.
                let is_closed = link.connection.info().is_none_or(|info| info.is_closed);
                if is_closed || event.over { Fate::Over } else { Fate::Alive }
            }
        }
    }

    /// Reads what has come, and enters the replies. Returns true at the end of the stream.
    fn read(&mut self, link: &mut Link, event: ConnectionEvent) -> io::Result<bool> {
        if !event.readable && !event.over {
            return Ok(false);
        }
        for _ in 0..limits::RECEIVES_PER_POLL {
            let octets = match link.connection.read(&mut self.buffer) {
                Ok(0) => return Ok(true),
                Ok(octets) => octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            link.received += octets as u64;
            self.take(link, octets)?;
            if octets < self.buffer.len() && !event.ended {
                return Ok(false);
            }
        }
        self.unread.push(event.token);
        Ok(false)
    }

    /// Takes the first octets of the buffer: replies, or records of TLS.
    fn take(&mut self, link: &mut Link, octets: usize) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let taken = match link.tls {
            None => {
                self.enter(link, &buffer[..octets]);
                Ok(())
            }
            Some(_) => self.take_records(link, &buffer[..octets]),
        };
        self.buffer = buffer;
        taken
    }

    /// Enters the replies among octets of a connection.
    pub(super) fn enter(&mut self, link: &mut Link, mut input: &[u8]) {
        let (plan, lane, now) = (self.plan, self.lane, self.plan.now());
        let sent = lane.sent.get();
        let end = if self.is_single { link.first + 1 } else { sent };
        let received = Received { plan, lane, port: link.line, now, sent };
        let (mut completed, before) = (Completed::default(), (self.stats.valid, self.stats.wrong));
        while let Some(message) = link.decoder.next(&mut input) {
            arrival::enter(&received, link.first..end, message, &mut self.stats, &mut completed);
        }
        lane.in_time.add(completed.in_time);
        lane.late.add(completed.late);
        lane.valid.add(self.stats.valid - before.0);
        lane.invalid.add(self.stats.wrong - before.1);
        if self.is_single && completed.in_time + completed.late > 0 {
            self.streams.answer.record(now - link.handed.unwrap_or(link.opened));
            if link.phase == Phase::Open {
                link.end_sending();
            }
        }
    }
}
