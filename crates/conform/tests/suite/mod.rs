//! Plays a file of cases against our server, beside the list of those that fail for known reasons.
//!
//! The server is the binary that `SIXFOLD_BIN` names; without it, the one of this workspace, built if need be in the
//! profile of this test. Cases with client addresses of their own run in a network namespace, which takes root;
//! without it they are skipped.
//!
//! `CONFORM_ONLY=TEXT` plays only the cases whose id contains the text, and prints those that pass too.
//! `CONFORM_JSON=FILE` writes the results there.

use sixfold_conform::case::Case;
use sixfold_conform::known_failures::{KnownFailures, ResultStatus};
use sixfold_conform::namespace::{self, Entry};
use sixfold_conform::{Program, Runner, Summary, report, run};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the binary; a relative path is one in the workspace.
const SERVER: &str = "SIXFOLD_BIN";

/// A suite: where its files are, and which test plays it.
pub struct Suite<'a> {
    /// The cases, from the workspace on.
    pub cases: &'a str,
    /// Those that fail for known reasons.
    pub known_failures: &'a str,
    /// The name of the test, which is started once more inside the namespace.
    pub test: &'a str,
}

impl Suite<'_> {
    /// Plays every case; a case that fails and is not for known_failures fails the test.
    pub fn play(&self) {
        let cases = Case::read_all(&read(self.cases)).unwrap();
        let known_failures = KnownFailures::read(&read(self.known_failures)).unwrap();
        for id in known_failures.ids() {
            assert!(
                cases.iter().any(|case| case.id == id),
                "{} names {id}, which is no case",
                self.known_failures
            );
        }
        // Before the namespace, in which cargo would have no network.
        let server = server();
        let clients = run::foreign_clients(&cases);
        let arguments = ["--exact", self.test, "--nocapture"];
        let entry = namespace::enter(&clients, &arguments, &[(SERVER, server.as_os_str())]);
        if let Entry::Done(status) = entry {
            assert!(status.success(), "the cases in the namespace: {status}");
            return;
        }
        let runner = Runner::new(Program::sixfold(&server), NonZeroUsize::new(4).unwrap());
        let runner = match entry {
            Entry::Unavailable(reason) => {
                // Past the test runner, which keeps what passing tests print to itself.
                let _ = writeln!(
                    std::io::stderr(),
                    "\nskipped: cases with clients at foreign addresses: {reason}"
                );
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
        println!("{}", Summary::of(&results));
        if let Some(file) = std::env::var_os("CONFORM_JSON") {
            std::fs::write(file, report::json(&results)).unwrap();
        }
        let bad =
            results.iter().filter(|played| matches!(known_failures.status(played), ResultStatus::Fault(_)));
        let bad: Vec<&str> = bad.map(|played| played.id.as_str()).collect();
        assert!(bad.is_empty(), "{} cases are faults: {}", bad.len(), bad.join(", "));
    }
}

/// A file of the workspace.
pub fn read(name: &str) -> String {
    let file = workspace().join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn workspace() -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    directory.expect("this package lies two folders below the workspace").to_owned()
}

/// The binary. An old one would be worse than none, so cargo is asked to build it: if it is new, that is no work.
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
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("cargo can be started");
    assert!(status.success(), "the server cannot be built: {status}");
    profile.join("sixfold")
}
