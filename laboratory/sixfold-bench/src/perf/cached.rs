//! Experiment 6: CPU time per answer from the cache, device beside device. Queries repeat a thousand names without IPv6
//! addresses, so each answer is a synthesized one that the device has or makes without an upstream query. The column
//! `lookups` shows that there were no upstream queries in the windows, and a goal checks it. A bare echo ([`crate::perf::echo`])
//! runs beside the devices: no server that receives and sends one datagram per query can cost less.

use crate::perf::device::{Device, of_kind};
use crate::perf::kind::{Kind, Setup};
use crate::perf::limits;
use crate::perf::popularity::Popularity;
use crate::perf::section::{Bound, Goal, Section, ratios, shown, summary, table_of};
use crate::perf::series::{self, Series, Timing};
use crate::perf::tester::{Load, Names, Pace, Tester};
use measure::run::Summary;
use report::table::Table;
use serde_json::Value;
use std::io;

/// Highest cost of Sixfold under each load, as a share of another server's.
const GOALS: [f64; LOADS.len()] = [0.5, 0.5, 0.5, 0.35];

/// Highest cost of Sixfold as a share of the echo's, where each question arrives alone as at the echo.
const ECHO_GOAL: f64 = 1.0;

/// Names of the loads, in the order in which a device gets them. Queries of the last one leave in groups, as only hosts on one
/// machine can exchange them: it shows what a device gains from groups, and no capacity.
const LOADS: [&str; 4] = ["closed loop", "60 % of own peak", "3,000 q/s", "closed loop, groups of 16"];

/// Place of the load with groups.
const GROUPED: usize = 3;

/// Measures the devices in turn, in rounds. Each device is restarted for each round.
///
/// # Errors
///
/// A device cannot be started, gives no right answer, or a socket fails.
pub fn measure(tester: &mut Tester, devices: &[Device], timing: Timing) -> io::Result<Section> {
    let devices: Vec<&Device> = devices.iter().filter(|device| device.kind != Kind::Reflector).collect();
    let popularity = Popularity::even(limits::CACHED_NAMES);
    let mut all: Vec<Series> = devices.iter().map(|_| Series::default()).collect();
    for round in 1..=timing.rounds {
        for (device, series) in devices.iter().zip(&mut all) {
            eprintln!("cached: round {round} of {}, {}", timing.rounds, device.name());
            measure_device(tester, device, timing, &popularity, series)?;
        }
    }
    let ratio =
        |one: usize, other: usize, load: usize| ratios(&all[one].costs(load), &all[other].costs(load));
    let own = of_kind(&devices, Kind::Sixfold)[0].1;
    let mut goals = Vec::new();
    for (load, name) in LOADS.iter().enumerate() {
        for (rival, place) in Kind::RIVALS.iter().flat_map(|kind| of_kind(&devices, *kind)) {
            let measured = own.zip(place).and_then(|(own, place)| ratio(own, place, load));
            goals.push(Goal {
                ratio: format!("sixfold / {rival}, {name}"),
                bound: Bound::AtMost(GOALS[load]),
                measured,
            });
        }
    }
    let echo = of_kind(&devices, Kind::Echo)[0].1;
    goals.push(Goal {
        ratio: format!("sixfold / echo, {}", LOADS[0]),
        bound: Bound::AtMost(ECHO_GOAL),
        measured: own.zip(echo).and_then(|(own, echo)| ratio(own, echo, 0)),
    });
    let named: Vec<(String, &Series)> = devices.iter().map(|device| device.name()).zip(&all).collect();
    let lookups = all.iter().flat_map(|series| (0..LOADS.len()).flat_map(|load| series.upstream(load)));
    goals.push(Goal {
        ratio: "questions to the upstream per answer, of any device in any window".to_owned(),
        bound: Bound::AtMost(limits::CACHED_LEGS),
        measured: lookups.reduce(f64::max).and_then(|most| summary(&[most])),
    });
    let mut tables: Vec<Table> =
        LOADS.iter().enumerate().map(|(load, title)| series::table(load, title, &named)).collect();
    if let Some(echo) = echo {
        tables.push(echo_share_table(&named, |device, load| ratio(echo, device, load)));
    }
    Ok(Section {
        key: "cached",
        title: "CPU time per answer out of the cache",
        notes: notes(timing, &popularity),
        tables,
        charts: LOADS.iter().enumerate().map(|(load, title)| series::chart(load, title, &named)).collect(),
        goals,
        data: named.iter().map(|(name, series)| (name.clone(), series.json(&LOADS))).collect::<Value>(),
    })
}

