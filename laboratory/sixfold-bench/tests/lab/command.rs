//! The command `lab`, and its use by the other tests.

use crate::fixtures::bench;
pub use crate::fixtures::has_sixfold;
use std::path::PathBuf;
use std::process::Output;
use std::sync::{Mutex, PoisonError};

/// Experiments with real packets disturb each other, so one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `sixfold-bench lab` with these arguments.
pub fn lab(arguments: &[&str]) -> Output {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    bench(&[&["lab"], arguments].concat())
}

/// Runs an experiment in its short version and returns its record. Every claim must hold.
pub fn run_quick(name: &str) -> serde_json::Value {
    run_quick_with(name, &[])
}

/// As [`run_quick`], with further arguments.
pub fn run_quick_with(name: &str, arguments: &[&str]) -> serde_json::Value {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let all = [&[name, "--quick", "--out", out.to_str().expect("text")], arguments].concat();
    let output = lab(&all);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let record = std::fs::read_to_string(out.join("result.json")).expect("written");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    check_claims(&record);
    let page = std::fs::read_to_string(out.join("report.html")).expect("written");
    assert!(page.contains("</html>"), "the page is whole");
    record
}

/// Each claim of a record names what would refute it, which is another sentence than the claim.
fn check_claims(record: &serde_json::Value) {
    for claim in record["claims"].as_array().expect("claims") {
        let text = |key: &str| claim[key].as_str().expect("text").trim().to_owned();
        let (sentence, refuted_by) = (text("sentence"), text("refuted_by"));
        assert!(refuted_by.len() >= 10, "{sentence}: nothing would refute it: {refuted_by:?}");
        assert!(refuted_by != sentence && refuted_by != text("observed"), "{sentence}: {refuted_by}");
    }
}

/// True if the record holds the part with network namespaces. If not, the test counts as skipped in that part.
pub fn has_real_part(record: &serde_json::Value) -> bool {
    let is_left_out = record["warnings"].to_string().contains("needs root");
    if is_left_out {
        kit::skip("the part with network namespaces needs root");
    }
    !is_left_out
}

/// Exit status and standard error.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = lab(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_unknown_experiment_is_wrong_usage_and_the_names_are_listed() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("unknown-experiment");
    let (code, error) = refused(&["no-such-experiment", "--out", folder.to_str().expect("text")]);
    assert_eq!(code, Some(2));
    for part in ["no experiment no-such-experiment", "selftest", "--list"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!folder.exists(), "no folder is made for a wrong name");
}

#[test]
fn a_missing_name_or_folder_and_a_second_experiment_are_wrong_usage() {
    for (arguments, part) in [
        (&["selftest"][..], "--out"),
        (&["--out", "/tmp"], "EXPERIMENT"),
        (&["selftest", "selftest", "--out", "/tmp"], "unexpected argument"),
        (&["selftest", "--out", "/tmp", "--program", "mtd64-ng"], "NAME=PATH"),
        (
            &["totd-load", "--out", "/tmp", "--programs", "/nowhere/programs"],
            "totd-1.5.2, totd-1.5.2-fixed, totd-1.5.3",
        ),
    ] {
        let (code, error) = refused(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_refused_before_the_experiment_with_the_remedy() {
    // A file is in the place of a folder: root cannot write there either.
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a-file");
    std::fs::write(&file, "").expect("written");
    let (code, error) =
        refused(&["selftest", "--quick", "--out", file.join("below").to_str().expect("text")]);
    assert_eq!(code, Some(1), "{error}");
    for part in ["sixfold-bench: lab:", "a-file/below", "folder that can be written"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("progress") && !error.contains("selftest: "), "nothing was measured: {error}");
}

#[test]
fn the_list_has_each_experiment_with_paper_part_and_durations() {
    let output = lab(&["--list"]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["selftest\n", "mtd64-ng paper, section 4.3, Table 2", "with --quick"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert!(list.lines().all(|line| line.chars().count() <= 110), "each line fits on a screen: {list}");
}

#[test]
fn the_list_of_one_experiment_is_that_one_alone() {
    let all = lab(&["--list"]).stdout;
    let one = lab(&["--list", "selftest"]);
    let list = String::from_utf8_lossy(&one.stdout).into_owned();
    assert_eq!(one.status.code(), Some(0));
    assert!(list.starts_with("selftest\n") && one.stdout.len() <= all.len(), "{list}");
    let (code, error) = refused(&["--list", "no-such-experiment"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("selftest"), "{error}");
}
