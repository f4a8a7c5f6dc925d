//! `mtd64ng-threads`: the highest rate without loss against the number of threads (Tables 2 and 3, Figures 4 and 5 of the paper
//! on mtd64-ng).
//!
//! `sixfold-bench run` does the work: a plan with a sweep of the workers for each device. This file makes the plans, and turns
//! the records into figures and a chart. The folders of the runs stay beside the result.

use super::devices::{self, PREFIX, Subject, TOTD_PROGRAMS};
use super::place::Place;
use crate::device::Recipe;
use crate::lab::context::{Context, figure};
use crate::run::{self, Ended};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, LINES_MAX, Origin, Point, Program};
use measure::name_range::NameRange;
use measure::plan::{Draft, Plan, Prefix, Span};
use measure::run::{CellResult, Run};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

/// Devices without `--device`: those that have threads, or processes in their place.
const DEFAULT: [&str; 6] = ["sixfold", "bind", "unbound", "powerdns", "knot-resolver", "coredns"];

/// Devices of the short version.
const DEFAULT_QUICK: [&str; 1] = ["sixfold"];

/// Table of the rates.
const RATES: &str = "Highest rate without loss by threads, median";
/// Table of CPU times.
const CPU: &str = "CPU time of the device for a query";
/// Column of the paper's mtd64-ng.
const MTD64_NG: &str = "mtd64-ng";

/// Medians of mtd64-ng by threads (Tables 2 and 3), in queries per second.
const PAPER: [(u16, f64); 21] = [
    (1, 3132.0),
    (2, 4747.0),
    (3, 5885.0),
    (4, 6849.0),
    (5, 7490.0),
    (6, 7940.0),
    (7, 8249.0),
    (8, 8542.0),
    (9, 8446.0),
    (10, 8470.0),
    (11, 8496.0),
    (12, 8433.0),
    (20, 6368.0),
    (30, 6108.0),
    (40, 6146.0),
    (50, 6116.0),
    (60, 5956.0),
    (70, 5804.0),
    (80, 6071.0),
    (90, 6054.0),
    (100, 6074.0),
];

/// Medians of BIND and MTD64 (Table 3), which have no such setting there.
const PAPER_OTHERS: [(&str, f64); 2] = [("bind", 1374.0), ("mtd64", 5602.0)];

/// Most threads of the order of the devices: the paper's best number.
const ORDER_THREADS: u16 = 8;

/// Thread numbers of the short version.
const QUICK: [u16; 3] = [1, 2, 4];

/// Runs the experiment.
///
/// # Errors
///
/// As [`devices::subjects`] and `Place::open`; Sixfold cannot be measured, or the user stops the experiment. Another device that
/// cannot be measured is a warning.
pub fn run(context: &mut Context) -> Result<(), String> {
    let default: &[&str] = context.choose(&DEFAULT_QUICK, &DEFAULT);
    let subjects = devices::subjects(context, default)?;
    let threads: Vec<u16> =
        if context.options.quick { QUICK.to_vec() } else { PAPER.map(|(threads, _)| threads).to_vec() };
    let place = Place::open(subjects.iter().any(Subject::is_of_the_papers))?;
    let (mut lines, mut rates) = (Vec::new(), Vec::new());
    for subject in &subjects {
        context.progress(&format!("searching the highest rates of {}", subject.name))?;
        match search(context, &place, subject, &threads) {
            Ok(record) => {
                enter(context, subject, &record);
                rates.extend(record.results.iter().map(|result| Rate::of(&subject.name, result)));
                lines.push(line(subject, &record));
            }
            Err(why) if subject.name == "sixfold" => return Err(why),
            Err(why) => context.warning(format!("{} could not be measured: {why}", subject.name)),
        }
    }
    paper(context, &subjects, &threads);
    order(context, &rates);
    chart(context, lines);
    Ok(())
}

