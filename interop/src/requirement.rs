//! Requirements on the machine, and the message of a skipped test.

use std::io::Write;
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

fn is_confined(program: &str) -> bool {
    let profiles = std::fs::read_to_string("/sys/kernel/security/apparmor/profiles").unwrap_or_default();
    profiles.lines().any(|line| line.ends_with("(enforce)") && line.split(' ').next() == Some(program))
}

/// Reason why this machine cannot run a test that needs root, network namespaces and `programs`; `None` if it can.
pub(crate) fn missing(programs: &[&str]) -> Option<String> {
    if std::fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid()) != 0 {
        return Some("network namespaces need root".into());
    }
    let base = ["ip", "timeout", "setpriv", "kdig"];
    let missing: Vec<_> = base.iter().chain(programs).copied().filter(|name| find(name).is_none()).collect();
    if !missing.is_empty() {
        return Some(format!("not installed: {}", missing.join(" ")));
    }
    let confined = programs.iter().find(|name| CONFINED.contains(name) && is_confined(name));
    confined.map(|name| format!("AppArmor confines {name}"))
}

/// Reason why the current user cannot start a server here; `None` if it can be started.
pub fn missing_program(program: &str) -> Option<String> {
    if find(program).is_none() {
        return Some(format!("not installed: {program}"));
    }
    (CONFINED.contains(&program) && is_confined(program)).then(|| format!("AppArmor confines {program}"))
}

/// Prints that the running test is skipped, and why. Bypasses the capture of test output, because the test passes.
pub fn report_skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // The empty line comes first because with one test thread the name of the test stands on an unfinished line.
    let line = format!("\nskipped: {test}: {}\n", why.trim().replace('\n', "; "));
    // Without an output there is no reader.
    let _ = std::io::stdout().write_all(line.as_bytes());
}
