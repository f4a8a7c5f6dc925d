//! Experiment 3: goodput when five times the peak is offered. A server that works on queries whose clients have given
//! up, or drops the oldest queries for the newest ones, answers no client in time.

use crate::perf::device::Device;
use crate::perf::flood;
use crate::perf::kind::{Kind, Setup};
use crate::perf::limits;
use crate::perf::networks;
use crate::perf::quota::Quota;
use crate::perf::section::{Bound, Goal, Section, cell, summary, table_of};
use crate::perf::series::{self, Timing};
use crate::perf::tester::{Load, Names, Pace, Tally, Tester};
use measure::run::Summary;
use report::BarChart;
use report::table::Table;
use serde_json::{Value, json};
use std::io;

/// Lowest rate of right answers in time under overload, as a share of that at the peak.
const GOAL: f64 = 0.9;

/// Shares of the closed-loop rate at which the peak is searched for.
const STEPS: [f64; 3] = [0.9, 1.0, 1.1];

/// A rate counts as offered if the sender reached this share of it.
const OFFERED: f64 = 0.95;

/// Measurements of one device, one per round.
#[derive(Default)]
struct Series {
    peaks: Vec<f64>,
    overloads: Vec<Tally>,
}

/// Measures the devices in turn, in rounds. Each device is restarted under the quota for each round. `has_networks`: addresses of many
/// networks may be added.
///
/// # Errors
///
/// A device cannot be started under the quota, gives no right answer, or a socket fails.
pub fn measure(
    tester: &mut Tester,
    devices: &[Device],
    timing: Timing,
    has_networks: bool,
) -> io::Result<Section> {
    let devices: Vec<&Device> = devices.iter().filter(|device| device.kind.is_server()).collect();
    let mut all: Vec<Series> = devices.iter().map(|_| Series::default()).collect();
    for round in 1..=timing.rounds {
        for (device, series) in devices.iter().zip(&mut all) {
            eprintln!("overload: round {round} of {}, {}", timing.rounds, device.name());
            measure_device(tester, device, timing, series)?;
        }
    }
    let own = devices.iter().find(|device| device.kind == Kind::Sixfold);
    let flooded = match own.filter(|_| has_networks) {
        Some(device) => {
            networks::add_addresses(limits::OTHERS.max(limits::EQUAL_NETWORKS))?;
            Some(flood::measure(device, timing)?)
        }
        None => None,
    };
    let (mut notes, mut tables, mut goals, mut details) = (vec![], vec![], vec![], Value::Null);
    match flooded {
        Some(flooded) => {
            notes.push(flood::note());
            (tables, goals, details) = (flooded.tables, flooded.goals, flooded.data);
        }
        None => notes.push(
            "Left out: floods of one network beside others, which need CAP_SYS_ADMIN, for a network namespace."
                .to_owned(),
        ),
    }
    let sixfold = devices.iter().position(|device| device.kind == Kind::Sixfold);
    Ok(Section {
        key: "overload",
        title: "Goodput under overload",
        charts: vec![chart(&devices, &all)],
        notes: own_notes().into_iter().chain(notes).collect(),
        tables: [vec![table(&devices, &all)], tables].concat(),
        goals: [
            vec![Goal {
                ratio: "sixfold: goodput offered 5 x peak / peak".to_owned(),
                bound: Bound::AtLeast(GOAL),
                measured: sixfold
                    .and_then(|at| all[at].kept())
                    .filter(|_| sixfold.is_some_and(|at| all[at].offered_enough())),
            }],
            goals,
        ]
        .concat(),
        data: json!({"floods": details, "five times": devices
            .iter()
            .zip(&all)
            .map(|(device, series)| (device.name(), series.json()))
            .collect::<Value>()}),
    })
}

/// The notes about the overload of all clients.
fn own_notes() -> Vec<String> {
    let share = limits::QUOTA_US as f64 / limits::PERIOD_US as f64;
    vec![
        format!(
            "The device may use {share:.2} of core 0 (a control group with a CPU quota of {} us in each {} us), so that \
                 the tester on core 1 can offer several times the rate that the device can answer. The peak is the highest rate of \
                 right answers within 1 s in a closed loop of {} and in open loops at {STEPS:?} of its rate; then {} \
                 times the peak is offered. Compare the shares, not the rates: a fifth of a core gives less than a fifth \
                 of a core's peak.",
            limits::QUOTA_US,
            limits::PERIOD_US,
            limits::WINDOW,
            limits::OVERLOAD
        ),
        "If the offered multiple is below 5, the tester was the limit.".to_owned(),
    ]
}

fn measure_device(
    tester: &mut Tester,
    device: &Device,
    timing: Timing,
    series: &mut Series,
) -> io::Result<()> {
    let setup = Setup { quota: Some(Quota::new(1)?), ..Setup::default() };
    let running = series::start(tester, device, setup)?;
    let mut run = |pace, part: u32| {
        let load = Load { window: timing.window / part, ..timing.load(pace, Names::Fresh(running.answers)) };
        tester.run(running.address, &load, || running.usage())
    };
    let closed = run(Pace::Closed(limits::WINDOW), 2)?.goodput();
    let mut peak = closed;
    for step in STEPS {
        peak = peak.max(run(Pace::Open(step * closed), 2)?.goodput());
    }
    series.peaks.push(peak);
    series.overloads.push(run(Pace::Open(limits::OVERLOAD * peak), 1)?);
    Ok(())
}

impl Series {
    fn of_peak(&self, figure: fn(&Tally) -> f64) -> Vec<f64> {
        self.overloads.iter().zip(&self.peaks).map(|(tally, peak)| figure(tally) / peak).collect()
    }

    fn kept(&self) -> Option<Summary> {
        summary(&self.of_peak(Tally::goodput))
    }

    fn offered_enough(&self) -> bool {
        summary(&self.of_peak(Tally::offered))
            .is_some_and(|summary| summary.median >= OFFERED * limits::OVERLOAD)
    }

    fn json(&self) -> Value {
        json!({
            "peak_answers_per_second": self.peaks,
            "overload": self.overloads.iter().map(series::tally_json).collect::<Value>(),
        })
    }
}

/// The chart of the shares that the devices keep.
fn chart(devices: &[&Device], all: &[Series]) -> BarChart {
    let bar = |(device, series): (&&Device, &Series)| Some((device.name(), series.kept()?.median * 100.0));
    BarChart {
        title: "Answers when five times the peak is offered, % of the own peak".to_owned(),
        bars: devices.iter().zip(all).filter_map(bar).collect(),
    }
}

fn table(devices: &[&Device], all: &[Series]) -> Table {
    let row = |(device, series): (&&Device, &Series)| {
        vec![
            device.name(),
            cell(&series.peaks, 0),
            cell(&series.of_peak(Tally::offered), 2),
            cell(&series.overloads.iter().map(Tally::goodput).collect::<Vec<_>>(), 0),
            cell(&series.of_peak(|tally| tally.goodput() * 100.0), 1),
            cell(&series.overloads.iter().map(|tally| tally.delay * 1e3).collect::<Vec<_>>(), 0),
            series.overloads.iter().map(|tally| tally.late).sum::<u64>().to_string(),
            series.overloads.iter().map(Tally::wrong).sum::<u64>().to_string(),
        ]
    };
    table_of(
        "offered five times the peak",
        &["device", "peak answers/s", "offered/peak", "answers/s", "% of peak", "mean ms", "late", "wrong"],
        devices.iter().zip(all).map(row).collect(),
    )
}
