//! Plays a file of cases against Sixfold, and compares the results with the list of known failures.
//!
//! The server is the binary that `SIXFOLD_BIN` names; without it, the one of this workspace, built if needed in the
//! profile of this test. Cases with client addresses that the machine lacks run in a network namespace, which needs
//! root; without root they are skipped.
//!
//! `CONFORM_ONLY=TEXT` plays only the cases whose ID contains the text, and also prints those that pass.
//! `CONFORM_JSON=FILE` writes the results to a file.

use sixfold_conform::case::Case;
use sixfold_conform::known_failures::{KnownFailures, ResultStatus};
use sixfold_conform::namespace::{self, Entry};
use sixfold_conform::{Outcome, Program, Runner, run};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable with the path of the binary; a relative path is relative to the workspace.
const SERVER: &str = "SIXFOLD_BIN";

/// Suite: its files, and the test that plays it.
pub struct Suite<'a> {
    /// File of cases, relative to the workspace.
    pub cases: &'a str,
    /// List of known failures, relative to the workspace.
    pub known_failures: &'a str,
    /// Name of the test with its module, which is started once more inside the namespace.
    pub test: &'a str,
}

impl Suite<'_> {
    /// Plays every case. A case that fails and is no known failure fails the test.
    pub fn play(&self) {
        let cases = Case::read_all(&read(self.cases)).unwrap();
        let known_failures = KnownFailures::read(&read(self.known_failures)).unwrap();
        for id in known_failures.ids() {
            assert!(
                cases.iter().any(|case| case.id == id),
                "{} names {id}, which is not a case",
                self.known_failures
            );
        }
        // Before the namespace, in which cargo would have no network.
        let server = server();
        let clients = run::foreign_clients(&cases);
        let this = std::env::current_exe().unwrap();
        let list = Command::new(this).args(["--list", "--exact", self.test]).output().unwrap();
        assert!(String::from_utf8_lossy(&list.stdout).contains("1 test,"), "there is no test {}", self.test);
        let arguments = ["--exact", self.test, "--nocapture"];
        let entry = namespace::enter(&clients, &arguments, &[(SERVER, server.as_os_str())]);
        if let Entry::Done(status) = entry {
            assert!(status.success(), "the cases in the namespace: {status}");
            return;
        }
        let runner = Runner::new(Program::sixfold(&server), NonZeroUsize::new(4).unwrap());
        let runner = match entry {
            Entry::Unavailable(reason) => {
                kit::skip(&format!("cases with clients at foreign addresses: {reason}"));
                runner.without_namespace(reason)
            }
            _ => runner.inside_namespace(),
        };
        let only = std::env::var("CONFORM_ONLY").ok();
        let wanted = |case: &Case| only.as_ref().is_none_or(|text| case.id.contains(text));
        let cases: Vec<Case> = cases.into_iter().filter(wanted).collect();
        let results = runner.run(&cases, |played| match known_failures.status(played) {
            ResultStatus::Good if only.is_none() => {}
            ResultStatus::Good => println!("{played}"),
            ResultStatus::Tolerated(reason) => {
                println!("known   {} [{}]: {reason}", played.id, played.category)
            }
            ResultStatus::Fault(reason) => {
                println!("FAULT   {} [{}, {}]: {reason}", played.id, played.category, played.level)
            }
        });
        let count = |is_so: fn(&Outcome) -> bool| results.iter().filter(|it| is_so(&it.outcome)).count();
        let (passed, skipped) =
            (count(|it| matches!(it, Outcome::Passed)), count(|it| matches!(it, Outcome::Skipped { .. })));
        println!("{} cases, {passed} passed, {skipped} skipped", results.len());
        if let Some(file) = std::env::var_os("CONFORM_JSON") {
            std::fs::write(file, serde_json::to_string_pretty(&results).unwrap()).unwrap();
        }
        let bad =
            results.iter().filter(|played| matches!(known_failures.status(played), ResultStatus::Fault(_)));
        let bad: Vec<&str> = bad.map(|played| played.id.as_str()).collect();
        assert!(bad.is_empty(), "{} cases are faults: {}", bad.len(), bad.join(", "));
    }
}

/// Reads a file of the workspace.
pub fn read(name: &str) -> String {
    let file = workspace().join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn workspace() -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    directory.expect("this package lies two folders below the workspace").to_owned()
}

/// Path of the binary. An outdated one would be worse than none, so cargo builds it; if it is up to date, that is no
/// work.
fn server() -> PathBuf {
    if let Some(binary) = std::env::var_os(SERVER) {
        return workspace().join(binary);
    }
    // TARGET/PROFILE/deps/this-test
    let test = std::env::current_exe().unwrap();
    let profile =
        test.ancestors().nth(2).expect("a test lies in a folder of its target directory").to_owned();
    let target = profile.parent().expect("a profile lies in the target directory");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--package", "sixfold", "--target-dir"])
        .arg(target)
        .current_dir(workspace());
    if !profile.ends_with("debug") {
        build.arg("--profile").arg(profile.file_name().expect("the folder of a profile"));
    }
    let status = build.status().expect("cargo can be started");
    assert!(status.success(), "the server cannot be built: {status}");
    profile.join("sixfold")
}
