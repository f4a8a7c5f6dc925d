//! The NAT64 gateways of a world, with the network between them and the prober: they die, fall silent or reset connections, come back, and
//! probes of living ones are lost. The state machine of the server's prober watches them.
//!
//! Gateways lie, too: what they carry is one thing, and what becomes of their probes another. The prober cannot see the first, and nothing here
//! has it. A gateway that carries nothing but answers its probes is alive, and must stay in the answers; one that carries everything but does
//! not answer them in time is dead, and must leave.
//!
//! [`Gateways::choices`] says which prefixes an answer may have by the states that the engine was told. [`Gateways::check`] compares an
//! answer with the truth, and with the answers to the same client network before.

use crate::client_view::Seen;
use crate::config::Config;
use crate::gateway_config::GatewayConfig;
use crate::ground_truth::{MILLI, SECOND};
use crate::outbox::instant;
use crate::prefix::Prefix;
use crate::rng::Rng;
use engine::Span;
use engine::dns64::gateways::{GatewayTable, Gateways as EngineGateways, PrefixState, Spread};
use gateways::{Destination, Drain, Failure, Gateway, HealthSettings, Monitor, Probe, RoundId};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Choices that are remembered of a client network.
const REMEMBERED: usize = 8;

/// Time by which an answer is late, beside the round trip. It is the longest timeout of the probes of any configuration.
const LATE: u64 = SECOND;

/// Fate of a gateway: what becomes of its probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// They are answered.
    Alive,
    /// Nothing comes back.
    Silent,
    /// They are answered in the time of later ones.
    Late,
    /// They are reset.
    Resets,
    /// ICMP errors come back.
    Prohibits,
}

/// Message that comes back for a probe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reply {
    Answer,
    Reset,
    IcmpError,
}

/// A gateway as it is, whatever the prober thinks.
struct Truth {
    prefix: Prefix,
    fate: Fate,
    /// Begin of this fate, without the jumps of the clock.
    since: u64,
    /// End of this fate.
    until: u64,
}

/// The prefix that a client network got, among these that it could have got.
struct Choice {
    among: Vec<(Prefix, u32)>,
    chosen: Prefix,
}

/// Prefixes that an answer may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Of the general ones.
    pub general: Vec<Prefix>,
    /// That of the rule is one of them.
    pub has_legacy: bool,
}

/// See the module.
pub struct Gateways {
    rng: Rng,
    monitor: Monitor,
    table: Option<Arc<GatewayTable>>,
    states: Arc<[PrefixState]>,
    truths: Vec<Truth>,
    /// Replies under way: time, round, place of the probe, message.
    replies: BinaryHeap<Reverse<(u64, u64, usize, Reply)>>,
    /// Lost probes of living gateways, of a thousand.
    loss: u64,
    /// Round trip of probes, nanoseconds.
    round_trip: u64,
    /// Time of the last reload, without the jumps of the clock.
    configured: u64,
    /// Version of the states that the engine was told.
    version: u64,
    /// Probes go on.
    is_running: bool,
    choices: HashMap<u64, Vec<Choice>>,
    /// Changes of the states.
    pub changes: u64,
}

impl Gateways {
    /// Gateways of the world of a seed. They draw numbers of their own: a world without gateways plays as if there were none.
    pub fn new(seed: u64) -> Gateways {
        let mut rng = Rng::new(seed ^ 0xbb67_ae85_84ca_a73b);
        Gateways {
            monitor: Monitor::new(rng.next_u64()),
            table: None,
            states: Arc::new([]),
            truths: vec![],
            replies: BinaryHeap::new(),
            loss: *rng.choose(&[0, 0, 20, 200]),
            round_trip: (1 + rng.below(150)) * MILLI,
            configured: 0,
            version: 0,
            is_running: true,
            choices: HashMap::new(),
            changes: 0,
            rng,
        }
    }

    /// Draws whether a configuration has gateways, and how.
    pub fn draw(&mut self, config: &mut Config) {
        if !self.rng.permille(400) {
            return;
        }
        for place in 0..self.rng.below(3) as u8 {
            let prefix = Prefix::draw(&mut self.rng, 20 + place);
            if !config.prefixes.iter().any(|other| is_same(other, &prefix)) {
                config.prefixes.push(prefix);
            }
        }
        let mut known: Vec<Prefix> = vec![];
        config.prefixes.retain(|prefix| {
            let is_new = !known.iter().any(|other| is_same(other, prefix));
            known.push(*prefix);
            is_new
        });
        config.gateways = Some(GatewayConfig::draw(&mut self.rng, config.prefixes.len()));
    }

