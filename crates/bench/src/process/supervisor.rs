//! The process that stands between an agent and a device: `sixfold-bench keep`. It is told what to do in JSON lines on
//! its standard input; when that ends, in order or because the agent was killed, so does the device.

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

/// What is to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// The working folder, which is there and is removed at the end.
    pub folder: PathBuf,
    /// Files for it: name and text.
    pub files: BTreeMap<String, String>,
    /// The command line.
    pub command: Vec<String>,
    /// Environment variables, beside our own.
    pub environment: BTreeMap<String, String>,
    /// Cores, as `taskset -c` takes them; empty: all.
    pub cores: String,
}

/// What a keeper is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupervisorOrder {
    /// Start the device: first, and once.
    Start(LaunchRequest),
    /// Say what it said last.
    Log,
    /// End it.
    Stop {
        /// Time between SIGTERM and SIGKILL, in milliseconds.
        grace_ms: u64,
    },
}

/// What a keeper says: one line for each that it is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupervisorReply {
    /// The device was started.
    Started {
        /// Its first process.
        pid: u32,
    },
    /// What the device said.
    Log(DeviceLog),
    /// It could not be started.
    Failed {
        /// Why, and the remedy.
        why: String,
    },
}

/// Keeps a device until the end of the input.
pub fn run() -> ExitCode {
    let mut orders = io::stdin().lines();
    let Some(Ok(first)) = orders.next() else { return ExitCode::SUCCESS };
    let request: LaunchRequest = match serde_json::from_str(&first) {
        Ok(SupervisorOrder::Start(request)) => request,
        _ => {
            send_reply(&SupervisorReply::Failed { why: "the first order was not to start".to_owned() });
            return ExitCode::FAILURE;
        }
    };
    // From here on the folder goes, however this ends.
    let mut device = match SupervisedDevice::start(&request) {
        Ok(device) => device,
        Err(why) => {
            let _ = fs::remove_dir_all(&request.folder);
            send_reply(&SupervisorReply::Failed { why });
            return ExitCode::FAILURE;
        }
    };
    send_reply(&SupervisorReply::Started { pid: device.child.id() });
    // Who asked may be gone: the grace that everybody gets then.
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

/// A device as its keeper sees it.
struct SupervisedDevice {
    child: Child,
    folder: PathBuf,
    output: Arc<Mutex<Vec<u8>>>,
}

impl SupervisedDevice {
    /// Starts it. The kernel sends the signal of PR_SET_PDEATHSIG when the thread that forked ends: this is the keeper's
    /// main thread, which lives as long as the keeper. `setpriv` and `taskset` of util-linux replace themselves by what
    /// they start, so the child's number is the device's.
    fn start(request: &LaunchRequest) -> Result<SupervisedDevice, String> {
        for (name, text) in &request.files {
            let path = request.folder.join(name);
            if Path::new(name).file_name() != Some(OsStr::new(name)) {
                return Err(format!(
                    "\"{name}\" is no plain file name; files lie in the device's own folder"
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
            io::pipe().map_err(|error| format!("a pipe for the device's words: {error}"))?;
        let errors = writer.try_clone().map_err(|error| format!("a pipe for the device's words: {error}"))?;
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
        // The command holds our ends of the pipe, which would keep it open.
        drop(command);
        let output = Arc::default();
        collect_output(reader, Arc::clone(&output));
        Ok(SupervisedDevice { child, folder: request.folder.clone(), output })
    }

    fn log(&mut self) -> DeviceLog {
        let ended = self.child.try_wait().ok().flatten().map(|status| status.to_string());
        if ended.is_some() {
            // Its last words may still be on their way.
            thread::sleep(Duration::from_millis(20));
        }
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        DeviceLog { ended, text: String::from_utf8_lossy(&output).into_owned() }
    }

    fn end(&mut self, grace: Duration) {
        let root = [self.child.id()];
        tree::terminate(grace, || {
            let mut left = tree::members(&root, Some(&self.folder));
            // Its first thread may be a zombie while others still run: it has ended when it can be waited for.
            if matches!(self.child.try_wait(), Ok(None)) && !left.contains(&root[0]) {
                left.extend(root);
            }
            left
        });
    }
}

/// Keeps the end of what a device says, for as long as it says something.
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

/// Says it. Whoever does not listen any longer has closed our input too.
fn send_reply(reply: &SupervisorReply) {
    if let Ok(line) = serde_json::to_string(reply) {
        let _ = writeln!(io::stdout(), "{line}");
    }
}
