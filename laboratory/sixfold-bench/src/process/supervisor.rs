//! The supervisor of a device, `sixfold-bench keep`: a process between an agent and the device. It reads orders as JSON
//! lines on its standard input. When the input ends, in order or because the agent was killed, it ends the device.

use super::limits;
use super::log::DeviceLog;
use super::tree;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Request to start a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// The working folder, which exists. The supervisor removes it at the end.
    pub folder: PathBuf,
    /// Files for the folder: name and text.
    pub files: BTreeMap<String, String>,
    /// The command line.
    pub command: Vec<String>,
    /// Environment variables, in addition to the supervisor's own.
    pub environment: BTreeMap<String, String>,
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
    send_reply(&SupervisorReply::Started { pid: device.child.id() });
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

/// A device and its last output.
struct SupervisedDevice {
    child: Child,
    folder: PathBuf,
    output: Arc<Mutex<Vec<u8>>>,
}

impl SupervisedDevice {
    /// Starts the device. The kernel sends the signal of PR_SET_PDEATHSIG when the thread that forked ends: this is the
    /// supervisor's main thread, which lives as long as the supervisor. `setpriv` and `taskset` of util-linux replace
    /// themselves by the program that they start, so the child's process ID is the device's.
    fn start(request: &LaunchRequest) -> Result<SupervisedDevice, String> {
        for (name, text) in &request.files {
            let path = request.folder.join(name);
            if Path::new(name).file_name() != Some(OsStr::new(name)) {
                return Err(format!(
                    "\"{name}\" is not a plain file name; files must be in the device's own folder"
                ));
            }
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if !request.cores.is_empty() {
            command.args(["taskset", "-c", &request.cores]);
        }
        let (reader, writer) =
            io::pipe().map_err(|error| format!("a pipe for the device's output: {error}"))?;
        let errors =
            writer.try_clone().map_err(|error| format!("a pipe for the device's output: {error}"))?;
        command
            .args(&request.command)
            .envs(&request.environment)
            .env(tree::DEVICE_VARIABLE, &request.folder)
            .current_dir(&request.folder)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors)
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|error| format!("setpriv: {error}; install it with `apt-get install util-linux`"))?;
        // The command holds our ends of the pipe, which would keep the pipe open.
        drop(command);
        let output = Arc::default();
        collect_output(reader, Arc::clone(&output));
        Ok(SupervisedDevice { child, folder: request.folder.clone(), output })
    }

    fn log(&mut self) -> DeviceLog {
        let ended = self.child.try_wait().ok().flatten().map(|status| status.to_string());
        if ended.is_some() {
            // The last output may still be in the pipe.
            thread::sleep(Duration::from_millis(20));
        }
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        DeviceLog { ended, text: String::from_utf8_lossy(&output).into_owned() }
    }

    fn end(&mut self, grace: Duration) {
        let root = [self.child.id()];
        tree::terminate(grace, || {
            let mut left = tree::members(&root, Some(&self.folder));
            // The first thread may be a zombie while other threads still run: the process has ended when it can be
            // waited for.
            if matches!(self.child.try_wait(), Ok(None)) && !left.contains(&root[0]) {
                left.extend(root);
            }
            left
        });
    }
}

/// Keeps the last part of the device's output until the pipe closes.
fn collect_output(mut pipe: impl Read + Send + 'static, kept: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let mut octets = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut octets) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&octets[..length]);
            let beyond = kept.len().saturating_sub(limits::LOG_OCTETS);
            kept.drain(..beyond);
        }
    });
}

/// Writes a reply. An agent that no longer reads has also closed our input, so a failure is ignored.
fn send_reply(reply: &SupervisorReply) {
    if let Ok(line) = serde_json::to_string(reply) {
        let _ = writeln!(io::stdout(), "{line}");
    }
}
