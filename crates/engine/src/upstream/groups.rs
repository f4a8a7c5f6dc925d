//! The upstream servers: what is known of each (round trip; life, in `breaker.rs`), and which one is asked next.
//!
//! Waiting times follow the measured round trip as in RFC 6298, not a constant. Each try has an ID of its own, so it is
//! known which one a reply belongs to, and late replies are measured like any other (the ambiguity that Karn's algorithm
//! avoids does not arise).

use crate::base::time::{Instant, Span};
use crate::counters::DURATION_BOUNDS_US;
use crate::settings::{Select, Settings, Upstream};
use crate::upstream::circuit_breaker::Breaker;
use crate::upstream::cookies::Vouch;
use crate::upstream::edns_support::EdnsSupport;
use core::net::SocketAddr;

/// The wait before anything was measured.
const FIRST_WAIT: Span = Span::from_millis(250);
/// No wait is shorter: a recursive upstream that has to work takes longer than its round trip, and asking again
/// too early doubles its load.
const SHORTEST_WAIT: Span = Span::from_millis(50);
/// However steady the round trip is, a reply may be later by this part of it: a wait that ends with the round trip itself
/// asks every question twice (RFC 6298 section 2.3 has the granularity of the clock for that).
const MARGIN: u64 = 4;
/// With `select = "fastest"`, one question in so many goes to any server.
const EXPLORE: u64 = 64;
/// What kind of question went to a server, for its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum QueryKind {
    /// AAAA.
    Aaaa,
    /// A.
    A,
    /// Any other type.
    Other,
    /// A probe of a dead server.
    Probe,
}

impl QueryKind {
    /// The label of each kind, in the order of their numbers.
    pub const LABELS: [&str; 4] = ["AAAA", "A", "other", "probe"];
}

/// One upstream server.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Smoothed round trip; none before the first reply.
    pub round_trip: Option<Span>,
    variance: Span,
    /// Whether it counts as dead.
    pub dead: bool,
    /// What else is known of its life.
    pub(crate) breaker: Breaker,
    /// Whether the current configuration names it.
    pub configured: bool,
    /// The link that new questions take, by transport (UDP, TCP).
    pub(crate) current: [Option<u16>; 2],
    /// What is known of its cookies, and of its EDNS.
    pub(crate) vouch: Vouch,
    pub(crate) edns: EdnsSupport,
    /// Questions sent, by [`QueryKind`].
    pub asked: [u64; 4],
    /// Round trips by duration, with the bounds of [`DURATION_BOUNDS_US`]; the last has no bound.
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// Sum of all round trips, in nanoseconds.
    pub duration_sum_ns: u64,
}

impl Server {
    pub(crate) fn new(address: SocketAddr) -> Server {
        Server {
            address,
            round_trip: None,
            variance: Span::ZERO,
            dead: false,
            breaker: Breaker::default(),
            configured: true,
            current: [None; 2],
            vouch: Vouch::default(),
            edns: EdnsSupport::default(),
            asked: [0; 4],
            durations: [0; DURATION_BOUNDS_US.len() + 1],
            duration_sum_ns: 0,
        }
    }

    /// A reply came after `sample` (RFC 6298 section 2). True: the server was dead until now.
    pub fn answered(&mut self, sample: Span) -> bool {
        (self.round_trip, self.variance) = match self.round_trip {
            None => (Some(sample), Span(sample.0 / 2)),
            Some(Span(smooth)) => {
                let deviation = smooth.abs_diff(sample.0);
                (Some(Span((smooth * 7 + sample.0) / 8)), Span((self.variance.0 * 3 + deviation) / 4))
            }
        };
        let us = sample.as_micros();
        let bucket =
            DURATION_BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(DURATION_BOUNDS_US.len());
        self.durations[bucket] += 1;
        self.duration_sum_ns += sample.0;
        self.lives()
    }

