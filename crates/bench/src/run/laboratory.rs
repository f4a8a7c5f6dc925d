//! The laboratory: hosts, authority and device, in the state that a task needs.
//!
//! Tester and authority stay the same processes through the whole run, and the authority keeps its address when what it
//! serves changes: a device that finds its upstream gone would not trust it again for minutes.

use super::cores::{self, Cores, Hosts, Place};
use crate::clock;
use crate::device::Settings;
use crate::host::{Host, HostError};
use crate::protocol::{Progress, Recipe, Start, Started, Target};
use measure::order::{Authority, Expectation, Lanes, Load, Pace};
use measure::outcome::{Outcome, Verdict};
use measure::plan::Plan;
use measure::procedure::{Setup, Surroundings, Task};
use measure::run::{Cell, Correctness, Device, Purpose, Trial};
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a device may take until its first right answer: a resolver with large tables needs some seconds.
const READY: Duration = Duration::from_secs(30);

/// How long a device may answer wrongly until its first right answer: SERVFAIL until its upstream is known, say.
const WRONG: Duration = Duration::from_secs(5);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Names of the check are asked at this rate, which every server bears.
const CHECK_QPS: f64 = 200.0;

/// Names of one question for readiness.
const PROBE_NAMES: u64 = 5;

/// Counters of what the authority, which is the tester's other half, should have answered and did not.
const AUTHORITY_DROPS: [(&str, &str); 4] = [
    ("queue_overflow", "queries found its queue full"),
    ("send_full", "answers found no room in the kernel"),
    ("send_failed", "answers could not be sent"),
    ("delay_overflow", "answers found no room to wait for their delay"),
];

/// A failure that the authority may have caused says nothing of the device.
fn judge_authority(outcome: &mut Outcome, counted: &BTreeMap<String, u64>) {
    if outcome.verdict != Verdict::Fail {
        return;
    }
    let count = |name: &str| counted.get(name).copied().unwrap_or(0);
    let drops: Vec<String> = AUTHORITY_DROPS
        .iter()
        .filter(|(name, _)| count(name) > 0)
        .map(|(name, what)| format!("{} {what}", count(name)))
        .collect();
    if !drops.is_empty() {
        outcome.verdict = Verdict::TesterLimited;
        outcome.reason = format!("the authority did not keep up: {}; {}", drops.join(", "), outcome.reason);
    }
}

/// The warning that the device did not bear its trials.
const ENDED: &str = "the device ended by itself, or answered nothing any more, and was started anew; the trials in which it did \
                     count as failed; the log says when";

/// What is known of the device before it is started. Configurations that an earlier part of the run used are kept.
fn described(plan: &Plan, cores: &Cores, before: Device) -> Device {
    let name = if plan.device.template.is_empty() { "custom" } else { plan.device.template.as_str() };
    Device {
        name: name.to_owned(),
        cores: cores.device(plan.device.workers),
        address: plan.device.address.map(|address| address.to_string()).unwrap_or_default(),
        sweep: plan.sweep.as_ref().map(|sweep| (sweep.parameter.clone(), sweep.values.clone())),
        ..before
    }
}

/// A device that runs.
struct Running {
    sweep: String,
    address: SocketAddr,
    /// Its number at its host; nothing when nobody watches it.
    number: Option<u32>,
}

/// Something that a reader of the log should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// To be said at once, too.
    Aloud(String),
    /// For the log alone.
    Quiet(String),
}

/// Everything that a run needs of the world.
pub struct Laboratory<'a> {
    plan: &'a Plan,
    cores: Cores,
    tester: Host,
    /// Nothing: the tester's.
    authority: Option<Host>,
    /// Nothing: the device is not ours to start or to watch.
    device_host: Option<Host>,
    /// What the authority serves now, and where.
    serving: Option<(f64, SocketAddr)>,
    running: Option<Running>,
    /// Who takes part, as far as is known.
    known: Surroundings,
    /// Whether it was started since the last trial.
    is_new: bool,
    /// Whether it answered nothing at all in the last trial.
    is_doubtful: bool,
    notes: Vec<Note>,
    /// How often it was asked whether the device answers.
    probes: u64,
    stop: &'a AtomicBool,
}

