//! The paper's run over a night (section 4): constant load near the capacity, second by second.

use super::super::context::{Context, figure, until_stopped};
use super::super::device::RunningDevice;
use super::servers::{self, Bench, Candidate};
use super::{PREFIX, ZONE};
use crate::usage::Usage;
use load::NoCompanion;
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point};
use measure::name_range::NameRange;
use measure::order::{Expectation, Load, Pace};
use measure::outcome::Outcome;
use papers::totd::ids::Scheme;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Share of the found capacity that is sent. Less in the short version, whose machine may be busy with other work.
const SHARE: (f64, f64) = (0.4, 0.7);

/// Duration of the search for the capacity.
const SEARCH: Duration = Duration::from_millis(1500);

/// Outstanding queries of the search.
const OUTSTANDING: u32 = 32;

/// Points of a chart: an overnight run has 43,200 seconds, which are gathered into as many groups as fit.
const POINTS: usize = 720;

/// Cache of Sixfold, so that it is full soon and memory can be compared.
const CACHE: &str = "cache.size = \"4MiB\"";

/// Shortest load that says something about stability. The paper's took a night; in 10 minutes every timer of the forwarder (60 s, 300 s) is
/// over, and its IDs repeat many times.
const STABLE: Duration = Duration::from_secs(600);

/// Growth of memory that a run may show, in octets: allocators and page caches need some.
const GROWTH: u64 = 8 << 20;

/// Observation of one second: resident memory in octets.
#[derive(Clone, Debug, Default)]
struct Watch {
    memory: Vec<u64>,
}

/// Runs the experiment.
///
/// # Errors
///
/// `--duration` is below 4 s, a server cannot be started, or the user stops the experiment.
pub(super) fn run(context: &mut Context) -> Result<(), String> {
    let whole = context.choose(Duration::from_secs(6), Duration::from_secs(600));
    let duration = context.options.duration.unwrap_or(whole);
    if duration < Duration::from_secs(4) {
        return Err(
            "the run is divided into quarters of a second or more; give --duration 4s or more".to_owned()
        );
    }
    if duration < STABLE {
        context.warning(format!(
            "{} s are not a night: nothing is claimed about stability below {} s; the paper's run is --duration 12h",
            duration.as_secs(),
            STABLE.as_secs()
        ));
    }
    let mut candidates = servers::devices(context, &["sixfold"])?;
    for candidate in &mut candidates {
        if candidate.name == "sixfold" {
            candidate.options = vec![CACHE.to_owned()];
        }
    }
    candidates.extend(servers::programs(context)?);
    candidates.push(Candidate::forwarder(Scheme::SequentialFixed, &[])?);
    for candidate in &candidates {
        context.progress(&format!("{}, {} s", candidate.name, duration.as_secs()))?;
        run_one(context, candidate, duration)?;
    }
    Ok(())
}

/// Searches the capacity of a server, loads it, and enters its figures.
fn run_one(context: &mut Context, candidate: &Candidate, duration: Duration) -> Result<(), String> {
    let mut bench = Bench::new()?;
    let running = bench.start(context, candidate)?;
    let failed = |error: load::LoadError| format!("{}: {error}", candidate.name);
    let closed = order(&running, Pace::Closed { outstanding: OUTSTANDING }, SEARCH, 0)?;
    let stop = std::sync::Arc::clone(&context.stop);
    let go_on = until_stopped(&stop);
    let found = load::run(&closed, None::<&mut NoCompanion>, &go_on).map_err(failed)?;
    let share = context.choose(SHARE.0, SHARE.1);
    let rate_qps = (found.goodput_qps() * share).floor().max(1.0);
    context.progress(&format!("{:.0} answers/s found, {rate_qps} are sent", found.goodput_qps()))?;
    let open = order(&running, Pace::Open { rate_qps, burst: 1 }, duration, found.names_used)?;
    let mut watch = Watch::default();
    let outcome = load::run(&open, None::<&mut NoCompanion>, |progress| {
        watch.memory.push(bench.usage(&running).map_or(0, |usage| resident(&usage)));
        go_on(progress)
    })
    .map_err(failed)?;
    context.progress("the load has ended")?;
    bench.stop(running);
    enter(context, candidate, rate_qps, &outcome, &watch);
    Ok(())
}

fn resident(usage: &Usage) -> u64 {
    usage.processes.iter().map(|process| process.resident).sum()
}

/// A load for names that were not asked for yet.
fn order(running: &RunningDevice, pace: Pace, duration: Duration, first_name: u64) -> Result<Load, String> {
    let names = NameRange::new(Ipv4Addr::new(1, 0, 0, 0), Ipv4Addr::new(126, 255, 255, 255));
    let names = names.ok_or("the range of names is empty")?;
    let expect = Expectation::synthesized(ZONE, (PREFIX, 96));
    Ok(Load { first_name, ..Load::of_new_names(running.address, pace, duration, names, expect) })
}

/// Longest run of seconds without a valid answer, the last, incomplete second aside.
fn seconds_without_answers(outcome: &Outcome) -> usize {
    let whole = outcome.per_second.len().saturating_sub(1);
    let seconds = &outcome.per_second[..whole];
    seconds.split(|second| second.valid > 0).map(<[_]>::len).max().unwrap_or(0)
}

/// Mean memory of a quarter of the run, 0 to 3.
fn quarter(memory: &[u64], number: usize) -> u64 {
    let length = memory.len() / 4;
    let part = &memory[number * length..(number + 1) * length];
    part.iter().sum::<u64>() / part.len().max(1) as u64
}

