//! TIME-WAIT of the kernel: connections over the loopback interface of a namespace, and their number over time.

use crate::lab::context::{Context, figure};
use crate::lab::own_namespace;
use crate::link::own_namespace::OwnNamespace;
use measure::experiment::{ChartLine, Figure, Origin, Point, Program};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connections of the whole version: as many as the paper's host has blocks.
const CONNECTIONS: u64 = 8000;

/// Connections of the short version.
const CONNECTIONS_QUICK: u64 = 500;

/// Time after which the short version looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// End of the whole version: 60 s, and the inaccuracy of the kernel's timers, an eighth at most, and some for a busy machine.
const END: Duration = Duration::from_secs(80);

const TABLE: &str = "TIME-WAIT of the kernel";

/// Measures TIME-WAIT of the kernel. Returns its curve; none in the short version, or where the machine cannot measure it.
///
/// # Errors
///
/// A connection fails, /proc cannot be read, or the user stops the experiment. Without root the part is left out, with a warning.
pub fn check(context: &mut Context) -> Result<Option<ChartLine>, String> {
    let connections = context.choose(CONNECTIONS_QUICK, CONNECTIONS);
    context.progress(&format!("kernel: {connections} connections over loopback"))?;
    let left_out = "TIME-WAIT of the kernel was not measured";
    let Some(namespace) = own_namespace::for_check(context, left_out) else { return Ok(None) };
    context.program(kernel_program());
    let start = Instant::now();
    namespace.namespace().run(|| open_and_close(connections))?;
    let closed = start.elapsed();
    let opened = in_time_wait(&namespace)?;
    let samples = connections;
    let entry = |column: &str, value: f64, unit: &str| Figure {
        samples,
        ..figure(TABLE, "Linux", column, value, unit, Origin::Measured)
    };
    context.figure(entry("connections closed", connections as f64, ""));
    context.figure(entry("in TIME-WAIT after the last one", opened as f64, ""));
    if context.options.quick {
        std::thread::sleep(LOOK_AGAIN);
        let later = in_time_wait(&namespace)?;
        context.claim(
            format!("Linux: closed connections are in TIME-WAIT {} s later", LOOK_AGAIN.as_secs()),
            "more than 1 of 100 connections gone after that time",
            format!("{later} of {connections}"),
            later * 100 >= connections * 99,
        );
        context.warning("the short version does not wait for the end of the kernel's TIME-WAIT, 60 s");
        return Ok(None);
    }
    let mut points = vec![Point { x: closed.as_secs_f64(), y: opened as f64, interval: None }];
    context.progress("kernel: about 60 s until the end of TIME-WAIT")?;
    while points.last().is_some_and(|point| point.y > 0.0) && start.elapsed() < END {
        std::thread::sleep(Duration::from_millis(500));
        context.check_stop()?;
        let waiting = in_time_wait(&namespace)?;
        points.push(Point { x: start.elapsed().as_secs_f64(), y: waiting as f64, interval: None });
    }
    duration(context, &points, closed.as_secs_f64(), connections as f64);
    Ok(Some(ChartLine { name: "Linux, TCP over loopback".to_owned(), origin: Origin::Measured, points }))
}

/// Enters the time from the last close to the time at which 1 % is left, and tests it.
fn duration(context: &mut Context, points: &[Point], closed_s: f64, connections: f64) {
    let gone = points.iter().find(|point| point.y <= connections / 100.0).map(|point| point.x - closed_s);
    let value = gone.unwrap_or(f64::NAN);
    context.figure(Figure {
        value: gone,
        paper: Some(60.0),
        place: "Figure 5 (FreeBSD)".to_owned(),
        samples: connections as u64,
        ..figure(TABLE, "Linux", "until 1 % is left", value, "s", Origin::Measured)
    });
    // A timer of 60 s may be late by an eighth, as the kernel's wheel of timers is coarse for long times.
    context.claim(
        "Linux: TIME-WAIT lasts 60 s, up to an eighth more",
        "99 of 100 connections gone before 58 s or after 69 s",
        format!("{value:.1} s"),
        (58.0..=69.0).contains(&value),
    );
}

/// Opens connections one after the other; the client closes first.
fn open_and_close(connections: u64) -> Result<(), String> {
    let error = |step: &str| {
        let step = step.to_owned();
        move |error: std::io::Error| format!("{step} over loopback: {error}")
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(error("bind"))?;
    let address = listener.local_addr().map_err(error("bind"))?;
    for _ in 0..connections {
        let client = TcpStream::connect(address).map_err(error("connect"))?;
        let (mut server, _) = listener.accept().map_err(error("accept"))?;
        drop(client);
        server.read(&mut [0; 1]).map_err(error("read"))?;
    }
    Ok(())
}

/// Connections in TIME-WAIT in the namespace.
fn in_time_wait(namespace: &OwnNamespace) -> Result<u64, String> {
    const FILE: &str = "/proc/thread-self/net/sockstat";
    let text = namespace
        .namespace()
        .run(|| std::fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}")))?;
    let mut words = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or("").split(' ');
    let count = words.by_ref().find(|word| *word == "tw").and_then(|_| words.next());
    count.and_then(|count| count.parse().ok()).ok_or_else(|| format!("{FILE} has no count `tw` of TCP"))
}

/// The kernel, as a program of the record.
pub fn kernel_program() -> Program {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Program { name: "Linux".to_owned(), version: version.trim().to_owned(), ..Program::default() }
}
