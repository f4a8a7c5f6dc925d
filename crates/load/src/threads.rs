//! Loops of the threads: one sends and receives, alone or with a companion; one only sends; one only receives. Each
//! iteration does the available work and then waits for the next instant or message.

use crate::lane::Lane;
use crate::limits;
use crate::plan::{Plan, Timing};
use crate::receiver::Receiver;
use crate::run::Companion;
use crate::sender::{Sender, Step};
use crate::thread_stats::Tally;
use crate::timeline::Timeline;
use datapath::tester_thread::{PreciseTimers, Ready, Usage, Waiter};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Report of a thread when it ends.
#[derive(Default)]
pub struct Left {
    /// Queries sent.
    pub sent: Option<Timeline>,
    /// Replies received.
    pub received: Option<Tally>,
    /// CPU time used.
    pub usage: Usage,
    /// Longest stall of the thread, in nanoseconds.
    pub stall: u64,
    /// Longest time that replies waited for the thread, in nanoseconds.
    pub behind: u64,
}

/// Sends and receives, until the last reply has come or is given up. Calls `tick` with the time in every iteration.
pub fn both(
    plan: &Plan,
    lane: &Lane,
    mut companion: Option<&mut impl Companion>,
    stop: &AtomicBool,
    mut tick: impl FnMut(u64),
) -> io::Result<Left> {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let mut sender = Sender::new(plan, lane);
    let mut receiver = Receiver::new(plan, lane.ports.len());
    let descriptors = companion.as_ref().map(|companion| companion.descriptors()).unwrap_or_default();
    let mut waiter = Waiter::new(&lane.ports, &descriptors)?;
    drop(descriptors);
    let (mut pause, mut watch, mut wait) = (Pause::new(plan, 1), Watch::new(plan), 0);
    let mut last = Last::default();
    loop {
        watch.turn(plan.now(), wait);
        let step = if stop.load(Ordering::Relaxed) { sender.end(plan.now()) } else { sender.turn() };
        if let Some(companion) = companion.as_deref_mut() {
            companion.turn();
        }
        let now = plan.now();
        tick(now);
        let until = match step {
            Step::Busy => now,
            Step::Until(instant) => instant,
            Step::Done => match last.until(plan, &[lane], now) {
                Some(instant) => instant,
                None => break,
            },
        };
        let deadline = companion.as_ref().and_then(|companion| companion.deadline_ns());
        let until = deadline.map_or(until, |deadline| until.min(deadline.saturating_sub(plan.origin)));
        wait = pause.length(until.saturating_sub(now));
        let ready = pause.wait(&mut waiter, wait);
        let mut count = 0;
        for index in 0..ready {
            if let Ready::Port(port) = waiter.ready(index) {
                count += receiver.take(lane, port, port);
            }
        }
        pause.came(count);
    }
    let (usage, behind) = (Usage::now().since(before), receiver.behind());
    let (sent, received) = (Some(sender.timeline), Some(receiver.tally));
    Ok(Left { sent, received, usage, stall: watch.longest, behind })
}

/// Only sends.
pub fn send(plan: &Plan, lane: &Lane, stop: &AtomicBool) -> Left {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let mut sender = Sender::new(plan, lane);
    loop {
        let step = if stop.load(Ordering::Relaxed) { sender.end(plan.now()) } else { sender.turn() };
        match step {
            Step::Busy => {}
            Step::Done => break,
            // In a closed loop, nothing signals a completed query to this thread.
            Step::Until(instant) => {
                let wait = instant.saturating_sub(plan.now());
                let wait = match plan.timing {
                    Timing::Open { .. } => wait.clamp(plan.nap, limits::WAIT_NS.max(plan.nap)),
                    Timing::Closed { .. } => plan.nap,
                };
                if !plan.order.lanes.spin {
                    std::thread::sleep(Duration::from_nanos(wait));
                }
            }
        }
    }
    Left { sent: Some(sender.timeline), usage: Usage::now().since(before), ..Left::default() }
}

