//! The bound of resident memory, and what this machine grants. A server whose bound is above the limit of its control group works until
//! the memory is in use, and is then killed: so `sixfold check` and the start warn of it.

use crate::config::Config;
use engine::settings::Dnssec;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// Octets of the program with its parts that do not depend on the configuration.
const PROGRAM: u64 = 16 * MIB;

/// Octets of each worker: buffers, tables of rate limits, and replies that wait for another lookup or for their validation.
const WORKER: u64 = 14 * MIB + engine::limits::PARKED_OCTETS as u64;

/// Octets that validation takes in each worker.
const VALIDATION: u64 = 8 * MIB;

/// Octets of a pending query, with two questions to upstreams.
const PENDING: u64 = 1900;

/// Octets of the buffers of all client connections together.
const STREAMS: u64 = transport::limits::BUFFER_OCTETS_AT_MOST as u64;

/// Octets of a client connection over TCP, over TLS, and over HTTP/2 or QUIC.
const CONNECTION: [u64; 3] = [6 << 10, 13 << 10, 24 << 10];

/// The most resident memory that this configuration can take, in octets. docs/how-to/size-and-tune.md has the formula.
pub fn bound(config: &Config) -> u64 {
    let (workers, limits) = (config.server.worker_count() as u64, &config.limits);
    let validation = if config.dns64.dnssec == Dnssec::Validate { VALIDATION } else { 0 };
    let worker = WORKER + validation + limits.pending as u64 * PENDING;
    let tls = &config.tls;
    let connection = match () {
        () if !(tls.listen_doh.is_empty() && tls.listen_doq.is_empty()) => CONNECTION[2],
        () if !tls.listen_dot.is_empty() => CONNECTION[1],
        () => CONNECTION[0],
    };
    let needs = if config.statistics.needs { engine::needs::octets(config.server.worker_count()) } else { 0 };
    PROGRAM
        + needs as u64
        + config.cache.size
        + workers * worker
        + STREAMS
        + limits.tcp_connections as u64 * connection
}

/// A warning if the bound is above what the control group of this process or the machine has.
pub fn warning(config: &Config) -> Option<String> {
    warning_of(bound(config), grants(Path::new("/")))
}

fn warning_of(bound: u64, grants: Vec<(u64, String)>) -> Option<String> {
    let (granted, whose) = grants.into_iter().min()?;
    (bound > granted).then(|| {
        format!(
            "the server may take up to {} MiB of memory, but {whose} has {} MiB: when it is used up, the kernel ends the process; lower \
             `cache.size`, `limits.pending` or `server.workers`, or raise the limit",
            bound.div_ceil(MIB),
            granted / MIB
        )
    })
}

/// Octets that may be used, each with the name of what limits them. A file that cannot be read limits nothing that is known here.
fn grants(root: &Path) -> Vec<(u64, String)> {
    let mut grants = Vec::new();
    let memory = read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    if let Some(kibibytes) = field(&memory, "MemTotal:") {
        grants.push((kibibytes << 10, "this machine".to_owned()));
    }
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    for folder in group_folders(&root.join("sys/fs/cgroup"), &groups) {
        // Version 2, and version 1 (cgroups(7)). "max" and the huge number of version 1 are no limit.
        for file in ["memory.max", "memory.limit_in_bytes"] {
            let file = folder.join(file);
            let limit = read_to_string(&file).ok().and_then(|text| text.trim().parse::<u64>().ok());
            if let Some(limit) = limit {
                let shown = Path::new("/").join(file.strip_prefix(root).unwrap_or(&file));
                grants.push((limit, format!("the control group ({})", shown.display())));
            }
        }
    }
    grants
}

/// The folders of this process's control group for memory and of the groups above it: a limit of each holds.
fn group_folders(mount: &Path, groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let mount = match controllers {
            "" => mount.to_owned(),
            _ if controllers.split(',').any(|controller| controller == "memory") => mount.join("memory"),
            _ => continue,
        };
        // In a container the path may be one of the host, and the container's own group is at the mount.
        let group = mount.join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|folder| folder.starts_with(&mount));
        folders.extend(above.map(Path::to_owned));
    }
    folders
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file system with these files.
    struct Root(kit::Folder);

    impl Root {
        fn new(files: &[(&str, &str)]) -> Root {
            let root = kit::Folder::new();
            for (file, text) in files {
                let file = root.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Root(root)
        }
    }

    #[test]
    fn the_smallest_limit_of_machine_and_groups_counts() {
        let root = Root::new(&[
            ("proc/meminfo", "MemTotal:        1048576 kB\nMemFree: 5 kB\n"),
            ("proc/self/cgroup", "0::/system.slice/sixfold.service\n"),
            ("sys/fs/cgroup/system.slice/sixfold.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "83886080\n"),
        ]);
        let warning = warning_of(510 * MIB, grants(&root.0)).unwrap();
        assert!(warning.contains("up to 510 MiB") && warning.contains("has 80 MiB"), "{warning}");
        assert!(warning.contains("(/sys/fs/cgroup/system.slice/memory.max)"), "{warning}");
        assert_eq!(warning_of(80 * MIB, grants(&root.0)), None);
    }

    #[test]
    fn groups_of_version_1_and_the_machine_count_too() {
        let root = Root::new(&[
            ("proc/meminfo", "MemTotal: 524288 kB\n"),
            ("proc/self/cgroup", "9:cpu,memory:/box\n4:pids:/other\n"),
            ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let warning = warning_of(513 * MIB, grants(&root.0)).unwrap();
        assert!(warning.contains("this machine has 512 MiB"), "{warning}");
        fs::write(root.0.join("sys/fs/cgroup/memory/box/memory.limit_in_bytes"), "1048576").unwrap();
        assert!(warning_of(2 * MIB, grants(&root.0)).unwrap().contains("has 1 MiB"));
    }

    #[test]
    fn a_system_that_tells_nothing_limits_nothing() {
        assert_eq!(warning_of(u64::MAX, grants(Path::new("/nonexistent"))), None);
    }

    #[test]
    fn the_bound_is_that_of_the_documents() {
        // docs/how-to/size-and-tune.md, all defaults, rounded to whole MiB.
        for (workers, mebibytes) in [(1, 431), (2, 580), (8, 1473)] {
            let bound_with = |more: &str| {
                let text = format!(
                    "[server]\nworkers = {workers}\n[upstream]\nforwarders = [\"192.0.2.53\"]\n{more}"
                );
                let parsed =
                    crate::config::parse("x.toml", &text, &Default::default(), "/etc/resolv.conf".as_ref());
                let Ok((config, _)) = parsed else { panic!("a configuration without faults") };
                (bound(&config) + MIB / 2) / MIB
            };
            assert_eq!(bound_with(""), mebibytes);
            assert_eq!(bound_with("[dns64]\ndnssec = \"validate\"\n"), mebibytes + 8 * workers);
        }
    }
}
