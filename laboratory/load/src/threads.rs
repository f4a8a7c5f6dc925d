//! Loops of the threads: one sends and receives, alone or with a companion; one only sends; one only receives. Each
//! iteration does the available work and then waits for the next instant or message.

use crate::companion::Companion;
use crate::datagrams::Datagrams;
use crate::lane::Lane;
use crate::limits;
use crate::plan::{Plan, Timing};
use crate::receiver::Receiver;
use crate::sender::{Sender, Step};
use crate::sockets::{PreciseTimers, Ready, Usage, Waiter};
use crate::stream::StreamStats;
use crate::thread_stats::ThreadStats;
use crate::timeline::Timeline;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Report of a thread when it ends.
#[derive(Default)]
pub struct ThreadReport {
    /// Queries sent.
    pub sent: Option<Timeline>,
    /// Replies received.
    pub received: Option<ThreadStats>,
    /// CPU time used.
    pub usage: Usage,
    /// Longest stall of the thread, in nanoseconds.
    pub stall: u64,
    /// Longest time that replies waited for the thread, in nanoseconds.
    pub backlog: u64,
    /// Connections, over TCP.
    pub streams: Option<StreamStats>,
}

/// Sends and receives, until the last reply has come or is given up. Calls `tick` with the time in every iteration: nanoseconds since
/// the origin of the plan.
///
/// # Errors
///
/// The error of epoll_create1(2) or epoll_ctl(2): the process may have no more open files.
pub fn send_and_receive(
    plan: &Plan,
    lane: &Lane,
    mut companion: Option<&mut impl Companion>,
    stop: &AtomicBool,
    mut tick: impl FnMut(u64),
) -> io::Result<ThreadReport> {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let (mut sender, mut datagrams) = (Sender::new(plan, lane), Datagrams::new(plan, &lane.ports));
    let mut receiver = Receiver::new(plan, lane.ports.len()).with_times(&[lane]);
    let descriptors = companion.as_ref().map(|companion| companion.descriptors()).unwrap_or_default();
    let mut waiter = Waiter::new(&lane.ports, &descriptors)?;
    drop(descriptors);
    let (mut idle, mut stalls, mut wait) = (IdleStrategy::new(plan, 1), StallDetector::new(plan), 0);
    let mut drain = DrainPhase::default();
    loop {
        stalls.begin_iteration(plan.now(), wait);
        let step =
            if stop.load(Ordering::Relaxed) { sender.end(plan.now()) } else { sender.poll(&mut datagrams) };
        if let Some(companion) = companion.as_deref_mut() {
            companion.poll();
        }
        let now = plan.now();
        tick(now);
        let until = match step {
            Step::Busy => now,
            Step::Until(instant) => instant,
            Step::Done => match drain.until(plan, &[lane], now) {
                Some(instant) => instant,
                None => break,
            },
        };
        let deadline = companion.as_ref().and_then(|companion| companion.deadline_ns());
        let until = deadline.map_or(until, |deadline| until.min(deadline.saturating_sub(plan.origin)));
        wait = idle.length(until.saturating_sub(now));
        let ready = idle.wait(&mut waiter, wait);
        let mut count = 0;
        for index in 0..ready {
            if let Ready::Port(port) = waiter.ready(index) {
                count += receiver.receive(lane, port, port);
                if waiter.has_error(index) {
                    receiver.receive_errors(lane, port);
                }
            }
        }
        idle.record_arrivals(count);
    }
    let (usage, backlog) = (Usage::now().since(before), receiver.longest_backlog());
    let (sent, received) = (Some(sender.timeline), Some(receiver.stats));
    Ok(ThreadReport { sent, received, usage, stall: stalls.longest, backlog, streams: None })
}

/// Only sends.
pub fn send(plan: &Plan, lane: &Lane, stop: &AtomicBool) -> ThreadReport {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let (mut sender, mut datagrams) = (Sender::new(plan, lane), Datagrams::new(plan, &lane.ports));
    loop {
        let step =
            if stop.load(Ordering::Relaxed) { sender.end(plan.now()) } else { sender.poll(&mut datagrams) };
        match step {
            Step::Busy => {}
            Step::Done => break,
            // In a closed loop, nothing signals a completed query to this thread.
            Step::Until(instant) => {
                let wait = instant.saturating_sub(plan.now());
                let wait = match plan.timing {
                    Timing::Open { .. } => {
                        wait.clamp(plan.min_sleep, limits::MAX_WAIT_NS.max(plan.min_sleep))
                    }
                    Timing::Closed { .. } => plan.min_sleep,
                };
                if !plan.order.lanes.spin {
                    std::thread::sleep(Duration::from_nanos(wait));
                }
            }
        }
    }
    ThreadReport { sent: Some(sender.timeline), usage: Usage::now().since(before), ..ThreadReport::default() }
}