    /// How long try number `attempt` (from 0) over UDP waits: the estimate, doubled with every try, under the
    /// ceiling. The caller gives the last try the whole ceiling, since late replies to earlier tries count too.
    pub fn wait(&self, attempt: u32, ceiling: Span) -> Span {
        let estimate = match self.round_trip {
            None => FIRST_WAIT,
            Some(round_trip) => {
                Span((round_trip.0 + (4 * self.variance.0).max(round_trip.0 / MARGIN)).max(SHORTEST_WAIT.0))
            }
        };
        Span((estimate.0 << attempt.min(8)).min(ceiling.0))
    }
}

/// All servers, and the groups that names belong to.
pub struct Servers {
    /// The servers by number; numbers stay while questions to them are in flight.
    pub list: Vec<Server>,
    pub(crate) default: Vec<u16>,
    /// Zones, those with the most octets first, so the first match is the longest.
    pub(crate) zones: Vec<(Box<[u8]>, Vec<u16>)>,
    /// The number of the default group, and those of the zones.
    pub(crate) numbers: Vec<u32>,
    /// Of each group: since when it thaws, and for how long (`breaker.rs`).
    pub(crate) thaws: Vec<(Instant, Span)>,
    /// Groups that have a number: the zone (the root for the default group) and its servers.
    known: Vec<(u32, Box<[u8]>, Vec<SocketAddr>)>,
    /// The next number.
    fresh: u32,
}

impl Servers {
    /// The servers of a configuration.
    pub fn new(upstream: &Upstream) -> Servers {
        let mut servers = Servers {
            list: Vec::new(),
            default: Vec::new(),
            zones: Vec::new(),
            numbers: Vec::new(),
            thaws: Vec::new(),
            known: Vec::new(),
            fresh: 0,
        };
        servers.configure(upstream, |_| true);
        servers
    }

    /// Takes over another configuration. Servers that stay keep what is known of them. `unused` tells whether
    /// nothing is in flight to a server, so that its number may be given to another.
    pub fn configure(&mut self, upstream: &Upstream, unused: impl Fn(u16) -> bool) {
        for server in &mut self.list {
            server.configured = false;
        }
        // First those that stay, so that their numbers are not taken by newcomers.
        let all = upstream.forwarders.iter().chain(upstream.zones.iter().flat_map(|zone| &zone.forwarders));
        for address in all.clone() {
            if let Some(server) = self.list.iter_mut().find(|server| server.address == *address) {
                server.configured = true;
            }
        }
        self.default =
            upstream.forwarders.iter().filter_map(|&address| self.number(address, &unused)).collect();
        self.zones = upstream
            .zones
            .iter()
            .map(|zone| {
                let numbers =
                    zone.forwarders.iter().filter_map(|&address| self.number(address, &unused)).collect();
                (zone.name.clone(), numbers)
            })
            .collect();
        self.zones.sort_by_key(|(name, _)| core::cmp::Reverse(name.len()));
        self.number_groups(upstream);
        self.thaws = vec![(Instant(0), Span::ZERO); self.numbers.len()];
    }

    /// A group keeps its number while its zone and its servers stay what they are: what one group said is never given
    /// for another one's names.
    fn number_groups(&mut self, upstream: &Upstream) {
        let root = Box::from(&[0][..]);
        let groups =
            core::iter::once((&root, &upstream.forwarders)).chain(self.zones.iter().map(|(name, _)| {
                let same = |zone: &&crate::settings::ForwardZone| zone.name == *name;
                (
                    name,
                    &upstream
                        .zones
                        .iter()
                        .find(same)
                        .unwrap_or_else(|| unreachable!("it is there"))
                        .forwarders,
                )
            }));
        let before = core::mem::take(&mut self.known);
        self.numbers.clear();
        for (zone, servers) in groups {
            let number = match before.iter().find(|(_, name, list)| name == zone && list == servers) {
                Some(&(number, ..)) => number,
                None => {
                    self.fresh += 1;
                    self.fresh
                }
            };
            self.numbers.push(number);
            self.known.push((number, zone.clone(), servers.clone()));
        }
    }

    /// The number of the group that a name belongs to: another one after a reload that changed the group.
    #[inline]
    pub fn group_number(&self, name: &[u8]) -> u32 {
        self.numbers[self.group_place(name)]
    }

