//! What the machine must have, and how a test says that it was left out.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where administrators' programs are, on systems that do not have these in an ordinary user's path.
const SYSTEM_PATHS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Servers that Debian confines by AppArmor to their usual directories, so that they could not read our files.
const CONFINED: [&str; 2] = ["named", "unbound"];

/// The search path that all programs are started with.
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

/// Why this machine cannot run a test that needs root, network namespaces and `programs`; none if it can.
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

/// Why a server cannot be started here by whoever runs the tests; none if it can.
pub fn missing_program(program: &str) -> Option<String> {
    if find(program).is_none() {
        return Some(format!("not installed: {program}"));
    }
    (CONFINED.contains(&program) && is_confined(program)).then(|| format!("AppArmor confines {program}"))
}

/// Says that the running test is left out, and why. Goes around the capture of test output, since the test passes.
pub fn report_skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // The empty line before it: with one test thread, the name of the test stands on an unfinished line.
    let line = format!("\nskipped: {test}: {}\n", why.trim().replace('\n', "; "));
    // Without an output there is nobody to tell.
    let _ = std::io::stdout().write_all(line.as_bytes());
}
