//! Series of measurements, for the experiments with CPU time: starting a device, running a load, collecting and showing
//! its cost.

use crate::perf::device::{Device, Running};
use crate::perf::kind::Setup;
use crate::perf::limits;
use crate::perf::section::{cell, summary, table_of};
use crate::perf::tester::{Load, Names, Pace, Tally, Tester};
use report::BarChart;
use report::table::Table;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// Number of rounds and durations.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Rounds in which all devices take turns.
    pub rounds: usize,
    /// Load before each window.
    pub warm_up: Duration,
    /// Measured load.
    pub window: Duration,
}

impl Timing {
    /// Builds a load of this duration, whose queries leave one by one from many ports.
    pub fn load(self, pace: Pace, names: Names<'_>) -> Load<'_> {
        let Timing { warm_up, window, .. } = self;
        Load { pace, ports: limits::PORTS, warm_up, window, names, group: 1 }
    }
}

/// One device's measurements.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Per load, one tally per round.
    tallies: Vec<Vec<Tally>>,
    /// Per load, the peak of its memory after each run, in MiB.
    memory: Vec<Vec<f64>>,
}

impl Series {
    /// CPU time per resolution in microseconds, round by round.
    pub fn costs(&self, load: usize) -> Vec<f64> {
        self.tallies[load].iter().map(Tally::cost_us).collect()
    }

    /// Upstream queries per right answer, round by round.
    pub fn upstream(&self, load: usize) -> Vec<f64> {
        self.tallies[load].iter().map(Tally::lookups).collect()
    }

    /// Rate of right answers in the latest run of a load.
    pub fn latest_rate(&self, load: usize) -> f64 {
        self.tallies.get(load).and_then(|tallies| tallies.last()).map_or(0.0, Tally::goodput)
    }

    /// All measurements, by the names of the loads.
    pub fn json(&self, loads: &[&str]) -> Value {
        let named = loads.iter().zip(&self.tallies);
        named.map(|(load, tallies)| (*load, tallies.iter().map(tally_json).collect::<Value>())).collect()
    }
}

/// Starts a device and waits until it answers.
///
/// # Errors
///
/// The device cannot be started, or gives no right answer in time; then the error has its output.
pub fn start(tester: &mut Tester, device: &Device, setup: Setup) -> io::Result<Running> {
    let mut running = device.start(tester.upstream(), setup)?;
    if tester.wait_until_ready(running.address, running.answers)? {
        return Ok(running);
    }
    let output = running.output();
    Err(io::Error::other(format!("{} gives no right answer: {output}", device.name())))
}

/// Runs one load on a running device and adds what it measured to the series.
///
/// # Errors
///
/// As [`Tester::run`].
pub fn run(
    tester: &mut Tester,
    running: &Running,
    (number, load): (usize, &Load<'_>),
    series: &mut Series,
) -> io::Result<()> {
    let tally = tester.run(running.address, load, || running.usage())?;
    let loads = series.tallies.len().max(number + 1);
    series.tallies.resize_with(loads, Vec::new);
    series.tallies[number].push(tally);
    series.memory.resize_with(loads, Vec::new);
    series.memory[number].push(running.memory_mib().1);
    Ok(())
}

/// The table of one load.
pub fn table(load: usize, title: &str, devices: &[(String, &Series)]) -> Table {
    let row = |(name, series): &(String, &Series)| {
        let tallies = &series.tallies[load];
        let of = |figure: fn(&Tally) -> f64, decimals| {
            cell(&tallies.iter().map(figure).collect::<Vec<_>>(), decimals)
        };
        vec![
            name.clone(),
            of(Tally::cost_us, 2),
            of(Tally::goodput, 0),
            of(|tally| tally.busy() * 100.0, 0),
            of(|tally| tally.waited * 100.0 / tally.seconds, 0),
            of(Tally::lookups, 2),
            of(|tally| tally.delay * 1e3, 2),
            of(|tally| tally.lost() as f64 * 100.0 / tally.sent as f64, 2),
            tallies.iter().map(Tally::wrong).sum::<u64>().to_string(),
            cell(&series.memory[load], 0),
        ]
    };
    table_of(
        title,
        &[
            "device",
            "CPU us/answer",
            "answers/s",
            "% of a core",
            "waited %",
            "lookups",
            "mean ms",
            "lost %",
            "wrong",
            "peak MiB",
        ],
        devices.iter().map(row).collect(),
    )
}

/// The chart of one load: the median cost of each device.
pub fn chart(load: usize, title: &str, devices: &[(String, &Series)]) -> BarChart {
    let bar = |(name, series): &(String, &Series)| {
        summary(&series.costs(load)).map(|summary| (name.clone(), summary.median))
    };
    BarChart {
        title: format!("{title}: CPU time per answer, microseconds"),
        bars: devices.iter().filter_map(bar).collect(),
    }
}

/// A measurement as JSON.
pub fn tally_json(tally: &Tally) -> Value {
    json!({
        "seconds": tally.seconds, "sent": tally.sent, "valid": tally.valid, "mean_delay_seconds": tally.delay, "late": tally.late,
        "lost": tally.lost(), "invalid": tally.invalid, "cpu_seconds": tally.cpu, "waited_seconds": tally.waited, "upstream_questions": tally.upstream,
        "cpu_us_per_resolution": tally.cost_us(), "answers_per_second": tally.goodput(),
        "offered_per_second": tally.offered(), "behind_schedule_seconds": tally.behind,
    })
}
