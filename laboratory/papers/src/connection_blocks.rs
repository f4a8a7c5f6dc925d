//! Connection blocks of one host over time (the paper's Figure 5): clients and a server on the loopback interface share the
//! host's table of connection blocks, and TIME-WAIT decides how long a block is used.
//!
//! One [`Stack`] with two addresses talks with itself. The server is one processor that takes [`Plan::service`] for each
//! query, so the rate is at most its inverse. The client sends its FIN first, with its query, so TIME-WAIT is at
//! the client's end.

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use ttcp::{Connection, Event, Refusal, Settings, Stack, State};

/// Addresses of the clients and of the server, both of the one host.
const ADDRESSES: [[u8; 4]; 2] = [[198, 18, 0, 1], [198, 18, 0, 2]];

/// Port of the server.
const PORT: u16 = 53;

/// Way of a packet through the loopback interface: half of 0.04 ms, the paper's round trip.
const LOOPBACK: Duration = Duration::from_micros(20);

/// Octets of the query `NS .` over TCP: 2 of length, 12 of header, 5 of question.
const QUERY: [u8; 19] = [0; 19];

/// Octets of an answer with the 13 name servers of the root, about.
const ANSWER: [u8; 230] = [0; 230];

/// Most turns of one run: some 20 for each of a million queries.
const TURNS: u64 = 20_000_000;

/// The client's way out where the host has no connection block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It asks again after this time.
    Wait(Duration),
    /// The query has failed; the next one follows after this time.
    Fail(Duration),
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Settings of the host: T/TCP or not, number of blocks, MSL, shortest retransmission timer.
    pub settings: Settings,
    /// Clients, each with one query at a time.
    pub clients: usize,
    /// Queries of each client.
    pub queries: u64,
    /// Time of the server for one query.
    pub service: Duration,
    /// The way out of a full table.
    pub when_full: WhenFull,
    /// Time between two samples.
    pub every: Duration,
    /// End of the experiment, at the latest; the end otherwise is the empty table after the last query.
    pub end: Duration,
}

/// The table at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time since the start.
    pub at: Duration,
    /// Blocks in use.
    pub blocks: usize,
    /// Of them in TIME-WAIT.
    pub time_wait: usize,
    /// Queries that were answered so far.
    pub answered: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// Queries that were answered.
    pub answered: u64,
    /// Queries that failed.
    pub failed: u64,
    /// Calls that found no block.
    pub refused: u64,
    /// Most blocks in use, and the time at which they first were.
    pub peak: (usize, Duration),
    /// Time of the last answer.
    pub last_answer: Duration,
    /// First time after the last answer with at most a tenth of all blocks in use.
    pub tenth: Option<Duration>,
    /// First time after the last answer with no block in use.
    pub empty: Option<Duration>,
}

impl Outcome {
    /// Time from the last answer to the empty table.
    pub fn drain(&self) -> Option<Duration> {
        self.empty.map(|empty| empty - self.last_answer)
    }

    /// Rate at which the table was filled: answers until the time of the peak, for each second.
    pub fn fill_rate(&self) -> f64 {
        let (at, answered) = self
            .samples
            .iter()
            .take_while(|sample| sample.at <= self.peak.1)
            .last()
            .map_or((0.0, 0), |sample| (sample.at.as_secs_f64(), sample.answered));
        if at > 0.0 { answered as f64 / at } else { 0.0 }
    }

    /// Answers for each second between two times.
    pub fn rate(&self, from: Duration, to: Duration) -> f64 {
        let answered = |time: Duration| {
            let before = self.samples.iter().take_while(|sample| sample.at <= time).last();
            before.map_or(0, |sample| sample.answered)
        };
        (answered(to) - answered(from)) as f64 / (to - from).as_secs_f64()
    }
}

/// One client.
#[derive(Clone, Copy, Debug)]
struct Client {
    left: u64,
    /// Time of the next query; none while one is open.
    ready: Option<Duration>,
}

/// The host, its clients and its server.
struct Run<'a> {
    plan: &'a Plan,
    now: Duration,
    stack: Stack,
    /// Packets on the loopback interface, in order.
    line: VecDeque<(Duration, Vec<u8>)>,
    clients: Vec<Client>,
    by_connection: HashMap<Connection, usize>,
    /// Answers that the server is about to give, in order.
    jobs: VecDeque<(Duration, Connection)>,
    next_sample: Duration,
    outcome: Outcome,
}

/// Runs an experiment.
pub fn run(plan: &Plan, seed: u64) -> Outcome {
    let addresses = ADDRESSES.map(IpAddr::from);
    let mut stack = Stack::new(&addresses, plan.settings.clone(), seed).expect("addresses for benchmarks");
    stack.listen(PORT, ttcp::Listen::default()).expect("a free port");
    let client = Client { left: plan.queries, ready: (plan.queries > 0).then_some(Duration::ZERO) };
    let mut run = Run {
        plan,
        now: Duration::ZERO,
        stack,
        line: VecDeque::new(),
        clients: vec![client; plan.clients],
        by_connection: HashMap::new(),
        jobs: VecDeque::new(),
        next_sample: Duration::ZERO,
        outcome: Outcome::default(),
    };
    for _ in 0..TURNS {
        if !run.turn() {
            return run.outcome;
        }
    }
    panic!("the host rests after {TURNS} turns");
}

