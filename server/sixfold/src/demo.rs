//! `sixfold serve --demo`: a server that answers without a network, and without anything to prepare. It forwards to an authority
//! inside the process, and has a control socket of its own, so that `sixfold ctl` can be tried too.

use crate::config::{Config, DEFAULT_CONTROL};
use datapath::remedy::with_remedy;
use engine::settings::NonGlobal;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::{Path, PathBuf};

/// The zone of the authority, and a name in it to try.
const ZONE: &str = "demo.test";
const NAME: &str = "198-51-100-7.demo.test";

/// Begin of the name of the directory. The process ID follows.
const DIRECTORY: &str = "sixfold-demo-";

/// The control socket in the directory.
const SOCKET: &str = "control.sock";

/// Names that are tried for the directory: others may have made one of that name.
const NAMES_TRIED: u32 = 8;

/// A demonstration. It ends when it is dropped, and removes its directory then.
pub struct Demo {
    forwarders: Vec<SocketAddr>,
    /// The authority, until [`Demo::start`] takes it.
    bound: Option<authority::BoundServer>,
    /// The authority once its threads run.
    authority: Option<authority::Server>,
    /// Directory of the control socket. Dropped after the socket.
    directory: Option<PrivateDirectory>,
}

impl Demo {
    /// Binds the sockets of the authority.
    ///
    /// # Errors
    ///
    /// The text for the operator: no port of 127.0.0.1 can be bound.
    pub fn bind() -> Result<Demo, String> {
        let zone =
            authority::Zone::new(ZONE).map_err(|error| format!("cannot make the zone {ZONE}: {error}"))?;
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = authority::BoundServer::new(&[listen], &authority::Settings::new(zone))
            .map_err(|error| cannot_start(&error))?;
        let forwarders = bound.addresses().to_vec();
        Ok(Demo { forwarders, bound: Some(bound), authority: None, directory: None })
    }

    /// Starts the threads of the authority, once the process has given up its privileges.
    ///
    /// # Errors
    ///
    /// The text for the operator: the system starts no more threads.
    pub fn start(&mut self) -> Result<(), String> {
        if let Some(bound) = self.bound.take() {
            self.authority = Some(bound.start().map_err(|error| cannot_start(&error))?);
        }
        Ok(())
    }

    /// The forwarders: the authority.
    pub fn forwarders(&self) -> Vec<SocketAddr> {
        self.forwarders.clone()
    }

    /// Prepares the configuration. Unless it names a control socket, the socket is put into a private directory, which belongs to
    /// `user` (numeric user and group) if the process is going to become that user. Without a directory there is no socket.
    pub fn prepare(&mut self, config: &mut Config, user: Option<(u32, u32)>) {
        adapt(config);
        if config.control.socket.as_deref() != Some(Path::new(DEFAULT_CONTROL)) {
            return;
        }
        self.directory = PrivateDirectory::make(user)
            .inspect_err(|error| {
                tracing::debug!(
                    event = "no_control_socket",
                    "the demonstration has no control socket: {error}"
                )
            })
            .ok();
        config.control.socket = self.directory.as_ref().map(|directory| directory.0.join(SOCKET));
    }

    /// The directory that the demonstration removes at its end.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(|directory| &*directory.0)
    }

    /// True if the demonstration, not the operator, chose this path of the control socket.
    pub fn chose(&self, path: &Path) -> bool {
        self.directory.as_ref().is_some_and(|directory| path.parent() == Some(&directory.0))
    }
}

fn cannot_start(error: &io::Error) -> String {
    format!("cannot start the demonstration: {}", with_remedy(error))
}

/// Adapts a configuration to the demonstration, which uses addresses for documentation (RFC 5737): they are not global.
pub fn adapt(config: &mut Config) {
    config.dns64.non_global = NonGlobal::Embed;
}

/// Logs a warning about the start, which a demonstration does not need: it serves one person for a while.
pub fn warn_unless(demo: bool, warning: &str) {
    if demo {
        tracing::debug!(event = "demo_warning", "{warning}");
    } else {
        tracing::warn!(event = "demo_warning", "{warning}");
    }
}

/// The commands to try, one a line.
pub fn hints(listen: Option<&SocketAddr>, control: Option<&Path>) -> Vec<String> {
    let dig =
        listen.map(|address| format!("dig -p {} @{} AAAA {NAME}", address.port(), reachable(address.ip())));
    let explain = control.map(|path| {
        // The program as it was called: it need not be in the PATH.
        let program =
            std::env::args_os().next().map_or("sixfold".into(), |name| quoted(&name.to_string_lossy()));
        format!("{program} ctl --socket {} explain {NAME}", quoted(&path.to_string_lossy()))
    });
    dig.into_iter().chain(explain).collect()
}

