//! The states of the prefixes in use behind their lock: what the thread of the probes, reloads, upgrades and operators do with them.
//!
//! The state machine is the crate `gateways`. The workers have copies of the states, and no lock.

use crate::config::Config;
use datapath::remedy::with_remedy;
use engine::dns64::gateways::{GatewayTable, Gateways, Spread};
use engine::dns64::verdicts::{Untried, Verdicts};
use engine::{Instant, Span};
use gateways::{Drain, Monitor, Trials};
use pref64::Pref64;
use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time over which the answers with each prefix are shown.
const LAST_MINUTE: Duration = Duration::from_secs(60);

/// States that are handed over at most: they share a message of 64 KiB, and each takes at most 130 octets.
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

/// What the lock protects.
pub(super) struct State {
    pub(super) monitor: Monitor,
    pub(super) table: Arc<GatewayTable>,
    /// True if the configuration tells of gateways. Without that the engine knows of none until a prefix drains.
    has_gateways: bool,
    /// True if a rule verifies real AAAA records.
    pub(super) verifies: bool,
    /// The verdicts about their addresses, and the number of trials so far.
    verdicts: Arc<Verdicts>,
    trials: Trials,
}

impl State {
    /// The gateways for the workers.
    pub(super) fn gateways(&self, now: Instant) -> Option<Gateways> {
        let is_needed = self.has_gateways || !self.monitor.drains().is_empty();
        let states = || self.monitor.states(&self.table, now);
        is_needed.then(|| Gateways::new(Arc::clone(&self.table), states()))
    }
}

/// The table of a configuration that is about to be used, with the present states.
pub struct Prepared {
    table: Arc<GatewayTable>,
    /// The gateways for the settings of the workers.
    pub gateways: Option<Gateways>,
    /// The verdicts about real addresses for these settings.
    pub verdicts: Option<Arc<Verdicts>>,
}

