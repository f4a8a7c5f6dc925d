//! The test of the tests: plants the bugs of `testing/sim/mutants.txt` one at a time in a copy of the workspace, builds it, and
//! runs the simulator, then the engine's own tests; or the tests that the list names for a bug that the simulator cannot reach. Writes the
//! results to `docs/mutants.md`.
//!
//! `cargo run -p sixfold-sim --bin mutants -- [--folder DIR] [--only WORD,WORD] [--share N/M] [--resume] [--report]`
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Worlds for each bug, and client queries in each world: a million queries in all.
const SEEDS: u64 = 500;
const QUERIES: u64 = 2000;
/// Forged replies of each attacker.
const FORGED: u64 = 300_000;

/// Worlds of response policy zones.
const POLICY_WORLDS: u64 = 20_000;
/// Arguments of `cargo` that build the simulator.
const SIMULATOR: &str = "build -p sixfold-sim --bin sixfold-sim";
/// Arguments of `cargo` that run the tests after the simulator.
const TESTS: &str = "test -p sixfold-engine -p sixfold-wire -p sixfold-pref64";

/// Time after which a program counts as hanging, which also finds the bug.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A bug.
struct Mutant {
    name: String,
    /// Arguments of `cargo` for the tests that must fail. None: the simulator, then [`TESTS`].
    tests: Option<String>,
    /// Changes: a file or folder, the text that it contains once, and the replacement.
    places: Vec<(String, String, String)>,
}

/// The folders of a run.
struct Folders {
    root: PathBuf,
    copy: PathBuf,
    target: PathBuf,
    results: PathBuf,
}

