//! Experiment 5: the load generator of `sixfold-bench` beside dnsperf, in turns, on the same servers with one thread on
//! core 0. The generators run on core 1 with the same number of outstanding queries. Sixfold's generator checks every
//! reply in full; dnsperf counts response codes.
//!
//! There are two servers for two purposes. Knot DNS with a million AAAA records answers faster than dnsperf sends, so
//! the generators show their own highest rate there. Unbound with DNS64 for names that are not in its cache is slower
//! than either generator, so both must find the same rate there. Its upstream is our authority on core 1.
//!
//! Pacing is measured against our own authority, which is not the limit at this rate.

use crate::lab::authorities::running::{Installed, Running};
use crate::lab::authorities::zone_file;
use crate::perf::authorities;
use crate::perf::device::{self, Device};
use crate::perf::dnsperf;
use crate::perf::kind;
use crate::perf::limits;
use crate::perf::names;
use crate::perf::section::{Bound, Goal, Section, cell, ratios, summary, table_of};
use crate::perf::series::Timing;
use crate::perf::tester::is_ready_in_time;
use crate::process::{Process, own_program};
use load::sockets::Usage;
use report::table::Table;
use serde_json::{Value, json};
use servers::LaunchPlan;
use servers::WorkingFolder;
use servers::process::free_address;
use std::fs;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that take part.
pub struct Programs {
    own: PathBuf,
    dnsperf: PathBuf,
    knot: Installed,
    /// Our authority, which computes its answers.
    authority: Installed,
    unbound: Device,
}

impl Programs {
    /// Finds them.
    ///
    /// # Errors
    ///
    /// A program is missing; the error says how to install it.
    pub fn find() -> Result<Programs, String> {
        Ok(Programs {
            own: own_program().map_err(|error| format!("own path: {error}"))?,
            dnsperf: dnsperf::find()?,
            knot: authorities::find("knot")?,
            authority: authorities::find(authorities::COMPUTED)?,
            unbound: Device::find(kind::Kind::Unbound, None)?,
        })
    }
}

/// Result of one generator in one turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    queries: f64,
    lost: f64,
    rate: f64,
    cpu: f64,
}

/// Pacing of one turn on a schedule: the largest deviation in 10 ms and the share of intervals beyond 1 %.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    worst: f64,
    beyond: f64,
    lost: f64,
}

/// Starts Knot DNS on core 0, and waits until it answers.
fn start_knot(programs: &Programs, folder: &Path) -> io::Result<Running> {
    let zone = folder.join("zone");
    zone_file::write(&zone, limits::GENERATORS_NAMES_BITS).map_err(io::Error::other)?;
    authorities::start(&programs.knot, &zone, limits::GENERATORS_NAMES_BITS)
}

/// Starts our authority on the core of the generators, as the upstream of a DNS64 server: no name has AAAA records.
fn start_upstream(programs: &Programs) -> io::Result<(Process, SocketAddr)> {
    let address = free_address(Ipv6Addr::LOCALHOST.into())?;
    let (program, listen) = (programs.own.display().to_string(), address.to_string());
    let command = [&program, "authority", "--listen", &listen, "--aaaa-share", "0"].map(str::to_owned);
    let plan = LaunchPlan { command: command.into(), ..LaunchPlan::default() };
    let folder = WorkingFolder::new()?;
    Ok((device::start(plan, "1", folder)?, address))
}

/// Results of both generators on one server.
#[derive(Default)]
struct Pair {
    own: Vec<Turn>,
    other: Vec<Turn>,
}

/// Measures both generators in turn on each server, in rounds, then the pacing.
///
/// # Errors
///
/// A program cannot be started, gives no answer, or prints no result.
pub fn measure(programs: &Programs, timing: Timing) -> io::Result<Section> {
    let files = WorkingFolder::new()?;
    let knot = start_knot(programs, files.path())?;
    let own_names = ["--names", "10.0.0.0/12", "--self-test", "--aaaa-share", "1"].map(str::to_owned);
    let fast = take_turns(programs, timing, knot.address, files.path(), |_| {
        (own_names.to_vec(), 0..1 << limits::GENERATORS_NAMES_BITS)
    })?;
    drop(knot);
    let (authority, upstream) = start_upstream(programs)?;
    let unbound = programs.unbound.start(upstream, kind::Setup::default())?;
    if !is_ready_in_time(unbound.address, unbound.answers, &mut 0, || ())? {
        return Err(io::Error::other("Unbound gives no answer"));
    }
    // No name is used twice, or the second generator would get answers from the cache.
    let slow = take_turns(programs, timing, unbound.address, files.path(), |turn| {
        let first = turn * limits::GENERATORS_FRESH;
        let own = [
            "--names",
            "10.0.0.0/8",
            "--prefix",
            &format!("{}/96", names::PREFIX),
            "--first",
            &first.to_string(),
        ];
        (own.map(str::to_owned).to_vec(), first..first + limits::GENERATORS_FRESH)
    })?;
    drop((unbound, authority));
    let paces = pacing(programs, timing, files.path())?;
    Ok(section(timing, &[fast, slow], &paces))
}

