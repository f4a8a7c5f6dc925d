//! A load from order to outcome: ports and memory first, then the threads, then what they leave behind.

use crate::error::LoadError;
use crate::interface::Way;
use crate::lane::Lane;
use crate::limits;
use crate::plan::Plan;
use crate::result::outcome;
use crate::turn::{self, Left};
use datapath::laboratory::Pinned;
use measure::order::Load;
use measure::outcome::Outcome;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// A server that lives in the load's own thread: called in every turn of its loop. For machines whose other cores are the
/// device's.
pub trait Companion {
    /// Handles what is there, without waiting; returns how many messages that were.
    fn turn(&mut self) -> usize;

    /// Readable when there is something to do. Asked once, when the load begins: what comes and goes later (connections)
    /// belongs into an epoll instance whose descriptor is given here.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// When it wants a turn although nothing is readable, in nanoseconds of CLOCK_MONOTONIC.
    fn deadline_ns(&self) -> Option<u64>;
}

/// No companion: [`run`] wants a type even where there is none.
#[derive(Clone, Copy, Debug)]
pub enum Nobody {}

impl Companion for Nobody {
    fn turn(&mut self) -> usize {
        match *self {}
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match *self {}
    }

    fn deadline_ns(&self) -> Option<u64> {
        match *self {}
    }
}

/// How far a load is. Counts are those of the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since the first query, warm-up included.
    pub elapsed: Duration,
    /// How long it will be in all.
    pub whole: Duration,
    /// Whether it is still the warm-up.
    pub warm_up: bool,
    /// Queries sent.
    pub sent: u64,
    /// Valid replies in time.
    pub valid: u64,
    /// Invalid ones.
    pub invalid: u64,
    /// Late ones, of the warm-up too.
    pub late: u64,
    /// Queries, of the warm-up too, whose timeout has passed and that had no reply by then.
    pub lost: u64,
}

/// Runs a load. `progress` is told once a second how far it is; when it breaks, no more is sent, and the outcome says so.
///
/// The companion is served in the calling thread, in turn with the load, which then must be one thread. Without one the
/// load has threads of its own.
pub fn run(
    order: &Load,
    companion: Option<&mut impl Companion>,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, LoadError> {
    let mut plan = Plan::new(order, companion.is_some())?;
    let lanes = (0..plan.threads).map(|index| Lane::new(&plan, index)).collect::<Result<Vec<_>, _>>()?;
    let way = Way::to(order.server);
    let drops = way.drops();
    // Reserving the memory took its time.
    plan.origin = datapath::now().0;
    let stop = AtomicBool::new(false);
    let mut clock = Clock::new(&plan, &lanes);
    let left = match companion {
        Some(companion) => {
            let _pinned = pinned(order, 0)?;
            let tick = |now| clock.tick(now, &stop, &mut progress);
            vec![turn::both(&plan, &lanes[0], Some(companion), &stop, tick).map_err(LoadError::Kernel)?]
        }
        None => threads(&plan, &lanes, &stop, |now| clock.tick(now, &stop, &mut progress))?,
    };
    let drops = way.drops().saturating_sub(drops);
    Ok(outcome(&plan, &lanes, &left, drops))
}

type Handle<'scope> = ScopedJoinHandle<'scope, Result<Left, LoadError>>;

/// Starts the threads, watches the clock, and collects what they leave behind: senders first.
fn threads(
    plan: &Plan,
    lanes: &[Lane],
    stop: &AtomicBool,
    mut tick: impl FnMut(u64),
) -> Result<Vec<Left>, LoadError> {
    thread::scope(|scope| {
        let (mut handles, mut failed) = (Vec::new(), None);
        for started in start(scope, plan, lanes, stop) {
            match started {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // Those that run already must end.
                    stop.store(true, Ordering::Relaxed);
                    failed = Some(LoadError::Kernel(error));
                }
            }
        }
        while !handles.iter().all(|handle| handle.is_finished()) {
            thread::park_timeout(Duration::from_nanos(limits::WAIT_NS));
            tick(plan.now());
        }
        let joined: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        let left = joined.into_iter().map(|joined| match joined {
            Ok(left) => left,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let left = left.collect::<Result<Vec<_>, _>>();
        failed.map_or(left, Err)
    })
}

fn start<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    plan: &'env Plan,
    lanes: &'env [Lane],
    stop: &'env AtomicBool,
) -> Vec<io::Result<Handle<'scope>>> {
    let receivers = usize::from(plan.order.lanes.receivers);
    let waker = thread::current();
    let mut started = Vec::new();
    let mut add = |name: String, work: Box<dyn FnOnce() -> Result<Left, LoadError> + Send + 'scope>| {
        let (thread, waker) = (started.len(), waker.clone());
        let work = move || {
            let left = pinned(&plan.order, thread).and_then(|_pinned| work());
            // One that fails ends the load: its replies would be missing.
            if left.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            waker.unpark();
            left
        };
        started.push(thread::Builder::new().name(name).spawn_scoped(scope, work));
    };
    for lane in lanes {
        let ends = Ends { plan, lane };
        let work = move || {
            let _ends = ends;
            match receivers {
                0 => turn::both(plan, lane, None::<&mut Nobody>, stop, |_| ()).map_err(LoadError::Kernel),
                _ => Ok(turn::send(plan, lane, stop)),
            }
        };
        add(format!("load-send-{}", lane.index), Box::new(work));
    }
    for receiver in 0..receivers {
        let own: Vec<&Lane> = lanes.iter().skip(receiver).step_by(receivers).collect();
        let work = move || turn::receive(plan, &own).map_err(LoadError::Kernel);
        add(format!("load-take-{receiver}"), Box::new(work));
    }
    started
}

