//! Processes of a device: how they are found, and signals to them.
//!
//! A device may fork, change its group, and even let its first process end. Each process that the agent starts has the
//! path of its folder in its environment. So processes of a device are found by any of three marks: group, parent,
//! environment.

use super::limits;
use crate::usage::Stat;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that marks the processes of a device. Its value is the device's folder.
pub const DEVICE_VARIABLE: &str = "SIXFOLD_DEVICE";

/// Returns the processes that run: `roots`, their groups, all that have the folder in their environment, and the
/// descendants of these.
pub fn members(roots: &[u32], folder: Option<&Path>) -> Vec<u32> {
    let marker = folder
        .map(|folder| [DEVICE_VARIABLE.as_bytes(), b"=", folder.as_os_str().as_bytes(), b"\0"].concat());
    let own = std::process::id();
    let all: Vec<(u32, Stat)> = running().filter(|(pid, _)| *pid != own).collect();
    let is_seed = |pid: u32, stat: &Stat| {
        roots.contains(&pid) || (folder.is_some() && roots.contains(&stat.group)) || {
            let environment = marker.as_ref().and_then(|_| fs::read(format!("/proc/{pid}/environ")).ok());
            let environment = environment.unwrap_or_default();
            marker.as_ref().is_some_and(|marker| environment.windows(marker.len()).any(|part| part == marker))
        }
    };
    let mut members: BTreeSet<u32> =
        all.iter().filter(|(pid, stat)| is_seed(*pid, stat)).map(|(pid, _)| *pid).collect();
    loop {
        let before = members.len();
        let children = all.iter().filter(|(_, stat)| members.contains(&stat.parent)).map(|(pid, _)| *pid);
        members.extend(children.collect::<Vec<_>>());
        if members.len() == before {
            return members.into_iter().collect();
        }
    }
}

/// Returns the processes with this name: the name that the kernel stores (15 octets), or the name of the program file.
pub fn find_by_name(name: &str) -> Vec<u32> {
    let is_named = |pid: &u32, stat: &Stat| {
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        stat.name == name || program.as_deref().and_then(Path::file_name) == Some(OsStr::new(name))
    };
    let own = std::process::id();
    running().filter(|(pid, stat)| *pid != own && is_named(pid, stat)).map(|(pid, _)| pid).collect()
}

/// The command line of a process.
pub fn command_line(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|octet| *octet == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Ends processes: SIGTERM, then SIGKILL for those that are left after `grace`. `find` returns the processes that
/// exist, and is called until it returns none. Gives up after a while on processes that cannot be killed.
pub fn terminate(grace: Duration, mut find: impl FnMut() -> Vec<u32>) {
    let started = Instant::now();
    if !grace.is_zero() {
        send(Signal::TERM, &find());
        while !find().is_empty() && started.elapsed() < grace {
            thread::sleep(limits::POLL_INTERVAL);
        }
    }
    let limit = grace + limits::KILL_GRACE;
    loop {
        let left = find();
        if left.is_empty() || started.elapsed() > limit {
            return;
        }
        send(Signal::KILL, &left);
        thread::sleep(limits::POLL_INTERVAL);
    }
}

/// Sends a signal. An error means that the process has ended.
fn send(signal: Signal, pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        let _ = kill_process(pid, signal);
    }
}

fn running() -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, Stat::read(&format!("/proc/{pid}"))?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_device_is_all_its_processes_even_those_that_left_its_group() {
        let folder = Path::new("/nowhere/tree-test");
        // One child in the group, one in a session of its own whose parent has ended.
        let script = "sleep 61 & (setsid sleep 62 &); wait";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .env(DEVICE_VARIABLE, folder)
            .process_group(0)
            .spawn()
            .unwrap();
        let root = [shell.id()];
        let until = Instant::now() + Duration::from_secs(20);
        let names =
            |pids: Vec<u32>| pids.into_iter().map(|pid| command_line(pid).join(" ")).collect::<Vec<_>>();
        let wanted = ["sleep 61", "sleep 62"].map(str::to_owned);
        while !wanted.iter().all(|name| names(members(&root, Some(folder))).contains(name)) {
            assert!(Instant::now() < until, "{:?}", names(members(&root, Some(folder))));
            thread::sleep(Duration::from_millis(5));
        }
        terminate(Duration::from_millis(1), || {
            let _ = shell.try_wait();
            members(&root, Some(folder))
        });
        assert_eq!(members(&root, Some(folder)), [0u32; 0]);
        let _ = shell.wait();
    }

    #[test]
    fn processes_are_found_by_name() {
        let mut child = Command::new("sleep").arg("63").spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while !find_by_name("sleep").contains(&child.id()) {
            assert!(Instant::now() < until);
        }
        assert!(!find_by_name("no-such-name").contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
