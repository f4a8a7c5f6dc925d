//! Experiment 5: the load generator of `sixfold-bench` beside dnsperf, in turns, on the same servers with one thread on
//! core 0. The generators run on core 1 with the same number of outstanding queries. Sixfold's generator checks every
//! reply in full; dnsperf counts response codes.
//!
//! There are two servers for two purposes. Knot DNS with a million AAAA records answers faster than dnsperf sends, so
//! the generators show their own highest rate there. Unbound with DNS64 for names that are not in its cache is slower
//! than either generator, so both must find the same rate there. Its upstream is our authority on core 1.
//!
//! Pacing is measured against our own authority, which is not the limit at this rate.

use crate::device::{self, Device};
use crate::kind;
use crate::lossless;
use crate::names;
use crate::process::{Folder, Process};
use crate::report::{Bound, Goal, Section, Table, cell};
use crate::statistics::Summary;
use crate::{limits, series::Timing};
use load::sockets::Usage;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Programs that take part.
pub struct Programs {
    load: PathBuf,
    dnsperf: PathBuf,
    knot: PathBuf,
    unbound: Device,
}

impl Programs {
    /// Finds them.
    ///
    /// # Errors
    ///
    /// A program is missing; the error says how to install it.
    pub fn find() -> Result<Programs, String> {
        let load = lossless::find()?;
        let package = |program: &str, package: &str| {
            device::in_path(program).ok_or(format!("{program} is not installed: apt-get install {package}"))
        };
        let (dnsperf, knot) = (package("dnsperf", "dnsperf")?, package("knotd", "knot")?);
        Ok(Programs { load, dnsperf, knot, unbound: Device::find(kind::Kind::Unbound, None)? })
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
fn start_knot(programs: &Programs) -> io::Result<(Process, SocketAddr)> {
    let folder = Folder::new("knot")?;
    let address = device::free_address()?;
    fs::write(folder.path().join("zone"), zone())?;
    let path = folder.path().join("configuration");
    fs::write(&path, knot(folder.path(), address))?;
    let command =
        [&programs.knot.display().to_string(), "-c", &path.display().to_string()].map(str::to_owned);
    let mut server = Process::start(&command, "0", None, folder)?;
    if !answers(address)? {
        return Err(io::Error::other(format!("knotd gives no answer: {}", server.output())));
    }
    Ok((server, address))
}

/// Starts our authority on a core, and waits until it answers.
fn start_authority(programs: &Programs, core: &str, aaaa_share: &str) -> io::Result<(Process, SocketAddr)> {
    let address = device::free_address()?;
    let (program, listen) = (programs.load.display().to_string(), address.to_string());
    let command = [&program, "authority", "--listen", &listen, "--aaaa-share", aaaa_share].map(str::to_owned);
    let mut server = Process::start(&command, core, None, Folder::new("authority")?)?;
    // With a share of 0 the answer is an SOA record; any answer shows that the authority runs.
    if aaaa_share == "1" && !answers(address)? {
        return Err(io::Error::other(format!("the authority gives no answer: {}", server.output())));
    }
    Ok((server, address))
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
    let files = Folder::new("queries")?;
    let knot = start_knot(programs)?;
    let own_names = ["--names", "10.0.0.0/12", "--self-test", "--aaaa-share", "1"].map(str::to_owned);
    let fast = take_turns(programs, timing, knot.1, files.path(), |_| {
        (own_names.to_vec(), 0..limits::GENERATORS_NAMES)
    })?;
    drop(knot);
    let (authority, upstream) = start_authority(programs, "1", "0")?;
    let unbound = programs.unbound.start(upstream, kind::Setup::default())?;
    if !answers(unbound.address)? {
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
            write_queries(&queries, numbers)?;
        }
        pair.other.push(dnsperf(programs, address, seconds, &queries)?);
    }
    Ok(pair)
}

/// Measures the pacing of a schedule, with sleep between its steps and with a busy loop.
fn pacing(programs: &Programs, timing: Timing, files: &Path) -> io::Result<[Vec<Pace>; 2]> {
    let (_server, address) = start_authority(programs, "0", "1")?;
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
            let (outcome, _) = load(programs, address, timing.window.as_secs_f64(), &pace, files)?;
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
    let agreement = Summary::of_ratios(&rates(&slow.own), &rates(&slow.other));
    let agree = |bound| Goal {
        ratio: "closed-loop rate on Unbound, sixfold-bench / dnsperf".to_owned(),
        bound,
        measured: agreement,
    };
    let mut tables: Vec<Table> = ["Knot DNS", "Unbound, DNS64 without cache hits"]
        .into_iter()
        .zip(pairs)
        .map(|(server, pair)| Table {
            title: format!("closed loop on {server}"),
            columns: vec!["generator", "queries per CPU second", "CPU us/query", "answers/s", "lost"],
            rows: vec![turn_row("sixfold-bench load", &pair.own), turn_row("dnsperf", &pair.other)],
        })
        .collect();
    tables.push(Table {
        title: format!("pacing at {} queries/s", limits::GENERATORS_RATE),
        columns: vec!["generator waits", "worst 10 ms %", "% of intervals beyond 1 %", "lost"],
        rows: vec![pace_row("asleep", &paces[0]), pace_row("awake (--spin)", &paces[1])],
    });
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
                measured: Summary::of_ratios(&per_cpu(&fast.own), &per_cpu(&fast.other)),
            },
            agree(Bound::AtLeast(0.95)),
            agree(Bound::AtMost(1.05)),
            Goal {
                ratio: "worst deviation from the schedule in 10 ms, awake".to_owned(),
                bound: Bound::AtMost(0.01),
                measured: Summary::of(&of(&paces[1], |pace| pace.worst)),
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
            limits::GENERATORS_NAMES,
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
    let mut command = on_core_1(&programs.load);
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

/// Runs a load of dnsperf.
fn dnsperf(programs: &Programs, address: SocketAddr, seconds: f64, queries: &Path) -> io::Result<Turn> {
    let mut command = on_core_1(&programs.dnsperf);
    command.args(["-s", &address.ip().to_string(), "-p", &address.port().to_string()]);
    command.args(["-q", &limits::GENERATORS_OUTSTANDING.to_string()]);
    // dnsperf accepts whole seconds only.
    command.args(["-t", "1", "-l", &format!("{:.0}", seconds.max(1.0)), "-d"]).arg(queries);
    let before = Usage::of_children();
    let output = command.stderr(Stdio::null()).output()?;
    let used = Usage::of_children().since(before);
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<f64>().ok()
    };
    match (figure("Queries sent:"), figure("Queries lost:"), figure("Queries per second:")) {
        (Some(queries), Some(lost), Some(rate)) => {
            Ok(Turn { queries, lost, rate, cpu: (used.user + used.system).as_secs_f64() })
        }
        _ => Err(io::Error::other(format!("dnsperf says nothing that is understood: {text}"))),
    }
}

fn on_core_1(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(program).stdin(Stdio::null());
    command
}

/// The labels of a name's address, and the address in the AAAA record that a self-test expects.
fn name(number: u32) -> (String, String) {
    let [a, b, c, d] = (0x0a00_0000 + number).to_be_bytes();
    (format!("{a:03}-{b:03}-{c:03}-{d:03}"), format!("2001:db8::{a:x}{b:02x}:{c:x}{d:02x}"))
}

fn zone() -> String {
    let mut zone = "$ORIGIN dns64perf.test.\n$TTL 3600\n@ SOA ns hostmaster 1 7200 3600 1209600 3600\n@ NS ns\nns AAAA ::1\n"
        .to_owned();
    for number in 0..limits::GENERATORS_NAMES {
        let (name, address) = name(number);
        // Writing to a String cannot fail.
        let _ = writeln!(zone, "{name} AAAA {address}");
    }
    zone
}

fn knot(folder: &Path, listen: SocketAddr) -> String {
    let (folder, ip, port) = (folder.display(), listen.ip(), listen.port());
    format!(
        "server:\n    rundir: \"{folder}\"\n    listen: {ip}@{port}\n    udp-workers: 1\n    tcp-workers: 1\n    \
         background-workers: 1\ndatabase:\n    storage: \"{folder}\"\nlog:\n  - target: stderr\n    any: warning\nzone:\n  \
         - domain: dns64perf.test\n    storage: \"{folder}\"\n    file: zone\n    zonefile-sync: -1\n    \
         journal-content: none\n"
    )
}

fn write_queries(path: &Path, numbers: Range<u32>) -> io::Result<()> {
    let mut text = String::new();
    for number in numbers {
        let _ = writeln!(text, "{}.dns64perf.test AAAA", name(number).0);
    }
    fs::write(path, text)
}

/// Returns true if the server answers for the last name within its start time.
fn answers(address: SocketAddr) -> io::Result<bool> {
    let socket = UdpSocket::bind("[::1]:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x0f".to_vec();
    query.extend(name(limits::GENERATORS_NAMES - 1).0.as_bytes());
    query.extend(b"\x09dns64perf\x04test\0\0\x1c\0\x01");
    let start = Instant::now();
    while start.elapsed() < limits::READY_TIMEOUT {
        let mut reply = [0; 512];
        // No server listens yet: the error comes at once.
        if socket.send(&query).is_err() || socket.recv(&mut reply).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        } else if reply[3] & 0x0f == 0 && reply[7] == 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_address_that_it_says() {
        for number in [0, 255, 256, 65_535, limits::GENERATORS_NAMES - 1] {
            let (name, address) = name(number);
            let octets: Vec<u8> = name.split('-').map(|octet| octet.parse().unwrap()).collect();
            let expected = 0x2001_0db8 << 96 | u128::from(u32::from_be_bytes(octets.try_into().unwrap()));
            assert_eq!(u128::from(address.parse::<std::net::Ipv6Addr>().unwrap()), expected);
            assert_eq!(name.len(), 15);
        }
    }
}
