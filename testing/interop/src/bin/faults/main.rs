//! Effects of network faults between a DNS64 server and its upstreams on clients, over real sockets: one of two
//! upstreams silent or refusing, all silent or killed and back again, loss, delay. Prints tables for
//! docs/benchmarks.md.
//!
//! Every server gets the same queries and the same faults; each experiment starts the server anew. Needs root, `nft`
//! and `kdig`.

#![forbid(unsafe_code)]

mod network;
mod server;

use clap::{Parser, Subcommand};
use network::{BOTH, FaultLab, drop_rule, finish, loss_rule, reject_rule};
use sixfold_interop::steady::{Exchange, Load, now};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

/// Queries a second.
const RATE: u32 = 500;

/// Number of names that are asked again and again.
const REPEATED_NAMES: u32 = 200;

/// Number of the first name that is asked only once.
const FIRST_NEW_NAME: u32 = 1 << 20;

/// Puts DNS64 servers into network faults and measures the effects on their clients.
///
/// Example: cargo run --profile dist -p sixfold-interop --bin faults -- --devices sixfold,unbound
#[derive(Parser)]
struct Options {
    /// Servers: sixfold, unbound, powerdns, bind.
    #[arg(long, value_delimiter = ',', default_values_t = ["sixfold".to_owned()])]
    devices: Vec<String>,
    /// Experiments: silent, refused, dead, killed, loss, delay.
    #[arg(long, value_delimiter = ',', default_values_t = ["silent", "refused", "dead", "killed", "loss", "delay"].map(String::from))]
    only: Vec<String>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
#[command(disable_help_subcommand = true)]
enum Part {
    /// A load, as its own process.
    #[command(hide = true)]
    Load { server: SocketAddr, rate: u32, seconds: f64, first: u32, names: Option<u32> },
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(Part::Load { server, rate, seconds, first, names }) = options.part {
        return match load(Load { server, rate, seconds, flows: 1, end: None }, first, names) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("faults: questions to {server}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if let Some(unknown) = options.devices.iter().find(|device| !server::ALL.contains(&device.as_str())) {
        eprintln!("faults: no server {unknown:?}: there are {}", server::ALL.join(", "));
        return ExitCode::from(2);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{RATE} questions/s; load of the machine {}\n", load.split(' ').next().unwrap_or_default());
    for experiment in &options.only {
        match experiment.as_str() {
            "silent" => one_of_two("one of two falls silent", &options.devices, drop_rule),
            "refused" => one_of_two("one of two refuses (ICMP)", &options.devices, reject_rule),
            "dead" => all_dead("both fall silent for 8 s", &options.devices, false),
            "killed" => all_dead("both are killed for 8 s", &options.devices, true),
            "loss" => lossy(&options.devices),
            "delay" => delayed(&options.devices),
            other => {
                eprintln!("faults: no experiment {other:?}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// Runs a load. Each query is for a new name from number `first` on, or for `names` names in turn.
fn load(load: Load, first: u32, names: Option<u32>) -> std::io::Result<()> {
    load.run(|number| {
        let [_, b, c, d] = (first + number as u32 % names.unwrap_or(u32::MAX)).to_be_bytes();
        format!("010-{b:03}-{c:03}-{d:03}.dns64perf.test")
    })
}

/// Starts a lab for each device that this machine has.
fn weather_labs<'d>(
    devices: &'d [String],
    ttl_secs: u32,
    delay: &str,
) -> impl Iterator<Item = (&'d str, FaultLab)> {
    devices.iter().filter_map(move |device| match FaultLab::new(device, ttl_secs, delay) {
        Ok(lab) => Some((device.as_str(), lab)),
        Err(why) => {
            println!("Left out: {device}: {why}\n");
            None
        }
    })
}

fn wait(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

/// Exchanges with a query in this period.
fn between(all: &[Exchange], from: f64, to: f64) -> Vec<Exchange> {
    all.iter().filter(|exchange| exchange.at >= from && exchange.at < to).copied().collect()
}

/// Percentile of the response times, in milliseconds; a query without an answer counts as infinite.
fn percentile(exchanges: &[Exchange], percent: f64) -> f64 {
    let mut took: Vec<f64> = exchanges.iter().map(|one| one.took_ms.unwrap_or(f64::INFINITY)).collect();
    took.sort_by(f64::total_cmp);
    let place = (took.len() as f64 * percent / 100.0).ceil() as usize;
    place.checked_sub(1).and_then(|place| took.get(place)).copied().unwrap_or(f64::NAN)
}

fn count(exchanges: &[Exchange], wanted: impl Fn(&Exchange) -> bool) -> usize {
    exchanges.iter().filter(|exchange| wanted(exchange)).count()
}

fn one_of_two(title: &str, devices: &[String], rule: fn(&str) -> String) {
    println!("### {title}\n");
    println!(
        "| server | failed or lost | p99 before, ms | added, first second: p50, p99 | added after it: p99, most | back: upstream questions, first second / before |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (device, lab) in weather_labs(devices, 60, "0ms") {
        let load = lab.load(RATE, 16.0, FIRST_NEW_NAME, None);
        wait(2.0);
        let asked = lab.upstream_queries();
        wait(2.0);
        let steady = (lab.upstream_queries() - asked) / 2.0;
        let at = now();
        lab.set_weather(&[rule(BOTH[0])]);
        wait(8.0);
        lab.set_weather(&[]);
        let asked = lab.upstream_queries();
        wait(1.0);
        let back = lab.upstream_queries() - asked;
        let all = finish(load);
        let before = between(&all, at - 3.0, at);
        let (first, later) = (between(&all, at, at + 1.0), between(&all, at + 1.0, at + 8.0));
        let usual = [50.0, 99.0, 100.0].map(|percent| percentile(&before, percent));
        println!(
            "| {device} | {} of {} | {:.1} | {:.1}, {:.1} | {:.1}, {:.1} | {:.2} |",
            count(&all, |one| !one.is_good()),
            all.len(),
            usual[1],
            percentile(&first, 50.0) - usual[0],
            percentile(&first, 99.0) - usual[1],
            percentile(&later, 99.0) - usual[1],
            percentile(&later, 100.0) - usual[2],
            back / steady
        );
    }
    println!();
}

fn all_dead(title: &str, devices: &[String], is_killed: bool) {
    println!("### {title}\n");
    println!(
        "| server | expired data: given, p50 and p99 in the first 2 s, then p50, p99, ms | unknown names: SERVFAIL with an extended error, slowest, ms | unanswered in 5 s | return noticed after, s | upstream questions, first second / before |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (device, mut lab) in weather_labs(devices, 2, "0ms") {
        let known = lab.load(RATE / 2, 20.0, 0, Some(REPEATED_NAMES));
        let fresh = lab.load(RATE / 2, 20.0, FIRST_NEW_NAME, None);
        wait(4.0);
        let asked = lab.upstream_queries();
        wait(2.0);
        let steady = (lab.upstream_queries() - asked) / 2.0;
        let at = now();
        match is_killed {
            true => lab.kill(),
            false => lab.set_weather(&BOTH.map(drop_rule)),
        }
        wait(8.0);
        match is_killed {
            true => lab.restart(),
            false => lab.set_weather(&[]),
        }
        let (back, asked) = (now(), lab.upstream_queries());
        wait(1.0);
        let storm = lab.upstream_queries() - asked;
        let (known, fresh) = (finish(known), finish(fresh));
        // Data that was fresh at the beginning has expired after two seconds.
        let (early, late) = (between(&known, at + 2.0, at + 4.0), between(&known, at + 4.0, back));
        let dead = [early.clone(), late.clone()].concat();
        let stale = count(&dead, Exchange::is_good);
        let failed = between(&fresh, at + 0.1, back - 2.0);
        let told = count(&failed, |one| one.took_ms.is_some() && one.rcode == 2 && one.extended.is_some());
        let noticed = fresh
            .iter()
            .filter(|one| one.is_good() && one.at + one.took_ms.unwrap_or(0.0) / 1e3 > back)
            .map(|one| one.at + one.took_ms.unwrap_or(0.0) / 1e3 - back)
            .fold(f64::INFINITY, f64::min);
        println!(
            "| {device} | {stale} of {}, {:.1}, {:.0}, {:.1}, {:.1} | {told} of {}, {:.0} | {} | {noticed:.2} | {:.2} |",
            dead.len(),
            percentile(&early, 50.0),
            percentile(&early, 99.0),
            percentile(&late, 50.0),
            percentile(&late, 99.0),
            failed.len(),
            percentile(&failed, 100.0),
            count(&failed, |one| one.took_ms.is_none()) + count(&dead, |one| one.took_ms.is_none()),
            storm / steady
        );
    }
    println!();
}

fn lossy(devices: &[String]) {
    println!("### Loss of questions to upstreams\n");
    println!("| server | lost | answered in 2 s | failed | p50, ms | p99, ms | upstream questions for one |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (device, lab) in weather_labs(devices, 60, "0ms") {
        for (place, percent) in [0, 10, 30, 50].into_iter().enumerate() {
            lab.set_weather(&[loss_rule(percent)]);
            row(&lab, device, &format!("{percent} %"), place as u32, 10.0);
        }
    }
    println!();
}

fn delayed(devices: &[String]) {
    println!("### Upstreams that take 500 ms\n");
    println!(
        "| server | delay | answered in 2 s | failed | p50, ms | p99, ms | upstream questions for one |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (device, lab) in weather_labs(devices, 60, "500ms") {
        row(&lab, device, "500 ms", 0, 10.0);
    }
    println!();
}

/// Runs a load of this length in the current faults, and prints its line.
fn row(lab: &FaultLab, device: &str, faults: &str, place: u32, seconds: f64) {
    let asked = lab.upstream_queries();
    let all = finish(lab.load(RATE, seconds, FIRST_NEW_NAME + place * 100_000, None));
    let factor = (lab.upstream_queries() - asked) / all.len() as f64;
    let in_time = count(&all, |one| one.is_good() && one.took_ms.is_some_and(|took| took <= 2_000.0));
    println!(
        "| {device} | {faults} | {:.2} % | {} | {:.1} | {:.1} | {factor:.2} |",
        in_time as f64 * 100.0 / all.len() as f64,
        count(&all, |one| one.took_ms.is_some() && one.rcode != 0),
        percentile(&all, 50.0),
        percentile(&all, 99.0),
    );
}
