//! Sending half of a thread. Each poll sends the queries that are due: those of one port in one system call, with a
//! timestamp taken right before it. An open loop follows its schedule independently of the replies; a query that
//! missed its time is sent at once.

use crate::cached_names::Cursor;
use crate::lane::Lane;
use crate::limits;
use crate::names::Template;
use crate::outstanding::State;
use crate::plan::{Plan, Timing};
use crate::query_list::QueryList;
use crate::query_times::Words;
use crate::random::mix;
use crate::sockets::QuerySender;
use crate::timeline::Timeline;
use std::io;

/// Result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More queries are due.
    Busy,
    /// No query is due before this instant, unless a reply comes.
    Until(u64),
    /// The load is over.
    Done,
}

/// Written queries that leave together. All have one port.
pub struct Batch<'a> {
    /// Number of the first query.
    pub k: u64,
    /// Index of the port.
    pub port: usize,
    /// The queries, one after the other.
    pub queries: &'a [u8],
    /// Octets of each.
    pub lengths: Lengths<'a>,
    /// Number of the queries.
    pub count: usize,
}

/// Octets of the queries of a batch.
#[derive(Clone, Copy)]
pub enum Lengths<'a> {
    /// All have this length.
    Equal(usize),
    /// Each has its own.
    Listed(&'a [usize]),
}

impl Batch<'_> {
    /// Octets of the first `count` queries.
    #[inline]
    pub fn octets(&self, count: usize) -> usize {
        match self.lengths {
            Lengths::Equal(length) => count * length,
            Lengths::Listed(lengths) => lengths[..count].iter().sum(),
        }
    }
}

/// The way of written queries to the kernel.
pub trait Transmit {
    /// Queries in one poll, so that a late sender still receives.
    const QUERIES_PER_POLL: usize;

    /// Hands queries to the kernel. Returns the number that it took, and the error that stopped it.
    fn transmit(&mut self, batch: &Batch<'_>) -> (usize, Option<io::Error>);
}

/// The sending half of a thread.
pub struct Sender<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
    /// Buffers for the queries of one send, their names, and the lengths of listed queries (computed ones have one length).
    queries: Vec<u8>,
    asked: Vec<([u8; 4], bool)>,
    lengths: Vec<usize>,
    /// Number of the next query.
    k: u64,
    /// Number of the next name that was not queried before, counted within the thread.
    fresh: u64,
    cursor: Cursor,
    seed: u64,
    /// Closed loop: all queries before this one are over, and how many of them by timeout.
    over_before: u64,
    expired: u64,
    /// Record of the queries sent.
    pub timeline: Timeline,
}

