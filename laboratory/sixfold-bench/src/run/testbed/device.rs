//! Device of a testbed: start, wait for readiness, checks and end.

use super::{LogEntry, RunningDevice, Testbed};
use crate::agent::protocol::{Start, Started, Target};
use crate::device::{Recipe, Settings};
use crate::run::cores::Cores;
use crate::sockets;
use measure::order::Load;
use measure::plan::Plan;
use measure::procedure::{Setup, Task};
use measure::run::{Cell, Device, Purpose};
use servers::process::may_start_elsewhere;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Time limit until the first valid answer: a resolver with large tables needs some seconds.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit during which a device may give invalid answers before the first valid one: for example SERVFAIL until it
/// knows its upstream.
const WRONG_ANSWERS_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between SIGTERM and SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Number of names in one probe for readiness.
const PROBE_NAMES: u64 = 5;

/// Description of the device before it is started. Keeps the configurations that an earlier part of the run used.
pub(super) fn initial_description(plan: &Plan, cores: &Cores, before: Device) -> Device {
    let name = if plan.device.template.is_empty() { "custom" } else { plan.device.template.as_str() };
    Device {
        name: name.to_owned(),
        cores: cores.device(plan.device.workers),
        address: plan.device.address.map(|address| address.to_string()).unwrap_or_default(),
        sweep: plan.sweep.as_ref().map(|sweep| (sweep.parameter.clone(), sweep.values.clone())),
        ..before
    }
}

/// The order that starts the device of a plan with a value of the sweep.
fn start_order(plan: &Plan, cores: &Cores, upstream: SocketAddr, sweep: &str) -> Result<Start, String> {
    let sweeps_workers = plan.sweep.as_ref().is_some_and(|sweep| sweep.parameter == "workers");
    let workers = match sweep.parse() {
        Ok(workers) if sweeps_workers => workers,
        _ if sweeps_workers => return Err(format!("sweep: \"{sweep}\" is not a number of workers")),
        _ => plan.device.workers,
    };
    let recipe = if plan.device.template.is_empty() {
        Recipe::Custom { command: plan.device.command.clone(), files: plan.device.files.clone() }
    } else {
        let program = Some(plan.device.program.clone()).filter(|program| !program.is_empty());
        Recipe::Template { name: plan.device.template.clone(), program }
    };
    let settings = Settings {
        listen: plan.device.address.unwrap_or(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))),
        upstream,
        prefix: (plan.names.prefix.address, plan.names.prefix.length),
        zone: plan.names.zone.clone(),
        workers,
        value: sweep.to_owned(),
        options: plan.device.options.clone(),
        transport: plan.tester.transport,
        as_shipped: plan.device.as_shipped,
        trust_anchor: None,
    };
    Ok(Start { recipe, settings, cores: cores.device(workers), environment: BTreeMap::new() })
}

