//! CPU time per answer of authoritative servers: ours, Knot and NSD, with one thread on core 0, the same zone and the
//! same answers. Three loads from core 1: dnsperf at its highest rate, dnsperf at a rate that all servers can handle,
//! and this program's own sender, whose queries leave sixteen at a time (UDP GSO), as those of a tester on the same
//! machine do.

use crate::client::Client;
use crate::device::{free_address, in_path};
use crate::limits;
use crate::names::{self, QUERY};
use crate::process::{Folder, Process, resident_kib, usage};
use crate::report::{Bound, Goal, Section, Table, cell};
use crate::series::Timing;
use crate::statistics::Summary;
use datapath::laboratory::device_sockets;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Highest cost of our server, as a share of each other server's.
const GOAL: f64 = 0.5;

/// Names in the zone: 1.0.0.0 to 1.0.255.255, each with an A and an AAAA record.
const NAMES: u64 = 1 << 16;

/// Names of the loads.
const LOADS: [&str; 3] = ["dnsperf -c 16 -q 200", "dnsperf at 30,000 q/s", "bursts of 16 (GSO)"];

/// Rate of the second load, in queries per second.
const COMMON_RATE: u32 = 30_000;

/// Servers that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `sixfold-bench authority` with computed names.
    Computed,
    /// `sixfold-bench authority` with the zone file that the other servers read.
    File,
    Knot,
    Nsd,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Computed, Kind::File, Kind::Knot, Kind::Nsd];

    fn name(self) -> &'static str {
        match self {
            Kind::Computed => "authority",
            Kind::File => "authority --zone",
            Kind::Knot => "knot",
            Kind::Nsd => "nsd",
        }
    }

    /// Finds its program. The error says how to install it.
    fn find(self, own: Option<&Path>) -> Result<PathBuf, String> {
        let (program, remedy) = match self {
            Kind::Computed | Kind::File => {
                let program = match own {
                    Some(sixfold) => Some(sixfold.with_file_name("sixfold-bench")),
                    None => std::env::current_exe().ok().map(|path| path.with_file_name("sixfold-bench")),
                };
                (
                    program.filter(|path| path.is_file()),
                    "build it: cargo build --profile dist -p sixfold-bench",
                )
            }
            Kind::Knot => (in_path("knotd"), "apt-get install knot"),
            Kind::Nsd => (in_path("nsd"), "apt-get install nsd"),
        };
        program.ok_or_else(|| format!("{} is missing: {remedy}", self.name()))
    }
}

/// One window: number of answers, CPU time of the server, duration.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    answers: u64,
    cpu: Duration,
    seconds: f64,
}

impl Window {
    fn cost_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers as f64
    }
}

/// One server's figures.
#[derive(Default)]
struct Series {
    windows: [Vec<Window>; LOADS.len()],
    resident_kib: Vec<f64>,
    octets: usize,
}

