//! Trust anchors in force, behind a lock: what the task that follows them, reloads, upgrades and operators do with them. The workers
//! have copies, and no lock.

use super::clock::Clock;
use super::observation::ObservedSet;
use crate::arithmetic::DIGESTS;
use crate::config::{Config, anchor_of_engine};
use crate::observers::WorkerEngine;
use crate::sandbox::reload_paths;
use anchors::{
    Disk, Event, EventKind, Loaded, Moment, Negative, NegativeAnchors, Outcome, Saved, StateFile,
    TrustAnchor, TrustPoints,
};
use datapath::Shared;
use dnssec::Timestamp;
use engine::settings::{UncheckedZone, ValidationConfig};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Longest wait before the clocks are looked at again: the wall clock may have been set, and the machine may have slept.
const LOOK: Duration = Duration::from_secs(60);

/// Wait before a worker whose mailbox was full is told again.
const TELL_AGAIN: Duration = Duration::from_millis(10);

/// Seconds before the state is saved again after an error.
const SAVE_AGAIN: u64 = 60;

/// Octets of the names of negative anchors that are handed over: they share a message of 64 KiB with the states of prefixes.
const HANDED: usize = 4_096;

/// A negative anchor that was added while the server ran, as a process hands it over to its successor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedNegative {
    /// Zone, as text.
    pub zone: String,
    /// Last second in which it holds, since 1970.
    pub until: u64,
}

/// Trust anchors in force.
pub struct TrustAnchors {
    state: Mutex<State>,
    clock: Clock,
    /// The file of what was learned. None: nothing is kept.
    file: Option<Mutex<StateFile>>,
    /// Wakes the task that follows the anchors.
    pub(super) wake: Notify,
}

/// Data behind the lock.
struct State {
    parts: Parts,
    /// Counts the changes of what workers should have.
    version: u64,
    /// Version that each worker has.
    told: Vec<u64>,
    /// Zones below which cached answers were judged by anchors that are gone.
    to_flush: Vec<Box<[u8]>>,
    /// Time of the next question for the keys of each zone, by the steady clock.
    due: HashMap<Box<[u8]>, u64>,
    /// Time at which the state is to be saved, by the steady clock.
    save_at: Option<u64>,
    /// Another process follows the anchors.
    is_paused: bool,
}

/// Parts that a configuration decides about.
#[derive(Clone, Default)]
struct Parts {
    /// Settings of the configuration, of which only the zones with upstreams of their own are not looked at. None: nothing is validated.
    base: Option<ValidationConfig>,
    /// Anchors of the configuration.
    configured: Vec<TrustAnchor>,
    /// Zones whose keys are followed. None: no keys are.
    points: Option<TrustPoints>,
    negative: NegativeAnchors,
}

/// A configuration that is about to be used, with what was learned.
pub struct Prepared {
    parts: Parts,
    /// The settings of validation for the workers.
    pub validation: Option<Arc<ValidationConfig>>,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

impl Parts {
    /// Settings of validation with the anchors of the moment.
    fn validation(&self, now: Moment) -> Option<Arc<ValidationConfig>> {
        let base = self.base.as_ref()?;
        let anchors = match &self.points {
            Some(points) => points.anchors().into_iter().map(anchor_of_engine).collect(),
            None => base.anchors.clone(),
        };
        let negative = self.negative.borrowed(now.wall);
        let unchecked = negative.iter().map(|one| UncheckedZone { zone: one.zone.into(), until: one.until });
        let unchecked = unchecked.chain(base.unchecked.iter().cloned()).collect();
        Some(Arc::new(ValidationConfig { anchors, unchecked, ..base.clone() }))
    }
}

/// Keys of a zone after an observation.
pub(super) struct Observation {
    /// Changes.
    pub events: Vec<Event>,
    /// True if a trusted key signed the newest set that is known.
    pub is_validated: bool,
    /// Time until the next question.
    pub next: Duration,
}

impl TrustAnchors {
    /// The anchors of a configuration, with what its state file has. `handed`: negative ones of a predecessor, which still follows the
    /// keys until [`TrustAnchors::take_over`]; none without one.
    ///
    /// # Errors
    ///
    /// The text for the operator: the state file exists and cannot be read, or the system has no random numbers.
    pub fn new(
        config: &Config,
        handed: Option<&[HandedNegative]>,
        workers: usize,
    ) -> Result<TrustAnchors, String> {
        let clock = Clock::new().map_err(|error| format!("the system has no random numbers: {error}"))?;
        let now = clock.now();
        let file = config.dnssec.state_file.as_deref().map(|path| Mutex::new(StateFile::new(path, Disk)));
        let mut parts = Parts::default();
        for HandedNegative { zone, until } in handed.unwrap_or_default() {
            let life = Duration::from_secs(until.saturating_sub(now.wall));
            // One that has ended meanwhile has no life.
            let _ = parts.negative.add_for(zone, life, now.wall);
        }
        let state = State {
            parts,
            version: 0,
            told: vec![0; workers],
            to_flush: Vec::new(),
            due: HashMap::new(),
            save_at: None,
            is_paused: handed.is_some(),
        };
        let anchors = TrustAnchors { state: Mutex::new(state), clock, file, wake: Notify::new() };
        let prepared = anchors.prepare(config)?;
        log_resets(&prepared.warnings);
        anchors.configure(prepared);
        Ok(anchors)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Contents of the state file.
    fn load(&self) -> Result<Loaded, String> {
        match &self.file {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).load(),
            None => Ok(Loaded::None),
        }
    }

