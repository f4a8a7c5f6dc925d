//! The supervisor of a device, `sixfold-bench keep`: a process between an agent and the device. It reads orders as JSON
//! lines on its standard input. When the input ends, in order or because the agent was killed, it ends the device.

use super::limits;
use super::log::DeviceLog;
use super::tree;
use serde::{Deserialize, Serialize};
use servers::process::guarded;
use servers::{LaunchPlan, Output};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Request to start a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// The working folder, which exists. The supervisor removes it at the end.
    pub folder: PathBuf,
    /// Command line, files for the folder, and environment variables in addition to the supervisor's own.
    pub plan: LaunchPlan,
    /// Cores, in the syntax of `taskset -c`; empty: all.
    pub cores: String,
}

/// Order to a supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupervisorOrder {
    /// Start the device. This is the first order, and is sent once.
    Start(LaunchRequest),
    /// Report the last output of the device.
    Log,
    /// End the device.
    Stop {
        /// Time between SIGTERM and SIGKILL, in milliseconds.
        grace_ms: u64,
    },
}

/// Reply of a supervisor: one line for each order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupervisorReply {
    /// The device was started.
    Started {
        /// Process ID of its first process.
        pid: u32,
    },
    /// Last output of the device.
    Log(DeviceLog),
    /// The order could not be carried out.
    Failed {
        /// Cause and remedy.
        why: String,
    },
}

/// Supervises a device until the end of the input.
pub fn run() -> ExitCode {
    let mut orders = io::stdin().lines();
    let Some(Ok(first)) = orders.next() else { return ExitCode::SUCCESS };
    let request: LaunchRequest = match serde_json::from_str(&first) {
        Ok(SupervisorOrder::Start(request)) => request,
        _ => {
            send_reply(&SupervisorReply::Failed {
                why: "the first order must be to start the device".to_owned(),
            });
            return ExitCode::FAILURE;
        }
    };
    // From here on the folder is removed on every path.
    let mut device = match SupervisedDevice::start(&request) {
        Ok(device) => device,
        Err(why) => {
            let _ = fs::remove_dir_all(&request.folder);
            send_reply(&SupervisorReply::Failed { why });
            return ExitCode::FAILURE;
        }
    };
    send_reply(&SupervisorReply::Started { pid: device.process.id() });
    // If no order says otherwise, the agent may be gone: use the default grace time.
    let mut grace = limits::KILL_GRACE;
    let mut is_stopped = false;
    for line in orders {
        match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
            Some(SupervisorOrder::Log) => send_reply(&SupervisorReply::Log(device.log())),
            Some(SupervisorOrder::Stop { grace_ms }) => {
                grace = Duration::from_millis(grace_ms);
                is_stopped = true;
                break;
            }
            Some(SupervisorOrder::Start(_)) | None => break,
        }
    }
    device.end(grace);
    let _ = fs::remove_dir_all(&request.folder);
    if is_stopped {
        send_reply(&SupervisorReply::Log(device.log()));
    }
    ExitCode::SUCCESS
}

/// A device and its folder.
struct SupervisedDevice {
    process: servers::Process,
    folder: PathBuf,
}

impl SupervisedDevice {
    /// Starts the device. The thread that starts it is the supervisor's main thread, which lives as long as the supervisor. `taskset` of
    /// util-linux replaces itself by the program, as `setpriv` does, so the process ID is the device's.
    fn start(request: &LaunchRequest) -> Result<SupervisedDevice, String> {
        for (name, text) in &request.plan.files {
            let path = request.folder.join(name);
            if Path::new(name).file_name() != Some(OsStr::new(name)) {
                return Err(format!(
                    "\"{name}\" is not a plain file name; files must be in the device's own folder"
                ));
            }
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let cores = ["taskset", "-c", &request.cores].into_iter().filter(|_| !request.cores.is_empty());
        let mut command = guarded(cores.chain(request.plan.command.iter().map(String::as_str)));
        command
            .envs(&request.plan.environment)
            .env(tree::DEVICE_VARIABLE, &request.folder)
            .current_dir(&request.folder);
        let process = servers::Process::start(command, Output::Kept(limits::LOG_OCTETS))
            .map_err(|error| error.to_string())?;
        Ok(SupervisedDevice { process, folder: request.folder.clone() })
    }

    fn log(&mut self) -> DeviceLog {
        let ended = self.process.ended().map(|status| status.to_string());
        DeviceLog { ended, text: self.process.log() }
    }

    fn end(&mut self, grace: Duration) {
        let root = [self.process.id()];
        tree::terminate(grace, || {
            let mut left = tree::members(&root, Some(&self.folder));
            // The first thread may be a zombie while other threads still run: the process has ended when it can be
            // waited for.
            if self.process.is_running() && !left.contains(&root[0]) {
                left.extend(root);
            }
            left
        });
    }
}

/// Writes a reply. An agent that no longer reads has also closed our input, so a failure is ignored.
fn send_reply(reply: &SupervisorReply) {
    if let Ok(line) = serde_json::to_string(reply) {
        let _ = writeln!(io::stdout(), "{line}");
    }
}
