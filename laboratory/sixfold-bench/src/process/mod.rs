//! A device as a tree of processes: started, watched, and ended completely, even if the agent is killed. This module
//! knows command lines and files, not what a device serves. It stands above `servers::Process`, which starts and ends a server in the
//! process that wants it: a device has to end, and its folder to go, even if that process is killed, on a host at the other end of ssh.
//!
//! Between agent and device stands a supervisor ([`supervisor`]), a process of its own that owns the working folder. It
//! outlives an agent that is killed: it then reads the end of its input, ends all processes of the device ([`tree`])
//! and removes the folder. If the supervisor is killed, the kernel kills the device's first process (PR_SET_PDEATHSIG),
//! and the agent kills the others. If both are killed at once, the other processes are left. First file to read:
//! `supervisor.rs`.

pub mod limits;
mod log;
pub mod supervisor;
pub mod tree;

pub use log::DeviceLog;

use servers::WorkingFolder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use supervisor::{LaunchRequest, SupervisorOrder, SupervisorReply};

/// The program of this process. A run takes hours: if its file was replaced meanwhile, the kernel still has the old
/// one.
///
/// # Errors
///
/// /proc is not mounted.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(if own.is_file() { own } else { PathBuf::from("/proc/self/exe") })
}

/// A device that the agent started. Dropping it ends the device.
#[derive(Debug)]
pub struct Process {
    supervisor: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: u32,
    folder: WorkingFolder,
}

impl Process {
    /// Starts the device of a request. `folder` becomes the device's own.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Supervisor`]: the supervisor cannot be started, or has failed. [`ProcessError::Failed`]: the device's program
    /// cannot be started, with the reason.
    pub fn start(request: LaunchRequest, folder: WorkingFolder) -> Result<Process, ProcessError> {
        let mut command = Command::new(own_program().map_err(ProcessError::Supervisor)?);
        command.arg("keep").stdin(Stdio::piped()).stdout(Stdio::piped());
        // An interrupt from the keyboard must not end the supervisor before it has cleaned up.
        command.process_group(0);
        let mut supervisor = command.spawn().map_err(ProcessError::Supervisor)?;
        let (input, output) = (supervisor.stdin.take(), supervisor.stdout.take());
        let output = output.ok_or_else(|| ProcessError::Supervisor(io::ErrorKind::BrokenPipe.into()))?;
        let mut process = Process { supervisor, input, output: BufReader::new(output), pid: 0, folder };
        match process.request(&SupervisorOrder::Start(request))? {
            SupervisorReply::Started { pid } => {
                process.pid = pid;
                Ok(process)
            }
            SupervisorReply::Failed { why } => Err(ProcessError::Failed(why)),
            SupervisorReply::Log(_) => Err(ProcessError::Supervisor(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Process ID of the device's first process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// All processes of the device that run.
    pub fn members(&self) -> Vec<u32> {
        tree::members(&[self.pid], Some(self.folder.path()))
    }

    /// Reads its last output, and how it ended if it did.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Supervisor`]: the supervisor has failed.
    pub fn log(&mut self) -> Result<DeviceLog, ProcessError> {
        self.request_log(&SupervisorOrder::Log)
    }

    /// Ends the device: SIGTERM, then SIGKILL for the processes that are left after `grace`.
    ///
    /// # Errors
    ///
    /// As [`Process::log`].
    pub fn stop(mut self, grace: Duration) -> Result<DeviceLog, ProcessError> {
        self.request_log(&SupervisorOrder::Stop { grace_ms: grace.as_millis() as u64 })
    }

    fn request_log(&mut self, order: &SupervisorOrder) -> Result<DeviceLog, ProcessError> {
        match self.request(order)? {
            SupervisorReply::Log(log) => Ok(log),
            SupervisorReply::Failed { why } => Err(ProcessError::Failed(why)),
            SupervisorReply::Started { .. } => {
                Err(ProcessError::Supervisor(io::ErrorKind::InvalidData.into()))
            }
        }
    }

    fn request(&mut self, order: &SupervisorOrder) -> Result<SupervisorReply, ProcessError> {
        let mut talk = || {
            let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            writeln!(input, "{}", serde_json::to_string(order)?)?;
            let mut line = String::new();
            self.output.read_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        };
        talk().map_err(ProcessError::Supervisor)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let end = Instant::now() + limits::STOP_TIMEOUT;
        while matches!(self.supervisor.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(limits::POLL_INTERVAL);
        }
        // Kills the supervisor only if it hangs. The kernel then kills the device's first process.
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
        // Processes are left only if something else killed the supervisor. They are found by their folder alone: their
        // IDs may belong to other processes by now.
        tree::terminate(Duration::ZERO, || tree::members(&[], Some(self.folder.path())));
    }
}

/// Reasons why a device cannot be started, or does not respond.
#[derive(Debug)]
pub enum ProcessError {
    /// Its folder cannot be created.
    Folder(io::Error),
    /// Its supervisor cannot be started, or has ended.
    Supervisor(io::Error),
    /// The supervisor could not carry out the order.
    Failed(String),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessError::Folder(error) => error.fmt(f),
            ProcessError::Supervisor(error) => {
                write!(f, "the supervisor of the device: {error}; {}", datapath::remedy::remedy(error))
            }
            ProcessError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ProcessError {}
