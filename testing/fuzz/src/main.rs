//! `sixfold-fuzz`: searches for inputs that break an invariant, with libFuzzer on stable Rust; keeps the few inputs that cover
//! most; tests single inputs. `docs/fuzzing.md` of the project describes it in full.
#![forbid(unsafe_code)]

mod corpus;
mod program;
mod search;
mod table;

use clap::{Parser, Subcommand};
use program::{Error, Programs};
use sixfold_fuzz::{SHARES, TARGETS, Target};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Searches for inputs that break an invariant of Sixfold.
///
/// Example: sixfold-fuzz run --minutes 60
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds the programs, searches with each for its share of the time, keeps the inputs that cover most, prints a table
    Run {
        /// Minutes for all targets together
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// Target to search with; may be repeated (default: all targets)
        #[arg(long)]
        target: Vec<String>,
        /// Folder for inputs, failures and logs
        #[arg(long, default_value = "target/fuzz")]
        dir: PathBuf,
        /// Leave the kept inputs unchanged
        #[arg(long)]
        no_keep: bool,
    },
    /// Chooses the inputs to keep from those that were found, and prints the table of the last search again
    Keep {
        /// Folder of inputs, failures and logs
        #[arg(long, default_value = "target/fuzz")]
        dir: PathBuf,
    },
    /// Tests one input
    Try {
        /// Target to test with
        target: String,
        /// File with the input
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run { minutes, target, dir, no_keep } => run(minutes, &target, &dir, !no_keep),
        Command::Keep { dir } => keep_all(&dir),
        Command::Try { target, file } => try_one(&target, &file),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sixfold-fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Result<Target, Error> {
    let found = TARGETS.iter().find(|target| target.name == name).copied();
    found.ok_or_else(|| Error::NoTarget(name.to_owned()))
}

/// Searches. Returns true if no invariant was broken.
fn run(minutes: u64, names: &[String], dir: &Path, updates_corpus: bool) -> Result<bool, Error> {
    let targets: Vec<Target> = match names {
        [] => TARGETS.to_vec(),
        names => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    let programs = Programs::build(&targets, dir)?;
    let shares = if names.is_empty() { SHARES } else { targets.iter().map(|target| target.share).sum() };
    let mut rows = Vec::new();
    for target in &targets {
        let time = Duration::from_secs(minutes * 60 * target.share / shares);
        let mut outcome = search::search(&programs, target, time)?;
        outcome.slowest_us = slowest_us(target, &programs.found(target))?;
        let kept = if updates_corpus { Some(corpus::update(&programs, target)?) } else { None };
        rows.push(table::Row { target: *target, outcome, kept });
        // The table is printed after each target, so a run that is ended early shows its results, too.
        println!("{}", table::table(&rows));
    }
    Ok(rows.iter().all(|row| row.outcome.failures.is_empty()))
}

/// Chooses the inputs to keep. Returns true if no invariant was broken.
fn keep_all(dir: &Path) -> Result<bool, Error> {
    let programs = Programs::build(&TARGETS, dir)?;
    let mut rows = Vec::new();
    for target in TARGETS {
        let mut outcome = search::read_last(&programs, &target)?;
        outcome.slowest_us = slowest_us(&target, &programs.found(&target))?;
        let kept = Some(corpus::update(&programs, &target)?);
        rows.push(table::Row { target, outcome, kept });
    }
    println!("{}", table::table(&rows));
    Ok(rows.iter().all(|row| row.outcome.failures.is_empty()))
}

/// Tests one input. A broken invariant ends the program by a panic.
fn try_one(name: &str, file: &Path) -> Result<bool, Error> {
    let target = find(name)?;
    let input = std::fs::read(file).map_err(|error| Error::at(file, error))?;
    (target.run)(&input);
    println!("{name}: {} octets, no invariant is broken", input.len());
    Ok(true)
}

/// Time of the slowest input in a folder, in microseconds, in this program, which is not instrumented. Each input is run three
/// times and the shortest time counts, because the machine may be busy.
fn slowest_us(target: &Target, folder: &Path) -> Result<u128, Error> {
    let mut slowest = 0;
    for input in program::inputs(folder)? {
        let input = std::fs::read(&input).map_err(|error| Error::at(&input, error))?;
        let best = (0..3).map(|_| {
            let start = Instant::now();
            (target.run)(&input);
            start.elapsed().as_micros()
        });
        slowest = slowest.max(best.min().unwrap_or(0));
    }
    Ok(slowest)
}
