//! The states of the prefixes in use behind their lock: what the thread of the probes, reloads, upgrades and operators do with them.
//!
//! The state machines are the crate `gateways`. The workers have copies of the states, and no lock.

use super::plan::Plan;
use crate::config::{Config, prefixes};
use datapath::remedy::with_remedy;
use engine::dns64::gateways::{GatewayTable, Gateways, Spread};
use engine::dns64::verdicts::{Untried, Verdicts};
use engine::settings::Dns64;
use engine::{Instant, Span};
use gateways::{Announcement, Announcer, Discovery, Drain, Monitor, Trials};
use pref64::Pref64;
use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time over which the answers with each prefix are shown.
const LAST_MINUTE: Duration = Duration::from_secs(60);

/// States that are handed over at most: they share a message of 64 KiB. Half of them may be announcements, of at most 300 octets each, and the
/// others take at most 150.
const HANDED: usize = 256;

/// Answers with each prefix since the start, over all workers.
pub type Answers = Vec<(Pref64, u64)>;

/// State of a prefix that a process hands over to its successor. Times are those of the engine, which both processes share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedPrefix {
    /// The prefix.
    pub prefix: String,
    /// True if its gateway is dead.
    #[serde(default)]
    pub is_down: bool,
    /// Begin of its drain, and the time over which its clients leave, in nanoseconds.
    #[serde(default)]
    pub drain_ns: Option<(u64, u64)>,
    /// Somebody who told of it.
    #[serde(default)]
    pub found: Option<HandedAnnouncement>,
}

/// Knowledge of a process about a prefix from one announcer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedAnnouncement {
    /// Address and interface of the router; none: the upstreams.
    pub router: Option<(Ipv6Addr, String)>,
    /// Time at which it was told first, in nanoseconds.
    pub since_ns: u64,
    /// End of its TTL or lifetime, in nanoseconds.
    pub until_ns: u64,
}

impl HandedAnnouncement {
    fn of(known: &Announcement) -> HandedAnnouncement {
        let router = match &known.from {
            Announcer::Upstream => None,
            Announcer::Router(address, interface) => Some((*address, interface.to_string())),
        };
        HandedAnnouncement { router, since_ns: known.since.0, until_ns: known.until.0 }
    }

    fn announcement(&self, prefix: Pref64) -> Announcement {
        let from = match &self.router {
            None => Announcer::Upstream,
            Some((address, interface)) => Announcer::Router(*address, interface.as_str().into()),
        };
        Announcement { prefix, from, since: Instant(self.since_ns), until: Instant(self.until_ns) }
    }
}

/// The prefixes in use.
pub struct Prefixes {
    state: Mutex<State>,
    /// Wakes the thread of the probes after a change from elsewhere.
    pub(super) wake: OwnedFd,
    /// Answers of the last minute, the oldest first.
    samples: Mutex<VecDeque<(std::time::Instant, Answers)>>,
    /// Addresses that workers have given, until the thread of the probes takes them.
    untried: Mutex<Vec<Untried>>,
}

/// Data behind the lock.
pub(super) struct State {
    pub(super) monitor: Monitor,
    pub(super) discovery: Discovery,
    pub(super) plan: Plan,
    /// True if a rule verifies real AAAA records.
    pub(super) verifies: bool,
    /// The verdicts about their addresses, and the number of trials so far.
    verdicts: Arc<Verdicts>,
    trials: Trials,
}

impl State {
    /// The gateways for the workers. Without gateways in the configuration the engine knows of none until a prefix drains.
    pub(super) fn gateways(&self, now: Instant) -> Option<Gateways> {
        let is_needed = self.plan.has_gateways() || !self.monitor.drains().is_empty();
        let states = || self.monitor.states(self.plan.table(), now);
        is_needed.then(|| Gateways::new(Arc::clone(self.plan.table()), states()))
    }

    /// The settings of DNS64 for the workers.
    pub(super) fn settings(&self, now: Instant) -> Dns64 {
        self.plan.settings(&self.discovery, self.gateways(now))
    }

    /// Uses what was found, if that has changed.
    pub(super) fn use_found(&mut self, now: Instant) {
        if self.plan.take_found(&self.discovery) {
            self.watch(now);
        }
    }

