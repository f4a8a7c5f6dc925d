//! The connections of one thread: a query goes to the open connection of its line, or begins one. Queries that come during
//! the handshake wait for its end. Tasks do the I/O (`https`, `quic`); their news are entered here.

use crate::lane::Lane;
use crate::limits;
use crate::multiplexed::event::{Established, Event, Failure, Lost, Reply, Reporter};
use crate::multiplexed::handle::{Handle, Query};
use crate::multiplexed::https;
use crate::multiplexed::ports::Ports;
use crate::multiplexed::quic;
use crate::outstanding::State;
use crate::plan::Plan;
use crate::query_times::Words;
use crate::receiver::{Completed, Received};
use crate::sender::{Batch, Transmit};
use crate::stream::{Fault, StreamStats, capacity, fail_query};
use crate::stream_order::lines;
use crate::thread_stats::ThreadStats;
use crate::tls_client::TlsClient;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The connections of a thread.
pub struct Links<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
    reporter: Reporter,
    tls: TlsClient,
    ports: Ports,
    /// The connections by token.
    links: HashMap<u64, Link>,
    next_token: u64,
    /// Token of the connection of each line, with many queries on a connection.
    lines: Vec<Option<u64>>,
    /// Opening times and tokens, oldest first.
    ages: VecDeque<(u64, u64)>,
    /// Queries that failed while they were sent.
    failed: Vec<(u64, Fault)>,
    is_single: bool,
    capacity: usize,
    stats: ThreadStats,
    streams: StreamStats,
}

/// A connection.
struct Link {
    line: usize,
    opened: u64,
    /// Time at which its first query was handed to the transport, in nanoseconds since the origin of the plan; `None` before. The time
    /// of its answer counts from here.
    handed: Option<u64>,
    is_established: bool,
    /// The way to ask, once there is one and until the tester closes the connection.
    handle: Option<Handle>,
    /// Queries that wait for the end of the handshake.
    waiting: Vec<Query>,
    /// Streams of queries that have not ended.
    active: usize,
    /// True if its only query has ended.
    is_done: bool,
    /// True if its first query left as early data.
    is_early: bool,
    task: AbortHandle,
}

