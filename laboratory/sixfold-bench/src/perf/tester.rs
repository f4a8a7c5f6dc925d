//! The tester of RFC 8219 section 9.1: the load of the laboratory with the authority as its companion, so client and authoritative server
//! are in one thread on one core, and neither waits until the scheduler runs the other.

use crate::perf::client::Client;
use crate::perf::limits;
use crate::perf::names::{self, PREFIX, ZONE};
use crate::perf::popularity::Popularity;
use crate::usage::Usage;
use authority::{PolledServer, Settings, Zone};
use load::{Companion, LoadOptions};
use measure::order::{self, Expectation, Lanes};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Pace of the queries.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// This number of queries a second, independent of the answers.
    Open(f64),
    /// This number of outstanding queries: a new one for each that is answered or given up.
    Closed(u64),
}

/// Answers of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The AAAA record that RFC 6147 wants.
    Synthesized,
    /// The empty answers of the authority, passed on by a device that parses no DNS.
    Reflected,
}

impl Answers {
    fn expectation(self) -> Expectation {
        let synthesized = Expectation::synthesized(ZONE, (PREFIX, 96));
        match self {
            Answers::Synthesized => synthesized,
            Answers::Reflected => Expectation { prefixes: Vec::new(), ..synthesized },
        }
    }

    fn check(self, message: &[u8]) -> Option<u64> {
        match self {
            Answers::Synthesized => names::check_synthesized(message),
            Answers::Reflected => names::sequence(message),
        }
    }
}

/// Names of the queries, and the answers to them.
#[derive(Clone, Copy, Debug)]
pub enum Names<'a> {
    /// Each name once.
    Fresh(Answers),
    /// A few names, repeated, with synthesized answers.
    Repeated(&'a Popularity),
}

/// One load on one device.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Pace of the queries.
    pub pace: Pace,
    /// Source ports to send from.
    pub ports: usize,
    /// Duration of the load before the window, to fill caches, tables and estimates.
    pub warm_up: Duration,
    /// Duration of the measured window.
    pub window: Duration,
    /// Names and the answers to them.
    pub names: Names<'a>,
    /// Queries that leave one port together, at most [`limits::SEGMENTS`].
    pub group: u16,
}

/// Counts of the window.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Length of the window, in seconds.
    pub seconds: f64,
    /// Queries sent.
    pub sent: u64,
    /// Right answers in time.
    pub valid: u64,
    /// Mean time from the sending of a query to its right answer, in seconds.
    pub delay: f64,
    /// Answers that arrived too late.
    pub late: u64,
    /// Wrong answers, by the load's reason.
    pub invalid: BTreeMap<String, u64>,
    /// Upstream queries of the device.
    pub upstream: u64,
    /// CPU time of the device, in seconds.
    pub cpu: f64,
    /// Time that its threads were ready to run and did not, because other programs had the core or its quota was used
    /// up.
    pub waited: f64,
    /// Highest delay of the sender behind its schedule, in seconds.
    pub behind: f64,
}

impl Tally {
    /// CPU time per right answer, in microseconds.
    pub fn cost_us(&self) -> f64 {
        self.cpu * 1e6 / self.valid as f64
    }

    /// Right answers per second.
    pub fn goodput(&self) -> f64 {
        self.valid as f64 / self.seconds
    }

    /// Queries per second.
    pub fn offered(&self) -> f64 {
        self.sent as f64 / self.seconds
    }

    /// Share of one core's time that the device used.
    pub fn busy(&self) -> f64 {
        self.cpu / self.seconds
    }

    /// Upstream queries per right answer: 2 in the worst case.
    pub fn lookups(&self) -> f64 {
        self.upstream as f64 / self.valid as f64
    }

    /// Wrong answers.
    pub fn wrong(&self) -> u64 {
        self.invalid.values().sum()
    }

    /// Queries without a right answer in time.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.valid)
    }
}

/// Client and authoritative server, for all devices of a run.
pub struct Tester {
    authority: PolledServer,
    /// Number of the next name that was not queried before.
    next: u64,
    /// Number of names that the authority has.
    names: u64,
}

impl Tester {
    /// A tester whose authoritative server listens on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// The loopback interface has no IPv6, or no port is free.
    pub fn new() -> io::Result<Tester> {
        let zone = Zone::new(ZONE).map_err(io::Error::other)?.aaaa_share(0.0);
        Tester::serving(&Settings::new(zone), names::NAMES)
    }

