//! Groups of upstream servers: the default group and one group per forward zone, and the selection of the server to ask next.
//!
//! The state of one server is in `server.rs` (round trip) and `circuit_breaker.rs` (dead or alive).

use crate::base::time::{Instant, Span};
use crate::upstream::config::{ForwardZone, Select, UpstreamConfig};
use crate::upstream::server::Server;
use core::net::SocketAddr;

/// The most idle servers that are probed at once because another server was silent.
const MAX_IDLE_PROBES: usize = 8;
/// Longest slow start. For up to this time after all servers of a group were dead, part of the queries still get expired data.
const LONGEST_SLOW_START: Span = Span::from_secs(10);
/// With `select = "fastest"`, one question in this many goes to a random server.
const EXPLORATION_INTERVAL: u64 = 64;

/// All servers, and the groups that names belong to.
pub struct ServerGroups {
    /// The servers by number. A server keeps its number while questions to it are in flight.
    pub list: Vec<Server>,
    /// Server numbers of the default group.
    pub(crate) default: Vec<u16>,
    /// Forward zones and their server numbers. Longer names come first, so the first match is the longest.
    pub(crate) zones: Vec<(Box<[u8]>, Vec<u16>)>,
    /// Group numbers: that of the default group, then those of the zones.
    pub(crate) group_numbers: Vec<u32>,
    /// Start and duration of the latest slow start of each group.
    pub(crate) slow_starts: Vec<(Instant, Span)>,
    /// Groups of the current configuration: number, zone (the root for the default group) and servers.
    numbered_groups: Vec<(u32, Box<[u8]>, Vec<SocketAddr>)>,
    /// The highest group number so far.
    last_number: u32,
}

impl ServerGroups {
    /// Creates the servers and groups of a configuration.
    pub fn new(upstream: &UpstreamConfig) -> ServerGroups {
        let mut servers = ServerGroups {
            list: Vec::new(),
            default: Vec::new(),
            zones: Vec::new(),
            group_numbers: Vec::new(),
            slow_starts: Vec::new(),
            numbered_groups: Vec::new(),
            last_number: 0,
        };
        servers.configure(upstream, |_| true);
        servers
    }

    /// Applies another configuration. Servers that stay keep their state. `unused` returns true if nothing is in flight to
    /// a server, so that another server may get its number.
    pub fn configure(&mut self, upstream: &UpstreamConfig, unused: impl Fn(u16) -> bool) {
        for server in &mut self.list {
            server.configured = false;
        }
        // Mark the servers that stay first, so that new servers do not take their numbers.
        let all = upstream.forwarders.iter().chain(upstream.zones.iter().flat_map(|zone| &zone.forwarders));
        for address in all.clone() {
            if let Some(server) = self.list.iter_mut().find(|server| server.address == *address) {
                server.configured = true;
            }
        }
        self.default =
            upstream.forwarders.iter().filter_map(|&address| self.server_number(address, &unused)).collect();
        self.zones = upstream
            .zones
            .iter()
            .map(|zone| {
                let numbers = zone
                    .forwarders
                    .iter()
                    .filter_map(|&address| self.server_number(address, &unused))
                    .collect();
                (zone.name.clone(), numbers)
            })
            .collect();
        self.zones.sort_by_key(|(name, _)| core::cmp::Reverse(name.len()));
        self.number_groups(upstream);
        self.slow_starts = vec![(Instant(0), Span::ZERO); self.group_numbers.len()];
    }

    /// Numbers the groups. A group keeps its number while its zone and its servers stay the same: a reply from one group is
    /// never used for names of another group.
    fn number_groups(&mut self, upstream: &UpstreamConfig) {
        let root = Box::from(&[0][..]);
        let groups =
            core::iter::once((&root, &upstream.forwarders)).chain(self.zones.iter().map(|(name, _)| {
                let has_name = |zone: &&ForwardZone| zone.name == *name;
                (
                    name,
                    &upstream
                        .zones
                        .iter()
                        // `zones` was built from the same configuration by the caller, `configure`.
                        .find(has_name)
                        .unwrap_or_else(|| unreachable!("every zone comes from this configuration"))
                        .forwarders,
                )
            }));
        let before = core::mem::take(&mut self.numbered_groups);
        self.group_numbers.clear();
        for (zone, servers) in groups {
            let number = match before.iter().find(|(_, name, list)| name == zone && list == servers) {
                Some(&(number, ..)) => number,
                None => {
                    self.last_number += 1;
                    self.last_number
                }
            };
            self.group_numbers.push(number);
            self.numbered_groups.push((number, zone.clone(), servers.clone()));
        }
    }

    /// Returns the number of the group that a name belongs to. A reload that changes the group changes the number.
    #[inline]
    pub fn group_number(&self, name: &[u8]) -> u32 {
        self.group_numbers[self.group_index(name)]
    }

    /// Returns the zone (wire form) of a group by its number, and true if it is the default group. None: a reload has replaced the
    /// group.
    pub fn zone_of(&self, number: u32) -> Option<(&[u8], bool)> {
        let index = self.numbered_groups.iter().position(|&(other, ..)| other == number)?;
        Some((&self.numbered_groups[index].1, index == 0))
    }

    /// Returns the index of the group that a name belongs to: 0 is the default group, and the zones follow.
    #[inline]
    pub(crate) fn group_index(&self, name: &[u8]) -> usize {
        let zone = self.zones.iter().position(|(zone, _)| wire::is_at_or_below(name, zone));
        zone.map_or(0, |zone| zone + 1)
    }