/// Measures the servers in turn, in rounds. Each server is restarted for each round.
///
/// # Errors
///
/// dnsperf is missing, a server cannot be started or gives no right answer, or dnsperf fails. A server that is not installed is left
/// out, with a note.
pub fn measure(sixfold: Option<&Path>, timing: Timing) -> io::Result<Section> {
    let dnsperf =
        in_path("dnsperf").ok_or_else(|| io::Error::other("dnsperf is missing: apt-get install dnsperf"))?;
    let (mut servers, mut notes) = (Vec::new(), Vec::new());
    for kind in Kind::ALL {
        match kind.find(sixfold) {
            Ok(program) => servers.push((kind, program, Series::default())),
            Err(reason) => notes.push(format!("Left out: {reason}")),
        }
    }
    let questions = Folder::new("questions")?;
    let file = questions.path().join("questions");
    fs::write(&file, question_file())?;
    for round in 1..=timing.rounds {
        for (kind, program, series) in &mut servers {
            eprintln!("authority: round {round} of {}, {}", timing.rounds, kind.name());
            let server = Server::start(*kind, program)?;
            series.octets = server.ready()?;
            for load in 0..LOADS.len() {
                let run = |length| match load {
                    0 => server.under_dnsperf(&dnsperf, &file, None, length),
                    1 => server.under_dnsperf(&dnsperf, &file, Some(COMMON_RATE), length),
                    _ => server.under_bursts(length),
                };
                run(timing.warm_up)?;
                series.windows[load].push(run(timing.window)?);
            }
            series.resident_kib.push(server.resident_kib());
        }
    }
    notes.insert(
        0,
        format!(
            "Server on core 0 with one thread for UDP, load from core 1, {NAMES} names over [::1]. CPU time is that of all \
             processes of the server, divided by the answers that arrived. Figures are median [lowest-highest] of {} \
             rounds; ratios are taken within a round. dnsperf sends plain datagrams from 16 ports; the bursts are {} queries \
             in one send from each of {} ports, {} outstanding.",
            timing.rounds,
            limits::SEGMENTS,
            limits::PORTS,
            limits::WINDOW
        ),
    );
    Ok(Section {
        key: "authority",
        title: "CPU time per answer of an authoritative server",
        charts: Vec::new(),
        notes,
        tables: (0..LOADS.len()).map(|load| table(load, &servers)).collect(),
        goals: goals(&servers),
        data: servers.iter().map(|(kind, _, series)| (kind.name(), data(series))).collect::<Value>(),
    })
}

type Measured = (Kind, PathBuf, Series);

fn goals(servers: &[Measured]) -> Vec<Goal> {
    let costs = |kind: Kind, load: usize| {
        let (_, _, series) = servers.iter().find(|(other, ..)| *other == kind)?;
        Some(series.windows[load].iter().map(Window::cost_us).collect::<Vec<_>>())
    };
    let mut goals = Vec::new();
    for (load, name) in LOADS.iter().enumerate() {
        for own in [Kind::Computed, Kind::File] {
            for rival in [Kind::Knot, Kind::Nsd] {
                let measured = costs(own, load)
                    .zip(costs(rival, load))
                    .and_then(|(own, other)| Summary::of_ratios(&own, &other));
                let ratio = format!("{} / {}, {name}", own.name(), rival.name());
                goals.push(Goal { ratio, bound: Bound::AtMost(GOAL), measured });
            }
        }
    }
    let resident = servers.iter().find(|(kind, ..)| *kind == Kind::Computed);
    goals.push(Goal {
        ratio: "resident memory of the computing authority / 16 MiB".into(),
        bound: Bound::AtMost(1.0),
        measured: resident.and_then(|(_, _, series)| {
            let parts: Vec<f64> = series.resident_kib.iter().map(|kib| kib / 16_384.0).collect();
            Summary::of(&parts)
        }),
    });
    goals
}

fn table(load: usize, servers: &[Measured]) -> Table {
    let row = |(kind, _, series): &Measured| {
        let of = |figure: fn(&Window) -> f64, decimals| {
            cell(&series.windows[load].iter().map(figure).collect::<Vec<_>>(), decimals)
        };
        vec![
            kind.name().to_owned(),
            of(Window::cost_us, 2),
            of(|window| window.answers as f64 / window.seconds, 0),
            of(|window| window.cpu.as_secs_f64() * 100.0 / window.seconds, 0),
            cell(&series.resident_kib.iter().map(|kib| kib / 1024.0).collect::<Vec<_>>(), 1),
            series.octets.to_string(),
        ]
    };
    Table {
        title: LOADS[load].to_owned(),
        columns: vec!["server", "CPU us/answer", "answers/s", "% of a core", "MiB", "octets"],
        rows: servers.iter().map(row).collect(),
    }
}