    /// A tester with another authority, which has this number of names and listens on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// As [`Tester::new`].
    pub fn serving(settings: &Settings, names: u64) -> io::Result<Tester> {
        let listen = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0));
        Ok(Tester { authority: PolledServer::new(&[listen], settings)?, next: 0, names })
    }

    /// Counts names as new again: for a device that was started anew.
    pub fn start_over(&mut self) {
        self.next = 0;
    }

    /// Answers the waiting upstream queries that are due.
    pub fn poll(&mut self) {
        self.authority.poll();
    }

    /// Upstream queries so far.
    pub fn asked(&self) -> u64 {
        asked(&self.authority)
    }

    /// Address of the authoritative server.
    pub fn upstream(&self) -> SocketAddr {
        self.authority.addresses()[0]
    }

    /// Waits for the first right answer of a device, as [`is_ready_in_time`].
    ///
    /// # Errors
    ///
    /// As [`Client::new`].
    pub fn wait_until_ready(&mut self, server: SocketAddr, answers: Answers) -> io::Result<bool> {
        let Tester { authority, next, .. } = self;
        is_ready_in_time(server, answers, next, || {
            authority.poll();
        })
    }

    /// Runs a load. `used` returns the resources that the device has used so far. It is called at the begin of the window, and at its end.
    ///
    /// # Errors
    ///
    /// The load is impossible, or a socket cannot be made or bound.
    pub fn run(
        &mut self,
        server: SocketAddr,
        load: &Load<'_>,
        used: impl Fn() -> Usage,
    ) -> io::Result<Tally> {
        let (order, options) = self.order(server, load);
        let mut window = Window {
            authority: &mut self.authority,
            used,
            opens: Instant::now() + load::limits::START_DELAY + load.warm_up,
            length: load.window,
            opened: None,
            closed: None,
        };
        let outcome = load::run_with(&order, &options, Some(&mut window), |_| ControlFlow::Continue(()));
        let (outcome, _) = outcome.map_err(io::Error::other)?;
        let (upstream, device) = window.used();
        if matches!(load.names, Names::Fresh(_)) {
            self.next += outcome.names_used;
        }
        Ok(Tally {
            seconds: outcome.seconds,
            sent: outcome.sent,
            valid: outcome.valid,
            delay: outcome.latency_us.actual.mean / 1e6,
            late: outcome.late,
            invalid: outcome.invalid,
            upstream,
            cpu: device.user_s + device.system_s,
            waited: device.waited_s,
            behind: outcome.lag_max_us / 1e6,
        })
    }

    /// The order of a load, and its options.
    fn order(&self, server: SocketAddr, load: &Load<'_>) -> (order::Load, LoadOptions) {
        let pace = match load.pace {
            // A device without any right answer has no peak to take a part of.
            Pace::Open(rate_qps) => {
                order::Pace::Open { rate_qps: rate_qps.max(load::limits::RATES_QPS.0), burst: 1 }
            }
            Pace::Closed(outstanding) => order::Pace::Closed { outstanding: outstanding as u32 },
        };
        let (range, answers, turns) = match load.names {
            Names::Fresh(answers) => (names::range(self.next % (self.names / 2), self.names), answers, None),
            Names::Repeated(popularity) => {
                (popularity.range(), Answers::Synthesized, Some(popularity.turns()))
            }
        };
        let lanes = Lanes { ports: load.ports as u16, group: load.group, ..Lanes::default() };
        let order = order::Load {
            warm_up_ms: load.warm_up.as_millis() as u64,
            timeout_ms: limits::TIMEOUT.as_millis() as u64,
            lanes,
            ..order::Load::of_new_names(server, pace, load.window, range, answers.expectation())
        };
        (order, LoadOptions { turns, ..LoadOptions::default() })
    }
}

/// Sends queries until the first right answer arrives, at most for [`limits::READY_TIMEOUT`]. Returns false if none arrived. `next`: number
/// of the next name. `serve` answers the device's upstream queries.
///
/// # Errors
///
/// As [`Client::new`].
pub fn is_ready_in_time(
    server: SocketAddr,
    answers: Answers,
    next: &mut u64,
    mut serve: impl FnMut(),
) -> io::Result<bool> {
    let mut client = Client::new(server, 1)?;
    let start = Instant::now();
    while start.elapsed() < limits::READY_TIMEOUT {
        client.send(*next..*next + 1);
        *next += 1;
        let asked = Instant::now();
        while asked.elapsed() < limits::READY_INTERVAL {
            serve();
            let mut ready = false;
            client.receive(|message| ready |= answers.check(message).is_some());
            if ready {
                return Ok(true);
            }
            std::thread::sleep(limits::IDLE_SLEEP);
        }
    }
    Ok(false)
}

