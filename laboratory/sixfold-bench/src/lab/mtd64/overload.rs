//! `mtd64-overload`: AAAA queries that nobody needs, for names whose servers are silent: threads, memory, and service to others; and the
//! memory that answered queries leave behind (plans of the paper on MTD64, section VI; motives of the paper on mtd64-ng, sections 1 and 2).

use super::client::{Client, Query};
use super::devices::{self, Launch, Subject};
use super::place::Place;
use crate::agent_client::AgentClient;
use crate::lab::context::{Context, figure};
use crate::lab::device::RunningDevice;
use crate::usage::Usage;
use authority::{Faults, Server, Settings, Zone};
use measure::experiment::{Figure, Origin};
use measure::run::Summary;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use wire::Type;

/// Devices without `--device`, and those of the short version.
const DEFAULT: [&str; 3] = ["sixfold", "bind", "unbound"];
const DEFAULT_QUICK: [&str; 1] = ["sixfold"];

/// Table of the flood, and of the memory.
const FLOOD: &str = "Flood of 500 AAAA queries a second, for names whose servers are silent";
const LEAK: &str = "Resident memory that answered queries leave behind";

/// Zone of the names.
const ZONE: &str = "dns64perf.test";

/// First label part of the names whose server is silent, and of names that are answered.
const SILENT: &str = "012";
const ANSWERED: &str = "010";

/// Time between two queries of the flood.
const PACE: Duration = Duration::from_millis(2);

/// Time that another client waits for its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two questions of that client.
const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// Threads of mtd64-ng, its default, as in `mtd64-speed`.
const THREADS: u16 = 10;

/// Runs the experiment.
///
/// # Errors
///
/// As [`devices::subjects`] and `Place::open`; a device or the authority cannot be started, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    let default: &[&str] = context.choose(&DEFAULT_QUICK, &DEFAULT);
    let subjects = devices::subjects(context, default)?;
    let place = Place::open(subjects.iter().any(Subject::is_of_the_papers))?;
    let authority = start_authority(&place)?;
    let upstream = authority.addresses()[0];
    let mut agent = place.agent()?;
    for subject in &subjects {
        place.set_v6only(subject.is_v6only())?;
        context.progress(&format!("{}: the flood", subject.name))?;
        let (device, client) = start(context, &place, &mut agent, subject, upstream)?;
        let flooded = flood(context, &place, &mut agent, &device, &client)?;
        device.stop(&mut agent);
        enter_flood(context, subject, &flooded);
        context.progress(&format!("{}: the memory", subject.name))?;
        let (device, client) = start(context, &place, &mut agent, subject, upstream)?;
        let rounds = leak(context, &mut agent, &device, &client)?;
        device.stop(&mut agent);
        enter_leak(context, subject, &rounds);
    }
    Ok(())
}

fn start<'p>(
    context: &mut Context,
    place: &'p Place,
    agent: &mut AgentClient,
    subject: &Subject,
    upstream: SocketAddr,
) -> Result<(RunningDevice, Client<'p>), String> {
    let workers = if subject.is_of_the_papers() { THREADS } else { 1 };
    let launch = Launch { workers, ..Launch::new(upstream, ZONE) };
    devices::start(context, place, agent, subject, &launch, &name("011", 0))
}

/// Starts an authority that is silent about the names that begin with [`SILENT`].
fn start_authority(place: &Place) -> Result<Server, String> {
    let zone = Zone::new(ZONE).map_err(|error| error.to_string())?;
    let listen = place.upstream();
    let settings = Settings::new(zone).faults(Faults::default().silent_about(SILENT));
    let failed = |error: std::io::Error| format!("the authority at {listen}: {error}");
    place.run(|| Server::with(&[listen], &settings).map_err(failed))
}

/// Name number `number` of a kind.
fn name(kind: &str, number: u32) -> String {
    let [_, b, c, d] = number.to_be_bytes();
    format!("{kind}-{b:03}-{c:03}-{d:03}.{ZONE}")
}

/// Threads and resident octets of a device, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    threads: u64,
    octets: u64,
}

impl Size {
    fn of(usage: &Usage) -> Size {
        let threads = usage.processes.iter().map(|process| process.threads.len() as u64).sum();
        let octets = usage.processes.iter().map(|process| process.resident).sum();
        Size { threads, octets }
    }

