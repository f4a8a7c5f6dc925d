//! The thread of the gateways: it waits for outcomes of probes, for what sources tell of prefixes, and for the time, does what is due, and
//! gives the workers the states and the prefixes when they change. It does no work for clients, and the workers do none for it but to take a state.

use super::StartSockets;
use super::sockets::{Connection, Echo, Fault};
use super::sources::{self, Sources};
use super::state::{Prefixes, State};
use super::trials::{self, AddressTrials};
use crate::observers::WorkerEngine;
use datapath::Shared;
use engine::settings::Dns64;
use engine::{Instant, Span};
use gateways::{Change, Destination, Failure, Liveness, Monitor, News, Round, RoundId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Wait before a worker whose mailbox was full is told again.
const RETRY: Span = Span::from_millis(10);

/// The thread's state.
pub struct Prober {
    prefixes: Arc<Prefixes>,
    workers: Arc<Shared<WorkerEngine>>,
    echo: Option<Echo>,
    connections: Vec<(Place, Connection)>,
    /// Echo requests without an answer: address and number.
    echoes: Vec<(Place, Ipv6Addr, u64)>,
    sources: Sources,
    /// Versions of what each worker has.
    told: Vec<Versions>,
    /// Settings that workers no longer use: the tables of rules take long to free.
    former: (Sender<Dns64>, Receiver<Dns64>),
    /// True for each kind of probes that this machine cannot carry out now, which is logged once.
    is_faulty: [bool; KINDS],
    /// Trials of real addresses, while a rule verifies some.
    trials: Option<AddressTrials>,
}

/// Versions of the states of the gateways, and of the prefixes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Versions {
    states: u64,
    prefixes: (u64, u64),
}

impl Versions {
    fn of(state: &State) -> Versions {
        Versions { states: state.monitor.version(), prefixes: state.version() }
    }
}

/// A probe: its round, and its place among the destinations of the round.
#[derive(Clone, Copy)]
struct Place {
    round: RoundId,
    place: usize,
}

/// Kinds of probes, as places in `is_faulty`: those of gateways by their protocol, and the trials of real addresses.
const KINDS: usize = 3;
const TCP: usize = 0;
const ICMP: usize = 1;
const TRIALS: usize = 2;

/// The sockets that are ready.
struct Ready {
    connections: Vec<bool>,
    has_answers: bool,
}

impl Prober {
    /// Everything is ready to run.
    pub fn new(prefixes: Arc<Prefixes>, workers: Arc<Shared<WorkerEngine>>, sockets: StartSockets) -> Prober {
        let StartSockets { echo, solicitations } = sockets;
        let told = vec![Versions::of(&prefixes.lock()); workers.workers()];
        let sources = Sources::new(Arc::clone(&workers), solicitations);
        Prober {
            prefixes,
            workers,
            echo,
            connections: Vec::new(),
            echoes: Vec::new(),
            sources,
            told,
            former: channel(),
            is_faulty: [false; KINDS],
            trials: None,
        }
    }

    /// Runs until the process ends.
    pub fn run(mut self) {
        // The first turn begins with what the configuration asks for.
        let mut has_told_all = self.turn(&Ready { connections: Vec::new(), has_answers: false });
        loop {
            let ready = self.wait(has_told_all);
            has_told_all = self.turn(&ready);
        }
    }

