//! Tables I to IV: requests per second and times of experiments by the number of clients, in virtual time and measured.

use super::super::context::{Context, figure};
use super::hosts::{self, HostLoad, HostOutcome};
use super::paper::{self, Rates};
use super::servers::{self, Bench, Candidate};
use experiments::totd::ids::{SCHEMES, Scheme};
use experiments::totd::load::{Parameters, Upstreams, run};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, mean_interval};
use measure::run::{DeviceUse, Summary};
use std::time::Duration;

/// Table of the simulated rates.
const VIRTUAL_RATES: &str = "Requests per second in virtual time, by the number of clients";
/// Table of the simulated times.
const VIRTUAL_TIMES: &str = "Longest experiment in virtual time, by the number of clients";
/// Table of the measured rates.
const RATES: &str = "Requests per second, by the number of clients";

/// The paper's table of a scheme: its rates and its name.
fn table_of(scheme: Scheme) -> (&'static Rates, &'static str) {
    match scheme {
        Scheme::Sequential => (&paper::TABLE_1, "Table I"),
        Scheme::SequentialFixed => (&paper::TABLE_2, "Table II"),
        Scheme::Permuted => (&paper::TABLE_3, "Table III"),
    }
}

/// Numbers of clients: all in the whole version.
fn client_numbers(context: &Context) -> Vec<usize> {
    context.choose(vec![1, 4], (1..=10).collect())
}

/// Simulates Tables I to III.
pub(super) fn simulate(context: &mut Context) -> Result<(), String> {
    let experiments = context.choose(16, 256);
    let mut lines = Vec::new();
    for scheme in SCHEMES {
        let mut points = Vec::new();
        let (rates, place) = table_of(scheme);
        for clients in client_numbers(context) {
            context.progress(&format!("{} IDs, {clients} clients", scheme.name()))?;
            let seed = context.seed(100 + clients as u64);
            let outcome = run(&Parameters {
                clients,
                experiments,
                scheme,
                // A random start, as TOTD's.
                counter: (seed >> 8) as u16,
                clock_ns: 1_400_000_000_000_000_000 + seed % 10_000_000_000_000_000,
                upstreams: Upstreams::One,
                duplicates: true,
                seed,
            });
            let (column, paper_rate) = (format!("{clients}"), rates[clients - 1]);
            let samples = outcome.experiments_s.len() as u64;
            context.figure(Figure {
                paper: Some(paper_rate),
                place: place.to_owned(),
                samples,
                ..figure(VIRTUAL_RATES, scheme.name(), &column, outcome.rate(), "1/s", Origin::Virtual)
            });
            context.figure(Figure {
                samples,
                ..figure(VIRTUAL_TIMES, scheme.name(), &column, outcome.longest_s(), "s", Origin::Virtual)
            });
            points.push(Point { x: clients as f64, y: outcome.rate(), interval: None });
            if scheme != Scheme::Sequential && clients >= 4 {
                context.claim(
                    format!(
                        "Virtual time: {clients} clients get the paper's rate within 15 %, {} IDs",
                        scheme.name()
                    ),
                    format!("{:.0} and {paper_rate:.0} requests/s", outcome.rate()),
                    (outcome.rate() / paper_rate - 1.0).abs() < 0.15 && outcome.failed == 0,
                );
            }
        }
        lines.push(ChartLine { name: format!("{}, model", scheme.name()), origin: Origin::Virtual, points });
        lines.push(paper_line(&format!("{}, {place}", scheme.name()), rates));
    }
    context.chart(Chart {
        id: "rates-virtual".to_owned(),
        title: "Requests per second in virtual time and in the paper".to_owned(),
        description: "The rate grows up to three clients, then the server is busy. With the bug single points fall far below the \
                      others: runs with stalls."
            .to_owned(),
        x: ChartAxis { label: "clients".to_owned(), logarithmic: false },
        y: ChartAxis { label: "requests/s".to_owned(), logarithmic: false },
        lines,
    });
    Ok(())
}

fn paper_line(name: &str, rates: &Rates) -> ChartLine {
    let point = |(number, rate): (usize, &f64)| Point { x: (number + 1) as f64, y: *rate, interval: None };
    let points = rates.iter().enumerate().map(point).collect();
    ChartLine { name: name.to_owned(), origin: Origin::Paper, points }
}

