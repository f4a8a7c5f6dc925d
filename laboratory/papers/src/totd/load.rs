//! The paper's load test in virtual time: clients that resolve names by `host`, a server with one slow processor, an
//! upstream that always answers.
//!
//! Each client runs experiments of 256 resolutions: 4 parallel loops of 64 calls of `host -t AAAA`, and the next experiment
//! begins when all loops have ended. A call takes the time to start a process, sends its query from a new port, waits 5 s,
//! repeats it once, and waits 5 s again. The server handles one message after the other, each in the same time. The two free
//! times are fitted to Table II with 1 and with 10 clients ([`FITTED`]): 494 and 1,010 requests/s. Other numbers of clients are predictions.

use super::duplicates::Source;
use super::forwarder::{Action, Counters, Forwarder, Kind, Settings};
use super::ids::{Ids, Scheme};
use super::limits;
use core::time::Duration;
use splitmix::SplitMix64;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parallel loops of a client (paper, section 3).
pub const LOOPS: usize = 4;

/// Calls of a loop in one experiment (paper, section 3).
pub const CALLS: u32 = 64;

/// Numbers of clients whose rates of Table II the two free times are fitted to.
pub const FITTED: [usize; 2] = [1, 10];

/// Time of the server for one message: with 10 clients it is always busy, and has 1,010 resolutions/s of 3 incoming messages each.
const SERVICE_NS: u64 = 1_000_000_000 / 3030;

/// Mean time of a client between two queries of a loop: start and end of `host`. With the waiting of one client for the server
/// a loop then takes 4/494 s a call.
const CALL_NS: u64 = 5_616_000;

/// One-way delay between client and server.
const CLIENT_DELAY_NS: u64 = 100_000;

/// Time until the upstream's reply is back.
const UPSTREAM_NS: u64 = 500_000;

/// Time that `host` waits for an answer, and its number of tries.
const HOST_NS: u64 = 5_000_000_000;

/// Tries of `host`.
const HOST_TRIES: u8 = 2;

/// Upstreams of the forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstreams {
    /// One.
    One,
    /// Two with different addresses.
    Two,
    /// Two entries with one address: the upstream is listed twice.
    SameTwice,
}

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Number of clients.
    pub clients: usize,
    /// Experiments of each client.
    pub experiments: u32,
    /// Way of making IDs.
    pub scheme: Scheme,
    /// Value of the counter at the start; 0: a random one for sequential IDs.
    pub counter: u16,
    /// Time at the start, in nanoseconds since 1970.
    pub clock_ns: u64,
    /// Upstreams.
    pub upstreams: Upstreams,
    /// False: without the table of duplicates, which TOTD has.
    pub duplicates: bool,
    /// Seed of the clients' ports, IDs and times.
    pub seed: u64,
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Resolutions with the right answer.
    pub answered: u64,
    /// Resolutions that failed: no answer in both tries.
    pub failed: u64,
    /// Answers that belonged to another name. `host` ignores them.
    pub wrong: u64,
    /// Duration, in seconds.
    pub seconds: f64,
    /// Time of the server's processor in use, in seconds.
    pub busy_s: f64,
    /// Duration of each experiment, in seconds.
    pub experiments_s: Vec<f64>,
    /// Longest time without a right answer to any client, in seconds.
    pub gap_s: f64,
    /// Values that a sequential counter took at random.
    pub restarts: u64,
    /// Counters of the forwarder.
    pub counters: Counters,
}

impl Outcome {
    /// Requests per second.
    pub fn rate(&self) -> f64 {
        (self.answered + self.failed) as f64 / self.seconds
    }

    /// Longest duration of an experiment, in seconds.
    pub fn longest_s(&self) -> f64 {
        self.experiments_s.iter().copied().fold(0.0, f64::max)
    }
}

/// A try of a call: loop and number of the try, unique in the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Try {
    loop_number: u32,
    number: u32,
}

