//! The upstream servers: what is known of each (round trip; life, in `breaker.rs`), and which one is asked next.
//!
//! Waiting times follow the measured round trip as in RFC 6298, not a constant. Each try has an ID of its own, so it is
//! known which one a reply belongs to, and late replies are measured like any other (the ambiguity that Karn's algorithm
//! avoids does not arise).

use crate::base::time::{Instant, Span};
use crate::upstream::config::{ForwardZone, Select, UpstreamConfig};
use crate::upstream::server::Server;
use core::net::SocketAddr;

/// Idle servers that are probed because another one was silent.
const PROBED_AT_ONCE: usize = 8;
/// For so long after all servers of a group were dead, expired data are still given for a part of the questions.
const LONGEST_SLOW_START: Span = Span::from_secs(10);
/// With `select = "fastest"`, one question in so many goes to any server.
const EXPLORE: u64 = 64;

/// All servers, and the groups that names belong to.
pub struct ServerGroups {
    /// The servers by number; numbers stay while questions to them are in flight.
    pub list: Vec<Server>,
    pub(crate) default: Vec<u16>,
    /// Zones, those with the most octets first, so the first match is the longest.
    pub(crate) zones: Vec<(Box<[u8]>, Vec<u16>)>,
    /// The number of the default group, and those of the zones.
    pub(crate) numbers: Vec<u32>,
    /// Of each group: since when it slow_starts, and for how long (`breaker.rs`).
    pub(crate) slow_starts: Vec<(Instant, Span)>,
    /// Groups that have a number: the zone (the root for the default group) and its servers.
    known: Vec<(u32, Box<[u8]>, Vec<SocketAddr>)>,
    /// The next number.
    fresh: u32,
}

impl ServerGroups {
    /// The servers of a configuration.
    pub fn new(upstream: &UpstreamConfig) -> ServerGroups {
        let mut servers = ServerGroups {
            list: Vec::new(),
            default: Vec::new(),
            zones: Vec::new(),
            numbers: Vec::new(),
            slow_starts: Vec::new(),
            known: Vec::new(),
            fresh: 0,
        };
        servers.configure(upstream, |_| true);
        servers
    }

    /// Takes over another configuration. Servers that stay keep what is known of them. `unused` tells whether
    /// nothing is in flight to a server, so that its number may be given to another.
    pub fn configure(&mut self, upstream: &UpstreamConfig, unused: impl Fn(u16) -> bool) {
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
        self.slow_starts = vec![(Instant(0), Span::ZERO); self.numbers.len()];
    }

    /// A group keeps its number while its zone and its servers stay what they are: what one group said is never given
    /// for another one's names.
    fn number_groups(&mut self, upstream: &UpstreamConfig) {
        let root = Box::from(&[0][..]);
        let groups =
            core::iter::once((&root, &upstream.forwarders)).chain(self.zones.iter().map(|(name, _)| {
                let same = |zone: &&ForwardZone| zone.name == *name;
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
        self.group(name).iter().all(|&number| self.list[number as usize].is_dead())
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
        select: Select,
        random: &mut crate::base::random::Random,
        tries: impl Fn(u16) -> u32,
    ) -> Option<u16> {
        let group = self.group(name);
        if let [only] = group {
            return Some(*only);
        }
        let select = match select {
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
            (tries(number) + self.list[usize::from(number)].breaker.handicap(), rank(place, number))
        };
        let chosen = group.iter().enumerate().min_by_key(cost).map(|(_, &number)| number)?;
        // Of dead ones alone any may be the first that is back.
        let is_first = || group.iter().all(|&number| tries(number) == 0);
        if self.list[usize::from(chosen)].is_dead() && is_first() {
            return Some(group[random.below(group.len() as u64) as usize]);
        }
        Some(chosen)
    }
}

impl ServerGroups {
    /// The groups, each a list of the numbers of its servers.
    fn groups(&self) -> impl Iterator<Item = &[u16]> {
        core::iter::once(&self.default[..]).chain(self.zones.iter().map(|(_, numbers)| &numbers[..]))
    }

    fn is_all_dead(&self, group: &[u16]) -> bool {
        group.iter().all(|&number| self.list[usize::from(number)].is_dead())
    }

    /// Whether there is a group whose servers are all dead, this one among them.
    pub(crate) fn is_urgent(&self, number: u16) -> bool {
        self.groups().any(|group| group.contains(&number) && self.is_all_dead(group))
    }

    /// A server has died: where none is left, none may pause for long.
    pub(crate) fn expedite_probes(&mut self, now: Instant, jitter: u64) {
        for number in 0..self.list.len() {
            if self.list[number].is_dead() && self.is_urgent(number as u16) {
                self.list[number].breaker.expedite_probe(now, jitter);
            }
        }
    }

    /// A server of a name's group is silent: those that nobody has asked for a while are to prove that they live.
    pub(crate) fn probe_idle_servers(&mut self, name: &[u8], silent: u16, now: Instant) {
        let mut place = 0;
        let mut probed = 0;
        while let Some(&number) = self.group(name).get(place) {
            place += 1;
            if number != silent && self.list[usize::from(number)].breaker.suspect_if_idle(now) {
                probed += 1;
                if probed == PROBED_AT_ONCE {
                    return;
                }
            }
        }
    }

    /// A server that was dead is back: a group of which it is the first one slow_starts.
    #[cold]
    pub(crate) fn start_slow_start(&mut self, number: u16, now: Instant) {
        for place in 0..self.numbers.len() {
            let group = if place == 0 { &self.default } else { &self.zones[place - 1].1 };
            let others_dead =
                group.iter().all(|&other| other == number || self.list[usize::from(other)].is_dead());
            if group.contains(&number) && others_dead {
                // It began when the last one died.
                let died = group.iter().map(|&other| self.list[usize::from(other)].breaker.opened()).max();
                let span = died.map_or(Span::ZERO, |died| now - died).min(LONGEST_SLOW_START);
                self.slow_starts[place] = (now, span);
                // The others may be back as well: their pauses were for as long as it stood in for them.
                for member in 0..group.len() {
                    let group = if place == 0 { &self.default } else { &self.zones[place - 1].1 };
                    let member = group[member];
                    self.list[usize::from(member)].breaker.reset_pause(now);
                }
            }
        }
    }

    /// Whether a question for which there are expired data is to be asked, while its servers have only just come back:
    /// all that has expired meanwhile would be asked for at once otherwise. The part that is grows with the time.
    pub(crate) fn in_slow_start(&self, name: &[u8], now: Instant, random: impl FnOnce(u64) -> u64) -> bool {
        let (since, span) = self.slow_starts[self.group_place(name)];
        let past = now - since;
        past < span && random(span.0) >= past.0
    }
}
