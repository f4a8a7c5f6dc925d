//! Devices under test that an agent starts for an experiment: found by name, entered into the record, ended. The agent ends
//! them with itself, whatever happens.

use super::context::Context;
use crate::agent::protocol::{Start, Started};
use crate::agent_client::AgentClient;
use crate::device::InstalledTemplate;
use crate::process::DeviceLog;
use crate::sockets;
use crate::usage::Usage;
use measure::experiment::Program;
use servers::process::may_start_elsewhere;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL for a device.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Time limit until a device has answered its first query.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// Time between two questions to a device that does not answer yet.
const POLL: Duration = Duration::from_millis(20);

/// A template that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Path of the program, of `--program`; none: the installed one.
    pub program: Option<String>,
}

/// Templates of an experiment: those of `--device`, or those of `default` that are installed. A missing one is a warning.
///
/// # Errors
///
/// A template that the user named is unknown, or its program is missing.
pub fn templates(context: &mut Context, default: &[&str]) -> Result<Vec<Template>, String> {
    let is_chosen = !context.options.devices.is_empty();
    let names = match is_chosen {
        true => context.options.devices.clone(),
        false => default.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut found = Vec::new();
    for name in names {
        let given = context.options.programs.iter().find(|(given, _)| *given == name);
        let program = given.map(|(_, path)| path.display().to_string());
        match InstalledTemplate::find(&name, program.as_deref()) {
            Ok(template) => found.push(Template { name: template.name().to_owned(), program }),
            Err(error) if is_chosen => return Err(error.to_string()),
            Err(error) => context.warning(format!("{name} was left out: {error}")),
        }
    }
    Ok(found)
}

/// A device that runs.
#[derive(Debug)]
pub struct RunningDevice {
    /// Address at which it listens.
    pub address: SocketAddr,
    number: u32,
}

impl RunningDevice {
    /// Starts a device, waits until it answers, and enters it into the record. `version`: that of a program that reports none.
    /// `is_answering` asks the device at an address once; it gets the number of the question, from 1.
    ///
    /// # Errors
    ///
    /// The device cannot be started, or gives no right answer in time; then the error has the end of its output.
    pub fn start(
        context: &mut Context,
        agent: &mut AgentClient,
        name: &str,
        order: &Start,
        version: Option<String>,
        is_answering: impl Fn(SocketAddr, u16) -> bool,
    ) -> Result<RunningDevice, String> {
        let is_port_ours = order.settings.listen.port() == 0;
        let mut starts = 0;
        loop {
            let started: Started = agent.start(order).map_err(|error| format!("{name}: {error}"))?;
            let device = RunningDevice { address: started.listen, number: started.device };
            starts += 1;
            if device.is_ready_in_time(agent, &is_answering) {
                device.raise_receive_buffer(context, agent, name)?;
                context.program(Program {
                    name: name.to_owned(),
                    version: version.unwrap_or(started.version),
                    command: started.command,
                    files: started.files.into_iter().collect(),
                });
                return Ok(device);
            }
            let (address, log) = (device.address, end_of(&device.stop(agent)));
            if !(is_port_ours && may_start_elsewhere(starts, &log)) {
                return Err(format!("{name} gives no right answer at {address}: {log}"));
            }
            context.progress(&format!(
                "{name}: {address} was taken before the device had it: it is started at another port"
            ))?;
        }
    }

    /// Gives its listening sockets the receive buffer of the other servers. Where that is not possible, the record says so.
    fn raise_receive_buffer(
        &self,
        context: &mut Context,
        agent: &mut AgentClient,
        name: &str,
    ) -> Result<(), String> {
        let found = agent.sockets(Some(self.number), self.address.port(), true);
        let found = found.map_err(|error| format!("{name}: {error}"))?;
        if let Some(warning) = sockets::warning_of_small_buffer(&found) {
            context.warning(format!("{name}: {warning}"));
        }
        Ok(())
    }

    /// Asks until an answer comes. False: the device has ended, or does not answer in time.
    fn is_ready_in_time(
        &self,
        agent: &mut AgentClient,
        is_answering: impl Fn(SocketAddr, u16) -> bool,
    ) -> bool {
        let end = Instant::now() + READY_TIMEOUT;
        let mut questions = 0;
        while Instant::now() < end && !self.has_ended(agent) {
            questions += 1;
            if is_answering(self.address, questions) {
                // The answer may be that of another process, which took the port before the device had it.
                return !self.has_ended(agent);
            }
            std::thread::sleep(POLL);
        }
        false
    }

    /// True if none of the device's processes is left.
    fn has_ended(&self, agent: &mut AgentClient) -> bool {
        agent.usage(self.number).is_ok_and(|usage| usage.processes.is_empty())
            && agent.log(self.number).is_ok_and(|log| log.ended.is_some())
    }

    /// Resources that the device has used so far.
    ///
    /// # Errors
    ///
    /// The agent has ended, or does not answer.
    pub fn usage(&self, agent: &mut AgentClient) -> Result<Usage, String> {
        agent.usage(self.number).map_err(|error| error.to_string())
    }

    /// Ends the device. Returns its last output; a device that has ended by itself is fine, too.
    pub fn stop(self, agent: &mut AgentClient) -> DeviceLog {
        agent.stop(self.number, STOP_GRACE).unwrap_or_default()
    }
}

/// End and last output of a device, for the error of a caller that waited for it in vain.
pub fn end_of(log: &DeviceLog) -> String {
    match (&log.ended, log.text.trim()) {
        (Some(ended), text) => format!("it ended ({ended}): {text}"),
        (None, text) => text.to_owned(),
    }
}