fn enter(context: &mut Context, candidate: &Candidate, rate_qps: f64, outcome: &Outcome, watch: &Watch) {
    let name = candidate.name.as_str();
    let table = "Constant load";
    let valid = 100.0 * outcome.valid as f64 / outcome.sent.max(1) as f64;
    let silent = seconds_without_answers(outcome);
    let worst = outcome.per_second.iter().rev().skip(1).map(|second| second.valid).min().unwrap_or(0);
    for (column, value, unit) in [
        ("rate sent", rate_qps, "1/s"),
        ("valid in time", valid, "%"),
        ("worst second", worst as f64, "1/s"),
        ("longest time without answers, in whole seconds", silent as f64, "s"),
        ("median latency", outcome.latency_us.intended.p50 / 1000.0, "ms"),
        ("99th percentile of the latency", outcome.latency_us.intended.p99 / 1000.0, "ms"),
        ("longest latency", outcome.latency_us.intended.max / 1000.0, "ms"),
    ] {
        context.figure(Figure {
            samples: outcome.sent,
            ..figure(table, name, column, value, unit, Origin::Measured)
        });
    }
    let is_long = outcome.per_second.len() as u64 >= STABLE.as_secs();
    if is_long {
        context.claim(
            format!("{name}: no second passes without answers"),
            "one second without a valid answer",
            format!("{silent} s; the worst second has {worst} valid answers"),
            silent == 0 && outcome.valid > 0,
        );
        let bad = outcome.sent.saturating_sub(outcome.valid);
        context.claim(
            format!("{name}: at least 999 of 1,000 queries have a valid answer within 1 s"),
            "more than 1 of 1,000 queries lost, late or wrong",
            format!("{bad} of {} had none", outcome.sent),
            outcome.sent > 0 && bad * 1000 <= outcome.sent,
        );
    }
    enter_memory(context, name, &watch.memory, is_long);
    let rates: Vec<f64> = outcome.per_second.iter().map(|second| second.valid as f64).collect();
    let memory: Vec<f64> = watch.memory.iter().map(|octets| *octets as f64 / 1_048_576.0).collect();
    let rates = rates.split_last().map_or(&[][..], |(_, whole)| whole);
    chart(context, name, "rate", "Valid answers of each second", "answers/s", rates);
    chart(context, name, "memory", "Resident memory", "MiB", &memory);
}

/// Compares the second and the last quarter: in the first one a server fills its cache.
fn enter_memory(context: &mut Context, name: &str, memory: &[u64], is_long: bool) {
    if memory.len() < 4 || memory.contains(&0) {
        context.warning(format!("{name}: its memory could not be read in every second"));
        return;
    }
    let (early, late) = (quarter(memory, 1), quarter(memory, 3));
    for (column, octets) in [("second quarter", early), ("last quarter", late)] {
        let value = octets as f64 / 1_048_576.0;
        let samples = memory.len() as u64 / 4;
        context.figure(Figure { samples, ..figure("Memory", name, column, value, "MiB", Origin::Measured) });
    }
    if !is_long {
        return;
    }
    context.claim(
        format!(
            "{name}: memory does not grow by more than a tenth and 8 MiB from the second to the last quarter"
        ),
        "more growth: a leak, or a cache without a limit",
        format!("{:.1} to {:.1} MiB", early as f64 / 1_048_576.0, late as f64 / 1_048_576.0),
        late <= early + early / 10 + GROWTH,
    );
}

/// Enters a chart over time. Long runs are gathered: a point is the lowest value of its group.
fn chart(context: &mut Context, name: &str, id: &str, title: &str, label: &str, values: &[f64]) {
    let group = values.len().div_ceil(POINTS).max(1);
    let lowest = |part: &[f64]| part.iter().copied().fold(f64::INFINITY, f64::min);
    let points = values.chunks(group).enumerate().map(|(number, part)| Point {
        x: (number * group) as f64,
        y: lowest(part),
        interval: None,
    });
    let points = points.collect();
    let short: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    context.chart(Chart {
        id: format!("{id}-{short}"),
        title: format!("{title}: {name}"),
        description: "A stable server shows a level line.".to_owned(),
        x: ChartAxis { label: "time (s)".to_owned(), logarithmic: false },
        y: ChartAxis { label: label.to_owned(), logarithmic: false },
        lines: vec![ChartLine { name: name.to_owned(), origin: Origin::Measured, points }],
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::outcome::Second;

    #[test]
    fn seconds_without_answers_are_counted_in_a_row_and_the_last_second_is_not() {
        let valid = |valid| Second { sent: 10, valid, ..Second::default() };
        let outcome = |seconds: &[u64]| Outcome {
            per_second: seconds.iter().copied().map(valid).collect(),
            ..Outcome::default()
        };
        assert_eq!(seconds_without_answers(&outcome(&[5, 5, 5])), 0);
        assert_eq!(seconds_without_answers(&outcome(&[5, 0, 0, 5, 0, 5, 5])), 2);
        assert_eq!(seconds_without_answers(&outcome(&[5, 5, 0])), 0);
    }

    #[test]
    fn memory_is_compared_by_quarters() {
        let memory = [1, 1, 2, 4, 5, 5, 6, 8, 9];
        assert_eq!((quarter(&memory, 0), quarter(&memory, 1), quarter(&memory, 3)), (1, 3, 7));
    }
}
