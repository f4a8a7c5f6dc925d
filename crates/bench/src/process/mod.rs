//! A device as processes: started, watched and ended so that nothing of it is left, whatever happens to us.
//!
//! Between agent and device stands a keeper ([`supervisor`]), a process of its own that owns the working folder. It outlives an
//! agent that is killed, sees the end of its input then, ends all processes of the device ([`tree`]) and removes the
//! folder. Should the keeper be killed, the kernel kills the device's first process (PR_SET_PDEATHSIG), and the agent the
//! others; should both be killed at once, the others are left.

pub mod limits;
mod log;
pub mod supervisor;
pub mod tree;

pub use log::DeviceLog;

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use supervisor::{LaunchRequest, SupervisorOrder, SupervisorReply};

/// A new, empty folder for a device's files. It goes with this value.
#[derive(Debug)]
pub struct WorkingFolder(PathBuf);

impl WorkingFolder {
    /// Makes one that only this user may look into.
    pub fn new() -> Result<WorkingFolder, ProcessError> {
        let base = std::env::temp_dir();
        // Command lines, configurations and the keeper's orders are text.
        if base.to_str().is_none() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8");
            return Err(ProcessError::Folder(base, error));
        }
        let mut number = 0u32;
        loop {
            let path = base.join(format!("sixfold-bench-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(WorkingFolder(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
                Err(error) => return Err(ProcessError::Folder(path, error)),
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program that this process is. A run takes hours: when its file was replaced meanwhile, the kernel still has it.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(if own.is_file() { own } else { PathBuf::from("/proc/self/exe") })
}

/// A device that we started. It ends with this value.
#[derive(Debug)]
pub struct Process {
    supervisor: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: u32,
    folder: WorkingFolder,
}

impl Process {
    /// Starts what a request says, in `folder`, which becomes the device's.
    pub fn start(request: LaunchRequest, folder: WorkingFolder) -> Result<Process, ProcessError> {
        let mut command = Command::new(own_program().map_err(ProcessError::Supervisor)?);
        command.arg("keep").stdin(Stdio::piped()).stdout(Stdio::piped());
        // An interrupt from the keyboard must not end it before it has tidied up.
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

    /// The device's first process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// All its processes that run.
    pub fn members(&self) -> Vec<u32> {
        tree::members(&[self.pid], Some(self.folder.path()))
    }

    /// The last that it said, and how it ended if it did.
    pub fn log(&mut self) -> Result<DeviceLog, ProcessError> {
        self.request_log(&SupervisorOrder::Log)
    }

    /// Ends it: SIGTERM, then SIGKILL for what is left after `grace`.
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
        // Only if it hangs. The kernel kills the device's first process then.
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
        // Nothing is left unless somebody else killed the keeper. The folder alone says whose a process is: numbers may have
        // been given to others meanwhile.
        tree::terminate(Duration::ZERO, || tree::members(&[], Some(self.folder.path())));
    }
}

/// Why a device cannot be started, or asked.
#[derive(Debug)]
pub enum ProcessError {
    /// Its folder cannot be made.
    Folder(PathBuf, io::Error),
    /// Its keeper cannot be started, or has ended.
    Supervisor(io::Error),
    /// The keeper could not do it.
    Failed(String),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessError::Folder(path, error) => {
                write!(f, "{}: {error}; set TMPDIR to a folder that can be written", path.display())
            }
            ProcessError::Supervisor(error) => write!(f, "the process that keeps the device: {error}"),
            ProcessError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ProcessError {}
