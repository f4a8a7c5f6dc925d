//! CPU time per answer of authoritative servers: ours, Knot and NSD, with one thread on core 0, the same zone and the
//! same answers. Three loads from core 1: dnsperf at its highest rate, dnsperf at a rate that all servers can handle,
//! and this program's own sender, whose queries leave sixteen at a time (UDP GSO), as those of a tester on the same
//! machine do.

use crate::lab::authorities::recipe::RECIPES;
use crate::lab::authorities::running::{Installed, Place, Running};
use crate::lab::authorities::zone_file;
use crate::perf::client::Client;
use crate::perf::dnsperf;
use crate::perf::limits;
use crate::perf::names;
use crate::perf::section::{Bound, Goal, Section, cell, ratios, summary, table_of};
use crate::perf::series::Timing;
use crate::sockets;
use crate::usage::Usage;
use report::table::Table;
use serde_json::{Value, json};
use servers::WorkingFolder;
use std::fs;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Highest cost of our server, as a share of each other server's.
const GOAL: f64 = 0.5;

/// Names in the zone, as a power of two: 10.0.0.0 to 10.0.255.255, each with an A and an AAAA record.
const NAMES_BITS: u32 = 16;
const NAMES: u64 = 1 << NAMES_BITS;

/// Sequence number of the first one.
const FIRST: u64 = 9 << 24;

/// Names of the loads.
const LOADS: [&str; 3] = ["dnsperf -c 16 -q 200", "dnsperf at 30,000 q/s", "bursts of 16 (GSO)"];

/// Rate of the second load, in queries per second.
const COMMON_RATE: u32 = 30_000;

/// Servers: name of the recipe, and name in tables. Ours computes its answers, or reads the zone file that the others read.
const SERVERS: [(&str, &str); 4] =
    [(COMPUTED, "authority"), ("ours-zone-file", "authority --zone"), ("knot", "knot"), ("nsd", "nsd")];
pub const COMPUTED: &str = "ours";

/// One window: number of answers, CPU time of the server in seconds, duration.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    answers: u64,
    cpu_s: f64,
    seconds: f64,
}

impl Window {
    fn cost_us(&self) -> f64 {
        self.cpu_s * 1e6 / self.answers as f64
    }
}

/// One server and its figures.
struct Measured {
    server: Installed,
    title: &'static str,
    windows: [Vec<Window>; LOADS.len()],
    resident_mib: Vec<f64>,
    octets: usize,
}

/// Measures the servers in turn, in rounds. Each server is restarted for each round.
///
/// # Errors
///
/// dnsperf is missing, a server cannot be started or gives no right answer, or dnsperf fails. A server that is not installed is left
/// out, with a note.
pub fn measure(timing: Timing) -> io::Result<Section> {
    let program = dnsperf::find().map_err(io::Error::other)?;
    let (mut servers, mut notes) = (Vec::new(), Vec::new());
    for (name, title) in SERVERS {
        match find(name) {
            Ok(server) => servers.push(Measured {
                server,
                title,
                windows: Default::default(),
                resident_mib: Vec::new(),
                octets: 0,
            }),
            Err(reason) => notes.push(format!("Left out: {reason}")),
        }
    }
    let folder = WorkingFolder::new()?;
    let (zone, questions) = (folder.path().join("zone"), folder.path().join("questions"));
    zone_file::write(&zone, NAMES_BITS).map_err(io::Error::other)?;
    fs::write(&questions, dnsperf::questions(0..NAMES as u32))?;
    for round in 1..=timing.rounds {
        for measured in &mut servers {
            eprintln!("authority: round {round} of {}, {}", timing.rounds, measured.title);
            let running = start(&measured.server, &zone, NAMES_BITS)?;
            measured.octets = answer_octets(running.address)?;
            for load in 0..LOADS.len() {
                let run = |length| match load {
                    0 => under_dnsperf(&running, &program, &questions, None, length),
                    1 => under_dnsperf(&running, &program, &questions, Some(COMMON_RATE), length),
                    _ => under_bursts(&running, length),
                };
                run(timing.warm_up)?;
                measured.windows[load].push(run(timing.window)?);
            }
            measured.resident_mib.push(resident_mib(&running.usage()));
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
        data: servers.iter().map(|measured| (measured.title, data(measured))).collect::<Value>(),
    })
}

fn goals(servers: &[Measured]) -> Vec<Goal> {
    let find = |name: &str| servers.iter().find(|measured| measured.server.recipe.name == name);
    let costs = |name: &str, load: usize| {
        Some(find(name)?.windows[load].iter().map(Window::cost_us).collect::<Vec<_>>())
    };
    let mut goals = Vec::new();
    let (own, rivals) = SERVERS.split_at(2);
    for (load, name) in LOADS.iter().enumerate() {
        for (own, own_title) in own {
            for (rival, rival_title) in rivals {
                let measured =
                    costs(own, load).zip(costs(rival, load)).and_then(|(own, other)| ratios(&own, &other));
                let ratio = format!("{own_title} / {rival_title}, {name}");
                goals.push(Goal { ratio, bound: Bound::AtMost(GOAL), measured });
            }
        }
    }
    goals.push(Goal {
        ratio: "resident memory of the computing authority / 16 MiB".into(),
        bound: Bound::AtMost(1.0),
        measured: find(COMPUTED).and_then(|measured| {
            summary(&measured.resident_mib.iter().map(|mib| mib / 16.0).collect::<Vec<_>>())
        }),
    });
    goals
}

