//! The clock of the datapath counts the time for which the machine was suspended. A test cannot suspend the machine. A time
//! namespace (time_namespaces(7)) can set CLOCK_BOOTTIME forward and leave CLOCK_MONOTONIC as it is, as a suspend does.

use kit::namespace;

/// Seconds for which the machine seems to have slept.
const SLEPT_SECS: u64 = 1_000_000;

#[test]
fn the_clock_counts_the_time_for_which_the_machine_was_suspended() {
    if namespace::is_inside() {
        return println!("now {}", sixfold_datapath::now().0);
    }
    let before = sixfold_datapath::now();
    let name = "suspend::the_clock_counts_the_time_for_which_the_machine_was_suspended";
    let slept = SLEPT_SECS.to_string();
    let unshare = ["--time", "--fork", "--kill-child", "--boottime", &slept, "--"];
    let Some(text) = namespace::run_inside(name, &unshare) else { return };
    let inside = text.lines().find_map(|line| line.split_once("now ")?.1.trim().parse::<u64>().ok());
    let inside = inside.unwrap_or_else(|| panic!("no time in {text}"));
    assert!(inside - before.0 >= SLEPT_SECS * 1_000_000_000, "{inside} after {}", before.0);
}