fn main() -> ExitCode {
    match run_mutants(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_mutants(words: &[String]) -> Result<(), String> {
    let option =
        |name: &str| words.iter().position(|word| word == name).and_then(|place| words.get(place + 1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let folder =
        option("--folder").map_or_else(|| std::env::temp_dir().join("sixfold-mutants"), PathBuf::from);
    let (share, of) = match option("--share").and_then(|text| text.split_once('/')) {
        Some((share, of)) => (parse_number(share)?, parse_number(of)?.max(1)),
        None => (0, 1),
    };
    let folders = Folders {
        copy: folder.join(format!("copy-{share}")),
        target: folder.join(format!("target-{share}")),
        results: folder.join("results"),
        root,
    };
    let mutants = parse_list(&read_file(&folders.root.join("testing/sim/mutants.txt"))?)?;
    std::fs::create_dir_all(&folders.results)
        .map_err(|error| format!("{}: {error}", folders.results.display()))?;
    if !words.iter().any(|word| word == "--report") {
        copy(&folders)?;
        let is_wanted = |(place, mutant): &(usize, &Mutant)| {
            let is_done =
                words.iter().any(|word| word == "--resume") && folders.results.join(&mutant.name).exists();
            place % of == share
                && !is_done
                && option("--only")
                    .is_none_or(|words| words.split(',').any(|word| mutant.name.contains(word)))
        };
        let wanted: Vec<&Mutant> =
            mutants.iter().enumerate().filter(is_wanted).map(|(_, mutant)| mutant).collect();
        let checks: BTreeSet<_> = wanted.iter().map(|mutant| mutant.tests.as_deref()).collect();
        for tests in checks {
            let found = run_checks(&folders, tests);
            if found != NOT_FOUND {
                return Err(format!("without a mutant: {found}; mend that first"));
            }
        }
        for mutant in wanted {
            let found = plant(&folders, mutant)?;
            println!("{}: {found}", mutant.name);
            write(&folders.results.join(&mutant.name), &found)?;
        }
    }
    report(&folders, &mutants)
}

fn parse_number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number; write --share 0/2"))
}

fn read_file(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Parses the list of bugs.
fn parse_list(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = vec![];
    for (line, number) in text.lines().zip(1..) {
        let wrong = || format!("mutants.txt: line {number}: {line:?} is out of place");
        let mutant = mutants.last_mut();
        match line.split_at_checked(2) {
            _ if line.is_empty() || line.starts_with('#') => {}
            Some(("@ ", file)) => {
                mutant.ok_or_else(wrong)?.places.push((file.to_owned(), String::new(), String::new()));
            }
            Some(("- ", old)) => {
                mutant.and_then(|mutant| mutant.places.last_mut()).ok_or_else(wrong)?.1 = old.to_owned();
            }
            Some(("+ ", new)) => {
                mutant.and_then(|mutant| mutant.places.last_mut()).ok_or_else(wrong)?.2 = new.to_owned();
            }
            Some(("$ ", command)) => {
                let tests = command.strip_prefix("cargo ").filter(|words| words.starts_with("test "));
                mutant.ok_or_else(wrong)?.tests = Some(tests.ok_or_else(wrong)?.to_owned());
            }
            _ => {
                let (name, _) = line.split_once(": ").ok_or_else(wrong)?;
                mutants.push(Mutant { name: name.to_owned(), tests: None, places: vec![] });
            }
        }
    }
    Ok(mutants)
}

/// Copies the workspace without its build results.
fn copy(folders: &Folders) -> Result<(), String> {
    std::fs::create_dir_all(&folders.copy).map_err(|error| format!("{}: {error}", folders.copy.display()))?;
    let entries =
        std::fs::read_dir(&folders.root).map_err(|error| format!("{}: {error}", folders.root.display()))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let is_source = |name: &std::ffi::OsString| !name.to_string_lossy().starts_with('.') && name != "target";
    let mut command = Command::new("cp");
    command.arg("-r").args(names.filter(is_source)).arg(&folders.copy);
    match command.current_dir(&folders.root).status() {
        Ok(status) if status.success() => Ok(()),
        outcome => Err(format!("cp to {}: {outcome:?}", folders.copy.display())),
    }
}

/// The source files at or below `place`, with their texts.
fn sources(place: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    if place.is_file() {
        return Ok(vec![(place.to_owned(), read_file(place)?)]);
    }
    let entries = std::fs::read_dir(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut files = vec![];
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            files.extend(sources(&path)?);
        }
    }
    Ok(files)
}

/// The one file at or below `place` that contains `old` exactly once, and its text. `old` must be in no other file there.
fn find(root: &Path, place: &str, old: &str) -> Result<(PathBuf, String), String> {
    let mut found = sources(&root.join(place))?;
    let count: usize = found.iter().map(|(_, text)| text.matches(old).count()).sum();
    found.retain(|(_, text)| text.contains(old));
    match found.pop() {
        Some(file) if count == 1 => Ok(file),
        _ => Err(format!("{old:?} is {count} times in {place}")),
    }
}

/// Plants a bug, runs the checks, and takes the bug out. Returns a line that names the check that found it.
fn plant(folders: &Folders, mutant: &Mutant) -> Result<String, String> {
    let mut found = None;
    // The texts to restore are those of the copy, which does not change with the original.
    let mut sound = vec![];
    for (place, old, new) in &mutant.places {
        match find(&folders.copy, place, old) {
            Ok((path, before)) => {
                write(&path, &before.replace(old.as_str(), new))?;
                sound.push((path, before));
            }
            Err(error) => found = Some(format!("not run: {error}")),
        }
    }
    let found = found.unwrap_or_else(|| run_checks(folders, mutant.tests.as_deref()));
    for (path, before) in sound.iter().rev() {
        write(path, before)?;
    }
    Ok(found)
}

/// The result of checks that all pass.
const NOT_FOUND: &str = "NOT FOUND";

/// Builds and runs these tests; none: the simulator, then [`TESTS`]. Returns a line that names the first check that fails.
fn run_checks(folders: &Folders, tests: Option<&str>) -> String {
    if tests.is_none() {
        if !build(folders, SIMULATOR) {
            return "not run: it does not compile".to_owned();
        }
        if let Some(found) = run_simulator(folders) {
            return format!("simulator: {found}");
        }
    }
    let tests = tests.unwrap_or(TESTS);
    if !build(folders, &format!("{tests} --no-run")) {
        return "not run: the tests do not compile".to_owned();
    }
    run_tests(folders, tests).map_or(NOT_FOUND.to_owned(), |found| format!("tests: {found}"))
}

/// A command of cargo in the copy, with arguments in one line.
fn cargo(folders: &Folders, arguments: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments.split(' ')).args(["--quiet", "--locked", "--offline"]).current_dir(&folders.copy);
    command.env("CARGO_TARGET_DIR", &folders.target).env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.env("RUSTFLAGS", "--cap-lints allow");
    command.stdin(Stdio::null());
    command
}

fn build(folders: &Folders, arguments: &str) -> bool {
    cargo(folders, arguments)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command; none: it took too long.
fn run_command(mut command: Command, output: &Path) -> Option<(bool, String)> {
    let file = std::fs::File::create(output).ok()?;
    command.stdout(file.try_clone().ok()?).stderr(file);
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

/// Runs the simulator. Returns the broken invariant and the seed that shows it.
fn run_simulator(folders: &Folders) -> Option<String> {
    let mut command = Command::new(folders.target.join("debug/sixfold-sim"));
    command.args(["--seeds", &SEEDS.to_string(), "--queries", &QUERIES.to_string()]);
    let (is_well, output) = match run_command(command, &folders.target.join("output")) {
        Some(outcome) => outcome,
        None => return Some("does not end".to_owned()),
    };
    if is_well {
        return run_spoofing(folders);
    }
    let failure = output.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(": "));
    match failure.and_then(|(seed, what)| Some((seed, what.split_once(": ")?.0))) {
        Some((seed, invariant)) => Some(format!("{invariant}, seed {seed}")),
        None => {
            let panic = output.lines().find(|line| line.contains("panicked at")).unwrap_or("it ends early");
            Some(format!(
                "panic, {}",
                panic.rsplit("panicked at ").next().unwrap_or(panic).trim_end_matches(':')
            ))
        }
    }
}

/// Runs the spoofing simulation. Returns the knowledge of the first attacker with a success.
fn run_spoofing(folders: &Folders) -> Option<String> {
    let mut command = Command::new(folders.target.join("debug/sixfold-sim"));
    command.args(["forge", "--replies", &FORGED.to_string()]);
    match run_command(command, &folders.target.join("output")) {
        Some((true, _)) => run_policy_worlds(folders),
        Some((false, output)) => {
            let line = output.lines().find_map(|line| line.strip_prefix("spoofing: "));
            let (knows, _) = line.and_then(|line| line.split_once(": ")).unwrap_or(("it ends early", ""));
            Some(format!("spoofing, attacker knows: {knows}"))
        }
        None => Some("spoofing, does not end".to_owned()),
    }
}

/// Runs worlds of policy zones. Returns the seed of a difference from the model.
fn run_policy_worlds(folders: &Folders) -> Option<String> {
    let mut command = Command::new(folders.target.join("debug/sixfold-sim"));
    command.args(["policy", "--seeds", &POLICY_WORLDS.to_string()]);
    match run_command(command, &folders.target.join("output")) {
        Some((true, _)) => None,
        Some((false, output)) => {
            let seed = output.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(','));
            Some(format!("policy worlds, seed {}", seed.map_or("unknown: it ends early", |(seed, _)| seed)))
        }
        None => Some("policy worlds, do not end".to_owned()),
    }
}

/// Runs tests. Returns the first that fails.
fn run_tests(folders: &Folders, tests: &str) -> Option<String> {
    let command = cargo(folders, &format!("{tests} --no-fail-fast"));
    let (is_well, output) = match run_command(command, &folders.target.join("output")) {
        Some(outcome) => outcome,
        None => return Some("they do not end".to_owned()),
    };
    if is_well {
        return None;
    }
    let name = |line: &str| Some(line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?.to_owned());
    Some(output.lines().find_map(name).unwrap_or_else(|| "one".to_owned()))
}

/// Writes the list of bugs with the results.
fn report(folders: &Folders, mutants: &[Mutant]) -> Result<(), String> {
    let results: Vec<String> = mutants
        .iter()
        .map(|mutant| {
            std::fs::read_to_string(folders.results.join(&mutant.name)).unwrap_or("not run".to_owned())
        })
        .collect();
    let count = |start: &str| results.iter().filter(|result| result.starts_with(start)).count();
    let mut page = format!(
        "# Mutants\n\n\
         `cargo run -p sixfold-sim --bin mutants` plants each of these bugs in a copy of the workspace and builds it in the development profile.\n\
         `testing/sim/mutants.txt` says what is wrong with each, and where. The program runs {SEEDS} worlds of {QUERIES} client queries, up to the first\n\
         broken invariant ([the simulator](simulation.md#what-is-checked)), then spoofing with {FORGED} forged replies of each attacker, then {POLICY_WORLDS} worlds of policy\n\
         zones. If they find nothing, it runs the tests of the engine, `wire` and `pref64`. For a bug out of the simulator's reach, as in the overload\n\
         controller, the list names tests, which run instead. The program writes this page.\n\n\
         Of {} bugs the simulator found {} and the tests {} more; {} were found by neither, and {} were not run.\n\n\
         | bug | found by |\n| --- | --- |\n",
        mutants.len(),
        count("simulator"),
        count("tests"),
        count("NOT FOUND"),
        count("not run"),
    );
    for (mutant, result) in mutants.iter().zip(&results) {
        let _ = writeln!(page, "| {} | {} |", mutant.name, result.replace('|', "\\|"));
    }
    write(&folders.root.join("docs/mutants.md"), &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_may_name_the_tests_that_find_it_and_nothing_but_tests() {
        let entry = |command| format!("much: too much\n$ {command}\n@ server\n- 1\n+ 2\n");
        let mutants = parse_list(&entry("cargo test -p sixfold-datapath --lib overload")).unwrap();
        assert_eq!(mutants[0].tests.as_deref(), Some("test -p sixfold-datapath --lib overload"));
        for command in ["cargo build", "rm -r /"] {
            assert!(parse_list(&entry(command)).is_err_and(|error| error.contains("line 2")), "{command}");
        }
    }

    #[test]
    fn the_text_of_every_mutant_stands_once_where_it_is_looked_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutants = parse_list(&read_file(&root.join("testing/sim/mutants.txt")).unwrap()).unwrap();
        assert!(mutants.len() >= 114, "{} bugs", mutants.len());
        let errors: Vec<String> = mutants
            .iter()
            .flat_map(|mutant| &mutant.places)
            .filter_map(|(place, old, _)| find(&root, place, old).err())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
