//! `mtd64-overload`: AAAA queries that nobody needs, for names whose servers are silent: threads, memory, and service to others; and the
//! memory that answered queries leave behind (plans of the paper on MTD64, section VI; motives of the paper on mtd64-ng, sections 1 and 2).

use super::client::{Client, Query};
use super::devices::{self, Launch, Subject};
use super::place::Place;
use crate::agent_client::AgentClient;
use crate::lab::context::{Context, figure};
use crate::lab::device::RunningDevice;
use crate::usage::Usage;
use authority::Zone;
use measure::experiment::{Figure, Origin};
use measure::run::Summary;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
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

/// Wait of the authority for a datagram, so that it sees the end.
const POLL: Duration = Duration::from_millis(50);

/// Runs the experiment.
///
/// # Errors
///
/// As [`devices::subjects`] and `Place::open`; a device or the authority cannot be started, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    let default: &[&str] = context.choose(&DEFAULT_QUICK, &DEFAULT);
    let subjects = devices::subjects(context, default)?;
    let place = Place::open(subjects.iter().any(Subject::is_of_the_papers))?;
    let authority = PartlySilent::start(&place)?;
    let mut agent = place.agent()?;
    for subject in &subjects {
        place.set_v6only(subject.is_v6only())?;
        context.progress(&format!("{}: the flood", subject.name))?;
        let (device, client) = start(context, &place, &mut agent, subject, authority.address)?;
        let flooded = flood(context, &place, &mut agent, &device, &client)?;
        device.stop(&mut agent);
        enter_flood(context, subject, &flooded);
        context.progress(&format!("{}: the memory", subject.name))?;
        let (device, client) = start(context, &place, &mut agent, subject, authority.address)?;
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

/// Authority that is silent about the names that begin with [`SILENT`]. Dropping it ends its thread.
struct PartlySilent {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PartlySilent {
    fn start(place: &Place) -> Result<PartlySilent, String> {
        let zone = Zone::new(ZONE).map_err(|error| error.to_string())?;
        let listen = place.upstream();
        let failed = |error: std::io::Error| format!("the authority at {listen}: {error}");
        let socket = place.run(|| UdpSocket::bind(listen).map_err(failed))?;
        socket.set_read_timeout(Some(POLL)).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || serve(&socket, &zone, &stop)
        });
        Ok(PartlySilent { address, stop, thread: Some(thread) })
    }
}

impl Drop for PartlySilent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that has failed has answered nothing since, which the probes show.
            let _ = thread.join();
        }
    }
}

/// True if a query is about a name whose server is silent. The first label follows its length.
fn is_silent(query: &[u8]) -> bool {
    query.get(wire::HEADER + 1..).is_some_and(|label| label.starts_with(SILENT.as_bytes()))
}

fn serve(socket: &UdpSocket, zone: &Zone, stop: &AtomicBool) {
    let (mut query, mut reply) = ([0; 4096], [0; 4096]);
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut query) else { continue };
        let query = &query[..length];
        if is_silent(query) {
            continue;
        }
        if let Some(length) = zone.answer(query, 512, &mut reply) {
            // A device that has gone needs no reply.
            let _ = socket.send_to(&reply[..length], from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_flood_have_a_silent_server_and_the_others_do_not() {
        let query = |name: &str| Query { name, rtype: Type::AAAA, id: 1, edns: false }.octets();
        assert_eq!(name(SILENT, 0x01_02_03), format!("012-001-002-003.{ZONE}"));
        assert!(is_silent(&query(&name(SILENT, 7))));
        assert!(!is_silent(&query(&name(ANSWERED, 7))));
        assert!(!is_silent(b"short"));
    }

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
