//! Static programs: `packaging/build-static` builds them for x86-64 and 64-bit Arm, and each answers in a root that has nothing else. The
//! program of the other architecture runs under emulation, where the kernel's filter of system calls is not tried. A debug build ends
//! at a system call that its list lacks, so that of this architecture shows that musl needs no other.

use crate::{run, skips, source, text};
use sixfold_interop::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Path of the emulator of an architecture, unless it is that of this machine.
fn emulator(arch: &str) -> Option<PathBuf> {
    (arch != std::env::consts::ARCH).then(|| PathBuf::from(format!("/usr/bin/qemu-{arch}-static")))
}

/// Builds the server of an architecture into `output`, without optimization, which only costs time here. Returns its path; `None` if the
/// test is skipped, as neither the target of the compiler nor the headers of musl are programs that Debian installs.
fn build(arch: &str, output: &Path) -> Option<PathBuf> {
    let mut command = Command::new(source().join("packaging/build-static"));
    command.arg(arch).arg("--server-only").arg("--output").arg(output).args(["--profile", "dev", "--"]);
    command.args(["--quiet", "--config", "profile.dev.package.\"*\".opt-level=0"]);
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    let built = run(1500, &mut command);
    let said = text(&built);
    let reason = said.lines().find(|line| {
        line.contains("the Rust toolchain has no target") || line.contains("build-static: apt cannot fetch")
    });
    if let Some(reason) = reason.filter(|_| !built.status.success()) {
        kit::skip(reason);
        return None;
    }
    assert!(built.status.success(), "{said}");
    Some(output.join(arch).join("sixfold"))
}

/// Builds the server of an architecture and has it answer in an empty root.
fn answers_in_an_empty_root(arch: &str) {
    let compiler = format!("{arch}-linux-gnu-gcc");
    let emulator = emulator(arch);
    let name = emulator.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let mut programs = vec![&*compiler, "dig", "ip", "unshare", "chroot", "readelf"];
    programs.extend(name.as_deref());
    if skips(&programs) {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = build(arch, scratch.path()) else { return };
    let mut command = Command::new("unshare");
    command.arg("--pid").args(kit::namespace::network("ip link set lo up && exec \"$@\""));
    command.arg(source().join("packaging/tests/static-root")).arg(&program);
    command.arg(source().join("docs/examples/server/home.toml")).arg(scratch.path()).args(emulator);
    let ran = run(300, &mut command);
    let said = text(&ran);
    assert!(ran.status.success() && said.lines().any(|line| line == "static: stops"), "{said}");
}

#[test]
#[ignore = "long: a build with musl takes minutes"]
fn the_static_program_for_x86_64_answers_in_an_empty_root() {
    answers_in_an_empty_root("x86_64");
}

#[test]
#[ignore = "long: a build with musl takes minutes"]
fn the_static_program_for_arm_answers_in_an_empty_root() {
    answers_in_an_empty_root("aarch64");
}