impl Prefixes {
    /// The prefixes of a configuration, with what a predecessor knows of them.
    ///
    /// # Errors
    ///
    /// The text for the operator: the error of eventfd(2), or the system has no random numbers.
    pub fn new(config: &Config, handed: &[HandedPrefix], seed: u64) -> Result<Prefixes, String> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| format!("cannot make an eventfd: {}", with_remedy(&io::Error::from(error))))?;
        let table = config.dns64.gateway_table();
        let has_gateways = config.dns64.has_gateways();
        let state = State {
            monitor: Monitor::new(seed),
            table,
            has_gateways,
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
        watch(&mut state, config);
        for one in handed {
            let Ok(prefix) = one.prefix.parse::<Pref64>() else { continue };
            let Ok(prefix) = known(&state.table, &prefix) else { continue };
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

    /// The gateways for the workers now.
    pub fn gateways(&self) -> Option<Gateways> {
        self.lock().gateways(datapath::now())
    }

    /// Prepares another configuration: its settings begin with the present states.
    pub fn prepare(&self, config: &Config) -> Prepared {
        let state = self.lock();
        let table = config.dns64.gateway_table();
        let drains = state.monitor.drains();
        let is_needed =
            config.dns64.has_gateways() || drains.iter().any(|(prefix, _)| table.number_of(prefix).is_some());
        let states = || state.monitor.states(&table, datapath::now());
        let gateways = is_needed.then(|| Gateways::new(Arc::clone(&table), states()));
        let verdicts = config.dns64.verifies_real().then(|| Arc::clone(&state.verdicts));
        Prepared { table, gateways, verdicts }
    }

    /// Uses a configuration that was prepared, now that the workers use it. Gateways keep their states.
    pub fn configure(&self, config: &Config, prepared: Prepared) {
        let mut state = self.lock();
        state.table = prepared.table;
        state.has_gateways = config.dns64.has_gateways();
        state.verifies = config.dns64.verifies_real();
        if !state.verifies {
            state.verdicts = Arc::default();
        }
        watch(&mut state, config);
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
        let prefix = known(&state.table, prefix)?;
        if !over.is_zero() && state.table.spread != Spread::Client {
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
        let prefix = known(&state.table, prefix)?;
        let is_new = state.monitor.undrain(&prefix);
        drop(state);
        self.wake();
        Ok(is_new)
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

    /// What a successor has to know.
    pub fn handover(&self) -> Vec<HandedPrefix> {
        let state = self.lock();
        let handed = state.table.prefixes().map(|of| {
            let status = state.monitor.status(&of.prefix);
            HandedPrefix {
                prefix: of.prefix.to_string(),
                is_down: status.liveness == gateways::Liveness::Down,
                drain_ns: status.drain.map(|drain| (drain.since.0, drain.over.0)),
            }
        });
        handed.filter(|one| one.is_down || one.drain_ns.is_some()).take(HANDED).collect()
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

/// Watches the gateways of a configuration.
fn watch(state: &mut State, config: &Config) {
    let State { monitor, table, .. } = state;
    let (settings, probed) = (config.dns64.health_settings(), config.dns64.probed_gateways());
    monitor.configure(datapath::now(), settings, probed, |prefix| table.number_of(prefix).is_some());
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

    fn prefix(text: &str) -> Pref64 {
        text.parse().unwrap()
    }

    #[test]
    fn the_engine_knows_gateways_while_a_prefix_drains_or_the_configuration_has_some() {
        let prefixes = Prefixes::new(&config(TWO), &[], 1).unwrap();
        assert!(prefixes.gateways().is_none());
        assert_eq!(prefixes.drain(&prefix("2001:db8:a::/96"), Duration::ZERO), Ok(true));
        assert_eq!(prefixes.drain(&prefix("2001:db8:a::/96"), Duration::ZERO), Ok(false));
        let states = prefixes.gateways().unwrap().states().to_vec();
        assert_eq!(states, [PrefixState::Draining, PrefixState::Up]);
        assert_eq!(prefixes.undrain(&prefix("2001:db8:a::/96")), Ok(true));
        assert!(prefixes.gateways().is_none());
        let with_spread = config(&format!("{TWO}spread = \"client\"\n"));
        assert!(Prefixes::new(&with_spread, &[], 1).unwrap().gateways().is_some());
    }

    #[test]
    fn a_prefix_that_is_not_in_use_cannot_drain_nor_can_one_of_all_clients_over_a_time() {
        let prefixes = Prefixes::new(&config(TWO), &[], 1).unwrap();
        let error = prefixes.drain(&prefix("64:ff9b::/96"), Duration::ZERO).unwrap_err();
        assert!(error.contains("64:ff9b::/96 is not in use") && error.contains("2001:db8:b::/96"), "{error}");
        assert!(prefixes.undrain(&prefix("64:ff9b::/96")).is_err());
        let error = prefixes.drain(&prefix("2001:db8:a::/96"), Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("spread = \"client\""), "{error}");
    }

    #[test]
    fn a_drain_survives_a_reload_and_goes_over_to_a_successor() {
        let with_spread = |more: &str| config(&format!("{TWO}spread = \"client\"\n{more}"));
        let prefixes = Prefixes::new(&with_spread(""), &[], 1).unwrap();
        prefixes.drain(&prefix("2001:db8:b::/96"), Duration::from_secs(3600)).unwrap();
        let reloaded = with_spread("max-records = 7\n");
        let prepared = prefixes.prepare(&reloaded);
        let states = prepared.gateways.as_ref().unwrap().states().to_vec();
        assert!(matches!(states[..], [PrefixState::Up, PrefixState::Leaving(_)]), "{states:?}");
        prefixes.configure(&reloaded, prepared);
        let handed = prefixes.handover();
        let text = serde_json::to_string(&handed).unwrap();
        let read: Vec<HandedPrefix> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, handed);
        let successor = Prefixes::new(&reloaded, &read, 2).unwrap();
        assert_eq!(successor.handover(), handed);
        // A prefix that leaves the configuration takes its drain with it.
        let other = config("[dns64]\nprefixes = [\"2001:db8:a::/96\"]\n");
        let prepared = successor.prepare(&other);
        successor.configure(&other, prepared);
        assert!(successor.handover().is_empty());
    }

    #[test]
    fn a_successor_knows_a_dead_gateway_from_its_start() {
        let text =
            format!("{TWO}[[dns64.gateway]]\nprefix = \"2001:db8:a::/96\"\nprobe = [\"icmp 192.0.2.1\"]\n");
        let handed = [HandedPrefix { prefix: "2001:db8:a::/96".into(), is_down: true, drain_ns: None }];
        let prefixes = Prefixes::new(&config(&text), &handed, 1).unwrap();
        assert_eq!(prefixes.gateways().unwrap().states()[0], PrefixState::Down);
        assert_eq!(prefixes.handover(), handed);
    }

    #[test]
    fn answers_of_the_last_minute_are_those_since_the_oldest_sample() {
        let prefixes = Prefixes::new(&config(TWO), &[], 1).unwrap();
        let a = prefix("2001:db8:a::/96");
        assert_eq!(prefixes.answers_before(&a), 0);
        prefixes.sample(vec![(a, 5)]);
        prefixes.sample(vec![(a, 9)]);
        assert_eq!(prefixes.answers_before(&a), 5);
    }
}
