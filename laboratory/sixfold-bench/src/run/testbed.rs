//! Testbed of a run: brings hosts, authority and device into the state that a task needs, and runs loads. It does not
//! decide which task comes next.
//!
//! Tester and authority stay the same processes through the whole run, and the authority keeps its address when its
//! zone changes: a device that finds its upstream unreachable would avoid it for minutes.

mod device;
mod further_testers;

use self::further_testers::FurtherTesters;
use super::cores::{self, AuthorityPlace, Cores, Hosts};
use crate::agent::protocol::Progress;
use crate::agent_client::{AgentClient, AgentError};
use crate::clock;
use measure::order::{Authority, Expectation, Lanes, Load, Pace, Transport};
use measure::outcome::{Outcome, Verdict};
use measure::plan::Plan;
use measure::procedure::{Setup, Surroundings, Task};
use measure::run::{Cell, Correctness, Equipment, Participant, Purpose, TrafficForm, Trial};
use measure::starvation;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Rate of the check of answers, which every server can handle.
const CHECK_RATE_QPS: f64 = 200.0;

/// Counters of queries that the authority, which belongs to the test equipment, should have answered and dropped.
const AUTHORITY_DROPS: [(&str, &str); 4] = [
    ("queue_overflow", "queries found its queue full"),
    ("send_full", "answers found no room in the kernel"),
    ("send_failed", "answers could not be sent"),
    ("delay_overflow", "answers found no room to wait for their delay"),
];

/// Messages that one drop may stand for: the kernel merges up to this number into one packet (UDP GRO).
const MESSAGES_A_DROP: u64 = 64;

/// Changes the verdict to "tester limited" if drops of the authority may have caused the failure. A few drops do not
/// explain many losses.
fn apply_authority_drops(outcome: &mut Outcome, counted: &BTreeMap<String, u64>) {
    if outcome.verdict != Verdict::Fail {
        return;
    }
    let count = |name: &str| counted.get(name).copied().unwrap_or(0);
    let drops: Vec<String> = AUTHORITY_DROPS
        .iter()
        .filter(|(name, _)| count(name) > 0)
        .map(|(name, what)| format!("{} {what}", count(name)))
        .collect();
    let dropped: u64 = AUTHORITY_DROPS.iter().map(|(name, _)| count(name)).sum();
    let missing = outcome.sent.saturating_sub(outcome.valid);
    if dropped > 0 && dropped.saturating_mul(MESSAGES_A_DROP) >= missing {
        outcome.verdict = Verdict::TesterLimited;
        outcome.reason = format!(
            "the authority did not keep up: {}; give it more cores or a host of its own (`cores` and `host` of [authority]); {}",
            drops.join(", "),
            outcome.reason
        );
    }
}

/// Warning in the record that the device did not survive its trials.
const RESTARTED_WARNING: &str = "the device ended by itself, or stopped answering, and was restarted; the trials in which it did \
                     count as failed; the log says when";

/// A device that runs.
struct RunningDevice {
    sweep: String,
    address: SocketAddr,
    /// Its number at its agent; `None` if no agent watches it.
    number: Option<u32>,
}

/// Entry for the log of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// Shown on standard error, too.
    Shown(String),
    /// For the log alone.
    LogOnly(String),
}

/// Hosts, authority and device of a run.
pub struct Testbed<'a> {
    plan: &'a Plan,
    cores: Cores,
    tester: AgentClient,
    /// Further hosts that send parts of the trials' loads.
    further_testers: FurtherTesters,
    /// `None`: the tester's agent serves the authority.
    authority: Option<AgentClient>,
    /// `None`: the run neither starts nor watches the device.
    device_agent: Option<AgentClient>,
    /// Share of names with AAAA records that the authority serves now, and its address.
    serving: Option<(f64, SocketAddr)>,
    running: Option<RunningDevice>,
    /// Hosts, device and authority as far as they are known.
    surroundings: Surroundings,
    /// True if the device was started since the last trial.
    was_started: bool,
    /// True if the device answered nothing at all in the last trial.
    is_unresponsive: bool,
    notes: Vec<LogEntry>,
    /// Number of probes for readiness so far.
    probes: u64,
    stop: &'a AtomicBool,
}

