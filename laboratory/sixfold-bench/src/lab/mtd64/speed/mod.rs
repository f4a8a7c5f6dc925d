//! `mtd64-speed`: the test with dns64perf of the paper on MTD64 (Table I): 65,536 names in 256 experiments of 256 queries, 16
//! queries outstanding, elapsed time of each experiment.
//!
//! The device has one core, tester and authority another. On a machine with other load the CPU time of the device is the figure
//! to trust: elapsed times include waits for the core.

mod closed_loop;

use super::cores::Cores;
use super::devices::{self, Launch, Subject};
use super::limits;
use super::place::Place;
use crate::agent_client::AgentClient;
use crate::lab::context::{Context, figure};
use closed_loop::{EXPERIMENTS, Measured, QUERIES, ZONE};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, mean_interval};
use measure::order::Authority;
use measure::run::Summary;
use std::net::SocketAddr;
use std::sync::Arc;

/// Devices without `--device`.
const DEFAULT: [&str; 7] = ["sixfold", "bind", "unbound", "powerdns", "knot-resolver", "coredns", "dnsproxy"];

/// Devices of the short version.
const DEFAULT_QUICK: [&str; 3] = ["sixfold", "bind", "unbound"];

/// Table of the figures.
const TABLE: &str = "Closed loop: 256 experiments of 256 queries, 16 outstanding";

/// The paper's Table I: device, ms for an experiment, standard deviation, queries per second.
const PAPER: [(&str, f64, f64, f64); 2] = [("mtd64", 65.87, 5.08, 3886.0), ("bind", 122.27, 4.67, 2094.0)];

/// Place of the paper's figures.
const PLACE: &str = "Table I, Raspberry Pi 2";

/// Threads of mtd64-ng, its default. The templates have one worker on their one core.
const PAPER_PROGRAM_THREADS: u16 = 10;

/// Share of queries that may be lost or wrong before Sixfold's claim fails: a pause of 1 s of a shared machine loses the 16
/// outstanding queries.
const INVALID_SHARE: f64 = 0.01;

/// Runs the experiment.
///
/// # Errors
///
/// As [`devices::subjects`] and `Place::open`; a device or the authority cannot be started, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    let default: &[&str] = context.choose(&DEFAULT_QUICK, &DEFAULT);
    let subjects = devices::subjects(context, default)?;
    let place = Place::open(subjects.iter().any(Subject::is_of_the_papers))?;
    let mut agent = place.agent()?;
    let cores = Cores::choose(context, &agent);
    let upstream = serve(&mut agent, &place, &cores)?;
    let mut lines = Vec::new();
    for subject in &subjects {
        context.progress(&format!("measuring {}", subject.name))?;
        let (measured, cpu_us) = measure(context, &place, &mut agent, subject, upstream, &cores)?;
        enter(context, subject, &measured, cpu_us);
        lines.push(line(&subject.name, &measured));
    }
    paper(context, &subjects);
    chart(context, lines);
    Ok(())
}

/// Starts the authority.
fn serve(agent: &mut AgentClient, place: &Place, cores: &Cores) -> Result<SocketAddr, String> {
    let order = Authority {
        listen: vec![place.upstream()],
        threads: 1,
        pins: cores.tester.into_iter().collect(),
        zone: ZONE.to_owned(),
        aaaa_share: 0.0,
        seed: 1,
        addresses: 1,
        cname_depth: 0,
        ttl: 3600,
        offload: false,
    };
    let addresses = agent.authority(&order).map_err(|error| error.to_string())?;
    addresses.first().copied().ok_or_else(|| "the authority listens nowhere".to_owned())
}

/// Measures a device. Returns the times, and its CPU time per reply in microseconds.
fn measure(
    context: &mut Context,
    place: &Place,
    agent: &mut AgentClient,
    subject: &Subject,
    upstream: SocketAddr,
    cores: &Cores,
) -> Result<(Measured, f64), String> {
    let workers = if subject.is_of_the_papers() { PAPER_PROGRAM_THREADS } else { 1 };
    let launch = Launch { workers, cores: cores.device.clone(), ..Launch::new(upstream, ZONE) };
    place.set_v6only(subject.is_v6only())?;
    let first = format!("011-000-000-000.{ZONE}");
    let (device, _) = devices::start(context, place, agent, subject, &launch, &first)?;
    let limit = context.choose(limits::SPEED_QUICK, limits::SPEED);
    let before = device.usage(agent)?;
    let stop = Arc::clone(&context.stop);
    let measured = closed_loop::run(place, device.address, cores.tester, limit, &stop)?;
    let replies = measured.valid + measured.invalid;
    let used = device.usage(agent)?.since(&before, replies);
    device.stop(agent);
    if measured.experiments_ms.len() < EXPERIMENTS && !context.options.quick {
        context.warning(format!(
            "{} was stopped after {} experiments of {EXPERIMENTS}, because it took {} s",
            subject.name,
            measured.experiments_ms.len(),
            limit.as_secs()
        ));
    }
    Ok((measured, used.cpu_us_per_query))
}