    /// Watches the gateways of a configuration. `awake`: the time without the jumps of the clock.
    pub fn configure(&mut self, config: &Config, now: u64, awake: u64) {
        self.configured = awake;
        self.choices.clear();
        self.table = None;
        let Some(settings) = &config.gateways else {
            self.monitor.configure(instant(now), HealthSettings::default(), vec![], |_| false);
            return;
        };
        let table = Arc::new(settings.table(&config.prefixes, config.legacy.as_ref()));
        let mut watched: Vec<Gateway> = vec![];
        for (prefix, _) in config.all_prefixes().zip(&settings.probed).filter(|(_, is_probed)| **is_probed) {
            if !watched.iter().any(|one| is_same_network(&one.prefix, prefix)) {
                let probes = [Probe::Tcp([192, 0, 2, 10], 443), Probe::Icmp([192, 0, 2, 11])];
                let targets = 1 + self.rng.below(2) as usize;
                watched.push(Gateway { prefix: prefix.to_engine(), probes: probes[..targets].to_vec() });
            }
            if !self.truths.iter().any(|truth| is_same(&truth.prefix, prefix)) {
                let until = now + self.rng.exponential(20 * SECOND);
                self.truths.push(Truth { prefix: *prefix, fate: Fate::Alive, since: awake, until });
            }
        }
        self.monitor
            .configure(instant(now), settings.health, watched, |prefix| table.number_of(prefix).is_some());
        self.states = self.monitor.states(&table, instant(now));
        self.version = self.monitor.version();
        self.table = Some(table);
    }

    /// What the engine is told.
    pub fn to_engine(&self) -> Option<EngineGateways> {
        let table = self.table.as_ref()?;
        Some(EngineGateways::new(Arc::clone(table), Arc::clone(&self.states)))
    }

    /// The gateways live and die no more, and nobody looks after them.
    pub fn stop(&mut self) {
        self.is_running = false;
    }

    /// Next time at which something happens.
    pub fn next(&self) -> Option<u64> {
        if !self.is_running || self.table.is_none() {
            return None;
        }
        let reply = self.replies.peek().map(|Reverse(reply)| reply.0);
        let fate = self.truths.iter().map(|truth| truth.until).min();
        [self.monitor.next().map(|at| at.0), reply, fate].into_iter().flatten().min()
    }

    /// Lets happen what is due. True if the states have changed.
    pub fn step(&mut self, now: u64, awake: u64) -> bool {
        if !self.is_running || self.table.is_none() {
            return false;
        }
        for truth in self.truths.iter_mut().filter(|truth| truth.until <= now) {
            let is_alive = truth.fate == Fate::Alive;
            let deaths = [Fate::Silent, Fate::Late, Fate::Resets, Fate::Prohibits];
            truth.fate = if is_alive { *self.rng.choose(&deaths) } else { Fate::Alive };
            // One time in four it flaps.
            let mean = if self.rng.permille(250) { SECOND / 2 } else { 15 * SECOND };
            (truth.since, truth.until) = (awake, now + 1 + self.rng.exponential(mean));
        }
        while let Some(&Reverse((at, round, probe, reply))) = self.replies.peek().filter(|one| one.0.0 <= now)
        {
            self.replies.pop();
            // After a jump of the clock, too, a late reply finds its round over.
            self.monitor.expire(instant(at));
            match reply {
                Reply::Answer => self.monitor.answered(RoundId(round), instant(at)),
                Reply::Reset => self.monitor.failed(RoundId(round), probe, Failure::Reset, instant(at)),
                Reply::IcmpError => {
                    self.monitor.failed(RoundId(round), probe, Failure::Unreachable, instant(at));
                }
            }
        }
        self.monitor.expire(instant(now));
        while let Some(round) = self.monitor.take_due(instant(now)) {
            for (place, destination) in round.destinations.iter().enumerate() {
                let (Destination::Tcp(address, _) | Destination::Icmp(address)) = destination;
                if let Some((after, reply)) = self.reply(*address) {
                    self.replies.push(Reverse((now + after, round.id.0, place, reply)));
                }
            }
        }
        self.refresh(now)
    }

    /// The reply to a probe to an address, with the time that it takes; none: nothing comes back.
    fn reply(&mut self, address: Ipv6Addr) -> Option<(u64, Reply)> {
        // The longest prefix leads to its gateway.
        let under = self.truths.iter().filter(|truth| truth.prefix.contains(&address.octets()));
        let fate = under.max_by_key(|truth| truth.prefix.length)?.fate;
        let round_trip = self.round_trip;
        match fate {
            Fate::Alive => (!self.rng.permille(self.loss)).then_some((round_trip, Reply::Answer)),
            Fate::Silent => None,
            Fate::Late => Some((LATE + round_trip, Reply::Answer)),
            Fate::Resets => Some((round_trip, Reply::Reset)),
            Fate::Prohibits => Some((round_trip, Reply::IcmpError)),
        }
    }