/// Only receives, the replies of some lanes.
///
/// # Errors
///
/// As [`send_and_receive`].
pub fn receive(plan: &Plan, lanes: &[&Lane]) -> io::Result<ThreadReport> {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let places: Vec<(&Lane, usize)> =
        lanes.iter().flat_map(|lane| (0..lane.ports.len()).map(|port| (*lane, port))).collect();
    let mut receiver = Receiver::new(plan, places.len()).with_times(lanes);
    let mut waiter = Waiter::new(places.iter().map(|(lane, port)| &lane.ports[*port]), &[])?;
    let part = lanes.len() as u64;
    let (mut idle, mut stalls, mut wait) = (IdleStrategy::new(plan, part), StallDetector::new(plan), 0);
    let mut drain = DrainPhase::default();
    loop {
        let now = plan.now();
        stalls.begin_iteration(now, wait);
        let Some(until) = drain.until(plan, lanes, now) else { break };
        wait = idle.length(until.saturating_sub(now));
        let ready = idle.wait(&mut waiter, wait);
        let mut count = 0;
        for index in 0..ready {
            if let Ready::Port(place) = waiter.ready(index)
                && let Some((lane, port)) = places.get(place)
            {
                count += receiver.receive(lane, *port, place);
                if waiter.has_error(index) {
                    receiver.receive_errors(lane, *port);
                }
            }
        }
        idle.record_arrivals(count);
    }
    let (usage, backlog) = (Usage::now().since(before), receiver.longest_backlog());
    let received = Some(receiver.stats);
    Ok(ThreadReport { sent: None, received, usage, stall: stalls.longest, backlog, streams: None })
}

/// Waiting time between iterations. If messages are dense, the thread sleeps first and then takes all that came in
/// the meantime, because a wake-up costs more than a message.
struct IdleStrategy {
    spin: bool,
    /// True in an open loop whose queries are closer together than the shortest sleep.
    dense: bool,
    min_sleep: u64,
    /// In a closed loop: number of messages that may arrive in one pause without the server running out of work; the
    /// current pause; the longest pause.
    bearable: Option<u64>,
    length: u64,
    longest: u64,
}

impl IdleStrategy {
    /// For a thread that receives the replies of `part` sending threads.
    fn new(plan: &Plan, part: u64) -> IdleStrategy {
        let (dense, bearable) = match plan.timing {
            Timing::Open { schedule, .. } => {
                let distance = schedule.seconds(1) * 1e9 * plan.threads as f64 / part as f64;
                (distance < plan.min_sleep as f64, None)
            }
            Timing::Closed { outstanding } => {
                (false, Some(outstanding * part / plan.threads / limits::CLOSED_LOOP_PAUSE_PART))
            }
        };
        let longest =
            if plan.min_sleep < limits::MIN_SLEEP_NS { plan.min_sleep } else { limits::MAX_PAUSE_NS };
        IdleStrategy {
            spin: plan.order.lanes.spin,
            dense,
            min_sleep: plan.min_sleep,
            bearable,
            length: 0,
            longest,
        }
    }

    /// Waiting time if the next event is `left` away.
    fn length(&self, left: u64) -> u64 {
        match left {
            _ if self.spin => 0,
            0 => 0,
            left if self.dense => left.clamp(self.min_sleep, limits::MAX_WAIT_NS),
            left => left.min(limits::MAX_WAIT_NS),
        }
    }

    /// Waits; returns the number of ready descriptors.
    #[inline]
    fn wait(&self, waiter: &mut Waiter, length: u64) -> usize {
        let asleep = if self.dense && length <= self.min_sleep { length } else { self.length.min(length) };
        if asleep > 0 {
            std::thread::sleep(Duration::from_nanos(asleep));
            return waiter.wait(0);
        }
        waiter.wait(length)
    }

    /// Adapts the pause after `count` messages came.
    #[inline]
    fn record_arrivals(&mut self, count: usize) {
        let Some(bearable) = self.bearable else { return };
        let count = count as u64;
        self.length = match count {
            0 => 0,
            count if count < bearable => (self.length + self.length / 8 + 2_000).min(self.longest),
            _ => self.length - self.length / 4,
        };
    }
}

/// Detects stalls of the thread.
pub struct StallDetector {
    spin: bool,
    last: Option<u64>,
    /// The longest stall so far, in nanoseconds.
    pub longest: u64,
}

impl StallDetector {
    /// Before the first iteration.
    pub fn new(plan: &Plan) -> StallDetector {
        StallDetector { spin: plan.order.lanes.spin, last: None, longest: 0 }
    }

    /// Begins an iteration at `now`, after a wait of at most `wait`. Both are in nanoseconds.
    #[inline]
    pub fn begin_iteration(&mut self, now: u64, wait: u64) {
        let wait = if self.spin { 0 } else { wait };
        if let Some(last) = self.last {
            self.longest = self.longest.max((now - last.min(now)).saturating_sub(wait));
        }
        self.last = Some(now);
    }
}

/// Final phase after the last query: until every reply has come, at most one timeout, and a short time more for
/// duplicates.
#[derive(Default)]
pub struct DrainPhase {
    complete: Option<u64>,
}

impl DrainPhase {
    /// Latest end of the load; `None` when it is over. Both times are in nanoseconds since the origin of the plan.
    pub fn until(&mut self, plan: &Plan, lanes: &[&Lane], now: u64) -> Option<u64> {
        let afterwards = limits::DUPLICATE_WAIT.as_nanos() as u64;
        let Some(ended) = lanes.iter().map(|lane| lane.ended.get()).max().filter(|ended| *ended != u64::MAX)
        else {
            return Some(u64::MAX);
        };
        if self.complete.is_none() && lanes.iter().all(|lane| lane.is_complete()) {
            self.complete = Some(now);
        }
        let end = self.complete.unwrap_or(ended + plan.timeout) + afterwards;
        (now < end).then_some(end)
    }
}
