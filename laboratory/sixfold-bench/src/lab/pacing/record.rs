//! Figures, charts, claims and warnings of the experiment.

use super::outside::INTERVALS_MS;
use super::{Trial, WAYS};
use crate::lab::context::{Context, figure};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, Program};
use measure::outcome::{Deviation, Outcome};
use measure::units::grouped;
use std::time::Duration;

/// Bound of the authors' script around dns64perf++: sending 60 s of queries may take 1 % longer.
const AUTHORS: f64 = 0.01;

/// Shortest trial that is judged by that bound: 1 % of it is the 100 ms by which the tester lets a query be late.
const JUDGED: Duration = Duration::from_secs(10);

/// Longest time from the tester's time stamp to the kernel's for 99 of 100 queries, in microseconds: the shortest interval.
const WAY_US: f64 = 1000.0;

/// Largest difference of the tester's own deviation from the receiver's, as a share of the queries of an interval.
const AGREEMENT: f64 = 0.01;

/// Largest change of the host's clock in a trial that is not warned of, in nanoseconds.
const CLOCK_STEP_NS: u64 = 1_000_000;

/// Enters everything.
pub fn enter(context: &mut Context, trials: &[Trial], duration: Duration) {
    context.program(Program {
        name: "load of sixfold-bench, and a receiver with SO_TIMESTAMPNS".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Program::default()
    });
    for trial in trials {
        enter_trial(context, trial);
    }
    context.chart(by_rate(trials));
    context.chart(by_way(trials));
    claim_complete(context, trials);
    claim_agreement(context, trials);
    claim_way(context, trials);
    if duration >= JUDGED {
        claim_authors(context, trials);
    }
    differences(context, duration);
    for trial in trials.iter().filter(|trial| trial.received.clock_step_ns > CLOCK_STEP_NS) {
        context.warning(format!(
            "{}: the host's clock was set by {:.1} ms during the trial, so its time stamps are doubtful",
            trial.row(),
            trial.received.clock_step_ns as f64 / 1e6
        ));
    }
}

/// Deviations in the tester's own account, in the order of [`INTERVALS_MS`].
fn deviations(inside: &Outcome) -> [Deviation; 4] {
    let error = &inside.pacing_error;
    [error.ms1, error.ms10, error.ms100, error.s1]
}

/// The loads of this tester, with its account.
fn ours(trials: &[Trial]) -> impl Iterator<Item = (&Trial, &Outcome)> {
    trials.iter().filter_map(|trial| Some((trial, trial.inside.as_ref()?)))
}

/// Name of an interval.
fn shown(length_ms: u64) -> String {
    if length_ms < 1000 { format!("{length_ms} ms") } else { format!("{} s", length_ms / 1000) }
}

fn enter_trial(context: &mut Context, trial: &Trial) {
    let row = trial.row();
    let inside = trial.inside.as_ref().map(deviations);
    for (at, (length, outside)) in INTERVALS_MS.into_iter().zip(trial.outside.deviations).enumerate() {
        let table = format!("Deviation of queries from the schedule in {}", shown(length));
        let mut enter = |column: &str, share: f64, intervals: u64| {
            context.figure(Figure {
                samples: intervals,
                ..figure(&table, &row, column, 100.0 * share, "%", Origin::Measured)
            });
        };
        let inside = inside.map(|inside| ("tester", inside[at]));
        for (who, deviation) in [("receiver", outside)].into_iter().chain(inside) {
            enter(&format!("largest, {who}"), deviation.max, deviation.intervals);
            enter(&format!("mean, {who}"), deviation.mean, deviation.intervals);
            enter(&format!("intervals beyond 1 %, {who}"), deviation.beyond_1_percent, deviation.intervals);
        }
    }
    let came = trial.received.stamps.iter().filter(|stamp| **stamp > 0).count() as u64;
    let table = "Queries after their due time";
    let mut enter = |table: &str, column: &str, value: f64, unit: &str| {
        context
            .figure(Figure { samples: came, ..figure(table, &row, column, value, unit, Origin::Measured) });
    };
    let (delay, way) = (trial.outside.delay, trial.outside.way);
    enter(table, "mean, receiver", delay.mean_us, "us");
    enter(table, "99th percentile, receiver", delay.p99_us, "us");
    enter(table, "largest, receiver", delay.max_us, "us");
    if let Some(inside) = &trial.inside {
        enter(table, "largest, tester", inside.lag_max_us, "us");
        let table = "From the tester's time stamp to that of the receiver's kernel";
        enter(table, "mean", way.mean_us, "us");
        enter(table, "99th percentile", way.p99_us, "us");
        enter(table, "largest", way.max_us, "us");
    }
    enter("Queries that came to the receiver", "came", came as f64, "");
    enter(
        "Queries that came to the receiver",
        "dropped by its full queue",
        trial.received.dropped as f64,
        "",
    );
    enter("Queries that came to the receiver", "ordered", trial.received.stamps.len() as f64, "");
    context.figure(Figure {
        samples: came,
        paper: Some(100.0 * AUTHORS),
        place: "the most that the script around dns64perf++ accepts, of 60 s".to_owned(),
        ..figure(
            "Time of sending",
            &row,
            "longer than ordered, receiver",
            100.0 * trial.outside.longer,
            "%",
            Origin::Measured,
        )
    });
}

