//! Tests of the tests: plants the bugs of `crates/sim/mutants.txt` one at a time in a copy of the workspace, builds it, and
//! sees whether the simulator finds it, or else the engine's own tests. Writes what was measured to `docs/mutants.md`.
//!
//! `cargo run -p sixfold-sim --bin mutants -- [--folder DIR] [--only WORD,WORD] [--share N/M] [--resume] [--report]`
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Worlds that each bug gets, and client questions in each: a million.
const SEEDS: u64 = 500;
const QUERIES: u64 = 2000;
/// Forged replies of each besieger.
const FORGED: u64 = 300_000;
/// What runs longer hangs: that is found, too.
const PATIENCE: Duration = Duration::from_secs(600);

/// A bug.
struct Mutant {
    name: String,
    what: String,
    /// File or folder, text that stands there once, text in its place.
    places: Vec<(String, String, String)>,
}

/// Where everything is.
struct Yard {
    root: PathBuf,
    copy: PathBuf,
    target: PathBuf,
    results: PathBuf,
}

fn main() -> ExitCode {
    match work(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(words: &[String]) -> Result<(), String> {
    let option =
        |name: &str| words.iter().position(|word| word == name).and_then(|place| words.get(place + 1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let folder =
        option("--folder").map_or_else(|| std::env::temp_dir().join("sixfold-mutants"), PathBuf::from);
    let (share, of) = match option("--share").and_then(|text| text.split_once('/')) {
        Some((share, of)) => (number(share)?, number(of)?.max(1)),
        None => (0, 1),
    };
    let yard = Yard {
        copy: folder.join(format!("copy-{share}")),
        target: folder.join(format!("target-{share}")),
        results: folder.join("results"),
        root,
    };
    let mutants = read(&text(&yard.root.join("crates/sim/mutants.txt"))?)?;
    std::fs::create_dir_all(&yard.results).map_err(|error| format!("{}: {error}", yard.results.display()))?;
    if !words.iter().any(|word| word == "--report") {
        copy(&yard)?;
        let sound = build(&yard, "sim") && plays(&yard).is_none();
        if !sound {
            return Err(
                "the simulator finds faults although nothing is planted; repair them first".to_owned()
            );
        }
        for (place, mutant) in mutants.iter().enumerate() {
            let is_wanted =
                option("--only").is_none_or(|words| words.split(',').any(|word| mutant.name.contains(word)));
            let is_done =
                words.iter().any(|word| word == "--resume") && yard.results.join(&mutant.name).exists();
            if is_wanted && !is_done && place % of == share {
                let found = plant(&yard, mutant)?;
                println!("{}: {found}", mutant.name);
                write(&yard.results.join(&mutant.name), &found)?;
            }
        }
    }
    report(&yard, &mutants)
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is no number; write --share 0/2"))
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the list of bugs.
fn read(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = vec![];
    for (line, number) in text.lines().zip(1..) {
        let wrong = || format!("mutants.txt: line {number}: {line:?} stands where it cannot");
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
            _ => {
                let (name, what) = line.split_once(": ").ok_or_else(wrong)?;
                mutants.push(Mutant { name: name.to_owned(), what: what.to_owned(), places: vec![] });
            }
        }
    }
    Ok(mutants)
}

/// Copies what is built, without what was built.
fn copy(yard: &Yard) -> Result<(), String> {
    std::fs::create_dir_all(&yard.copy).map_err(|error| format!("{}: {error}", yard.copy.display()))?;
    let entries =
        std::fs::read_dir(&yard.root).map_err(|error| format!("{}: {error}", yard.root.display()))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let is_source = |name: &std::ffi::OsString| !name.to_string_lossy().starts_with('.') && name != "target";
    let mut command = Command::new("cp");
    command.arg("-r").args(names.filter(is_source)).arg(&yard.copy);
    match command.current_dir(&yard.root).status() {
        Ok(status) if status.success() => Ok(()),
        outcome => Err(format!("cp to {}: {outcome:?}", yard.copy.display())),
    }
}

/// The source files at or below `place`, with their texts.
fn sources(place: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    if place.is_file() {
        return Ok(vec![(place.to_owned(), text(place)?)]);
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

/// Finds the file at or below `place` that has `old` once, and its text. None may have it twice, no two may have it.
fn find(root: &Path, place: &str, old: &str) -> Result<(PathBuf, String), String> {
    let mut found = sources(&root.join(place))?;
    let count: usize = found.iter().map(|(_, text)| text.matches(old).count()).sum();
    found.retain(|(_, text)| text.contains(old));
    match found.pop() {
        Some(file) if count == 1 => Ok(file),
        _ => Err(format!("{old:?} stands {count} times in {place}")),
    }
}

/// Plants a bug, looks for it, and takes it out. Returns a line that says which check found it.
fn plant(yard: &Yard, mutant: &Mutant) -> Result<String, String> {
    let mut found = None;
    // The copy stays what it was, whatever happens to the original meanwhile.
    let mut sound = vec![];
    for (place, old, new) in &mutant.places {
        match find(&yard.copy, place, old) {
            Ok((path, before)) => {
                write(&path, &before.replace(old.as_str(), new))?;
                sound.push((path, before));
            }
            Err(error) => found = Some(format!("not run: {error}")),
        }
    }
    let found = found.unwrap_or_else(|| {
        if !build(yard, "sim") {
            return "not run: it does not compile".to_owned();
        }
        match plays(yard) {
            Some(found) => format!("simulator: {found}"),
            None if build(yard, "tests") => match tests(yard) {
                Some(found) => format!("tests of the engine: {found}"),
                None => "NOT FOUND".to_owned(),
            },
            None => "not run: the tests do not compile".to_owned(),
        }
    });
    for (path, before) in sound.iter().rev() {
        write(path, before)?;
    }
    Ok(found)
}

fn cargo(yard: &Yard, words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).args(["--quiet", "--locked", "--offline"]).current_dir(&yard.copy);
    command.env("CARGO_TARGET_DIR", &yard.target).env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.env("RUSTFLAGS", "--cap-lints allow");
    command.stdin(Stdio::null());
    command
}

fn build(yard: &Yard, what: &str) -> bool {
    let words: &[&str] = match what {
        "sim" => &["build", "-p", "sixfold-sim", "--bin", "sixfold-sim"],
        _ => &["test", "-p", "sixfold-engine", "-p", "sixfold-wire", "-p", "sixfold-pref64", "--no-run"],
    };
    cargo(yard, words)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command; none: it took too long.
fn run(mut command: Command, output: &Path) -> Option<(bool, String)> {
    let file = std::fs::File::create(output).ok()?;
    command.stdout(file.try_clone().ok()?).stderr(file);
    let mut child = command.spawn().ok()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            _ if start.elapsed() > PATIENCE => {
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

/// What the simulator finds: the invariant, and after how many worlds.
fn plays(yard: &Yard) -> Option<String> {
    let mut command = Command::new(yard.target.join("debug/sixfold-sim"));
    command.args(["--seeds", &SEEDS.to_string(), "--queries", &QUERIES.to_string()]);
    let (is_well, output) = match run(command, &yard.target.join("output")) {
        Some(outcome) => outcome,
        None => return Some("does not end".to_owned()),
    };
    if is_well {
        return besieged(yard);
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

/// Who wins when replies are forged in numbers.
fn besieged(yard: &Yard) -> Option<String> {
    let mut command = Command::new(yard.target.join("debug/sixfold-sim"));
    command.args(["forge", "--replies", &FORGED.to_string()]);
    match run(command, &yard.target.join("output")) {
        Some((true, _)) => None,
        Some((false, output)) => {
            let line = output.lines().find_map(|line| line.strip_prefix("siege: "));
            let (knows, _) = line.and_then(|line| line.split_once(": ")).unwrap_or(("it ends early", ""));
            Some(format!("siege, who knows: {knows}"))
        }
        None => Some("siege, does not end".to_owned()),
    }
}

/// The first test of the engine, `wire` and `pref64` that fails.
fn tests(yard: &Yard) -> Option<String> {
    let command = {
        let mut command = cargo(
            yard,
            &["test", "-p", "sixfold-engine", "-p", "sixfold-wire", "-p", "sixfold-pref64", "--no-fail-fast"],
        );
        command.stdin(Stdio::null());
        command
    };
    let (is_well, output) = match run(command, &yard.target.join("output")) {
        Some(outcome) => outcome,
        None => return Some("they do not end".to_owned()),
    };
    if is_well {
        return None;
    }
    let name = |line: &str| Some(line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?.to_owned());
    Some(output.lines().find_map(name).unwrap_or_else(|| "one".to_owned()))
}

/// Writes the list with what was measured.
fn report(yard: &Yard, mutants: &[Mutant]) -> Result<(), String> {
    let results: Vec<String> = mutants
        .iter()
        .map(|mutant| {
            std::fs::read_to_string(yard.results.join(&mutant.name)).unwrap_or("not run".to_owned())
        })
        .collect();
    let count = |start: &str| results.iter().filter(|result| result.starts_with(start)).count();
    let mut page = format!(
        "# Planted bugs\n\n\
         `cargo run -p sixfold-sim --bin mutants` plants each of these bugs (`crates/sim/mutants.txt` has the text of each) in a copy of\n\
         the workspace, builds it without optimisation of the whole, and plays {SEEDS} worlds of {QUERIES} client questions, stopping at the\n\
         first answer or figure that is not allowed, and then lets each besieger send {FORGED} forged replies. What the simulator does\n\
         not find, the tests of the engine, `wire` and `pref64` are asked. Each line says what was measured; this page is written by that program.\n\n\
         Of {} bugs the simulator found {}, the tests {} more; {} were found by neither, {} were not run.\n\n\
         | bug | what is wrong | file | found by |\n| --- | --- | --- | --- |\n",
        mutants.len(),
        count("simulator"),
        count("tests"),
        count("NOT FOUND"),
        count("not run"),
    );
    for (mutant, result) in mutants.iter().zip(&results) {
        let file = mutant.places.first().and_then(|(place, old, _)| find(&yard.root, place, old).ok());
        let file = file.map_or(String::new(), |(path, _)| {
            path.strip_prefix(yard.root.join("crates")).unwrap_or(&path).display().to_string()
        });
        let _ = writeln!(
            page,
            "| {} | {} | `{file}` | {} |",
            mutant.name,
            mutant.what,
            result.replace('|', "\\|")
        );
    }
    write(&yard.root.join("docs/mutants.md"), &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_every_planted_bug_stands_once_where_it_is_looked_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutants = read(&text(&root.join("crates/sim/mutants.txt")).unwrap()).unwrap();
        assert!(mutants.len() >= 114, "{} bugs", mutants.len());
        let errors: Vec<String> = mutants
            .iter()
            .flat_map(|mutant| &mutant.places)
            .filter_map(|(place, old, _)| find(&root, place, old).err())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