/// Enters the figures of a device. The paper's stand beside BIND and MTD64.
fn enter(context: &mut Context, subject: &Subject, measured: &Measured, cpu_us: f64) {
    let times = &measured.experiments_ms;
    let summary = Summary::of(times);
    let interval = mean_interval(times, context.seed(1));
    let paper = PAPER.iter().find(|(name, ..)| *name == subject.name);
    let rate = |ms: f64| QUERIES as f64 * 1e3 / ms;
    let valid = 100.0 * measured.valid as f64 / measured.queries().max(1) as f64;
    let samples = times.len() as u64;
    for (column, unit, value, interval, paper) in [
        ("time of an experiment", "ms", summary.mean, interval, paper.map(|row| row.1)),
        ("standard deviation", "ms", summary.deviation, None, paper.map(|row| row.2)),
        (
            "queries per second",
            "1/s",
            rate(summary.mean),
            interval.map(|(low, high)| (rate(high), rate(low))),
            paper.map(|row| row.3),
        ),
        ("CPU time for a query", "us", cpu_us, None, None),
        ("valid replies", "%", valid, None, None),
    ] {
        let place = paper.map(|_| PLACE.to_owned()).unwrap_or_default();
        let row = figure(TABLE, &subject.name, column, value, unit, Origin::Measured);
        context.figure(Figure { interval, samples, paper, place, ..row });
    }
    if subject.name == "sixfold" {
        context.claim(
            "Sixfold answers the closed loop of dns64perf with valid replies: at least 99 %",
            "more than 1 of 100 queries lost, late or with a wrong address",
            format!("{} of {} replies", measured.valid, measured.queries()),
            measured.valid as f64 >= (1.0 - INVALID_SHARE) * measured.queries() as f64
                && measured.queries() > 0,
        );
    }
}

/// Enters the paper's figures of programs that are not at hand. Its rates are 256 queries divided by its times (formula 1).
fn paper(context: &mut Context, subjects: &[Subject]) {
    for (name, ms, deviation, rate) in PAPER {
        if !subjects.iter().any(|subject| subject.name == name) {
            let columns = [
                ("time of an experiment", "ms", ms),
                ("standard deviation", "ms", deviation),
                ("queries per second", "1/s", rate),
            ];
            for (column, unit, paper) in columns {
                let row = figure(TABLE, name, column, 0.0, unit, Origin::Paper);
                let place = PLACE.to_owned();
                context.figure(Figure { value: None, samples: 0, paper: Some(paper), place, ..row });
            }
        }
    }
}

/// Curve of a device: time of each experiment.
fn line(name: &str, measured: &Measured) -> ChartLine {
    let point = |(number, y): (usize, &f64)| Point { x: number as f64, y: *y, interval: None };
    let points = measured.experiments_ms.iter().enumerate().map(point).collect();
    ChartLine { name: name.to_owned(), origin: Origin::Measured, points }
}

/// Adds the chart with the paper's means as lines.
fn chart(context: &mut Context, measured: Vec<ChartLine>) {
    let flat = |(name, ms, ..): (&str, f64, f64, f64)| ChartLine {
        name: format!("{name} (paper)"),
        origin: Origin::Paper,
        points: [0.0, EXPERIMENTS as f64 - 1.0].map(|x| Point { x, y: ms, interval: None }).to_vec(),
    };
    let places = measure::experiment::LINES_MAX - PAPER.len();
    let lines = measured.into_iter().take(places).chain(PAPER.map(flat)).collect();
    context.chart(Chart {
        id: "time-of-experiments".to_owned(),
        title: "Time of each experiment of 256 queries".to_owned(),
        description: "The elapsed time of the experiments in order, for each device. The paper prints the means alone: 65.87 ms \
                      for MTD64 and 122.27 ms for BIND on a Raspberry Pi 2."
            .to_owned(),
        x: ChartAxis { label: "experiment".to_owned(), logarithmic: false },
        y: ChartAxis { label: "time (ms)".to_owned(), logarithmic: true },
        lines,
    });
}
