//! The clock of the datapath counts the time for which the machine was suspended. A test cannot suspend the machine. A time
//! namespace (time_namespaces(7)) can set CLOCK_BOOTTIME forward and leave CLOCK_MONOTONIC as it is, as a suspend does.

use std::ffi::OsStr;
use std::io::Write;
use std::process::Command;

/// Set for the program inside the namespace.
const INSIDE: &str = "SIXFOLD_TIME_NAMESPACE";

/// Seconds for which the machine seems to have slept.
const SLEPT_SECS: u64 = 1_000_000;

#[test]
fn the_clock_counts_the_time_for_which_the_machine_was_suspended() {
    if std::env::var_os(INSIDE).is_some() {
        return println!("now {}", sixfold_datapath::now().0);
    }
    let enter = |program: &OsStr, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--time", "--fork", "--kill-child", "--boottime", &SLEPT_SECS.to_string(), "--"]);
        command.arg(program).args(arguments).env(INSIDE, "1").output()
    };
    match enter("true".as_ref(), &[]) {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip(String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => return skip(&format!("unshare: {error}")),
    }
    let before = sixfold_datapath::now();
    let name = "the_clock_counts_the_time_for_which_the_machine_was_suspended";
    let program = std::env::current_exe().unwrap();
    let output = enter(program.as_os_str(), &["--exact", name, "--nocapture"]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let inside = text.lines().find_map(|line| line.split_once("now ")?.1.trim().parse::<u64>().ok());
    let inside = inside.unwrap_or_else(|| panic!("no time in {text}"));
    assert!(inside - before.0 >= SLEPT_SECS * 1_000_000_000, "{inside} after {}", before.0);
}

/// Prints the reason for a skipped test, past the test runner, which hides the output of passing tests.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "\nskipped: {why}");
}
