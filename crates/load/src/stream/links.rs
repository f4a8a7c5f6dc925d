//! All connections of one thread: opening, writing, events, and giving up.

use crate::lane::Lane;
use crate::limits;
use crate::outstanding::State;
use crate::plan::Plan;
use crate::query_times::{Ending, Words};
use crate::receiver::{Completed, Received};
use crate::sender::{Batch, Transmit};
use crate::stream::arrival;
use crate::stream::check::{capacity, lines};
use crate::stream::link::{self, Link, Phase};
use crate::stream::local_ports::LocalPorts;
use crate::stream::stats::{Fault, StreamStats};
use crate::thread_stats::ThreadStats;
use datapath::framing::{Decoder, Encoder};
use datapath::laboratory::{Connection, ConnectionEvent, ConnectionWaiter};
use measure::order::Transport;
use std::collections::VecDeque;
use std::io;

/// The connections of a thread.
pub struct Links<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
    local_ports: LocalPorts,
    waiter: ConnectionWaiter,
    /// The connections by their place, and how often the place was used before: both are the token of an event.
    places: Vec<Option<Link>>,
    uses: Vec<u32>,
    free: Vec<usize>,
    capacity: usize,
    /// True if each query has a connection of its own.
    is_single: bool,
    /// Token of the open connection of each line, with many queries on a connection.
    lines: Vec<Option<u64>>,
    /// Opening times and tokens, oldest first, of connections with a query of their own.
    ages: VecDeque<(u64, u64)>,
    /// Tokens of connections with new queries to write, and of those with more to read.
    dirty: Vec<u64>,
    unread: Vec<u64>,
    /// Queries that failed while they were sent.
    failed: Vec<(u64, Fault)>,
    buffer: Box<[u8]>,
    /// Time since which more connections were ready than one wait reports, and the longest such time.
    ready_since: Option<u64>,
    backlog: u64,
    stats: ThreadStats,
    streams: StreamStats,
}

/// Result of the work on a connection.
#[derive(PartialEq, Eq)]
enum Fate {
    Alive,
    Over,
}

impl<'a> Links<'a> {
    /// No connections yet.
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
            is_single: plan.order.transport != Transport::TcpReuse,
            lines: vec![None; lines(&plan.order).unwrap_or(0)],
            ages: VecDeque::new(),
            dirty: Vec::new(),
            unread: Vec::new(),
            failed: Vec::new(),
            buffer: vec![0; limits::STREAM_READ].into(),
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
    pub fn into_reports(self) -> (ThreadStats, StreamStats, u64) {
        (self.stats, self.streams, self.backlog)
    }

    /// Writes what the last poll of the sender has queued, ends the queries that failed, and gives up old connections.
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

    fn token(&self, place: usize) -> u64 {
        u64::from(self.uses[place]) << 32 | place as u64
    }

    /// Place of a connection, if it is still that of the token.
    fn place(&self, token: u64) -> Option<usize> {
        let place = (token & u64::from(u32::MAX)) as usize;
        (self.uses.get(place).copied() == Some((token >> 32) as u32)).then_some(place)
    }

    fn link(&mut self, token: u64) -> Option<&mut Link> {
        let place = self.place(token)?;
        self.places[place].as_mut()
    }

    /// Sends a query on the connection of its line, or opens one.
    fn send(&mut self, k: u64, line: usize, query: &[u8]) -> io::Result<()> {
        let token = if self.is_single { None } else { self.lines[line] };
        let Some(token) = token else { return self.open(k, line, query) };
        let Some(link) = self.link(token) else { return self.open(k, line, query) };
        if !link.push(query) {
            self.failed.push((k, Fault::Blocked));
        } else if !std::mem::replace(&mut link.is_dirty, true) {
            self.dirty.push(token);
        }
        Ok(())
    }

