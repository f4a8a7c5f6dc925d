//! All gateways: rounds of probes that are due, their outcomes, the changes of states, and the prefixes that drain.
//!
//! A round sends all probes of a gateway together, through its prefix, and one that is answered is enough. A round starts an interval after
//! the one before, or up to a tenth earlier. While a gateway is not known to be down, the round after a failed one starts as soon as that one's
//! timeout is over, so a death is found after at most one interval and `fall` timeouts.

use crate::drain::Drain;
use crate::health::{Health, HealthSettings, Liveness};
use crate::limits::{DRAIN_STEP, JITTER};
use core::fmt;
use engine::dns64::gateways::{GatewayTable, PrefixState};
use engine::{Instant, Span};
use pref64::Pref64;
use std::collections::VecDeque;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// A probe of a gateway, towards an IPv4 address behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A TCP connection to this address and port.
    Tcp([u8; 4], u16),
    /// An ICMP echo request to this address.
    Icmp([u8; 4]),
}

/// A gateway with its probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The prefix in front of it.
    pub prefix: Pref64,
    /// At least one.
    pub probes: Vec<Probe>,
}

/// Number of a round, which no other one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoundId(pub u64);

/// A round that starts: all its probes are to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number.
    pub id: RoundId,
    /// Destinations of its probes.
    pub destinations: Vec<Destination>,
}

/// Destination of a probe: an IPv6 address under the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A TCP port.
    Tcp(Ipv6Addr, u16),
    /// A host that replies to echo requests.
    Icmp(Ipv6Addr),
}

/// Reason why a probe has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No reply in time.
    TimedOut,
    /// The connection was reset.
    Reset,
    /// An ICMP error, or no route.
    Unreachable,
}

impl Failure {
    /// Code for programs.
    pub fn code(self) -> &'static str {
        match self {
            Failure::TimedOut => "no_reply",
            Failure::Reset => "reset",
            Failure::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::TimedOut => "no reply in time",
            Failure::Reset => "connection refused or reset",
            Failure::Unreachable => "unreachable",
        })
    }
}

/// Change of the state of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The prefix in front of it.
    pub prefix: Pref64,
    /// Its state from now on.
    pub to: Liveness,
    /// Reason of the failure that came last, of a gateway that is down now.
    pub failure: Option<Failure>,
}

/// State of a prefix for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Status {
    /// Life of its gateway.
    pub liveness: Liveness,
    /// Time from which the life of its gateway is what it is; none: since the start.
    pub since: Option<Instant>,
    /// Round trip of the latest probe that was answered.
    pub round_trip: Option<Span>,
    /// Reason of the failure that made it down.
    pub failure: Option<Failure>,
    /// The drain, if the prefix drains.
    pub drain: Option<Drain>,
}

/// A gateway that is probed.
struct Watched {
    gateway: Gateway,
    health: Health,
    since: Option<Instant>,
    round_trip: Option<Span>,
    failure: Option<Failure>,
    /// Start of the next round.
    next: Instant,
    running: Option<Running>,
}

/// A round without a result.
struct Running {
    id: RoundId,
    started: Instant,
    /// Probes without an outcome, a bit for each.
    waiting: u32,
    /// Reason of the latest failure.
    failure: Option<Failure>,
}

/// All gateways.
pub struct Monitor {
    settings: HealthSettings,
    watched: Vec<Watched>,
    /// True while no round starts.
    is_paused: bool,
    drains: Vec<(Pref64, Drain)>,
    /// Time of the next step of the drains that are under way.
    drain_step: Option<Instant>,
    changes: VecDeque<Change>,
    /// Counts whatever changes a [`PrefixState`].
    version: u64,
    rounds: u64,
    random: u64,
}

impl Monitor {
    /// A monitor that watches nothing. `seed`: any number, from which the jitter follows.
    pub fn new(seed: u64) -> Monitor {
        Monitor {
            settings: HealthSettings::default(),
            watched: Vec::new(),
            is_paused: false,
            drains: Vec::new(),
            drain_step: None,
            changes: VecDeque::new(),
            version: 0,
            rounds: 0,
            random: seed,
        }
    }