    /// Waits until something is to be done.
    fn wait(&self, has_told_all: bool) -> Ready {
        let trials = self.trials.as_ref().map(AddressTrials::next);
        let now = datapath::now();
        let state = self.prefixes.lock();
        let sources = self.sources.next(&state.discovery, now);
        let next = state.monitor.next().into_iter().chain(trials).chain(sources).min();
        drop(state);
        let next = next.map(|next| next - now);
        let span = match has_told_all {
            true => next,
            false => Some(next.map_or(RETRY, |next| next.min(RETRY))),
        };
        let timeout = span.map(|span| Timespec {
            tv_sec: (span.0 / 1_000_000_000) as i64,
            tv_nsec: (span.0 % 1_000_000_000) as i64,
        });
        let mut polled = vec![PollFd::new(&self.prefixes.wake, PollFlags::IN)];
        for (_, connection) in &self.connections {
            polled.push(PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::OUT));
        }
        // A successor has the same socket, so it is read only while an answer is waited for.
        let echo = self.echo.as_ref().filter(|_| !self.echoes.is_empty());
        let has_echo = echo.is_some();
        if let Some(echo) = echo {
            polled.push(PollFd::from_borrowed_fd(echo.as_fd(), PollFlags::IN));
        }
        if let Some(routers) = self.sources.socket() {
            polled.push(PollFd::from_borrowed_fd(routers, PollFlags::IN));
        }
        // Its outcomes are asked for in each turn.
        if let Some(trials) = &self.trials {
            polled.push(PollFd::from_borrowed_fd(trials.as_fd(), PollFlags::IN));
        }
        // Interrupted, or for lack of memory: the time decides, and the sockets are asked again.
        let _ = poll(&mut polled, timeout.as_ref());
        let is_ready = |polled: &PollFd<'_>| !polled.revents().is_empty();
        let mut octets = [0; 8];
        let _ = rustix::io::read(&self.prefixes.wake, &mut octets);
        Ready {
            connections: polled[1..=self.connections.len()].iter().map(is_ready).collect(),
            has_answers: has_echo && polled.get(1 + self.connections.len()).is_some_and(is_ready),
        }
    }

    /// Handles the outcomes and the time. True if all workers have the states of now.
    fn turn(&mut self, ready: &Ready) -> bool {
        let now = datapath::now();
        let prefixes = Arc::clone(&self.prefixes);
        let mut state = prefixes.lock();
        let monitor = &mut state.monitor;
        // Outcomes that are here come before the timeouts: this thread may be late.
        self.take_outcomes(ready, monitor, now);
        monitor.expire(now);
        while let Some(round) = monitor.take_due(now) {
            self.start(&round, monitor, now);
        }
        self.connections.retain(|(place, _)| monitor.is_running(place.round));
        self.echoes.retain(|(place, ..)| monitor.is_running(place.round));
        let changes: Vec<Change> = std::iter::from_fn(|| monitor.take_change()).collect();
        self.sources.turn(&mut state.discovery, now);
        let news: Vec<News> = std::iter::from_fn(|| state.discovery.take_news()).collect();
        state.use_found(now);
        let has_told_all = self.tell(&state, now);
        let verifies = state.verifies;
        drop(state);
        changes.iter().for_each(log);
        self.try_addresses(verifies, now);
        news.iter().for_each(sources::log);
        self.former.1.try_iter().for_each(drop);
        has_told_all
    }

    /// Gives the workers what has changed. True if all have it.
    fn tell(&mut self, state: &State, now: Instant) -> bool {
        let versions = Versions::of(state);
        if self.told.iter().all(|&told| told == versions) {
            return true;
        }
        let settings = state.settings(now);
        for (worker, told) in self.told.iter_mut().enumerate().filter(|(_, told)| **told != versions) {
            // A reload gives the workers its prefixes itself.
            let is_told = if told.prefixes != versions.prefixes && settings.discovery.is_some() {
                let (settings, former) = (settings.clone(), self.former.0.clone());
                let tell = move |machine: &mut WorkerEngine, _| {
                    // The receiver lives as long as this thread, which lives as long as the process.
                    let _ = former.send(machine.set_dns64(settings));
                };
                self.workers.mailbox(worker).submit(tell).is_ok()
            } else {
                let gateways = settings.gateways.clone();
                let tell = move |machine: &mut WorkerEngine, _| machine.set_gateways(gateways);
                self.workers.mailbox(worker).submit(tell).is_ok()
            };
            if is_told {
                *told = versions;
            }
        }
        self.told.iter().all(|&told| told == versions)
    }

    /// Goes on with the trials of real addresses, if a rule verifies some.
    fn try_addresses(&mut self, verifies: bool, now: Instant) {
        if !verifies {
            self.trials = None;
            return;
        }
        if self.trials.is_none() {
            match AddressTrials::new(self.workers.workers()) {
                Ok(trials) => self.trials = Some(trials),
                Err(error) => trials::warn_impossible(&mut self.is_faulty[TRIALS], Some(&error)),
            }
        }
        if let Some(trials) = &mut self.trials {
            trials.turn(now, &self.prefixes, &self.workers);
        }
    }

    /// Takes the outcomes of the probes whose sockets are ready.
    fn take_outcomes(&mut self, ready: &Ready, monitor: &mut Monitor, now: Instant) {
        let mut waiting = Vec::new();
        for (number, (probe, connection)) in std::mem::take(&mut self.connections).into_iter().enumerate() {
            if !ready.connections.get(number).is_some_and(|&is_ready| is_ready) {
                waiting.push((probe, connection));
                continue;
            }
            match connection.outcome() {
                Ok(()) => monitor.answered(probe.round, now),
                Err(fault) => self.note(fault, TCP, probe, monitor, now),
            }
        }
        self.connections = waiting;
        let Some(echo) = self.echo.as_ref().filter(|_| ready.has_answers) else { return };
        while let Some(answer) = echo.receive() {
            let is_answered = |(_, to, number): &&(Place, Ipv6Addr, u64)| answer.is_to(*to, *number);
            match (self.echoes.iter().find(is_answered), answer.outcome) {
                (Some((probe, ..)), Ok(())) => monitor.answered(probe.round, now),
                (Some((probe, ..)), Err(failure)) => monitor.failed(probe.round, probe.place, failure, now),
                (None, _) => {}
            }
        }
    }

    /// Sends the probes of a round.
    fn start(&mut self, round: &Round, monitor: &mut Monitor, now: Instant) {
        for (place, destination) in round.destinations.iter().enumerate() {
            let probe = Place { round: round.id, place };
            let (protocol, started) = match *destination {
                Destination::Tcp(address, port) => {
                    let started = Connection::start(address, port);
                    (TCP, started.map(|connection| self.connections.push((probe, connection))))
                }
                Destination::Icmp(address) => (ICMP, self.send_echo(probe, address)),
            };
            match started {
                Ok(()) => self.is_faulty[protocol] = false,
                Err(fault) => self.note(fault, protocol, probe, monitor, now),
            }
        }
        // If none could be sent for a reason of this machine, the round says nothing.
        let is_sent = |probe: &Place| probe.round == round.id;
        let sent = self.connections.iter().map(|(probe, _)| probe);
        if !sent.chain(self.echoes.iter().map(|(probe, ..)| probe)).any(is_sent) {
            monitor.abandon(round.id);
        }
    }

    /// Sends an echo request. A reload may be the first to ask for one, so the socket is opened when it is needed.
    fn send_echo(&mut self, probe: Place, address: Ipv6Addr) -> Result<(), Fault> {
        if self.echo.is_none() {
            self.echo = Some(Echo::open().map_err(Fault::Local)?);
        }
        let Some(echo) = &mut self.echo else { return Ok(()) };
        let number = echo.send(address)?;
        self.echoes.push((probe, address, number));
        Ok(())
    }

    /// Notes a probe that has failed, or that this machine could not carry out.
    fn note(&mut self, fault: Fault, protocol: usize, probe: Place, monitor: &mut Monitor, now: Instant) {
        match fault {
            Fault::Failed(failure) => monitor.failed(probe.round, probe.place, failure, now),
            Fault::Local(error) => {
                if !std::mem::replace(&mut self.is_faulty[protocol], true) {
                    tracing::warn!(event = "probes_impossible", "{}", impossible(&error));
                }
            }
        }
    }
}

/// The warning that probes cannot be carried out.
pub fn impossible(error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EPROTONOSUPPORT) => {
            "for ICMP, let the group of the server send echo requests (sysctl net.ipv4.ping_group_range), or probe over TCP"
                .to_owned()
        }
        _ => datapath::remedy::remedy(error).to_owned(),
    };
    format!("gateways cannot be probed: {error}; their states stay as they are; {remedy}")
}

/// Logs a change of a gateway's state.
fn log(change: &Change) {
    let prefix = change.prefix.to_string();
    match change.to {
        Liveness::Down => {
            let failure = change.failure.unwrap_or(Failure::TimedOut);
            let reason = failure.code();
            tracing::warn!(
                event = "gateway_down",
                prefix,
                reason,
                "the gateway of {prefix} is down: {failure}; new answers do not have the prefix while another one is up"
            );
        }
        Liveness::Up | Liveness::Unprobed => {
            tracing::info!(event = "gateway_up", prefix, "the gateway of {prefix} is up");
        }
    }
}