/// Runs both generators in turn. `names` returns for each turn the arguments of ours, and the numbers of dnsperf's
/// names.
fn take_turns(
    programs: &Programs,
    timing: Timing,
    address: SocketAddr,
    files: &Path,
    names: impl Fn(u32) -> (Vec<String>, Range<u32>),
) -> io::Result<Pair> {
    let seconds = timing.window.as_secs_f64();
    let queries = files.join("queries");
    let mut pair = Pair::default();
    for round in 1..=timing.rounds {
        eprintln!("generators: round {round} of {}", timing.rounds);
        let turn = 2 * round as u32;
        let (mut arguments, _) = names(turn);
        arguments.extend(["--outstanding".to_owned(), limits::GENERATORS_OUTSTANDING.to_string()]);
        let (outcome, cpu) = load(programs, address, seconds, &arguments, files)?;
        pair.own.push(Turn {
            queries: number(&outcome["sent"]),
            lost: number(&outcome["sent"]) - number(&outcome["valid"]),
            rate: number(&outcome["valid"]) / number(&outcome["seconds"]),
            cpu,
        });
        let (_, numbers) = names(turn + 1);
        if round == 1 || numbers.start > 0 {
            fs::write(&queries, dnsperf::questions(numbers))?;
        }
        let outstanding = limits::GENERATORS_OUTSTANDING.to_string();
        let options = ["-q", &outstanding, "-t", "1"];
        let said = dnsperf::run(&programs.dnsperf, address, seconds, &options, &queries)?;
        let rate = said.completed / said.seconds;
        pair.other.push(Turn { queries: said.sent, lost: said.lost, rate, cpu: said.cpu_s });
    }
    Ok(pair)
}

/// Measures the pacing of a schedule, with sleep between its steps and with a busy loop.
fn pacing(programs: &Programs, timing: Timing, files: &Path) -> io::Result<[Vec<Pace>; 2]> {
    let server = authorities::start(&programs.authority, files, 0)?;
    let mut paces = [Vec::new(), Vec::new()];
    for round in 1..=timing.rounds {
        eprintln!("pacing: round {round} of {}", timing.rounds);
        for (wait, paces) in [None, Some("--spin".to_owned())].into_iter().zip(&mut paces) {
            let mut pace: Vec<String> =
                ["--names", "10.0.0.0/12", "--self-test", "--aaaa-share", "1", "--rate"]
                    .map(str::to_owned)
                    .into();
            pace.push(limits::GENERATORS_RATE.to_string());
            pace.extend(wait);
            let (outcome, _) = load(programs, server.address, timing.window.as_secs_f64(), &pace, files)?;
            let deviation = &outcome["pacing_error"]["ms10"];
            paces.push(Pace {
                worst: number(&deviation["max"]),
                beyond: number(&deviation["beyond_1_percent"]),
                lost: number(&outcome["sent"]) - number(&outcome["valid"]),
            });
        }
    }
    Ok(paces)
}

