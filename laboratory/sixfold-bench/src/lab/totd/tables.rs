//! Tables I to IV in all their quantities by the number of clients, in virtual time and measured, and Figure 3.
//!
//! The model has two free times. They are fitted to Table II with 1 and with 10 clients, and everything else is a prediction.

use super::super::context::{Context, figure};
use super::hosts::{self, HostLoad, HostOutcome};
use super::paper::{PaperTable, Quantity, TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLES};
use super::servers::{self, Bench, Candidate};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, LINES_MAX, Origin, Point, mean_interval};
use measure::run::{DeviceUse, Summary};
use papers::totd::ids::{SCHEMES, Scheme};
use papers::totd::load::{self, FITTED, Parameters, Upstreams, run};
use std::thread;
use std::time::{Duration, Instant};

/// Difference of a predicted rate from the paper's that the model may have, as a share.
const PREDICTION: f64 = 0.10;

/// Numbers of clients whose rates the model must predict in the short version: those between the two that it is fitted to at which
/// clients and server both matter.
const PREDICTED: [usize; 2] = [2, 3];

/// The paper's table of a scheme.
fn table_of(scheme: Scheme) -> &'static PaperTable {
    match scheme {
        Scheme::Sequential => &TABLE_1,
        Scheme::SequentialFixed => &TABLE_2,
        Scheme::Permuted => &TABLE_3,
    }
}

/// The paper's table of a candidate: by its IDs, or of BIND.
fn table_of_candidate(candidate: &Candidate) -> Option<&'static PaperTable> {
    match (candidate.scheme, candidate.name.as_str()) {
        (Some(scheme), _) => Some(table_of(scheme)),
        (None, "totd-1.5.2") => Some(&TABLE_1),
        (None, "totd-1.5.2-fixed") => Some(&TABLE_2),
        (None, "totd-1.5.3") => Some(&TABLE_3),
        (None, "bind") => Some(&TABLE_4),
        _ => None,
    }
}

/// Enters a cell, with the paper's beside it.
fn enter_cell(
    context: &mut Context,
    quantity: Quantity,
    row: &str,
    clients: usize,
    paper: Option<&PaperTable>,
    cell: Figure,
) {
    let words = if cell.origin == Origin::Virtual { " in virtual time" } else { "" };
    let number = paper.and_then(|table| table.cell(quantity, clients));
    context.figure(Figure {
        table: format!("{}{words}, by the number of clients", quantity.title()),
        row: row.to_owned(),
        column: clients.to_string(),
        unit: quantity.unit().to_owned(),
        paper: number,
        place: number.and(paper).map_or(String::new(), |table| table.place.to_owned()),
        ..cell
    });
}

/// Simulates Tables I to III.
///
/// # Errors
///
/// The user stops the experiment.
pub(super) fn simulate(context: &mut Context) -> Result<(), String> {
    let numbers: Vec<usize> = context.choose(vec![1, 2, 3, 4, 10], (1..=10).collect());
    let mut lines = Vec::new();
    for scheme in SCHEMES {
        let mut rates = Vec::new();
        for &clients in &numbers {
            context.progress(&format!("{} IDs, {clients} clients", scheme.name()))?;
            let outcome = simulate_one(context, scheme, clients);
            enter_virtual(context, scheme, clients, &outcome);
            rates.push((clients, outcome.rate()));
        }
        if scheme != Scheme::Sequential {
            judge(context, scheme, &rates);
        }
        let points =
            rates.iter().map(|(clients, y)| Point { x: *clients as f64, y: *y, interval: None }).collect();
        lines.push(ChartLine { name: format!("{}, model", scheme.name()), origin: Origin::Virtual, points });
        let table = table_of(scheme);
        lines.push(paper_line(&format!("{}, {}", scheme.name(), table.place), |clients| {
            table.rates[clients - 1]
        }));
    }
    context.chart(Chart {
        id: "rates-virtual".to_owned(),
        title: "Requests per second in virtual time and in the paper".to_owned(),
        description: "The rate grows up to three clients, then the server is busy. With the bug single points fall far below the \
                      others: runs with stalls. The model is fitted to Table II with 1 and 10 clients."
            .to_owned(),
        x: ChartAxis { label: "clients".to_owned(), logarithmic: false },
        y: ChartAxis { label: "requests/s".to_owned(), logarithmic: false },
        lines,
    });
    Ok(())
}

