//! A load of two kinds of clients at once, in phases without a gap: the crowd, one network that sends at its configured
//! rate, and others, each a network of its own, that send a query now and then. An answer counts for the phase in which
//! it arrived; the fate of a query counts for the phase in which it was sent.
//!
//! As with [`Tester`](crate::perf::tester::Tester), client and authoritative server are in one thread. A query is
//! identified by its source port and its ID, so the last two million queries can be distinguished, whatever their names
//! are.

use crate::perf::client::Client;
use crate::perf::device::Running;
use crate::perf::limits;
use crate::perf::names::{self, QUERY};
use crate::perf::tester::Pace;
use crate::sockets;
use authority::{Faults, PolledServer, Settings, Zone};
use measure::statistics::{percentile, sorted};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Number of IDs of one port at most.
const IDS: usize = 1 << 16;

/// First of the repeated names, in the order of addresses: 102.0.0.0.
const POPULAR: u64 = 101 << 24;

/// First of the names that the authoritative server never answers, 111.0.0.0, and the begin of all of them.
const SILENT: u64 = 110 << 24;
const SILENT_START: &str = "111-";

/// First of the names that are used once, by the crowd and by others.
const FRESH: u64 = 60 << 24;
const FRESH_OTHERS: u64 = 80 << 24;

/// Kinds of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// A few names, repeated: the answers come from the cache.
    Cached,
    /// Every second query is for a new name.
    HalfMisses,
    /// New names.
    Misses,
    /// New names for which the upstream sends no reply.
    Silent,
}

impl QueryKind {
    /// The name of a query.
    fn name(self, number: u64, fresh: u64) -> u64 {
        match self {
            QueryKind::Silent => SILENT + number % (1 << 24),
            QueryKind::Misses => fresh + number,
            QueryKind::HalfMisses if number % 2 == 1 => fresh + number,
            // Fibonacci hashing: neighbours ask for different names.
            _ => {
                POPULAR + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % u64::from(limits::CACHED_NAMES)
            }
        }
    }
}

/// A phase of the load.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Duration.
    pub length: Duration,
    /// Rate of the crowd.
    pub crowd: Pace,
    /// Kind of the crowd's queries.
    pub ask: QueryKind,
    /// Queries of the crowd that leave one port together, at most [`limits::SEGMENTS`].
    pub group: u64,
    /// Queries a second of all others together. Every second one is for a new name, unless the crowd asks only for
    /// cached names.
    pub others: f64,
}

/// Counts of one kind of client in one phase.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Queries sent in the phase.
    pub sent: u64,
    /// Number of them that got a right answer in time.
    pub useful: u64,
    /// Right answers in time that arrived in the phase.
    pub came: u64,
    /// Right answers that arrived too late.
    pub late: u64,
    /// Other answers: REFUSED, SERVFAIL and the like.
    pub wrong: u64,
    /// Delays of the useful answers to queries of the phase, in microseconds.
    pub delays_us: Vec<u32>,
}

impl Tally {
    /// Share of the queries that got a right answer in time.
    pub fn kept(&self) -> f64 {
        self.useful as f64 / self.sent as f64
    }

    /// The 99th percentile of the delays, in milliseconds.
    pub fn p99_ms(&self) -> f64 {
        let delays_ms: Vec<f64> = self.delays_us.iter().map(|delay| f64::from(*delay) / 1e3).collect();
        percentile(&sorted(&delays_ms), 99.0).unwrap_or(f64::NAN)
    }
}

/// Result of one phase.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Duration, in seconds.
    pub seconds: f64,
    /// CPU time of the device, in seconds.
    pub cpu: f64,
    /// Time in turns of the tester's loop beyond [`limits::LATE_TURN`], in seconds. Queries to the authoritative server wait then.
    pub behind: f64,
    /// The one network.
    pub crowd: Tally,
    /// All other clients.
    pub others: Tally,
}

impl Report {
    /// Share of the time in which the tester was behind.
    pub fn behind(&self) -> f64 {
        self.behind / self.seconds
    }

    /// Right answers in time per second.
    pub fn goodput(&self) -> f64 {
        (self.crowd.came + self.others.came) as f64 / self.seconds
    }

