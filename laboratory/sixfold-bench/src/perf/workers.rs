//! Experiment 2: cost of a second worker. Workers share nothing, so a resolution should cost the same with two of them,
//! even if all queries come from one source port, which plain SO_REUSEPORT would assign to one worker.

use crate::perf::device::Device;
use crate::perf::kind::Setup;
use crate::perf::limits;
use crate::perf::section::{Bound, Goal, Section, ratios};
use crate::perf::series::{self, Series, Timing};
use crate::perf::tester::{Load, Names, Pace, Tester};
use serde_json::Value;
use std::io;

/// Highest cost with two workers, as a multiple of that with one.
const GOAL: f64 = 1.1;

/// Names of the loads. With one rate for all settings, each of two workers finds half as many queries in each batch;
/// with one rate per worker, the batches are alike.
const LOADS: [&str; 4] =
    ["closed loop", "60 % of one worker's peak", "30 % of one worker's peak for each worker", "3,000 q/s"];

/// Workers and source ports of the four settings; the first one gives the peak of one worker.
const SETTINGS: [(usize, usize); 4] = [(1, limits::PORTS), (2, limits::PORTS), (1, 1), (2, 1)];

/// Measures one device with one and two workers.
///
/// # Errors
///
/// The device cannot be started, gives no right answer, or a socket fails.
pub fn measure(tester: &mut Tester, device: &Device, timing: Timing) -> io::Result<Section> {
    let mut all: [Series; 4] = Default::default();
    for round in 1..=timing.rounds {
        let mut peak = None;
        for ((workers, ports), series) in SETTINGS.into_iter().zip(&mut all) {
            eprintln!(
                "workers: round {round} of {}, workers = {workers}, source ports: {ports}",
                timing.rounds
            );
            let cores = if workers > 1 { "0,1" } else { "0" };
            let running =
                series::start(tester, device, Setup { workers: workers as u16, cores, ..Setup::default() })?;
            for load in 0..LOADS.len() {
                let part = limits::PART_OF_PEAK * peak.unwrap_or_default();
                let pace = match load {
                    0 => Pace::Closed(limits::WINDOW),
                    1 => Pace::Open(part),
                    2 => Pace::Open(part / 2.0 * workers as f64),
                    _ => Pace::Open(limits::COMMON_RATE),
                };
                let asked = Load { ports, ..timing.load(pace, Names::Fresh(running.answers)) };
                series::run(tester, &running, (load, &asked), series)?;
                peak.get_or_insert(series.latest_rate(0));
            }
        }
    }
    let name = |(workers, ports): (usize, usize)| {
        format!("workers = {workers}, {ports} source {}", if ports == 1 { "port" } else { "ports" })
    };
    let named: Vec<(String, &Series)> = SETTINGS.into_iter().map(name).zip(&all).collect();
    let mut goals = Vec::new();
    for (load, load_name) in LOADS.iter().enumerate() {
        for pair in [0, 2] {
            goals.push(Goal {
                ratio: format!("two workers / one, {} source port(s), {load_name}", SETTINGS[pair].1),
                bound: Bound::AtMost(GOAL),
                measured: ratios(&all[pair + 1].costs(load), &all[pair].costs(load)),
            });
        }
    }
    Ok(Section {
        key: "workers",
        title: "Two workers against one",
        charts: Vec::new(),
        notes: vec![
            "One worker has core 0 alone; two have both cores and share core 1 with the tester, so compare CPU time \
             per resolution, not answers/s. The peak is that of one worker with many source ports."
                .to_owned(),
        ],
        tables: LOADS.iter().enumerate().map(|(load, title)| series::table(load, title, &named)).collect(),
        goals,
        data: named.iter().map(|(name, series)| (name.clone(), series.json(&LOADS))).collect::<Value>(),
    })
}
