//! Receiving half of a thread: it matches every message to its query by socket, ID and question, and checks the whole
//! reply.
//!
//! Three kinds of messages do not complete a query: a message from another address, a message with an ID that is not
//! outstanding, and a message with another question. The query keeps waiting, as it would in a resolver.

use crate::judge::TC;
use crate::lane::Lane;
use crate::limits;
use crate::names::HEADER;
use crate::outstanding::{Slot, State};
use crate::plan::Plan;
use crate::query_times::{Ending, Words};
use crate::reason::Reason;
use crate::sockets::{Arrival, ReplyReceiver};
use crate::thread_stats::ThreadStats;

/// The receiving half of a thread.
pub struct Receiver<'a> {
    plan: &'a Plan,
    reply_receiver: ReplyReceiver,
    backlog: Backlog,
    /// Counters and latencies.
    pub stats: ThreadStats,
}

/// Number of queries that were completed, for the lane.
#[derive(Default)]
pub struct Completed {
    /// By a reply in time.
    pub in_time: u64,
    /// By a late reply.
    pub late: u64,
}

impl<'a> Receiver<'a> {
    /// A receiver for `ports` ports of any lanes of the load.
    pub fn new(plan: &'a Plan, ports: usize) -> Receiver<'a> {
        let reply_receiver = ReplyReceiver::new(plan.order.server);
        Receiver { plan, reply_receiver, backlog: Backlog::new(ports), stats: ThreadStats::new(plan) }
    }

    /// Records the times of the queries of these lanes, if the load asks for them.
    pub fn with_times(mut self, lanes: &[&Lane]) -> Receiver<'a> {
        if self.plan.query_times {
            self.stats.times = lanes.iter().map(|lane| Words::new(self.plan, lane.index)).collect();
        }
        self
    }

    /// Longest time, in nanoseconds, that messages waited at a port before the port was seen empty. Messages of that
    /// time may wrongly seem late.
    pub fn longest_backlog(&self) -> u64 {
        self.backlog.longest
    }

    /// Receives the waiting messages at a port of a lane, the `place`-th port of this receiver; returns their number.
    pub fn receive(&mut self, lane: &Lane, port: usize, place: usize) -> usize {
        let mut count = 0;
        let Some(socket) = lane.ports.get(port) else { return 0 };
        for round in 1..=limits::RECEIVES_PER_POLL {
            let more = self.reply_receiver.receive(socket);
            let (plan, stats) = (self.plan, &mut self.stats);
            let (now, before) = (plan.now(), (stats.valid, stats.wrong));
            // Read this after the receive: a reply cannot come before its query was counted as sent.
            let sent = lane.sent.get();
            let mut completed = Completed::default();
            count += self.reply_receiver.visit(|arrival| {
                Received { plan, lane, port, now, sent }.enter(arrival, stats, &mut completed)
            });
            lane.in_time.add(completed.in_time);
            lane.late.add(completed.late);
            lane.valid.add(self.stats.valid - before.0);
            lane.invalid.add(self.stats.wrong - before.1);
            if !more || round == limits::RECEIVES_PER_POLL {
                self.backlog.seen(place, !more, now);
            }
            if !more {
                break;
            }
        }
        count
    }

    /// Reads the ICMP errors of a port of a lane. The queries of a refused datagram are over.
    #[cold]
    pub fn receive_errors(&mut self, lane: &Lane, port: usize) {
        let Some(socket) = lane.ports.get(port) else { return };
        let mut quoted = [0; limits::QUOTED];
        for _ in 0..limits::ERRORS_PER_POLL {
            let Some(error) = socket.next_error(&mut quoted) else { return };
            if error.is_refused {
                let received =
                    Received { plan: self.plan, lane, port, now: self.plan.now(), sent: lane.sent.get() };
                lane.refused.add(received.refused(&quoted[..error.octets], &mut self.stats));
            }
        }
    }
}