/// Runs the search for a device at all numbers of threads.
fn search(context: &Context, place: &Place, subject: &Subject, threads: &[u16]) -> Result<Run, String> {
    place.set_v6only(subject.is_v6only())?;
    let plan = plan(context.options.quick, place, subject, threads)?;
    let folder = new_folder(context, &subject.name)?;
    match run::begin(&plan, &folder, true, &context.stop)? {
        Ended::Complete(record) => Ok(*record),
        Ended::Interrupted => Err("stopped by a signal".to_owned()),
        Ended::Stopped(why) => Err(why),
    }
}

/// A folder for a run that does not exist yet: an earlier result in the same place stays.
fn new_folder(context: &Context, name: &str) -> Result<PathBuf, String> {
    let folders = (1..100).map(|number| context.out.join(format!("run-{name}-{number}")));
    folders.into_iter().find(|folder| !folder.exists()).ok_or_else(|| {
        format!("{}: 99 runs of {name} are there already; give another folder", context.out.display())
    })
}

/// Plan of the run of a device.
fn plan(quick: bool, place: &Place, subject: &Subject, threads: &[u16]) -> Result<Plan, String> {
    let mut draft = Draft { profile: Some("quick".to_owned()), ..Draft::default() };
    let span = |ms| Some(Span(Duration::from_millis(ms)));
    // The short version has 3 thread numbers in 25 s. The whole one has trials of 5 s and 3 repetitions; the paper has 60 s
    // and 20.
    draft.trial.duration = span(if quick { 500 } else { 5000 });
    draft.trial.timeout = span(if quick { 250 } else { 1000 });
    draft.trial.pause = span(if quick { 50 } else { 1000 });
    draft.search.repetitions = Some(if quick { 1 } else { 3 });
    draft.search.precision = Some(if quick { 0.3 } else { 0.02 });
    draft.search.start = Some(4000.0);
    draft.search.max = Some(if quick { 32_000.0 } else { 500_000.0 });
    draft.search.curve = Some(Vec::new());
    draft.search.confirm = Some(true);
    draft.correctness.names = Some(50);
    draft.names.prefix = Some(Prefix { address: PREFIX.0, length: PREFIX.1 });
    draft.sweep.parameter = Some("workers".to_owned());
    draft.sweep.values = Some(threads.iter().map(u16::to_string).collect());
    match &subject.recipe {
        Recipe::Template { name, program } => {
            draft.device.template = Some(name.clone());
            draft.device.program = program.clone();
        }
        Recipe::Custom { command, files } => {
            draft.device.command = Some(command.clone());
            // `{value}` is the value of the sweep here; in the other experiments it is the longest reply.
            let fixed = files.iter().map(|(name, text)| (name.clone(), text.replace("{value}", "512")));
            draft.device.files = Some(fixed.collect());
        }
    }
    if TOTD_PROGRAMS.contains(&subject.name.as_str()) {
        // TOTD has one thread.
        draft.sweep.values = Some(vec!["1".to_owned()]);
    }
    if subject.name == "mtd64" {
        // MTD64 has no such setting, and changes addresses whose third octet is 192 or more (see `papers::mtd64::model`).
        draft.sweep.values = Some(vec!["1".to_owned()]);
        draft.names.window = NameRange::new(Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(10, 0, 191, 255));
        draft.trial.duration = span(500);
        draft.search.max = Some(64_000.0);
    }
    if matches!(place, Place::Own(_)) {
        let prefix = place.prefix()?;
        let port = if subject.name == "mtd64" { 53 } else { 5353 };
        draft.device.address = Some((Ipv6Addr::LOCALHOST, port).into());
        draft.authority.address = Some(place.upstream());
        draft.tester.host = Some(prefix.clone());
        draft.device.host = Some(prefix);
    }
    draft.finish().map_err(|error| format!("the plan for {}: {error}", subject.name))
}

