//! Trials of the addresses in real AAAA records, for rules with `real-aaaa = "verify"`: which connections are due, and what their outcomes
//! mean.
//!
//! An address lives if a connection to one of two ports is established, and is dead if both are refused or silent. An address is tried only
//! when somebody asks for a name that has it, and at most once a minute; trials are bounded in number and in rate, and those beyond wait in a
//! queue that is bounded, too. So a zone with any addresses makes this server send each of them a few packets a minute, to two ports.

use crate::limits::{HEAD_START, REPORTS, TRIAL, TRIALS, TRIALS_PER_SECOND, VERDICTS, WAITING};
use engine::dns64::verdicts::{TRIED_AGAIN, Verdict, Verdicts};
use engine::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::Ipv6Addr;

/// Ports that are tried, in this order: those of web servers, which most names with two families are for.
pub const PORTS: [u16; 2] = [443, 80];

/// Time between two starts.
const GAP: Span = Span(1_000_000_000 / TRIALS_PER_SECOND);

/// Time for which starts may be saved up while none is due: the thread wakes a few times a second.
const SAVED: Span = Span::from_millis(250);

/// Numbers of trials so far, by their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trials {
    /// The address answered.
    pub alive: u64,
    /// It did not.
    pub dead: u64,
    /// This machine could not carry the trial out.
    pub impossible: u64,
    /// There was no room for the trial.
    pub dropped: u64,
}

/// Addresses that have died since the report before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first of them.
    pub address: Ipv6Addr,
    /// A name that has it, in wire form.
    pub name: Box<[u8]>,
    /// Number of the others.
    pub others: u64,
}

/// An address that was asked for.
struct Known {
    /// A name that has it.
    name: Box<[u8]>,
    /// True while it waits for a trial, or is tried.
    is_active: bool,
    /// End of the latest trial.
    at: Option<Instant>,
    /// The latest outcome that says something about the address.
    verdict: Option<Verdict>,
}

/// A trial without an outcome.
#[derive(Clone, Copy)]
struct Trial {
    started: Instant,
    /// Number of the ports that have a connection, or had one.
    begun: usize,
    /// Number of those that have failed.
    failed: usize,
}

/// All trials.
#[derive(Default)]
pub struct Verifier {
    known: BTreeMap<Ipv6Addr, Known>,
    /// Addresses without a trial now, that tried longest ago first.
    by_age: BTreeSet<(Instant, Ipv6Addr)>,
    waiting: VecDeque<Ipv6Addr>,
    running: HashMap<Ipv6Addr, Trial>,
    /// Running trials whose first port has failed.
    refused: VecDeque<Ipv6Addr>,
    /// Trials that still have their head start, and all that may be running, each in the order of the starts.
    head_starts: VecDeque<(Instant, Ipv6Addr)>,
    deadlines: VecDeque<(Instant, Ipv6Addr)>,
    /// Earliest time of the next start.
    next_start: Instant,
    counts: Trials,
    version: u64,
    died: Option<Report>,
    reported: Option<Instant>,
}

impl Verifier {
    /// Somebody asks for an address, with this name in wire form. It is tried, unless it was in the last minute.
    pub fn want(&mut self, address: Ipv6Addr, name: &[u8], now: Instant) {
        if let Some(known) = self.known.get(&address)
            && (known.is_active || known.at.is_some_and(|at| now - at < TRIED_AGAIN))
        {
            return;
        }
        if self.waiting.len() >= WAITING {
            self.counts.dropped += 1;
            return;
        }
        let new = || Known { name: name.into(), is_active: true, at: None, verdict: None };
        let known = self.known.entry(address).or_insert_with(new);
        known.is_active = true;
        if let Some(at) = known.at {
            self.by_age.remove(&(at, address));
        }
        self.waiting.push_back(address);
    }

    /// Counts addresses that were dropped before they came here.
    pub fn note_dropped(&mut self, addresses: u64) {
        self.counts.dropped += addresses;
    }

    /// The next connection that is due: an address and a port. None: there is none now.
    pub fn take_connection(&mut self, now: Instant) -> Option<(Ipv6Addr, u16)> {
        while let Some(address) = self.refused.pop_front() {
            if self.begin_second(address, None) {
                return Some((address, PORTS[1]));
            }
        }
        while let Some((started, address)) =
            self.head_starts.pop_front_if(|first| now - first.0 >= HEAD_START)
        {
            if self.begin_second(address, Some(started)) {
                return Some((address, PORTS[1]));
            }
        }
        if self.running.len() >= TRIALS || self.next_start > now {
            return None;
        }
        let address = self.waiting.pop_front()?;
        self.next_start = self.next_start.max(Instant(now.0.saturating_sub(SAVED.0))) + GAP;
        self.running.insert(address, Trial { started: now, begun: 1, failed: 0 });
        self.head_starts.push_back((now, address));
        self.deadlines.push_back((now, address));
        Some((address, PORTS[0]))
    }