fn data(series: &Series) -> Value {
    let loads: Value = LOADS
        .iter()
        .zip(&series.windows)
        .map(|(name, windows)| {
            let window = |window: &Window| {
                json!({"answers": window.answers, "cpu_seconds": window.cpu.as_secs_f64(), "seconds": window.seconds})
            };
            (*name, windows.iter().map(window).collect::<Value>())
        })
        .collect();
    json!({"loads": loads, "resident_kib": series.resident_kib, "answer_octets": series.octets})
}

/// A running server.
struct Server {
    process: Process,
    address: SocketAddr,
}

impl Server {
    fn start(kind: Kind, program: &Path) -> io::Result<Server> {
        let folder = Folder::new(kind.name().split(' ').next().unwrap_or_default())?;
        let address = free_address()?;
        fs::write(folder.path().join("zone"), zone_file())?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let mut command = vec![program.display().to_string()];
        let add = |command: &mut Vec<String>, words: &[&str]| {
            command.extend(words.iter().map(|word| word.to_string()))
        };
        match kind {
            Kind::Computed => {
                add(&mut command, &["authority", "--listen", &address.to_string(), "--aaaa-share", "1"]);
            }
            Kind::File => {
                add(&mut command, &["authority", "--listen", &address.to_string(), "--zone", &file("zone")]);
            }
            Kind::Knot => {
                fs::write(file("knot.conf"), knot(folder.path(), address))?;
                add(&mut command, &["-c", &file("knot.conf")]);
            }
            Kind::Nsd => {
                fs::write(file("nsd.conf"), nsd(folder.path(), address))?;
                add(&mut command, &["-d", "-c", &file("nsd.conf")]);
            }
        }
        Ok(Server { process: Process::start(&command, "0", None, folder)?, address })
    }

    /// Waits until it answers, and returns the length of the answer.
    fn ready(&self) -> io::Result<usize> {
        let mut client = Client::new(self.address, 1)?;
        let start = Instant::now();
        while start.elapsed() < limits::READY_TIMEOUT {
            client.send(7..8);
            std::thread::sleep(Duration::from_millis(50));
            let mut octets = 0;
            client.receive(|message| {
                // One AAAA record: ANCOUNT is 1.
                if names::check_reflected(message).is_ok() && message.get(6..8) == Some(&[0, 1]) {
                    octets = message.len();
                }
            });
            if octets > 0 {
                device_sockets::equalize(&self.processes(), self.address.port());
                return Ok(octets);
            }
        }
        Err(io::Error::other("an authority gives no right answer"))
    }

    /// CPU time of the server and of the processes that it started (NSD answers in one of them).
    fn cpu(&self) -> Duration {
        self.processes().into_iter().map(|pid| usage(pid).cpu).sum()
    }