/// Enters the figures of a run.
fn enter(context: &mut Context, subject: &Subject, record: &Run) {
    context.program(Program {
        name: subject.name.clone(),
        version: record.device.version.clone(),
        command: record.device.command.clone(),
        files: record.device.files.clone().into_iter().collect(),
    });
    for warning in &record.warnings {
        context.warning(format!("{}: {warning}", subject.name));
    }
    let precision = record.settings.precision;
    for result in &record.results {
        let summary = &result.confirmed_summary;
        let row = format!("threads: {}", result.sweep);
        let paper = paper_rate(&subject.name, &result.sweep);
        let entry = figure(RATES, &row, &subject.name, summary.median, "1/s", Origin::Measured);
        context.figure(Figure {
            // The interval of one search is that of its steps.
            interval: Some(summary.interval(precision)),
            samples: u64::from(summary.count),
            paper,
            place: paper.map(|_| "Tables 2 and 3, Odroid C1+".to_owned()).unwrap_or_default(),
            ..entry
        });
        if let Some(cpu_us) = result.cpu_us_per_query {
            context.figure(figure(CPU, &row, &subject.name, cpu_us, "us", Origin::Measured));
        }
        if result.censored {
            context.warning(format!(
                "{} with {row} the rate is at least this; the tester or the limit ended the search",
                subject.name
            ));
        }
    }
    if subject.name == "sixfold" {
        let rates: Vec<String> = record.results.iter().map(|result| format!("{:.0}", rate(result))).collect();
        context.claim(
            "Sixfold: the search finds a rate without loss at every number of threads",
            "a number of threads at which every trial of the search loses queries",
            format!("{} queries per second", rates.join(", ")),
            !rates.is_empty() && record.results.iter().all(|result| rate(result) > 0.0),
        );
    }
}

/// Rate of a result: the median of the searches in which a failure counts after a second trial failed, too.
fn rate(result: &CellResult) -> f64 {
    result.confirmed_summary.median
}

/// The paper's figure for a device and a number of threads.
fn paper_rate(name: &str, threads: &str) -> Option<f64> {
    match name {
        MTD64_NG => PAPER.iter().find(|(number, _)| number.to_string() == threads).map(|(_, rate)| *rate),
        _ => PAPER_OTHERS.iter().find(|(other, _)| *other == name && threads == "1").map(|(_, rate)| *rate),
    }
}

/// Enters the paper's figures of mtd64-ng if it is not at hand.
fn paper(context: &mut Context, subjects: &[Subject], threads: &[u16]) {
    if !subjects.iter().any(|subject| subject.name == MTD64_NG) {
        for (number, rate) in PAPER.iter().filter(|(number, _)| threads.contains(number)) {
            let entry = figure(RATES, &format!("threads: {number}"), MTD64_NG, 0.0, "1/s", Origin::Paper);
            let place = "Tables 2 and 3, Odroid C1+".to_owned();
            context.figure(Figure { value: None, samples: 0, paper: Some(*rate), place, ..entry });
        }
    }
}

/// A rate of a device, for the order of the devices.
struct Rate {
    device: String,
    threads: u16,
    qps: f64,
    /// True if the rate may be higher: the tester or the limit ended the search.
    is_lower_bound: bool,
}

impl Rate {
    /// Rate of a result.
    fn of(device: &str, result: &CellResult) -> Rate {
        let threads = result.sweep.parse().unwrap_or(1);
        Rate { device: device.to_owned(), threads, qps: rate(result), is_lower_bound: result.censored }
    }
}

/// The paper's order, on what was measured here: mtd64-ng above BIND and MTD64. The paper's own ratios (6.2 and 1.5 at 8 threads) follow from
/// its medians, so they test nothing.
fn order(context: &mut Context, rates: &[Rate]) {
    let highest = |device: &str| {
        let all = rates.iter().filter(|rate| rate.device == device && rate.threads <= ORDER_THREADS);
        all.max_by(|a, b| a.qps.total_cmp(&b.qps))
    };
    let Some(ng) = highest(MTD64_NG) else { return };
    for (other, _) in PAPER_OTHERS {
        let Some(other) = highest(other) else { continue };
        if other.is_lower_bound {
            context.warning(format!(
                "{} was measured up to the limit of the tester, so its order with mtd64-ng is open",
                other.device
            ));
            continue;
        }
        context.claim(
            format!(
                "As in the paper, the highest rate of mtd64-ng with at most {ORDER_THREADS} threads is above that of {}",
                other.device
            ),
            format!("a rate of {} that is as high", other.device),
            format!("{:.0}/s and {:.0}/s, {:.2} times", ng.qps, other.qps, ng.qps / other.qps),
            ng.qps > other.qps,
        );
    }
}