    /// The settings of validation for the workers now.
    pub fn validation(&self) -> Option<Arc<ValidationConfig>> {
        self.lock().parts.validation(self.clock.now())
    }

    /// Prepares another configuration. Keys that are followed go on with what is known of them.
    ///
    /// # Errors
    ///
    /// The text for the operator: the state file cannot be read, or there are too many negative anchors.
    pub fn prepare(&self, config: &Config) -> Result<Prepared, String> {
        let now = self.clock.now();
        let former = self.lock().parts.clone();
        let mut negative = former.negative;
        negative.configure(config.dnssec.negative.clone()).map_err(|error| error.to_string())?;
        negative.expire(now.wall);
        let mut base = config.validation();
        if let Some(base) = &mut base {
            base.unchecked.drain(..config.dnssec.negative.len());
        }
        let configured = config.dnssec.anchors.clone();
        let mut warnings = Vec::new();
        let mut points = None;
        if config.follows_anchors() {
            let loaded = match former.points {
                Some(points) => {
                    let zones = points.iter().map(|point| point.saved().clone()).collect();
                    Loaded::State(Saved { serial: 0, zones })
                }
                None => self.load()?,
            };
            let start = TrustPoints::start(&configured, loaded, now, &DIGESTS);
            warnings = start.warnings;
            points = Some(start.points);
            if self.file.is_some() && !reload_paths::may_write() {
                warnings.push(unreachable(config));
            }
        }
        let parts = Parts { base, configured, points, negative };
        let validation = parts.validation(now);
        Ok(Prepared { parts, validation, warnings })
    }