    /// Opens a connection with its first query.
    fn open(&mut self, k: u64, line: usize, query: &[u8]) -> io::Result<()> {
        if self.places.len() - self.free.len() >= self.capacity {
            self.free_oldest()?;
        }
        let mut encoder = Encoder::new(limits::STREAM_BUFFER);
        link::push(&mut encoder, query);
        let opened = self.plan.now();
        let number = if self.is_single { k } else { line as u64 };
        let (connection, in_syn) = match self.connect(number, encoder.pending()) {
            Ok(opened) => opened,
            Err(error) if Fault::is_of_server(&error) => {
                let fault = Fault::of(&error);
                self.streams.opened += 1;
                self.streams.refused += u64::from(fault == Fault::Refused);
                self.failed.push((k, fault));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        encoder.advance(in_syn);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.uses.push(0);
            self.places.len() - 1
        });
        let token = self.token(place);
        self.waiter.add(&connection, token).inspect_err(|_| self.free.push(place))?;
        let handed = (in_syn > 0).then_some(opened);
        let (encoder, decoder, phase) = (encoder, Decoder::new(), Phase::Opening);
        let (received, is_dirty, first) = (0, false, k);
        self.places[place] = Some(Link {
            connection,
            phase,
            line,
            first,
            opened,
            handed,
            in_syn,
            received,
            is_dirty,
            encoder,
            decoder,
        });
        self.streams.opened += 1;
        match self.plan.order.transport {
            Transport::Tfo if in_syn > 0 => self.streams.warm += 1,
            Transport::Tfo => self.streams.cold += 1,
            _ => {}
        }
        if self.is_single {
            self.ages.push_back((opened, token));
        } else {
            self.lines[line] = Some(token);
        }
        Ok(())
    }

    /// Begins a connection from a free local port. Returns it with the octets of `first` that left in the SYN.
    fn connect(&mut self, number: u64, first: &[u8]) -> io::Result<(Connection, usize)> {
        let server = self.plan.order.server;
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for _ in 0..limits::PORT_TRIES {
            let from = self.local_ports.next(number);
            let opened = match self.plan.order.transport {
                Transport::Tfo => Connection::open_fast(from, server, first),
                _ => Connection::open(from, server).map(|connection| (connection, 0)),
            };
            match opened {
                Ok(opened) => return Ok(opened),
                Err(error) => match error.kind() {
                    io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => refused = error,
                    _ => return Err(error),
                },
            }
        }
        Err(refused)
    }

    /// Gives up the oldest connection if its query has timed out. It was kept for a late reply alone.
    fn free_oldest(&mut self) -> io::Result<()> {
        let now = self.plan.now();
        while let Some((opened, token)) = self.ages.front().copied() {
            let is_alive = self.link(token).is_some();
            if is_alive && opened + self.plan.timeout + limits::TIMEOUT_GRACE_NS >= now {
                break;
            }
            self.ages.pop_front();
            if is_alive {
                self.give_up(token, now);
                return Ok(());
            }
        }
        Err(io::Error::from_raw_os_error(limits::TOO_MANY_FILES))
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
        if link.phase == Phase::Opening {
            if event.over
                && let Some(error) = link.connection.error()
            {
                let fault = Fault::of(&error);
                self.streams.refused += u64::from(fault == Fault::Refused);
                self.streams.timed_out += u64::from(fault == Fault::Handshake);
                self.fail_all(link, fault, now);
                return Fate::Over;
            }
            link.phase = Phase::Open;
            self.streams.established += 1;
            self.streams.handshake.record(now - link.opened);
        }
        let written = if event.writable { link.flush(now) } else { Ok(()) };
        // What came before the failure can still be read.
        match self.read(link, event).and_then(|ended| written.map(|()| ended)) {
            Err(error) => {
                if link.phase == Phase::Open {
                    self.streams.reset += 1;
                    self.fail_all(link, Fault::of(&error), self.plan.now());
                }
                Fate::Over
            }
            Ok(false) if event.over => Fate::Over,
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
            self.enter(link, octets);
            if octets < self.buffer.len() && !event.ended {
                return Ok(false);
            }
        }
        self.unread.push(event.token);
        Ok(false)
    }

