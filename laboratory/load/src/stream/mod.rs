//! Loads over TCP and TLS: a connection for each query (RFC 7766 section 6.2), the same with the query in the SYN (TCP Fast Open, RFC
//! 7413), or a few connections with many queries in flight (RFC 7766 section 6.2.1.1). Schedule, queries, judge and
//! counters are those of UDP.
//!
//! A query is sent when the tester begins to open its connection, or hands it to an open one: latency and timeout include
//! the handshake, which the client waits for. A query whose connection ends without a reply is lost, and counted by the
//! reason. It is not asked again: the next query is on the schedule already.
//!
//! [`send_and_receive`] is the loop of a thread. `links` has its connections, each a [`link::Link`], which `opening`
//! begins and `ending` ends; `arrival` matches replies to queries; `local_ports` chooses the ports; `stats` counts.
//! `tls` encrypts a connection, `tls_handshake` begins it.

mod arrival;
mod check;
mod ending;
mod link;
mod links;
mod local_ports;
mod opening;
mod stats;
mod tls;
mod tls_handshake;

pub use check::{capacity, check_host};
pub use ending::fail_query;
pub use local_ports::LocalPorts;
pub use stats::{Fault, StreamStats};

use crate::error::LoadError;
use crate::lane::Lane;
use crate::limits;
use crate::plan::Plan;
use crate::sender::{Sender, Step};
use crate::sockets::{PreciseTimers, Usage};
use crate::threads::{DrainPhase, StallDetector, ThreadReport};
use links::Links;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends and receives over TCP, until the last reply has come or is given up, and closes the connections.
///
/// # Errors
///
/// `LoadError::Kernel`: the process may have no more open files. `LoadError::Certificate`: the server's certificate was refused.
/// Connections that fail are counted, and are no error.
pub fn send_and_receive(plan: &Plan, lane: &Lane, stop: &AtomicBool) -> Result<ThreadReport, LoadError> {
    let _timers = PreciseTimers::new();
    let before = Usage::now();
    let (mut sender, mut links) =
        (Sender::new(plan, lane), Links::new(plan, lane).map_err(LoadError::Kernel)?);
    let (mut stalls, mut drain, mut wait) = (StallDetector::new(plan), DrainPhase::default(), 0);
    loop {
        stalls.begin_iteration(plan.now(), wait);
        let step =
            if stop.load(Ordering::Relaxed) { sender.end(plan.now()) } else { sender.poll(&mut links) };
        let now = plan.now();
        links.settle(now);
        let until = match step {
            Step::Busy => now,
            Step::Until(instant) => instant,
            Step::Done => match drain.until(plan, &[lane], now) {
                Some(instant) => instant,
                None => break,
            },
        };
        let is_busy = plan.order.lanes.spin || links.has_unread();
        wait = if is_busy { 0 } else { until.saturating_sub(now).min(limits::MAX_WAIT_NS) };
        links.receive(wait);
        if let Some(reason) = links.refusal.take() {
            return Err(LoadError::Certificate(plan.order.server, reason));
        }
    }
    links.close();
    let (stats, streams, backlog) = links.into_reports();
    Ok(ThreadReport {
        sent: Some(sender.timeline),
        received: Some(stats),
        usage: Usage::now().since(before),
        stall: stalls.longest,
        backlog,
        streams: Some(streams),
    })
}
