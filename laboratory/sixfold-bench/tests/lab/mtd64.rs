//! The experiments of the papers on MTD64 and mtd64-ng, in the short version, with Sixfold alone.

use super::command::{has_sixfold, lab, run_quick_with};
use crate::fixtures::sixfold_that_loses_its_port;
use std::path::PathBuf;

/// Runs an experiment with Sixfold alone and returns its record. Every claim must hold.
fn run_with_sixfold(name: &str) -> serde_json::Value {
    run_quick_with(name, &["--device", "sixfold"])
}

/// Value of a figure.
fn value(record: &serde_json::Value, row: &str, column: &str) -> Option<f64> {
    let figures = record["figures"].as_array().expect("figures");
    let is_it = |figure: &&serde_json::Value| figure["row"] == row && figure["column"] == column;
    figures.iter().find(is_it).and_then(|figure| figure["value"].as_f64())
}

#[test]
fn sixfold_passes_the_functional_tests_and_the_model_of_mtd64_fails_those_that_it_should() {
    if !has_sixfold() {
        return;
    }
    let record = run_with_sixfold("mtd64-functions");
    for (row, sixfold, mtd64) in [
        ("no synthesis in the additional section (RFC 6147 section 5.3.2)", 1.0, 0.0),
        ("TC if the answer is cut (RFC 6147 section 5.4)", 1.0, 0.0),
        ("AAAA records by RFC 6052", 1.0, 1.0),
        // 413 octets and 10 records that grow by 12 are 533; two additional records of 16 are left out. Figure 14 has 493.
        ("AAAA, 16 address records, room for 512 octets", 501.0, 493.0),
    ] {
        assert_eq!(value(&record, row, "sixfold"), Some(sixfold), "{row}");
        assert_eq!(value(&record, row, "MTD64 (model)"), Some(mtd64), "{row}");
    }
}

#[test]
fn a_device_whose_port_was_taken_is_started_at_another_port() {
    if !has_sixfold() {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mtd64-taken");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("made");
    let program = format!("sixfold={}", sixfold_that_loses_its_port(&folder).display());
    let out = folder.join("out");
    let output = lab(&[
        "mtd64-functions",
        "--quick",
        "--device",
        "sixfold",
        "--program",
        &program,
        "--out",
        out.to_str().expect("text"),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("was taken before the device had it: it is started at another port"), "{said}");
}

#[test]
fn a_program_that_no_experiment_knows_is_refused_by_name() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mtd64-unknown");
    let output = lab(&[
        "mtd64-functions",
        "--quick",
        "--program",
        "nothing=/bin/true",
        "--out",
        out.to_str().expect("text"),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("nothing") && error.contains("mtd64-ng"), "{error}");
}

#[test]
fn the_closed_loop_measures_time_and_cpu_time() {
    if !has_sixfold() {
        return;
    }
    let record = run_with_sixfold("mtd64-speed");
    let time_ms = value(&record, "sixfold", "time of an experiment").expect("measured");
    // 256 queries with 16 outstanding are 16 rounds, each of two system calls or more; a lost query costs 1 s.
    assert!((0.1..10_000.0).contains(&time_ms), "{time_ms}");
    assert!(value(&record, "sixfold", "valid replies").expect("measured") >= 99.0);
    assert!(value(&record, "sixfold", "CPU time for a query").expect("measured") > 0.0);
}

#[test]
fn a_flood_for_silent_servers_makes_no_thread_of_sixfold() {
    if !has_sixfold() {
        return;
    }
    let record = run_with_sixfold("mtd64-overload");
    let threads = |column: &str| value(&record, "sixfold", column).expect("counted");
    assert!(threads("threads before") > 0.0 && threads("most threads") >= threads("threads before"));
    assert!(value(&record, "sixfold", "another client is answered within 1 s").expect("asked") >= 90.0);
}

/// Expected numbers of upstream queries: RFC 6147 section 5.1 (an AAAA query, then an A query if there is no AAAA record) and section
/// 5.1.8 (both at once).
#[test]
fn the_price_of_each_function_is_measured_with_one_change_at_a_time() {
    if !has_sixfold() {
        return;
    }
    let record = run_with_sixfold("mtd64-prices");
    for (setup, queries) in [
        ("new names", 2.0),
        ("new names, no cache", 2.0),
        ("names asked again", 0.0),
        ("names asked again, no cache", 2.0),
        ("AAAA records, sequential", 1.0),
        ("AAAA records, parallel", 2.0),
        ("new names, upstream without EDNS", 2.0),
    ] {
        let row = format!("sixfold: {setup}");
        let asked = value(&record, &row, "upstream queries for an answer").expect("counted");
        assert!((asked - queries).abs() <= 0.1, "{row}: {asked}");
        assert!(value(&record, &row, "CPU time for an answer").expect("measured") > 0.0, "{row}");
    }
    let figures = record["figures"].as_array().expect("figures");
    let is_ratio = |figure: &&serde_json::Value| figure["row"] == "sixfold: client with EDNS";
    let ratio = figures.iter().find(is_ratio).expect("compared");
    assert_eq!(ratio["samples"].as_u64(), Some(3), "one ratio for each round: {ratio}");
    assert!(ratio["interval"].is_array(), "{ratio}");
    let sentences = record["claims"].to_string();
    assert!(
        !sentences.contains("CPU time") && !sentences.contains("times as long"),
        "no time is judged: {sentences}"
    );
}

#[test]
#[ignore = "long: the experiment takes a minute"]
fn the_search_has_a_rate_for_each_number_of_threads_and_the_papers_beside_it() {
    if !has_sixfold() {
        return;
    }
    let record = run_with_sixfold("mtd64ng-threads");
    let figures = record["figures"].as_array().expect("figures");
    for (row, paper) in [("threads: 1", 3132.0), ("threads: 2", 4747.0), ("threads: 4", 6849.0)] {
        assert!(value(&record, row, "sixfold").expect("measured") > 0.0, "{row}");
        let is_paper = |figure: &&serde_json::Value| figure["row"] == row && figure["column"] == "mtd64-ng";
        assert_eq!(figures.iter().find(is_paper).expect("there")["paper"].as_f64(), Some(paper), "{row}");
    }
}