fn simulate_one(context: &Context, scheme: Scheme, clients: usize) -> load::Outcome {
    let seed = context.seed(100 + clients as u64);
    run(&Parameters {
        clients,
        // The short version has about as many names for each number of clients.
        experiments: context.choose((32 / clients as u32).clamp(4, 16), 256),
        scheme,
        // A random start, as TOTD's.
        counter: (seed >> 8) as u16,
        clock_ns: 1_400_000_000_000_000_000 + seed % 10_000_000_000_000_000,
        upstreams: Upstreams::One,
        duplicates: true,
        seed,
    })
}

fn enter_virtual(context: &mut Context, scheme: Scheme, clients: usize, outcome: &load::Outcome) {
    let times = Summary::of(&outcome.experiments_s);
    let samples = outcome.experiments_s.len() as u64;
    for (quantity, value) in [
        (Quantity::Rate, outcome.rate()),
        (Quantity::Longest, times.max),
        (Quantity::Average, times.mean),
        (Quantity::Deviation, times.deviation),
        (Quantity::Processor, 100.0 * outcome.busy_s / outcome.seconds),
    ] {
        let cell = Figure { value: Some(value), samples, origin: Origin::Virtual, ..Figure::default() };
        enter_cell(context, quantity, scheme.name(), clients, Some(table_of(scheme)), cell);
    }
}

/// Compares the predicted rates with the paper's: Table II between the fitted numbers of clients, and Table III everywhere.
fn judge(context: &mut Context, scheme: Scheme, rates: &[(usize, f64)]) {
    let table = table_of(scheme);
    let is_judged = |clients: usize| match scheme {
        Scheme::SequentialFixed if context.options.quick => PREDICTED.contains(&clients),
        Scheme::SequentialFixed => !FITTED.contains(&clients),
        _ => true,
    };
    let judged: Vec<_> = rates.iter().filter(|(clients, _)| is_judged(*clients)).collect();
    let error = |(clients, rate): &(usize, f64)| rate / table.rates[clients - 1] - 1.0;
    let words: Vec<String> = judged
        .iter()
        .map(|it| {
            format!(
                "{}: {:.0}/s, paper {:.0}/s ({:+.1} %)",
                it.0,
                it.1,
                table.rates[it.0 - 1],
                100.0 * error(it)
            )
        })
        .collect();
    let numbers: Vec<String> = judged.iter().map(|(clients, _)| clients.to_string()).collect();
    context.claim(
        format!(
            "The model, fitted to Table II with {} and {} clients, predicts {} with {} clients within {:.0} %",
            FITTED[0],
            FITTED[1],
            table.place,
            numbers.join(", "),
            100.0 * PREDICTION
        ),
        "a rate that is further away: the time of a message depends on the load, or IDs cost time",
        words.join("; "),
        !judged.is_empty() && judged.iter().all(|it| error(it).abs() <= PREDICTION),
    );
}

/// A line of the paper.
fn paper_line(name: &str, value: impl Fn(usize) -> f64) -> ChartLine {
    let points =
        (1..=10).map(|clients| Point { x: clients as f64, y: value(clients), interval: None }).collect();
    ChartLine { name: name.to_owned(), origin: Origin::Paper, points }
}

/// Measures the devices and the forwarder.
///
/// # Errors
///
/// A server cannot be started, or the user stops the experiment.
pub(super) fn measure(context: &mut Context) -> Result<(), String> {
    // The paper's own programs come first, so that a chart has them.
    let mut candidates = servers::programs(context)?;
    candidates.extend(servers::devices(context, &servers::DEVICES)?);
    // A short load needs 16,384 IDs at most, so a counter that begins at 1 does not run over, and no stall of a minute hits it.
    candidates.extend(servers::forwarders(context.choose(&["--counter", "1"], &[]))?);
    let numbers: Vec<usize> = context.choose(vec![1, 4], (1..=10).collect());
    let (mut rates, mut averages) = (Vec::new(), Vec::new());
    for candidate in &candidates {
        let (mut rate, mut average) = (Vec::new(), Vec::new());
        for &clients in &numbers {
            context.progress(&format!("{}, {clients} clients", candidate.name))?;
            let load = measure_one(context, candidate, clients)?;
            enter_measured(context, candidate, clients, &load);
            let point = |y| Point { x: clients as f64, y, interval: None };
            rate.push(point(load.outcome.rate()));
            average.push(point(Summary::of(&load.outcome.experiments_s).mean));
        }
        let line = |points| ChartLine { name: candidate.name.clone(), origin: Origin::Measured, points };
        rates.push(line(rate));
        averages.push(line(average));
    }
    rates.truncate(LINES_MAX);
    let chart = |id: &str, title: &str, description: &str, y: &str, lines| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        x: ChartAxis { label: "clients".to_owned(), logarithmic: false },
        y: ChartAxis { label: y.to_owned(), logarithmic: id == "figure-3" },
        lines,
    };
    context.chart(chart(
        "rates-measured",
        "Requests per second on this machine",
        "Clients, server and authority share the machine, so the rate stops growing when its cores are busy.",
        "requests/s",
        rates,
    ));
    averages.truncate(LINES_MAX - TABLES.len());
    averages.extend(
        TABLES.map(|table| {
            paper_line(&format!("{} (paper)", table.program), |clients| table.average_s(clients))
        }),
    );
    context.chart(chart(
        "figure-3",
        "Figure 3: average time of an experiment of 256 names",
        "The paper's times grow with the number of clients from three clients on, since the server is busy; BIND's are twice \
         TOTD's. They follow from the paper's rates, 256 n / rate. This machine is faster, so its lines lie below.",
        "average experiment (s)",
        averages,
    ));
    Ok(())
}

