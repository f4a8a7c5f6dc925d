//! Closed loop of dns64perf: 16 threads, each with one outstanding query, share the 256 names of an experiment; the elapsed time
//! of each experiment counts.
//!
//! Crate `load` has a closed loop, too, but reports by second, not by 256 queries.

use super::super::devices::PREFIX;
use super::super::place::Place;
use papers::mtd64::replies::wire_name;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::{Message, Section, header};

/// Threads, which is also the number of outstanding queries.
pub const THREADS: usize = 16;

/// Queries of an experiment.
pub const QUERIES: usize = 256;

/// Experiments: 256 × 256 names are 65,536.
pub const EXPERIMENTS: usize = 256;

/// Zone of the names.
pub const ZONE: &str = "dns64perf.test";

/// Time limit of a query, that of dns64perf++ (RFC 8219 section 9.2).
const TIMEOUT: Duration = Duration::from_secs(1);

/// Result of a closed loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Elapsed time of each experiment, in milliseconds.
    pub experiments_ms: Vec<f64>,
    /// Replies with the right address and no other.
    pub valid: u64,
    /// Replies with something else.
    pub invalid: u64,
    /// Queries without a reply in time.
    pub lost: u64,
}

impl Measured {
    /// Queries.
    pub fn queries(&self) -> u64 {
        self.valid + self.invalid + self.lost
    }
}

/// Counters that the threads share.
#[derive(Default)]
struct Counters {
    valid: AtomicU64,
    invalid: AtomicU64,
    lost: AtomicU64,
    /// Number of the experiment.
    experiment: AtomicUsize,
    /// Next query of the experiment.
    next: AtomicUsize,
    /// True after the last experiment.
    done: AtomicBool,
}

/// Name of a query: `010-000-b-c`, as the authority reads it.
pub fn name(experiment: usize, query: usize) -> String {
    format!("010-000-{experiment:03}-{query:03}.{ZONE}")
}

/// Address in the reply of a query.
fn expected(experiment: usize, query: usize) -> Ipv6Addr {
    let v4 = Ipv4Addr::new(10, 0, experiment as u8, query as u8);
    Ipv6Addr::from(u128::from(PREFIX.0) | u128::from(u32::from(v4)))
}

/// Runs experiments until all are done, `limit` has passed, or `stop`. The threads run on `core`; None: on any.
///
/// # Errors
///
/// The sockets cannot be opened in the place.
pub fn run(
    place: &Place,
    server: SocketAddr,
    core: Option<u16>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Measured, String> {
    let open = || {
        let open = |_| {
            let socket = UdpSocket::bind("[::1]:0")?;
            socket.connect(server)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            Ok(socket)
        };
        (0..THREADS)
            .map(open)
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| format!("sockets: {error}"))
    };
    let sockets = place.run(open)?;
    let (counters, barrier) = (Counters::default(), Barrier::new(THREADS + 1));
    let mut experiments_ms = Vec::with_capacity(EXPERIMENTS);
    thread::scope(|scope| {
        for socket in &sockets {
            scope.spawn(|| work(socket, core, &counters, &barrier));
        }
        let began = Instant::now();
        for experiment in 0..EXPERIMENTS {
            if stop.load(Ordering::Relaxed) || began.elapsed() > limit {
                break;
            }
            counters.experiment.store(experiment, Ordering::Relaxed);
            counters.next.store(0, Ordering::Relaxed);
            barrier.wait();
            let start = Instant::now();
            barrier.wait();
            experiments_ms.push(start.elapsed().as_secs_f64() * 1e3);
        }
        counters.done.store(true, Ordering::Relaxed);
        barrier.wait();
    });
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Measured {
        experiments_ms,
        valid: count(&counters.valid),
        invalid: count(&counters.invalid),
        lost: count(&counters.lost),
    })
}

/// A thread: asks its share of each experiment. The barriers order the counters.
fn work(socket: &UdpSocket, core: Option<u16>, counters: &Counters, barrier: &Barrier) {
    if let Some(core) = core {
        let mut cores = CpuSet::new();
        cores.set(usize::from(core));
        // A core that this program may not use leaves the thread on any other, which costs accuracy and no correctness.
        let _ = sched_setaffinity(None, &cores);
    }
    loop {
        barrier.wait();
        if counters.done.load(Ordering::Relaxed) {
            return;
        }
        let experiment = counters.experiment.load(Ordering::Relaxed);
        loop {
            let query = counters.next.fetch_add(1, Ordering::Relaxed);
            if query >= QUERIES {
                break;
            }
            let counter = match ask(socket, experiment, query) {
                Some(true) => &counters.valid,
                Some(false) => &counters.invalid,
                None => &counters.lost,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        barrier.wait();
    }
}

/// Asks for one name. True: the reply has the right address. None: no reply in time.
fn ask(socket: &UdpSocket, experiment: usize, query: usize) -> Option<bool> {
    // The ID tells late replies of earlier queries apart.
    let id = (experiment * QUERIES + query) as u16;
    let mut octets = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    header::set_id(&mut octets, id);
    octets.extend(wire_name(&name(experiment, query)));
    octets.extend([0, 28, 0, 1]);
    socket.send(&octets).ok()?;
    let mut buffer = [0; 1232];
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        let length = socket.recv(&mut buffer).ok()?;
        let reply = &buffer[..length];
        if length >= wire::HEADER && header::id(reply) == id {
            return Some(is_valid(reply, expected(experiment, query)));
        }
    }
    None
}

/// True if the answer is this address alone.
fn is_valid(reply: &[u8], expected: Ipv6Addr) -> bool {
    Message::parse(reply).is_ok_and(|message| {
        let addresses = message.records(Section::Answer).map(|record| record.address6());
        addresses.collect::<Vec<_>>() == [Some(expected.octets())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use papers::mtd64::replies::{Part, Reply, pointer};

    #[test]
    fn names_and_addresses_are_those_of_dns64perf() {
        assert_eq!(name(3, 7), "010-000-003-007.dns64perf.test");
        assert_eq!(expected(3, 7), "2001:db8:63a9::10.0.3.7".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn a_reply_is_valid_with_the_right_address_alone() {
        let reply = |addresses: &[Ipv6Addr]| {
            let mut reply = Reply::new(&name(3, 7), 28);
            for address in addresses {
                reply.record(Part::Answer, &pointer(12), 28, 60, &address.octets());
            }
            reply.finish()
        };
        let right = expected(3, 7);
        assert!(is_valid(&reply(&[right]), right));
        assert!(!is_valid(&reply(&[expected(3, 8)]), right));
        assert!(!is_valid(&reply(&[right, right]), right));
        assert!(!is_valid(&reply(&[]), right));
    }
}
