//! The restriction of files and TCP ports (Landlock, landlock(7)). The process may read what a reload reads, and writes only into the
//! folder in which it keeps what it learns about trust anchors, if it does. Connections to Unix sockets (service manager, log) and to
//! upstreams stay possible.
//!
//! Folders are granted, not files: an editor replaces a file by another one of its name.

use crate::config::{Config, DEFAULT_PATH};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::{Path, PathBuf};
use tls::anchors::AnchorSource;

/// Resolvers of the system. The file is often a link into a folder of the program that writes it.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Folders that a reload may read whatever the configuration names: `/etc`, shared data, and the folders of the programs that write
/// resolv.conf(5).
const SYSTEM_FOLDERS: &[&str] =
    &["/etc", "/usr/share", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];

/// Files of the system for other purposes: numbers of network interfaces (`fe80::1%eth0`), number of processors, ports that the
/// system reserves; and for the trace of a panic the map of the process, its libraries and their symbols.
const SYSTEM_FILES: &[&str] = &[
    "/sys/class/net",
    "/sys/devices",
    "/proc/self",
    "/proc/sys/net/ipv4/ip_local_reserved_ports",
    "/usr/lib",
    "/lib",
    "/lib64",
];

/// Rights over files that the ruleset governs: all that Linux 6.10 knows. A later one is about connections to Unix sockets, which
/// the server needs for its log.
const FILES: ABI = ABI::V5;

/// Rights over TCP ports, and scopes: all that Linux 6.12 knows. Later rights would concern the UDP ports of upstream queries.
const PORTS_AND_SCOPES: ABI = ABI::V6;

/// The files and folders that the server needs in the sandbox.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Files and folders that a reload may read.
    pub readable: Vec<PathBuf>,
    /// Folder of the control socket, which the server removes at its end.
    pub control: Option<PathBuf>,
    /// Folder in which the server keeps what it learns about trust anchors.
    pub state: Option<PathBuf>,
    /// Folder of the directory that a demonstration removes at its end.
    pub demo: Option<PathBuf>,
    /// True if connections to upstreams leave from ports that the server chooses (`upstream.avoid-ports`). If not, the kernel alone
    /// chooses the port of a TCP socket that is bound.
    pub chooses_tcp_ports: bool,
}

impl Needs {
    /// The needs of a configuration that was read from `source`. `demo` is the directory of a demonstration.
    pub fn of(config: &Config, source: Option<&Path>, demo: Option<&Path>) -> Needs {
        Needs {
            readable: readable(config, source),
            control: config.control.socket.as_deref().and_then(folder),
            state: state_file(config).and_then(folder).filter(|folder| folder.parent().is_some()),
            demo: demo.and_then(folder),
            chooses_tcp_ports: !config.upstream.avoid_ports.is_empty(),
        }
    }
}

/// The file in which the server keeps what it learns about trust anchors, if it follows some.
fn state_file(config: &Config) -> Option<&Path> {
    config.dnssec.state_file.as_deref().filter(|_| config.follows_anchors())
}

