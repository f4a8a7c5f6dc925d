//! Packages, the container image, the Kubernetes manifests and the static programs, as operators get them. Packages and image hold the
//! programs of this build, so that no release build is needed. The steps within a root or a container are scripts in `packaging/tests`.
#![forbid(unsafe_code)]

mod compose;
mod container;
mod debian;
mod kubernetes;
mod recursive;
mod static_binaries;

use sixfold_interop::missing_program;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Root of the source tree.
fn source() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the source tree")
}

/// True if the running test cannot be made without root or one of these programs. It then counts as skipped.
fn skips(programs: &[&str]) -> bool {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid()) != 0 {
        kit::skip("roots and containers need root");
        return true;
    }
    let missing = programs.iter().find_map(|program| missing_program(program));
    if let Some(why) = &missing {
        why.skip();
    }
    missing.is_some()
}

/// Runs a program, killed after `secs` seconds.
fn run(secs: u32, command: &mut Command) -> Output {
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=10", &secs.to_string()]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Standard output and standard error of a program, for the message of a failure.
fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
