//! Loads over HTTPS (RFC 8484) and QUIC (RFC 9250), which give each query a stream of its own: a few connections that stay open,
//! or one for each query. Schedule, queries, judge and counters are those of UDP.
//!
//! A query is sent when it is handed to its connection, or when the tester begins to open that: latency and timeout include
//! the handshake, and the time for which the query waits for a stream if the server allows no more at a time. A query whose
//! connection or stream ends without a reply is lost, and counted by the reason. It is not asked again.
//!
//! Each thread has a runtime of tokio for itself. [`send_and_receive`] is its loop: `links` has the connections, `ports` begins
//! them, `https` and `quic` are their tasks and those of the queries, which report by `event`. `timer` wakes the loop for the
//! schedule.

mod event;
mod handle;
mod https;
mod links;
mod metered;
mod ports;
mod quic;
mod timer;

use crate::error::LoadError;
use crate::lane::Lane;
use crate::limits;
use crate::plan::Plan;
use crate::sender::{Sender, Step};
use crate::sockets::{PreciseTimers, Usage};
use crate::threads::{DrainPhase, StallDetector, ThreadReport};
use crate::tls_client::TlsClient;
use event::{Event, Reporter};
use links::Links;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use timer::Timer;
use tokio::runtime::{Builder, Runtime};
use tokio::select;
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// Sends and receives over HTTPS or QUIC, until the last reply has come or is given up, and closes the connections.
///
/// # Errors
///
/// `LoadError::Kernel`: the runtime, a port or a timer cannot be made. `LoadError::Certificate`: the server's certificate was refused.
pub fn send_and_receive(plan: &Plan, lane: &Lane, stop: &AtomicBool) -> Result<ThreadReport, LoadError> {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    // The plan has settings of TLS for each encrypted transport.
    let Some(tls) = plan.tls.as_ref().map(TlsClient::for_thread) else {
        return Ok(ThreadReport::default());
    };
    let busy = Arc::new(BusyTime::new());
    let runtime = runtime(&busy).map_err(LoadError::Kernel)?;
    let (events, mut news) = mpsc::unbounded_channel();
    let reporter = Reporter::new(events, plan.origin);
    let mut sender = Sender::new(plan, lane);
    let mut stalls = StallDetector::new(plan);
    let links = runtime.block_on(async {
        let mut links = Links::new(plan, lane, tls, reporter).map_err(LoadError::Kernel)?;
        exchange(plan, lane, stop, &mut sender, &mut links, &mut news, &mut stalls).await?;
        close(&mut links, &mut news).await;
        Ok(links)
    });
    // The tasks that are left end here, and report the packets of their connections.
    drop(runtime);
    let mut links: Links<'_> = links?;
    while let Ok(event) = news.try_recv() {
        links.enter(event);
    }
    let (stats, streams) = links.into_reports();
    Ok(ThreadReport {
        sent: Some(sender.timeline),
        received: Some(stats),
        usage: Usage::now().since(before),
        stall: stalls.longest,
        backlog: busy.longest.load(Ordering::Relaxed),
        streams: Some(streams),
    })
}

/// The runtime of a thread.
fn runtime(busy: &Arc<BusyTime>) -> std::io::Result<Runtime> {
    let (ended, begun) = (Arc::clone(busy), Arc::clone(busy));
    Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || ended.end())
        .on_thread_unpark(move || begun.begin())
        .build()
}

/// The loop of a thread: sends the queries that are due, and enters the news.
async fn exchange(
    plan: &Plan,
    lane: &Lane,
    stop: &AtomicBool,
    sender: &mut Sender<'_>,
    links: &mut Links<'_>,
    news: &mut UnboundedReceiver<Event>,
    stalls: &mut StallDetector,
) -> Result<(), LoadError> {
    let mut timer = Timer::new().map_err(LoadError::Kernel)?;
    let (mut drain, mut wait, mut events) = (DrainPhase::default(), 0, Vec::new());
    loop {
        stalls.begin_iteration(plan.now(), wait);
        let step = if stop.load(Ordering::Relaxed) { sender.end(plan.now()) } else { sender.poll(links) };
        let now = plan.now();
        links.settle(now);
        let until = match step {
            Step::Busy => now,
            Step::Until(instant) => instant,
            Step::Done => match drain.until(plan, &[lane], now) {
                Some(instant) => instant,
                None => return Ok(()),
            },
        };
        let is_busy = plan.order.lanes.spin || step == Step::Busy;
        wait = if is_busy { 0 } else { until.saturating_sub(now).clamp(plan.min_sleep, limits::MAX_WAIT_NS) };
        if is_busy {
            // The tasks get their turn, and the sockets are read.
            tokio::task::yield_now().await;
            while events.len() < limits::EVENTS_PER_POLL
                && let Ok(event) = news.try_recv()
            {
                events.push(event);
            }
        } else {
            select! {
                biased;
                _ = news.recv_many(&mut events, limits::EVENTS_PER_POLL) => {}
                () = timer.wait(now, now + wait) => {}
            }
        }
        events.drain(..).for_each(|event| links.enter(event));
        if let Some(reason) = links.refusal() {
            return Err(LoadError::Certificate(plan.order.server, reason.clone()));
        }
    }
}

/// Closes all connections, and waits until the servers have closed their side, for [`limits::CLOSE_WAIT`] at most.
async fn close(links: &mut Links<'_>, news: &mut UnboundedReceiver<Event>) {
    links.close();
    let all = async {
        while !links.is_empty()
            && let Some(event) = news.recv().await
        {
            links.enter(event);
        }
    };
    if tokio::time::timeout(limits::CLOSE_WAIT, all).await.is_err() {
        links.abort();
    }
}

/// Times for which the thread found work without a pause. Replies may have waited in the sockets for as long.
struct BusyTime {
    /// Time since which the thread works; u64::MAX while it waits.
    since: AtomicU64,
    longest: AtomicU64,
}

impl BusyTime {
    fn new() -> BusyTime {
        BusyTime { since: AtomicU64::new(u64::MAX), longest: AtomicU64::new(0) }
    }

    /// The thread has nothing to do, and waits for the kernel.
    fn end(&self) {
        let busy = datapath::now().0.saturating_sub(self.since.swap(u64::MAX, Ordering::Relaxed));
        self.longest.fetch_max(busy, Ordering::Relaxed);
    }

    /// The thread has work.
    fn begin(&self) {
        self.since.store(datapath::now().0, Ordering::Relaxed);
    }
}
