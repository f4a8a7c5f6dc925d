//! The table measured: two network namespaces, a link, the kernel's sockets, and two T/TCP hosts.

use super::Cell;
use super::encrypted::{self, Encrypted};
use super::kernel;
use super::long::{self, Long};
use super::paper::{QUESTION, Row, check, root_zone};
use super::place::{LAST_COUNTS, MEASURED, link};
use super::virtual_time::QUERIES;
use crate::exchange;
use crate::lab::context::Context;
use crate::lab::kernel_fast_open;
use crate::link::interface::ip;
use crate::link::own_namespace::set;
use crate::ttcp_dns::relay::Relay;
use crate::ttcp_dns::stub::Stub;
use crate::ttcp_dns::testbed::{KERNELS, PORT, Testbed, kernel_server, octets, packets, ttcp_server};
use crate::ttcp_dns::upstream::Upstream;
use authority::Server;
use papers::sequential::Transport;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use ttcp::Settings;

/// Rows that are measured, in order.
const ROWS: [Row; 6] = [
    Row::Of(Transport::Udp),
    Row::Of(Transport::Ttcp),
    Row::Of(Transport::Tcp),
    Row::Of(Transport::TcpKept),
    Row::FastOpenWarm,
    Row::FastOpenCold,
];

/// Queries of a row in the short version: at 65 ms all rows take 8 round trips of each, 10 s in all.
const QUICK_QUERIES: u32 = 20;

/// The server, the relay and the stub on a testbed. The fields end in this order.
struct World {
    stub: Stub,
    _relay: Relay,
    _server: Server,
    testbed: Testbed,
}

/// The measured part.
#[derive(Default)]
pub struct Measured {
    /// The rows of the paper's transports and of Fast Open.
    pub cells: Vec<Cell>,
    /// Connections with a cookie on which the kernel sent data with the SYN.
    pub fast_open: u64,
    /// The rows of the encrypted transports; none if their server is not installed.
    pub encrypted: Option<Encrypted>,
    /// Answers above 512 octets, a zone transfer, and a lookup that goes on.
    pub long: Option<Long>,
}

/// Measures all rows.
///
/// # Errors
///
/// Namespaces cannot be made, which needs root (the text says so), a query fails, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<Measured, String> {
    context.progress("making two network namespaces")?;
    let mut world = World::new()?;
    let mut cells = Vec::new();
    let mut fast_open = 0;
    for round_trip in MEASURED {
        world.warm_up(context, round_trip)?;
        for row in ROWS {
            let queries = context.choose(QUICK_QUERIES, QUERIES);
            context.progress(&format!(
                "measuring {}, round trip {} ms, {queries} queries",
                row.name(),
                round_trip.as_secs_f64() * 1e3
            ))?;
            let before = world.testbed.left().run(|| kernel_fast_open::count(kernel_fast_open::ACTIVE))?;
            cells.push(world.cell(context, row, round_trip, queries)?);
            if row == Row::FastOpenWarm {
                fast_open +=
                    world.testbed.left().run(|| kernel_fast_open::count(kernel_fast_open::ACTIVE))? - before;
            }
        }
    }
    let encrypted = encrypted::run(context, &world.testbed)?;
    let answers = long::answers(context, &world.testbed, &mut world.stub)?;
    // Each end of a testbed has one T/TCP host at a time.
    drop(world);
    let long = Some(Long { answers, transfers: long::transfers(context)?, lookups: long::lookups(context)? });
    Ok(Measured { cells, fast_open, encrypted, long })
}