/// Ends a lane whose sender cannot: it was not started, or could not be bound to its core. Who receives for the lane would
/// wait for ever.
struct Ends<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if self.lane.ended.get() == u64::MAX {
            self.lane.ended.set(self.plan.now());
        }
    }
}

/// The core of a thread.
fn pinned(order: &Load, thread: usize) -> Result<Option<Pinned>, LoadError> {
    let pins = &order.lanes.pins;
    let Some(core) = pins.get(thread % pins.len().max(1)) else { return Ok(None) };
    Pinned::new(usize::from(*core)).map(Some).map_err(|error| LoadError::Pin(*core, error))
}

/// Tells progress once a second.
struct Clock<'a> {
    plan: &'a Plan,
    lanes: &'a [Lane],
    next: u64,
    /// When so many queries had been sent: those of one timeout ago are over.
    history: VecDeque<(u64, u64)>,
    over: u64,
}

impl<'a> Clock<'a> {
    fn new(plan: &'a Plan, lanes: &'a [Lane]) -> Clock<'a> {
        let next = plan.start + limits::PROGRESS.as_nanos() as u64;
        Clock { plan, lanes, next, history: VecDeque::new(), over: 0 }
    }

    #[inline]
    fn tick(&mut self, now: u64, stop: &AtomicBool, progress: &mut impl FnMut(&Progress) -> ControlFlow<()>) {
        if now < self.next {
            return;
        }
        self.next =
            now - (now - self.next) % limits::PROGRESS.as_nanos() as u64 + limits::PROGRESS.as_nanos() as u64;
        if progress(&self.progress(now)).is_break() {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn progress(&mut self, now: u64) -> Progress {
        let plan = self.plan;
        let sum = |count: fn(&Lane) -> u64| self.lanes.iter().map(count).sum::<u64>();
        // Both numbers grow while they are read.
        self.history.push_back((now, sum(|lane| lane.sent.get().saturating_sub(lane.unsent.get()))));
        while let Some((time, sent)) = self.history.front().copied()
            && time + plan.timeout < now
        {
            self.over = sent;
            self.history.pop_front();
        }
        let ended = sum(|lane| lane.in_time.get() + lane.late.get());
        Progress {
            elapsed: Duration::from_nanos((now - plan.start.min(now)).min(plan.end - plan.start)),
            whole: Duration::from_nanos(plan.end - plan.start),
            warm_up: now < plan.measured,
            sent: sum(|lane| lane.sent.get().saturating_sub(lane.measured_from.get())),
            valid: sum(|lane| lane.valid.get()),
            invalid: sum(|lane| lane.invalid.get()),
            late: sum(|lane| lane.late.get()),
            lost: self.over.saturating_sub(ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    #[test]
    fn progress_bears_queries_that_fail_while_it_is_told() {
        let plan = Plan::new(&order(1000.0, 1000), false).unwrap();
        let lanes = [Lane::new(&plan, 0).unwrap()];
        // All queries fail, and five more did between the two reads.
        lanes[0].sent.set(10);
        lanes[0].unsent.set(15);
        let progress = Clock::new(&plan, &lanes).progress(plan.timeout);
        assert_eq!((progress.sent, progress.lost), (10, 0));
    }
}