/// A message to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ToServer {
    Query(Try),
    Reply { upstream: usize, id: u16, asked_by: Try, has_answer: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A loop starts a call, or repeats its query.
    Send(Try),
    /// A message reaches the server's queue.
    Arrival(ToServer),
    /// The server has handled a message.
    Handled(ToServer),
    /// An answer reaches a client: the try that it is sent to, and the one whose name it is about.
    Answer(Try, Try),
    /// A try has waited long enough.
    Over(Try),
}

/// A loop of `host` calls.
#[derive(Clone, Copy, Debug, Default)]
struct Loop {
    /// Number of the newest try.
    newest: u32,
    /// Tries of this call.
    tries: u8,
    /// Calls that are left in this experiment.
    left: u32,
}

/// A client.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    began_ns: u64,
    experiments: u32,
    ended_loops: usize,
}

struct Run {
    forwarder: Forwarder<Try, Try>,
    sources: Vec<Source>,
    clock_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    now_ns: u64,
    /// Time at which the server has handled all that waits.
    free_ns: u64,
    last_answer_ns: u64,
    loops: Vec<Loop>,
    clients: Vec<Client>,
    random: SplitMix64,
    experiments: u32,
    outcome: Outcome,
}

/// Runs the load.
pub fn run(parameters: &Parameters) -> Outcome {
    let mut run = Run::new(parameters);
    for client in 0..parameters.clients {
        run.start_experiment(client);
    }
    for _ in 0..limits::EVENTS {
        let deadline = run.forwarder.next_deadline().map(|due| due.as_nanos() as u64);
        let next = run.events.peek().map(|Reverse((at, ..))| *at);
        match (next, deadline) {
            (None, _) => return run.finish(),
            (Some(at), Some(due)) if due < at => {
                run.now_ns = due;
                let second = run.second();
                run.forwarder.on_time(Duration::from_nanos(due), second);
                run.send_actions();
            }
            (Some(_), _) => run.step(),
        }
    }
    panic!("the load ends within {} events", limits::EVENTS);
}

impl Run {
    fn new(parameters: &Parameters) -> Run {
        let (one, two) = (Source::new([10, 0, 0, 53], 53), Source::new([10, 0, 0, 54], 53));
        let sources = match parameters.upstreams {
            Upstreams::One => vec![one],
            Upstreams::Two => vec![one, two],
            Upstreams::SameTwice => vec![one, one],
        };
        let settings = Settings::new(sources.clone(), Ids::new(parameters.scheme, parameters.counter));
        let lifetime = if parameters.duplicates { settings.lifetime } else { Duration::ZERO };
        Run {
            forwarder: Forwarder::new(Settings { lifetime, ..settings }),
            sources,
            clock_ns: parameters.clock_ns,
            events: BinaryHeap::new(),
            sequence: 0,
            now_ns: 0,
            free_ns: 0,
            last_answer_ns: 0,
            loops: vec![Loop::default(); parameters.clients * LOOPS],
            clients: vec![Client::default(); parameters.clients],
            random: SplitMix64::new(parameters.seed),
            experiments: parameters.experiments,
            outcome: Outcome::default(),
        }
    }

    fn second(&self) -> u32 {
        ((self.clock_ns + self.now_ns) / 1_000_000_000) as u32
    }