/// Queries that an authority was asked so far.
fn asked(authority: &PolledServer) -> u64 {
    let asked = authority.counters().totals().filter(|(name, _)| name.starts_with("asked_"));
    asked.map(|(_, count)| count).sum()
}

/// The authority in the thread of a load. It sees when the window begins and ends.
struct Window<'a, U> {
    authority: &'a mut PolledServer,
    used: U,
    /// Begin of the window, and its length.
    opens: Instant,
    length: Duration,
    opened: Option<(u64, Usage)>,
    closed: Option<(u64, Usage)>,
}

impl<U: Fn() -> Usage> Window<'_, U> {
    /// Upstream queries so far, and the resources that the device has used.
    fn reading(&self) -> (u64, Usage) {
        (asked(self.authority), (self.used)())
    }

    /// Upstream queries in the window, and the resources that the device used in it.
    fn used(self) -> (u64, measure::run::DeviceUse) {
        let (upstream, used) = self.closed.clone().unwrap_or_else(|| self.reading());
        let (before, used_before) = self.opened.unwrap_or_default();
        (upstream - before, used.since(&used_before, 0))
    }
}

impl<U: Fn() -> Usage> Companion for Window<'_, U> {
    #[inline]
    fn poll(&mut self) -> usize {
        if self.closed.is_none() {
            let now = Instant::now();
            if self.opened.is_none() && now >= self.opens {
                self.opened = Some(self.reading());
            } else if now >= self.opens + self.length {
                self.closed = Some(self.reading());
            }
        }
        self.authority.poll()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.authority.descriptors().collect()
    }

    #[inline]
    fn deadline_ns(&self) -> Option<u64> {
        self.authority.deadline().map(|deadline| deadline.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::names::QUERY;

    /// Runs a load on a server that echoes all but every n-th query, marked as a response.
    fn with_echo(leave_out: u64, load: &Load<'_>) -> Tally {
        let mut count = 0;
        let server = kit::Upstream::start_at("[::1]:0".parse().unwrap(), move |asked, replies| {
            assert_eq!(asked.message.len(), QUERY, "the kernel cuts a large send into questions");
            count += 1;
            if leave_out == 0 || count % leave_out != 0 {
                let mut reply = asked.message.to_vec();
                reply[2] |= 0x80;
                replies.now(reply);
            }
        });
        Tester::new().unwrap().run(server.address, load, Usage::default).unwrap()
    }

    fn load(pace: Pace) -> Load<'static> {
        Load {
            pace,
            ports: 3,
            warm_up: Duration::ZERO,
            window: Duration::from_millis(300),
            names: Names::Fresh(Answers::Reflected),
            group: limits::SEGMENTS as u16,
        }
    }

    #[test]
    fn an_open_loop_sends_what_the_schedule_asks_for() {
        let tally = with_echo(0, &load(Pace::Open(2_000.0)));
        // Never more than 0.3 s at 2,000 a second; less where the machine lets the test wait.
        assert!((1..=600).contains(&tally.sent), "{tally:?}");
        assert_eq!((tally.lost(), tally.late, tally.wrong()), (0, 0, 0), "{tally:?}");
        assert!(tally.valid <= tally.sent && tally.valid > 0);
    }

    #[test]
    fn a_closed_loop_goes_on_after_losses() {
        let tally = with_echo(10, &load(Pace::Closed(64)));
        assert!(tally.lost() > 0 && tally.valid > 0, "{tally:?}");
        assert_eq!(tally.wrong(), 0);
    }

    #[test]
    fn a_wrong_answer_is_no_valid_one() {
        let wanted = Load { names: Names::Fresh(Answers::Synthesized), ..load(Pace::Open(1_000.0)) };
        let tally = with_echo(0, &wanted);
        assert_eq!(tally.valid, 0);
        assert!(tally.wrong() > 0, "{tally:?}");
    }

    #[test]
    fn repeated_names_are_asked_for_in_their_turns_again_and_again() {
        // The authority answers with its own AAAA record of each name, which no synthesis is: every name has its answer, and it is wrong.
        let popularity = Popularity::even(3);
        let zone = Zone::new(ZONE).unwrap().aaaa_share(1.0);
        let listen = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0));
        let server = authority::Server::with(&[listen], &Settings::new(zone)).unwrap();
        let wanted = Load { names: Names::Repeated(&popularity), ..load(Pace::Open(1_000.0)) };
        let tally = Tester::new().unwrap().run(server.addresses()[0], &wanted, Usage::default).unwrap();
        assert!(tally.sent > 3 && tally.wrong() > 3 && tally.valid == 0, "{tally:?}");
    }
}