impl<'a> Laboratory<'a> {
    /// Connects to the hosts. `known`: what a run that this one goes on with knew. `stop` ends what is going on when it
    /// becomes true.
    pub fn open(plan: &'a Plan, known: Surroundings, stop: &'a AtomicBool) -> Result<Laboratory<'a>, String> {
        let connect = |role: &str, prefix: &Vec<String>| {
            let prefix = (!prefix.is_empty()).then_some(prefix.as_slice());
            Host::connect(role, prefix).map_err(|error| error.to_string())
        };
        let tester = connect("tester", &plan.tester.host)?;
        let with_tester = plan.authority.host.is_empty() || plan.authority.host == plan.tester.host;
        let authority = if plan.authority.external || with_tester {
            None
        } else {
            Some(connect("authority", &plan.authority.host)?)
        };
        let ours = plan.device.is_started_by_us();
        let device_host = if ours || plan.device.pid.is_some() {
            Some(connect("device", &plan.device.host)?)
        } else {
            None
        };
        // Hosts that are reached by different commands may be one machine: in network namespaces, or over ssh to itself.
        let machine = tester.greeting().machine.clone();
        let is_beside = |host: &Host| !machine.is_empty() && host.greeting().machine == machine;
        let place = match &authority {
            _ if plan.authority.external => Place::External,
            Some(host) if is_beside(host) => Place::Beside,
            Some(host) => Place::Apart(host.greeting().allowed.clone()),
            None => Place::WithTester,
        };
        let device_with_tester = ours && device_host.as_ref().is_some_and(is_beside);
        let tester_cores = tester.greeting().allowed.clone();
        let cores =
            cores::divide(plan, &Hosts { tester: tester_cores, authority: place, device_with_tester });
        let known = Surroundings { device: described(plan, &cores, known.device), ..known };
        Ok(Laboratory {
            plan,
            cores,
            tester,
            authority,
            device_host,
            serving: None,
            running: None,
            known,
            is_new: false,
            is_doubtful: false,
            notes: Vec::new(),
            probes: 0,
            stop,
        })
    }

    /// Who takes part, as far as is known.
    pub fn surroundings(&self) -> &Surroundings {
        &self.known
    }

    /// What was noted since this was asked last.
    pub fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Asks all hosts for their facts.
    pub fn look_around(&mut self) -> Result<(), String> {
        let addresses: Vec<_> = [self.plan.device.address, self.plan.authority.address]
            .iter()
            .flatten()
            .map(SocketAddr::ip)
            .collect();
        let addresses = if addresses.is_empty() { vec![Ipv6Addr::LOCALHOST.into()] } else { addresses };
        let hosts = [("authority", self.authority.as_mut()), ("device", self.device_host.as_mut())];
        for (role, host) in [("tester", Some(&mut self.tester))].into_iter().chain(hosts) {
            if let Some(host) = host {
                let facts = host.environment(&addresses).map_err(|error| error.to_string())?;
                self.known.hosts.insert(role.to_owned(), facts);
            }
        }
        for warning in &self.cores.warnings {
            if !self.known.warnings.contains(warning) {
                self.known.warnings.push(warning.clone());
            }
        }
        Ok(())
    }

    /// Runs the load of a task; nothing when it was stopped.
    pub fn trial(
        &mut self,
        task: &Task,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Option<Trial>, String> {
        if !self.prepare(&task.setup)? {
            return Ok(None);
        }
        let started = clock::now_utc();
        let load = self.load(task)?;
        let counted = self.counters()?;
        let used = self.usage()?;
        let Some(mut outcome) = self.run_load(&load, &mut progress)? else { return Ok(None) };
        let device = match (self.usage()?, used) {
            (Some(after), Some(before)) => {
                // What was answered before the measured time cost the device as much.
                let fresh = outcome.sent.saturating_sub(outcome.asked_again);
                let before_window = outcome.names_used.saturating_sub(fresh);
                Some(after.since(&before, outcome.valid + before_window))
            }
            _ => None,
        };
        let mut authority = self.counters()?;
        authority
            .iter_mut()
            .for_each(|(kind, count)| *count -= counted.get(kind).copied().unwrap_or(0).min(*count));
        judge_authority(&mut outcome, &authority);
        self.is_doubtful = task.setup.device.is_some() && outcome.sent > 0 && outcome.received == 0;
        self.rest();
        Ok(Some(Trial {
            number: 0,
            purpose: task.purpose,
            sweep: task.setup.device.clone().unwrap_or_default(),
            cell: task.cell,
            repetition: task.repetition,
            rate_qps: task.rate_qps,
            started,
            first_name: task.first_name,
            outcome,
            authority,
            device: if task.setup.device.is_some() { device } else { None },
            fresh: task.setup.device.is_some() && std::mem::take(&mut self.is_new),
        }))
    }

    /// Asks some names at a gentle pace; nothing when it was stopped. The number is that of the names used.
    pub fn check(&mut self, setup: &Setup, first_name: u64) -> Result<Option<(Correctness, u64)>, String> {
        if !self.prepare(setup)? {
            return Ok(None);
        }
        let names = f64::from(self.plan.correctness.names);
        let cell = Cell { aaaa_share: setup.aaaa_share, cached_share: 0.0 };
        let task = Task {
            purpose: Purpose::Search,
            setup: setup.clone(),
            cell,
            repetition: 0,
            rate_qps: CHECK_QPS,
            first_name,
        };
        let duration_ms = (names / CHECK_QPS * 1000.0).ceil() as u64;
        let load = Load { duration_ms, warm_up_ms: 0, ..self.load(&task)? };
        let Some(outcome) = self.run_load(&load, &mut |_| {})? else { return Ok(None) };
        let mut invalid = outcome.invalid.clone();
        for (reason, count) in [("lost", outcome.lost), ("late", outcome.late)] {
            if count > 0 {
                invalid.insert(reason.to_owned(), count);
            }
        }
        let found =
            Correctness { names: outcome.sent, valid: outcome.valid, invalid, ..Correctness::default() };
        Ok(Some((found, outcome.names_used)))
    }

    /// What the device last said, to explain a failure.
    pub fn complaint(&mut self) -> String {
        let number = self.running.as_ref().and_then(|running| running.number);
        let (Some(host), Some(number)) = (self.device_host.as_mut(), number) else {
            return "see with dig what it answers".to_owned();
        };
        let log = host.log(number).unwrap_or_default();
        match (log.ended, log.text.trim()) {
            (Some(ended), text) => format!("it ended ({ended}): {text}"),
            (None, "") => "it said nothing".to_owned(),
            (None, text) => format!("it said: {text}"),
        }
    }

    /// Ends the device. Returns what was noted.
    pub fn close(mut self) -> Vec<Note> {
        self.stop_device();
        self.notes
    }

    /// Brings authority and device into the state that is needed; false when it was stopped.
    fn prepare(&mut self, setup: &Setup) -> Result<bool, String> {
        self.serve(setup.aaaa_share)?;
        let Some(sweep) = &setup.device else { return Ok(true) };
        let is_there = self.running.as_ref().is_some_and(|running| running.sweep == *sweep);
        if is_there && !setup.fresh {
            let Some(why) = self.trouble()? else { return Ok(true) };
            if !self.plan.device.is_started_by_us() {
                return Err(format!("{why}; it is not ours to start: start it"));
            }
            self.notes.push(Note::Aloud(format!("{why}; it is started anew")));
            if !self.known.warnings.iter().any(|warning| warning == ENDED) {
                self.known.warnings.push(ENDED.to_owned());
            }
        }
        self.start_device(sweep)
    }

    /// Why the device is of no use any more, if it is not: then every further trial would fail, and say nothing. What it did
    /// before is a failure of the trial in which it did.
    fn trouble(&mut self) -> Result<Option<String>, String> {
        if self.is_gone()? {
            return Ok(Some(format!("the device has ended by itself: {}", self.complaint())));
        }
        if !std::mem::take(&mut self.is_doubtful) {
            return Ok(None);
        }
        Ok(self.await_device().err())
    }

    /// Whether the device has ended. Its first process may end while others go on, and the first thread of a process while others
    /// do; so neither is enough.
    fn is_gone(&mut self) -> Result<bool, String> {
        if self.usage()?.is_none_or(|usage| !usage.processes.is_empty()) {
            return Ok(false);
        }
        let number = self.running.as_ref().and_then(|running| running.number);
        match (self.device_host.as_mut(), number) {
            (Some(host), Some(number)) => {
                Ok(host.log(number).map_err(|error| error.to_string())?.ended.is_some())
            }
            _ => Ok(false),
        }
    }

    /// Has the authority serve this share of names with AAAA records.
    fn serve(&mut self, aaaa_share: f64) -> Result<(), String> {
        if self.plan.authority.external {
            let address = self.plan.authority.address.ok_or("authority.address is missing")?;
            self.serving = Some((aaaa_share, address));
            self.known.authority = address.to_string();
            return Ok(());
        }
        if self.serving.is_some_and(|(share, _)| share == aaaa_share) {
            return Ok(());
        }
        let listen = match (self.serving, self.plan.authority.address) {
            (Some((_, address)), _) | (None, Some(address)) => address,
            (None, None) => SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        };
        let names = &self.plan.names;
        let order = Authority {
            listen: vec![listen],
            threads: self.cores.authority.len() as u16,
            pins: self.cores.authority.clone(),
            zone: names.zone.clone(),
            aaaa_share,
            seed: names.seed,
            addresses: names.addresses,
            cname_depth: names.cname_depth,
            ttl: names.ttl,
        };
        let host = self.authority.as_mut().unwrap_or(&mut self.tester);
        let addresses = host.authority(&order).map_err(|error| error.to_string())?;
        let address = *addresses.first().ok_or("the authority listens nowhere")?;
        self.serving = Some((aaaa_share, address));
        self.known.authority = address.to_string();
        Ok(())
    }

    /// Starts the device with a value of the sweep, and waits until it answers; false when it was stopped.
    fn start_device(&mut self, sweep: &str) -> Result<bool, String> {
        self.stop_device();
        let plan = self.plan;
        let (_, upstream) = self.serving.ok_or("the authority does not serve yet")?;
        let Some(host) = self.device_host.as_mut() else {
            let address = plan.device.address.ok_or("device.address is missing")?;
            self.running = Some(Running { sweep: sweep.to_owned(), address, number: None });
            return self.await_device();
        };
        if let (Some(pid), Some(address)) = (plan.device.pid, plan.device.address)
            && plan.device.template.is_empty()
            && plan.device.command.is_empty()
        {
            let attached = host.attach(&Target::Pid { pid }).map_err(|error| error.to_string())?;
            self.known.device.command = attached.command;
            self.running = Some(Running { sweep: sweep.to_owned(), address, number: Some(attached.device) });
            return self.await_device();
        }
        let swept = plan.sweep.as_ref().is_some_and(|sweep| sweep.parameter == "workers");
        let workers = match sweep.parse() {
            Ok(workers) if swept => workers,
            _ if swept => return Err(format!("sweep: \"{sweep}\" is no number of workers")),
            _ => plan.device.workers,
        };
        let start = Start {
            recipe: if plan.device.template.is_empty() {
                Recipe::Custom { command: plan.device.command.clone(), files: BTreeMap::new() }
            } else {
                let program = Some(plan.device.program.clone()).filter(|program| !program.is_empty());
                Recipe::Template { name: plan.device.template.clone(), program }
            },
            settings: Settings {
                listen: plan.device.address.unwrap_or(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))),
                upstream,
                prefix: (plan.names.prefix.address, plan.names.prefix.length),
                zone: plan.names.zone.clone(),
                workers,
                value: sweep.to_owned(),
                options: plan.device.options.clone(),
            },
            cores: self.cores.device(workers),
            environment: BTreeMap::new(),
        };
        let started: Started = host.start(&start).map_err(|error| error.to_string())?;
        self.notes.push(Note::Quiet(format!(
            "device started as process {}: {} ({})",
            started.pid,
            started.command.join(" "),
            if started.version.is_empty() { "version unknown" } else { &started.version }
        )));
        self.is_new = true;
        let device = &mut self.known.device;
        device.version = started.version;
        device.command = started.command;
        device.cores = start.cores;
        device.address = started.listen.to_string();
        for (name, text) in started.files {
            // Each value of a sweep has its configuration.
            let name = if sweep.is_empty() { name } else { format!("{sweep}/{name}") };
            device.files.insert(name, text);
        }
        self.running =
            Some(Running { sweep: sweep.to_owned(), address: started.listen, number: Some(started.device) });
        self.await_device()
    }

    fn stop_device(&mut self) {
        if let (Some(running), Some(host)) = (self.running.take(), self.device_host.as_mut())
            && let Some(number) = running.number
        {
            // One that ended by itself is as good.
            let log = host.stop(number, GRACE).unwrap_or_default();
            let text = log.text.trim();
            if !text.is_empty() {
                self.notes.push(Note::Quiet(format!("the device said last:\n{text}")));
            }
        }
    }

    /// Asks until some right answers come; false when it was stopped.
    fn await_device(&mut self) -> Result<bool, String> {
        let began = Instant::now();
        loop {
            let first_name = self.names_of_probe();
            let task = Task {
                purpose: Purpose::Search,
                setup: Setup {
                    device: Some(String::new()),
                    fresh: false,
                    aaaa_share: self.serving.map_or(0.0, |(share, _)| share),
                },
                cell: Cell { aaaa_share: self.serving.map_or(0.0, |(share, _)| share), cached_share: 0.0 },
                repetition: 0,
                rate_qps: 100.0,
                first_name,
            };
            let duration_ms = PROBE_NAMES * 10;
            let load = Load { duration_ms, warm_up_ms: 0, ..self.load(&task)? };
            let Some(outcome) = self.run_load(&load, &mut |_| {})? else { return Ok(false) };
            if outcome.sent > 0 && outcome.valid == outcome.sent {
                return Ok(true);
            }
            let ended = self.is_gone()?;
            // One that answers, and wrongly, is not starting any more.
            let wrong = outcome.invalid_total() > 0 && began.elapsed() > WRONG;
            if ended || wrong || began.elapsed() > READY {
                let invalid: Vec<String> =
                    outcome.invalid.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
                return Err(format!(
                    "the device gave no right answers within {} s ({} valid, {} lost{}{}); its upstream must be the authority{}, \
                     and its prefix {}; {}",
                    began.elapsed().as_secs(),
                    outcome.valid,
                    outcome.lost,
                    if invalid.is_empty() { "" } else { ", " },
                    invalid.join(", "),
                    self.serving.map(|(_, address)| format!(" at {address}")).unwrap_or_default(),
                    self.plan.names.prefix,
                    self.complaint()
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Names to find out whether the device answers: from the end of the window, where no trial asks.
    fn names_of_probe(&mut self) -> u64 {
        let names = &self.plan.names;
        let places = (names.for_probes() / PROBE_NAMES).max(1);
        let place = self.probes % places;
        self.probes += 1;
        names.window.names().saturating_sub((place + 1) * PROBE_NAMES)
    }

    /// The load of a task.
    fn load(&self, task: &Task) -> Result<Load, String> {
        let (plan, names) = (self.plan, &self.plan.names);
        let self_test = task.purpose == Purpose::SelfTest;
        let server = match (&self.running, self_test) {
            (_, true) => self.serving.map(|(_, address)| address),
            (Some(running), false) => Some(running.address),
            (None, false) => None,
        };
        // RFC 8219 section 9.2.1: a quarter of the timeout.
        let timeout_ms =
            if self_test { (plan.trial.timeout.ms() / 4).max(1) } else { plan.trial.timeout.ms() };
        let prefixes = if self_test { Vec::new() } else { vec![(names.prefix.address, names.prefix.length)] };
        Ok(Load {
            server: server.ok_or("nothing listens yet")?,
            pace: Pace::Open { rate_qps: task.rate_qps, burst: plan.tester.burst },
            duration_ms: plan.trial.duration.ms(),
            warm_up_ms: if self_test { 0 } else { plan.warm_up_ms(task.cell) },
            timeout_ms,
            names: names.window,
            first_name: task.first_name,
            expect: Expectation {
                zone: names.zone.clone(),
                prefixes,
                addresses: names.addresses,
                cname_depth: names.cname_depth,
                aaaa_share: task.cell.aaaa_share,
                aaaa_seed: names.seed,
                ttl: (0, names.ttl),
            },
            cached_share: task.cell.cached_share,
            lanes: Lanes {
                senders: self.cores.senders,
                receivers: self.cores.receivers,
                ports: plan.tester.ports,
                sources: plan.tester.sources.clone(),
                group: plan.tester.group,
                pins: self.cores.tester.clone(),
                spin: plan.tester.spin,
            },
            seed: names.seed.wrapping_add(task.first_name),
        })
    }

    fn run_load(
        &mut self,
        load: &Load,
        progress: &mut impl FnMut(&Progress),
    ) -> Result<Option<Outcome>, String> {
        let stop = self.stop;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let outcome = self.tester.load(load, |now| {
            progress(now);
            !stop.load(Ordering::Relaxed)
        });
        match outcome {
            Ok(outcome) => Ok(Some(outcome)),
            Err(HostError::Aborted { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, String> {
        if self.plan.authority.external {
            return Ok(BTreeMap::new());
        }
        let host = self.authority.as_mut().unwrap_or(&mut self.tester);
        host.counters().map_err(|error| error.to_string())
    }

    fn usage(&mut self) -> Result<Option<crate::usage::Usage>, String> {
        let number = self.running.as_ref().and_then(|running| running.number);
        match (self.device_host.as_mut(), number) {
            (Some(host), Some(number)) => host.usage(number).map(Some).map_err(|error| error.to_string()),
            _ => Ok(None),
        }
    }

    /// Lets everybody come to rest.
    fn rest(&self) {
        let end = Instant::now() + self.plan.trial.pause.0;
        while !self.stop.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_not_the_devices_when_the_authority_dropped() {
        let failed = Outcome { reason: "3 lost".into(), ..Outcome::default() };
        let quiet = BTreeMap::from([("queue_overflow".to_owned(), 0), ("asked_a".to_owned(), 9)]);
        let mut outcome = failed.clone();
        judge_authority(&mut outcome, &quiet);
        assert_eq!(outcome, failed);
        for (name, _) in AUTHORITY_DROPS {
            let mut outcome = failed.clone();
            judge_authority(&mut outcome, &BTreeMap::from([(name.to_owned(), 2)]));
            assert_eq!(outcome.verdict, Verdict::TesterLimited);
            assert!(outcome.reason.contains("2 ") && outcome.reason.contains("3 lost"), "{}", outcome.reason);
            let mut passed = Outcome { verdict: Verdict::Pass, ..Outcome::default() };
            judge_authority(&mut passed, &BTreeMap::from([(name.to_owned(), 2)]));
            assert_eq!(passed.verdict, Verdict::Pass, "the device asked again, and every query was answered");
        }
    }
}