    fn schedule(&mut self, after_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now_ns + after_ns, self.sequence, event)));
    }

    fn step(&mut self) {
        let Some(Reverse((at, _, event))) = self.events.pop() else { return };
        self.now_ns = at;
        match event {
            Event::Send(this) => {
                self.schedule(CLIENT_DELAY_NS, Event::Arrival(ToServer::Query(this)));
                self.schedule(HOST_NS, Event::Over(this));
            }
            Event::Arrival(message) => {
                self.free_ns = self.free_ns.max(at) + SERVICE_NS;
                self.outcome.busy_s += SERVICE_NS as f64 / 1e9;
                self.schedule(self.free_ns - at, Event::Handled(message));
            }
            Event::Handled(message) => self.handle(message),
            Event::Answer(this, about) => self.take_answer(this, about),
            Event::Over(this) => self.give_up(this),
        }
    }

    /// The server handles a message.
    fn handle(&mut self, message: ToServer) {
        let (now, second) = (Duration::from_nanos(self.now_ns), self.second());
        match message {
            ToServer::Query(this) => {
                // A new port and a new ID for every try.
                let random = self.random.bits();
                let client = this.loop_number as usize / LOOPS;
                let source = Source::new([10, 0, 1, client as u8], 0x8000 | random as u16);
                self.forwarder.on_query(now, second, source, (random >> 16) as u16, this);
            }
            ToServer::Reply { upstream, id, asked_by, has_answer } => {
                let source = self.sources[upstream];
                self.forwarder.on_reply(now, second, source, id, has_answer, asked_by);
            }
        }
        self.send_actions();
    }

    fn send_actions(&mut self) {
        while let Some(action) = self.forwarder.actions.pop_front() {
            match action {
                Action::Ask { upstream, id, kind, client } => {
                    let has_answer = kind == Kind::A;
                    let reply = ToServer::Reply { upstream, id, asked_by: client, has_answer };
                    self.schedule(UPSTREAM_NS, Event::Arrival(reply));
                }
                Action::Answer { client, reply, .. } => {
                    self.schedule(CLIENT_DELAY_NS, Event::Answer(client, reply));
                }
            }
        }
    }

    fn take_answer(&mut self, this: Try, about: Try) {
        if this.number != self.loops[this.loop_number as usize].newest {
            return;
        }
        if about.loop_number != this.loop_number {
            self.outcome.wrong += 1;
            return;
        }
        self.outcome.answered += 1;
        let gap_s = (self.now_ns - self.last_answer_ns) as f64 / 1e9;
        self.outcome.gap_s = self.outcome.gap_s.max(gap_s);
        self.last_answer_ns = self.now_ns;
        self.end_call(this.loop_number);
    }

    fn give_up(&mut self, this: Try) {
        let state = &mut self.loops[this.loop_number as usize];
        if this.number != state.newest {
            return;
        }
        if state.tries < HOST_TRIES {
            state.tries += 1;
            state.newest += 1;
            let number = state.newest;
            self.schedule(0, Event::Send(Try { number, ..this }));
        } else {
            self.outcome.failed += 1;
            self.end_call(this.loop_number);
        }
    }

    /// A loop's call has ended: the next one, or the end of the loop.
    fn end_call(&mut self, loop_number: u32) {
        let state = &mut self.loops[loop_number as usize];
        // A later answer or timeout belongs to no try any more.
        state.newest += 1;
        state.left -= 1;
        if state.left > 0 {
            self.start_call(loop_number);
            return;
        }
        let client = loop_number as usize / LOOPS;
        self.clients[client].ended_loops += 1;
        if self.clients[client].ended_loops == LOOPS {
            let seconds = (self.now_ns - self.clients[client].began_ns) as f64 / 1e9;
            self.outcome.experiments_s.push(seconds);
            self.start_experiment(client);
        }
    }

    fn start_call(&mut self, loop_number: u32) {
        let state = &mut self.loops[loop_number as usize];
        state.tries = 1;
        state.newest += 1;
        let this = Try { loop_number, number: state.newest };
        // Uniform within 20 % of the mean, so that clients do not stay in step.
        let part = 0.8 + 0.4 * self.random.unit();
        self.schedule((CALL_NS as f64 * part) as u64, Event::Send(this));
    }

    fn start_experiment(&mut self, client: usize) {
        let state = &mut self.clients[client];
        if state.experiments == self.experiments {
            return;
        }
        *state = Client { began_ns: self.now_ns, experiments: state.experiments + 1, ended_loops: 0 };
        for loop_number in client * LOOPS..(client + 1) * LOOPS {
            self.loops[loop_number].left = CALLS;
            self.start_call(loop_number as u32);
        }
    }

    fn finish(mut self) -> Outcome {
        // The last event may be the end of a timeout that no longer counts, so the last answer ends the run.
        self.outcome.seconds = self.last_answer_ns as f64 / 1e9;
        self.outcome.restarts = self.forwarder.restarts();
        self.outcome.counters = self.forwarder.counters;
        self.outcome
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
