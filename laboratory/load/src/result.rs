//! Outcome of a load, from the threads' reports.

use crate::lane::Lane;
use crate::plan::{Plan, Timing};
use crate::query_times::{LaneTimes, QueryTimes};
use crate::sockets::{Port, Usage};
use crate::stream::StreamStats;
use crate::thread_stats::ThreadStats;
use crate::threads::ThreadReport;
use crate::timeline::Timeline;
use crate::verdict::{TesterFaults, verdict};
use measure::order::Pace;
use measure::outcome::{Outcome, Second, Tester, Traffic};
use std::time::Duration;

/// The outcome of a load. `interface_drops` is the number of packets that this host's interfaces dropped during the
/// load.
pub fn outcome(plan: &Plan, lanes: &[Lane], reports: &[ThreadReport], interface_drops: u64) -> Outcome {
    let Merged { sent, received, usage, stall, backlog, names, streams } = Merged::of(plan, reports);
    let queries = lanes.iter().map(|lane| lane.sent.get().saturating_sub(lane.unsent.get())).sum();
    let ended = lanes.iter().map(|lane| lane.ended.get()).max().unwrap_or(0);
    let span = Span::new(plan, &sent, ended);
    let pacing = sent.pacing(plan, span.until);
    let ended_in_time = received.valid + received.wrong;
    let mut outcome = Outcome {
        transport: plan.order.transport,
        sent: sent.sent,
        received: ended_in_time + received.late,
        valid: received.valid,
        invalid: received.invalid.named().map(|(name, count)| (name.to_owned(), count)).collect(),
        first_invalid: received.first_invalid.described(plan),
        rcodes: received.rcodes(),
        truncated: received.truncated,
        late: received.late,
        lost: sent.sent.saturating_sub(ended_in_time + received.late + received.refused),
        connection_refused: received.refused,
        duplicates: received.duplicates,
        unsolicited: received.unsolicited,
        wrong_source: received.wrong_source,
        asked_again: sent.asked_again,
        names_used: names,
        rate_asked: span.rate_asked,
        rate_achieved: if span.taken > 0.0 { sent.sent as f64 / span.taken } else { 0.0 },
        seconds: span.seconds,
        pacing_error: pacing.error,
        lag_max_us: sent.lag_max as f64 / 1e3,
        latency_us: received.latencies(),
        per_second: per_second(&sent, &received),
        traffic: match &streams {
            Some(streams) => streams.traffic(queries),
            None => datagrams(plan, queries, &sent, &received),
        },
        connections: streams.as_ref().map(|streams| streams.connections(&plan.order, queries)),
        tester: Tester {
            user_s: usage.user.as_secs_f64(),
            system_s: usage.system.as_secs_f64(),
            waited_s: usage.waited.as_secs_f64(),
            socket_drops: ports(lanes).map(|port| u64::from(port.drops())).sum(),
            interface_drops,
            send_errors: sent.send_errors,
            receive_buffer: ports(lanes).map(|port| u64::from(port.receive_buffer())).min().unwrap_or(0),
        },
        ..Outcome::default()
    };
    let faults = TesterFaults {
        ended_early: span.early.map(|after| (after, sent.names_used_up)),
        worst_second: pacing.worst_second,
        timeout: Duration::from_nanos(plan.timeout),
        stall: Duration::from_nanos(stall),
        backlog: Duration::from_nanos(backlog),
        encrypting_s: match plan.order.transport.is_encrypted() && !plan.order.lanes.spin {
            true => plan.threads as f64 * (outcome.seconds + plan.order.warm_up_ms as f64 / 1e3),
            false => 0.0,
        },
        send_error: sent.send_error,
    };
    (outcome.verdict, outcome.reason) = verdict(&outcome, &faults);
    outcome
}

/// The source ports of a load over UDP.
fn ports(lanes: &[Lane]) -> impl Iterator<Item = &Port> {
    lanes.iter().flat_map(|lane| &lane.ports)
}

/// Packets of a load over UDP: each message is one. Headers: IP 20 octets or 40, UDP 8.
fn datagrams(plan: &Plan, queries: u64, sent: &Timeline, received: &ThreadStats) -> Traffic {
    let headers = if plan.order.server.is_ipv6() { 48 } else { 28 };
    let traffic = Traffic {
        queries,
        packets_sent: queries,
        packets_received: received.messages,
        octets_sent: sent.octets + headers * queries,
        octets_received: received.octets + headers * received.messages,
        ..Traffic::default()
    };
    traffic.with_ratios()
}

