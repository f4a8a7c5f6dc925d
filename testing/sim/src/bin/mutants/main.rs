//! The test of the tests: plants the bugs of `testing/sim/mutants.txt` in a copy of the workspace and runs the simulator, then the engine's
//! own tests; or the tests that the list names for a bug that the simulator cannot reach. Writes the results to `docs/mutants.md`.
//!
//! One build has all bugs behind switches ([`switches`]). A bug that cannot have a switch has a build of its own.
//!
//! `cargo run -p sixfold-sim --bin mutants -- [--folder DIR] [--only WORD,WORD] [--resume]`
#![forbid(unsafe_code)]

mod checks;
mod list;
mod switches;

use checks::{Checks, FORGED, KEYED_QUERIES, KEYED_WORLDS, NOT_FOUND, POLICY_WORLDS, QUERIES, SEEDS};
use list::{Mutant, find, parse_list, read_file, write_file};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

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
    let results = folder.join("results");
    std::fs::create_dir_all(&results).map_err(|error| format!("{}: {error}", results.display()))?;
    let mutants = parse_list(&read_file(&root.join("testing/sim/mutants.txt"))?)?;
    let is_wanted = |mutant: &&Mutant| {
        let is_done = words.iter().any(|word| word == "--resume") && results.join(&mutant.name).exists();
        !is_done
            && option("--only").is_none_or(|words| words.split(',').any(|word| mutant.name.contains(word)))
    };
    let wanted: Vec<&Mutant> = mutants.iter().filter(is_wanted).collect();
    let checks = Checks { copy: folder.join("copy"), target: folder.join("target") };
    let tell = |mutant: &Mutant, found: &str| {
        println!("{}: {found}", mutant.name);
        write_file(&results.join(&mutant.name), found)
    };
    copy(&root, &checks.copy)?;
    let alone = switches::plant_all(&checks.copy, &wanted)?;
    for tests in wanted.iter().map(|mutant| mutant.tests.as_deref()).collect::<BTreeSet<_>>() {
        let found = checks.run(0, tests);
        if found != NOT_FOUND {
            return Err(format!("without a mutant, in {}: {found}; mend that first", checks.copy.display()));
        }
    }
    for (mutant, number) in wanted.iter().zip(1..) {
        if !alone.iter().any(|other| other.name == mutant.name) {
            tell(mutant, &checks.run(number, mutant.tests.as_deref()))?;
        }
    }
    for mutant in alone {
        tell(mutant, &plant(&checks, mutant)?)?;
    }
    report(&root, &results, &mutants)
}

/// Copies the workspace without its build results.
fn copy(root: &Path, copy: &Path) -> Result<(), String> {
    std::fs::create_dir_all(copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let entries = std::fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let is_source = |name: &std::ffi::OsString| !name.to_string_lossy().starts_with('.') && name != "target";
    let mut command = Command::new("cp");
    command.arg("-r").args(names.filter(is_source)).arg(copy);
    match command.current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        outcome => Err(format!("cp to {}: {outcome:?}", copy.display())),
    }
}

/// Plants a bug without a switch, runs the checks, and takes the bug out. Returns a line that names the check that found it.
fn plant(checks: &Checks, mutant: &Mutant) -> Result<String, String> {
    let mut sound = vec![];
    for change in &mutant.changes {
        let (path, start) = find(&checks.copy, change)?;
        let before = read_file(&path)?;
        let mut text = before.clone();
        text.replace_range(start..start + change.old.len(), &change.new);
        write_file(&path, &text)?;
        sound.push((path, before));
    }
    let found = checks.run(0, mutant.tests.as_deref());
    for (path, before) in sound.iter().rev() {
        write_file(path, before)?;
    }
    Ok(found)
}

/// Writes the list of bugs with the results.
fn report(root: &Path, results: &Path, mutants: &[Mutant]) -> Result<(), String> {
    let found_by = |mutant: &Mutant| {
        std::fs::read_to_string(results.join(&mutant.name)).unwrap_or_else(|_| "not run".to_owned())
    };
    let found: Vec<String> = mutants.iter().map(found_by).collect();
    let count = |start: &str| found.iter().filter(|found| found.starts_with(start)).count();
    let mut page = format!(
        "# Mutants\n\n\
         `cargo run -p sixfold-sim --bin mutants` plants these bugs in a copy of the workspace: all of them in one build behind switches, and\n\
         those that cannot have a switch, such as another constant, in a build each. The simulator has the profile `fuzz`.\n\
         `testing/sim/mutants.txt` says what is wrong with each, and where. For each bug the program runs {SEEDS} worlds of {QUERIES} client queries, up to\n\
         the first broken invariant ([the simulator](simulation.md#what-is-checked)), then spoofing with {FORGED} forged replies of each attacker, then\n\
         {POLICY_WORLDS} worlds of policy zones, then {KEYED_WORLDS} worlds of signed zones with {KEYED_QUERIES} queries. If they find nothing, it runs the tests\n\
         of the engine, `wire`, `pref64`, `dnssec` and `signed-zones`. For a bug out of the simulator's reach, as in the overload controller, and\n\
         for one that a few tests find sooner, the list names tests, which run instead. The program writes this page.\n\n\
         Of {} bugs the simulator found {} and the tests {} more; {} were found by neither, and {} were not run.\n\n\
         | bug | found by |\n| --- | --- |\n",
        mutants.len(),
        count("simulator"),
        count("tests"),
        count(NOT_FOUND),
        count("not run"),
    );
    for (mutant, found) in mutants.iter().zip(&found) {
        let _ = writeln!(page, "| {} | {} |", mutant.name, found.replace('|', "\\|"));
    }
    write_file(&root.join("docs/mutants.md"), &page)
}