/// Curve of a device.
fn line(subject: &Subject, record: &Run) -> ChartLine {
    let precision = record.settings.precision;
    let point = |result: &CellResult| {
        let interval = Some(result.confirmed_summary.interval(precision));
        Some(Point { x: result.sweep.parse().ok()?, y: rate(result), interval })
    };
    let points = record.results.iter().filter_map(point).collect();
    ChartLine { name: subject.name.clone(), origin: Origin::Measured, points }
}

/// Adds the chart, with the paper's curve and its constant lines.
fn chart(context: &mut Context, measured: Vec<ChartLine>) {
    let line = |name: String, points: Vec<(f64, f64)>| ChartLine {
        name,
        origin: Origin::Paper,
        points: points.into_iter().map(|(x, y)| Point { x, y, interval: None }).collect(),
    };
    let curve = PAPER.map(|(threads, rate)| (f64::from(threads), rate)).to_vec();
    let constant =
        |(name, rate): (&str, f64)| line(format!("{name} (paper)"), vec![(1.0, rate), (100.0, rate)]);
    let papers =
        std::iter::once(line("mtd64-ng (paper)".to_owned(), curve)).chain(PAPER_OTHERS.map(constant));
    let lines = measured.into_iter().take(LINES_MAX - 1 - PAPER_OTHERS.len()).chain(papers).collect();
    context.chart(Chart {
        id: "rate-by-threads".to_owned(),
        title: "Highest rate without loss by number of threads".to_owned(),
        description: "The paper's mtd64-ng gains up to 8 threads on four cores and loses 28 % with 30 and more. A machine with \
                      two cores has no core for a third thread, and the tester needs one of the two."
            .to_owned(),
        x: ChartAxis { label: "threads".to_owned(), logarithmic: true },
        y: ChartAxis { label: "queries per second".to_owned(), logarithmic: true },
        lines,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn subject(name: &str, recipe: Recipe) -> Subject {
        Subject { name: name.to_owned(), recipe }
    }

    #[test]
    fn a_plan_sweeps_the_workers_of_a_template() {
        let recipe = Recipe::Template { name: "unbound".to_owned(), program: None };
        let plan = plan(true, &Place::Host, &subject("unbound", recipe), &QUICK).unwrap();
        let sweep = plan.sweep.unwrap();
        assert_eq!(
            (sweep.parameter.as_str(), sweep.values),
            ("workers", ["1", "2", "4"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn the_longest_reply_is_not_the_number_of_threads() {
        let text = "response-maxlength {value}\nnum-threads {workers}\n".to_owned();
        let files = BTreeMap::from([("mtd64-ng.conf".to_owned(), text)]);
        let recipe = Recipe::Custom { command: vec!["x".to_owned()], files };
        let plan = plan(false, &Place::Host, &subject("mtd64-ng", recipe), &[1, 100]).unwrap();
        assert_eq!(plan.device.files["mtd64-ng.conf"], "response-maxlength 512\nnum-threads {workers}\n");
    }

    #[test]
    fn the_papers_medians_stand_beside_the_right_devices() {
        assert_eq!(paper_rate("mtd64-ng", "8"), Some(8542.0));
        assert_eq!(paper_rate("bind", "1"), Some(1374.0));
        assert_eq!(paper_rate("bind", "8"), None);
        assert_eq!(paper_rate("sixfold", "1"), None);
    }
}
