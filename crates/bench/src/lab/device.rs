//! Devices under test that an agent starts for an experiment: found by name, entered into the record, ended. The agent ends
//! them with itself, whatever happens.

use super::context::Context;
use crate::agent::protocol::{Start, Started};
use crate::agent_client::AgentClient;
use crate::device::InstalledTemplate;
use crate::process::DeviceLog;
use crate::usage::Usage;
use measure::experiment::Program;
use std::net::SocketAddr;
use std::time::Duration;

/// Time between SIGTERM and SIGKILL for a device.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// A template that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Path of the program, of `--program`; none: the installed one.
    pub program: Option<String>,
}

/// Templates of an experiment: those of `--device`, or those of `default` that are installed. A missing one is a warning, or an
/// error if the user named it.
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
    /// Starts a device and enters it into the record. It may not be ready yet. `version`: that of a program that reports none.
    pub fn start(
        context: &mut Context,
        agent: &mut AgentClient,
        name: &str,
        order: &Start,
        version: Option<String>,
    ) -> Result<RunningDevice, String> {
        let started: Started = agent.start(order).map_err(|error| format!("{name}: {error}"))?;
        context.program(Program {
            name: name.to_owned(),
            version: version.unwrap_or(started.version),
            command: started.command,
            files: started.files.into_iter().collect(),
        });
        Ok(RunningDevice { address: started.listen, number: started.device })
    }

    /// Resources that the device has used so far.
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