    /// The larger of each.
    fn max(self, other: Size) -> Size {
        Size { threads: self.threads.max(other.threads), octets: self.octets.max(other.octets) }
    }
}

/// Observations of a flood.
#[derive(Debug, Default)]
struct Flooded {
    before: Size,
    most: Size,
    after: Size,
    /// Questions of another client during the flood, and times of those that were answered, in milliseconds.
    probes: u64,
    times_ms: Vec<f64>,
    /// True if that client gets an answer after the flood.
    serves_after: bool,
    sent: u64,
}

/// Floods the device and looks at it meanwhile.
fn flood(
    context: &Context,
    place: &Place,
    agent: &mut AgentClient,
    device: &RunningDevice,
    client: &Client<'_>,
) -> Result<Flooded, String> {
    let queries: u32 = context.choose(500, 5000);
    // MTD64 and mtd64-ng give a name up after three waits of 1 s.
    let recovery = context.choose(Duration::from_secs(2), Duration::from_secs(8));
    let mut found = Flooded { sent: u64::from(queries), ..Flooded::default() };
    found.before = Size::of(&device.usage(agent)?);
    let socket = place
        .run(|| UdpSocket::bind("[::1]:0").map_err(|error| format!("a socket of the flood: {error}")))?;
    let (server, stop) = (client.server, &context.stop);
    thread::scope(|scope| -> Result<(), String> {
        let flood = scope.spawn(move || {
            let began = Instant::now();
            for number in 0..queries {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let query =
                    Query { name: &name(SILENT, number), rtype: Type::AAAA, id: number as u16, edns: false };
                // A device that has ended, or whose buffer is full, takes no query: the probes show it.
                let _ = socket.send_to(&query.octets(), server);
                thread::sleep((PACE * (number + 1)).saturating_sub(began.elapsed()));
            }
        });
        while !flood.is_finished() {
            found.most = found.most.max(Size::of(&device.usage(agent)?));
            found.probes += 1;
            let asked = Instant::now();
            if has_answer(client, found.probes as u32) {
                found.times_ms.push(asked.elapsed().as_secs_f64() * 1e3);
            }
            thread::sleep(PROBE_PAUSE);
        }
        Ok(())
    })?;
    found.most = found.most.max(Size::of(&device.usage(agent)?));
    context.check_stop()?;
    thread::sleep(recovery);
    found.after = Size::of(&device.usage(agent)?);
    found.serves_after = has_answer(client, 1 << 20);
    Ok(found)
}

/// True if the device answers another client in time.
fn has_answer(client: &Client<'_>, number: u32) -> bool {
    let query = Query { name: &name(ANSWERED, number), rtype: Type::AAAA, id: number as u16, edns: false };
    client.ask_within(&query, PATIENCE).is_some_and(|reply| {
        wire::Message::parse(&reply).is_ok_and(|message| message.count(wire::Section::Answer) > 0)
    })
}

/// Memory after each round of answered queries, and the queries so far.
fn leak(
    context: &Context,
    agent: &mut AgentClient,
    device: &RunningDevice,
    client: &Client<'_>,
) -> Result<Vec<(u64, u64)>, String> {
    let (rounds, names): (u32, u32) = context.choose((3, 200), (6, 5000));
    let mut found = Vec::new();
    let mut answered = 0;
    for round in 0..rounds {
        for number in 0..names {
            answered += u64::from(has_answer(client, round * names + number));
        }
        context.check_stop()?;
        found.push((answered, Size::of(&device.usage(agent)?).octets));
    }
    Ok(found)
}