impl World {
    /// Makes the namespaces and starts server, relay and stub.
    fn new() -> Result<World, String> {
        let testbed = Testbed::new()?;
        testbed.left().run(|| set(kernel_fast_open::PARAMETER, kernel_fast_open::ON))?;
        let zone = root_zone()?;
        let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), SocketAddr::from((KERNELS[1], PORT))];
        let server = testbed.right().run(|| {
            set(kernel_fast_open::PARAMETER, kernel_fast_open::ON)?;
            Server::start(&addresses, zone, 1).map_err(|error| format!("the authority: {error}"))
        })?;
        let settings = |last_count| Settings { last_count, ..Settings::default() };
        let upstream = Upstream::new(testbed.right(), addresses[0])?;
        let relay = Relay::start(testbed.host(1, settings(LAST_COUNTS[1]), 1)?, upstream)?;
        let stub = Stub::new(testbed.host(0, settings(LAST_COUNTS[0]), 2)?, ttcp_server());
        Ok(World { stub, _relay: relay, _server: server, testbed })
    }

    /// Asks one question over each transport, which fills the caches of connection counts and of cookies.
    fn warm_up(&mut self, context: &Context, round_trip: Duration) -> Result<(), String> {
        let (testbed, stub) = (&self.testbed, &mut self.stub);
        let ask_all = || {
            let mut warm = ROWS.iter().filter(|row| **row != Row::FastOpenCold);
            warm.try_for_each(|row| times(context, *row, testbed, stub, 1).map(drop))
        };
        testbed.during(link(round_trip), 1, ask_all).map(drop)
    }

    /// Measures one row at one round trip.
    fn cell(
        &mut self,
        context: &Context,
        row: Row,
        round_trip: Duration,
        queries: u32,
    ) -> Result<Cell, String> {
        let (testbed, stub) = (&self.testbed, &mut self.stub);
        let before = process_cpu_s();
        let (times, achieved) =
            testbed.during(link(round_trip), 1, || times(context, row, testbed, stub, queries))?;
        let cpu = process_cpu_s() - before;
        // The first query of a kept connection makes the handshake, which the others do not repeat.
        let later = &times[1..];
        let mean = later.iter().sum::<f64>() / later.len() as f64;
        Ok(Cell {
            row,
            round_trip,
            totals: vec![times[0] + mean * f64::from(QUERIES - 1)],
            times,
            packets: packets(&achieved) as f64 / f64::from(queries),
            octets: Some(octets(&achieved) as f64 / f64::from(queries)),
            cpu: Some(cpu / f64::from(queries)),
        })
    }
}

/// CPU time of all threads of this process so far, s. Both hosts, their kernels' work for the packets, and the link run in it.
fn process_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Times of the queries of a row, s.
fn times(
    context: &Context,
    row: Row,
    testbed: &Testbed,
    stub: &mut Stub,
    queries: u32,
) -> Result<Vec<f64>, String> {
    let server = kernel_server();
    let in_left = |work: &mut (dyn FnMut() -> Result<Vec<f64>, String> + Send)| testbed.left().run(work);
    let failed = |error: std::io::Error| format!("{}: {error}", row.name());
    match row {
        Row::Of(Transport::Ttcp) => {
            let times = in_a_row(context, queries, |question| stub.ask(question, kernel::ANSWER_TIMEOUT))?;
            // The acknowledgment of the last answer leaves, too.
            stub.idle(Duration::from_millis(20))?;
            Ok(times)
        }
        Row::Of(Transport::Udp) => in_left(&mut || {
            let socket = exchange::socket_to(server).map_err(failed)?;
            in_a_row(context, queries, |question| kernel::ask_datagram(&socket, question).map_err(failed))
        }),
        Row::Of(Transport::TcpKept) => in_left(&mut || {
            let start = Instant::now();
            let mut stream = exchange::connect(server, kernel::ANSWER_TIMEOUT).map_err(failed)?;
            let connected = start.elapsed().as_secs_f64();
            let mut times = in_a_row(context, queries, |question| {
                exchange::ask_on(&mut stream, question).map_err(failed)
            })?;
            // The handshake belongs to the first question.
            times[0] += connected;
            Ok(times)
        }),
        Row::FastOpenWarm => in_left(&mut || {
            in_a_row(context, queries, |question| kernel::ask_by_fast_open(server, question).map_err(failed))
        }),
        Row::FastOpenCold => in_left(&mut || {
            let mut times = Vec::new();
            for _ in 0..queries {
                ip(&["tcp_metrics", "flush", "all"])?;
                times.extend(in_a_row(context, 1, |question| {
                    kernel::ask_by_fast_open(server, question).map_err(failed)
                })?);
            }
            Ok(times)
        }),
        _ => in_left(&mut || {
            in_a_row(context, queries, |question| {
                let mut stream = exchange::connect(server, kernel::ANSWER_TIMEOUT).map_err(failed)?;
                exchange::ask_on(&mut stream, question).map_err(failed)
            })
        }),
    }
}

/// Asks the question again and again, each after the last answer.
fn in_a_row(
    context: &Context,
    queries: u32,
    mut ask: impl FnMut(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Vec<f64>, String> {
    let mut times = Vec::with_capacity(queries as usize);
    for number in 0..queries {
        context.check_stop()?;
        let id = number as u16;
        let mut question = QUESTION;
        question[..2].copy_from_slice(&id.to_be_bytes());
        let start = Instant::now();
        let answer = ask(&question)?;
        times.push(start.elapsed().as_secs_f64());
        check(&answer, id)?;
    }
    Ok(times)
}