/// Measures one device in one round: fills its cache, then runs all loads.
fn measure_device(
    tester: &mut Tester,
    device: &Device,
    timing: Timing,
    popularity: &Popularity,
    series: &mut Series,
) -> io::Result<()> {
    let running = series::start(tester, device, Setup::default())?;
    // Asks for all names at least once, so that the first window has no cache misses.
    let fill = Load {
        warm_up: timing.warm_up,
        window: limits::CACHED_FILL,
        ..timing.load(Pace::Open(limits::COMMON_RATE), Names::Repeated(popularity))
    };
    tester.run(running.address, &fill, || running.usage())?;
    for load in 0..LOADS.len() {
        let (pace, group) = match load {
            0 => (Pace::Closed(limits::WINDOW), 1),
            1 => (Pace::Open(limits::PART_OF_PEAK * series.latest_rate(0)), 1),
            GROUPED => (Pace::Closed(limits::WINDOW), limits::SEGMENTS as u16),
            _ => (Pace::Open(limits::COMMON_RATE), 1),
        };
        let asked = Load { group, ..timing.load(pace, Names::Repeated(popularity)) };
        series::run(tester, &running, (load, &asked), series)?;
    }
    Ok(())
}

/// The notes of the report.
fn notes(timing: Timing, popularity: &Popularity) -> Vec<String> {
    vec![
        format!(
            "Device on core 0 with one worker; client and authoritative server in one thread on core 1, {} source \
             ports. {} names with IPv4 addresses only are asked for at random, each equally often; their TTL is an \
             hour, and each device has them in its cache before the first window. Right answers are synthesized ones \
             that belong to the query with their ID. CPU time is that of all threads of the device in the window, \
             divided by the right answers in it. Figures are median [lowest-highest] of {} rounds; ratios are taken \
             within a round.",
            limits::PORTS,
            popularity.names(),
            timing.rounds
        ),
        format!(
            "Each query is a datagram of its own, as on a wire. The last load is the exception: up to {} queries at a time \
             leave one port in one send, which the kernel cuts up. Over loopback Sixfold receives them as one datagram \
             and sends their answers as one; hosts on a wire cannot do that.",
            limits::SEGMENTS
        ),
        "`echo` is a program that receives a query and sends an answer, with one blocking system call each, and \
         nothing else: the cost of the kernel for every server that handles one datagram at a time."
            .to_owned(),
        "`lookups`: upstream queries per answer. `waited`: the device was ready to run and other programs had the core. \
         A device that uses clearly less than 100 % of a core in a closed loop waits for the tester: its real peak is \
         higher than its answers/s."
            .to_owned(),
    ]
}

/// Cost of the echo as a share of the devices' costs, load by load.
fn echo_share_table(devices: &[(String, &Series)], ratio: impl Fn(usize, usize) -> Option<Summary>) -> Table {
    let row = |(device, (name, _)): (usize, &(String, &Series))| {
        let cells =
            (0..LOADS.len()).map(|load| ratio(device, load).map_or("-".to_owned(), |part| shown(&part, 2)));
        [name.clone()].into_iter().chain(cells).collect()
    };
    let columns: Vec<&str> = ["device"].into_iter().chain(LOADS).collect();
    table_of("The echo's cost, divided by", &columns, devices.iter().enumerate().map(row).collect())
}
