//! Skipped tests: a test that this machine cannot run passes, and says so. The test runner hides the output of tests that pass,
//! so the line goes past it: into the file that `SIXFOLD_SKIPS` names, which `./test` shows and counts, else to standard error.
//!
//! A skip must not hide a test that could have run. So a missing program that `./test` installs is a failure where packages
//! have been installed: `SIXFOLD_PACKAGES=installed`, which `./test` sets, or `CI`.

use std::io::Write;
use std::path::Path;

/// Path of the file to which skips are appended.
pub const FILE: &str = "SIXFOLD_SKIPS";
/// Set to `installed` by `./test` when all programs of its list are there.
pub const PACKAGES: &str = "SIXFOLD_PACKAGES";

/// Says that the running test is skipped, for a reason that no package removes: no root, no IPv6, a kernel without a feature,
/// a program that Debian does not have.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    write(&line(thread.name().unwrap_or("a test"), why));
}

/// Says that the running test is skipped because a program is missing that `./test` or the build of the workspace provides.
/// `remedy` is the command that provides it. Panics where packages have been installed.
#[track_caller]
pub fn missing(program: &str, remedy: &str) {
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    assert!(
        !must_have_programs(&set(PACKAGES), &set("CI")),
        "{program} is missing, and this machine must have it ({PACKAGES} or CI is set): {remedy}"
    );
    skip(&format!("{program} is missing ({remedy})"));
}

/// True if a missing program is a failure, by the values of the two environment variables.
fn must_have_programs(packages: &str, ci: &str) -> bool {
    packages == "installed" || !matches!(ci, "" | "0" | "false")
}

/// The line of a skipped test.
fn line(test: &str, why: &str) -> String {
    let why: Vec<&str> = why.lines().map(str::trim).filter(|part| !part.is_empty()).collect();
    format!("skipped: {test}: {}\n", why.join("; "))
}

fn write(line: &str) {
    let file = std::env::var_os(FILE).filter(|file| !file.is_empty());
    let written = file.is_some_and(|file| append(Path::new(&file), line).is_ok());
    if !written {
        // The empty line comes first because the name of the test may stand on an unfinished line. Without standard error there
        // is no reader.
        let _ = std::io::stderr().write_all(format!("\n{line}").as_bytes());
    }
}

/// Appends a line with one system call, as tests run at the same time.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_becomes_one() {
        assert_eq!(line("a_test", " no\n\n root \n"), "skipped: a_test: no; root\n");
    }

    #[test]
    fn programs_are_demanded_where_packages_are_installed() {
        for (packages, ci, expected) in [
            ("", "", false),
            ("no", "", false),
            ("", "false", false),
            ("", "0", false),
            ("installed", "", true),
            ("", "true", true),
            ("", "1", true),
        ] {
            assert_eq!(must_have_programs(packages, ci), expected, "{packages:?} {ci:?}");
        }
    }
}