    /// Enters the replies among the first octets of the buffer.
    fn enter(&mut self, link: &mut Link, octets: usize) {
        let (plan, lane, now) = (self.plan, self.lane, self.plan.now());
        let sent = lane.sent.get();
        let end = if self.is_single { link.first + 1 } else { sent };
        let received = Received { plan, lane, port: link.line, now, sent };
        let (mut completed, before) = (Completed::default(), (self.stats.valid, self.stats.wrong));
        let mut input = &self.buffer[..octets];
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

    /// Ends all queries of a connection that have no reply.
    fn fail_all(&mut self, link: &Link, fault: Fault, now: u64) {
        if self.is_single {
            return self.fail(link.first, fault, now);
        }
        // Every L-th query of the lane is one of this line.
        let lines = self.lines.len() as u64;
        let sent = self.lane.sent.get();
        let forgotten = sent.saturating_sub(self.lane.outstanding.capacity()).saturating_sub(link.first);
        let first = link.first + forgotten.div_ceil(lines) * lines;
        for k in (first..sent).step_by(self.lines.len()) {
            self.fail(k, fault, now);
        }
    }

    /// Ends a query without a reply.
    fn fail(&mut self, k: u64, fault: Fault, now: u64) {
        let slots = &self.lane.outstanding;
        let Some(slot) = slots.get(k).filter(|slot| slot.state == State::Outstanding) else { return };
        if !slots.complete(k, slot.sent, true) {
            return;
        }
        let measured = k.checked_sub(self.lane.first_measured.get());
        if fault != Fault::Refused {
            self.lane.failed.add(1);
            if measured.is_some() {
                self.streams.count_lost(fault);
            }
            return;
        }
        self.lane.refused.add(1);
        if let Some(query) = measured {
            self.stats.refused += 1;
            self.stats.ended(0, query, now, Ending::Refused);
        }
    }

    /// Ends a connection that is not over by itself.
    fn give_up(&mut self, token: u64, now: u64) {
        let Some(place) = self.place(token) else { return };
        let Some(link) = self.places[place].take() else { return };
        if link.phase == Phase::Opening {
            self.streams.timed_out += 1;
            self.fail_all(&link, Fault::Handshake, now);
        } else {
            self.streams.aborted += 1;
        }
        self.finish(place, link, true);
    }

    /// Counts the packets of a connection, closes it and frees its place.
    fn finish(&mut self, place: usize, link: Link, abort: bool) {
        self.release_line(link.line, self.token(place));
        // RFC 791 section 3.1, RFC 8200 section 3.
        let ip = if self.plan.order.server.is_ipv6() { 40 } else { 20 };
        // RFC 7413 section 2.1 and 4.1.1: the option with Linux's cookie of 8 octets, or without one, padded to words.
        let option = match self.plan.order.transport {
            Transport::Tfo if link.in_syn > 0 => 12,
            Transport::Tfo => 4,
            _ => 0,
        };
        if let Some(mut info) = link.connection.info() {
            if abort && link.phase != Phase::Opening {
                // The reset.
                info.packets_sent += 1;
            }
            self.streams.count_packets(&info, ip, option, link.received);
        }
        if abort {
            link.connection.abort();
        }
        self.uses[place] = self.uses[place].wrapping_add(1);
        self.free.push(place);
    }

    /// The next query of a line opens a new connection.
    fn release_line(&mut self, line: usize, token: u64) {
        if !self.is_single && self.lines[line] == Some(token) {
            self.lines[line] = None;
        }
    }
}

impl Transmit for Links<'_> {
    const QUERIES_PER_POLL: usize = limits::STREAM_QUERIES_PER_POLL;

    fn transmit(&mut self, batch: &Batch<'_>) -> (usize, Option<io::Error>) {
        // A group has one query over TCP, so a batch has one.
        match self.send(batch.k, batch.port, &batch.queries[..batch.octets(1)]) {
            Ok(()) => (1, None),
            Err(error) => (0, Some(error)),
        }
    }
}