    /// Watches these gateways from now on. One that was watched before keeps its state. `has_prefix` tells if a prefix is still in use: the
    /// drains of others end.
    pub fn configure(
        &mut self,
        now: Instant,
        settings: HealthSettings,
        gateways: Vec<Gateway>,
        has_prefix: impl Fn(&Pref64) -> bool,
    ) {
        self.settings = settings;
        let mut former = std::mem::take(&mut self.watched);
        for gateway in gateways {
            let place = former.iter().position(|one| is_same(&one.gateway.prefix, &gateway.prefix));
            let next = now + self.part_of(settings.interval);
            let watched = match place.map(|place| former.swap_remove(place)) {
                // Its round is about the former probes.
                Some(one) if one.gateway != gateway => Watched { gateway, next, running: None, ..one },
                Some(one) => Watched { next: one.next.min(now + settings.interval), ..one },
                None => Watched {
                    gateway,
                    health: Health::default(),
                    since: None,
                    round_trip: None,
                    failure: None,
                    next,
                    running: None,
                },
            };
            self.watched.push(watched);
        }
        self.drains.retain(|(prefix, _)| has_prefix(prefix));
        self.version += 1;
    }

    /// Starts no round until [`Monitor::resume`]: another process watches the gateways. Rounds that run have no result, and states stay.
    pub fn pause(&mut self) {
        self.is_paused = true;
        self.watched.iter_mut().for_each(|one| one.running = None);
    }

    /// Starts rounds again, within an interval from now.
    pub fn resume(&mut self, now: Instant) {
        self.is_paused = false;
        for place in 0..self.watched.len() {
            self.watched[place].next = now + self.part_of(self.settings.interval);
        }
    }

    /// Makes a gateway that is watched down: the predecessor of this process knew it to be dead.
    pub fn restore_down(&mut self, prefix: &Pref64) {
        if let Some(one) = self.watched.iter_mut().find(|one| is_same(&one.gateway.prefix, prefix)) {
            one.health = Health::down();
            self.version += 1;
        }
    }

    /// Lets a prefix drain. `since` may be in the past: the drain began in the predecessor of this process. True if it did not drain, or
    /// drains in another time now.
    pub fn drain(&mut self, prefix: Pref64, drain: Drain) -> bool {
        let known = self.drains.iter_mut().find(|(other, _)| is_same(other, &prefix));
        match known {
            Some((_, known)) if known.over == drain.over => return false,
            Some((_, known)) => *known = drain,
            None => self.drains.push((prefix, drain)),
        }
        self.drain_step = Some(drain.since);
        self.version += 1;
        true
    }

    /// Ends the drain of a prefix. True if it drained.
    pub fn undrain(&mut self, prefix: &Pref64) -> bool {
        let before = self.drains.len();
        self.drains.retain(|(other, _)| !is_same(other, prefix));
        let has_changed = self.drains.len() < before;
        self.version += u64::from(has_changed);
        has_changed
    }

    /// The prefixes that drain.
    pub fn drains(&self) -> &[(Pref64, Drain)] {
        &self.drains
    }

    /// A number that grows with each change of what [`Monitor::states`] returns.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// States of the prefixes of a table, in its order.
    pub fn states(&self, table: &GatewayTable, now: Instant) -> Arc<[PrefixState]> {
        let mut states = vec![PrefixState::Up; table.prefixes().count()];
        for (prefix, drain) in &self.drains {
            if let Some(number) = table.number_of(prefix) {
                states[number] = drain.state(now);
            }
        }
        let is_dead = |one: &&Watched| one.health.liveness() == Liveness::Down;
        for dead in self.watched.iter().filter(is_dead) {
            if let Some(number) = table.number_of(&dead.gateway.prefix) {
                states[number] = PrefixState::Down;
            }
        }
        states.into()
    }

    /// State of a prefix for an operator.
    pub fn status(&self, prefix: &Pref64) -> Status {
        let drain = self.drains.iter().find(|(other, _)| is_same(other, prefix)).map(|(_, drain)| *drain);
        let watched = self.watched.iter().find(|one| is_same(&one.gateway.prefix, prefix));
        let Some(Watched { health, since, round_trip, failure, .. }) = watched else {
            return Status { drain, ..Status::default() };
        };
        let (since, round_trip, failure) = (*since, *round_trip, *failure);
        Status { liveness: health.liveness(), since, round_trip, failure, drain }
    }