fn table(load: usize, servers: &[Measured]) -> Table {
    let row = |measured: &Measured| {
        let of = |figure: fn(&Window) -> f64, decimals| {
            cell(&measured.windows[load].iter().map(figure).collect::<Vec<_>>(), decimals)
        };
        vec![
            measured.title.to_owned(),
            of(Window::cost_us, 2),
            of(|window| window.answers as f64 / window.seconds, 0),
            of(|window| window.cpu_s * 100.0 / window.seconds, 0),
            cell(&measured.resident_mib, 1),
            measured.octets.to_string(),
        ]
    };
    table_of(
        LOADS[load],
        &["server", "CPU us/answer", "answers/s", "% of a core", "MiB", "octets"],
        servers.iter().map(row).collect(),
    )
}

fn data(measured: &Measured) -> Value {
    let loads: Value = LOADS
        .iter()
        .zip(&measured.windows)
        .map(|(name, windows)| {
            let window = |window: &Window| {
                json!({"answers": window.answers, "cpu_seconds": window.cpu_s, "seconds": window.seconds})
            };
            (*name, windows.iter().map(window).collect::<Value>())
        })
        .collect();
    let resident_kib: Vec<f64> = measured.resident_mib.iter().map(|mib| mib * 1024.0).collect();
    json!({"loads": loads, "resident_kib": resident_kib, "answer_octets": measured.octets})
}

/// Finds the program of a recipe.
///
/// # Errors
///
/// There is no such recipe, or as [`Installed::find`].
pub fn find(name: &str) -> Result<Installed, String> {
    let recipe = RECIPES.iter().find(|recipe| recipe.name == name);
    Installed::find(recipe.ok_or_else(|| format!("no recipe is called {name}"))?, None)
}

/// Starts a server with one thread on core 0, waits until it answers for the last of 2^`bits` names, and gives its sockets the receive
/// buffer of all servers.
///
/// # Errors
///
/// The server cannot be started, or gives no right answer in time.
pub fn start(server: &Installed, zone: &Path, bits: u32) -> io::Result<Running> {
    let place = Place { cores: "0".to_owned(), threads: 1 };
    let never = AtomicBool::new(false);
    let running = Running::start(server, &place, Ipv6Addr::LOCALHOST.into(), (zone, bits), &never)
        .map_err(io::Error::other)?;
    sockets::read(&running.members(), running.address.port(), true);
    Ok(running)
}

/// Octets of an answer.
fn answer_octets(server: SocketAddr) -> io::Result<usize> {
    let mut client = Client::new(server, 1)?;
    client.send(FIRST..FIRST + 1);
    let (start, mut octets) = (Instant::now(), 0);
    while octets == 0 && start.elapsed() < limits::TIMEOUT {
        client.receive(|message| octets = message.len());
    }
    Ok(octets)
}

/// Resident memory of the largest process, which shares most of its memory with the others, in MiB.
fn resident_mib(usage: &Usage) -> f64 {
    let largest = usage.processes.iter().map(|process| process.resident).max();
    largest.unwrap_or(0) as f64 / f64::from(1 << 20)
}

/// CPU time of all processes of a server, NSD's too, since `before`, in seconds.
fn cpu_s_since(running: &Running, before: &Usage) -> f64 {
    let used = running.usage().since(before, 0);
    used.user_s + used.system_s
}

fn under_dnsperf(
    running: &Running,
    program: &Path,
    questions: &Path,
    rate: Option<u32>,
    length: Duration,
) -> io::Result<Window> {
    let rate = rate.map(|rate| format!("-Q {rate}"));
    let words: Vec<&str> =
        "-c 16 -q 200".split(' ').chain(rate.iter().flat_map(|rate| rate.split(' '))).collect();
    let before = running.usage();
    let said = dnsperf::run(program, running.address, length.as_secs_f64().ceil(), &words, questions)?;
    Ok(Window { answers: said.completed as u64, cpu_s: cpu_s_since(running, &before), seconds: said.seconds })
}

/// A closed loop of bursts. Gives up outstanding queries when nothing has arrived for [`limits::STALL_TIMEOUT`].
fn under_bursts(running: &Running, length: Duration) -> io::Result<Window> {
    let mut client = Client::new(running.address, limits::PORTS)?;
    let (mut next, mut outstanding, mut answers) = (0u64, 0u64, 0u64);
    let burst = limits::SEGMENTS as u64;
    let before = running.usage();
    let start = Instant::now();
    let mut latest = start;
    loop {
        let now = Instant::now();
        if now - start >= length {
            break;
        }
        while outstanding + burst <= limits::WINDOW {
            client.send(FIRST + next..FIRST + next + burst);
            next = (next + burst) % NAMES;
            outstanding += burst;
        }
        let received = client.receive(|message| answers += u64::from(names::sequence(message).is_some()));
        if received > 0 {
            outstanding = outstanding.saturating_sub(received as u64);
            latest = now;
        } else if now - latest > limits::STALL_TIMEOUT {
            (outstanding, latest) = (0, now);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Window { answers, cpu_s: cpu_s_since(running, &before), seconds })
}