    /// Draws whether an operator acts.
    pub fn draws_drain(&mut self) -> bool {
        self.rng.below(1000) < 2
    }

    /// An operator drains a prefix, or takes one back. True if the states have changed.
    pub fn drain(&mut self, config: &Config, now: u64) -> bool {
        let Some(prefix) = config.prefixes.get(self.rng.below(config.prefixes.len() as u64) as usize) else {
            return false;
        };
        let prefix = prefix.to_engine();
        if self.table.is_none() || self.monitor.undrain(&prefix) {
            return self.refresh(now);
        }
        let over = Span(*self.rng.choose(&[0, 60 * SECOND]));
        self.monitor.drain(prefix, Drain { since: instant(now), over });
        self.refresh(now)
    }

    /// Takes the states over. True if they have changed.
    fn refresh(&mut self, now: u64) -> bool {
        let Some(table) = self.table.as_ref().filter(|_| self.monitor.version() != self.version) else {
            return false;
        };
        self.version = self.monitor.version();
        self.states = self.monitor.states(table, instant(now));
        while self.monitor.take_change().is_some() {
            self.changes += 1;
        }
        true
    }

    /// State of a prefix as the engine knows it. One that the table does not have is up.
    fn state(&self, prefix: &Prefix) -> PrefixState {
        let number = self.table.as_ref().and_then(|table| table.number_of(&prefix.to_engine()));
        number.and_then(|number| self.states.get(number)).copied().unwrap_or_default()
    }

