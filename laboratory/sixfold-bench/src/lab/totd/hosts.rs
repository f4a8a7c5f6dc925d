//! The paper's clients with sockets: each has 4 loops that resolve one name after the other, as `host` does.

use super::message;
use crate::exchange;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Parallel loops of a client, and names of a loop in one experiment (paper, section 3).
pub(super) const LOOPS: usize = 4;

/// Names of a loop in one experiment.
pub(super) const CALLS: usize = 64;

/// Tries for a name: `host` repeats a query once.
const TRIES: u32 = 2;

/// Most experiments of a client: a client has 65,536 names (paper, section 3), 256 an experiment.
pub(super) const EXPERIMENTS: usize = 256;

/// Distance of the IDs of two clients for names with one number: 10 clients share 65,536 IDs. The clients run in step. If two
/// queries had one ID, and the second one by chance the port of the first, the forwarder's table would take it for a duplicate.
const ID_DISTANCE: usize = 6553;

/// A load of clients.
#[derive(Clone, Debug)]
pub(super) struct HostLoad {
    /// The server.
    pub server: SocketAddr,
    /// Number of clients, 1 to 10; client i asks for names of 10.i.0.0/16.
    pub clients: usize,
    /// Experiments of each client, at most [`EXPERIMENTS`].
    pub experiments: usize,
    /// Number of the first experiment, so that loads in turn ask for other names.
    pub first: usize,
    /// Time after which no experiment begins.
    pub limit: Duration,
    /// Time that `host` waits for an answer (its default: 5 s).
    pub timeout: Duration,
    /// Zone in wire form.
    pub zone: Vec<u8>,
}

/// Result of a load.
#[derive(Clone, Debug, Default)]
pub(super) struct HostOutcome {
    /// Names with the right answer.
    pub answered: u64,
    /// Names without the right answer in all tries.
    pub failed: u64,
    /// Answers that were wrong.
    pub wrong: u64,
    /// Duration, in seconds.
    pub seconds: f64,
    /// Durations of the experiments, in seconds.
    pub experiments_s: Vec<f64>,
    /// Longest time without a right answer to any client, in seconds.
    pub gap_s: f64,
}

impl HostOutcome {
    /// Requests per second.
    pub fn rate(&self) -> f64 {
        (self.answered + self.failed) as f64 / self.seconds.max(1e-9)
    }

    /// Longest experiment, in seconds.
    pub fn longest_s(&self) -> f64 {
        self.experiments_s.iter().copied().fold(0.0, f64::max)
    }
}

/// State of a load that all loops share.
struct Shared<'a> {
    load: &'a HostLoad,
    stop: &'a AtomicBool,
    began: Instant,
    answered: AtomicU64,
    failed: AtomicU64,
    wrong: AtomicU64,
    /// Time of the last right answer and the longest time between two, in nanoseconds.
    last_ns: AtomicU64,
    gap_ns: AtomicU64,
    experiments_s: Mutex<Vec<f64>>,
}

/// Runs a load. `stop` ends it after the current experiments.
pub(super) fn run(load: &HostLoad, stop: &AtomicBool) -> HostOutcome {
    let shared = Shared {
        load,
        stop,
        began: Instant::now(),
        answered: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        wrong: AtomicU64::new(0),
        last_ns: AtomicU64::new(0),
        gap_ns: AtomicU64::new(0),
        experiments_s: Mutex::new(Vec::new()),
    };
    let clients: Vec<Client> = (0..load.clients).map(|number| Client::new(number, &shared)).collect();
    thread::scope(|scope| {
        for client in &clients {
            for number in 0..LOOPS {
                scope.spawn(move || client.run_loop(number));
            }
        }
    });
    let seconds = shared.began.elapsed().as_secs_f64();
    HostOutcome {
        answered: shared.answered.load(Ordering::Relaxed),
        failed: shared.failed.load(Ordering::Relaxed),
        wrong: shared.wrong.load(Ordering::Relaxed),
        seconds,
        gap_s: shared.gap_ns.load(Ordering::Relaxed) as f64 / 1e9,
        experiments_s: shared.experiments_s.into_inner().unwrap_or_else(PoisonError::into_inner),
    }
}

/// A client: its loops begin and end an experiment together.
struct Client<'a> {
    number: usize,
    shared: &'a Shared<'a>,
    barrier: Barrier,
    is_over: AtomicBool,
    /// Start of the experiment.
    began: Mutex<Instant>,
}

impl<'a> Client<'a> {
    fn new(number: usize, shared: &'a Shared<'a>) -> Client<'a> {
        let (barrier, is_over) = (Barrier::new(LOOPS), AtomicBool::new(false));
        Client { number, shared, barrier, is_over, began: Mutex::new(shared.began) }
    }

    fn run_loop(&self, number: usize) {
        let load = self.shared.load;
        for experiment in load.first..(load.first + load.experiments).min(EXPERIMENTS) {
            for call in 0..CALLS {
                let name = (experiment * LOOPS + number) * CALLS + call;
                let address = [10, self.number as u8, (name >> 8) as u8, name as u8];
                self.resolve(address, (name + self.number * ID_DISTANCE) as u16);
            }
            if self.barrier.wait().is_leader() {
                self.end_experiment();
            }
            self.barrier.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// One loop notes the duration, and whether another experiment follows.
    fn end_experiment(&self) {
        let now = Instant::now();
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = now.duration_since(*began).as_secs_f64();
        *began = now;
        let shared = self.shared;
        shared.experiments_s.lock().unwrap_or_else(PoisonError::into_inner).push(seconds);
        let is_over = shared.began.elapsed() > shared.load.limit || shared.stop.load(Ordering::Relaxed);
        self.is_over.store(is_over, Ordering::Relaxed);
    }

    fn resolve(&self, address: [u8; 4], id: u16) {
        let shared = self.shared;
        for number in 0..TRIES {
            // A process of `host` takes another ID for its repetition, too.
            let query = message::query(id ^ (number as u16) << 15, address, &shared.load.zone);
            if self.ask(&query, address).unwrap_or(false) {
                shared.answered.fetch_add(1, Ordering::Relaxed);
                let now_ns = shared.began.elapsed().as_nanos() as u64;
                let last_ns = shared.last_ns.fetch_max(now_ns, Ordering::Relaxed);
                shared.gap_ns.fetch_max(now_ns.saturating_sub(last_ns), Ordering::Relaxed);
                return;
            }
        }
        shared.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a query from a new port and waits for the right answer.
    fn ask(&self, query: &[u8], address: [u8; 4]) -> std::io::Result<bool> {
        let load = self.shared.load;
        let reply = exchange::ask(&exchange::socket_to(load.server)?, query, load.timeout, |reply| {
            let is_right = message::is_right(reply, query, address);
            self.shared.wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
            is_right
        });
        Ok(reply?.is_some())
    }
}
