//! The runner against a minimal server: this test itself, started once more as a process. It forwards UDP queries
//! unchanged, so that cases without synthesis pass and others fail in the expected way.

use sixfold_conform::case::Case;
use sixfold_conform::{Outcome, Program, Runner};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Environment variable with the configuration file, for the process that plays the server.
const CONFIG: &str = "SIXFOLD_CONFORM_FORWARDER";

/// A case with one step: a query for an A record, and its answer.
fn case(extra: &str, expect: &str) -> Case {
    Case::read(&format!(
        r#"{{"id": "forwarded", "category": "message", "rfc": "none", "source": "here", "level": "MUST", "config": {{}},
            "query": {{"name": "a.", "type": "A"}}, "timeout_ms": 2000,
            "upstream": [{{"name": "a.", "type": "A", "answers": ["a. 300 IN A 192.0.2.1"]}}],
            "expect": {expect}{extra}, "notes": ""}}"#
    ))
    .unwrap()
}

fn play(cases: &[Case], mode: &str) -> Vec<Outcome> {
    let this = std::env::current_exe().unwrap();
    let command = format!(
        "env {CONFIG}={{config}} MODE={mode} {} --exact process::server_process --nocapture",
        this.display()
    );
    let runner = Runner::new(Program::with_ready_line(&command).unwrap(), NonZeroUsize::new(2).unwrap());
    runner.run(cases, |_| {}).into_iter().map(|played| played.outcome).collect()
}

/// The only difference of the only case.
fn difference(case: Case, mode: &str) -> String {
    let outcomes = play(&[case], mode);
    let [Outcome::Failed { differences }] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert_eq!(differences.len(), 1, "{differences:?}");
    differences[0].clone()
}

#[test]
fn questions_go_through_the_server_to_the_upstream_and_back() {
    let held = r#"{"rcode": "NOERROR", "answer": ["a. 300 IN A 192.0.2.1"], "upstream_queries": ["A"]}"#;
    let failed = r#"{"answer": ["a. 300 IN A 192.0.2.2"]}"#;
    let second = r#", "steps": [{"query": {"name": "b.", "type": "A"}, "expect": {"rcode": "NXDOMAIN"}}]"#;
    let mut other = case("", failed);
    other.id = "not-forwarded".to_owned();
    let outcomes = play(&[case(second, held), other], "good");
    assert_eq!(outcomes[0], Outcome::Passed);
    let differences = [
        "answer: missing: a. 300 IN A 192.0.2.2".to_owned(),
        "answer: not expected: a. 300 IN A 192.0.2.1".to_owned(),
    ];
    assert_eq!(outcomes[1], Outcome::Failed { differences: differences.to_vec() });
}

#[test]
fn a_server_that_does_not_start_is_reported_with_its_last_words() {
    let difference = difference(case("", "{}"), "refuses");
    assert!(
        difference.contains("the server ended") && difference.contains("this mode is not liked"),
        "{difference}"
    );
}

#[test]
fn a_server_that_dies_on_a_signal_is_reported() {
    // The process has no handler for SIGHUP. A parent like nohup has it ignored here, and in the process too.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    if u64::from_str_radix(ignored, 16).unwrap() & 1 != 0 {
        return kit::skip("SIGHUP is ignored; start the tests without nohup");
    }
    let reload = r#", "steps": [{"action": "reload", "config": {}}]"#;
    let outcomes = play(&[case(reload, "{}")], "good");
    let [Outcome::Failed { differences }] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert!(differences[0].starts_with("step 2: no answer"), "{differences:?}");
    assert!(differences[1].contains("the server ended (signal: 1"), "{differences:?}");
}

#[test]
fn a_question_is_repeated_until_the_expectation_holds() {
    let rules = r#"[{"name": "a.", "type": "A", "times": 2, "rcode": "SERVFAIL"},
                    {"name": "a.", "type": "A", "answers": ["a. 300 IN A 192.0.2.1"]}]"#;
    let step = |retry: u32| format!(r#", "steps": [{{"upstream": {rules}, "retry_ms": {retry}}}]"#);
    assert_eq!(play(&[case(&step(10_000), r#"{"rcode": "NOERROR"}"#)], "good"), [Outcome::Passed]);
    let difference = difference(case(&step(0), r#"{"rcode": "NOERROR"}"#), "good");
    assert_eq!(difference, "step 2: RCODE: SERVFAIL, expected NOERROR");
}

#[test]
fn checks_and_foreign_clients_are_skipped_where_they_are_impossible() {
    let check = r#"{"id": "c", "category": "configuration", "kind": "check", "rfc": "none", "source": "here",
                    "level": "MUST", "config": {}, "expect": {"exit": 0}, "notes": ""}"#;
    let foreign = r#"{"id": "f", "category": "clients", "rfc": "none", "source": "here", "level": "MUST", "config": {},
                      "query": {"name": "a.", "type": "A", "client": "2001:db8::1"}, "expect": {}, "notes": ""}"#;
    let outcomes = play(&[Case::read(check).unwrap(), Case::read(foreign).unwrap()], "good");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Skipped { .. })), "{outcomes:?}");
}

/// Not a test: the process that the other tests start.
#[test]
fn server_process() {
    let Some(file) = std::env::var_os(CONFIG) else { return };
    let text = std::fs::read_to_string(file).unwrap();
    if std::env::var("MODE").unwrap() == "refuses" {
        eprintln!("this mode is not liked");
        std::process::exit(1);
    }
    let quoted = |beginning: &str| -> Vec<SocketAddr> {
        let lines = text.lines().filter(|line| line.starts_with(beginning));
        lines.flat_map(|line| line.split('"')).filter_map(|word| word.parse().ok()).collect()
    };
    let upstream = quoted("forwarders")[0];
    let server = quoted("listen").into_iter().find(SocketAddr::is_ipv6).unwrap();
    let questions = kit::client::udp(Ipv4Addr::LOCALHOST.into(), upstream);
    let server = kit::Upstream::start_at(server, move |asked, replies| {
        questions.send(asked.message).unwrap();
        if let Some(reply) = kit::client::receive(&questions, Duration::from_secs(1)) {
            replies.now(reply);
        }
    });
    eprintln!("some line\nsixfold: ready");
    server.join();
}