/// Times since which ports were not seen empty. A thread that is too slow leaves replies waiting in socket buffers,
/// which can hold several seconds of replies before any is dropped.
struct Backlog {
    /// One entry per port; u64::MAX means that the port was seen empty.
    since: Vec<u64>,
    longest: u64,
}

impl Backlog {
    fn new(ports: usize) -> Backlog {
        Backlog { since: vec![u64::MAX; ports], longest: 0 }
    }

    /// A port was read as far as one poll allows, and `empty` tells if it was empty then.
    #[inline]
    fn seen(&mut self, place: usize, empty: bool, now: u64) {
        let Some(since) = self.since.get_mut(place) else { return };
        self.longest = self.longest.max(now.saturating_sub(*since));
        *since = if empty { u64::MAX } else { now.min(*since) };
    }
}

/// Origin and time of a message.
pub struct Received<'a> {
    /// The load.
    pub plan: &'a Plan,
    /// The lane of the port.
    pub lane: &'a Lane,
    /// Index of the port.
    pub port: usize,
    /// Time of arrival, in nanoseconds since the origin of the plan.
    pub now: u64,
    /// Number of queries that were sent by then.
    pub sent: u64,
}

impl Received<'_> {
    #[inline]
    fn enter(&self, arrival: Arrival<'_>, stats: &mut ThreadStats, completed: &mut Completed) {
        stats.messages += 1;
        stats.octets += arrival.message.len() as u64;
        if !arrival.from_server {
            stats.wrong_source += 1;
            return;
        }
        let message = arrival.message;
        let Some((id, _)) = message.split_first_chunk::<2>() else {
            stats.unsolicited += 1;
            return;
        };
        let id = u16::from_be_bytes(*id);
        let slots = &self.lane.outstanding;
        let mut waiting = None;
        let candidates = self.lane.query_ids.candidates(self.port, id, self.sent);
        for k in candidates.take_while(|k| self.sent - k <= slots.capacity()) {
            let Some(slot) = slots.get(k) else { continue };
            if slot.state == State::Unsent {
                continue;
            }
            if self.plan.asks(message, slot.address) {
                return self.reply(k, slot, message, stats, completed);
            }
            if waiting.is_none() && slot.state == State::Outstanding {
                waiting = Some(k);
            }
        }
        self.unmatched(message, waiting, stats);
    }

    /// Handles a message with the ID and the question of query `k`. Inlined for UDP and for TCP, as a call would cost 1 % of the
    /// instructions of a query over UDP.
    #[inline(always)]
    pub fn reply(
        &self,
        k: u64,
        slot: Slot,
        message: &[u8],
        stats: &mut ThreadStats,
        completed: &mut Completed,
    ) {
        let first = self.lane.first_measured.get();
        let measured = k >= first;
        if slot.state != State::Outstanding {
            stats.duplicates += u64::from(measured);
            return;
        }
        let actual = self.now.saturating_sub(slot.sent);
        let is_late = actual > self.plan.timeout;
        if !self.lane.outstanding.complete(k, slot.sent, is_late) {
            stats.unsolicited += 1;
            return;
        }
        let verdict = self.plan.judge(message, slot.address);
        if is_late {
            completed.late += 1;
        } else {
            completed.in_time += 1;
            if let Some(pool) = &self.lane.cached_names
                && !slot.again
                && verdict.is_ok()
            {
                pool.add(slot.address, self.now);
            }
        }
        if !measured {
            return;
        }
        let intended = self.plan.intended(self.lane.index, k, slot.sent);
        if verdict.is_ok() {
            stats.latency(self.now.saturating_sub(intended), actual);
        }
        let second = self.plan.second(intended);
        if !is_late {
            // The header is complete: the question behind it was compared.
            stats.rcodes[usize::from(message[3] & 0x0f)] += 1;
            stats.truncated += u64::from(verdict.is_ok() && message[2] & TC != 0);
        }
        let ending = match verdict {
            _ if is_late => Ending::Late,
            Ok(()) => Ending::Valid,
            Err(reason) => Ending::Invalid(reason),
        };
        stats.ended(self.lane.place, k - first, self.now, ending);
        match verdict {
            _ if is_late => {
                stats.late += 1;
                stats.second(second).late += 1;
            }
            Ok(()) => {
                stats.valid += 1;
                stats.second(second).valid += 1;
            }
            Err(reason) => {
                stats.wrong += 1;
                stats.count_invalid(reason, self.now, slot.address, message);
                stats.second(second).invalid += 1;
            }
        }
    }

    /// Completes the queries of a datagram that the server's host refused, and returns their number. The datagram begins with
    /// one query. More may have left in the same send: the kernel of the server's host then saw one large datagram, and
    /// reports it once.
    fn refused(&self, datagram: &[u8], stats: &mut ThreadStats) -> u64 {
        let Some(id) = datagram.first_chunk::<2>() else { return 0 };
        let slots = &self.lane.outstanding;
        let asks = |k: &u64| slots.get(*k).is_some_and(|slot| self.plan.asks(datagram, slot.address));
        let candidates = self.lane.query_ids.candidates(self.port, u16::from_be_bytes(*id), self.sent);
        let mut candidates = candidates.take_while(|k| self.sent - k <= slots.capacity());
        let Some(first) = candidates.find(asks) else { return 0 };
        let Some(stamp) = slots.get(first).map(|slot| slot.sent) else { return 0 };
        let (_, _, group) = self.lane.query_ids.locate(first);
        let is_of_it = |k: &u64| slots.get(*k).is_some_and(|slot| slot.sent == stamp);
        let completed = (first..self.sent.min(first + group)).take_while(is_of_it);
        let mut count = 0;
        for k in completed.filter(|k| slots.complete(*k, stamp, true)) {
            count += 1;
            if let Some(query) = k.checked_sub(self.lane.first_measured.get()) {
                stats.refused += 1;
                stats.ended(self.lane.place, query, self.now, Ending::Refused);
            }
        }
        count
    }

    /// Handles a message that completes no query. `waiting` is an outstanding query with its ID.
    #[cold]
    fn unmatched(&self, message: &[u8], waiting: Option<u64>, stats: &mut ThreadStats) {
        match waiting.or_else(|| self.outstanding_query(message)) {
            Some(k) => self.mismatch(k, waiting.is_some(), message, stats),
            None => stats.unsolicited += 1,
        }
    }

    /// Counts a message that has the ID or the question of the outstanding query `k`, and not both.
    #[cold]
    pub fn mismatch(&self, k: u64, has_id: bool, message: &[u8], stats: &mut ThreadStats) {
        if k < self.lane.first_measured.get() {
            return;
        }
        let reason = match has_id {
            true if message.len() < HEADER => Reason::Header,
            true if message[4..6] != [0, 1] => Reason::QuestionCount,
            true => Reason::Question,
            false => Reason::StaleId,
        };
        let name = self.lane.outstanding.get(k).map_or([0; 4], |slot| slot.address);
        stats.count_invalid(reason, self.now, name, message);
    }

    /// The outstanding query at this port that has the question of a message. Unavailable if names are queried again or come
    /// from a list, because the name then does not identify the query.
    pub fn outstanding_query(&self, message: &[u8]) -> Option<u64> {
        let (plan, lane) = (self.plan, self.lane);
        if plan.list.is_some() {
            return None;
        }
        let address = plan.template.asked(message).filter(|_| lane.cached_names.is_none())?;
        let number = plan.order.names.number(address)?.checked_sub(plan.order.first_name)?;
        let k = number / plan.threads;
        let is_out = number % plan.threads == lane.index
            && k < self.sent
            && lane.query_ids.locate(k).0 == self.port
            && lane.outstanding.get(k).is_some_and(|slot| slot.state == State::Outstanding);
        is_out.then_some(k)
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