    /// True if every server of the name's group is dead.
    pub fn is_dead(&self, name: &[u8]) -> bool {
        self.group(name).iter().all(|&number| self.list[number as usize].is_dead())
    }

    /// Returns the number of a server, and adds the server if it is new. None: there is no room for another server.
    fn server_number(&mut self, address: SocketAddr, unused: &impl Fn(u16) -> bool) -> Option<u16> {
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

    /// Returns the server numbers of the group that a name (wire form, any letter case) belongs to.
    #[inline]
    pub fn group(&self, name: &[u8]) -> &[u16] {
        for (zone, numbers) in &self.zones {
            if wire::is_at_or_below(name, zone) {
                return numbers;
            }
        }
        &self.default
    }

    /// Chooses the server of the name's group to ask next. `tries` returns how often a server was asked for this question
    /// already. Servers that are alive and were not tried come first; the configured selection orders them.
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
            // Without occasional queries to other servers, a server that was slow once would never be measured again.
            Select::Fastest if random.below(EXPLORATION_INTERVAL) == 0 => Select::Random,
            select => select,
        };
        let start = match select {
            Select::Random if !group.is_empty() => random.below(group.len() as u64) as usize,
            _ => 0,
        };
        let rank = |place: usize, number: u16| match select {
            Select::Ordered => place as u64,
            Select::Random => ((place + group.len() - start) % group.len()) as u64,
            // A server without a measurement is tried first, to get one.
            Select::Fastest => self.list[number as usize].round_trip.map_or(0, |span| span.0),
        };
        let cost = |&(place, &number): &(usize, &u16)| {
            (tries(number) + self.list[usize::from(number)].breaker.handicap(), rank(place, number))
        };
        let chosen = group.iter().enumerate().min_by_key(cost).map(|(_, &number)| number)?;
        // If all servers are dead, any of them may be the first to recover.
        let is_first = || group.iter().all(|&number| tries(number) == 0);
        if self.list[usize::from(chosen)].is_dead() && is_first() {
            return Some(group[random.below(group.len() as u64) as usize]);
        }
        Some(chosen)
    }
}

impl ServerGroups {
    /// The server numbers of each group.
    fn groups(&self) -> impl Iterator<Item = &[u16]> {
        core::iter::once(&self.default[..]).chain(self.zones.iter().map(|(_, numbers)| &numbers[..]))
    }

    fn is_all_dead(&self, group: &[u16]) -> bool {
        group.iter().all(|&number| self.list[usize::from(number)].is_dead())
    }

    /// True if the server belongs to a group whose servers are all dead.
    pub(crate) fn is_urgent(&self, number: u16) -> bool {
        self.groups().any(|group| group.contains(&number) && self.is_all_dead(group))
    }

    /// Shortens the pauses between probes in groups whose servers are all dead. Called when a server has died.
    pub(crate) fn expedite_probes(&mut self, now: Instant, jitter: u64) {
        for number in 0..self.list.len() {
            if self.list[number].is_dead() && self.is_urgent(number as u16) {
                self.list[number].breaker.expedite_probe(now, jitter);
            }
        }
    }

    /// Probes the idle servers of a name's group, because another server of the group (`silent`) does not reply.
    pub(crate) fn probe_idle_servers(&mut self, name: &[u8], silent: u16, now: Instant) {
        let mut place = 0;
        let mut probed = 0;
        while let Some(&number) = self.group(name).get(place) {
            place += 1;
            if number != silent && self.list[usize::from(number)].breaker.suspect_if_idle(now) {
                probed += 1;
                if probed == MAX_IDLE_PROBES {
                    return;
                }
            }
        }
    }

    /// Starts the slow start of each group whose servers were all dead and of which `number` is the first to recover.
    #[cold]
    pub(crate) fn start_slow_start(&mut self, number: u16, now: Instant) {
        for place in 0..self.group_numbers.len() {
            let group = if place == 0 { &self.default } else { &self.zones[place - 1].1 };
            let others_dead =
                group.iter().all(|&other| other == number || self.list[usize::from(other)].is_dead());
            if group.contains(&number) && others_dead {
                // The outage began when the last server died. The slow start takes as long as the outage, within its bound.
                let died = group.iter().map(|&other| self.list[usize::from(other)].breaker.opened()).max();
                let span = died.map_or(Span::ZERO, |died| now - died).min(LONGEST_SLOW_START);
                self.slow_starts[place] = (now, span);
                // The other servers may have recovered as well, so their pauses start anew.
                for member in 0..group.len() {
                    let group = if place == 0 { &self.default } else { &self.zones[place - 1].1 };
                    let member = group[member];
                    self.list[usize::from(member)].breaker.reset_pause(now);
                }
            }
        }
    }

    /// True if a question with expired data in the cache is not asked yet, because its servers have only just recovered.
    ///
    /// Without a slow start, all data that expired during the outage would be asked for at once. The share of questions that
    /// are asked grows linearly with time.
    pub(crate) fn in_slow_start(&self, name: &[u8], now: Instant, random: impl FnOnce(u64) -> u64) -> bool {
        let (since, span) = self.slow_starts[self.group_index(name)];
        let past = now - since;
        past < span && random(span.0) >= past.0
    }
}