impl<'a> Sender<'a> {
    /// The sender of a lane.
    pub fn new(plan: &'a Plan, lane: &'a Lane) -> Sender<'a> {
        let size = if plan.list.is_some() { limits::LIST_QUERY } else { plan.template.length() };
        let most = QuerySender::max_messages(size).min(usize::from(plan.order.lanes.group));
        let mut queries = vec![0; size * most];
        if plan.list.is_none() {
            queries.chunks_exact_mut(size).for_each(|query| plan.template.prepare(query));
        }
        Sender {
            plan,
            lane,
            queries,
            asked: Vec::with_capacity(most),
            lengths: Vec::with_capacity(most),
            k: 0,
            fresh: 0,
            cursor: Cursor::default(),
            seed: mix(plan.order.seed ^ 0xa5a5_5a5a),
            over_before: 0,
            expired: 0,
            timeline: Timeline::new(plan).with_times(Words::new(plan, lane.index)),
        }
    }

    /// Sends the queries that are due, up to a number. Its parts are always inlined: it exists for UDP and for TCP, and the compiler
    /// would share them between the two, which costs 3 % of the instructions of a query over UDP.
    pub fn poll<T: Transmit>(&mut self, way: &mut T) -> Step {
        let mut left = T::QUERIES_PER_POLL;
        while left > 0 {
            let now = self.plan.now();
            match self.due(now, left) {
                Err(Step::Done) => return self.end(now),
                Err(step) => return step,
                Ok(count) => {
                    let count = self.write(count, now);
                    if count == 0 {
                        self.timeline.names_used_up = true;
                        return self.end(now);
                    }
                    self.send(count, way);
                    left -= count;
                }
            }
        }
        Step::Busy
    }

    /// Stops sending at `now`, in nanoseconds since the origin of the plan.
    pub fn end(&mut self, now: u64) -> Step {
        if self.lane.ended.get() == u64::MAX {
            self.timeline.fresh = self.fresh;
            self.lane.ended.set(now);
        }
        Step::Done
    }

    /// Number of queries that may be sent now from the next port.
    #[inline(always)]
    fn due(&mut self, now: u64, most: usize) -> Result<usize, Step> {
        let (_, _, group) = self.lane.query_ids.locate(self.k);
        let most = (self.asked.capacity().min(most) as u64).min(group);
        let count = match self.plan.timing {
            Timing::Open { schedule, total, .. } => {
                let (lane, start) = (self.lane.index, self.plan.start);
                let due = |k| start + schedule.due(self.plan.number(lane, k));
                let end = self.plan.share_of(lane, total);
                if self.k >= end {
                    return Err(Step::Done);
                }
                if due(self.k) > now {
                    return Err(Step::Until(due(self.k)));
                }
                let most = most.min(end - self.k);
                (1..most).find(|count| due(self.k + count) > now).unwrap_or(most)
            }
            Timing::Closed { outstanding } => {
                if now >= self.plan.end {
                    return Err(Step::Done);
                }
                if now < self.plan.start {
                    return Err(Step::Until(self.plan.start));
                }
                if now >= self.plan.measured && self.lane.first_measured.get() == u64::MAX {
                    self.lane.first_measured.set(self.k);
                }
                self.free_places(outstanding, now)?.min(most)
            }
        };
        // Queries of the warm-up and of the measured time are never sent together.
        let measured = self.lane.first_measured.get();
        Ok(if self.k < measured { count.min(measured - self.k) } else { count } as usize)
    }

    /// Closed loop: number of queries that may be sent. An error gives the instant at which the oldest query is over.
    #[inline(always)]
    fn free_places(&mut self, outstanding: u64, now: u64) -> Result<u64, Step> {
        // Thread t of T has every T-th place of the window.
        let places = self.plan.share_of(self.lane.index, outstanding);
        let over = self.plan.timeout + limits::TIMEOUT_GRACE_NS;
        let mut oldest = None;
        while self.over_before < self.k {
            match self.lane.outstanding.get(self.over_before) {
                Some(slot) if slot.state == State::Outstanding && now <= slot.sent + over => {
                    oldest = Some(slot.sent + over + 1);
                    break;
                }
                Some(slot) if slot.state == State::InTime => {}
                _ => self.expired += 1,
            }
            self.over_before += 1;
        }
        // A slot is not reused while its query is outstanding.
        let room = self.lane.outstanding.capacity() - (self.k - self.over_before);
        let out = self.k.saturating_sub(self.lane.in_time.get() + self.expired);
        match places.saturating_sub(out).min(room) {
            0 => Err(Step::Until(oldest.unwrap_or(now).min(self.plan.end))),
            free => Ok(free),
        }
    }

    /// Writes the next queries and returns their number, which is lower if the names are used up.
    #[inline(always)]
    fn write(&mut self, count: usize, now: u64) -> usize {
        self.asked.clear();
        let (port, j, _) = self.lane.query_ids.locate(self.k);
        if let Some(list) = &self.plan.list {
            return self.write_listed(list, count, port, j);
        }
        let size = self.plan.template.length();
        for (step, query) in self.queries.chunks_exact_mut(size).take(count).enumerate() {
            let k = self.k + step as u64;
            let again = match &self.lane.cached_names {
                None => None,
                Some(pool) => {
                    let random = mix(self.seed.wrapping_add(self.plan.number(self.lane.index, k)));
                    // The warm-up queries the names that will be queried again.
                    let wanted = random >> 32 < self.plan.cached_below && k >= self.lane.first_measured.get();
                    if wanted { self.cursor.draw(pool, now, mix(random)) } else { None }
                }
            };
            let address = match again {
                Some(address) => address,
                None => {
                    let number = self.plan.number(self.lane.index, self.fresh);
                    if number >= self.plan.names_left {
                        break;
                    }
                    self.fresh += 1;
                    let number = match &self.plan.turns {
                        None => number,
                        Some(turns) => u64::from(turns[(number % turns.len() as u64) as usize]),
                    };
                    self.plan.order.names.address(self.plan.order.first_name + number)
                }
            };
            Template::patch(query, self.lane.query_ids.id(port, j + step as u64), address);
            self.asked.push((address, again.is_some()));
        }
        self.asked.len()
    }

    /// Writes the next queries of a list and returns their number. The buffers were reserved for the longest ones.
    #[inline]
    fn write_listed(&mut self, list: &QueryList, count: usize, port: usize, j: u64) -> usize {
        self.queries.clear();
        self.lengths.clear();
        for step in 0..count as u64 {
            let (name, again) = list.at(self.plan.number(self.lane.index, self.fresh));
            self.fresh += 1;
            let id = self.lane.query_ids.id(port, j + step);
            self.lengths.push(list.write(name, id, &mut self.queries));
            self.asked.push((name, again));
        }
        count
    }

    /// Sends the written queries.
    #[inline(always)]
    fn send(&mut self, count: usize, way: &mut impl Transmit) {
        let lane = self.lane;
        let (port, ..) = lane.query_ids.locate(self.k);
        let stamp = self.plan.now();
        for (k, (address, again)) in (self.k..).zip(&self.asked) {
            self.lane.outstanding.insert(k, stamp, *address, *again);
        }
        // The receiver must know of a query before its reply can come.
        self.lane.sent.set(self.k + count as u64);
        let lengths = match self.plan.list {
            None => Lengths::Equal(self.plan.template.length()),
            Some(_) => Lengths::Listed(&self.lengths),
        };
        let batch = Batch { k: self.k, port, queries: &self.queries, lengths, count };
        let (sent, failed) = way.transmit(&batch);
        self.timeline.octets += batch.octets(sent) as u64;
        let left = sent as u64;
        if sent < count {
            (self.k + left..self.k + count as u64).for_each(|k| self.lane.outstanding.mark_unsent(k));
            self.lane.unsent.add(count as u64 - left);
            let number = failed.as_ref().and_then(io::Error::raw_os_error);
            self.timeline.send_error = self.timeline.send_error.or(number);
        }
        if self.k >= self.lane.first_measured.get() {
            self.record(stamp, sent, count);
        }
        self.k += count as u64;
    }

    /// Enters queries of the measured time into the timeline.
    #[inline(always)]
    fn record(&mut self, stamp: u64, sent: usize, count: usize) {
        let (plan, lane) = (self.plan, self.lane.index);
        self.timeline.lag(stamp.saturating_sub(plan.intended(lane, self.k, stamp)));
        self.timeline.left(stamp - plan.measured.min(stamp), sent, count);
        let first = self.lane.first_measured.get();
        for (k, (_, again)) in (self.k..).zip(&self.asked[..sent]) {
            self.timeline.times.sent(k - first, stamp);
            self.timeline.query(plan.second(plan.intended(lane, k, stamp)), *again);
        }
    }
}
