//! Groups of upstream servers: the default group and one group per forward zone, and the selection of the server to ask next.
//!
//! The state of one server is in `server.rs` (round trip) and `circuit_breaker.rs` (dead or alive).

use crate::base::time::{Instant, Span};
use crate::message::question::ForwardKey;
use crate::upstream::config::{Select, UpstreamConfig};
use crate::upstream::server::Server;
use crate::upstream::zones::ZoneNames;
use core::net::SocketAddr;
use std::collections::HashMap;

/// The most idle servers that are probed at once because another server was silent.
const MAX_IDLE_PROBES: usize = 8;
/// Longest slow start. For up to this time after all servers of a group were dead, part of the queries still get expired data.
const LONGEST_SLOW_START: Span = Span::from_secs(10);
/// With `select = "fastest"`, one question in this many goes to a random server.
const EXPLORATION_INTERVAL: u64 = 64;

/// All servers, and the groups that questions belong to.
pub struct ForwardZones {
    /// The servers by number. A server keeps its number while questions to it are in flight.
    pub list: Vec<Server>,
    /// Names of the forward zones.
    zones: ZoneNames,
    /// Groups: the default group, then those of the zones by their numbers.
    groups: Vec<Group>,
    /// Lists of servers, all different: many zones may have the same servers.
    lists: Vec<ServerList>,
    /// The highest group number so far.
    last_number: u32,
    /// True if a list has unanswered queries that nobody has taken.
    has_unanswered: bool,
}

/// Client queries that servers did not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Queries without an answer: the servers were silent, or reported a failure.
    pub failed: u64,
    /// Queries that got expired data instead (RFC 8767).
    pub expired: u64,
}

impl core::ops::AddAssign for Unanswered {
    fn add_assign(&mut self, other: Unanswered) {
        self.failed += other.failed;
        self.expired += other.expired;
    }
}

/// Group: the servers for the questions about one zone, or for all other questions.
struct Group {
    /// Number of the group in cache entries. A group keeps its number while its zone and its servers stay the same: a reply from
    /// one group is never used for questions of another group.
    number: u32,
    /// Index of its servers in `lists`.
    list: u32,
}

/// Servers that groups share.
struct ServerList {
    /// Addresses, in the order of the configuration.
    addresses: Vec<SocketAddr>,
    /// Server numbers.
    servers: Vec<u16>,
    /// Start and duration of the latest slow start.
    slow_start: (Instant, Span),
    /// Client queries that they did not answer, since these were taken last.
    unanswered: Unanswered,
}

impl ForwardZones {
    /// Creates the servers and groups of a configuration.
    pub fn new(upstream: &UpstreamConfig) -> ForwardZones {
        let mut servers = ForwardZones {
            list: Vec::new(),
            zones: ZoneNames::default(),
            groups: Vec::new(),
            lists: Vec::new(),
            last_number: 0,
            has_unanswered: false,
        };
        servers.configure(upstream, |_| true);
        servers
    }

    /// Applies another configuration. Servers that stay keep their state. `unused` returns true if nothing is in flight to
    /// a server, so that another server may get its number.
    pub fn configure(&mut self, upstream: &UpstreamConfig, unused: impl Fn(u16) -> bool) {
        // The time is linear in the number of zones: the worker answers nobody meanwhile.
        let mut places: HashMap<&[SocketAddr], u32> = HashMap::new();
        let mut different: Vec<&[SocketAddr]> = Vec::new();
        let all =
            core::iter::once(&upstream.forwarders).chain(upstream.zones.iter().map(|zone| &zone.forwarders));
        let list_of_group: Vec<u32> = all
            .map(|addresses| {
                *places.entry(addresses).or_insert_with(|| {
                    different.push(addresses);
                    different.len() as u32 - 1
                })
            })
            .collect();
        let old_lists = core::mem::take(&mut self.lists);
        self.lists = self.number_servers(&different, upstream, &unused);
        let before: HashMap<&[SocketAddr], usize> =
            old_lists.iter().map(|list| &list.addresses[..]).zip(0..).collect();
        let before: Vec<Option<usize>> =
            self.lists.iter().map(|list| before.get(&list.addresses[..]).copied()).collect();
        for (list, old) in self.lists.iter_mut().zip(&before) {
            list.unanswered = old.map_or(Unanswered::default(), |old| old_lists[old].unanswered);
        }
        self.number_groups(upstream, &list_of_group, &before);
    }

