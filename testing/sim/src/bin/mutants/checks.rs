//! The programs that must find a bug: the simulator and tests.

use crate::switches::BUG;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Worlds for each bug, and client queries in each world: a million queries in all.
pub(crate) const SEEDS: u64 = 500;
pub(crate) const QUERIES: u64 = 2000;
/// Forged replies of each attacker.
pub(crate) const FORGED: u64 = 300_000;
/// Worlds of response policy zones.
pub(crate) const POLICY_WORLDS: u64 = 20_000;
/// Worlds of signed zones, and client queries in each world.
pub(crate) const KEYED_WORLDS: u64 = 1000;
pub(crate) const KEYED_QUERIES: u64 = 300;

/// Arguments of `cargo` that build the simulator.
const SIMULATOR: &str = "build --profile fuzz -p sixfold-sim --bin sixfold-sim";
/// Arguments of `cargo` that run the tests after the simulator.
const TESTS: &str =
    "test -p sixfold-engine -p sixfold-wire -p sixfold-pref64 -p sixfold-dnssec -p sixfold-signed-zones";
/// Time after which a program counts as hanging, which also finds the bug.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The result of checks that all pass.
pub(crate) const NOT_FOUND: &str = "NOT FOUND";

/// Checks of a copy of the workspace.
pub(crate) struct Checks {
    pub(crate) copy: PathBuf,
    /// The folder of its build results.
    pub(crate) target: PathBuf,
}

impl Checks {
    /// Builds and runs these tests with a bug; none: the simulator, then [`TESTS`]. Returns a line that names the first check that fails.
    pub(crate) fn run(&self, bug: usize, tests: Option<&str>) -> String {
        if tests.is_none() {
            if !self.build(SIMULATOR) {
                return "not run: it does not compile".to_owned();
            }
            if let Some(found) = self.run_simulator(bug) {
                return format!("simulator: {found}");
            }
        }
        let tests = tests.unwrap_or(TESTS);
        if !self.build(&format!("{tests} --no-run")) {
            return "not run: the tests do not compile".to_owned();
        }
        self.run_tests(bug, tests).map_or(NOT_FOUND.to_owned(), |found| format!("tests: {found}"))
    }

    /// A command of cargo in the copy, with arguments in one line.
    fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new("cargo");
        command.args(arguments.split(' ')).args(["--quiet", "--locked", "--offline"]);
        command.current_dir(&self.copy).stdin(Stdio::null());
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env("RUSTFLAGS", "--cap-lints allow");
        command
    }

    fn build(&self, arguments: &str) -> bool {
        let mut command = self.cargo(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Runs a command with a bug. Returns its success and its output; none: it took too long.
    fn output(&self, mut command: Command, bug: usize) -> Option<(bool, String)> {
        let output = self.target.join("output");
        let file = std::fs::File::create(&output).ok()?;
        command.env(BUG, bug.to_string()).stdout(file.try_clone().ok()?).stderr(file);
        let mut child = command.spawn().ok()?;
        let start = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                _ if start.elapsed() > TIMEOUT => {
                    // It may have ended by itself in the meantime.
                    let _ = child.kill();
                    let _ = child.wait();
                    return None;
                }
                _ => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        Some((status.success(), std::fs::read_to_string(output).unwrap_or_default()))
    }

    /// Runs the simulator's program with arguments in one line.
    fn simulate(&self, bug: usize, arguments: &str) -> Option<(bool, String)> {
        let mut command = Command::new(Path::join(&self.target, "fuzz/sixfold-sim"));
        command.args(arguments.split(' '));
        self.output(command, bug)
    }

    /// Runs the simulator. Returns the broken invariant and the seed that shows it.
    fn run_simulator(&self, bug: usize) -> Option<String> {
        let Some((is_well, output)) = self.simulate(bug, &format!("--seeds {SEEDS} --queries {QUERIES}"))
        else {
            return Some("does not end".to_owned());
        };
        if is_well {
            return self.run_spoofing(bug);
        }
        let failure = output.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(": "));
        match failure.and_then(|(seed, what)| Some((seed, what.split_once(": ")?.0))) {
            Some((seed, invariant)) => Some(format!("{invariant}, seed {seed}")),
            None => {
                let panic =
                    output.lines().find(|line| line.contains("panicked at")).unwrap_or("it ends early");
                let place = panic.rsplit("panicked at ").next().unwrap_or(panic).trim_end_matches(':');
                Some(format!("panic, {}", without_line(place)))
            }
        }
    }

    /// Runs the spoofing simulation. Returns the knowledge of the first attacker with a success.
    fn run_spoofing(&self, bug: usize) -> Option<String> {
        match self.simulate(bug, &format!("forge --replies {FORGED}")) {
            Some((true, _)) => self.run_policy_worlds(bug),
            Some((false, output)) => {
                let line = output.lines().find_map(|line| line.strip_prefix("spoofing: "));
                let (knows, _) = line.and_then(|line| line.split_once(": ")).unwrap_or(("it ends early", ""));
                Some(format!("spoofing, attacker knows: {knows}"))
            }
            None => Some("spoofing, does not end".to_owned()),
        }
    }

    /// Runs worlds of policy zones. Returns the seed of a difference from the model.
    fn run_policy_worlds(&self, bug: usize) -> Option<String> {
        match self.simulate(bug, &format!("policy --seeds {POLICY_WORLDS}")) {
            Some((true, _)) => self.run_keyed_worlds(bug),
            Some((false, output)) => {
                let seed = output.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(','));
                let seed = seed.map_or("unknown: it ends early", |(seed, _)| seed);
                Some(format!("policy worlds, seed {seed}"))
            }
            None => Some("policy worlds, do not end".to_owned()),
        }
    }

    /// Runs worlds of signed zones. Returns the broken invariant and the seed that shows it.
    fn run_keyed_worlds(&self, bug: usize) -> Option<String> {
        match self.simulate(bug, &format!("keys --seeds {KEYED_WORLDS} --queries {KEYED_QUERIES}")) {
            Some((true, _)) => None,
            Some((false, output)) => {
                let failure = output.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(": "));
                let shown = failure.and_then(|(seed, what)| Some((seed, what.split_once(": ")?.0)));
                Some(match shown {
                    Some((seed, invariant)) => format!("signed zones, {invariant}, seed {seed}"),
                    None => "signed zones, it ends early".to_owned(),
                })
            }
            None => Some("signed zones, do not end".to_owned()),
        }
    }

    /// Runs tests. Returns the first that fails.
    fn run_tests(&self, bug: usize, tests: &str) -> Option<String> {
        let mut command = self.cargo(tests);
        // Switches are in no layer.
        command.args(["--", "--skip", "layers::"]);
        let Some((is_well, output)) = self.output(command, bug) else {
            return Some("they do not end".to_owned());
        };
        if is_well {
            return None;
        }
        let name = |line: &str| Some(line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?.to_owned());
        Some(output.lines().find_map(name).unwrap_or_else(|| "one".to_owned()))
    }
}

/// A place in a source file without its line and column, which are those of the copy.
fn without_line(place: &str) -> &str {
    place.split_once(".rs:").map_or(place, |(path, _)| &place[..path.len() + 3])
}