impl Testbed<'_> {
    /// Starts the device with a value of the sweep, and waits until it answers. Returns false if the run was stopped.
    ///
    /// # Errors
    ///
    /// The device cannot be started, ends, or gives no right answer in time; the error has the end of its output.
    pub(super) fn start_device(&mut self, sweep: &str) -> Result<bool, String> {
        self.stop_device();
        let plan = self.plan;
        let (_, upstream) = self.serving.ok_or("the authority does not serve yet")?;
        let Some(host) = self.device_agent.as_mut() else {
            let address = plan.device.address.ok_or("device.address is missing")?;
            self.running = Some(RunningDevice { sweep: sweep.to_owned(), address, number: None });
            return self.wait_until_ready();
        };
        if let (Some(pid), Some(address)) = (plan.device.pid, plan.device.address)
            && plan.device.template.is_empty()
            && plan.device.command.is_empty()
        {
            let attached = host.attach(&Target::Pid { pid }).map_err(|error| error.to_string())?;
            self.surroundings.device.command = attached.command;
            self.running =
                Some(RunningDevice { sweep: sweep.to_owned(), address, number: Some(attached.device) });
            let is_ready = self.wait_until_ready()?;
            self.note_sockets(false)?;
            return Ok(is_ready);
        }
        let start = start_order(plan, &self.cores, upstream, sweep)?;
        let is_port_ours = start.settings.listen.port() == 0;
        let mut starts = 0;
        loop {
            let host = self.device_agent.as_mut().ok_or("no agent starts the device")?;
            let started: Started = host.start(&start).map_err(|error| error.to_string())?;
            let listen = started.listen;
            starts += 1;
            self.note_started(sweep, start.cores.clone(), started);
            match self.wait_until_ready() {
                Err(why) if is_port_ours && may_start_elsewhere(starts, &why) => {
                    let text =
                        format!("{listen} was taken before the device had it: it is started at another port");
                    self.notes.push(LogEntry::Shown(text));
                    self.stop_device();
                }
                Ok(true) => {
                    self.note_sockets(!plan.device.as_shipped)?;
                    return Ok(true);
                }
                ended => return ended,
            }
        }
    }

    /// Notes the sockets of a device that is ready. `raise`: gives its listening sockets the receive buffer of the other servers,
    /// and warns if that is not possible.
    fn note_sockets(&mut self, raise: bool) -> Result<(), String> {
        let running =
            self.running.as_ref().and_then(|running| Some((running.number?, running.address.port())));
        let (Some(host), Some((number, port))) = (self.device_agent.as_mut(), running) else { return Ok(()) };
        let found = host.sockets(Some(number), port, raise).map_err(|error| error.to_string())?;
        if let Some(warning) = sockets::warning_of_small_buffer(&found).filter(|_| raise)
            && !self.surroundings.warnings.contains(&warning)
        {
            self.surroundings.warnings.push(warning);
        }
        self.surroundings.participants.insert("device".to_owned(), found);
        Ok(())
    }

    /// Notes a device that was started, for the log, the record of the run and later orders.
    fn note_started(&mut self, sweep: &str, cores: String, started: Started) {
        self.notes.push(LogEntry::LogOnly(format!(
            "device started as process {}: {} ({})",
            started.pid,
            started.command.join(" "),
            if started.version.is_empty() { "version unknown" } else { &started.version }
        )));
        self.was_started = true;
        let device = &mut self.surroundings.device;
        device.version = started.version;
        device.command = started.command;
        device.cores = cores;
        device.address = started.listen.to_string();
        for (name, text) in started.files {
            // Each value of a sweep has its own configuration.
            let name = if sweep.is_empty() { name } else { format!("{sweep}/{name}") };
            device.files.insert(name, text);
        }
        self.running = Some(RunningDevice {
            sweep: sweep.to_owned(),
            address: started.listen,
            number: Some(started.device),
        });
    }

    pub(super) fn stop_device(&mut self) {
        if let (Some(running), Some(host)) = (self.running.take(), self.device_agent.as_mut())
            && let Some(number) = running.number
        {
            // A device that ended by itself is fine too.
            let log = host.stop(number, STOP_GRACE).unwrap_or_default();
            let text = log.text.trim();
            if !text.is_empty() {
                self.notes.push(LogEntry::LogOnly(format!("the last output of the device:\n{text}")));
            }
        }
    }

    /// Sends probes until all answers of one are valid. Returns false if the run was stopped.
    fn wait_until_ready(&mut self) -> Result<bool, String> {
        let began = Instant::now();
        loop {
            let first_name = self.next_probe_name();
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
                form: None,
                sweep: 0,
            };
            let duration_ms = PROBE_NAMES * 10;
            let load = Load { duration_ms, warm_up_ms: 0, ..self.load(&task)? };
            let Some(outcome) = self.run_load(&load, &mut |_| {})? else { return Ok(false) };
            let ended = self.has_ended()?;
            // The answers may be those of another process, which took the port before the device had it.
            if outcome.sent > 0 && outcome.valid == outcome.sent && !ended {
                return Ok(true);
            }
            // A device that still gives invalid answers after this time has finished starting.
            let wrong = outcome.invalid_total() > 0 && began.elapsed() > WRONG_ANSWERS_TIMEOUT;
            if ended || wrong || began.elapsed() > READY_TIMEOUT {
                let invalid: Vec<String> =
                    outcome.invalid.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
                let first = outcome.first_invalid.values().next().map(|reply| {
                    format!(" (the first: expected {}, got {} for {})", reply.expected, reply.got, reply.name)
                });
                return Err(format!(
                    "the device gave no valid answers within {} s ({} valid, {} lost, {} connection refused{}{}{}); its upstream must be the authority{}, \
                     and its prefix {}; {}",
                    began.elapsed().as_secs(),
                    outcome.valid,
                    outcome.lost,
                    outcome.connection_refused,
                    if invalid.is_empty() { "" } else { ", " },
                    invalid.join(", "),
                    first.unwrap_or_default(),
                    self.serving.map(|(_, address)| format!(" at {address}")).unwrap_or_default(),
                    self.plan.names.prefix,
                    self.last_output()
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// First name of the next probe. Probes use the end of the range of names, which no trial uses.
    fn next_probe_name(&mut self) -> u64 {
        let names = &self.plan.names;
        let places = (names.for_probes() / PROBE_NAMES).max(1);
        let place = self.probes % places;
        self.probes += 1;
        names.window.names().saturating_sub((place + 1) * PROBE_NAMES)
    }

    /// Returns the reason why the device is of no further use, if there is one: every further trial would fail and say
    /// nothing. A failure in an earlier trial stays a failure of that trial.
    ///
    /// # Errors
    ///
    /// The agent of the device has ended, or does not answer.
    pub(super) fn check_device(&mut self) -> Result<Option<String>, String> {
        if self.has_ended()? {
            return Ok(Some(format!("the device has ended by itself: {}", self.last_output())));
        }
        if !std::mem::take(&mut self.is_unresponsive) {
            return Ok(None);
        }
        Ok(self.wait_until_ready().err())
    }

    /// Returns true if the device has ended. Its first process may end while others run, and the first thread of a
    /// process may end while others run, so both the list of processes and the exit status are checked.
    fn has_ended(&mut self) -> Result<bool, String> {
        if self.usage()?.is_none_or(|usage| !usage.processes.is_empty()) {
            return Ok(false);
        }
        let number = self.running.as_ref().and_then(|running| running.number);
        match (self.device_agent.as_mut(), number) {
            (Some(host), Some(number)) => {
                Ok(host.log(number).map_err(|error| error.to_string())?.ended.is_some())
            }
            _ => Ok(false),
        }
    }

    /// The last output of the device, to explain a failure.
    fn last_output(&mut self) -> String {
        let number = self.running.as_ref().and_then(|running| running.number);
        let (Some(host), Some(number)) = (self.device_agent.as_mut(), number) else {
            return "check its answers with dig".to_owned();
        };
        let log = host.log(number).unwrap_or_default();
        match (log.ended, log.text.trim()) {
            (Some(ended), text) => format!("it ended ({ended}): {text}"),
            (None, "") => "it printed nothing".to_owned(),
            (None, text) => format!("its output: {text}"),
        }
    }
}