    /// Ranks of a prefix that are possible: 2 up, 1 draining, 0 down. While a prefix drains over a time, only the engine knows which networks
    /// have left it; with another spread all leave it at once.
    fn ranks(&self, prefix: &Prefix, spread: Spread) -> &'static [u8] {
        match self.state(prefix) {
            PrefixState::Up => &[2],
            PrefixState::Leaving(_) if spread == Spread::Client => &[2, 1],
            PrefixState::Leaving(_) | PrefixState::Draining => &[1],
            PrefixState::Down => &[0],
        }
    }

    /// The prefixes that an answer may have: all choices that the configuration allows in the present states. None: nobody knows of gateways.
    pub fn choices(&self, config: &Config) -> Vec<Option<Given>> {
        let Some(settings) = &config.gateways else { return vec![None] };
        let mut ranked: Vec<Vec<u8>> = vec![vec![]];
        for prefix in &config.prefixes {
            let next = |known: Vec<u8>| {
                self.ranks(prefix, settings.spread).iter().map(move |&rank| [&known[..], &[rank]].concat())
            };
            ranked = ranked.into_iter().flat_map(next).collect();
        }
        let mut choices = vec![];
        for ranks in ranked {
            let best = ranks.iter().copied().max().unwrap_or(0);
            let is_refused = |best: u8| settings.is_empty_if_all_down && best < 2;
            let legacy_rank =
                config.legacy.iter().flat_map(|prefix| self.ranks(prefix, settings.spread)).copied();
            let legacies: Vec<bool> = match config.legacy {
                Some(_) => legacy_rank.map(|rank| !is_refused(rank)).collect(),
                None => vec![false],
            };
            for has_legacy in legacies {
                let best_ones = (0..ranks.len()).filter(|&place| ranks[place] == best);
                let with_weight = best_ones.clone().any(|place| settings.weights[place] > 0);
                let general: Vec<Vec<Prefix>> = match settings.spread {
                    _ if is_refused(best) => vec![vec![]],
                    Spread::All => vec![best_ones.map(|place| config.prefixes[place]).collect()],
                    Spread::Ordered => vec![best_ones.take(1).map(|place| config.prefixes[place]).collect()],
                    Spread::Client => best_ones
                        .filter(|&place| !with_weight || settings.weights[place] > 0)
                        .map(|place| vec![config.prefixes[place]])
                        .collect(),
                };
                choices.extend(general.into_iter().map(|general| Some(Given { general, has_legacy })));
            }
        }
        choices
    }

    /// Checks an answer with synthesized addresses for names that have the general prefixes. `awake`: the time without the jumps of the clock.
    ///
    /// # Errors
    ///
    /// A description: a prefix whose gateway has been dead for too long, one that is out although its gateway answers, or another one than
    /// the client network must have.
    pub fn check(&mut self, config: &Config, seen: &Seen, client: IpAddr, awake: u64) -> Result<(), String> {
        let Some(settings) = &config.gateways else { return Ok(()) };
        // A mapped address may be under a prefix, whatever state that has.
        if seen.v6.iter().any(|record| config.mappings.to_v4(record.2).is_some()) {
            return Ok(());
        }
        // An address under two prefixes does not show its own.
        let of = |address: &[u8; 16]| {
            let mut under = config.prefixes.iter().filter(|prefix| is_synthesized(prefix, address));
            under.next().filter(|_| under.next().is_none())
        };
        let Some(used): Option<Vec<Prefix>> = seen.v6.iter().map(|record| of(&record.2).copied()).collect()
        else {
            return Ok(());
        };
        self.check_lives(config, settings, &used, awake)?;
        if settings.spread == Spread::Client && !used.is_empty() {
            return self.check_choice(config, settings, used[0], client);
        }
        Ok(())
    }

    /// A prefix whose gateway no longer answers its probes leaves the answers in time, and one whose gateway answers all of them comes back in
    /// time and stays.
    fn check_lives(
        &self,
        config: &Config,
        settings: &GatewayConfig,
        used: &[Prefix],
        awake: u64,
    ) -> Result<(), String> {
        if !self.is_running {
            return Ok(());
        }
        for (place, prefix) in config.prefixes.iter().enumerate() {
            let Some(truth) = self.truths.iter().find(|truth| is_same(&truth.prefix, prefix)) else {
                continue;
            };
            // A longer prefix within this one has a gateway of its own, also one of a former configuration.
            let is_within = |other: &Prefix| !is_same(other, prefix) && prefix.contains(&other.address);
            let is_reached = !self.truths.iter().any(|other| is_within(&other.prefix));
            if !settings.probed[place] || !is_reached {
                continue;
            }
            let (span, state) = (awake - truth.since.max(self.configured), self.state(prefix));
            let mut others = config.prefixes.iter().filter(|other| *other != prefix);
            let has_answers = truth.fate == Fate::Alive && self.loss == 0;
            if has_answers && span > settings.longest_return() && state == PrefixState::Down {
                return Err(format!("{prefix:?} is out, but has answered for {} ms", span / MILLI));
            }
            if truth.fate != Fate::Alive
                && used.contains(prefix)
                && span > settings.longest_detection()
                && others.any(|other| self.state(other) == PrefixState::Up)
            {
                return Err(format!("{prefix:?} has been dead for {} ms: {:?}", span / MILLI, truth.fate));
            }
        }
        Ok(())
    }

    /// A client network gets the same prefix as long as it can, and the others do not matter to it.
    fn check_choice(
        &mut self,
        config: &Config,
        settings: &GatewayConfig,
        chosen: Prefix,
        client: IpAddr,
    ) -> Result<(), String> {
        let states: Vec<PrefixState> = config.prefixes.iter().map(|prefix| self.state(prefix)).collect();
        if states.iter().any(|state| matches!(state, PrefixState::Leaving(_))) {
            return Ok(());
        }
        let rank = |place: usize| match states[place] {
            PrefixState::Up | PrefixState::Leaving(_) => 2,
            PrefixState::Draining => 1,
            PrefixState::Down => 0,
        };
        let key = |place: usize| (rank(place), settings.weights[place] > 0);
        let best = (0..states.len()).map(key).max();
        let among: Vec<(Prefix, u32)> = (0..states.len())
            .filter(|&place| Some(key(place)) == best)
            .map(|place| (config.prefixes[place], settings.weights[place]))
            .collect();
        let network = match client {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        };
        let known = self.choices.entry(network).or_default();
        for before in known.iter() {
            let is_within = |inner: &[(Prefix, u32)], outer: &[(Prefix, u32)]| {
                inner.iter().all(|one| outer.contains(one))
            };
            let has = |all: &[(Prefix, u32)], prefix: &Prefix| all.iter().any(|one| one.0 == *prefix);
            let must_stay = is_within(&among, &before.among) && has(&among, &before.chosen)
                || is_within(&before.among, &among) && has(&before.among, &chosen);
            if must_stay && before.chosen != chosen {
                let (was, is) = (before.chosen, chosen);
                return Err(format!(
                    "{client} had {was:?} among {:?}, and now has {is:?} among {among:?}",
                    before.among
                ));
            }
        }
        if known.len() < REMEMBERED && !known.iter().any(|before| before.among == among) {
            known.push(Choice { among, chosen });
        }
        Ok(())
    }
}

/// True if two prefixes are the same network.
fn is_same(one: &Prefix, other: &Prefix) -> bool {
    (one.address, one.length) == (other.address, other.length)
}

fn is_same_network(one: &pref64::Pref64, other: &Prefix) -> bool {
    (one.address().octets(), usize::from(one.length())) == (other.address, other.length)
}

/// True if an address is an IPv4 address under a prefix, with its suffix.
fn is_synthesized(prefix: &Prefix, address: &[u8; 16]) -> bool {
    prefix.contains(address) && prefix.extract(address).is_some_and(|v4| prefix.embed(v4) == *address)
}
