//! The experiment on authoritative servers, with the servers that are installed.

use super::command::{lab, run_quick};
use servers::program::find_in_path;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

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
    let own = std::fs::read("/proc/self/cmdline").expect("/proc");
    let own: Vec<String> = String::from_utf8_lossy(&own).split_terminator('\0').map(str::to_owned).collect();
    assert!(is_running(&serde_json::to_string(&own).expect("JSON")), "this test itself runs");
    let record = run_quick("authorities");
    let figures = record["figures"].as_array().expect("figures");
    let claims = record["claims"].as_array().expect("claims");
    let mut titles = vec!["ours, computed", "ours, zone file"];
    for (title, program, remedy) in SERVERS {
        match find_in_path(program) {
            Some(_) => titles.push(title),
            None => kit::missing(program, remedy),
        }
    }
    for title in titles {
        let value = |column: &str| {
            let figure = figures.iter().find(|figure| figure["row"] == title && figure["column"] == column);
            figure
                .and_then(|figure| figure["value"].as_f64())
                .unwrap_or_else(|| panic!("{title}: no {column}"))
        };
        // A start waits for answers about 16,384 names; no server fits these and itself into a megabyte, or needs 10 GB.
        assert!((1e-4..60.0).contains(&value("load time, 2^14 names")), "{title}");
        assert!((1.0..10_000.0).contains(&value("memory, 2^14 names")), "{title}");
        // The short version gives no order: no rate is searched.
        let answered = figures.iter().find(|it| it["row"] == title && it["column"] == "answered in time");
        let share = answered.unwrap_or_else(|| panic!("{title}: no trial"))["value"].as_f64();
        assert!(share.is_none_or(|share| share <= 100.0), "{title}: none if the tester was the limit");
        assert!(value("dropped by the server's sockets") >= 0.0, "{title}");
        assert!(value("as shipped") > 0.0 && value("in the measurement") > 0.0, "{title}");
        let is_checked = |claim: &serde_json::Value| {
            claim["sentence"]
                .as_str()
                .is_some_and(|text| text.starts_with(&format!("{title} answers correctly")))
        };
        assert!(claims.iter().any(is_checked), "{title}: {claims:?}");
    }
    let rates = figures.iter().filter(|figure| figure["table"].to_string().contains("Highest rate"));
    assert_eq!(rates.count(), 0, "trials of 0.3 s give no rate");
    let programs = record["programs"].as_array().expect("programs");
    for program in programs {
        let command = program["command"].to_string();
        assert!(program["version"].as_str().is_some_and(|version| !version.is_empty()), "{program}");
        assert!(!is_running(&command), "{command} still runs");
    }
}

/// True if a process has this command line, written as a JSON list.
fn is_running(command: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| !line.is_empty()).any(|line| {
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split_terminator('\0').collect();
        serde_json::to_string(&words).is_ok_and(|words| words == command)
    })
}

#[test]
fn an_unknown_server_is_refused_with_the_names() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/authorities-unknown");
    let output = lab(&["authorities", "--quick", "--device", "bnid", "--out", out]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("bnid") && error.contains("yadifa, powerdns, fakedns, ours-zone-file, ours"),
        "{error}"
    );
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

/// A server that finds its port taken is started at another one, and only then.
#[test]
fn a_server_whose_port_was_taken_is_started_at_another_port() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("authorities-taken");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("made");
    let program = folder.join("nsd");
    // It ends at each start: at the first two for its port. `-d` is not there when it is asked for its version.
    let script = "#!/bin/sh\ncase \"$*\" in *-d*) ;; *) exit 0 ;; esac\necho >>\"$0.starts\"\n\
                  if [ \"$(wc -l <\"$0.starts\")\" -lt 3 ]; then echo \"can't bind udp socket: Address already in use\"; else echo gone; fi\n\
                  exit 1\n";
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (given, out) = (format!("nsd={}", program.display()), folder.join("out"));
    let output = lab(&[
        "authorities",
        "--quick",
        "--device",
        "nsd",
        "--program",
        &given,
        "--out",
        out.to_str().expect("text"),
    ]);
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let starts = std::fs::read_to_string(folder.join("nsd.starts")).expect("it was started");
    assert_eq!(starts.lines().count(), 3, "{said}");
    assert!(said.contains("its port was taken before it had it: it is started at another one"), "{said}");
}