    /// The place of a name's group: 0 is the default one, and the zones follow.
    #[inline]
    pub(crate) fn group_place(&self, name: &[u8]) -> usize {
        let zone = self.zones.iter().position(|(zone, _)| wire::is_at_or_below(name, zone));
        zone.map_or(0, |zone| zone + 1)
    }

    /// Whether every server that a name could be asked of is dead.
    pub fn is_dead(&self, name: &[u8]) -> bool {
        self.group(name).iter().all(|&number| self.list[number as usize].dead)
    }

    fn number(&mut self, address: SocketAddr, unused: &impl Fn(u16) -> bool) -> Option<u16> {
        if let Some(number) = self.list.iter().position(|server| server.address == address) {
            self.list[number].configured = true;
            return Some(number as u16);
        }
        let free = (0..self.list.len()).find(|&n| !self.list[n].configured && unused(n as u16));
        match free {
            Some(number) => {
                self.list[number] = Server::new(address);
                Some(number as u16)
            }
            None if self.list.len() < crate::limits::UPSTREAMS * 2 => {
                self.list.push(Server::new(address));
                Some(self.list.len() as u16 - 1)
            }
            None => None,
        }
    }

    /// The servers for a name (wire form, any letter case).
    #[inline]
    pub fn group(&self, name: &[u8]) -> &[u16] {
        for (zone, numbers) in &self.zones {
            if wire::is_at_or_below(name, zone) {
                return numbers;
            }
        }
        &self.default
    }

    /// Which server of the name's group is asked next. `tries` tells how often each was asked already for this
    /// question; living and untried ones come first, then the order of the selection.
    #[inline]
    pub fn choose(
        &self,
        name: &[u8],
        settings: &Settings,
        random: &mut crate::base::random::Random,
        tries: impl Fn(u16) -> u32,
    ) -> Option<u16> {
        let group = self.group(name);
        if let [only] = group {
            return Some(*only);
        }
        let select = match settings.upstream.select {
            // Now and then another one is asked, or a server that was slow once would never be measured again.
            Select::Fastest if random.below(EXPLORE) == 0 => Select::Random,
            select => select,
        };
        let start = match select {
            Select::Random if !group.is_empty() => random.below(group.len() as u64) as usize,
            _ => 0,
        };
        let rank = |place: usize, number: u16| match select {
            Select::Ordered => place as u64,
            Select::Random => ((place + group.len() - start) % group.len()) as u64,
            // One that was never measured is tried first: how else would it be.
            Select::Fastest => self.list[number as usize].round_trip.map_or(0, |span| span.0),
        };
        let cost = |&(place, &number): &(usize, &u16)| {
            (tries(number) + self.list[usize::from(number)].handicap(), rank(place, number))
        };
        let chosen = group.iter().enumerate().min_by_key(cost).map(|(_, &number)| number)?;
        // Of dead ones alone any may be the first that is back.
        let is_first = || group.iter().all(|&number| tries(number) == 0);
        if self.list[usize::from(chosen)].dead && is_first() {
            return Some(group[random.below(group.len() as u64) as usize]);
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::new("[::1]:53".parse().unwrap())
    }

    #[test]
    fn the_wait_follows_the_round_trip_and_doubles_with_every_try() {
        let mut server = server();
        let ceiling = Span::from_secs(1);
        assert_eq!(server.wait(0, ceiling), FIRST_WAIT);
        for _ in 0..100 {
            server.answered(Span::from_millis(80));
        }
        let wait = server.wait(0, ceiling);
        assert!(wait >= Span::from_millis(99) && wait < Span::from_millis(102), "{wait:?}");
        assert_eq!(server.wait(1, ceiling), Span(wait.0 * 2));
        assert_eq!(server.wait(7, ceiling), ceiling);
        server.answered(Span::from_millis(400));
        assert!(server.wait(0, ceiling) > Span::from_millis(400));
    }
}
pub use QueryKind as Kind;
