//! `sixfold-fuzz`: searches for inputs that break a promise, with libFuzzer, on stable Rust; keeps the few that show most;
//! tries single ones. `docs/fuzzing.md` of the project has the whole story.
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

/// Searches for inputs that break a promise of Sixfold.
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
    /// Builds the programs, searches with each for its share of the time, keeps the inputs that show most, prints a table
    Run {
        /// Minutes in all, shared among the targets
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// A target, again for several; all without
        #[arg(long)]
        target: Vec<String>,
        /// Where inputs, failures and logs go
        #[arg(long, default_value = "target/fuzz")]
        dir: PathBuf,
        /// Searches, and leaves the kept inputs as they are
        #[arg(long)]
        no_keep: bool,
    },
    /// Chooses the inputs to keep out of what was found, and prints the table of the last search once more
    Keep {
        /// Where inputs, failures and logs are
        #[arg(long, default_value = "target/fuzz")]
        dir: PathBuf,
    },
    /// Tries one input
    Try {
        /// The target
        target: String,
        /// The file with the input
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run { minutes, target, dir, no_keep } => run(minutes, &target, &dir, !no_keep),
        Command::Keep { dir } => keep_all(&dir),
        Command::Try { target, file } => attempt(&target, &file),
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

/// Searches. True: no promise was broken.
fn run(minutes: u64, names: &[String], dir: &Path, keeps: bool) -> Result<bool, Error> {
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
        let kept = if keeps { Some(corpus::keep(&programs, target)?) } else { None };
        rows.push(table::Row { target: *target, outcome, kept });
        // A run that is ended early has shown something as well.
        println!("{}", table::table(&rows));
    }
    Ok(rows.iter().all(|row| row.outcome.failures.is_empty()))
}

/// Chooses from what was found. True: no promise was broken.
fn keep_all(dir: &Path) -> Result<bool, Error> {
    let programs = Programs::build(&TARGETS, dir)?;
    let mut rows = Vec::new();
    for target in TARGETS {
        let mut outcome = search::last(&programs, &target)?;
        outcome.slowest_us = slowest_us(&target, &programs.found(&target))?;
        let kept = Some(corpus::keep(&programs, &target)?);
        rows.push(table::Row { target, outcome, kept });
    }
    println!("{}", table::table(&rows));
    Ok(rows.iter().all(|row| row.outcome.failures.is_empty()))
}

/// Tries one input; when it breaks a promise, that ends the program.
fn attempt(name: &str, file: &Path) -> Result<bool, Error> {
    let target = find(name)?;
    let input = std::fs::read(file).map_err(|error| Error::at(file, error))?;
    (target.run)(&input);
    println!("{name}: {} octets, nothing is wrong", input.len());
    Ok(true)
}

/// How long the slowest of the inputs in a folder takes, in microseconds, in this program, which counts no edges. Each is tried
/// three times, of which the best counts: the machine may have other things to do.
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