/// An address at which a listener is reached from this machine: one on all addresses also has the loopback address.
fn reachable(listen: IpAddr) -> IpAddr {
    match listen {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"/._-+:,@%=".contains(&octet);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A directory for one user only (mode 0700). It is removed when it is dropped, if it is empty.
struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Makes `sixfold-demo-PID` in the runtime directory of the user, or under the directory for temporary files. The user that
    /// the process becomes cannot reach the runtime directory of the one that it was.
    fn make(user: Option<(u32, u32)>) -> io::Result<PrivateDirectory> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| user.is_none() && path.is_absolute());
        match runtime.map(|parent| Self::make_in(&parent)) {
            Some(Ok(directory)) => Ok(directory),
            _ => {
                let directory = Self::make_in(&std::env::temp_dir())?;
                if let Some((uid, gid)) = user {
                    lchown(&directory.0, Some(uid), Some(gid))?;
                }
                Ok(directory)
            }
        }
    }

    /// Makes a directory that did not exist: one that others have made is not private.
    fn make_in(parent: &Path) -> io::Result<PrivateDirectory> {
        remove_stale(parent);
        let pid = std::process::id();
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for number in 0..NAMES_TRIED {
            let suffix = if number == 0 { String::new() } else { format!("-{number}") };
            let path = parent.join(format!("{DIRECTORY}{pid}{suffix}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(PrivateDirectory(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Removes the directories of demonstrations that were killed. A fault leaves a directory where it is.
fn remove_stale(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else { continue };
        if rustix::process::test_kill_process(process) == Err(Errno::SRCH) {
            let _ = remove_private(parent, &name);
        }
    }
}

/// The process in the name of the directory of a demonstration.
fn process_of(name: &str) -> Option<Pid> {
    let rest = name.strip_prefix(DIRECTORY)?;
    let process = rest.split('-').next()?.parse().ok()?;
    Pid::from_raw(process)
}

/// Removes the private directory of a demonstration of this user, with its socket. It follows no links, and asks the open directory
/// for its owner, because others may write to `parent`. The process may live in another namespace: then its socket accepts.
fn remove_private(parent: &Path, name: &OsStr) -> rustix::io::Result<()> {
    let parent_directory = rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(&parent_directory, name, flags, Mode::empty())?;
    let status = rustix::fs::fstat(&directory)?;
    let is_private = status.st_mode & 0o7777 == 0o700;
    if !is_private || status.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    if std::os::unix::net::UnixStream::connect(parent.join(name).join(SOCKET)).is_ok() {
        return Err(Errno::BUSY);
    }
    // A demonstration that was killed before it had a socket has left none.
    let _ = rustix::fs::unlinkat(&directory, SOCKET, AtFlags::empty());
    rustix::fs::unlinkat(&parent_directory, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_hint_names_an_address_that_dig_can_ask() {
        for (listen, asked) in [("[::]:53", "@::1 "), ("0.0.0.0:53", "@127.0.0.1 "), ("[::1]:5364", "@::1 ")]
        {
            let hints = hints(Some(&listen.parse().unwrap()), None);
            assert!(hints[0].contains(asked), "{hints:?}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell_only_where_they_must() {
        assert_eq!(
            quoted("/run/user/1000/sixfold-demo-7/control.sock"),
            "/run/user/1000/sixfold-demo-7/control.sock"
        );
        assert_eq!(quoted("/my files/it's"), "'/my files/it'\\''s'");
    }

    #[test]
    fn the_directory_is_private_is_never_one_that_exists_and_is_removed() {
        let parent = std::env::temp_dir();
        let first = PrivateDirectory::make_in(&parent).unwrap();
        let second = PrivateDirectory::make_in(&parent).unwrap();
        assert_ne!(first.0, second.0);
        let path = second.0.clone();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        drop((first, second));
        assert!(!path.exists());
    }

    #[test]
    fn the_directory_of_a_process_that_is_gone_is_removed_and_no_other() {
        let parent = PrivateDirectory::make_in(&std::env::temp_dir()).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let make = |name: String, mode| {
            let path = parent.0.join(name);
            DirBuilder::new().mode(mode).create(&path).unwrap();
            path
        };
        let stale = make(format!("sixfold-demo-{gone}"), 0o700);
        drop(std::os::unix::net::UnixListener::bind(stale.join(SOCKET)).unwrap());
        let empty = make(format!("sixfold-demo-{gone}-1"), 0o700);
        let public = make(format!("sixfold-demo-{gone}-2"), 0o755);
        let with_files = make(format!("sixfold-demo-{gone}-3"), 0o700);
        std::fs::write(with_files.join("notes"), "").unwrap();
        let in_use = make(format!("sixfold-demo-{gone}-4"), 0o700);
        let listener = std::os::unix::net::UnixListener::bind(in_use.join(SOCKET)).unwrap();
        let living = make(format!("sixfold-demo-{}", std::process::id()), 0o700);
        let other = make("sixfold-demo-x".to_owned(), 0o700);
        let link = parent.0.join(format!("sixfold-demo-{gone}-5"));
        let target = make("target".to_owned(), 0o700);
        std::os::unix::fs::symlink(&target, &link).unwrap();
        remove_stale(&parent.0);
        assert!(!stale.exists() && !empty.exists());
        for kept in [&public, &with_files, &in_use, &living, &other, &target] {
            assert!(kept.exists(), "{}", kept.display());
        }
        assert!(link.is_symlink());
        drop(listener);
        std::fs::remove_dir_all(&parent.0).unwrap();
    }
}