impl Run<'_> {
    /// Does what is due, and goes on to the next time at which anything is. Returns false at the end.
    fn turn(&mut self) -> bool {
        while let Some((_, packet)) = self.line.pop_front_if(|(due, _)| *due <= self.now) {
            self.stack.on_packet(self.now, &packet);
        }
        self.stack.on_time(self.now);
        while let Some((_, connection)) = self.jobs.pop_front_if(|(due, _)| *due <= self.now) {
            // A client that has given up takes no answer.
            let _ = self.stack.send_and_finish(self.now, connection, &ANSWER);
        }
        while let Some(event) = self.stack.next_event() {
            self.on_event(event);
        }
        self.ask();
        self.observe();
        let next = [
            self.stack.next_deadline(),
            self.line.front().map(|(due, _)| *due),
            self.jobs.front().map(|(due, _)| *due),
            self.clients.iter().filter_map(|client| client.ready).min(),
        ];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.now = next.min(self.next_sample);
        self.now <= self.plan.end
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Finished(connection) => match self.by_connection.remove(&connection) {
                Some(client) => {
                    self.outcome.answered += 1;
                    self.outcome.last_answer = self.now;
                    self.go_on(client, Duration::ZERO);
                }
                None => {
                    let free = self.jobs.back().map_or(self.now, |(due, _)| (*due).max(self.now));
                    self.jobs.push_back((free + self.plan.service, connection));
                }
            },
            Event::Failed(connection, _) => {
                if let Some(client) = self.by_connection.remove(&connection) {
                    self.outcome.failed += 1;
                    self.go_on(client, Duration::ZERO);
                }
            }
            _ => {}
        }
    }

    /// The query of a client is over.
    fn go_on(&mut self, client: usize, pause: Duration) {
        let now = self.now;
        let client = &mut self.clients[client];
        client.left -= 1;
        client.ready = (client.left > 0).then_some(now + pause);
    }

    /// Sends the queries that are due, and puts all packets on the line.
    fn ask(&mut self) {
        let server = SocketAddr::from((ADDRESSES[1], PORT));
        for number in 0..self.clients.len() {
            if self.clients[number].ready.is_none_or(|ready| ready > self.now) {
                continue;
            }
            match self.stack.transact(self.now, server, &QUERY) {
                Ok(connection) => {
                    self.clients[number].ready = None;
                    self.by_connection.insert(connection, number);
                }
                Err(Refusal::NoBlock | Refusal::NoPort) => {
                    self.outcome.refused += 1;
                    match self.plan.when_full {
                        WhenFull::Wait(time) => self.clients[number].ready = Some(self.now + time),
                        WhenFull::Fail(time) => {
                            self.outcome.failed += 1;
                            self.go_on(number, time);
                        }
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        while let Some(packet) = self.stack.next_packet() {
            self.line.push_back((self.now + LOOPBACK, packet));
        }
    }

    /// Notes the table, at the times of samples and at its extremes.
    fn observe(&mut self) {
        let blocks = self.stack.blocks_in_use();
        let is_over =
            self.clients.iter().all(|client| client.ready.is_none()) && self.by_connection.is_empty();
        if blocks > self.outcome.peak.0 {
            self.outcome.peak = (blocks, self.now);
        }
        if is_over && blocks * 10 <= self.plan.settings.blocks {
            self.outcome.tenth.get_or_insert(self.now);
        }
        if is_over && blocks == 0 {
            self.outcome.empty.get_or_insert(self.now);
        }
        if self.now >= self.next_sample {
            let time_wait = self.stack.blocks().get(&State::TimeWait).copied().unwrap_or(0);
            let (at, answered) = (self.now, self.outcome.answered);
            self.outcome.samples.push(Sample { at, blocks, time_wait, answered });
            self.next_sample = self.now + self.plan.every;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(transactions: bool) -> Plan {
        Plan {
            settings: Settings { transactions, blocks: 800, ..Settings::default() },
            clients: 10,
            queries: 100,
            service: Duration::from_secs(1) / 1900,
            when_full: WhenFull::Wait(Duration::from_millis(10)),
            every: Duration::from_millis(100),
            end: Duration::from_secs(1000),
        }
    }

    #[test]
    fn a_block_is_used_for_two_segment_lifetimes_or_for_eight_timers() {
        for (transactions, wait_s) in [(false, 60.0), (true, 8.0)] {
            let outcome = run(&plan(transactions), 1);
            assert_eq!((outcome.answered, outcome.failed), (1000, 0), "{transactions}");
            // The table is full: every block is in use, and calls find none.
            assert_eq!(outcome.peak.0, 800);
            assert!(outcome.refused > 0);
            // The last block was taken at most one service time of all clients before the last answer.
            let drain = outcome.drain().expect("an empty table").as_secs_f64();
            assert!((drain - wait_s).abs() < 0.01, "{drain}");
            assert!((outcome.fill_rate() - 1900.0).abs() < 100.0, "{}", outcome.fill_rate());
        }
    }

    #[test]
    fn a_client_that_gives_up_loses_the_queries_that_find_no_block() {
        let plan = Plan { when_full: WhenFull::Fail(Duration::from_millis(1)), ..plan(false) };
        let outcome = run(&plan, 1);
        assert_eq!(outcome.answered + outcome.failed, 1000);
        assert!(outcome.failed > 150, "{}", outcome.failed);
    }
}
