//! Programs: short ones that run to their end within a time limit, and servers that run until they are dropped.

use crate::requirement::search_path;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a short program, in seconds: far longer than any takes on a busy machine.
const SHORT_SECS: &str = "100";

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

/// A command with a minimal environment.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path()).env("LC_ALL", "C").stdin(Stdio::null());
    for variable in ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
        command.env_remove(variable);
    }
    command
}

/// Runs a program to its end; kills it at the time limit.
pub(crate) fn run(argv: &[&str]) -> CommandOutput {
    run_with(argv, Stdio::null())
}

/// Runs a program with standard input.
pub(crate) fn run_with(argv: &[&str], stdin: Stdio) -> CommandOutput {
    run_within(argv, stdin, SHORT_SECS)
}

/// Runs a program with this time limit.
pub(crate) fn run_for(argv: &[&str], secs: u64) -> CommandOutput {
    run_within(argv, Stdio::null(), &secs.to_string())
}

fn run_within(argv: &[&str], stdin: Stdio, secs: &str) -> CommandOutput {
    let output = command("timeout")
        .args(["--kill-after=5", secs])
        .args(argv)
        .stdin(stdin)
        .output()
        .unwrap_or_else(|error| panic!("cannot start {argv:?}: {error}"));
    CommandOutput {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Running server, killed with its children when it is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a server; standard output and standard error go to the file `log`. The server dies with the thread that
    /// calls this function, if that thread is killed.
    pub fn start(argv: &[&str], log: &Path) -> Process {
        use std::os::unix::process::CommandExt;
        let file =
            File::create(log).unwrap_or_else(|error| panic!("cannot create {}: {error}", log.display()));
        let again = file.try_clone().expect("a file can be cloned");
        let child = command("setpriv")
            .args(["--pdeathsig", "KILL"])
            .args(argv)
            .stdout(file)
            .stderr(again)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {argv:?}: {error}"));
        Process { child, log: log.to_owned() }
    }

    /// Process ID. The programs before it replace themselves by the next one.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
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
    pub fn wait_for(&mut self, mut holds: impl FnMut(&str) -> bool) -> Result<(), String> {
        let mut ended = None;
        let held = wait_until(|| {
            ended = self.child.try_wait().expect("our own child");
            holds(&self.log()) || ended.is_some()
        });
        if held && ended.is_none() { Ok(()) } else { Err(format!("ended: {ended:?}, log:\n{}", self.log())) }
    }

    /// Sends a signal to the process alone.
    pub fn signal(&mut self, name: &str) {
        if self.is_running() {
            let id = self.id().to_string();
            run(&["sh", "-c", "kill -s \"$1\" \"$2\"", "sh", name, &id]);
        }
    }

    /// Sends a signal and waits for the end of the process.
    pub fn stop(&mut self, name: &str) -> ExitStatus {
        self.signal(name);
        self.finish()
    }

    /// Waits for the end of a process that ends by itself.
    pub fn finish(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until(|| {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        status.unwrap_or_else(|| panic!("it did not end, log:\n{}", self.log()))
    }

    /// Kills the process and its children, and waits for its end.
    pub fn kill(&mut self) {
        if self.is_running() {
            let group = self.id().to_string();
            run(&["sh", "-c", "kill -s KILL -- \"-$1\"", "sh", &group]);
            // In case there is no shell.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Until the process has ended and been waited for, no other process can have its ID.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