    /// Numbers the servers of each list. The servers that stay keep their numbers.
    fn number_servers(
        &mut self,
        lists: &[&[SocketAddr]],
        upstream: &UpstreamConfig,
        unused: &impl Fn(u16) -> bool,
    ) -> Vec<ServerList> {
        // The time is linear in the number of zones, so the identities are looked up in a map, too.
        let tls: HashMap<SocketAddr, u64> =
            upstream.tls.iter().map(|forwarder| (forwarder.address, forwarder.identity)).collect();
        let identified = |address: &SocketAddr| (*address, tls.get(address).copied());
        let mut numbers: HashMap<(SocketAddr, Option<u64>), u16> = self
            .list
            .iter()
            .zip(0..)
            .map(|(server, number)| ((server.address, server.tls), number))
            .collect();
        for server in &mut self.list {
            server.configured = false;
        }
        // Mark the servers that stay first, so that new servers do not take their numbers.
        for address in lists.iter().copied().flatten() {
            if let Some(&number) = numbers.get(&identified(address)) {
                self.list[usize::from(number)].configured = true;
            }
        }
        let mut number = |address: &SocketAddr| {
            let server = identified(address);
            let known = numbers.get(&server).copied();
            let number = known.or_else(|| self.add_server(Server::new(server.0, server.1), unused))?;
            numbers.insert(server, number);
            Some(number)
        };
        lists
            .iter()
            .map(|addresses| ServerList {
                addresses: addresses.to_vec(),
                servers: addresses.iter().filter_map(&mut number).collect(),
                slow_start: (Instant(0), Span::ZERO),
                unanswered: Unanswered::default(),
            })
            .collect()
    }

    /// Numbers the groups. `lists` has the list of each group, and `before` the earlier index of each list.
    fn number_groups(&mut self, upstream: &UpstreamConfig, lists: &[u32], before: &[Option<usize>]) {
        let old_groups = core::mem::take(&mut self.groups);
        let old_zones = core::mem::take(&mut self.zones);
        let old_place = |group: usize| match group.checked_sub(1) {
            None => Some(0),
            Some(zone) => Some(1 + old_zones.number(&upstream.zones[zone].name)?),
        };
        for (group, &list) in lists.iter().enumerate() {
            let kept = old_place(group)
                .and_then(|place| old_groups.get(place))
                .filter(|old| before[list as usize] == Some(old.list as usize));
            let number = match kept {
                Some(old) => old.number,
                None => {
                    self.last_number += 1;
                    self.last_number
                }
            };
            self.groups.push(Group { number, list });
        }
        self.zones = ZoneNames::new(upstream.zones.iter().map(|zone| zone.name.clone()).collect());
    }

    /// Returns the number of the group that a question belongs to. A reload that changes the group changes the number.
    #[inline]
    pub fn group_number(&self, question: ForwardKey<'_>) -> u32 {
        self.group_of(question).number
    }

    /// True if two questions are asked of the same servers.
    pub fn have_the_same(&self, question: ForwardKey<'_>, other: ForwardKey<'_>) -> bool {
        self.group_of(question).list == self.group_of(other).list
    }

    /// Returns the zone (wire form) of a group by its number, and true if it is the default group. None: a reload has replaced the
    /// group.
    pub fn zone_of(&self, number: u32) -> Option<(&[u8], bool)> {
        match self.groups.iter().position(|group| group.number == number)? {
            0 => Some((&[0], true)),
            index => Some((self.zones.name(index - 1)?, false)),
        }
    }

    /// Returns the group that a question belongs to.
    #[inline]
    fn group_of(&self, question: ForwardKey<'_>) -> &Group {
        // Most servers have no forward zones: then the name need not be looked at.
        if let [only] = &self.groups[..] {
            return only;
        }
        if question.is_own {
            return &self.groups[0];
        }
        &self.groups[self.zones.longest(question.forwarded_name()).map_or(0, |zone| zone + 1)]
    }

    /// Returns the list of servers of a question's group.
    #[inline]
    fn list_of(&self, question: ForwardKey<'_>) -> &ServerList {
        &self.lists[self.group_of(question).list as usize]
    }

    /// Counts a client query that the servers of this question did not answer.
    #[cold]
    pub(crate) fn count_unanswered(&mut self, question: ForwardKey<'_>, one: Unanswered) {
        let list = self.group_of(question).list as usize;
        self.lists[list].unanswered += one;
        self.has_unanswered = true;
    }