    /// Version of the prefixes and their TTL: the configuration, and what was found.
    pub(super) fn version(&self) -> (u64, u64) {
        (self.plan.configuration(), self.discovery.version())
    }

    /// Watches the gateways of the plan.
    fn watch(&mut self, now: Instant) {
        let State { monitor, plan, discovery, .. } = self;
        let (settings, probed) = (plan.in_use().health_settings(), plan.in_use().probed_gateways());
        // A source may tell again of a prefix that drains.
        let has_prefix =
            |prefix: &Pref64| discovery.has_sources() || plan.table().number_of(prefix).is_some();
        monitor.configure(now, settings, probed, has_prefix);
    }
}

/// A configuration that is about to be used, with the present states.
pub struct Prepared {
    plan: Plan,
    /// The settings of DNS64 for the workers.
    pub dns64: Dns64,
}

impl Prefixes {
    /// The prefixes of a configuration, with what a predecessor knows of them. `settings`: those of its section `[dns64]`.
    ///
    /// # Errors
    ///
    /// The text for the operator: the error of eventfd(2), or the system has no random numbers.
    pub fn new(
        config: &Config,
        settings: &Dns64,
        handed: &[HandedPrefix],
        seed: u64,
    ) -> Result<Prefixes, String> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| format!("cannot make an eventfd: {}", with_remedy(&io::Error::from(error))))?;
        let now = datapath::now();
        let mut discovery = discovery_of(config, Discovery::default(), now);
        for one in handed {
            if let (Ok(prefix), Some(found)) = (one.prefix.parse::<Pref64>(), &one.found) {
                discovery.restore(now, found.announcement(prefix));
            }
        }
        let plan = Plan::new(config, settings.clone(), 1, &discovery);
        let state = State {
            monitor: Monitor::new(seed),
            discovery,
            plan,
            verifies: config.dns64.verifies_real(),
            verdicts: Arc::default(),
            trials: Trials::default(),
        };
        let prefixes = Prefixes {
            state: Mutex::new(state),
            wake,
            samples: Mutex::new(VecDeque::new()),
            untried: Mutex::new(Vec::new()),
        };
        let mut state = prefixes.lock();
        state.watch(now);
        for one in handed {
            let Ok(prefix) = one.prefix.parse::<Pref64>() else { continue };
            let known = known(state.plan.table(), &prefix);
            if known.is_err() && !state.discovery.has_sources() {
                continue;
            }
            let prefix = known.unwrap_or(prefix);
            if let Some((since, over)) = one.drain_ns {
                state.monitor.drain(prefix, Drain { since: Instant(since), over: Span(over) });
            }
            if one.is_down {
                state.monitor.restore_down(&prefix);
            }
        }
        drop(state);
        Ok(prefixes)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread of the probes.
    fn wake(&self) {
        // It cannot fail but for a counter that is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// The settings of DNS64 for the workers now.
    pub fn settings(&self) -> Dns64 {
        self.lock().settings(datapath::now())
    }

    /// Prepares another configuration: its settings begin with the present states, and with what was found. `settings`: those of its section
    /// `[dns64]`.
    pub fn prepare(&self, config: &Config, settings: &Dns64) -> Prepared {
        let state = self.lock();
        let plan = Plan::new(config, settings.clone(), state.plan.configuration() + 1, &state.discovery);
        let drains = state.monitor.drains();
        let is_needed =
            plan.has_gateways() || drains.iter().any(|(prefix, _)| plan.table().number_of(prefix).is_some());
        let states = || state.monitor.states(plan.table(), datapath::now());
        let gateways = is_needed.then(|| Gateways::new(Arc::clone(plan.table()), states()));
        let mut dns64 = plan.settings(&state.discovery, gateways);
        dns64.verdicts = config.dns64.verifies_real().then(|| Arc::clone(&state.verdicts));
        Prepared { plan, dns64 }
    }

    /// Uses a configuration that was prepared, now that the workers use it. Gateways keep their states, and sources what they have told.
    pub fn configure(&self, config: &Config, prepared: Prepared) {
        let now = datapath::now();
        let mut state = self.lock();
        state.plan = prepared.plan;
        state.discovery = discovery_of(config, std::mem::take(&mut state.discovery), now);
        let State { plan, discovery, .. } = &mut *state;
        plan.take_found(discovery);
        state.watch(now);
        state.verifies = config.dns64.verifies_real();
        if !state.verifies {
            state.verdicts = Arc::default();
        }
        drop(state);
        self.wake();
    }

    /// Lets a prefix drain: at once, or its client networks leave it one by one over a time. Returns true if that is new.
    ///
    /// # Errors
    ///
    /// The text for the operator: the prefix is not in use, or clients have no prefix of their own that they could leave one by one.
    pub fn drain(&self, prefix: &Pref64, over: Duration) -> Result<bool, String> {
        let mut state = self.lock();
        let prefix = known(state.plan.table(), prefix)?;
        if !over.is_zero() && state.plan.table().spread != Spread::Client {
            return Err("`--over` needs `dns64.spread = \"client\"`: otherwise all clients have the same prefixes; leave it out, and \
                        the prefix leaves new answers at once\n"
                .into());
        }
        let drain = Drain { since: datapath::now(), over: over.into() };
        let is_new = state.monitor.drain(prefix, drain);
        drop(state);
        self.wake();
        Ok(is_new)
    }

    /// Ends the drain of a prefix. Returns true if it drained.
    ///
    /// # Errors
    ///
    /// The text for the operator: the prefix is not in use.
    pub fn undrain(&self, prefix: &Pref64) -> Result<bool, String> {
        let mut state = self.lock();
        // A prefix that no source tells of any more may drain.
        let has_ended = state.monitor.undrain(prefix);
        if !has_ended {
            known(state.plan.table(), prefix)?;
        }
        drop(state);
        self.wake();
        Ok(has_ended)
    }

    /// Stops the probes: another process sends them from now on. States stay.
    pub fn pause_probes(&self) {
        self.lock().monitor.pause();
        self.wake();
    }

    /// Sends probes again.
    pub fn resume_probes(&self) {
        self.lock().monitor.resume(datapath::now());
        self.wake();
    }

    /// State that a successor has to know.
    pub fn handover(&self) -> Vec<HandedPrefix> {
        let state = self.lock();
        let found = state.discovery.announcements().map(|known| HandedPrefix {
            prefix: known.prefix.to_string(),
            is_down: false,
            drain_ns: None,
            found: Some(HandedAnnouncement::of(known)),
        });
        let handed = state.plan.table().prefixes().map(|of| {
            let status = state.monitor.status(&of.prefix);
            HandedPrefix {
                prefix: of.prefix.to_string(),
                is_down: status.liveness == gateways::Liveness::Down,
                drain_ns: status.drain.map(|drain| (drain.since.0, drain.over.0)),
                found: None,
            }
        });
        let handed = handed.filter(|one| one.is_down || one.drain_ns.is_some());
        let drains = state.monitor.drains().iter();
        let absent = drains.filter(|(prefix, _)| state.plan.table().number_of(prefix).is_none());
        let absent = absent.map(|(prefix, drain)| HandedPrefix {
            prefix: prefix.to_string(),
            is_down: false,
            drain_ns: Some((drain.since.0, drain.over.0)),
            found: None,
        });
        found.take(HANDED / 2).chain(handed).chain(absent).take(HANDED).collect()
    }

    /// Gives the thread of the probes the addresses that a worker has met. The worker does not wait for it: it holds the lock for a moment.
    pub(super) fn give_untried(&self, untried: Untried) {
        if untried.addresses.is_empty() && untried.dropped == 0 {
            return;
        }
        self.untried.lock().unwrap_or_else(PoisonError::into_inner).push(untried);
        self.wake();
    }

    /// Takes the addresses that workers have given.
    pub(super) fn take_untried(&self) -> Vec<Untried> {
        std::mem::take(&mut self.untried.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the verdicts for the next configuration, and the numbers of trials for metrics.
    pub(super) fn set_verdicts(&self, verdicts: &Arc<Verdicts>, trials: Trials) {
        let mut state = self.lock();
        (state.verdicts, state.trials) = (Arc::clone(verdicts), trials);
    }

    /// Numbers of trials of real addresses so far.
    pub fn trials(&self) -> Trials {
        self.lock().trials
    }

    /// Notes the answers so far, for those of the last minute.
    pub fn sample(&self, answers: Answers) {
        let now = std::time::Instant::now();
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        // The newest sample that is old enough stays, as the begin of the minute.
        while samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= LAST_MINUTE) {
            samples.pop_front();
        }
        samples.push_back((now, answers));
    }

    /// Answers with a prefix up to the begin of the last minute.
    pub(super) fn answers_before(&self, prefix: &Pref64) -> u64 {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.front().map_or(0, |(_, answers)| answers_with(answers, prefix))
    }
}

/// Answers with a prefix.
pub(super) fn answers_with(answers: &[(Pref64, u64)], prefix: &Pref64) -> u64 {
    answers.iter().find(|(other, _)| other == prefix).map_or(0, |(_, count)| *count)
}

/// Watches the sources of a configuration.
fn discovery_of(config: &Config, mut discovery: Discovery, now: Instant) -> Discovery {
    let configured = prefixes(&config.dns64.prefixes).copied().collect();
    discovery.configure(now, config.dns64.sources().cloned().collect(), configured);
    discovery
}

/// A prefix of the table, as it stands there.
fn known(table: &GatewayTable, prefix: &Pref64) -> Result<Pref64, String> {
    let number = table.number_of(prefix);
    let found = number.and_then(|number| table.prefixes().nth(number)).map(|of| of.prefix);
    found.ok_or_else(|| {
        let some: Vec<String> = table.prefixes().take(16).map(|of| of.prefix.to_string()).collect();
        format!("the prefix {prefix} is not in use; prefixes in use are {}\n", some.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, parse};
    use engine::dns64::gateways::PrefixState;

    const TWO: &str = "[dns64]\nprefixes = [\"2001:db8:a::/96\", \"2001:db8:b::/96\"]\n";

    fn config(text: &str) -> Config {
        let text = format!("upstream.forwarders = [\"192.0.2.53\"]\n{text}");
        match parse("x.toml", &text, &Overrides::default(), "/etc/resolv.conf".as_ref()) {
            Ok((config, _)) => config,
            Err(report) => panic!("{report}"),
        }
    }

    fn made(config: &Config, handed: &[HandedPrefix], seed: u64) -> Prefixes {
        Prefixes::new(config, &config.settings().dns64, handed, seed).unwrap()
    }

    fn prefix(text: &str) -> Pref64 {
        text.parse().unwrap()
    }

    #[test]
    fn the_engine_knows_gateways_while_a_prefix_drains_or_the_configuration_has_some() {
        let prefixes = made(&config(TWO), &[], 1);
        assert!(prefixes.settings().gateways.is_none());
        assert_eq!(prefixes.drain(&prefix("2001:db8:a::/96"), Duration::ZERO), Ok(true));
        assert_eq!(prefixes.drain(&prefix("2001:db8:a::/96"), Duration::ZERO), Ok(false));
        let states = prefixes.settings().gateways.unwrap().states().to_vec();
        assert_eq!(states, [PrefixState::Draining, PrefixState::Up]);
        assert_eq!(prefixes.undrain(&prefix("2001:db8:a::/96")), Ok(true));
        assert!(prefixes.settings().gateways.is_none());
        let with_spread = config(&format!("{TWO}spread = \"client\"\n"));
        assert!(made(&with_spread, &[], 1).settings().gateways.is_some());
    }

    #[test]
    fn a_prefix_that_is_not_in_use_cannot_drain_nor_can_one_of_all_clients_over_a_time() {
        let prefixes = made(&config(TWO), &[], 1);
        let error = prefixes.drain(&prefix("64:ff9b::/96"), Duration::ZERO).unwrap_err();
        assert!(error.contains("64:ff9b::/96 is not in use") && error.contains("2001:db8:b::/96"), "{error}");
        assert!(prefixes.undrain(&prefix("64:ff9b::/96")).is_err());
        let error = prefixes.drain(&prefix("2001:db8:a::/96"), Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("spread = \"client\""), "{error}");
    }

    #[test]
    fn a_drain_survives_a_reload_and_goes_over_to_a_successor() {
        let with_spread = |more: &str| config(&format!("{TWO}spread = \"client\"\n{more}"));
        let prefixes = made(&with_spread(""), &[], 1);
        prefixes.drain(&prefix("2001:db8:b::/96"), Duration::from_secs(3600)).unwrap();
        let reloaded = with_spread("max-records = 7\n");
        let prepared = prefixes.prepare(&reloaded, &reloaded.settings().dns64);
        let states = prepared.dns64.gateways.as_ref().unwrap().states().to_vec();
        assert!(matches!(states[..], [PrefixState::Up, PrefixState::Leaving(_)]), "{states:?}");
        prefixes.configure(&reloaded, prepared);
        let handed = prefixes.handover();
        let text = serde_json::to_string(&handed).unwrap();
        let read: Vec<HandedPrefix> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, handed);
        let successor = made(&reloaded, &read, 2);
        assert_eq!(successor.handover(), handed);
        // A prefix that leaves the configuration takes its drain with it.
        let other = config("[dns64]\nprefixes = [\"2001:db8:a::/96\"]\n");
        let prepared = successor.prepare(&other, &other.settings().dns64);
        successor.configure(&other, prepared);
        assert!(successor.handover().is_empty());
    }

    #[test]
    fn a_successor_knows_a_dead_gateway_from_its_start() {
        let text =
            format!("{TWO}[[dns64.gateway]]\nprefix = \"2001:db8:a::/96\"\nprobe = [\"icmp 192.0.2.1\"]\n");
        let handed =
            [HandedPrefix { prefix: "2001:db8:a::/96".into(), is_down: true, drain_ns: None, found: None }];
        let prefixes = made(&config(&text), &handed, 1);
        assert_eq!(prefixes.settings().gateways.unwrap().states()[0], PrefixState::Down);
        assert_eq!(prefixes.handover(), handed);
    }

    #[test]
    fn answers_of_the_last_minute_are_those_since_the_oldest_sample() {
        let prefixes = made(&config(TWO), &[], 1);
        let a = prefix("2001:db8:a::/96");
        assert_eq!(prefixes.answers_before(&a), 0);
        prefixes.sample(vec![(a, 5)]);
        prefixes.sample(vec![(a, 9)]);
        assert_eq!(prefixes.answers_before(&a), 5);
    }

    const SOURCES: &str =
        "[dns64]\nprefixes = [\"discover:upstream\", \"discover:eth0\", \"2001:db8:a::/96\"]\n";

    /// The upstreams are asked, and tell of this prefix for five minutes.
    fn tell(prefixes: &Prefixes, told: &str) {
        let (mut state, now) = (prefixes.lock(), datapath::now());
        assert!(state.discovery.take_question(now));
        state.discovery.answered(now, gateways::Told::Prefixes(vec![prefix(told)], 300), false);
        state.use_found(now);
    }

    fn general(prefixes: &Prefixes) -> Vec<String> {
        prefixes.settings().prefixes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_found_is_in_the_settings_until_it_is_gone() {
        let rule = "[[dns64.rule]]\nnames = [\"x.example\"]\nprefixes = [\"discovered\"]\n";
        let prefixes = made(&config(&format!("{SOURCES}{rule}")), &[], 1);
        assert_eq!(general(&prefixes), ["2001:db8:a::/96"]);
        let before = prefixes.settings();
        assert!(before.rules.list()[0].awaits_discovery);
        tell(&prefixes, "2001:db8:1::/96");
        assert_eq!(general(&prefixes), ["2001:db8:1::/96", "2001:db8:a::/96"]);
        let settings = prefixes.settings();
        let rule = &settings.rules.list()[0];
        assert_eq!(
            (rule.prefixes.as_slice(), rule.awaits_discovery),
            (&[prefix("2001:db8:1::/96")][..], false)
        );
        assert!(settings.excludes(prefix("2001:db8:1::/96").embed([192, 0, 2, 1])));
        let discovery = settings.discovery.unwrap();
        assert_eq!((discovery.ttl_secs, discovery.configuration), (300, 1));
        assert!(Arc::ptr_eq(&settings.rules, &prefixes.settings().rules), "built once");
        let mut state = prefixes.lock();
        let now = datapath::now() + Span::from_secs(300 + 3600);
        state.discovery.expire(now);
        state.use_found(now);
        drop(state);
        assert_eq!(general(&prefixes), ["2001:db8:a::/96"]);
    }

    #[test]
    fn a_prefix_that_only_a_rule_has_may_be_found() {
        let rule = "[[dns64.rule]]\nnames = [\"x.example\"]\nprefixes = [\"2001:db8:1::/96\"]\n";
        let prefixes = made(&config(&format!("{SOURCES}{rule}")), &[], 1);
        tell(&prefixes, "2001:db8:1::/96");
        assert_eq!(general(&prefixes), ["2001:db8:1::/96", "2001:db8:a::/96"]);
        let started = std::time::SystemTime::now();
        let origins: Vec<String> =
            prefixes.statuses(started, &Answers::new()).into_iter().map(|status| status.origin).collect();
        assert_eq!(origins, ["discovered from the upstream", "configured"]);
    }

    #[test]
    fn a_prefix_that_drains_still_does_when_a_source_tells_of_it_again() {
        let first = config(SOURCES);
        let prefixes = made(&first, &[], 1);
        tell(&prefixes, "2001:db8:1::/96");
        let drained = prefix("2001:db8:1::/96");
        prefixes.drain(&drained, Duration::ZERO).unwrap();
        let ends = |prefixes: &Prefixes| {
            let (mut state, end) = (prefixes.lock(), datapath::now() + Span::from_secs(300 + 3600));
            state.discovery.expire(end);
            state.use_found(end);
        };
        ends(&prefixes);
        assert_eq!(general(&prefixes), ["2001:db8:a::/96"]);
        let prepared = prefixes.prepare(&first, &first.settings().dns64);
        prefixes.configure(&first, prepared);
        let successor = made(&first, &prefixes.handover(), 2);
        for prefixes in [prefixes, successor] {
            tell(&prefixes, "2001:db8:1::/96");
            let states = prefixes.settings().gateways.unwrap().states().to_vec();
            assert_eq!(states, [PrefixState::Draining, PrefixState::Up]);
            ends(&prefixes);
            assert_eq!(prefixes.undrain(&drained), Ok(true));
            assert!(prefixes.undrain(&drained).is_err(), "it is not in use");
            assert!(prefixes.handover().is_empty());
        }
    }

    #[test]
    fn what_was_found_survives_a_reload_and_goes_over_to_a_successor() {
        let first = config(SOURCES);
        let prefixes = made(&first, &[], 1);
        tell(&prefixes, "2001:db8:1::/96");
        let reloaded = config(&format!("{SOURCES}max-records = 7\n"));
        let prepared = prefixes.prepare(&reloaded, &reloaded.settings().dns64);
        assert_eq!(prepared.dns64.prefixes.len(), 2);
        prefixes.configure(&reloaded, prepared);
        let settings = prefixes.settings();
        assert_eq!((settings.prefixes.len(), settings.max_records), (2, 7));
        assert_eq!(settings.discovery.unwrap().configuration, 2);
        prefixes.drain(&prefix("2001:db8:1::/96"), Duration::ZERO).unwrap();
        let text = serde_json::to_string(&prefixes.handover()).unwrap();
        let successor = made(&reloaded, &serde_json::from_str::<Vec<HandedPrefix>>(&text).unwrap(), 2);
        assert_eq!(general(&successor), ["2001:db8:1::/96", "2001:db8:a::/96"]);
        let states = successor.settings().gateways.unwrap().states().to_vec();
        assert_eq!(states, [PrefixState::Draining, PrefixState::Up]);
        // A configuration without the source has nothing of it.
        let other = config("[dns64]\nprefixes = [\"2001:db8:a::/96\"]\n");
        let prepared = successor.prepare(&other, &other.settings().dns64);
        successor.configure(&other, prepared);
        assert!(successor.settings().discovery.is_none() && successor.handover().is_empty());
    }
}