/// The times of every query, taken out of the threads' reports.
pub fn query_times(plan: &Plan, lanes: &[Lane], reports: &mut [ThreadReport]) -> QueryTimes {
    let mut times: Vec<LaneTimes> = lanes.iter().map(|_| LaneTimes::default()).collect();
    // Senders come first, in the order of their lanes; a receiver has every R-th lane, a sending thread its own.
    let receivers = usize::from(plan.order.lanes.receivers);
    for (index, report) in reports.iter_mut().enumerate() {
        if let (Some(timeline), Some(lane)) = (&mut report.sent, times.get_mut(index)) {
            lane.sent = std::mem::take(&mut timeline.times);
        }
        let words = report.received.iter_mut().flat_map(|stats| std::mem::take(&mut stats.times));
        let (first, step) =
            if receivers == 0 { (index, 1) } else { (index.saturating_sub(lanes.len()), receivers) };
        for (lane, words) in times.iter_mut().skip(first).step_by(step).zip(words) {
            lane.ended = words;
        }
    }
    for (times, lane) in times.iter_mut().zip(lanes) {
        // A closed loop that was stopped during its warm-up has no measured query.
        times.first = lane.first_measured.get().min(lane.sent.get());
        times.queries = lane.sent.get() - times.first;
    }
    QueryTimes::new(plan, times)
}

/// The sum of all threads' reports.
struct Merged {
    sent: Timeline,
    received: ThreadStats,
    usage: Usage,
    /// The longest stall of a thread, in nanoseconds.
    stall: u64,
    /// The longest time that replies waited for a thread, in nanoseconds.
    backlog: u64,
    /// Number of names that were queried for the first time.
    names: u64,
    /// Connections, over TCP.
    streams: Option<StreamStats>,
}

impl Merged {
    fn of(plan: &Plan, reports: &[ThreadReport]) -> Merged {
        let (mut sent, mut received) = (Timeline::default(), ThreadStats::new(plan));
        let (mut usage, mut stall, mut backlog, mut names) = (Usage::default(), 0, 0, 0);
        let mut streams: Option<StreamStats> = None;
        // Senders come first, in the order of their lanes.
        for (index, part) in reports.iter().enumerate() {
            if let Some(timeline) = &part.sent {
                sent.add(timeline);
                // Thread t of T takes the names t, t + T, t + 2T ...: after the last one of any thread, all names are new.
                let last = timeline.fresh.checked_sub(1).map(|fresh| plan.number(index as u64, fresh) + 1);
                names = names.max(last.unwrap_or(0));
            }
            if let Some(stats) = &part.received {
                received.add(stats);
            }
            if let Some(part) = &part.streams {
                streams.get_or_insert_with(StreamStats::new).add(part);
            }
            usage = usage.plus(part.usage);
            stall = stall.max(part.stall);
            backlog = backlog.max(part.backlog);
        }
        if let Some(list) = &plan.list {
            names = names.min(list.queries());
        }
        Merged { sent, received, usage, stall, backlog, names, streams }
    }
}

/// The measured time of a load.
struct Span {
    rate_asked: f64,
    /// From the first to the last intended query, in seconds.
    seconds: f64,
    /// Time in which the queries were actually sent, in seconds.
    taken: f64,
    /// End of the comparison with the schedule, in nanoseconds of the measured time.
    until: u64,
    /// Time of an early end.
    early: Option<Duration>,
}

impl Span {
    fn new(plan: &Plan, sent: &Timeline, ended: u64) -> Span {
        let tried = sent.sent + sent.send_errors;
        let measured_for = ended.saturating_sub(plan.measured);
        let rate_asked = match plan.order.pace {
            Pace::Open { rate_qps, .. } => rate_qps,
            Pace::Closed { .. } => 0.0,
        };
        match plan.timing {
            Timing::Open { schedule, warm, total } => {
                let is_early = tried < total - warm;
                let until = schedule.due(total) - schedule.due(warm);
                let seconds = schedule.seconds(tried);
                // The interval after the last query counts, too.
                let taken = sent.last as f64 / 1e9 + schedule.seconds(1);
                Span {
                    rate_asked,
                    seconds,
                    taken: if tried > 0 { taken.max(seconds) } else { 0.0 },
                    until: if is_early { until.min(measured_for) } else { until },
                    early: is_early.then(|| Duration::from_nanos(measured_for)),
                }
            }
            Timing::Closed { .. } => Span {
                rate_asked,
                seconds: measured_for as f64 / 1e9,
                taken: measured_for as f64 / 1e9,
                until: 0,
                early: (ended < plan.end).then(|| Duration::from_nanos(measured_for)),
            },
        }
    }
}

/// Counts second by second, without empty seconds at the end.
fn per_second(sent: &Timeline, received: &ThreadStats) -> Vec<Second> {
    let entry = |(sent, second): (&u64, &Second)| Second { sent: *sent, ..*second };
    let mut all: Vec<Second> = sent.seconds.iter().zip(&received.seconds).map(entry).collect();
    while all.last().is_some_and(|second| *second == Second::default()) {
        all.pop();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::order;

    #[test]
    fn the_rate_that_was_asked_for_is_told_as_it_was_asked_for() {
        for rate_qps in [100_000.0, 333.3, 0.1, 1e9] {
            let plan = Plan::new(&order(rate_qps, 10), false).unwrap();
            assert_eq!(Span::new(&plan, &Timeline::new(&plan), 0).rate_asked, rate_qps);
        }
    }
}
