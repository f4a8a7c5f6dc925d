//! The experiment on authoritative servers, with the servers that are installed.

use crate::command::{lab, run_quick};
use sixfold_bench::device::program::find_in_path;

/// Title, program and packages.
const SERVERS: [(&str, &str, &str); 5] = [
    ("BIND", "named", "apt-get install bind9"),
    ("NSD", "nsd", "apt-get install nsd"),
    ("Knot DNS", "knotd", "apt-get install knot"),
    ("YADIFA", "yadifad", "apt-get install yadifa"),
    ("PowerDNS", "pdns_server", "apt-get install pdns-server pdns-backend-bind"),
];

#[test]
fn every_installed_server_is_checked_and_measured_and_ends() {
    let record = run_quick("authorities");
    let figures = record["figures"].as_array().expect("figures");
    let mut titles = vec!["ours, computed", "ours, zone file"];
    for (title, program, remedy) in SERVERS {
        match find_in_path(program) {
            Some(_) => titles.push(title),
            None => test_skip::missing(program, remedy),
        }
    }
    for title in titles {
        let value = |column: &str| {
            let figure = figures.iter().find(|figure| figure["row"] == title && figure["column"] == column);
            figure
                .and_then(|figure| figure["value"].as_f64())
                .unwrap_or_else(|| panic!("{title}: no {column}"))
        };
        assert!(value("load time, 2^14 names") > 0.0, "{title}");
        // No server fits 16,384 names and itself into a megabyte.
        assert!(value("memory, 2^14 names") > 1.0, "{title}");
        assert!(value("median") >= 0.0 && value("1st percentile") <= value("99th percentile"), "{title}");
    }
    let programs = record["programs"].as_array().expect("programs");
    for program in programs {
        let folder = program["command"].to_string();
        assert!(program["version"].as_str().is_some_and(|version| !version.is_empty()), "{program}");
        assert!(!is_running(&folder), "{folder} still runs");
    }
}

/// True if a process has this command line, written as a JSON list.
fn is_running(command: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| !line.is_empty()).any(|line| {
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
        serde_json::to_string(&words).is_ok_and(|words| words == command)
    })
}

#[test]
fn an_unknown_server_is_refused_with_the_names() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/authorities-unknown");
    let output = lab(&["authorities", "--quick", "--device", "bnid", "--out", out]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("bnid") && error.contains("yadifa, powerdns, ours-zone-file, ours"), "{error}");
}

#[test]
fn a_missing_server_is_a_warning() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/authorities-missing");
    let arguments = [
        "authorities",
        "--quick",
        "--device",
        "nsd",
        "--device",
        "ours",
        "--program",
        "nsd=/nowhere/nsd",
        "--out",
        out,
    ];
    let output = lab(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("warning: NSD: /nowhere/nsd is not installed"), "{text}");
}