    /// CPU time per right answer in time, in microseconds.
    pub fn cost_us(&self) -> f64 {
        self.cpu * 1e6 / (self.crowd.came + self.others.came) as f64
    }

    /// Queries per second.
    pub fn offered(&self) -> f64 {
        (self.crowd.sent + self.others.sent) as f64 / self.seconds
    }

    fn crowd(&mut self) -> &mut Tally {
        &mut self.crowd
    }

    fn others(&mut self) -> &mut Tally {
        &mut self.others
    }
}

/// An outstanding query.
#[derive(Clone, Copy, Default)]
struct OutstandingQuery {
    /// Time at which it was sent, in nanoseconds; 0 if it is answered or there is none.
    sent: u64,
    name: u32,
    phase: u32,
}

/// One kind of client.
struct ClientGroup {
    client: Client,
    tally: fn(&mut Report) -> &mut Tally,
    /// Number of queries that each port has sent, and the latest of them by their IDs, of which each port has `ids`.
    counts: Vec<u64>,
    ids: usize,
    open: Vec<OutstandingQuery>,
    /// First of its names that are used once.
    fresh: u64,
    issued: u64,
    /// Messages that have arrived. The same number of queries of earlier runs is over.
    received: u64,
}

impl ClientGroup {
    fn new(
        server: SocketAddr,
        sources: &[IpAddr],
        (fresh, asked): (u64, u64),
        tally: fn(&mut Report) -> &mut Tally,
    ) -> io::Result<ClientGroup> {
        let ids = (limits::DISTINCT_QUERIES / sources.len().max(1)).clamp(1, IDS);
        Ok(ClientGroup {
            ids,
            client: Client::bound(server, sources)?,
            tally,
            counts: vec![0; sources.len()],
            open: vec![OutstandingQuery::default(); sources.len() * ids],
            fresh,
            issued: asked,
            received: asked,
        })
    }

    /// Sends this number of queries, `group` at a time from one port.
    fn send(
        &mut self,
        due: u64,
        group: u64,
        ask: QueryKind,
        (now, phase): (u64, usize),
        reports: &mut [Report],
    ) {
        let ClientGroup { client, counts, ids, open, fresh, issued, .. } = self;
        let end = *issued + due;
        while *issued < end {
            let next = end.min(*issued + group);
            let port = client.next_port();
            // A datagram that could not be sent stays unanswered and counts as lost.
            let count = std::cell::Cell::new(counts[port]);
            let open = std::cell::RefCell::new(&mut *open);
            client.send_written(*issued..next, |number, question| {
                let name = ask.name(number, *fresh);
                names::write_query(name, question);
                let id = (count.replace(count.get() + 1) % *ids as u64) as u16;
                question[..2].copy_from_slice(&id.to_be_bytes());
                open.borrow_mut()[port * *ids + usize::from(id)] =
                    OutstandingQuery { sent: now, name: name as u32, phase: phase as u32 };
            });
            counts[port] = count.get();
            *issued = next;
        }
        (self.tally)(&mut reports[phase]).sent += due;
    }

    /// Reads the messages that have arrived, and returns their number.
    fn receive(&mut self, now: u64, phase: usize, reports: &mut [Report]) -> usize {
        let ClientGroup { client, tally, ids, open, .. } = self;
        let received = client.receive_from(|port, message| {
            let Some((sent, asked_in)) = match_answer(&mut open[port * *ids..][..*ids], message) else {
                return tally(&mut reports[phase]).wrong += 1;
            };
            let delay = now.saturating_sub(sent);
            if delay > limits::USEFUL_WITHIN.as_nanos() as u64 {
                return tally(&mut reports[phase]).late += 1;
            }
            tally(&mut reports[phase]).came += 1;
            let asked_in = tally(&mut reports[asked_in]);
            asked_in.useful += 1;
            asked_in.delays_us.push((delay / 1000) as u32);
        });
        self.received += received as u64;
        received
    }
}