/// Measures the devices and the forwarder.
pub(super) fn measure(context: &mut Context) -> Result<(), String> {
    let mut candidates = servers::devices(context, &servers::DEVICES)?;
    // A short load needs 16,384 IDs at most, so a counter that begins at 1 does not run over, and no stall of a minute hits it.
    candidates.extend(servers::programs(context)?);
    candidates.extend(servers::forwarders(context.choose(&["--counter", "1"], &[]))?);
    let mut lines = Vec::new();
    for candidate in &candidates {
        let mut points = Vec::new();
        for clients in client_numbers(context) {
            context.progress(&format!("{}, {clients} clients", candidate.name))?;
            let (outcome, used) = measure_one(context, candidate, clients)?;
            enter(context, candidate, clients, &outcome, &used);
            points.push(Point { x: clients as f64, y: outcome.rate(), interval: None });
        }
        lines.push(ChartLine { name: candidate.name.clone(), origin: Origin::Measured, points });
    }
    lines.truncate(measure::experiment::LINES_MAX);
    context.chart(Chart {
        id: "rates-measured".to_owned(),
        title: "Requests per second on this machine".to_owned(),
        description: "Clients, server and authority share the machine, so the rate stops growing when its cores are busy."
            .to_owned(),
        x: ChartAxis { label: "clients".to_owned(), logarithmic: false },
        y: ChartAxis { label: "requests/s".to_owned(), logarithmic: false },
        lines,
    });
    context.difference(
        "Number of experiments",
        "A client runs 32 experiments of 256 names (8 in the short version), not 256, and each number of clients has a newly \
         started server. In virtual time a client runs all 256. In the short version the forwarder's counter begins at 1 and \
         does not run over.",
    );
    Ok(())
}

/// Starts a server, loads it, and ends it, so that no name is in its cache.
fn measure_one(
    context: &mut Context,
    candidate: &Candidate,
    clients: usize,
) -> Result<(HostOutcome, DeviceUse), String> {
    let mut bench = Bench::new()?;
    let running = bench.start(context, candidate)?;
    let load = HostLoad {
        server: running.address,
        clients,
        experiments: context.choose(8, 32),
        first: 0,
        limit: context.choose(Duration::from_millis(400), Duration::from_secs(300)),
        timeout: Duration::from_secs(5),
        zone: bench.zone.clone(),
    };
    let before = bench.usage(&running)?;
    let outcome = hosts::run(&load, &context.stop);
    let used = bench.used(&running, &before, outcome.answered)?;
    bench.stop(running);
    Ok((outcome, used))
}

fn enter(
    context: &mut Context,
    candidate: &Candidate,
    clients: usize,
    outcome: &HostOutcome,
    used: &DeviceUse,
) {
    let paper = match candidate.scheme {
        Some(scheme) => Some(table_of(scheme)),
        None => (candidate.name == "bind").then_some((&paper::TABLE_4, "Table IV")),
    };
    let (name, column) = (candidate.name.as_str(), clients.to_string());
    let times = Summary::of(&outcome.experiments_s);
    let samples = outcome.experiments_s.len() as u64;
    context.figure(Figure {
        paper: paper.map(|(rates, _)| rates[clients - 1]),
        place: paper.map_or(String::new(), |(_, place)| place.to_owned()),
        samples,
        ..figure(RATES, name, &column, outcome.rate(), "1/s", Origin::Measured)
    });
    let cpu = 100.0 * (used.user_s + used.system_s) / outcome.seconds.max(1e-9);
    let table = format!("Experiments of 256 names, processor and memory: {clients} clients");
    for (column, value, unit) in [
        ("longest", times.max, "s"),
        ("average", times.mean, "s"),
        ("standard deviation", times.deviation, "s"),
        ("longest gap", outcome.gap_s, "s"),
        ("processor", cpu, "%"),
        ("memory", used.resident as f64 / 1_048_576.0, "MiB"),
    ] {
        let interval = (column == "average").then(|| mean_interval(&outcome.experiments_s, 1)).flatten();
        let figure = figure(&table, name, column, value, unit, Origin::Measured);
        context.figure(Figure { samples, interval, ..figure });
    }
    if candidate.scheme != Some(Scheme::Sequential) {
        // A busy machine may lose a datagram twice; 1 of 1,000 names leaves room for that.
        let bad = outcome.failed + outcome.wrong;
        context.claim(
            format!("{name} answers every name rightly (number of clients: {clients})"),
            format!(
                "{} answered, {} failed, {} wrong answers",
                outcome.answered, outcome.failed, outcome.wrong
            ),
            outcome.answered > 0 && bad * 1000 <= outcome.answered,
        );
    }
}
