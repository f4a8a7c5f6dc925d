//! Requirements on the machine: the reasons to skip a test.

use servers::program::is_confined_by_apparmor;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories with programs for administrators, which an ordinary user's path may lack.
const SYSTEM_PATHS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Servers that Debian confines to their usual directories with AppArmor, so that they cannot read our files.
const CONFINED: [&str; 2] = ["named", "unbound"];

/// Search path of all programs.
pub(crate) fn search_path() -> String {
    let usual = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
    format!("{usual}:{}", SYSTEM_PATHS.join(":"))
}

fn find(program: &str) -> Option<PathBuf> {
    search_path().split(':').map(|directory| Path::new(directory).join(program)).find(|path| path.is_file())
}

/// A reason to skip a test.
#[derive(Debug)]
pub enum Unable {
    /// These programs are not installed, and `./test` installs them.
    NotInstalled(String),
    /// Another reason: no root, a confined program.
    Other(String),
}

impl Unable {
    /// The reason in words.
    pub fn why(&self) -> String {
        match self {
            Unable::NotInstalled(programs) => format!("not installed: {programs}"),
            Unable::Other(why) => why.clone(),
        }
    }

    /// Skips a part of the running test, in the same way.
    pub fn skip_part(&self, part: &str) {
        match self {
            Unable::NotInstalled(_) => self.skip(),
            Unable::Other(why) => kit::skip(&format!("{part}: {why}")),
        }
    }

    /// Skips the running test; where packages have been installed, a missing program is a failure.
    pub fn skip(&self) {
        match self {
            Unable::NotInstalled(programs) => kit::missing(programs, "./test as root installs it"),
            Unable::Other(why) => kit::skip(why),
        }
    }
}

/// Reason why this machine cannot run a test that needs root, network namespaces and `programs`; `None` if it can.
pub(crate) fn missing(programs: &[&str]) -> Option<Unable> {
    if std::fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid()) != 0 {
        return Some(Unable::Other("network namespaces need root".into()));
    }
    let base = ["ip", "timeout", "setpriv", "kdig"];
    let missing: Vec<_> = base.iter().chain(programs).copied().filter(|name| find(name).is_none()).collect();
    if !missing.is_empty() {
        return Some(Unable::NotInstalled(missing.join(" ")));
    }
    let confined = programs.iter().find(|name| CONFINED.contains(name) && is_confined_by_apparmor(name));
    confined.map(|name| Unable::Other(format!("AppArmor confines {name}")))
}

/// Reason why the current user cannot start a server here; `None` if it can be started.
pub fn missing_program(program: &str) -> Option<Unable> {
    if find(program).is_none() {
        return Some(Unable::NotInstalled(program.to_owned()));
    }
    let is_confined = CONFINED.contains(&program) && is_confined_by_apparmor(program);
    is_confined.then(|| Unable::Other(format!("AppArmor confines {program}")))
}