/// A measured load.
struct Measured {
    outcome: HostOutcome,
    used: DeviceUse,
    /// Use of the processor in each part of the load, in percent.
    processor_percent: Vec<f64>,
}

/// Starts a server, loads it, and ends it, so that no name is in its cache.
fn measure_one(context: &mut Context, candidate: &Candidate, clients: usize) -> Result<Measured, String> {
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
    // The paper reads the processor once a second.
    let every = context.choose(Duration::from_millis(100), Duration::from_secs(1));
    let before = bench.usage(&running)?;
    let mut processor_percent = Vec::new();
    let outcome = thread::scope(|scope| -> Result<HostOutcome, String> {
        let clients = scope.spawn(|| hosts::run(&load, &context.stop));
        let (mut last, mut last_s) = (Instant::now(), before.cpu_s());
        while !clients.is_finished() {
            thread::sleep(Duration::from_millis(5));
            if last.elapsed() >= every {
                let cpu_s = bench.usage(&running)?.cpu_s();
                processor_percent.push(100.0 * (cpu_s - last_s) / last.elapsed().as_secs_f64());
                (last, last_s) = (Instant::now(), cpu_s);
            }
        }
        clients.join().map_err(|_| "a thread of the clients has failed".to_owned())
    })?;
    let used = bench.used(&running, &before, outcome.answered)?;
    bench.stop(running);
    Ok(Measured { outcome, used, processor_percent })
}

fn enter_measured(context: &mut Context, candidate: &Candidate, clients: usize, load: &Measured) {
    let (outcome, used) = (&load.outcome, &load.used);
    let name = candidate.name.as_str();
    let times = Summary::of(&outcome.experiments_s);
    let samples = outcome.experiments_s.len() as u64;
    let processor = 100.0 * (used.user_s + used.system_s) / outcome.seconds.max(1e-9);
    let paper = table_of_candidate(candidate);
    for (quantity, value, samples) in [
        (Quantity::Rate, outcome.rate(), samples),
        (Quantity::Longest, times.max, samples),
        (Quantity::Average, times.mean, samples),
        (Quantity::Deviation, times.deviation, samples),
        (Quantity::Processor, processor, 1),
        (
            Quantity::ProcessorDeviation,
            Summary::of(&load.processor_percent).deviation,
            load.processor_percent.len() as u64,
        ),
        (Quantity::Memory, used.resident as f64 / 1_048_576.0, 1),
    ] {
        // A deviation needs two readings.
        let value = (samples > 1 || quantity != Quantity::ProcessorDeviation).then_some(value);
        let interval =
            (quantity == Quantity::Average).then(|| mean_interval(&outcome.experiments_s, 1)).flatten();
        let cell = Figure { value, samples, interval, origin: Origin::Measured, ..Figure::default() };
        enter_cell(context, quantity, name, clients, paper, cell);
    }
    let gap = "Longest time without an answer to any client, by the number of clients";
    context.figure(figure(gap, name, &clients.to_string(), outcome.gap_s, "s", Origin::Measured));
    let is_with_bug = candidate.scheme == Some(Scheme::Sequential) || name.starts_with("totd");
    if !is_with_bug {
        // A busy machine may lose a datagram twice; 1 of 1,000 names leaves room for that.
        let bad = outcome.failed + outcome.wrong;
        context.claim(
            format!("{name} answers every name rightly (number of clients: {clients})"),
            "more than 1 of 1,000 names without an answer or with a wrong one",
            format!(
                "{} answered, {} failed, {} wrong answers",
                outcome.answered, outcome.failed, outcome.wrong
            ),
            outcome.answered > 0 && bad * 1000 <= outcome.answered,
        );
    }
}