impl<'a> Testbed<'a> {
    /// Connects to the hosts. `known`: what the earlier part of a resumed run knew. When `stop` becomes true, the
    /// current action ends.
    ///
    /// # Errors
    ///
    /// An agent cannot be started at a host.
    pub fn open(plan: &'a Plan, known: Surroundings, stop: &'a AtomicBool) -> Result<Testbed<'a>, String> {
        let connect = |role: &str, prefix: &Vec<String>| {
            let prefix = (!prefix.is_empty()).then_some(prefix.as_slice());
            AgentClient::connect(role, prefix).map_err(|error| error.to_string())
        };
        let tester = connect("tester", &plan.tester.host)?;
        let further_testers = FurtherTesters::connect(plan)?;
        let with_tester = plan.authority.host.is_empty() || plan.authority.host == plan.tester.host;
        let authority = if plan.authority.external || with_tester {
            None
        } else {
            Some(connect("authority", &plan.authority.host)?)
        };
        let ours = plan.device.is_started_by_us();
        let device_agent = if ours || plan.device.pid.is_some() {
            Some(connect("device", &plan.device.host)?)
        } else {
            None
        };
        // Hosts that are reached by different commands may be one machine: with network namespaces, or with ssh to the
        // same host.
        let machine = tester.greeting().machine.clone();
        let is_beside = |host: &AgentClient| !machine.is_empty() && host.greeting().machine == machine;
        let place = match &authority {
            _ if plan.authority.external => AuthorityPlace::External,
            Some(host) if is_beside(host) => AuthorityPlace::SameMachine,
            Some(host) => AuthorityPlace::OtherMachine(host.greeting().allowed.clone()),
            None => AuthorityPlace::InTester,
        };
        let is_reached_alike = plan.device.host == plan.tester.host;
        let device_with_tester = ours && (is_reached_alike || device_agent.as_ref().is_some_and(is_beside));
        let tester_cores = tester.greeting().allowed.clone();
        let cores =
            cores::assign(plan, &Hosts { tester: tester_cores, authority: place, device_with_tester });
        let known = Surroundings { device: device::initial_description(plan, &cores, known.device), ..known };
        Ok(Testbed {
            plan,
            cores,
            tester,
            further_testers,
            authority,
            device_agent,
            serving: None,
            running: None,
            surroundings: known,
            was_started: false,
            is_unresponsive: false,
            notes: Vec::new(),
            probes: 0,
            stop,
        })
    }

    /// Hosts, device and authority as far as they are known.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Takes the log entries since the last call.
    pub fn notes(&mut self) -> Vec<LogEntry> {
        std::mem::take(&mut self.notes)
    }

    /// Reads the facts of all hosts.
    ///
    /// # Errors
    ///
    /// An agent has ended, or does not answer.
    pub fn read_environments(&mut self) -> Result<(), String> {
        let addresses: Vec<_> = [self.plan.device.address, self.plan.authority.address]
            .iter()
            .flatten()
            .map(SocketAddr::ip)
            .collect();
        let addresses = if addresses.is_empty() { vec![Ipv6Addr::LOCALHOST.into()] } else { addresses };
        let hosts = [("authority", self.authority.as_mut()), ("device", self.device_agent.as_mut())];
        for (role, host) in [("tester", Some(&mut self.tester))].into_iter().chain(hosts) {
            if let Some(host) = host {
                let facts = host.environment(&addresses).map_err(|error| error.to_string())?;
                self.surroundings.hosts.insert(role.to_owned(), facts);
            }
        }
        self.surroundings.hosts.extend(self.further_testers.environments(&addresses)?);
        self.surroundings.equipment = Some(self.equipment());
        for warning in &self.cores.warnings {
            if !self.surroundings.warnings.contains(warning) {
                self.surroundings.warnings.push(warning.clone());
            }
        }
        Ok(())
    }

    /// Threads, ports and cores of tester and authority.
    fn equipment(&self) -> Equipment {
        let (tester, cores) = (&self.plan.tester, &self.cores);
        Equipment {
            senders: cores.senders,
            receivers: cores.receivers,
            ports: tester.ports,
            sources: tester.sources.iter().map(ToString::to_string).collect(),
            group: tester.group,
            burst: tester.burst,
            spin: tester.spin,
            random_ports: tester.random_ports,
            tester_cores: cores.tester.clone(),
            authority_threads: (!self.plan.authority.external).then_some(cores.authority.len() as u16),
            authority_cores: cores.authority.clone(),
            transport: tester.transport,
            connections: tester.connections,
            hosts: tester.hosts() as u16,
        }
    }

    /// Runs the load of a task. Returns `None` if the run was stopped.
    ///
    /// # Errors
    ///
    /// The device or the authority cannot be started, an agent has ended or does not answer, or the load is impossible.
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
        let sent = match self.further_testers.is_empty() {
            true => self.run_load(&load, &mut progress)?,
            false => {
                let names =
                    self.plan.names_of_a_host(task.rate_qps / self.plan.tester.hosts() as f64, task.cell);
                self.further_testers.run_load(&mut self.tester, &load, names, self.stop, &mut progress)?
            }
        };
        let Some(mut outcome) = sent else { return Ok(None) };
        let device = match (self.usage()?, used) {
            (Some(after), Some(before)) => {
                // Queries before the measured time cost the device CPU time as well.
                let fresh = outcome.sent.saturating_sub(outcome.asked_again);
                let before_window = outcome.names_used.saturating_sub(fresh);
                Some(after.since(&before, outcome.valid + before_window))
            }
            _ => None,
        };
        self.note_tester(&outcome);
        let mut authority = self.counters()?;
        // The names of the hosts lie apart, and the next trial begins after the last of them.
        outcome.names_used = self.further_testers.range_used(self.plan, task, outcome.names_used);
        authority
            .iter_mut()
            .for_each(|(kind, count)| *count -= counted.get(kind).copied().unwrap_or(0).min(*count));
        apply_authority_drops(&mut outcome, &authority);
        if let Some(used) = device.as_ref().filter(|_| task.setup.device.is_some()) {
            starvation::apply(&mut outcome, used, (load.warm_up_ms + load.duration_ms) as f64 / 1e3);
        }
        self.is_unresponsive = task.setup.device.is_some() && outcome.sent > 0 && outcome.received == 0;
        self.pause_after_trial();
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
            fresh: task.setup.device.is_some() && std::mem::take(&mut self.was_started),
        }))
    }

    /// Checks the answers for some names at a low rate. Returns the result and the number of names used, or `None` if
    /// the run was stopped.
    ///
    /// # Errors
    ///
    /// As [`Testbed::trial`].
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
            rate_qps: CHECK_RATE_QPS,
            first_name,
            form: None,
            sweep: 0,
        };
        let duration_ms = (names / CHECK_RATE_QPS * 1000.0).ceil() as u64;
        let load = Load { duration_ms, warm_up_ms: 0, ..self.load(&task)? };
        let Some(outcome) = self.run_load(&load, &mut |_| {})? else { return Ok(None) };
        let mut invalid = outcome.invalid.clone();
        for (reason, count) in [
            ("lost", outcome.lost),
            ("connection refused", outcome.connection_refused),
            ("late", outcome.late),
        ] {
            if count > 0 {
                invalid.insert(reason.to_owned(), count);
            }
        }
        let found =
            Correctness { names: outcome.sent, valid: outcome.valid, invalid, ..Correctness::default() };
        Ok(Some((found, outcome.names_used)))
    }

    /// Ends the device. Returns the last log entries.
    pub fn close(mut self) -> Vec<LogEntry> {
        self.stop_device();
        self.notes
    }

    /// Brings authority and device into the required state. Returns false if the run was stopped.
    fn prepare(&mut self, setup: &Setup) -> Result<bool, String> {
        self.serve(setup.aaaa_share)?;
        let Some(sweep) = &setup.device else { return Ok(true) };
        let is_there = self.running.as_ref().is_some_and(|running| running.sweep == *sweep);
        if is_there && !setup.fresh {
            let Some(why) = self.check_device()? else { return Ok(true) };
            if !self.plan.device.is_started_by_us() {
                return Err(format!(
                    "{why}; the run did not start it and cannot restart it: start it yourself"
                ));
            }
            self.notes.push(LogEntry::Shown(format!("{why}; it is restarted")));
            if !self.surroundings.warnings.iter().any(|warning| warning == RESTARTED_WARNING) {
                self.surroundings.warnings.push(RESTARTED_WARNING.to_owned());
            }
        }
        self.start_device(sweep)
    }

    /// Makes the authority serve this share of names with AAAA records.
    fn serve(&mut self, aaaa_share: f64) -> Result<(), String> {
        if self.plan.authority.external {
            let address = self.plan.authority.address.ok_or("authority.address is missing")?;
            self.serving = Some((aaaa_share, address));
            self.surroundings.authority = address.to_string();
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
            // The traffic of the device is that of the self-test: single datagrams, unless the plan groups them.
            offload: self.plan.tester.group > 1,
        };
        let host = self.authority.as_mut().unwrap_or(&mut self.tester);
        let addresses = host.authority(&order).map_err(|error| error.to_string())?;
        let address = *addresses.first().ok_or("the authority listens nowhere")?;
        self.serving = Some((aaaa_share, address));
        self.surroundings.authority = address.to_string();
        let host = self.authority.as_mut().unwrap_or(&mut self.tester);
        let found = host.sockets(None, address.port(), false).map_err(|error| error.to_string())?;
        let cores: Vec<String> = self.cores.authority.iter().map(u16::to_string).collect();
        // The agent has other threads as well.
        let found =
            Participant { threads: self.cores.authority.len() as u32, cores: cores.join(","), ..found };
        self.surroundings.participants.insert("authority".to_owned(), found);
        Ok(())
    }

    /// Notes the sockets of the tester, which exist only while a load runs.
    fn note_tester(&mut self, outcome: &Outcome) {
        let (tester, cores) = (&self.plan.tester, &self.cores);
        let receive_buffer = outcome.tester.receive_buffer;
        let pins: Vec<String> = cores.tester.iter().map(u16::to_string).collect();
        let found = Participant {
            sockets: u32::from(cores.senders) * u32::from(tester.ports) * tester.sources.len().max(1) as u32,
            receive_buffer: (receive_buffer, receive_buffer),
            coalescing: Some(tester.group > 1),
            threads: u32::from(cores.senders + cores.receivers),
            cores: pins.join(","),
            ..Participant::default()
        };
        self.surroundings.participants.insert("tester".to_owned(), found);
    }

    /// The load of a task.
    fn load(&self, task: &Task) -> Result<Load, String> {
        let (plan, names) = (self.plan, &self.plan.names);
        let self_test = task.purpose.is_self_test();
        let server = match (&self.running, self_test) {
            (_, true) => self.serving.map(|(_, address)| address),
            (Some(running), false) => Some(running.address),
            (None, false) => None,
        };
        // RFC 8219 section 9.2.1: a quarter of the timeout.
        let timeout_ms =
            if self_test { (plan.trial.timeout.ms() / 4).max(1) } else { plan.trial.timeout.ms() };
        let prefixes = if self_test { Vec::new() } else { vec![(names.prefix.address, names.prefix.length)] };
        let planned =
            TrafficForm { ports: plan.tester.ports, group: plan.tester.group, burst: plan.tester.burst };
        let form = task.form.unwrap_or(planned);
        Ok(Load {
            server: server.ok_or("nothing listens yet")?,
            pace: Pace::Open { rate_qps: task.rate_qps, burst: form.burst },
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
                aaaa_share: task.setup.aaaa_share,
                aaaa_seed: names.seed,
                ttl: (0, names.ttl),
                validity: plan.trial.validity,
            },
            // In the self-test the tester asks as the device does: for names that it has not cached.
            cached_share: if self_test { 0.0 } else { task.cell.cached_share },
            lanes: Lanes {
                senders: self.cores.senders,
                receivers: self.cores.receivers,
                ports: form.ports,
                sources: plan.tester.sources.clone(),
                group: form.group,
                pins: self.cores.tester.clone(),
                spin: plan.tester.spin,
                connections: plan.tester.connections,
                random_ports: plan.tester.random_ports,
                ..Lanes::default()
            },
            seed: names.seed.wrapping_add(task.first_name),
            // The self-test is the traffic that the authority gets from the device.
            transport: if self_test { Transport::Udp } else { plan.tester.transport },
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
            Err(AgentError::Aborted { .. }) => Ok(None),
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
        match (self.device_agent.as_mut(), number) {
            (Some(host), Some(number)) => host.usage(number).map(Some).map_err(|error| error.to_string()),
            _ => Ok(None),
        }
    }

    /// Pauses, so that all roles are idle before the next trial.
    fn pause_after_trial(&self) {
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
        let failed = Outcome { reason: "3 lost".into(), sent: 100, valid: 97, ..Outcome::default() };
        let quiet = BTreeMap::from([("queue_overflow".to_owned(), 0), ("asked_a".to_owned(), 9)]);
        let mut outcome = failed.clone();
        apply_authority_drops(&mut outcome, &quiet);
        assert_eq!(outcome, failed);
        for (name, _) in AUTHORITY_DROPS {
            let mut outcome = failed.clone();
            apply_authority_drops(&mut outcome, &BTreeMap::from([(name.to_owned(), 2)]));
            assert_eq!(outcome.verdict, Verdict::TesterLimited);
            assert!(outcome.reason.contains("2 ") && outcome.reason.contains("3 lost"), "{}", outcome.reason);
            let mut many = Outcome { sent: 1000, valid: 871, ..failed.clone() };
            apply_authority_drops(&mut many, &BTreeMap::from([(name.to_owned(), 2)]));
            assert_eq!(many.verdict, Verdict::Fail, "two drops do not explain 129 losses");
            let mut passed = Outcome { verdict: Verdict::Pass, ..Outcome::default() };
            apply_authority_drops(&mut passed, &BTreeMap::from([(name.to_owned(), 2)]));
            assert_eq!(passed.verdict, Verdict::Pass, "the device asked again, and every query was answered");
        }
    }
}