/// Send time and phase of the query that a right answer belongs to. An answer counts once.
fn match_answer(open: &mut [OutstandingQuery], message: &[u8]) -> Option<(u64, usize)> {
    let id = u16::from_be_bytes([*message.first()?, *message.get(1)?]);
    let entry = open.get_mut(usize::from(id))?;
    let sent = std::mem::take(&mut entry.sent);
    let mut asked = [0; QUERY];
    names::write_query(u64::from(entry.name), &mut asked);
    let is_right = sent != 0
        && message.len() >= QUERY
        && message[2] & 0x80 != 0
        && message[12..QUERY] == asked[12..]
        && names::is_right_answer(message, u64::from(entry.name));
    is_right.then_some((sent, entry.phase as usize))
}

/// Clients and authoritative server.
pub struct MixedTester {
    upstream: PolledServer,
    origin: Instant,
    /// Queries of the crowd and of the others so far: a name that is used once never repeats.
    asked: (u64, u64),
    dropped: u64,
}

impl MixedTester {
    /// Returns a tester whose authoritative server listens on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// The loopback interface has no IPv6, or no port is free.
    pub fn new() -> io::Result<MixedTester> {
        let zone = Zone::new(names::ZONE).map_err(io::Error::other)?.aaaa_share(0.0);
        let settings = Settings::new(zone).faults(Faults::default().silent_about(SILENT_START));
        let upstream = PolledServer::new(&[(Ipv6Addr::LOCALHOST, 0).into()], &settings)?;
        Ok(MixedTester { upstream, origin: Instant::now(), asked: (0, 0), dropped: 0 })
    }

    /// Address of the authoritative server.
    pub fn upstream(&self) -> SocketAddr {
        self.upstream.addresses()[0]
    }

    /// Messages that the kernel has dropped so far because a socket was full: answers at the clients' sockets, and queries at that of the
    /// authoritative server.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Runs the phases, one after the other. The crowd sends from a port of each of its addresses, and so do the
    /// others.
    ///
    /// # Errors
    ///
    /// A client's address cannot be bound.
    pub fn run(
        &mut self,
        running: &Running,
        crowd: &[IpAddr],
        others: &[IpAddr],
        phases: &[Phase],
    ) -> io::Result<Vec<Report>> {
        let server = running.address;
        let mut crowd = ClientGroup::new(server, crowd, (FRESH, self.asked.0), Report::crowd)?;
        let mut others = ClientGroup::new(server, others, (FRESH_OTHERS, self.asked.1), Report::others)?;
        let (own, upstream_port) = ([std::process::id()], self.upstream().port());
        let dropped_before = sockets::drops(&own, upstream_port);
        let mut reports = vec![Report::default(); phases.len()];
        for (number, phase) in phases.iter().enumerate() {
            let before = running.usage();
            self.run_phase(number, phase, &mut crowd, &mut others, &mut reports);
            let used = running.usage().since(&before, 0);
            reports[number].cpu = used.user_s + used.system_s;
        }
        // Outstanding queries count for their phase if their answers arrive in time.
        let (last, end) = (phases.len() - 1, Instant::now() + limits::USEFUL_WITHIN);
        let goodput = (reports[last].crowd.came, reports[last].others.came);
        while Instant::now() < end {
            self.turn(last, &mut crowd, &mut others, &mut reports);
        }
        (reports[last].crowd.came, reports[last].others.came) = goodput;
        self.asked = (crowd.issued, others.issued);
        self.dropped += crowd.client.drops() + others.client.drops();
        self.dropped += sockets::drops(&own, upstream_port) - dropped_before;
        Ok(reports)
    }

