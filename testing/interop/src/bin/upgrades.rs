//! Upgrades under load, counted: every query over UDP and TCP must get its answer, whatever process gives it. Prints a table for
//! docs/benchmarks.md, and the time from the start of a process to its readiness.
//!
//! Everything runs on the loopback interface. Exit status 1: a query was lost, an answer was wrong, or an upgrade failed.

#![forbid(unsafe_code)]

use clap::Parser;
use kit::message::{framed, read_frame};
use sixfold_interop::{CommandOutput, Process, Scratch, program, wait_until};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::{Message, Rcode, Section};

/// Time after which a query without an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// Queries that a client sends before it waits for their answers.
const BATCH: u16 = 10;

/// Batches on one connection of the clients that open many.
const BATCHES: usize = 5;

/// Processes that are started to measure the time until one is ready.
const STARTS: usize = 21;

/// Upgrades a server again and again under load over UDP and TCP, and counts the queries that are lost.
///
/// Example: cargo run --profile dist -p sixfold-interop --bin upgrades
#[derive(Parser)]
struct Options {
    /// Queries, half of them over TCP.
    #[arg(long, default_value_t = 200_000)]
    queries: u64,
    /// Upgrades, spread evenly over the queries.
    #[arg(long, default_value_t = 100)]
    upgrades: u64,
}

/// Results of all clients of one kind.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    answered: AtomicU64,
    wrong: AtomicU64,
    connections: AtomicU64,
}

