//! The command `lab`, and its use by the other tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Experiments with real packets disturb each other, so one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `sixfold-bench lab` with these arguments.
pub fn lab(arguments: &[&str]) -> Output {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(env!("CARGO_BIN_EXE_sixfold-bench")).arg("lab").args(arguments).output().expect("starts")
}

/// True if the program of Sixfold is built beside this one. Otherwise the test counts as skipped.
pub fn has_sixfold() -> bool {
    let is_there = Path::new(env!("CARGO_BIN_EXE_sixfold-bench")).with_file_name("sixfold").is_file();
    if !is_there {
        test_skip::missing("sixfold", "cargo build -p sixfold");
    }
    is_there
}

/// Runs an experiment in its short version and returns its record. Every claim must hold.
#[allow(dead_code)]
pub fn run_quick(name: &str) -> serde_json::Value {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = lab(&[name, "--quick", "--out", out.to_str().expect("text")]);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let record = std::fs::read_to_string(out.join("result.json")).expect("written");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let page = std::fs::read_to_string(out.join("report.html")).expect("written");
    assert!(page.contains("</html>"), "the page is whole");
    record
}

#[test]
fn an_unknown_experiment_is_wrong_usage_and_the_names_are_listed() {
    let output = lab(&["no-such-experiment", "--out", env!("CARGO_TARGET_TMPDIR")]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no experiment no-such-experiment"), "{error}");
}
