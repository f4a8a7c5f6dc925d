//! Runs a load, from order to outcome: ports and memory first, then the threads, then their reports.

use crate::companion::{Companion, NoCompanion};
use crate::error::LoadError;
use crate::interface::Path;
use crate::lane::Lane;
use crate::limits;
use crate::multiplexed;
use crate::options::LoadOptions;
use crate::plan::Plan;
use crate::query_times::QueryTimes;
use crate::result::{outcome, query_times};
use crate::sockets::Pinned;
use crate::stream;
use crate::threads::{self, ThreadReport};
use measure::order::Load;
use measure::outcome::Outcome;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Progress of a load. The counts cover the measured time unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time since the first query, including the warm-up.
    pub elapsed: Duration,
    /// Planned time of the whole load.
    pub whole: Duration,
    /// True during the warm-up.
    pub warm_up: bool,
    /// Number of queries sent.
    pub sent: u64,
    /// Number of valid replies in time.
    pub valid: u64,
    /// Number of invalid replies in time.
    pub invalid: u64,
    /// Number of late replies, including those of the warm-up.
    pub late: u64,
    /// Number of queries, including those of the warm-up, whose timeout passed without a reply.
    pub lost: u64,
    /// Number of queries, including those of the warm-up, that the server's host refused.
    pub refused: u64,
}

/// Runs a load. Calls `progress` once a second; if it breaks, sending stops, and the outcome says so.
///
/// The companion is polled in the calling thread, in turn with the load, which must then use one thread. Without a
/// companion the load has its own threads.
///
/// # Errors
///
/// As [`run_with`].
pub fn run(
    order: &Load,
    companion: Option<&mut impl Companion>,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, LoadError> {
    run_with(order, &LoadOptions::default(), companion, progress).map(|(outcome, _)| outcome)
}

/// Runs a load with options, as [`run`] does without. The times are empty unless the options ask for them.
///
/// # Errors
///
/// `LoadError::Certificate`: the server's certificate was refused. `LoadError::Bind`, `LoadError::Pin`, `LoadError::Kernel`: the system
/// refused a port, a processor, a descriptor or a thread. The other variants: the order is impossible, or the host is not set up for
/// it. They come before the first query.
pub fn run_with(
    order: &Load,
    options: &LoadOptions,
    companion: Option<&mut impl Companion>,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(Outcome, QueryTimes), LoadError> {
    let mut plan = Plan::with(order, options, companion.is_some())?;
    if order.transport.is_stream() {
        stream::check_host(&plan)?;
    }
    let lanes = (0..plan.threads).map(|index| Lane::new(&plan, index)).collect::<Result<Vec<_>, _>>()?;
    let path = Path::to(order.server);
    let drops = path.drops();
    // Reserving the memory took time, so the clock starts here.
    plan.origin = datapath::now().0;
    let stop = AtomicBool::new(false);
    let mut progress_reporter = ProgressReporter::new(&plan, &lanes);
    let mut reports = match companion {
        Some(companion) => {
            let _pinned = pin(order, 0)?;
            let tick = |now| progress_reporter.tick(now, &stop, &mut progress);
            vec![
                threads::send_and_receive(&plan, &lanes[0], Some(companion), &stop, tick)
                    .map_err(LoadError::Kernel)?,
            ]
        }
        None => run_threads(&plan, &lanes, &stop, |now| progress_reporter.tick(now, &stop, &mut progress))?,
    };
    let drops = path.drops().saturating_sub(drops);
    let times = query_times(&plan, &lanes, &mut reports);
    Ok((outcome(&plan, &lanes, &reports, drops), times))
}

type Handle<'scope> = ScopedJoinHandle<'scope, Result<ThreadReport, LoadError>>;

/// Starts the threads, reports progress, and collects the threads' reports, those of the senders first.
fn run_threads(
    plan: &Plan,
    lanes: &[Lane],
    stop: &AtomicBool,
    mut tick: impl FnMut(u64),
) -> Result<Vec<ThreadReport>, LoadError> {
    thread::scope(|scope| {
        let (mut handles, mut failed) = (Vec::new(), None);
        for started in start(scope, plan, lanes, stop) {
            match started {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // The threads that run already must end.
                    stop.store(true, Ordering::Relaxed);
                    failed = Some(LoadError::Kernel(error));
                }
            }
        }
        while !handles.iter().all(|handle| handle.is_finished()) {
            thread::park_timeout(Duration::from_nanos(limits::MAX_WAIT_NS));
            tick(plan.now());
        }
        let joined: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        let reports = joined.into_iter().map(|joined| match joined {
            Ok(reports) => reports,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let reports = reports.collect::<Result<Vec<_>, _>>();
        failed.map_or(reports, Err)
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
    let mut add =
        |name: String, work: Box<dyn FnOnce() -> Result<ThreadReport, LoadError> + Send + 'scope>| {
            let (thread, waker) = (started.len(), waker.clone());
            let work = move || {
                let reports = pin(&plan.order, thread).and_then(|_pinned| work());
                // A thread that fails ends the load, because its replies would be missing.
                if reports.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                waker.unpark();
                reports
            };
            started.push(thread::Builder::new().name(name).spawn_scoped(scope, work));
        };
    for lane in lanes {
        let ends = EndGuard { plan, lane };
        let work = move || {
            let _ends = ends;
            match receivers {
                _ if plan.order.transport.is_multiplexed() => multiplexed::send_and_receive(plan, lane, stop),
                _ if plan.order.transport.is_stream() => stream::send_and_receive(plan, lane, stop),
                0 => threads::send_and_receive(plan, lane, None::<&mut NoCompanion>, stop, |_| ())
                    .map_err(LoadError::Kernel),
                _ => Ok(threads::send(plan, lane, stop)),
            }
        };
        add(format!("load-send-{}", lane.index), Box::new(work));
    }
    for receiver in 0..receivers {
        let own: Vec<&Lane> = lanes.iter().skip(receiver).step_by(receivers).collect();
        let work = move || threads::receive(plan, &own).map_err(LoadError::Kernel);
        add(format!("load-take-{receiver}"), Box::new(work));
    }
    started
}

/// Marks a lane as ended if its sender cannot do so, because it was not started or could not be pinned to its core.
/// Otherwise the receiver of the lane would wait for ever.
struct EndGuard<'a> {
    plan: &'a Plan,
    lane: &'a Lane,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        if self.lane.ended.get() == u64::MAX {
            self.lane.ended.set(self.plan.now());
        }
    }
}

/// Pins the calling thread to its core.
fn pin(order: &Load, thread: usize) -> Result<Option<Pinned>, LoadError> {
    let pins = &order.lanes.pins;
    let Some(core) = pins.get(thread % pins.len().max(1)) else { return Ok(None) };
    Pinned::new(usize::from(*core)).map(Some).map_err(|error| LoadError::Pin(*core, error))
}

/// Calls `progress` once a second.
struct ProgressReporter<'a> {
    plan: &'a Plan,
    lanes: &'a [Lane],
    next: u64,
    /// Pairs of a time and the number of queries sent by then. Queries older than one timeout are over.
    history: VecDeque<(u64, u64)>,
    over: u64,
}