    /// Handles the time up to now: rounds that have failed by their timeout, and steps of drains.
    pub fn expire(&mut self, now: Instant) {
        for place in 0..self.watched.len() {
            let deadline = self.watched[place].deadline(&self.settings);
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.end_round(place, now, Err(Failure::TimedOut));
            }
        }
        if self.drain_step.is_some_and(|step| step <= now) {
            self.version += 1;
            let is_under_way = self.drains.iter().any(|(_, drain)| drain.is_under_way(now));
            self.drain_step = is_under_way.then(|| now + DRAIN_STEP);
        }
    }

    /// Starts a round that is due, if there is one.
    pub fn take_due(&mut self, now: Instant) -> Option<Round> {
        if self.is_paused {
            return None;
        }
        let place = self.watched.iter().position(|one| one.running.is_none() && one.next <= now)?;
        self.rounds += 1;
        let id = RoundId(self.rounds);
        // Up to a tenth early, and never late.
        let early = self.part_of(Span(self.settings.interval.0 / JITTER));
        let one = &mut self.watched[place];
        one.next = now + Span(self.settings.interval.0 - early.0);
        let probes = &one.gateway.probes[..one.gateway.probes.len().min(u32::BITS as usize)];
        let waiting = u32::MAX.checked_shr(u32::BITS - probes.len() as u32).unwrap_or(0);
        one.running = Some(Running { id, started: now, waiting, failure: None });
        let prefix = &one.gateway.prefix;
        let destination = |probe: &Probe| match *probe {
            Probe::Tcp(address, port) => Destination::Tcp(prefix.embed(address).into(), port),
            Probe::Icmp(address) => Destination::Icmp(prefix.embed(address).into()),
        };
        Some(Round { id, destinations: probes.iter().map(destination).collect() })
    }

    /// True if a round has no result yet.
    pub fn is_running(&self, id: RoundId) -> bool {
        self.place_of(id).is_some()
    }

    /// A probe of a round was answered.
    pub fn answered(&mut self, id: RoundId, now: Instant) {
        if let Some(place) = self.place_of(id) {
            self.end_round(place, now, Ok(()));
        }
    }

    /// The probe of a round at this place among its destinations has failed.
    pub fn failed(&mut self, id: RoundId, probe: usize, failure: Failure, now: Instant) {
        let Some(place) = self.place_of(id) else { return };
        let Some(running) = &mut self.watched[place].running else { return };
        running.waiting &= !1u32.checked_shl(probe as u32).unwrap_or(0);
        running.failure = Some(failure);
        if running.waiting == 0 {
            self.end_round(place, now, Err(failure));
        }
    }

    /// A round cannot be carried out, for a reason on this machine that says nothing about the gateway. The next one comes in its time.
    pub fn abandon(&mut self, id: RoundId) {
        if let Some(place) = self.place_of(id) {
            self.watched[place].running = None;
        }
    }

    /// Next time at which something is to be done; none: nothing is watched, or rounds are paused, and nothing drains.
    pub fn next(&self) -> Option<Instant> {
        let of_one = |one: &Watched| one.deadline(&self.settings).unwrap_or(one.next);
        let watched = self.watched.iter().filter(|_| !self.is_paused);
        watched.map(of_one).chain(self.drain_step).min()
    }

    /// The next change of a state that was not taken yet.
    pub fn take_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    fn place_of(&self, id: RoundId) -> Option<usize> {
        self.watched.iter().position(|one| one.running.as_ref().is_some_and(|running| running.id == id))
    }

    /// Ends the round of a gateway.
    fn end_round(&mut self, place: usize, now: Instant, result: Result<(), Failure>) {
        let one = &mut self.watched[place];
        let Some(running) = one.running.take() else { return };
        let before = one.health.liveness();
        match result {
            Ok(()) => one.round_trip = Some(now - running.started),
            // A dead gateway is probed in its interval. Else the next round follows at once: the row of failures decides soon.
            Err(_) if before == Liveness::Down => {}
            Err(_) => one.next = one.next.min(running.started + self.settings.timeout),
        }
        if !one.health.note(result.is_ok(), &self.settings) {
            return;
        }
        // An answer says more of the fault than silence.
        one.failure = result.err().map(|failure| running.failure.unwrap_or(failure));
        one.since = Some(now);
        let (prefix, to, failure) = (one.gateway.prefix, one.health.liveness(), one.failure);
        self.changes.push_back(Change { prefix, to, failure });
        let was_up = before != Liveness::Down;
        self.version += u64::from(was_up != (to != Liveness::Down));
    }

    /// A random part of a span.
    fn part_of(&mut self, span: Span) -> Span {
        // SplitMix64 (Steele and others, 2014): any seed will do.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ mixed >> 31;
        Span(((u128::from(span.0) * u128::from(mixed)) >> 64) as u64)
    }
}

impl Watched {
    /// End of the round that is running.
    fn deadline(&self, settings: &HealthSettings) -> Option<Instant> {
        self.running.as_ref().map(|running| running.started + settings.timeout)
    }
}

/// True if two prefixes are the same network. A suffix makes no difference.
fn is_same(one: &Pref64, other: &Pref64) -> bool {
    (one.address(), one.length()) == (other.address(), other.length())
}

#[cfg(test)]
#[path = "monitor_tests.rs"]
mod tests;