/// The folder of a file. A relative path may have none.
fn folder(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

/// Path by which a file is granted: its folder, because an editor replaces the file by another one. A file in the root directory is
/// granted alone: its folder would be the whole system.
fn granting(file: &Path) -> Option<PathBuf> {
    folder(file).map(|folder| if folder.parent().is_none() { file.to_owned() } else { folder })
}

/// The files and folders that a reload may read: those of the system, the program, and the folder of each file that the
/// configuration names, also where a symbolic link leads to another folder.
fn readable(config: &Config, source: Option<&Path>) -> Vec<PathBuf> {
    let named = [source.unwrap_or(Path::new(DEFAULT_PATH)), Path::new(RESOLV_CONF)];
    let named = named.into_iter().chain(config.local.hosts_file.as_deref());
    let named = named.chain(config.dns64.mappings_file.as_deref());
    let named = named.chain(config.dnssec.trust_anchors.file());
    // A reload may begin to follow trust anchors, and goes on with what was learned earlier.
    let named = named.chain(config.dnssec.state_file.as_deref());
    let named = named.chain(config.filter.rpz.iter().map(PathBuf::as_path));
    let anchors = match &config.upstream.tls_ca {
        AnchorSource::System => None,
        AnchorSource::File(path) => Some(path.as_path()),
    };
    let named = named.chain(anchors).chain(config.tls.files().map(PathBuf::as_path));
    let folders = named.flat_map(|file| {
        let target = file.canonicalize().ok();
        [granting(file), target.as_deref().and_then(granting)]
    });
    let system = SYSTEM_FOLDERS.iter().chain(SYSTEM_FILES).map(PathBuf::from);
    let mut readable: Vec<PathBuf> = system.chain(std::env::current_exe()).chain(folders.flatten()).collect();
    readable.sort();
    readable.dedup();
    readable
}

/// Restricts the calling thread, and the threads that it starts later. Returns the version of the Landlock ABI in use; an old one
/// lacks the restriction of TCP ports (before 4) and of signals to other processes (before 6).
///
/// # Errors
///
/// The reason for the warning: the kernel has no Landlock or was started without it, or refuses the rules.
pub fn restrict(needs: &Needs) -> Result<i32, String> {
    let status = ruleset(needs).and_then(RulesetCreated::restrict_self).map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("this kernel was started without Landlock: add landlock to the boot parameter `lsm=`".into())
        }
        (RulesetStatus::NotEnforced, _) => Err(
            "this kernel has no Landlock (Linux 5.13 or later has it), or the container hides it: allow the system calls landlock_*".into(),
        ),
        (_, LandlockStatus::Available { effective_abi, kernel_abi }) => {
            Ok(kernel_abi.unwrap_or(effective_abi as i32))
        }
        _ => Err("Landlock is in a state that this version does not know".into()),
    }
}

fn ruleset(needs: &Needs) -> Result<RulesetCreated, RulesetError> {
    let mut scopes = Scope::from_all(PORTS_AND_SCOPES);
    // The socket of the service manager may be an abstract one, outside the sandbox.
    if std::env::var_os("NOTIFY_SOCKET").is_some_and(|path| path.to_string_lossy().starts_with('@')) {
        scopes &= !Scope::AbstractUnixSocket;
    }
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(FILES))?.scope(scopes)?;
    if !needs.chooses_tcp_ports {
        // Every TCP listener is bound already. An upstream may have any port.
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    let mut ruleset = ruleset.create()?;
    if !needs.chooses_tcp_ports {
        // Port 0 leaves the port to the kernel, which binds connections to an address of `upstream.source` so.
        ruleset = ruleset.add_rule(NetPort::new(0, AccessNet::BindTcp))?;
    }
    for path in &needs.readable {
        ruleset = grant(ruleset, path, AccessFs::ReadFile)?;
    }
    if let Some(folder) = &needs.control {
        ruleset = grant(ruleset, folder, AccessFs::RemoveFile)?;
    }
    if let Some(folder) = &needs.state {
        // A file is written beside the old one and renamed, and then the folder is brought to the disk.
        let writes = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
        ruleset = grant(ruleset, folder, writes | AccessFs::ReadDir)?;
    }
    if let Some(folder) = &needs.demo {
        ruleset = grant(ruleset, folder, AccessFs::RemoveDir)?;
    }
    Ok(ruleset)
}

/// Grants a right over a file, or over all files below a folder. A path that does not exist, or that the process cannot reach,
/// needs no grant.
fn grant(
    ruleset: RulesetCreated,
    path: &Path,
    access: impl Into<BitFlags<AccessFs>>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(descriptor) => ruleset.add_rule(PathBeneath::new(descriptor, access)),
        Err(_) => Ok(ruleset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_root_directory_does_not_grant_the_whole_system() {
        let granted = |file: &str| granting(Path::new(file));
        assert_eq!(granted("/sixfold.toml"), Some("/sixfold.toml".into()));
        assert_eq!(granted("/srv/policy/a.rpz"), Some("/srv/policy".into()));
        assert_eq!(granted("sixfold.toml"), Some(".".into()));
    }
}