/// Only receives, the replies of some lanes.
pub fn receive(plan: &Plan, lanes: &[&Lane]) -> io::Result<Left> {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let places: Vec<(&Lane, usize)> =
        lanes.iter().flat_map(|lane| (0..lane.ports.len()).map(|port| (*lane, port))).collect();
    let mut receiver = Receiver::new(plan, places.len());
    let mut waiter = Waiter::new(places.iter().map(|(lane, port)| &lane.ports[*port]), &[])?;
    let part = lanes.len() as u64;
    let (mut pause, mut watch, mut wait) = (Pause::new(plan, part), Watch::new(plan), 0);
    let mut last = Last::default();
    loop {
        let now = plan.now();
        watch.turn(now, wait);
        let Some(until) = last.until(plan, lanes, now) else { break };
        wait = pause.length(until.saturating_sub(now));
        let ready = pause.wait(&mut waiter, wait);
        let mut count = 0;
        for index in 0..ready {
            if let Ready::Port(place) = waiter.ready(index)
                && let Some((lane, port)) = places.get(place)
            {
                count += receiver.take(lane, *port, place);
            }
        }
        pause.came(count);
    }
    let (usage, behind) = (Usage::now().since(before), receiver.behind());
    Ok(Left { sent: None, received: Some(receiver.tally), usage, stall: watch.longest, behind })
}

/// Waiting time between iterations. If messages are dense, the thread sleeps first and then takes all that came in
/// the meantime, because a wake-up costs more than a message.
struct Pause {
    spin: bool,
    /// True in an open loop whose queries are closer together than the shortest sleep.
    dense: bool,
    nap: u64,
    /// In a closed loop: number of messages that may arrive in one pause without the server running out of work; the
    /// current pause; the longest pause.
    bearable: Option<u64>,
    length: u64,
    longest: u64,
}

impl Pause {
    /// For a thread that receives the replies of `part` sending threads.
    fn new(plan: &Plan, part: u64) -> Pause {
        let (dense, bearable) = match plan.timing {
            Timing::Open { schedule, .. } => {
                let distance = schedule.seconds(1) * 1e9 * plan.threads as f64 / part as f64;
                (distance < plan.nap as f64, None)
            }
            Timing::Closed { outstanding } => {
                (false, Some(outstanding * part / plan.threads / limits::PAUSE_PART))
            }
        };
        let longest = if plan.nap < limits::NAP_NS { plan.nap } else { limits::PAUSE_NS };
        Pause { spin: plan.order.lanes.spin, dense, nap: plan.nap, bearable, length: 0, longest }
    }

    /// Waiting time if the next event is `left` away.
    fn length(&self, left: u64) -> u64 {
        match left {
            _ if self.spin => 0,
            0 => 0,
            left if self.dense => left.clamp(self.nap, limits::WAIT_NS),
            left => left.min(limits::WAIT_NS),
        }
    }

    /// Waits; returns the number of ready descriptors.
    #[inline]
    fn wait(&self, waiter: &mut Waiter, length: u64) -> usize {
        let asleep = if self.dense && length <= self.nap { length } else { self.length.min(length) };
        if asleep > 0 {
            std::thread::sleep(Duration::from_nanos(asleep));
            return waiter.wait(0);
        }
        waiter.wait(length)
    }

    /// Adapts the pause after `count` messages came.
    #[inline]
    fn came(&mut self, count: usize) {
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
struct Watch {
    spin: bool,
    last: Option<u64>,
    longest: u64,
}

impl Watch {
    fn new(plan: &Plan) -> Watch {
        Watch { spin: plan.order.lanes.spin, last: None, longest: 0 }
    }

    /// Begins an iteration, after a wait of at most `wait`.
    #[inline]
    fn turn(&mut self, now: u64, wait: u64) {
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
struct Last {
    complete: Option<u64>,
}

impl Last {
    /// Latest end of the load; `None` when it is over.
    fn until(&mut self, plan: &Plan, lanes: &[&Lane], now: u64) -> Option<u64> {
        let afterwards = limits::AFTERWARDS.as_nanos() as u64;
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