fn enter_flood(context: &mut Context, subject: &Subject, found: &Flooded) {
    let mib = |octets: u64| octets as f64 / 1_048_576.0;
    let row = subject.name.as_str();
    let share = 100.0 * found.times_ms.len() as f64 / found.probes.max(1) as f64;
    for (column, value, unit) in [
        ("threads before", found.before.threads as f64, ""),
        ("most threads", found.most.threads as f64, ""),
        ("threads afterwards", found.after.threads as f64, ""),
        ("memory before", mib(found.before.octets), "MiB"),
        ("most memory", mib(found.most.octets), "MiB"),
        ("memory afterwards", mib(found.after.octets), "MiB"),
        ("another client is answered within 1 s", share, "%"),
        ("median time of its answers", Summary::of(&found.times_ms).median, "ms"),
        ("it is answered after the flood", f64::from(u8::from(found.serves_after)), ""),
    ] {
        let is_none = column.starts_with("median") && found.times_ms.is_empty();
        let entry = figure(FLOOD, row, column, value, unit, Origin::Measured);
        context.figure(Figure { value: (!is_none).then_some(value), samples: found.sent, ..entry });
    }
    let threads = format!("{} before, {} at most", found.before.threads, found.most.threads);
    let served = format!("{} of {} questions answered", found.times_ms.len(), found.probes);
    match row {
        "sixfold" => {
            context.claim(
                "Sixfold: a flood of queries for silent servers makes no thread",
                "more threads than before the flood",
                threads,
                found.most.threads <= found.before.threads,
            );
            context.claim(
                "Sixfold: another client is served during the flood (9 of 10 questions within 1 s), and after it",
                "more than 1 of 10 questions without an answer in time, or none after the flood",
                served,
                10 * found.times_ms.len() as u64 >= 9 * found.probes && found.probes > 0 && found.serves_after,
            );
        }
        "mtd64" => context.claim(
            "MTD64: each waiting query has a thread, so a flood makes hundreds of them",
            "fewer than 100 threads more than before the flood",
            threads,
            found.most.threads >= found.before.threads + 100,
        ),
        "mtd64-ng" => {
            context.claim(
                "mtd64-ng: a flood makes no thread, as its paper has it",
                "more threads than before the flood",
                threads,
                found.most.threads <= found.before.threads,
            );
            context.claim(
                "mtd64-ng: its queue has no limit, so another client still waits behind the flood seconds after its end",
                "an answer after the flood: the pool of threads ends the flood, as its paper has it",
                format!("{served} during the flood; answered after it: {}", found.serves_after),
                !found.serves_after,
            );
        }
        _ => {}
    }
}

fn enter_leak(context: &mut Context, subject: &Subject, rounds: &[(u64, u64)]) {
    let (Some((first, early)), Some((last, late))) = (rounds.first(), rounds.last()) else { return };
    let row = subject.name.as_str();
    let queries = last - first;
    let mut enter = |column: &str, value: Option<f64>, unit: &str| {
        let entry = figure(LEAK, row, column, value.unwrap_or(f64::NAN), unit, Origin::Measured);
        context.figure(Figure { value, samples: *last, ..entry });
    };
    enter("after the first round", Some(*early as f64 / 1_048_576.0), "MiB");
    enter("after the last round", Some(*late as f64 / 1_048_576.0), "MiB");
    let growth = (queries > 0).then(|| (*late as f64 - *early as f64) / queries as f64);
    enter("growth for each answered query between", growth, "octets");
    // Rounds of the short version are too short: resident memory has steps, and a leak of some octets for a query is within one.
    if row == "mtd64" && !context.options.quick {
        let sizes: Vec<String> =
            rounds.iter().map(|(_, octets)| format!("{:.2}", *octets as f64 / 1_048_576.0)).collect();
        context.claim(
            "MTD64: each round of answered queries takes more memory than the one before, as the paper on mtd64-ng says of it",
            "a round after the first that takes no more memory",
            format!("{} MiB", sizes.join(", ")),
            grows_in_every_round(rounds),
        );
    }
}

/// True if each round after the first has more octets than the one before.
fn grows_in_every_round(rounds: &[(u64, u64)]) -> bool {
    rounds.len() > 1 && rounds.windows(2).all(|pair| pair[1].1 > pair[0].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_grows_in_every_round() {
        assert!(grows_in_every_round(&[(5, 100), (10, 110), (15, 111)]));
        assert!(!grows_in_every_round(&[(5, 100), (10, 110), (15, 110)]));
        assert!(!grows_in_every_round(&[(5, 100)]), "one round shows no growth");
    }

    #[test]
    fn the_most_of_two_sizes_is_that_of_each_part() {
        let (one, other) = (Size { threads: 5, octets: 10 }, Size { threads: 2, octets: 30 });
        assert_eq!(one.max(other), Size { threads: 5, octets: 30 });
    }
}
