//! `sixfold-bench run` as a user starts it: whole runs at rates that every machine bears, so that nothing here depends on
//! how fast it is. What a machine that stalls may change (a trial that fails) changes no expectation.

use measure::procedure::{Event, Procedure};
use measure::run::{Purpose, Run};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any of these runs takes, even beside a full build.
const PATIENCE: Duration = Duration::from_secs(240);

/// Short trials at low rates.
const PLAN: &str = "profile = \"quick\"\n\
    [trial]\nduration = \"200ms\"\ntimeout = \"1s\"\npause = \"10ms\"\n\
    [search]\nrepetitions = 2\nstart = 50\nmax = 200\nprecision = 0.2\ncurve = [0.5]\n\
    [correctness]\nnames = 40\n";

/// The device that most of them measure.
const SIXFOLD: &str = "[device]\ntemplate = \"sixfold\"\n";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sixfold-bench-run-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn plan(&self, text: &str) -> String {
        let path = self.0.join("plan.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    fn run(&self) -> Run {
        serde_json::from_str(&fs::read_to_string(self.out().join("run.json")).unwrap()).unwrap()
    }

    /// The lines of the journal.
    fn events(&self) -> Vec<String> {
        let text = fs::read_to_string(self.out().join("events.jsonl")).unwrap_or_default();
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A child that does not outlive the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guard {
    /// Waits until so many events are written, or the run has ended.
    fn wait_for_events(&mut self, folder: &Folder, count: usize) {
        let began = Instant::now();
        while folder.events().len() < count && self.0.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "a trial takes a second or two");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sixfold-bench"));
    command.arg("run").args(arguments).stdin(Stdio::null());
    command
}

fn finish(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// The `sixfold` binary is built with the workspace; `cargo test -p sixfold-bench` alone does not build it.
fn no_sixfold() -> bool {
    let there = Path::new(env!("CARGO_BIN_EXE_sixfold-bench")).with_file_name("sixfold").is_file();
    if !there {
        println!("skipped: the sixfold binary is not built (cargo build -p sixfold)");
    }
    !there
}

/// What must hold of every record, whatever was measured.
fn check(run: &Run) {
    assert_eq!(run.schema, measure::run::SCHEMA);
    let mut asked = BTreeSet::new();
    for (number, trial) in run.trials.iter().enumerate() {
        assert_eq!(trial.number as usize, number);
        let outcome = &trial.outcome;
        assert_eq!(
            outcome.sent,
            outcome.valid + outcome.invalid_total() + outcome.late + outcome.lost,
            "{outcome:?}"
        );
        // 200 ms at this rate, one query more or less.
        let planned = trial.rate_qps * 0.2;
        assert!((outcome.sent as f64 - planned).abs() <= 1.0, "{} of {planned}", outcome.sent);
        assert_eq!(trial.device.is_some(), trial.purpose != Purpose::SelfTest);
        assert!(!trial.authority.is_empty());
        // The names of the self-test never come to the device.
        let at_device = trial.purpose != Purpose::SelfTest;
        for name in trial.first_name..trial.first_name + outcome.names_used * u64::from(at_device) {
            assert!(asked.insert(name), "name {name} was asked twice");
        }
    }
}

#[test]
fn a_run_ends_with_a_bundle_and_a_report() {
    if no_sixfold() {
        return;
    }
    let folder = Folder::new("whole");
    let plan = folder.plan(&format!("{PLAN}{SIXFOLD}"));
    let out = folder.out().display().to_string();
    let output = finish(&["--plan", &plan, "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("NOT compliant") && said.contains("40 of 40 answers are right"), "{said}");
    assert!(text(&output.stdout).contains("RFC 8219 compliant: no"), "{}", text(&output.stdout));
    let run = folder.run();
    check(&run);
    assert!(run.complete && run.results.len() == 1 && run.results[0].strict.len() == 2, "{:?}", run.results);
    assert!(run.self_test.as_ref().unwrap().sufficient);
    assert_eq!(run.correctness.as_ref().unwrap().valid, 40);
    assert_eq!(run.trials.iter().filter(|trial| trial.purpose == Purpose::Curve).count(), 1);
    assert!(run.device.files.values().any(|file| file.contains("2001:2:0:64::/96")), "{:?}", run.device);
    assert!(run.hosts.contains_key("tester") && run.hosts.contains_key("device"));
    for file in ["report.html", "trials.csv", "events.jsonl", "plan.json"] {
        assert!(folder.out().join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let again = finish(&["--plan", &plan, "--out", &out]);
    assert!(!again.status.success() && text(&again.stderr).contains("--resume"), "{}", text(&again.stderr));
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    if no_sixfold() {
        return;
    }
    let folder = Folder::new("killed");
    let plan = folder.plan(&format!("{PLAN}{SIXFOLD}"));
    let out = folder.out().display().to_string();
    // Killed twice: in the self-test or soon after it, and once more later.
    let mut kept = Vec::new();
    for begin in [true, false] {
        let arguments: &[&str] =
            if begin { &["--plan", &plan, "--out", &out] } else { &["--resume", "--out", &out] };
        let mut child = Guard(command(arguments).stderr(Stdio::null()).spawn().unwrap());
        child.wait_for_events(&folder, kept.len() + 3);
        // SIGKILL.
        let _ = child.0.kill();
        child.0.wait().unwrap();
        let events = folder.events();
        assert!(events.starts_with(&kept), "what was done is not done again");
        kept = events;
    }
    assert!(kept.len() >= 3);
    let output = finish(&["--resume", "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = folder.run();
    check(&run);
    assert!(run.complete);
    let events = folder.events();
    assert!(events.starts_with(&kept), "what was done is not done again");
    // The journal alone gives the same results.
    let beginning = fs::read_to_string(folder.out().join("plan.json")).unwrap();
    let beginning: serde_json::Value = serde_json::from_str(&beginning).unwrap();
    let mut replayed = Procedure::new(serde_json::from_value(beginning["plan"].clone()).unwrap());
    for line in &events {
        replayed.record(serde_json::from_str::<Event>(line).unwrap()).unwrap();
    }
    assert_eq!(replayed.results(), run.results);
}

#[test]
fn an_interrupted_run_leaves_what_it_has_and_says_how_to_go_on() {
    if no_sixfold() {
        return;
    }
    let folder = Folder::new("interrupted");
    let plan = folder.plan(&format!("{PLAN}{SIXFOLD}").replace("200ms", "2s"));
    let out = folder.out().display().to_string();
    let mut child = Guard(command(&["--plan", &plan, "--out", &out]).stderr(Stdio::piped()).spawn().unwrap());
    // The check and a trial.
    child.wait_for_events(&folder, 2);
    let interrupted = Command::new("kill").args(["-INT", &child.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let status = child.0.wait().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.0.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("--resume"), "{said}");
    let run = folder.run();
    assert!(!run.complete && !run.trials.is_empty());
    assert!(folder.out().join("report.html").is_file());
}

#[test]
fn a_device_that_does_no_dns64_is_not_timed() {
    let folder = Folder::new("wrong");
    let bench = env!("CARGO_BIN_EXE_sixfold-bench");
    // An authority in the place of the device: it answers, but synthesizes nothing.
    let device = format!("{bench} authority --listen [{{listen_address}}]:{{listen_port}}");
    let plan = folder.plan(PLAN);
    let output =
        finish(&["--plan", &plan, "--command", &device, "--out", &folder.out().display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no right answers"), "{said}");
}

#[test]
fn a_device_that_does_not_start_gives_its_last_words() {
    let folder = Folder::new("absent");
    let plan = folder.plan(PLAN);
    let out = folder.out().display().to_string();
    let output = finish(&["--plan", &plan, "--command", "ls /nothing-of-that-name", "--out", &out]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing-of-that-name"), "{said}");
}

#[test]
fn wrong_usage_is_told_with_the_remedy() {
    let folder = Folder::new("usage");
    let out = folder.out().display().to_string();
    for (arguments, word) in [
        (vec!["--out", &out], "--device"),
        (vec!["--device", "bnid", "--out", &out], "unbound"),
        (vec!["--device", "unbound", "--profile", "fast", "--out", &out], "quick"),
        (vec!["--resume", "--out", &out], "without --resume"),
        (vec!["--plan", "/nothing.toml", "--out", &out, "--device", "unbound"], "/nothing.toml"),
    ] {
        let output = finish(&arguments);
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(word), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_eq!(finish(&["--device", "unbound"]).status.code(), Some(2), "--out is missing");
}

#[test]
fn the_rfc_8219_profile_prints_its_estimate() {
    let folder = Folder::new("estimate");
    let out = folder.out().display().to_string();
    let output = finish(&["--device", "unbound", "--estimate", "--out", &out]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains(" h "), "{}", text(&output.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["trial"]["duration"], "60000ms");
    assert_eq!(plan["search"]["repetitions"], 20);
    assert!(!folder.out().exists(), "an estimate begins nothing");
}
