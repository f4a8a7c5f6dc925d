//! A device under test as a child process: pinned, optionally under a CPU quota, killed when its guard is dropped or
//! when the benchmark dies. `taskset` and `setpriv` of util-linux replace themselves by the device, so the child's PID
//! is the device's.

use crate::quota::Quota;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A directory for a device's files, removed when it goes out of scope.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a new, empty directory.
    ///
    /// # Errors
    ///
    /// As [`Folder::new_in`].
    pub fn new(name: &str) -> io::Result<Folder> {
        Folder::new_in(&std::env::temp_dir(), name)
    }

    /// Creates a new, empty directory in another one.
    ///
    /// # Errors
    ///
    /// The error of mkdir(2): the parent cannot be written, or this process has a folder of the name.
    pub fn new_in(parent: &Path, name: &str) -> io::Result<Folder> {
        let path = parent.join(format!("sixfold-rivals-{}-{name}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// CPU usage of a process, from the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time in user and system mode.
    pub cpu: Duration,
    /// Time that threads were ready to run and had no core.
    pub waited: Duration,
}

/// A running device.
pub struct Process {
    child: Child,
    errors: File,
    quota: Option<Quota>,
    _folder: Folder,
}

impl Process {
    /// Starts `command` on the given cores (in the syntax of taskset). Its standard error goes to a file in `folder`.
    ///
    /// # Errors
    ///
    /// setpriv, taskset or the command is missing, a file cannot be made in the folder, or the process cannot be moved into the group
    /// of the quota.
    pub fn start(
        command: &[String],
        cores: &str,
        quota: Option<Quota>,
        folder: Folder,
    ) -> io::Result<Process> {
        let errors = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(folder.path().join("stderr"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "taskset", "-c", cores])
            .args(command)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(errors.try_clone()?)
            .stderr(errors.try_clone()?)
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("setpriv (apt-get install util-linux): {error}"))
            })?;
        let process = Process { child, errors, quota, _folder: folder };
        if let Some(quota) = &process.quota {
            quota.add(process.child.id())?;
        }
        Ok(process)
    }

    /// CPU usage of all its threads so far.
    pub fn usage(&self) -> Usage {
        usage(self.child.id())
    }

    /// Process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// True if the process has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Standard output and standard error so far: the reason if it does not answer.
    pub fn output(&mut self) -> String {
        let mut text = String::new();
        let _ = self.errors.seek(SeekFrom::Start(0));
        let _ = self.errors.read_to_string(&mut text);
        match self.child.try_wait() {
            Ok(Some(status)) => format!("{}: {}", status, text.trim()),
            _ => text.trim().to_owned(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The group can be removed only after its last process has ended.
        drop(self.quota.take());
    }
}

/// Pins the calling thread's process to one core.
///
/// # Errors
///
/// taskset is missing, or refuses the core.
pub fn pin_self(core: &str) -> io::Result<()> {
    let pid = std::process::id().to_string();
    let status = Command::new("taskset").args(["-p", "-c", core, &pid]).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("taskset -p -c {core}: {status}"))) }
}

/// CPU usage of all threads of a process. `schedstat` counts nanoseconds; if the kernel lacks it, `stat` counts ticks
/// of 10 ms.
pub fn usage(pid: u32) -> Usage {
    let mut used = Usage::default();
    for (_, thread) in threads(pid) {
        used.cpu += thread.cpu;
        used.waited += thread.waited;
    }
    if used.cpu.is_zero() {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // proc_pid_stat(5): the command in parentheses may hold spaces; utime and stime are fields 14 and 15.
        let fields = line.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        used.cpu = Duration::from_millis(ticks * 10);
    }
    used
}

/// CPU usage of each thread of a process, by its name.
pub fn threads(pid: u32) -> Vec<(String, Usage)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |folder: PathBuf| {
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let line = fs::read_to_string(folder.join("schedstat")).ok()?;
        let mut figures = line.split_ascii_whitespace().map(|figure| figure.parse().unwrap_or(0));
        let mut next = || Duration::from_nanos(figures.next().unwrap_or(0));
        Some((name.trim_end().to_owned(), Usage { cpu: next(), waited: next() }))
    };
    tasks.filter_map(|task| of(task.path())).collect()
}

/// Resident memory of a process in KiB; 0 when there is no such process.
pub fn resident_kib(pid: u32) -> f64 {
    status_kib(pid, "VmRSS:")
}

/// Peak of the resident memory of a process in KiB.
pub fn peak_resident_kib(pid: u32) -> f64 {
    status_kib(pid, "VmHWM:")
}

fn status_kib(pid: u32, key: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = usage(std::process::id()).cpu;
        let mut value = 1u64;
        for step in 0..200_000_000u64 {
            value = std::hint::black_box(value.wrapping_mul(step | 1));
        }
        assert!(usage(std::process::id()).cpu > before);
    }

    #[test]
    fn a_dropped_process_is_gone_and_so_is_its_folder() {
        let folder = Folder::new("sleep").unwrap();
        let path = folder.path().to_owned();
        let process = Process::start(&["sleep".into(), "60".into()], "0", None, folder).unwrap();
        let pid = process.child.id();
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(!path.exists());
    }

    #[test]
    fn the_output_of_a_failed_start_is_kept() {
        let folder = Folder::new("false").unwrap();
        let command = ["ls".into(), "/nothing-of-that-name".into()];
        let mut process = Process::start(&command, "0", None, folder).unwrap();
        process.child.wait().unwrap();
        assert!(process.output().contains("nothing-of-that-name"));
    }
}