fn section(timing: Timing, pairs: &[Pair; 2], paces: &[Vec<Pace>; 2]) -> Section {
    let [fast, slow] = pairs;
    let of = |paces: &[Pace], figure: fn(&Pace) -> f64| paces.iter().map(figure).collect::<Vec<_>>();
    let pace_row = |name: &str, paces: &[Pace]| {
        vec![
            name.to_owned(),
            cell(&of(paces, |pace| pace.worst * 100.0), 2),
            cell(&of(paces, |pace| pace.beyond * 100.0), 2),
            cell(&of(paces, |pace| pace.lost), 0),
        ]
    };
    let agreement = ratios(&rates(&slow.own), &rates(&slow.other));
    let agree = |bound| Goal {
        ratio: "closed-loop rate on Unbound, sixfold-bench / dnsperf".to_owned(),
        bound,
        measured: agreement,
    };
    let mut tables: Vec<Table> = ["Knot DNS", "Unbound, DNS64 without cache hits"]
        .into_iter()
        .zip(pairs)
        .map(|(server, pair)| {
            table_of(
                format!("closed loop on {server}"),
                &["generator", "queries per CPU second", "CPU us/query", "answers/s", "lost"],
                vec![turn_row("sixfold-bench load", &pair.own), turn_row("dnsperf", &pair.other)],
            )
        })
        .collect();
    tables.push(table_of(
        format!("pacing at {} queries/s", limits::GENERATORS_RATE),
        &["generator waits", "worst 10 ms %", "% of intervals beyond 1 %", "lost"],
        vec![pace_row("asleep", &paces[0]), pace_row("awake (--spin)", &paces[1])],
    ));
    Section {
        key: "generators",
        title: "Load generator beside dnsperf",
        charts: Vec::new(),
        notes: notes(timing),
        tables,
        goals: vec![
            Goal {
                ratio: "queries per CPU second on Knot DNS, sixfold-bench / dnsperf".to_owned(),
                bound: Bound::AtLeast(2.0),
                measured: ratios(&per_cpu(&fast.own), &per_cpu(&fast.other)),
            },
            agree(Bound::AtLeast(0.95)),
            agree(Bound::AtMost(1.05)),
            Goal {
                ratio: "worst deviation from the schedule in 10 ms, awake".to_owned(),
                bound: Bound::AtMost(0.01),
                measured: summary(&of(&paces[1], |pace| pace.worst)),
            },
        ],
        data: json!({
            "knot": data(fast),
            "unbound": data(slow),
            "pacing_asleep": pace_data(&paces[0]),
            "pacing_awake": pace_data(&paces[1]),
        }),
    }
}

/// The notes of the report.
fn notes(timing: Timing) -> Vec<String> {
    vec![
        format!(
            "Servers on core 0 with one thread; Knot DNS has {} AAAA records; {} queries outstanding from core 1 over \
             ::1. CPU time is that of the generator's whole process, user and system. sixfold-bench checks every \
             reply in full; dnsperf counts response codes. Figures are median [lowest-highest] of {} rounds; ratios \
             are taken within a round.",
            1 << limits::GENERATORS_NAMES_BITS,
            limits::GENERATORS_OUTSTANDING,
            timing.rounds
        ),
        "`lost`: all queries without a valid answer in time, over all rounds; for dnsperf its own count of lost \
         queries. Knot DNS answers faster than dnsperf sends. Unbound is the limit of both."
            .to_owned(),
    ]
}

fn per_cpu(turns: &[Turn]) -> Vec<f64> {
    turns.iter().map(|turn| turn.queries / turn.cpu).collect()
}

fn rates(turns: &[Turn]) -> Vec<f64> {
    turns.iter().map(|turn| turn.rate).collect()
}

fn turn_row(name: &str, turns: &[Turn]) -> Vec<String> {
    vec![
        name.to_owned(),
        cell(&per_cpu(turns), 0),
        cell(&turns.iter().map(|turn| turn.cpu * 1e6 / turn.queries).collect::<Vec<_>>(), 2),
        cell(&rates(turns), 0),
        format!("{:.0}", turns.iter().map(|turn| turn.lost).sum::<f64>()),
    ]
}

fn data(pair: &Pair) -> Value {
    let turn = |t: &Turn| json!({"queries": t.queries, "lost": t.lost, "rate": t.rate, "cpu_seconds": t.cpu});
    let turns = |turns: &[Turn]| turns.iter().map(turn).collect::<Value>();
    json!({"sixfold-bench": turns(&pair.own), "dnsperf": turns(&pair.other)})
}

fn pace_data(paces: &[Pace]) -> Value {
    paces.iter().map(|p| json!({"worst": p.worst, "beyond_1_percent": p.beyond, "lost": p.lost})).collect()
}

/// Runs a load of `sixfold-bench`. Returns its outcome and the CPU time of its process.
fn load(
    programs: &Programs,
    address: SocketAddr,
    seconds: f64,
    pace: &[String],
    folder: &Path,
) -> io::Result<(Value, f64)> {
    let file = folder.join("outcome.json");
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(&programs.own).stdin(Stdio::null());
    command.args(["load", "--server", &address.to_string(), "--duration", &format!("{seconds:.3}s")]);
    command.args(["--quiet", "--json"]);
    command.arg(&file).args(pace).stdout(Stdio::null());
    let before = Usage::of_children();
    // A load with a failed verdict is a result, too.
    command.status()?;
    let used = Usage::of_children().since(before);
    let text = fs::read_to_string(&file)?;
    fs::remove_file(&file)?;
    Ok((serde_json::from_str(&text)?, (used.user + used.system).as_secs_f64()))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