    /// Returns the client queries since the last call that servers did not answer, by the addresses of the servers.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(Vec<SocketAddr>, Unanswered)> {
        if !core::mem::take(&mut self.has_unanswered) {
            return Vec::new();
        }
        let lists = self.lists.iter_mut().filter(|list| list.unanswered != Unanswered::default());
        lists.map(|list| (list.addresses.clone(), core::mem::take(&mut list.unanswered))).collect()
    }

    /// True if every server of a question's group is dead.
    pub fn is_dead(&self, question: ForwardKey<'_>) -> bool {
        self.group(question).iter().all(|&number| self.list[number as usize].is_dead())
    }

    /// True if no server of a question's group is left that is alive and sends signatures, and one strips them.
    pub fn has_only_stripping(&self, question: ForwardKey<'_>) -> bool {
        let servers = || self.group(question).iter().map(|&number| &self.list[usize::from(number)]);
        servers().any(|server| server.signatures.strips())
            && servers().all(|server| server.signatures.strips() || server.is_dead())
    }

    /// Adds a server, and returns its number. None: there is no room for another server.
    fn add_server(&mut self, server: Server, unused: &impl Fn(u16) -> bool) -> Option<u16> {
        let free = (0..self.list.len()).find(|&n| !self.list[n].configured && unused(n as u16));
        match free {
            Some(number) => {
                self.list[number] = server;
                Some(number as u16)
            }
            None if self.list.len() < crate::limits::UPSTREAMS * 2 => {
                self.list.push(server);
                Some(self.list.len() as u16 - 1)
            }
            None => None,
        }
    }

    /// Returns the server numbers of the group that a question belongs to.
    #[inline]
    pub fn group(&self, question: ForwardKey<'_>) -> &[u16] {
        &self.list_of(question).servers
    }

    /// Chooses the server of a question's group to ask next. `tries` returns how often a server was asked for this question
    /// already. Servers that are alive and were not tried come first; the configured selection orders them.
    #[inline]
    pub fn choose(
        &self,
        question: ForwardKey<'_>,
        select: Select,
        random: &mut crate::base::random::Random,
        tries: impl Fn(u16) -> u32,
    ) -> Option<u16> {
        let group = self.group(question);
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
            (tries(number) + self.list[usize::from(number)].handicap(), rank(place, number))
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

impl ForwardZones {
    fn is_all_dead(&self, group: &[u16]) -> bool {
        group.iter().all(|&number| self.list[usize::from(number)].is_dead())
    }

    /// True if the server belongs to a group whose servers are all dead.
    pub(crate) fn is_urgent(&self, number: u16) -> bool {
        self.lists.iter().any(|list| list.servers.contains(&number) && self.is_all_dead(&list.servers))
    }

    /// Shortens the pauses between probes in groups whose servers are all dead. Called when a server has died. `jitter`: 64 random
    /// bits, which spread the probes over a quarter of a pause before and after its end.
    pub(crate) fn expedite_probes(&mut self, now: Instant, jitter: u64) {
        for number in 0..self.list.len() {
            if self.list[number].is_dead() && self.is_urgent(number as u16) {
                self.list[number].breaker.expedite_probe(now, jitter);
            }
        }
    }

    /// Probes the idle servers of a question's group, because another server of the group (`silent`) does not reply.
    pub(crate) fn probe_idle_servers(&mut self, question: ForwardKey<'_>, silent: u16, now: Instant) {
        let list = self.group_of(question).list as usize;
        let mut probed = 0;
        for place in 0..self.lists[list].servers.len() {
            let number = self.lists[list].servers[place];
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
        for ServerList { servers, slow_start, .. } in &mut self.lists {
            let others_dead =
                servers.iter().all(|&other| other == number || self.list[usize::from(other)].is_dead());
            if servers.contains(&number) && others_dead {
                // The outage began when the last server died. The slow start takes as long as the outage, within its bound.
                let died = servers.iter().map(|&other| self.list[usize::from(other)].breaker.opened()).max();
                let span = died.map_or(Span::ZERO, |died| now - died).min(LONGEST_SLOW_START);
                *slow_start = (now, span);
                // The other servers may have recovered as well, so their pauses start anew.
                for &member in servers.iter() {
                    self.list[usize::from(member)].breaker.reset_pause(now);
                }
            }
        }
    }

    /// True if a question with expired data in the cache is not asked yet, because its servers have only just recovered.
    ///
    /// Without a slow start, all data that expired during the outage would be asked for at once. The share of questions that
    /// are asked grows linearly with time.
    pub(crate) fn in_slow_start(
        &self,
        question: ForwardKey<'_>,
        now: Instant,
        random: impl FnOnce(u64) -> u64,
    ) -> bool {
        let (since, span) = self.list_of(question).slow_start;
        let past = now - since;
        past < span && random(span.0) >= past.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Transport;
    use crate::upstream::config::ForwardZone;
    use wire::Type;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 53))
    }

    fn name(zone: usize) -> Box<[u8]> {
        let label = format!("zone{zone}");
        [&[label.len() as u8], label.as_bytes(), b"\x07example\0"].concat().into()
    }

    /// A configuration with this many zones; zone `n` has the servers of `list(n)`.
    fn config(zones: usize, list: impl Fn(usize) -> u8) -> UpstreamConfig {
        let zone = |zone| ForwardZone { name: name(zone), forwarders: vec![address(list(zone)), address(9)] };
        UpstreamConfig {
            forwarders: vec![address(1)],
            zones: (0..zones).map(zone).collect(),
            select: Select::Ordered,
            timeout: Span::from_secs(1),
            tries: 3,
            transport: Transport::Udp,
            mix_case: true,
            tls: Vec::new(),
        }
    }

    fn number(groups: &ForwardZones, name: &[u8]) -> u32 {
        groups.group_number(ForwardKey { name, qtype: Type::A, is_own: false })
    }

    #[test]
    fn each_of_many_zones_has_its_servers_and_equal_lists_are_stored_once() {
        for zones in [0, 1, 3, 60_000] {
            let groups = ForwardZones::new(&config(zones, |zone| 2 + (zone % 4) as u8));
            let servers = |name: &[u8]| -> Vec<SocketAddr> {
                let key = ForwardKey { name, qtype: Type::A, is_own: false };
                groups.group(key).iter().map(|&number| groups.list[usize::from(number)].address).collect()
            };
            assert_eq!(servers(b"\x03www\x05other\0"), [address(1)]);
            for zone in (0..zones).step_by(997) {
                let below = [b"\x03WWW", &name(zone)[..]].concat();
                assert_eq!(servers(&below), [address(2 + (zone % 4) as u8), address(9)]);
            }
            assert_eq!(groups.lists.len(), 1 + zones.min(4));
        }
    }

    #[test]
    fn the_parent_of_a_forward_zone_has_its_ds_records() {
        let of =
            |name: &'static [u8], last| ForwardZone { name: name.into(), forwarders: vec![address(last)] };
        let zones = vec![of(b"\x07example\0", 2), of(b"\x04corp\x07example\0", 3), of(b"\x01x\x04test\0", 4)];
        let mut upstream = UpstreamConfig { zones, ..config(0, |_| 0) };
        let server = |upstream: &UpstreamConfig, name, qtype| {
            let groups = ForwardZones::new(upstream);
            let [only] = groups.group(ForwardKey { name, qtype, is_own: false }) else {
                panic!("one server")
            };
            groups.list[usize::from(*only)].address
        };
        // RFC 4035 section 3.1.4.1: a DS query for a zone cut is one for the parent zone.
        for (name, data, ds) in [
            (&b"\x04Corp\x07example\0"[..], 3, 2),
            (b"\x07example\0", 2, 1),
            (b"\x01x\x04test\0", 4, 1),
            // A delegation inside of the zone: its parent is the zone.
            (b"\x01a\x04corp\x07example\0", 3, 3),
            (b"\x05other\0", 1, 1),
            (b"\0", 1, 1),
        ] {
            assert_eq!(server(&upstream, name, Type::SOA), address(data), "{name:?}");
            assert_eq!(server(&upstream, name, Type::DS), address(ds), "{name:?}");
        }
        // The forward zone "." has the names that no other has, and the parent of its top-level domains; it has no parent itself.
        upstream.zones.push(of(b"\0", 5));
        for name in [&b"\0"[..], b"\x07example\0", b"\x05other\0"] {
            assert_eq!(server(&upstream, name, Type::DS), address(5), "{name:?}");
        }
    }

    #[test]
    fn a_group_keeps_its_number_while_its_zone_and_its_servers_stay_the_same() {
        let mut groups = ForwardZones::new(&config(20, |_| 2));
        let numbers =
            |groups: &ForwardZones| -> Vec<u32> { (0..20).map(|zone| number(groups, &name(zone))).collect() };
        let (before, default) = (numbers(&groups), number(&groups, b"\0"));
        groups.configure(&config(20, |zone| if zone == 7 { 3 } else { 2 }), |_| true);
        let after = numbers(&groups);
        for zone in 0..20 {
            assert_eq!(after[zone] == before[zone], zone != 7, "{zone}");
        }
        assert_eq!(number(&groups, b"\0"), default);
        // Fewer zones: the others keep their numbers, and the names of the rest belong to the default group.
        groups.configure(&config(3, |_| 2), |_| true);
        assert_eq!(numbers(&groups)[..3], before[..3]);
        assert_eq!(number(&groups, &name(5)), default);
        // A zone that comes back has a new number: its cached replies may come from other servers.
        groups.configure(&config(20, |_| 2), |_| true);
        assert!(
            numbers(&groups)[3..].iter().all(|number| !before.contains(number) && !after.contains(number))
        );
    }
}