    /// Begins with the second port of an address, whose trial started then, unless that is over or has begun with it.
    fn begin_second(&mut self, address: Ipv6Addr, started: Option<Instant>) -> bool {
        match self.running.get_mut(&address) {
            Some(trial) if trial.begun == 1 && started.is_none_or(|started| started == trial.started) => {
                trial.begun = 2;
                true
            }
            _ => false,
        }
    }

    /// True if the trial of an address has no outcome yet.
    pub fn is_running(&self, address: Ipv6Addr) -> bool {
        self.running.contains_key(&address)
    }

    /// A connection to an address is established.
    pub fn established(&mut self, address: Ipv6Addr, now: Instant) {
        if self.running.remove(&address).is_some() {
            self.conclude(address, Some(true), now);
        }
    }

    /// A connection to an address was refused, or an ICMP error has come.
    pub fn failed(&mut self, address: Ipv6Addr, now: Instant) {
        let Some(trial) = self.running.get_mut(&address) else { return };
        trial.failed += 1;
        if trial.failed == PORTS.len() {
            self.running.remove(&address);
            self.conclude(address, Some(false), now);
        } else if trial.begun == trial.failed {
            self.refused.push_back(address);
        }
    }

    /// This machine cannot carry out a trial, which says nothing about the address. Its verdict stays.
    pub fn abandon(&mut self, address: Ipv6Addr, now: Instant) {
        if self.running.remove(&address).is_some() {
            self.conclude(address, None, now);
        }
    }

    /// Handles the time up to now: addresses that have been silent are dead.
    pub fn expire(&mut self, now: Instant) {
        while let Some((started, address)) = self.deadlines.pop_front_if(|first| now - first.0 >= TRIAL) {
            if self.running.get(&address).is_some_and(|trial| trial.started == started) {
                self.running.remove(&address);
                self.conclude(address, Some(false), now);
            }
        }
    }

    /// Next time at which something is to be done. None: nothing is tried.
    pub fn next(&self) -> Option<Instant> {
        let has_room = !self.waiting.is_empty() && self.running.len() < TRIALS;
        let start = has_room.then_some(self.next_start);
        let second = self.head_starts.front().map(|&(started, _)| started + HEAD_START);
        let deadline = self.deadlines.front().map(|&(started, _)| started + TRIAL);
        [start, second, deadline].into_iter().flatten().min()
    }

    /// The verdicts of now.
    pub fn verdicts(&self) -> Verdicts {
        let verdicts = self.known.iter().filter_map(|(&address, known)| Some((address, known.verdict?)));
        Verdicts::new(verdicts)
    }

    /// A number that grows with each change of [`Verifier::verdicts`].
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Numbers of trials so far.
    pub fn counts(&self) -> Trials {
        self.counts
    }

    /// The addresses that have died since the last report, at most once a minute.
    pub fn take_report(&mut self, now: Instant) -> Option<Report> {
        if self.died.is_none() || self.reported.is_some_and(|at| now - at < REPORTS) {
            return None;
        }
        self.reported = Some(now);
        self.died.take()
    }

    /// Ends the trial of an address. `lives`: its verdict; none: there is no new one.
    fn conclude(&mut self, address: Ipv6Addr, lives: Option<bool>, now: Instant) {
        let Some(known) = self.known.get_mut(&address) else { return };
        let count = match lives {
            Some(true) => &mut self.counts.alive,
            Some(false) => &mut self.counts.dead,
            None => &mut self.counts.impossible,
        };
        *count += 1;
        if lives == Some(false) && known.verdict.is_none_or(|former| former.lives) {
            match &mut self.died {
                Some(report) => report.others += 1,
                None => self.died = Some(Report { address, name: known.name.clone(), others: 0 }),
            }
        }
        known.is_active = false;
        known.at = Some(now);
        known.verdict = lives.map(|lives| Verdict { lives, at: now }).or(known.verdict);
        self.by_age.insert((now, address));
        self.version += 1;
        while self.by_age.len() > VERDICTS
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
#[path = "verifier_tests.rs"]
mod tests;