impl Counts {
    /// Takes a batch out of `all` queries. False: all are sent.
    fn take(&self, all: u64) -> bool {
        let more = |sent| (sent < all).then_some(sent + u64::from(BATCH));
        self.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Enters an answer that has come.
    fn note(&self, message: &[u8], first: u32) {
        let counter = if is_right(message, first) { &self.answered } else { &self.wrong };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self) -> u64 {
        let [sent, answered, wrong] =
            [&self.sent, &self.answered, &self.wrong].map(|one| one.load(Ordering::Relaxed));
        sent - answered - wrong
    }

    fn row(&self, name: &str) -> String {
        let [sent, answered, wrong, connections] =
            [&self.sent, &self.answered, &self.wrong, &self.connections]
                .map(|one| one.load(Ordering::Relaxed));
        format!("| {name} | {sent} | {answered} | {wrong} | {} | {connections} |", self.lost())
    }
}

/// Number of the next name; all names are different, so every answer needs the upstream.
static NAME: AtomicU32 = AtomicU32::new(0);

fn query(id: u16, number: u32) -> Vec<u8> {
    let [_, b, c, d] = number.to_be_bytes();
    kit::query(id, &format!("010-{b:03}-{c:03}-{d:03}.dns64perf.test"), 28)
}

/// True if the answer has the address of the name with its ID. `first` is the name of ID 0 in this batch.
fn is_right(message: &[u8], first: u32) -> bool {
    let Ok(parsed) = Message::parse(message) else { return false };
    let number = first + u32::from(parsed.id());
    let expected = (0x2001_0db8_0064_u128 << 80) | u128::from(10 << 24 | number & 0xff_ffff);
    let mut addresses = parsed.records(Section::Answer).filter_map(|record| record.address6());
    parsed.rcode() == Rcode::NOERROR && addresses.next() == Some(expected.to_be_bytes())
}

/// Asks over UDP until all queries are sent: a batch at a time, each query once.
fn ask_over_udp(server: SocketAddr, all: u64, counts: &Counts) -> io::Result<()> {
    let socket = UdpSocket::bind(SocketAddr::new(server.ip(), 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = [0; 2048];
    while counts.take(all) {
        let first = NAME.fetch_add(u32::from(BATCH), Ordering::Relaxed);
        for id in 0..BATCH {
            socket.send(&query(id, first + u32::from(id)))?;
        }
        for _ in 0..BATCH {
            // No answer in time: lost, and the rest of this batch may be too.
            let Ok(length) = socket.recv(&mut buffer) else { break };
            counts.note(&buffer[..length], first);
        }
    }
    Ok(())
}

/// Asks over TCP until all queries are sent, `batches` times on one connection, or for as long as the server keeps it. A query that
/// is sent and not answered is lost, also if the server has closed the connection.
fn ask_over_tcp(server: SocketAddr, all: u64, counts: &Counts, batches: usize) -> io::Result<()> {
    let connect = || -> io::Result<TcpStream> {
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    let mut stream = connect()?;
    let mut asked = 0;
    while counts.take(all) {
        if asked == batches || has_ended(&stream) {
            stream = connect()?;
            asked = 0;
        }
        asked += 1;
        let first = NAME.fetch_add(u32::from(BATCH), Ordering::Relaxed);
        let mut frames = Vec::new();
        for id in 0..BATCH {
            frames.extend(framed(&query(id, first + u32::from(id))));
        }
        let answered = stream.write_all(&frames).and_then(|()| read_batch(&mut stream, first, counts));
        if answered.is_err() {
            stream = connect()?;
            asked = 0;
        }
    }
    Ok(())
}

fn read_batch(stream: &mut TcpStream, first: u32, counts: &Counts) -> io::Result<()> {
    for _ in 0..BATCH {
        counts.note(&read_frame(stream)?, first);
    }
    Ok(())
}

/// True if the server has closed the connection: a client looks before it sends the next query (RFC 7766 section 6.2.4).
fn has_ended(stream: &TcpStream) -> bool {
    let looked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let _ = stream.set_nonblocking(false);
    !matches!(looked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// The server and its upstream.
struct Testbed {
    scratch: Scratch,
    server: SocketAddr,
    _authority: Process,
    _first: Process,
}

impl Testbed {
    fn start() -> Testbed {
        let scratch = Scratch::new();
        let (upstream, server) = (free_address(), free_address());
        let arguments = ["authority", "--listen", &upstream.to_string()].map(str::to_owned);
        let bench = program("sixfold-bench");
        let command: Vec<&str> =
            [bench.as_str()].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let mut authority = Process::start(&command, &scratch.path().join("authority.log"));
        authority.expect("the authority listens", |_| UdpSocket::bind(upstream).is_err());
        let config = configuration(&scratch, "server", server, upstream);
        let mut first = Process::start(
            &[&program("sixfold"), "serve", "--config", &config],
            &scratch.path().join("server.log"),
        );
        first.expect("the server is ready", |log| log.contains("sixfold: ready"));
        Testbed { scratch, server, _authority: authority, _first: first }
    }

    /// Runs `sixfold ctl`.
    fn ctl(&self, command: &str) -> CommandOutput {
        let socket = self.scratch.path().join("server.sock");
        let output =
            Command::new(program("sixfold")).args(["ctl", "--socket"]).arg(socket).arg(command).output();
        let output = output.expect("the program can be started");
        CommandOutput {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Number of the process that serves now.
    fn process(&self) -> Option<String> {
        let status = self.ctl("status").stdout;
        status.lines().find_map(|line| line.strip_prefix("process")).map(|number| number.trim().to_owned())
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // The last process is no child of this one.
        if let Some(process) = self.process() {
            let _ = Command::new("kill").arg(&process).status();
            let file = format!("/proc/{process}/cmdline");
            wait_until(|| std::fs::read(&file).unwrap_or_default().is_empty());
        }
    }
}

fn configuration(scratch: &Scratch, name: &str, server: SocketAddr, upstream: SocketAddr) -> String {
    let socket = scratch.path().join(format!("{name}.sock"));
    let text = format!(
        "[server]\nlisten = [\"{server}\"]\nuser = \"root\"\n[upstream]\nforwarders = [\"{upstream}\"]\n\
         [dns64]\nprefixes = [\"2001:db8:64::/96\"]\n[metrics]\nlisten = \"\"\n[control]\nsocket = \"{}\"\n",
        socket.display()
    );
    scratch.write(&format!("{name}.toml"), &text).display().to_string()
}

/// An address on loopback that is free for UDP and TCP.
fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], kit::free_port()))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let testbed = Testbed::start();
    let (udp, short, long) = (Counts::default(), Counts::default(), Counts::default());
    let (half, quarter) = (options.queries / 2, options.queries / 4);
    let mut took = Vec::new();
    let mut failed = 0;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let server = testbed.server;
        let (udp, short, long) = (&udp, &short, &long);
        let clients = [
            scope.spawn(move || ask_over_udp(server, half, udp)),
            scope.spawn(move || ask_over_udp(server, half, udp)),
            scope.spawn(move || ask_over_tcp(server, quarter, short, BATCHES)),
            scope.spawn(move || ask_over_tcp(server, quarter, long, usize::MAX)),
        ];
        let sent = || [udp, short, long].iter().map(|one| one.sent.load(Ordering::Relaxed)).sum::<u64>();
        for number in 1..=options.upgrades {
            while sent() < options.queries * number / (options.upgrades + 1)
                && clients.iter().any(|client| !client.is_finished())
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            let start = Instant::now();
            let output = testbed.ctl("upgrade");
            took.push(start.elapsed());
            if !output.success {
                failed += 1;
                eprintln!("upgrade {number}: {}", output.stderr.trim());
            }
        }
        for client in clients {
            if let Ok(Err(error)) = client.join() {
                eprintln!("a client has failed: {error}");
                failed += 1;
            }
        }
    });
    println!("{} upgrades in {:.1} s, {failed} failed\n", options.upgrades, begun.elapsed().as_secs_f64());
    println!(
        "| clients | sent | answered | wrong | lost | connections |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    );
    for (name, counts) in [("UDP", &udp), ("TCP, 50 queries a connection", &short), ("TCP, kept open", &long)]
    {
        println!("{}", counts.row(name));
    }
    report_times("\nupgrade, from the command to its answer", took);
    report_times(
        "start of a process until it is ready",
        (0..STARTS).map(|_| time_of_start(&testbed.scratch)).collect(),
    );
    let wrong: u64 =
        [&udp, &short, &long].iter().map(|one| one.lost() + one.wrong.load(Ordering::Relaxed)).sum();
    if wrong == 0 && failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report_times(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let show = |time: Option<&Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
    let (median, most) = (times.get(times.len() / 2), times.last());
    println!("{name}: median {:.1} ms, most {:.1} ms", show(median), show(most));
}

/// Time from the start of a process to its line that says that it is ready.
fn time_of_start(scratch: &Scratch) -> Duration {
    use std::io::{BufRead, BufReader};
    let config = configuration(scratch, "start", free_address(), free_address());
    let mut command = Command::new(program("sixfold"));
    command.args(["serve", "--config", &config]).stderr(std::process::Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().expect("the program can be started");
    let errors = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
    let is_ready = errors.lines().map_while(Result::ok).any(|line| line.starts_with("sixfold: ready"));
    let time = begun.elapsed();
    assert!(is_ready, "the server does not start");
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    let _ = child.wait();
    time
}