    /// Uses a configuration that was prepared, now that the workers have its settings in their mailboxes.
    pub fn configure(&self, prepared: Prepared) {
        let now = self.clock.now().steady.seconds;
        let mut state = self.lock();
        state.parts = prepared.parts;
        let version = state.version + 1;
        state.version = version;
        state.told.fill(version);
        let State { parts, due, save_at, .. } = &mut *state;
        let zones: Vec<Box<[u8]>> =
            parts.points.iter().flat_map(TrustPoints::iter).map(|point| point.zone().into()).collect();
        due.retain(|zone, _| zones.contains(zone));
        *save_at = (!zones.is_empty()).then_some(now);
        for zone in zones {
            due.entry(zone).or_insert(now);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Stops following the keys: another process does that from now on. Returns when nothing more is written.
    pub fn pause(&self) {
        self.lock().is_paused = true;
        drop(self.file.as_ref().map(Mutex::lock));
    }

    /// Follows the keys again: the other process has ended.
    pub fn resume(&self) {
        self.lock().is_paused = false;
        self.wake.notify_one();
    }

    /// Follows the keys from now on, with what the predecessor has saved last.
    pub fn take_over(&self) {
        let (now, loaded) = (self.clock.now(), self.load());
        let mut state = self.lock();
        if state.parts.points.is_some() {
            match loaded {
                Ok(loaded) => {
                    let start = TrustPoints::start(&state.parts.configured, loaded, now, &DIGESTS);
                    log_resets(&start.warnings);
                    state.parts.points = Some(start.points);
                    state.version += 1;
                }
                Err(error) => tracing::error!(event = "trust_anchors_reset", "{error}"),
            }
        }
        state.is_paused = false;
        drop(state);
        self.wake.notify_one();
    }

    /// The negative anchors that a successor has to know: those that were added while the server ran.
    pub fn handover(&self) -> Vec<HandedNegative> {
        let state = self.lock();
        let added = state.parts.negative.iter().filter(|one| !one.is_configured);
        let handed = added.filter_map(|one| {
            Some(HandedNegative { zone: anchors::name::to_text(&one.zone), until: one.until? })
        });
        let mut left = HANDED;
        let fits = |one: &HandedNegative| {
            // The rest of the object takes some 40 octets.
            left = left.saturating_sub(one.zone.len() + 40);
            left > 0
        };
        handed.take_while(fits).collect()
    }

    /// Adds a negative anchor for a time.
    ///
    /// # Errors
    ///
    /// The text for the operator: nothing is validated, or the name or the time is refused.
    pub fn add_negative(&self, zone: &str, life: Duration) -> Result<Negative, String> {
        let mut state = self.lock();
        state.check_validates()?;
        let now = self.clock.now().wall;
        let added =
            state.parts.negative.add_for(zone, life, now).map_err(|error| format!("{error}\n"))?.clone();
        state.change(added.zone.clone());
        Ok(added)
    }

    /// Removes the negative anchors of a zone, and returns them.
    ///
    /// # Errors
    ///
    /// The text for the operator: nothing is validated, the name is refused, or the zone has none.
    pub fn remove_negative(&self, zone: &str) -> Result<Vec<Negative>, String> {
        let mut state = self.lock();
        state.check_validates()?;
        let removed = state.parts.negative.remove(zone).map_err(|error| format!("{error}\n"))?;
        let Some(first) = removed.first() else {
            return Err(format!("{zone} has no negative trust anchor; `sixfold ctl anchors` lists them\n"));
        };
        state.change(first.zone.clone());
        Ok(removed)
    }

    /// Ends the negative anchors whose time is over, and returns them.
    pub(super) fn expire(&self) -> Vec<Negative> {
        let mut state = self.lock();
        let ended = state.parts.negative.expire(self.clock.now().wall);
        ended.iter().for_each(|one| state.change(one.zone.clone()));
        ended
    }

    /// A zone for whose keys it is time to ask.
    pub(super) fn take_due(&self) -> Option<Box<[u8]>> {
        let now = self.clock.now().steady.seconds;
        let mut state = self.lock();
        if state.is_paused {
            return None;
        }
        let (zone, _) = state.due.iter().find(|(_, at)| **at <= now)?;
        let zone = zone.clone();
        // Until the answer is there.
        state.due.insert(zone.clone(), u64::MAX);
        Some(zone)
    }

    /// Takes the reply to the question for a zone's keys; none if there was no reply. None: they are not followed any more, or not here.
    pub(super) fn observe(&self, zone: &[u8], reply: Option<&[u8]>) -> Option<Observation> {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.is_paused {
            // The task asks again when it resumes.
            state.due.entry(zone.into()).and_modify(|at| *at = 0);
            return None;
        }
        let supported = state.parts.base.as_ref()?.algorithms;
        let point = state.parts.points.as_mut()?.get(zone)?;
        let before = point.anchors();
        let set = reply.and_then(|reply| ObservedSet::of(reply, zone, Timestamp(now.wall as u32), supported));
        let outcome = match &set {
            Some(set) => point.observe(now, &set.records(), supported, &DIGESTS),
            None => point.failed(now),
        };
        let has_changed = point.anchors() != before;
        let Outcome { events, next, is_validated, save } = outcome;
        if events.iter().any(|event| event.kind == EventKind::Revoked) {
            state.change(zone.into());
        } else if has_changed {
            // Nothing that was trusted before is less so.
            state.version += 1;
        }
        state.due.insert(zone.into(), now.steady.seconds.saturating_add(next.as_secs()));
        if save {
            state.save_at = Some(now.steady.seconds);
        }
        Some(Observation { events, is_validated, next })
    }

    /// Saves the state, if that is due and this process may write. None: nothing was to be done.
    pub(super) fn save(&self) -> Option<Result<(), String>> {
        let mut file = self.file.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let now = self.clock.now().steady.seconds;
        if state.is_paused || state.save_at.is_none_or(|at| at > now) || !self.can_save() {
            return None;
        }
        state.save_at = None;
        let points = state.parts.points.clone()?;
        drop(state);
        let saved = points.save(&mut *file).map_err(|error| error.to_string());
        if saved.is_err() {
            self.lock().save_at.get_or_insert(now + SAVE_AGAIN);
        }
        Some(saved)
    }

    /// True if the state is to be saved now.
    pub(super) fn is_to_be_saved(&self) -> bool {
        let now = self.clock.now().steady.seconds;
        let state = self.lock();
        let is_due = state.save_at.is_some_and(|at| at <= now);
        is_due && !state.is_paused && self.can_save()
    }

    /// True if there is a file to save the state in, and the sandbox lets this process write.
    fn can_save(&self) -> bool {
        self.file.is_some() && reload_paths::may_write()
    }

    /// Gives the workers the settings of the moment, as far as they have not got them. Returns the zones whose cached answers are to be
    /// flushed then. None: a worker cannot take the settings now.
    pub(super) fn tell(&self, workers: &Shared<WorkerEngine>) -> Option<Vec<Box<[u8]>>> {
        let mut state = self.lock();
        let State { parts, told, version, .. } = &mut *state;
        let validation =
            told.iter().any(|told| *told != *version).then(|| parts.validation(self.clock.now())).flatten();
        for (worker, told) in told.iter_mut().enumerate().filter(|(_, told)| **told != *version) {
            if let Some(validation) = validation.clone() {
                let tell = move |machine: &mut WorkerEngine, _| machine.set_validation(&validation);
                workers.mailbox(worker).submit(tell).ok()?;
            }
            *told = *version;
        }
        Some(std::mem::take(&mut state.to_flush))
    }

    /// Time until something is to be done.
    pub(super) fn wait(&self) -> Duration {
        let now = self.clock.now();
        let state = self.lock();
        if state.told.iter().any(|told| *told != state.version) {
            return TELL_AGAIN;
        }
        let until = |at: u64, now: u64| Duration::from_secs(at.saturating_sub(now));
        let save_at = state.save_at.iter().filter(|_| self.can_save());
        let of_keys = state.due.values().chain(save_at).filter(|_| !state.is_paused).min();
        let of_keys = of_keys.map(|at| until(*at, now.steady.seconds));
        let ends = state.parts.negative.next_end().map(|at| until(at, now.wall));
        of_keys.into_iter().chain(ends).min().unwrap_or(LOOK).min(LOOK)
    }

    /// The zones whose keys are followed, if some are; the anchors of the configuration; and the negative ones. None: nothing is validated.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let Parts { base, configured, points, negative } = self.lock().parts.clone();
        base?;
        Some(Snapshot { configured, points, negative })
    }
}

/// Trust anchors at a moment.
pub struct Snapshot {
    /// Anchors of the configuration.
    pub configured: Vec<TrustAnchor>,
    /// Zones whose keys are followed. None: no keys are.
    pub points: Option<TrustPoints>,
    /// Negative anchors.
    pub negative: NegativeAnchors,
}

impl State {
    fn check_validates(&self) -> Result<(), String> {
        self.parts.base.as_ref().map(|_| ()).ok_or_else(|| NOTHING_VALIDATED.to_owned())
    }

    /// Anchors at or above a zone have changed so that cached answers below it may be judged in another way.
    fn change(&mut self, zone: Box<[u8]>) {
        self.version += 1;
        self.to_flush.push(zone);
    }
}

/// The error of commands about anchors that nobody uses.
pub(super) const NOTHING_VALIDATED: &str =
    "nothing is validated, so there are no trust anchors; write dnssec = \"validate\" below [dns64]\n";

/// Logs why what was learned before does not count.
fn log_resets(warnings: &[String]) {
    for warning in warnings {
        tracing::error!(event = "trust_anchors_reset", "{warning}");
    }
}

/// The warning about a state that cannot be kept until another process runs.
fn unreachable(config: &Config) -> String {
    let path = config.dnssec.state_file.as_deref().map(|path| path.display().to_string());
    format!(
        "what is learned about trust anchors is not kept in {}: the sandbox of the running server lets it write nothing; run \
         `sixfold ctl upgrade`, or restart the server",
        path.unwrap_or_default()
    )
}