    /// Resident memory of the largest of its processes, which share most of their memory.
    fn resident_kib(&self) -> f64 {
        self.processes().into_iter().map(resident_kib).fold(0.0, f64::max)
    }

    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.process.id()];
        let mut at = 0;
        while let Some(pid) = all.get(at).copied() {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            all.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            at += 1;
        }
        all
    }

    fn under_dnsperf(
        &self,
        dnsperf: &Path,
        file: &Path,
        rate: Option<u32>,
        length: Duration,
    ) -> io::Result<Window> {
        let seconds = length.as_secs_f64().ceil().max(1.0);
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).arg(dnsperf);
        command.args(["-s", "::1", "-p", &self.address.port().to_string(), "-c", "16", "-q", "200"]);
        command.args(["-l", &seconds.to_string(), "-d"]).arg(file);
        if let Some(rate) = rate {
            command.args(["-Q", &rate.to_string()]);
        }
        let before = self.cpu();
        let output = command.output()?;
        let cpu = self.cpu().saturating_sub(before);
        let text = String::from_utf8_lossy(&output.stdout);
        let figure = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse::<f64>().ok()
        };
        match (figure("Queries completed:"), figure("Run time (s):")) {
            (Some(answers), Some(seconds)) if answers > 0.0 => {
                Ok(Window { answers: answers as u64, cpu, seconds })
            }
            _ => Err(io::Error::other(format!("dnsperf: {text}{}", String::from_utf8_lossy(&output.stderr)))),
        }
    }

    /// A closed loop of bursts. Gives up outstanding queries when nothing has arrived for [`limits::STALL_TIMEOUT`].
    fn under_bursts(&self, length: Duration) -> io::Result<Window> {
        let mut client = Client::new(self.address, limits::PORTS)?;
        let (mut next, mut outstanding, mut answers) = (0u64, 0u64, 0u64);
        let burst = limits::SEGMENTS as u64;
        let before = self.cpu();
        let start = Instant::now();
        let mut latest = start;
        loop {
            let now = Instant::now();
            if now - start >= length {
                break;
            }
            while outstanding + burst <= limits::WINDOW {
                client.send(next..next + burst);
                next = (next + burst) % NAMES;
                outstanding += burst;
            }
            let received =
                client.receive(|message| answers += u64::from(names::check_reflected(message).is_ok()));
            if received > 0 {
                outstanding = outstanding.saturating_sub(received as u64);
                latest = now;
            } else if now - latest > limits::STALL_TIMEOUT {
                (outstanding, latest) = (0, now);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Window { answers, cpu: self.cpu().saturating_sub(before), seconds })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // NSD's other processes end with the first one if it is terminated, but not if it is killed.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let begin = Instant::now();
        while self.processes().len() > 1 && begin.elapsed() < limits::STOP_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn knot(folder: &Path, listen: SocketAddr) -> String {
    let (folder, ip, port) = (folder.display(), listen.ip(), listen.port());
    format!(
        "server:\n    rundir: \"{folder}\"\n    listen: {ip}@{port}\n    udp-workers: 1\n    tcp-workers: 1\n    \
         background-workers: 1\ndatabase:\n    storage: \"{folder}\"\nlog:\n  - target: stderr\n    any: error\n\
         template:\n  - id: default\n    storage: \"{folder}\"\nzone:\n  - domain: dns64perf.test\n    file: zone\n"
    )
}

fn nsd(folder: &Path, listen: SocketAddr) -> String {
    let (folder, ip, port) = (folder.display(), listen.ip(), listen.port());
    format!(
        "server:\n server-count: 1\n ip-address: {ip}\n port: {port}\n username: \"\"\n zonesdir: \"{folder}\"\n \
         database: \"\"\n pidfile: \"\"\n xfrdfile: \"{folder}/xfrd\"\n zonelistfile: \"{folder}/list\"\n \
         minimal-responses: yes\n rrl-ratelimit: 0\n verbosity: 0\nremote-control:\n control-enable: no\n\
         zone:\n name: dns64perf.test\n zonefile: zone\n"
    )
}

/// The zone that all servers serve. The computed zone of the authority has the same names.
fn zone_file() -> String {
    let mut text = String::from(
        "$ORIGIN dns64perf.test.\n$TTL 3600\n@ IN SOA 127-0-0-1 hostmaster 1 7200 3600 1209600 3600\n@ IN NS 127-0-0-1\n\
         127-0-0-1 IN A 127.0.0.1\n",
    );
    for number in 0..NAMES {
        let address = names::address(number);
        let [a, b, c, d] = address.octets();
        let six = Ipv4Addr::to_ipv6_mapped(&address).segments();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{a:03}-{b:03}-{c:03}-{d:03} IN A {address}\n IN AAAA 2001:db8::{:x}:{:x}",
            six[6], six[7]
        );
    }
    text
}

/// Queries in the format of dnsperf.
fn question_file() -> String {
    let mut text = String::with_capacity(NAMES as usize * QUERY);
    for number in 0..NAMES {
        let [a, b, c, d] = names::address(number).octets();
        let _ = writeln!(text, "{a:03}-{b:03}-{c:03}-{d:03}.dns64perf.test AAAA");
    }
    text
}