/// Points of the mean deviation over the length of the interval, in per cent. A logarithmic axis has no 0.
fn points(deviations: [Deviation; 4], value: impl Fn(Deviation) -> f64) -> Vec<Point> {
    let point = |(length, deviation): (u64, Deviation)| Point {
        x: length as f64,
        y: 100.0 * value(deviation),
        interval: None,
    };
    INTERVALS_MS.into_iter().zip(deviations).map(point).filter(|point| point.y > 0.0).collect()
}

/// Mean deviation by the receiver and by the tester, for single datagrams.
fn by_rate(trials: &[Trial]) -> Chart {
    let of_default = ours(trials).filter(|(trial, _)| trial.sender == WAYS[0].name);
    let lines = of_default.flat_map(|(trial, inside)| {
        [("receiver", trial.outside.deviations), ("tester", deviations(inside))].map(|(who, deviations)| {
            ChartLine {
                name: format!("{}/s, {who}", grouped(trial.rate_qps as u64)),
                origin: Origin::Measured,
                points: points(deviations, |deviation| deviation.mean),
            }
        })
    });
    Chart {
        id: "mean-deviation".to_owned(),
        title: "Mean deviation from the schedule, single datagrams".to_owned(),
        description: "Mean deviation of the number of queries in an interval from the schedule, over the length of the interval: by \
                      the time stamps of the receiver's kernel, and by the tester's own account. Where the two lie together, the \
                      tester tells the truth about its pace."
            .to_owned(),
        x: ChartAxis { label: "length of the interval (ms)".to_owned(), logarithmic: true },
        y: ChartAxis { label: "mean deviation (%)".to_owned(), logarithmic: true },
        lines: lines.collect(),
    }
}

/// Largest deviation by the receiver, for each way of sending at the highest rate.
fn by_way(trials: &[Trial]) -> Chart {
    let highest = trials.iter().map(|trial| trial.rate_qps).fold(0.0, f64::max);
    let lines = trials.iter().filter(|trial| trial.rate_qps == highest).map(|trial| ChartLine {
        name: trial.sender.to_owned(),
        origin: Origin::Measured,
        points: points(trial.outside.deviations, |deviation| deviation.max),
    });
    Chart {
        id: "largest-deviation".to_owned(),
        title: format!("Largest deviation from the schedule at {}/s, receiver", grouped(highest as u64)),
        description: "Largest deviation of the number of queries in an interval from the schedule, by the time stamps of the \
                      receiver's kernel, for each way of sending and for other tools."
            .to_owned(),
        x: ChartAxis { label: "length of the interval (ms)".to_owned(), logarithmic: true },
        y: ChartAxis { label: "largest deviation (%)".to_owned(), logarithmic: true },
        lines: lines.collect(),
    }
}

/// Claim: what the tester counts as sent has left.
fn claim_complete(context: &mut Context, trials: &[Trial]) {
    let sum = |count: fn(&Trial) -> u64| ours(trials).map(|(trial, _)| count(trial)).sum::<u64>();
    let sent = ours(trials).map(|(_, inside)| inside.sent).sum::<u64>();
    let came = sum(|trial| trial.received.stamps.iter().filter(|stamp| **stamp > 0).count() as u64);
    let repeated = sum(|trial| trial.received.repeated);
    let dropped = sum(|trial| trial.received.dropped);
    let unstamped = sum(|trial| trial.received.unstamped);
    context.claim(
"Each query that the tester counts as sent came to the receiver's kernel once, but for those that the receiver's full queue \
         dropped",
        "a query that never came, came twice, or has no time stamp",
        format!(
            "{} sent; {} came, {repeated} of them twice, {dropped} dropped, {unstamped} without time stamp",
            grouped(sent),
            grouped(came)
        ),
        sent <= came + dropped && came <= sent && repeated == 0 && unstamped == 0,
    );
}