impl<'a> ProgressReporter<'a> {
    fn new(plan: &'a Plan, lanes: &'a [Lane]) -> ProgressReporter<'a> {
        let next = plan.start + limits::PROGRESS_INTERVAL.as_nanos() as u64;
        ProgressReporter { plan, lanes, next, history: VecDeque::new(), over: 0 }
    }

    #[inline]
    fn tick(&mut self, now: u64, stop: &AtomicBool, progress: &mut impl FnMut(&Progress) -> ControlFlow<()>) {
        if now < self.next {
            return;
        }
        self.next = now - (now - self.next) % limits::PROGRESS_INTERVAL.as_nanos() as u64
            + limits::PROGRESS_INTERVAL.as_nanos() as u64;
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
        let ended = sum(Lane::completed);
        Progress {
            elapsed: Duration::from_nanos((now - plan.start.min(now)).min(plan.end - plan.start)),
            whole: Duration::from_nanos(plan.end - plan.start),
            warm_up: now < plan.measured,
            sent: sum(|lane| lane.sent.get().saturating_sub(lane.first_measured.get())),
            valid: sum(|lane| lane.valid.get()),
            invalid: sum(|lane| lane.invalid.get()),
            late: sum(|lane| lane.late.get()),
            lost: self.over.saturating_sub(ended) + sum(|lane| lane.failed.get()),
            refused: sum(|lane| lane.refused.get()),
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
        // All queries fail, and five more failed between the two reads.
        lanes[0].sent.set(10);
        lanes[0].unsent.set(15);
        let progress = ProgressReporter::new(&plan, &lanes).progress(plan.timeout);
        assert_eq!((progress.sent, progress.lost), (10, 0));
    }
}
