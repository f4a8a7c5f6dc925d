//! The memory bounds of the documentation. The command that prints the figures:
//! `cargo test -p sixfold --test process memory -- --nocapture`.

use crate::client::{Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::upstream::{Behavior, Upstream};
use std::collections::HashMap;
use wire::Type;

const MIB: u64 = 1 << 20;
/// Octets of its own file that the program in packages has in memory, at least. The program that is tested has more: most of it is not
/// optimized.
const FILE: u64 = 5 * MIB;

/// The bound of `docs/how-to/size-and-tune.md` in octets, without the cache: the program, and per worker its buffers and tables: rate
/// limits, and for each pending query the query itself and, when both lookups are asked, two questions to upstreams. The 16 MiB of replies that
/// may wait in a worker are left out: here none waits.
fn bound(workers: u64, pending: u64) -> u64 {
    16 * MIB + workers * (14 * MIB + pending * 1900)
}

fn show(octets: u64) -> String {
    format!("{:.1} MiB", octets as f64 / MIB as f64)
}

/// Resident memory in octets, as a line of proc_pid_status(5) has it, with [`FILE`] for the program itself.
fn resident(server: &Daemon, line: &str) -> u64 {
    let octets =
        |line: &str| server.process.proc_status(line).trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
    octets(line) - octets("RssFile") + FILE
}

#[test]
fn resident_memory_stays_under_the_documented_bound() {
    const QUESTIONS: u32 = 20_000;
    const CONCURRENT: usize = 32;
    let upstream =
        authority::Server::start(&["127.0.0.1:0".parse().unwrap()], crate::upstream::zone(), 1).unwrap();
    // All limits have their defaults.
    let server = Setup::new(upstream.addresses()[0]).line("server.workers = 2").start();
    let at_start = resident(&server, "VmRSS");
    let client = Udp::to(server.v6());
    let mut open: HashMap<u16, u32> = HashMap::new();
    let mut asked = 0;
    while asked < QUESTIONS || !open.is_empty() {
        while asked < QUESTIONS && open.len() < CONCURRENT {
            client.send(&query(asked as u16, &name_of(asked), Type::AAAA));
            open.insert(asked as u16, asked);
            asked += 1;
        }
        let answer = client.receive();
        let number = open.remove(&answer.id).unwrap();
        assert_eq!(answer.addresses, [embedded(PREFIX, number)]);
    }
    let after = resident(&server, "VmRSS");
    let allowed = bound(2, 65_536);
    println!(
        "2 workers: {} at start, {} after {QUESTIONS} questions, bound {}",
        show(at_start),
        show(after),
        show(allowed)
    );
    assert!(at_start <= allowed && after <= allowed, "{at_start} {after} {allowed}");
}

#[test]
fn a_worker_whose_tables_are_full_stays_under_the_documented_bound() {
    // As many as a slow machine fills before the first of them end, after 30 s.
    const PENDING: u32 = 16_384;
    // Datagrams that fit into the default buffer of a socket, 208 KiB, while the server does not run: the kernel counts up to 1,280
    // octets for a small one.
    const CONCURRENT: u32 = 100;
    // The upstream answers probes, so it is alive, and nothing else.
    let upstream = Upstream::start(|name| if name.is_empty() { Behavior::Answer } else { Behavior::Ignore });
    let server = Setup::new(upstream.address)
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 8")
        .line(&format!("limits.pending = {PENDING}"))
        .line(&format!("limits.pending-per-client = {PENDING}"))
        .start();
    let at_start = resident(&server, "VmRSS");
    let client = Udp::to(server.v6());
    for first in (0..PENDING).step_by(CONCURRENT as usize) {
        let last = (first + CONCURRENT).min(PENDING);
        for number in first..last {
            client.send(&query(number as u16, &name_of(number), Type::AAAA));
        }
        let series = "queries_total{transport=\"udp\",family=\"ipv6\"}";
        wait_until("they have arrived", || server.stat(series) == f64::from(last));
    }
    assert_eq!(server.stat("pending"), f64::from(PENDING), "the table is full");
    let (peak, allowed) = (resident(&server, "VmHWM"), bound(1, PENDING.into()));
    println!(
        "1 worker, {} questions pending: {}, bound {}",
        server.stat("pending"),
        show(peak),
        show(allowed)
    );
    assert!(peak <= allowed, "{peak} {allowed}");
    // The program itself was there before.
    let (grown, allowed) = (peak - at_start, allowed - bound(0, 0));
    assert!(grown <= allowed, "{grown} {allowed}");
}