/// Largest difference of the tester's own account from the receiver's that is taken for agreement in an interval: 1 % of its queries,
/// or a group that is on its way at either end.
fn allowed(trial: &Trial, length_ms: u64) -> f64 {
    let queries = trial.rate_qps * length_ms as f64 / 1e3;
    AGREEMENT.max(2.0 * f64::from(trial.group) / queries)
}

/// The loads of this tester that the receiver saw whole: a query that its full queue dropped has no time stamp, and is missing in its
/// intervals.
fn seen_whole(trials: &[Trial]) -> impl Iterator<Item = (&Trial, &Outcome)> {
    ours(trials).filter(|(trial, _)| trial.received.dropped == 0)
}

/// Claim: the tester reports the pauses and bursts that the receiver sees.
fn claim_agreement(context: &mut Context, trials: &[Trial]) {
    let mut worst: Option<(f64, String)> = None;
    let mut holds = true;
    for (trial, inside) in seen_whole(trials) {
        let compared = INTERVALS_MS.into_iter().zip(trial.outside.deviations).zip(deviations(inside));
        for ((length, outside), inside) in compared.filter(|((length, _), _)| *length >= 100) {
            let difference = (outside.max - inside.max).abs();
            holds &= difference <= allowed(trial, length);
            if worst.as_ref().is_none_or(|(largest, _)| difference > *largest) {
                let text = format!(
                    "largest difference {:.3} percentage points, at {} in {}: {:.3} % by the receiver, {:.3} % by the tester, {:.3} \
                     allowed",
                    100.0 * difference,
                    trial.row(),
                    shown(length),
                    100.0 * outside.max,
                    100.0 * inside.max,
                    100.0 * allowed(trial, length)
                );
                worst = Some((difference, text));
            }
        }
    }
    let compared = format!("{} of {} trials", seen_whole(trials).count(), ours(trials).count());
    context.claim(
"In trials whose queries the receiver saw whole, the largest deviation in 100 ms and in 1 s by the tester's own account is that \
         by the receiver's kernel, within 1 % of the queries of the interval or two groups of queries",
        "such a trial in which the receiver saw a pause or a burst that the tester does not report, or no such trial",
        worst.as_ref().map_or(compared.clone(), |(_, text)| format!("{compared}; {text}")),
        holds && worst.is_some(),
    );
}

/// Claim: the tester's time stamps are those of the departure.
fn claim_way(context: &mut Context, trials: &[Trial]) {
    let worst = ours(trials).max_by(|(a, _), (b, _)| a.outside.way.p99_us.total_cmp(&b.outside.way.p99_us));
    let Some((worst, _)) = worst else { return };
    context.claim(
"99 of 100 queries come to the receiver's kernel within 1 ms of the time that the tester notes for them, less the shortest \
         such time",
        "a trial whose 99th percentile is longer",
        format!("largest 99th percentile {:.1} us, at {}", worst.outside.way.p99_us, worst.row()),
        worst.outside.way.p99_us <= WAY_US,
    );
}

/// Claim: the authors' bound, from outside.
fn claim_authors(context: &mut Context, trials: &[Trial]) {
    let accepted = || trials.iter().filter(|trial| trial.is_accepted());
    let worst = accepted().max_by(|a, b| a.outside.longer.total_cmp(&b.outside.longer));
    let Some(worst) = worst else { return };
    context.claim(
"Where the tester says that it kept its schedule, sending took at most 1 % longer than ordered by the receiver's clock, the \
         bound of the authors' script",
        "such a trial that took longer",
        format!(
            "{} of {} trials; the longest {:.4} % longer, at {}",
            accepted().count(),
            ours(trials).count(),
            100.0 * worst.outside.longer,
            worst.row()
        ),
        worst.outside.longer <= AUTHORS,
    );
}

fn differences(context: &mut Context, duration: Duration) {
    context.difference(
        "Rule of the papers",
        format!(
            "The script around dns64perf++ ends if sending took more than 1 % longer than the 60 s that were ordered, and \
             dns64perf++ prints \"Can't keep up\" when it is late with a query. Both are the tester's own account. Here a trial \
             takes {} s, and a receiver judges it; the bound is a claim in trials of at least {} s.",
            duration.as_secs_f64(),
            JUDGED.as_secs()
        ),
    );
}
