//! Figures of this process as the system counts them, under the names that Prometheus has for every program.
//!
//! The files of /proc are opened at the start: a server that has given up root may read them, but not open all of them.

use rustix::fs::{Dir, Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Octets of `/proc/self/status`: it has some 60 short lines.
const STATUS_OCTETS: usize = 8192;

/// Open files of this process in /proc. Each is none without /proc.
pub struct Process {
    status: Option<File>,
    descriptors: Option<Mutex<Dir>>,
    started: SystemTime,
}

impl Process {
    /// Opens the files. Call it at the start, before privileges are given up.
    pub fn open() -> Process {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open("/proc/self/fd", flags, Mode::empty());
        Process {
            status: File::open("/proc/self/status").ok(),
            descriptors: directory.ok().and_then(|directory| Dir::new(directory).ok()).map(Mutex::new),
            started: SystemTime::now(),
        }
    }

    /// Resident memory in octets.
    pub fn resident(&self) -> Option<u64> {
        self.of_status("VmRSS:")
    }

    /// Address space in octets.
    pub fn virtual_memory(&self) -> Option<u64> {
        self.of_status("VmSize:")
    }

    /// Number of open descriptors.
    pub fn open_files(&self) -> Option<u64> {
        let mut directory = self.descriptors.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        directory.rewind();
        let mut count = 0;
        for entry in &mut *directory {
            count += u64::from(!entry.ok()?.file_name().to_bytes().starts_with(b"."));
        }
        Some(count)
    }

    /// Time of the start, in seconds since 1970.
    pub fn start_unix_secs(&self) -> f64 {
        self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }

    /// A line of `/proc/self/status` that has kibibytes, in octets.
    fn of_status(&self, name: &str) -> Option<u64> {
        let mut octets = [0; STATUS_OCTETS];
        let length = self.status.as_ref()?.read_at(&mut octets, 0).ok()?;
        let text = std::str::from_utf8(&octets[..length]).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_open_files_are_those_of_now() {
        let process = Process::open();
        let (resident, before) = (process.resident().unwrap(), process.open_files().unwrap());
        assert!(resident > 1 << 20 && process.virtual_memory().unwrap() > resident, "{resident}");
        // Other tests of this process open files, too, but not as many.
        let more: Vec<File> = (0..200).map(|_| File::open("/dev/null").unwrap()).collect();
        let now = process.open_files().unwrap();
        assert!(now >= before + 100, "{before} {now}");
        drop(more);
        assert!(process.open_files().unwrap() < now);
    }
}
