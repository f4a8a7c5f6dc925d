//! Experiment 5: the load generator of `sixfold-bench` beside dnsperf, in turns, on the same server: Knot DNS with one
//! thread on core 0, which has a million AAAA records; the generators run on core 1. Both keep as many queries outstanding,
//! so the server is the limit of both, and what remains to compare is what they take for it. Sixfold's checks every
//! reply in full, dnsperf counts response codes.

use crate::device;
use crate::process::{Folder, Process};
use crate::report::{Bound, Goal, Section, Table, cell};
use crate::statistics::Summary;
use crate::{limits, loads::Timing};
use datapath::tester_thread::Usage;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The programs that take part.
pub struct Programs {
    load: PathBuf,
    dnsperf: PathBuf,
    knot: PathBuf,
}

impl Programs {
    /// Looks for them. The error says how to get what is missing.
    pub fn find() -> Result<Programs, String> {
        let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let load = own.with_file_name("sixfold-bench");
        if !load.is_file() {
            return Err("sixfold-bench is not built: cargo build --release -p sixfold-bench".to_owned());
        }
        let package = |program: &str, package: &str| {
            device::in_path(program).ok_or(format!("{program} is not installed: apt-get install {package}"))
        };
        Ok(Programs { load, dnsperf: package("dnsperf", "dnsperf")?, knot: package("knotd", "knot")? })
    }
}

/// What one generator did in one turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    queries: f64,
    lost: f64,
    rate: f64,
    cpu: f64,
}

/// Pacing of one turn on a schedule: the largest deviation in 10 ms and the part of intervals beyond 1 %.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    worst: f64,
    beyond: f64,
    lost: f64,
}

/// Measures both generators in turn, round after round.
pub fn measure(programs: &Programs, timing: Timing) -> io::Result<Section> {
    let seconds = timing.window.as_secs_f64();
    let (folder, files) = (Folder::new("knot")?, Folder::new("queries")?);
    let address = UdpSocket::bind("[::1]:0")?.local_addr()?;
    let configuration = write_zone(folder.path(), address)?;
    let queries = files.path().join("queries");
    write_queries(&queries)?;
    let command = [&programs.knot.display().to_string(), "-c", &configuration.display().to_string()];
    let mut server = Process::start(&command.map(str::to_owned), "0", None, folder)?;
    if !answers(address)? {
        return Err(io::Error::other(format!("knotd gives no answer: {}", server.complaint())));
    }
    let (mut own, mut other, mut paces) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=timing.rounds {
        eprintln!("generators: round {round} of {}", timing.rounds);
        let closed = ["--outstanding".to_owned(), limits::GENERATORS_OUTSTANDING.to_string()];
        let (outcome, cpu) = load(programs, address, seconds, &closed, files.path())?;
        own.push(Turn {
            queries: number(&outcome["sent"]),
            lost: number(&outcome["sent"]) - number(&outcome["valid"]),
            rate: number(&outcome["valid"]) / number(&outcome["seconds"]),
            cpu,
        });
        other.push(dnsperf(programs, address, seconds, &queries)?);
        let open = ["--rate".to_owned(), limits::GENERATORS_RATE.to_string()];
        let (outcome, _) = load(programs, address, seconds, &open, files.path())?;
        let deviation = &outcome["pacing_error"]["ms10"];
        paces.push(Pace {
            worst: number(&deviation["max"]),
            beyond: number(&deviation["beyond_1_percent"]),
            lost: number(&outcome["sent"]) - number(&outcome["valid"]),
        });
    }
    Ok(section(timing, &own, &other, &paces))
}

