//! Programs: short ones that run to their end within a time limit, and servers that run until they are dropped.

use crate::requirement::search_path;
use servers::Output;
pub use servers::process::Signal;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a short program, in seconds: far longer than any takes on a busy machine.
const SHORT_SECS: u64 = 100;

/// Time limit for the start or the stop of a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// Interval of the checks of a condition that is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// Result of a program.
#[derive(Debug)]
pub struct CommandOutput {
    /// True if the exit status is zero.
    pub success: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Waits up to a minute until `holds` is true; returns true if it was.
pub fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Gives a command a minimal environment.
fn minimize(command: &mut Command) {
    command.env("PATH", search_path()).env("LC_ALL", "C");
    for variable in ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
        command.env_remove(variable);
    }
}

/// Runs a program to its end; kills it at the time limit.
pub(crate) fn run(argv: &[&str]) -> CommandOutput {
    run_for(argv, SHORT_SECS)
}

/// Runs a program with this time limit.
pub(crate) fn run_for(argv: &[&str], secs: u64) -> CommandOutput {
    let mut command = Command::new("timeout");
    minimize(&mut command);
    let output = command
        .args(["--kill-after=5", &secs.to_string()])
        .args(argv)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot start {argv:?}: {error}"));
    CommandOutput {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Words of a command line.
pub fn words(argv: &[String]) -> Vec<&str> {
    argv.iter().map(String::as_str).collect()
}

/// Running server, killed with its children when it is dropped. It is a process of `servers` for tests: with a minimal environment, and
/// with panics that show the log.
pub struct Process(servers::Process);

impl Process {
    /// Starts a server; standard output and standard error go to the file `log`. The server dies with the thread that
    /// calls this function, if that thread is killed.
    pub fn start(argv: &[&str], log: &Path) -> Process {
        let mut command = servers::process::guarded(argv);
        minimize(&mut command);
        let started = servers::Process::start(command, Output::File(log));
        Process(
            started.unwrap_or_else(|error| panic!("cannot start {argv:?} with {}: {error}", log.display())),
        )
    }

    /// Process ID. The programs before it replace themselves by the next one.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.0.log()
    }

    /// Waits until `holds` is true of the log. If the process ends before, or at the time limit, it panics and shows
    /// the log.
    pub fn expect(&mut self, what: &str, holds: impl FnMut(&str) -> bool) {
        self.wait_for(holds).unwrap_or_else(|why| panic!("{what}: {why}"));
    }

    /// Waits until `holds` is true of the log.
    ///
    /// # Errors
    ///
    /// The process has ended, or `holds` is not true in time. The error has the log.
    pub fn wait_for(&mut self, holds: impl FnMut(&str) -> bool) -> Result<(), String> {
        let waited = self.0.wait_for(PATIENCE, holds);
        waited.map_err(|why| format!("{why}, log:\n{}", self.log()))
    }

    /// Sends a signal to the process alone.
    pub fn signal(&mut self, signal: Signal) {
        self.0.signal(signal).expect("our own child");
    }

    /// Sends a signal and waits for the end of the process.
    pub fn stop(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.finish()
    }

    /// Waits for the end of a process that ends by itself.
    pub fn finish(&mut self) -> ExitStatus {
        let status = self.0.wait_for_end(PATIENCE);
        status.unwrap_or_else(|| panic!("it did not end, log:\n{}", self.log()))
    }

    /// Kills the process and its children, and waits for its end.
    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Until the process has ended and been waited for, no other process can have its ID.
    pub fn is_running(&mut self) -> bool {
        self.0.is_running()
    }
}