    fn run_phase(
        &mut self,
        number: usize,
        phase: &Phase,
        crowd: &mut ClientGroup,
        others: &mut ClientGroup,
        reports: &mut [Report],
    ) {
        let start = Instant::now();
        let (mut by_crowd, mut by_others) = (0u64, 0u64);
        // For a closed loop: the answers so far with their time, and the queries that are given up.
        let (mut latest, mut progress, mut given_up) =
            (crowd.received, start, crowd.issued - crowd.received.min(crowd.issued));
        let mut turn_began = Duration::ZERO;
        loop {
            let elapsed = start.elapsed();
            let turn = elapsed - std::mem::replace(&mut turn_began, elapsed);
            reports[number].behind += turn.saturating_sub(limits::LATE_TURN).as_secs_f64();
            if elapsed >= phase.length {
                reports[number].seconds = elapsed.as_secs_f64();
                return;
            }
            let due = match phase.crowd {
                Pace::Open(rate) => ((elapsed.as_secs_f64() * rate) as u64).saturating_sub(by_crowd),
                Pace::Closed(window) => {
                    if crowd.received != latest {
                        (latest, progress) = (crowd.received, Instant::now());
                    } else if progress.elapsed() > limits::STALL_TIMEOUT {
                        (given_up, progress) =
                            (crowd.issued - crowd.received.min(crowd.issued), Instant::now());
                    }
                    (crowd.received + given_up + window).saturating_sub(crowd.issued)
                }
            };
            let due = due.min(limits::BURST);
            let due_of_others =
                ((elapsed.as_secs_f64() * phase.others) as u64).saturating_sub(by_others).min(limits::BURST);
            let at = (self.now(), number);
            crowd.send(due, phase.group, phase.ask, at, reports);
            let ask = if phase.ask == QueryKind::Cached { QueryKind::Cached } else { QueryKind::HalfMisses };
            others.send(due_of_others, 1, ask, at, reports);
            by_crowd += due;
            by_others += due_of_others;
            if !self.turn(number, crowd, others, reports) && due + due_of_others == 0 {
                std::thread::sleep(limits::IDLE_SLEEP);
            }
        }
    }

    /// Answers the device's upstream queries, and reads its answers. Returns true if there was anything.
    fn turn(
        &mut self,
        phase: usize,
        crowd: &mut ClientGroup,
        others: &mut ClientGroup,
        reports: &mut [Report],
    ) -> bool {
        let served = self.upstream.poll();
        let received = crowd.receive(self.now(), phase, reports) + others.receive(self.now(), phase, reports);
        served + received > 0
    }

    /// Nanoseconds since this tester was created, never 0.
    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(id: u16, name: u64) -> Vec<u8> {
        let mut message = vec![0; QUERY];
        names::write_query(name, &mut message);
        message[..2].copy_from_slice(&id.to_be_bytes());
        message[2] = 0x81;
        message[7] = 1;
        message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
        let address = u128::from(names::PREFIX) | u128::from(u32::from(names::address(name)));
        message.extend(address.to_be_bytes());
        message
    }

    #[test]
    fn an_answer_counts_once_and_for_its_own_question_only() {
        let mut open = vec![OutstandingQuery::default(); IDS];
        open[7] = OutstandingQuery { sent: 55, name: FRESH as u32, phase: 3 };
        open[8] = OutstandingQuery { sent: 56, name: FRESH as u32 + 1, phase: 3 };
        assert_eq!(match_answer(&mut open, &answer(7, FRESH)), Some((55, 3)));
        assert_eq!(match_answer(&mut open, &answer(7, FRESH)), None);
        assert_eq!(match_answer(&mut open, &answer(8, FRESH)), None);
        assert_eq!(match_answer(&mut open, &[]), None);
    }

    #[test]
    fn half_of_the_questions_are_for_new_names_and_silent_ones_are_never_repeated() {
        let names: Vec<u64> = (0..1000).map(|number| QueryKind::HalfMisses.name(number, FRESH)).collect();
        let fresh = names.iter().filter(|&&name| name < POPULAR).count();
        assert_eq!(fresh, 500);
        assert!(names.iter().all(|&name| name < POPULAR + u64::from(limits::CACHED_NAMES)));
        let silent: std::collections::HashSet<u64> =
            (0..1000).map(|number| QueryKind::Silent.name(number, FRESH)).collect();
        assert_eq!(silent.len(), 1000);
    }

    #[test]
    fn the_99th_percentile_is_that_of_the_useful_answers() {
        let tally =
            Tally { delays_us: (1..=1000).rev().map(|delay| delay * 10).collect(), ..Tally::default() };
        assert_eq!(tally.p99_ms(), 9.9);
        assert!(Tally::default().p99_ms().is_nan());
    }
}