fn section(timing: Timing, own: &[Turn], other: &[Turn], paces: &[Pace]) -> Section {
    let per_cpu = |turns: &[Turn]| turns.iter().map(|turn| turn.queries / turn.cpu).collect::<Vec<_>>();
    let rates = |turns: &[Turn]| turns.iter().map(|turn| turn.rate).collect::<Vec<_>>();
    let row = |name: &str, turns: &[Turn]| {
        vec![
            name.to_owned(),
            cell(&per_cpu(turns), 0),
            cell(&turns.iter().map(|turn| turn.cpu * 1e6 / turn.queries).collect::<Vec<_>>(), 2),
            cell(&rates(turns), 0),
            format!("{:.0}", turns.iter().map(|turn| turn.lost).sum::<f64>()),
        ]
    };
    let of_paces = |figure: fn(&Pace) -> f64| paces.iter().map(figure).collect::<Vec<_>>();
    let ratio = Summary::of_ratios(&rates(own), &rates(other));
    let turns = |turns: &[Turn]| -> Value {
        let turn =
            |t: &Turn| json!({"queries": t.queries, "lost": t.lost, "rate": t.rate, "cpu_seconds": t.cpu});
        turns.iter().map(turn).collect()
    };
    Section {
        key: "generators",
        title: "Load generator beside dnsperf",
        notes: vec![
            format!(
                "Knot DNS on core 0 with one thread and {} AAAA records; {} queries outstanding from core 1 over ::1. CPU time \
                 is that of the generator's whole process, user and system. sixfold-bench checks every reply in full; dnsperf \
                 counts response codes. Figures are median [lowest-highest] of {} rounds; ratios are taken within a round.",
                limits::GENERATORS_NAMES,
                limits::GENERATORS_OUTSTANDING,
                timing.rounds
            ),
            "`lost`: all that was not answered validly in time, over all rounds; of dnsperf what it calls lost.".to_owned(),
        ],
        tables: vec![
            Table {
                title: "closed loop".to_owned(),
                columns: vec!["generator", "queries per CPU second", "CPU us/query", "answers/s", "lost"],
                rows: vec![row("sixfold-bench load", own), row("dnsperf", other)],
            },
            Table {
                title: format!("pacing at {} queries/s", limits::GENERATORS_RATE),
                columns: vec!["generator", "worst 10 ms %", "% of intervals beyond 1 %", "lost"],
                rows: vec![vec![
                    "sixfold-bench load".to_owned(),
                    cell(&of_paces(|pace| pace.worst * 100.0), 2),
                    cell(&of_paces(|pace| pace.beyond * 100.0), 2),
                    cell(&of_paces(|pace| pace.lost), 0),
                ]],
            },
        ],
        goals: vec![
            Goal {
                ratio: "queries per CPU second, sixfold-bench / dnsperf".to_owned(),
                bound: Bound::AtLeast(2.0),
                measured: Summary::of_ratios(&per_cpu(own), &per_cpu(other)),
            },
            Goal {
                ratio: "closed-loop rate, sixfold-bench / dnsperf".to_owned(),
                bound: Bound::AtLeast(0.95),
                measured: ratio,
            },
            Goal {
                ratio: "closed-loop rate, sixfold-bench / dnsperf".to_owned(),
                bound: Bound::AtMost(1.05),
                measured: ratio,
            },
            Goal {
                ratio: "worst deviation from the schedule in 10 ms".to_owned(),
                bound: Bound::AtMost(0.01),
                measured: Summary::of(&of_paces(|pace| pace.worst)),
            },
        ],
        data: json!({
            "sixfold-bench": turns(own),
            "dnsperf": turns(other),
            "pacing": paces.iter().map(|p| json!({"worst": p.worst, "beyond_1_percent": p.beyond, "lost": p.lost})).collect::<Value>(),
        }),
    }
}

/// A load of `sixfold-bench`: its outcome and the CPU time of its process.
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
    command.args(["--names", "10.0.0.0/12", "--self-test", "--aaaa-share", "1", "--quiet", "--json"]);
    command.arg(&file).args(pace).stdout(Stdio::null());
    let before = Usage::of_children();
    // A load that fails its verdict is a result, too.
    command.status()?;
    let used = Usage::of_children().since(before);
    let text = fs::read_to_string(&file)?;
    fs::remove_file(&file)?;
    Ok((serde_json::from_str(&text)?, (used.user + used.system).as_secs_f64()))
}

/// A load of dnsperf.
fn dnsperf(programs: &Programs, address: SocketAddr, seconds: f64, queries: &Path) -> io::Result<Turn> {
    let mut command = on_core_1(&programs.dnsperf);
    command.args(["-s", &address.ip().to_string(), "-p", &address.port().to_string()]);
    command.args(["-q", &limits::GENERATORS_OUTSTANDING.to_string()]);
    // It knows whole seconds only.
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

/// The server's zone and configuration; returns the latter's path.
fn write_zone(folder: &Path, address: SocketAddr) -> io::Result<PathBuf> {
    let mut zone = "$ORIGIN dns64perf.test.\n$TTL 3600\n@ SOA ns hostmaster 1 7200 3600 1209600 3600\n@ NS ns\nns AAAA ::1\n"
        .to_owned();
    for number in 0..limits::GENERATORS_NAMES {
        let (name, address) = name(number);
        // Writing to a String cannot fail.
        let _ = writeln!(zone, "{name} AAAA {address}");
    }
    fs::write(folder.join("zone"), zone)?;
    let (path, folder) = (folder.join("knot.conf"), folder.display());
    let text = format!(
        "server:\n    rundir: \"{folder}\"\n    listen: {}@{}\n    udp-workers: 1\n    tcp-workers: 1\n    \
         background-workers: 1\ndatabase:\n    storage: \"{folder}\"\nlog:\n  - target: stderr\n    any: warning\nzone:\n  \
         - domain: dns64perf.test\n    storage: \"{folder}\"\n    file: zone\n    zonefile-sync: -1\n    \
         journal-content: none\n",
        address.ip(),
        address.port()
    );
    fs::write(&path, text)?;
    Ok(path)
}

fn write_queries(path: &Path) -> io::Result<()> {
    let mut text = String::new();
    for number in 0..limits::GENERATORS_NAMES {
        let _ = writeln!(text, "{}.dns64perf.test AAAA", name(number).0);
    }
    fs::write(path, text)
}

/// Whether the server answers the last name within the time that a server has to start.
fn answers(address: SocketAddr) -> io::Result<bool> {
    let socket = UdpSocket::bind("[::1]:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x0f".to_vec();
    query.extend(name(limits::GENERATORS_NAMES - 1).0.as_bytes());
    query.extend(b"\x09dns64perf\x04test\0\0\x1c\0\x01");
    let start = Instant::now();
    while start.elapsed() < limits::READY {
        let mut reply = [0; 512];
        // Nobody listens yet: an error that comes at once.
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
