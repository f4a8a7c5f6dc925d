//! Trials of the addresses in real AAAA records, for rules with `real-aaaa = "verify"`: the sockets, and the exchange with the workers. The state
//! machine is that of the crate `gateways`.
//!
//! A worker notes the addresses that are to be tried, and goes on. Five times a second it gets the verdicts, if there are new ones, and gives
//! its notes away, both in one task. So a worker waits for nobody, and without such a rule there is no task at all.

use super::sockets::{Connection, Fault};
use super::state::Prefixes;
use crate::escape;
use crate::observers::WorkerEngine;
use datapath::Shared;
use engine::dns64::verdicts::Verdicts;
use engine::{Instant, Span};
use gateways::{Report, Verifier};
use rustix::event::epoll;
use std::collections::HashMap;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Time between two exchanges with the workers. With two of them, and a round trip, a name is healed half a second after its first query if
/// its address refuses, and 2.4 s after it if the address is silent.
const EXCHANGE: Span = Span::from_millis(200);

/// Outcomes that are taken in one call.
const OUTCOMES: usize = 256;

/// The trials, and the connections of those that are running.
pub struct AddressTrials {
    verifier: Verifier,
    poll: OwnedFd,
    /// By their tokens.
    connections: HashMap<u64, (Ipv6Addr, Connection)>,
    token: u64,
    next_exchange: Instant,
    verdicts: Arc<Verdicts>,
    /// Version of the verdicts in `verdicts`, and that which each worker has.
    version: u64,
    told: Vec<u64>,
    is_faulty: bool,
}

impl AddressTrials {
    /// No trial runs. `workers`: number of the workers.
    ///
    /// # Errors
    ///
    /// The error of epoll_create1(2): the process may have no more open files.
    pub fn new(workers: usize) -> io::Result<AddressTrials> {
        Ok(AddressTrials {
            verifier: Verifier::default(),
            poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: HashMap::new(),
            token: 0,
            next_exchange: Instant(0),
            verdicts: Arc::default(),
            version: 0,
            told: vec![0; workers],
            is_faulty: false,
        })
    }

    /// Next time at which something is to be done.
    pub fn next(&self) -> Instant {
        self.verifier.next().map_or(self.next_exchange, |next| next.min(self.next_exchange))
    }

    /// Handles outcomes and the time, and starts the connections that are due.
    pub fn turn(&mut self, now: Instant, prefixes: &Arc<Prefixes>, workers: &Shared<WorkerEngine>) {
        // Outcomes that are here come before the timeouts: this thread may be late.
        self.take_outcomes(now);
        self.verifier.expire(now);
        for untried in prefixes.take_untried() {
            self.verifier.note_dropped(untried.dropped);
            untried.addresses.iter().for_each(|(&address, name)| self.verifier.want(address, name, now));
        }
        while let Some((address, port)) = self.verifier.take_connection(now) {
            self.start(address, port, now);
        }
        let verifier = &self.verifier;
        self.connections.retain(|_, (address, _)| verifier.is_running(*address));
        if self.next_exchange <= now {
            self.next_exchange = now + EXCHANGE;
            self.exchange(prefixes, workers);
            if let Some(report) = self.verifier.take_report(now) {
                log(&report);
            }
        }
    }

    fn take_outcomes(&mut self, now: Instant) {
        loop {
            let mut ready = Vec::with_capacity(OUTCOMES);
            let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            // Interrupted, or for lack of memory: the next turn asks again.
            let _ = epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut ready), Some(&at_once));
            for event in &ready {
                let data = event.data;
                let Some((address, connection)) = self.connections.remove(&data.u64()) else { continue };
                match connection.outcome() {
                    Ok(()) => self.verifier.established(address, now),
                    Err(Fault::Failed(_)) => self.verifier.failed(address, now),
                    Err(Fault::Local(error)) => self.abandon(address, Some(&error), now),
                }
            }
            if ready.len() < OUTCOMES {
                return;
            }
        }
    }

    fn start(&mut self, address: Ipv6Addr, port: u16, now: Instant) {
        let started = Connection::start(address, port).and_then(|connection| {
            self.token += 1;
            let (data, flags) = (epoll::EventData::new_u64(self.token), epoll::EventFlags::OUT);
            epoll::add(&self.poll, &connection, data, flags).map_err(|error| Fault::Local(error.into()))?;
            Ok(connection)
        });
        match started {
            Ok(connection) => {
                self.is_faulty = false;
                self.connections.insert(self.token, (address, connection));
            }
            // A host of this machine refuses at once.
            Err(Fault::Failed(gateways::Failure::Reset)) => self.verifier.failed(address, now),
            // This machine has no route, or forbids the packet: clients may have another one.
            Err(Fault::Failed(_)) => self.abandon(address, None, now),
            Err(Fault::Local(error)) => self.abandon(address, Some(&error), now),
        }
    }

    /// Ends a trial that this machine cannot carry out. The first of a row is logged.
    fn abandon(&mut self, address: Ipv6Addr, error: Option<&io::Error>, now: Instant) {
        self.verifier.abandon(address, now);
        warn_impossible(&mut self.is_faulty, error);
    }

    /// Gives the workers the verdicts, and has them give their notes.
    fn exchange(&mut self, prefixes: &Arc<Prefixes>, workers: &Shared<WorkerEngine>) {
        if self.version != self.verifier.version() {
            self.version = self.verifier.version();
            self.verdicts = Arc::new(self.verifier.verdicts());
        }
        prefixes.set_verdicts(&self.verdicts, self.verifier.counts());
        for (worker, told) in self.told.iter_mut().enumerate() {
            let news = (*told != self.version).then(|| Arc::clone(&self.verdicts));
            let notes = Arc::clone(prefixes);
            let task = move |machine: &mut WorkerEngine, _| {
                if let Some(verdicts) = news {
                    machine.set_verdicts(verdicts);
                }
                notes.give_untried(machine.take_untried());
            };
            // A worker whose mailbox is full has its turn in the next exchange.
            if workers.mailbox(worker).submit(task).is_ok() {
                *told = self.version;
            }
        }
    }
}

impl AsFd for AddressTrials {
    /// Readable when a connection has an outcome.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_fd()
    }
}

/// Logs that trials cannot be carried out, unless that is known. `error`: the reason; none: there is no route.
pub fn warn_impossible(is_known: &mut bool, error: Option<&io::Error>) {
    if std::mem::replace(is_known, true) {
        return;
    }
    let (reason, remedy) = match error {
        Some(error) => (error.to_string(), datapath::remedy::remedy(error).to_owned()),
        None => ("no route".to_owned(), "give this machine an IPv6 route, or delete `real-aaaa`".to_owned()),
    };
    tracing::warn!(
        event = "trials_impossible",
        "real AAAA records cannot be verified: {reason}; those without a verdict are passed on; {remedy}"
    );
}

/// Logs the addresses that have died.
fn log(report: &Report) {
    let Report { address, name, others } = report;
    let (name, address) = (escape::name(name), address.to_string());
    let further = match others {
        0 => String::new(),
        1 => "; so is 1 other address that was tried since the last such message".to_owned(),
        _ => format!("; so are {others} other addresses that were tried since the last such message"),
    };
    tracing::info!(
        event = "aaaa_dead",
        name,
        address,
        others,
        "{address}, of {name}, is silent or refuses on the ports 443 and 80, and counts as absent{further}"
    );
}
