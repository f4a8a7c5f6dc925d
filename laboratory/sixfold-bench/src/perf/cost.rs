//! Experiment 1: CPU time per worst-case resolution, device beside device. All names differ, so no cache helps, and
//! each resolution takes six UDP messages (RFC 8219 section 9.1).
//!
//! There are three loads, because batching changes the cost: a closed loop, which keeps the device busy and shows its
//! peak; a share of that peak; and a low rate that every device can handle, at which each packet arrives alone and
//! waking up costs more than the work.

use crate::perf::device::{Device, of_kind};
use crate::perf::kind::{Kind, Setup};
use crate::perf::limits;
use crate::perf::section::{Bound, Goal, Section, ratios};
use crate::perf::series::{self, Series, Timing};
use crate::perf::tester::{Names, Pace, Tester};
use serde_json::Value;
use std::io;

/// Highest cost of Sixfold, as a share of another device's.
const GOALS: [(Kind, f64); 5] = [
    (Kind::Unbound, 1.0 / 5.0),
    (Kind::Bind, 1.0 / 8.0),
    (Kind::Powerdns, 1.0 / 5.0),
    (Kind::KnotResolver, 1.0 / 5.0),
    (Kind::Reflector, 1.1),
];

/// Names of the loads, in the order in which a device gets them.
const LOADS: [&str; 3] = ["closed loop", "60 % of own peak", "3,000 q/s"];

/// Measures the devices in turn, in rounds. Each device is restarted for each round.
///
/// # Errors
///
/// A device cannot be started, gives no right answer, or a socket fails.
pub fn measure(tester: &mut Tester, devices: &[Device], timing: Timing) -> io::Result<Section> {
    // The echo sends no upstream queries.
    let devices: Vec<&Device> = devices.iter().filter(|device| device.kind != Kind::Echo).collect();
    let mut all: Vec<Series> = devices.iter().map(|_| Series::default()).collect();
    for round in 1..=timing.rounds {
        for (device, series) in devices.iter().zip(&mut all) {
            eprintln!("cost: round {round} of {}, {}", timing.rounds, device.name());
            let running = series::start(tester, device, Setup::default())?;
            for load in 0..LOADS.len() {
                let pace = match load {
                    0 => Pace::Closed(limits::WINDOW),
                    1 => Pace::Open(limits::PART_OF_PEAK * series.latest_rate(0)),
                    _ => Pace::Open(limits::COMMON_RATE),
                };
                let asked = timing.load(pace, Names::Fresh(running.answers));
                series::run(tester, &running, (load, &asked), series)?;
            }
        }
    }
    let named: Vec<(String, &Series)> = devices.iter().map(|device| device.name()).zip(&all).collect();
    let own = of_kind(&devices, Kind::Sixfold)[0].1;
    let mut goals = Vec::new();
    for (load, name) in LOADS.iter().enumerate() {
        for (kind, limit) in GOALS {
            for (rival, place) in of_kind(&devices, kind) {
                let measured = own
                    .zip(place)
                    .and_then(|(own, place)| ratios(&all[own].costs(load), &all[place].costs(load)));
                let ratio = format!("sixfold / {rival}, {name}");
                goals.push(Goal { ratio, bound: Bound::AtMost(limit), measured });
            }
        }
    }
    Ok(Section {
        key: "cost",
        title: "CPU time per worst-case resolution",
        notes: notes(timing),
        tables: LOADS.iter().enumerate().map(|(load, title)| series::table(load, title, &named)).collect(),
        charts: LOADS.iter().enumerate().map(|(load, title)| series::chart(load, title, &named)).collect(),
        goals,
        data: named.iter().map(|(name, series)| (name.clone(), series.json(&LOADS))).collect::<Value>(),
    })
}

/// The notes of the report.
fn notes(timing: Timing) -> Vec<String> {
    vec![
        format!(
            "Device on core 0 with one worker; client and authoritative server in one thread on core 1, {} source \
             ports, 48-octet queries, each a datagram of its own, loopback. CPU time is that of all threads of the device in the window, divided \
             by the right answers in it. Figures are median [lowest-highest] of {} rounds; ratios are taken within a \
             round.",
            limits::PORTS,
            timing.rounds
        ),
        "`waited`: the device was ready to run and other programs had the core; a value far from 0 means that \
         another program runs on this machine (BIND has several threads that wait for each other). `lookups`: \
         upstream queries per answer, 2 in the worst case."
            .to_owned(),
        "The reflector is Sixfold's datapath without DNS; it changes its source port as often as Sixfold. A device \
         that uses clearly less than 100 % of a core in the closed loop waits for the tester: its real peak is \
         higher than its answers/s."
            .to_owned(),
    ]
}