impl<'a> Links<'a> {
    /// No connections yet.
    ///
    /// # Errors
    ///
    /// As `Ports::new`.
    pub fn new(plan: &'a Plan, lane: &'a Lane, tls: TlsClient, reporter: Reporter) -> io::Result<Links<'a>> {
        let mut stats = ThreadStats::new(plan);
        if plan.query_times {
            stats.times = vec![Words::new(plan, lane.index)];
        }
        let ports = Ports::new(plan, lane, &tls)?;
        Ok(Links {
            plan,
            lane,
            reporter,
            tls,
            ports,
            links: HashMap::new(),
            next_token: 0,
            lines: vec![None; lines(&plan.order).unwrap_or(0)],
            ages: VecDeque::new(),
            failed: Vec::new(),
            is_single: plan.order.has_connection_per_query(),
            capacity: capacity(plan),
            stats,
            streams: StreamStats::new(),
        })
    }

    /// The reason why the certificate of the server is refused. The load ends then.
    pub fn refusal(&self) -> Option<&String> {
        self.tls.checks().refusal.get()
    }

    /// True if no connection is left.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The counters.
    pub fn into_reports(mut self) -> (ThreadStats, StreamStats) {
        self.streams.tickets = self.tls.tickets();
        (self.stats, self.streams)
    }

    /// Ends the queries that failed while they were sent, and gives up old connections. `now`: nanoseconds since the origin of the
    /// plan.
    pub fn settle(&mut self, now: u64) {
        for (k, fault) in std::mem::take(&mut self.failed) {
            self.fail(k, fault, None, now);
        }
        while let Some((opened, token)) = self.ages.front().copied()
            && opened + self.plan.timeout * limits::LATE_TIMEOUTS < now
        {
            self.ages.pop_front();
            let is_old = |link: &Link| self.is_single || !link.is_established;
            if self.links.get(&token).is_some_and(is_old) {
                self.give_up(token);
            }
        }
    }

    /// Closes all connections.
    pub fn close(&mut self) {
        let opening: Vec<u64> =
            self.links.iter().filter(|(_, link)| !link.is_established).map(|(token, _)| *token).collect();
        opening.into_iter().for_each(|token| self.give_up(token));
        self.links.values_mut().filter_map(|link| link.handle.take()).for_each(Handle::close);
    }

    /// Ends the connections that are not over although they were closed.
    pub fn abort(&mut self) {
        let tokens: Vec<u64> = self.links.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.give_up(token));
    }

    /// Enters news.
    pub fn enter(&mut self, event: Event) {
        match event {
            Event::Established(token, established, handle) => self.establish(token, established, handle),
            Event::Refused(token, failure) => self.refuse(token, failure),
            Event::Reply(token, reply) => self.reply(token, &reply),
            Event::Failed(lost) => self.lose(&lost),
            Event::Waited(count) => self.streams.waited_for_stream += count,
            Event::Over(token, fault) => self.finish(token, fault),
            Event::Segments(info, received) => {
                // RFC 791 section 3.1, RFC 8200 section 3.
                let ip = if self.plan.order.server.is_ipv6() { 40 } else { 20 };
                self.streams.count_packets(&info, ip, 0, received);
            }
            Event::Datagrams(sent, received) => {
                // The header of UDP has 8 octets more.
                let headers = if self.plan.order.server.is_ipv6() { 48 } else { 28 };
                self.streams.count_datagrams(sent, received, headers);
            }
        }
    }

    /// Sends a query on the connection of its line, or opens one.
    fn send(&mut self, k: u64, line: usize, octets: Vec<u8>) -> io::Result<()> {
        let token = if self.is_single { None } else { self.lines[line] };
        let Some(token) = token else { return self.open(k, line, octets) };
        let query = Query { token, k, octets };
        let Some(link) = self.links.get_mut(&token) else { return self.open(k, line, query.octets) };
        if link.handle.is_some() {
            return match self.ask(query) {
                None => Ok(()),
                // The server has closed the connection, and its last streams are still open.
                Some(query) => self.open(k, line, query.octets),
            };
        }
        if link.waiting.len() < limits::WAITING_QUERIES {
            link.waiting.push(query);
        } else {
            self.failed.push((k, Fault::Handshake));
        }
        Ok(())
    }

    /// Hands a query to its connection. Returns it if the connection takes no more.
    fn ask(&mut self, query: Query) -> Option<Query> {
        let link = self.links.get_mut(&query.token)?;
        let limit = Duration::from_nanos(self.plan.timeout * limits::LATE_TIMEOUTS);
        let waits = match &link.handle {
            None => return Some(query),
            Some(handle) => handle.allowed_streams().is_some_and(|allowed| link.active >= allowed),
        };
        match (&link.handle, &self.plan.requests) {
            (Some(Handle::Https(requests)), Some(form)) => {
                if !https::ask(requests, form, &query, limit, &self.reporter) {
                    return Some(query);
                }
            }
            (Some(Handle::Quic(connection)), _) => quic::ask(connection, query, limit, &self.reporter),
            _ => return Some(query),
        }
        link.handed.get_or_insert_with(|| self.plan.now());
        link.active += 1;
        self.streams.waited_for_stream += u64::from(waits);
        None
    }

    /// Opens a connection for its first query.
    fn open(&mut self, k: u64, line: usize, octets: Vec<u8>) -> io::Result<()> {
        if self.links.len() >= self.capacity {
            return Err(io::Error::from_raw_os_error(limits::TOO_MANY_FILES));
        }
        let (token, opened) = (self.next_token, self.plan.now());
        let number = if self.is_single { k } else { line as u64 };
        let (task, handle) =
            match self.ports.begin(self.plan, &self.tls, number, token, self.reporter.clone()) {
                Ok(begun) => begun,
                Err(error) if Fault::is_of_server(&error) => {
                    let fault = Fault::of(&error);
                    self.streams.opened += 1;
                    self.streams.refused += u64::from(fault == Fault::Refused);
                    self.failed.push((k, fault));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
        self.next_token += 1;
        self.streams.opened += 1;
        self.ages.push_back((opened, token));
        if !self.is_single {
            self.lines[line] = Some(token);
        }
        let query = Query { token, k, octets };
        let (handed, waiting) = (None, Vec::new());
        let (is_established, is_done, is_early, active) = (false, false, handle.is_some(), 0);
        let link =
            Link { line, opened, handed, is_established, handle, waiting, active, is_done, is_early, task };
        self.links.insert(token, link);
        // Early data leaves at once.
        if let Some(query) = self.ask(query)
            && let Some(link) = self.links.get_mut(&token)
        {
            link.waiting.push(query);
        }
        Ok(())
    }

    /// Opens a connection for queries: its handshake is over.
    fn establish(&mut self, token: u64, established: Established, handle: Option<Handle>) {
        let Some(link) = self.links.get_mut(&token) else { return };
        link.is_established = true;
        link.handle = link.handle.take().or(handle);
        self.streams.established += 1;
        let time = established.at.saturating_sub(link.opened);
        self.streams.handshake.record(time);
        // A certificate was checked in each full handshake, and in no other one. QUIC tells no other way whether a session was
        // resumed.
        let is_resumed = self.tls.checks().accepted.load(Ordering::Relaxed) <= self.streams.full;
        self.streams.count_handshake(self.plan, established.at, is_resumed, time);
        if let Some(connected) = established.connected {
            self.streams.tls_handshake.record(established.at.saturating_sub(connected));
        }
        self.streams.early_data_sent += u64::from(established.early_data.is_some());
        self.streams.early_data_accepted += u64::from(established.early_data == Some(true));
        for query in std::mem::take(&mut link.waiting) {
            if let Some(query) = self.ask(query) {
                self.fail(query.k, Fault::Closed, None, self.plan.now());
            }
        }
        // The reply to early data can come before the end of the handshake.
        self.close_single(token);
    }

    /// Ends the queries of a connection whose handshake failed.
    #[cold]
    fn refuse(&mut self, token: u64, failure: Failure) {
        let Failure { fault, reason } = failure;
        self.streams.refused += u64::from(fault == Fault::Refused);
        self.streams.timed_out += u64::from(fault == Fault::Handshake);
        self.streams.closed_by_server += u64::from(fault == Fault::Closed);
        self.streams.reset += u64::from(fault == Fault::Reset);
        if let Some(reason) = reason {
            *self.streams.tls_failed.entry(reason).or_default() += 1;
        }
        self.remove(token, fault);
    }

    /// Enters a reply.
    fn reply(&mut self, token: u64, reply: &Reply) {
        let (plan, lane) = (self.plan, self.lane);
        let (k, message) = (reply.k, &reply.message[..]);
        self.stats.messages += 1;
        self.stats.octets += message.len() as u64;
        let slot = lane.outstanding.get(k).filter(|slot| slot.state == State::Outstanding);
        let received = Received { plan, lane, port: 0, now: reply.at, sent: lane.sent.get() };
        let has_id = message.first_chunk::<2>() == Some(&[0, 0]);
        match slot {
            Some(slot) if has_id && plan.asks(message, slot.address) => {
                let (mut completed, before) = (Completed::default(), (self.stats.valid, self.stats.wrong));
                received.reply(k, slot, message, &mut self.stats, &mut completed);
                lane.in_time.add(completed.in_time);
                lane.late.add(completed.late);
                lane.valid.add(self.stats.valid - before.0);
                lane.invalid.add(self.stats.wrong - before.1);
                if let Some(link) = self.links.get(&token).filter(|_| self.is_single) {
                    self.streams.answer.record(reply.at.saturating_sub(link.handed.unwrap_or(link.opened)));
                }
            }
            // No other message comes on the stream.
            Some(_) => {
                received.mismatch(k, has_id, message, &mut self.stats);
                self.fail(k, Fault::Stream, None, reply.at);
            }
            None => self.stats.unsolicited += 1,
        }
        self.end_stream(token);
    }

    /// Enters a query that ended without a reply.
    #[cold]
    fn lose(&mut self, lost: &Lost) {
        if let Some(fault) = lost.fault {
            self.fail(lost.k, fault, lost.status, self.plan.now());
        }
        self.end_stream(lost.token);
    }

    /// Frees the stream of a query. A connection with a single query is closed.
    fn end_stream(&mut self, token: u64) {
        let Some(link) = self.links.get_mut(&token) else { return };
        link.active = link.active.saturating_sub(1);
        link.is_done = self.is_single;
        self.close_single(token);
    }

    /// Closes a connection whose only query has ended, once its handshake is over. The reply to early data comes together with the
    /// end of the handshake, and the tickets one round trip later.
    fn close_single(&mut self, token: u64) {
        let Some(link) = self.links.get_mut(&token) else { return };
        if link.is_done && link.is_established {
            match link.handle.take() {
                Some(handle) if link.is_early => handle.close_later(),
                handle => handle.into_iter().for_each(Handle::close),
            }
        }
    }

    /// Counts a connection that is over. Each of its streams reports its own end.
    fn finish(&mut self, token: u64, fault: Fault) {
        // A connection without a handle was closed by the tester.
        if self.links.get(&token).is_some_and(|link| link.handle.is_some()) {
            self.streams.reset += u64::from(fault == Fault::Reset);
            self.streams.closed_by_server += u64::from(fault == Fault::Closed);
        }
        self.remove(token, fault);
    }

    /// Ends a connection that is not over by itself.
    fn give_up(&mut self, token: u64) {
        let Some(link) = self.links.get(&token) else { return };
        link.task.abort();
        let counter =
            if link.is_established { &mut self.streams.aborted } else { &mut self.streams.timed_out };
        *counter += 1;
        self.remove(token, Fault::Handshake);
    }

    /// Removes a connection. The next query of its line opens another one.
    fn remove(&mut self, token: u64, fault: Fault) {
        let Some(mut link) = self.links.remove(&token) else { return };
        if self.lines.get(link.line) == Some(&Some(token)) {
            self.lines[link.line] = None;
        }
        for query in std::mem::take(&mut link.waiting) {
            self.fail(query.k, fault, None, self.plan.now());
        }
        if let Some(handle) = link.handle.take() {
            handle.close();
        }
    }

    /// Ends a query without a reply.
    #[cold]
    fn fail(&mut self, k: u64, fault: Fault, status: Option<u16>, now: u64) {
        let is_measured = fail_query(self.lane, &mut self.stats, &mut self.streams, k, fault, now);
        if let Some(status) = status.filter(|_| is_measured) {
            *self.streams.http_statuses.entry(status).or_default() += 1;
        }
    }
}

impl Transmit for Links<'_> {
    const QUERIES_PER_POLL: usize = limits::STREAM_QUERIES_PER_POLL;

    fn transmit(&mut self, batch: &Batch<'_>) -> (usize, Option<io::Error>) {
        // A group has one query over connections, so a batch has one.
        let mut query = batch.queries[..batch.octets(1)].to_vec();
        // The stream tells queries apart: the ID is 0 (RFC 8484 section 4.1, RFC 9250 section 4.2.1).
        query[..2].fill(0);
        match self.send(batch.k, batch.port, query) {
            Ok(()) => (1, None),
            Err(error) => (0, Some(error)),
        }
    }
}
