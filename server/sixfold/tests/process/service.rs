//! A service: a server whose process changes with each upgrade. All its processes end with the test, whatever the result.

use crate::daemon::{Daemon, Folder, Setup, wait_until};
use std::path::Path;
use std::process::{Command, Output};

/// A service.
pub struct Service {
    pub server: Daemon,
}

impl Service {
    pub fn start(setup: Setup) -> Service {
        Service { server: setup.start() }
    }

    /// Number of the process that has the control socket now.
    pub fn pid(&self) -> u32 {
        let status = text(&self.server.ctl(&["status"]));
        let line = status.lines().find_map(|line| line.strip_prefix("process"));
        line.unwrap_or_else(|| panic!("no process in\n{status}")).trim().parse().unwrap()
    }

    /// Upgrades, and returns the number of the new process.
    pub fn upgrade(&self) -> u32 {
        let output = self.server.ctl(&["upgrade"]);
        let told = text(&output);
        assert_eq!(output.status.code(), Some(0), "{told}\n{}", self.server.process.log());
        let process = told.strip_prefix("upgraded: process ").and_then(|rest| rest.split(',').next());
        process.unwrap_or_else(|| panic!("{told}")).parse().unwrap()
    }

    /// Fails to upgrade, with this reason.
    pub fn fail_to_upgrade(&self, arguments: &[&str], reason: &str) {
        let before = self.pid();
        let output = self.server.ctl(&[&["upgrade"], arguments].concat());
        let told = text(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(reason) && told.contains(&format!("process {before} goes on")), "{told}");
        assert_eq!(self.pid(), before);
        assert_eq!(self.server.ctl(&["health"]).status.code(), Some(0));
        assert_eq!(self.processes().len(), 2, "the server and its launcher");
    }

    /// The processes of this service that run: servers and launchers.
    pub fn processes(&self) -> Vec<u32> {
        processes_with(&self.server.config)
    }

    /// Stops the service, and checks that no process and no control socket is left.
    pub fn stop(self) {
        send("TERM", self.pid());
        wait_until("the service has ended", || self.processes().is_empty());
        assert!(!self.server.control.exists(), "{}", self.server.process.log());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Launchers end with their servers.
        for process in self.processes() {
            send("KILL", process);
        }
        wait_until("the first process has ended", || !self.server.process.is_running());
    }
}

/// The running processes that have this path in their command.
fn processes_with(path: &Path) -> Vec<u32> {
    let path = path.as_os_str().as_encoded_bytes();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process that has ended has no command any more.
    let has_path = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.windows(path.len()).any(|part| part == path)
    };
    pids.filter(has_path).collect()
}

/// True if a process runs.
pub fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| !command.is_empty())
}

/// Sends a signal, if the process is still there.
pub fn send(signal: &str, pid: u32) {
    let _ = Command::new("sh").arg("-c").arg(format!("kill -{signal} {pid} 2>/dev/null")).status();
}

/// All that a command has said.
pub fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// Writes a script with this mode into a folder, and returns its path.
pub fn script(folder: &Folder, name: &str, body: &str, mode: u32) -> String {
    folder.write_with_mode(name, format!("#!/bin/sh\n{body}\n"), mode);
    folder.text(name)
}
