//! A CPU quota for a device: a control group with a short period, so that the device gets a fixed share of a core while
//! the tester has a whole one. On a machine of two cores a tester can offer several times the peak only in this way.
//!
//! The group is a sibling of the benchmark's own, in whichever hierarchy has the cpu controller: version 2 (`cpu.max`),
//! or version 1 (`cpu.cfs_quota_us`).

use crate::perf::limits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A control group, removed when the value is dropped.
#[derive(Debug)]
pub struct Quota(PathBuf);

impl Quota {
    /// Creates a group that may use `cores` times [`limits::QUOTA_US`] in each [`limits::PERIOD_US`].
    ///
    /// # Errors
    ///
    /// No cgroup hierarchy with the cpu controller can be written, or it refuses the quota.
    pub fn new(cores: u64) -> io::Result<Quota> {
        let (parent, version) = hierarchy().ok_or_else(|| {
            io::Error::other("no cgroup hierarchy with the cpu controller is mounted and writable")
        })?;
        let path = parent.join(format!("sixfold-perf-{}", std::process::id()));
        if !path.exists() {
            fs::create_dir(&path)?;
        }
        let quota = Quota(path);
        let (allowed, period) = (cores * limits::QUOTA_US, limits::PERIOD_US);
        match version {
            Version::Two => quota.write("cpu.max", &format!("{allowed} {period}"))?,
            Version::One => {
                quota.write("cpu.cfs_period_us", &period.to_string())?;
                quota.write("cpu.cfs_quota_us", &allowed.to_string())?;
            }
        }
        Ok(quota)
    }

    /// Moves a process, with all its threads, into the group.
    ///
    /// # Errors
    ///
    /// The error of write(2) to `cgroup.procs`: the process has ended, or is not ours.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.0.join(file);
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {value}: {error}", path.display())))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A killed process leaves its group a little later than its parent learns of its end.
        for _ in 0..50 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                _ => return,
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    One,
    Two,
}

/// The directory of the calling process in the hierarchy that has the cpu controller.
fn hierarchy() -> Option<(PathBuf, Version)> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    mounts.lines().find_map(|mount| {
        let mut fields = mount.split(' ').skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        match kind {
            "cgroup" if options.split(',').any(|option| option == "cpu") => Some((
                own_directory(point, &groups, |list| list.split(',').any(|name| name == "cpu"))?,
                Version::One,
            )),
            "cgroup2" => {
                let mut path = own_directory(point, &groups, str::is_empty)?;
                // A group that holds processes cannot pass its controllers on; its parent can.
                while !delegates_cpu(&path) {
                    path = (path != Path::new(point)).then(|| path.parent().map(Path::to_owned))??;
                }
                Some((path, Version::Two))
            }
            _ => None,
        }
    })
}

fn delegates_cpu(path: &Path) -> bool {
    fs::read_to_string(path.join("cgroup.subtree_control"))
        .is_ok_and(|controllers| controllers.split_ascii_whitespace().any(|name| name == "cpu"))
}

/// The own directory below a mount point: from the line of `/proc/self/cgroup` with the wanted controllers.
fn own_directory(point: &str, groups: &str, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        wanted(fields.next()?).then(|| fields.next())?
    })?;
    let own = Path::new(point).join(path.trim_start_matches('/'));
    // In a container the mount may show the own group as its root.
    Some(if own.exists() { own } else { PathBuf::from(point) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "2:cpu,cpuacct:/a\n1:memory:/b\n0::/c\n";

    #[test]
    fn the_group_is_found_by_its_controller() {
        assert_eq!(
            own_directory("/nowhere", GROUPS, |list| list.contains("cpu")),
            Some(PathBuf::from("/nowhere"))
        );
        assert_eq!(own_directory("/", "0::/proc\n", str::is_empty), Some(PathBuf::from("/proc")));
        assert_eq!(own_directory("/", GROUPS, |list| list == "freezer"), None);
    }

    #[test]
    fn a_quota_leaves_nothing_behind() {
        // Only root may create a group; other users get the reason.
        if let Ok(quota) = Quota::new(1) {
            let path = quota.0.clone();
            assert!(path.exists());
            drop(quota);
            assert!(!path.exists());
        }
    }
}
