//! Experiment 9: the rate without loss by the procedure of RFC 8219 section 9. `sixfold-bench run` searches it, in its quick profile: trials
//! of 1.5 s, so the rates are indicative and not compliant. All names are new and have no AAAA records.

use crate::perf::device::{self, Device};
use crate::perf::kind::{Kind, Setup};
use crate::perf::limits;
use crate::perf::names;
use crate::perf::section::{Bound, Goal, Section, cell, ratios, summary, table_of};
use crate::perf::series::Timing;
use crate::process::own_program;
use report::BarChart;
use serde_json::{Value, json};
use servers::WorkingFolder;
use servers::process::free_address;
use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::process::{Command, Stdio};

/// Lowest rate of Sixfold, as a multiple of another server's.
const GOAL: f64 = 10.0;

/// Plan of a run. Tester and authority share the core that the device does not have.
const PLAN: &str = "profile = \"quick\"\n[search]\ncurve = []\nrepetitions = 1\n[tester]\ncores = [1]\n";

/// Result of one search.
struct Search {
    /// Highest rate without loss, in queries per second.
    rate: f64,
    /// CPU time per query at that rate, in microseconds.
    cpu: f64,
}

/// Measures the devices in turn, in rounds of one search each, at most [`limits::LOSSLESS_ROUNDS`]. A search that
/// fails is left out, and noted.
///
/// # Errors
///
/// None at present: a search that fails is a note.
pub fn measure(devices: &[Device], timing: Timing) -> io::Result<Section> {
    let devices: Vec<&Device> = devices.iter().filter(|device| device.kind.is_server()).collect();
    let mut searches: Vec<Vec<Search>> = devices.iter().map(|_| vec![]).collect();
    let mut failures = vec![];
    let rounds = timing.rounds.min(limits::LOSSLESS_ROUNDS);
    for round in 1..=rounds {
        for (device, searches) in devices.iter().zip(&mut searches) {
            eprintln!("rate without loss: round {round} of {rounds}, {}", device.name());
            searches.push(search(device).unwrap_or_else(|error| {
                failures.push(format!("Left out: round {round}, {}: {error}", device.name()));
                Search { rate: f64::NAN, cpu: f64::NAN }
            }));
        }
    }
    Ok(section(&devices, &searches, rounds, failures))
}

/// Starts the device and searches its rate.
fn search(device: &Device) -> io::Result<Search> {
    let folder = WorkingFolder::new()?;
    let (plan, bundle) = (folder.path().join("plan.toml"), folder.path().join("bundle"));
    let authority = free_address(Ipv6Addr::LOCALHOST.into())?;
    fs::write(&plan, format!("{PLAN}[authority]\ncores = [1]\naddress = \"{authority}\"\n"))?;
    let running = device.start(authority, Setup::default())?;
    let output = Command::new(own_program()?)
        .args(["run", "--quiet", "--plan"])
        .arg(plan)
        .arg("--out")
        .arg(&bundle)
        .args(["--device-address", &running.address.to_string()])
        .args(["--device-pid", &running.pid().to_string()])
        .args(["--prefix", &format!("{}/96", names::PREFIX)])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("sixfold-bench run: {}: {}", output.status, said.trim())));
    }
    let text = fs::read_to_string(bundle.join("run.json"))?;
    read_search(&serde_json::from_str(&text)?)
        .ok_or_else(|| io::Error::other("sixfold-bench run wrote no result"))
}

/// The result in a bundle's `run.json`.
fn read_search(run: &Value) -> Option<Search> {
    let result = &run["results"][0];
    let cpu = result["cpu_us_per_query"].as_f64().unwrap_or(f64::NAN);
    Some(Search { rate: result["summary"]["median"].as_f64()?, cpu })
}

fn section(devices: &[&Device], searches: &[Vec<Search>], rounds: usize, failures: Vec<String>) -> Section {
    let names: Vec<String> = devices.iter().map(|device| device.name()).collect();
    let rates: Vec<Vec<f64>> =
        searches.iter().map(|searches| searches.iter().map(|search| search.rate).collect()).collect();
    let cpu = |searches: &[Search]| searches.iter().map(|search| search.cpu).collect::<Vec<f64>>();
    let own = device::of_kind(devices, Kind::Sixfold)[0].1;
    let mut goals = vec![];
    for (rival, place) in Kind::RIVALS.iter().flat_map(|kind| device::of_kind(devices, *kind)) {
        let measured = own.zip(place).and_then(|(own, place)| ratios(&rates[own], &rates[place]));
        goals.push(Goal { ratio: format!("sixfold / {rival}"), bound: Bound::AtLeast(GOAL), measured });
    }
    let row =
        |place: usize| vec![names[place].clone(), cell(&rates[place], 0), cell(&cpu(&searches[place]), 1)];
    let bar = |place: usize| Some((names[place].clone(), summary(&rates[place])?.median / 1e3));
    let title = "rate without loss, one core for the device";
    let note = format!(
        "`sixfold-bench run` with its quick profile searches the highest rate at which every query is answered right and in \
         time (RFC 8219 section 9.2, with trials of 1.5 s: indicative, not compliant). Each query is a datagram of its own. Device with one thread on core 0, tester \
         and authority on core 1. Figures are median [lowest-highest] of {rounds} rounds of one search each; ratios are taken \
         within a round. The tester's own limit is above the rates of the other servers, and may be below that of Sixfold."
    );
    Section {
        key: "lossless",
        title: "Rate without loss",
        notes: [vec![note], failures].concat(),
        tables: vec![table_of(
            title,
            &["device", "queries/s", "CPU us/query"],
            (0..devices.len()).map(row).collect(),
        )],
        charts: vec![BarChart {
            title: format!("{title}, thousand queries/s"),
            bars: (0..devices.len()).filter_map(bar).collect(),
        }],
        goals,
        data: (0..devices.len())
            .map(|place| {
                (names[place].clone(), json!({"rates": rates[place], "cpu_us": cpu(&searches[place])}))
            })
            .collect::<Value>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_bundle_is_its_median() {
        let run = json!({"results": [{"summary": {"median": 4410.0}, "cpu_us_per_query": 215.3}]});
        let search = read_search(&run).unwrap();
        assert_eq!((search.rate, search.cpu), (4410.0, 215.3));
        assert!(read_search(&json!({"results": []})).is_none());
    }
}
