//! What the documentation says of memory. The command that prints the figures:
//! `cargo test -p sixfold --test process memory -- --nocapture`.

use crate::client::{Udp, embedded, name_of, question};
use crate::daemon::{Daemon, PREFIX, Setup, until};
use crate::upstream::{Conduct, Upstream};
use std::collections::HashMap;
use wire::Type;

const MIB: u64 = 1 << 20;

/// The bound of `docs/operating.md` in octets, without the cache: the program, and per worker its buffers and its tables: rate
/// limits, and for each pending question itself and, when both legs are asked, two questions to upstreams.
fn bound(workers: u64, pending: u64) -> u64 {
    16 * MIB + workers * (14 * MIB + pending * 1800)
}

fn show(octets: u64) -> String {
    format!("{:.1} MiB", octets as f64 / MIB as f64)
}

fn resident(server: &Daemon, line: &str) -> u64 {
    server.process.proc_status(line).trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn resident_memory_stays_under_the_documented_bound() {
    const QUESTIONS: u32 = 20_000;
    const AT_A_TIME: usize = 32;
    let upstream =
        authority::Server::start(&["127.0.0.1:0".parse().unwrap()], crate::upstream::zone(), 1).unwrap();
    // All limits are the defaults.
    let server = Setup::new(upstream.addresses()[0]).line("server.workers = 2").start();
    let at_start = resident(&server, "VmRSS");
    let client = Udp::to(server.v6());
    let mut open: HashMap<u16, u32> = HashMap::new();
    let mut asked = 0;
    while asked < QUESTIONS || !open.is_empty() {
        while asked < QUESTIONS && open.len() < AT_A_TIME {
            client.send(&question(asked as u16, &name_of(asked), Type::AAAA));
            open.insert(asked as u16, asked);
            asked += 1;
        }
        let reply = client.receive();
        let number = open.remove(&reply.id).unwrap();
        assert_eq!(reply.addresses, [embedded(PREFIX, number)]);
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
    server.process.stop();
}

#[test]
fn a_worker_whose_tables_are_full_stays_under_the_documented_bound() {
    const PENDING: u32 = 65_536;
    // What a socket takes that has the kernel's usual buffer.
    const AT_A_TIME: u32 = 200;
    // It lives, as it says when it is probed, and answers nothing else.
    let upstream = Upstream::start(|name| if name.is_empty() { Conduct::Answer } else { Conduct::Ignore });
    let server = Setup::new(upstream.address)
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 8")
        .line("limits.pending-per-client = 65536")
        .start();
    let client = Udp::to(server.v6());
    for first in (0..PENDING).step_by(AT_A_TIME as usize) {
        let last = (first + AT_A_TIME).min(PENDING);
        for number in first..last {
            client.send(&question(number as u16, &name_of(number), Type::AAAA));
        }
        let series = "queries_total{transport=\"udp\",family=\"ipv6\"}";
        until("they have arrived", || server.stat(series) == f64::from(last));
    }
    assert_eq!(server.stat("pending"), f64::from(PENDING), "the table is full");
    let (peak, allowed) = (resident(&server, "VmHWM"), bound(1, 65_536));
    println!(
        "1 worker, {} questions pending: {}, bound {}",
        server.stat("pending"),
        show(peak),
        show(allowed)
    );
    assert!(peak <= allowed, "{peak} {allowed}");
}
