//! One search: libFuzzer with one target for a given time, with limits on the time and memory of each input. The search begins
//! with the kept inputs, the initial inputs and all inputs of earlier searches.

use crate::program::{self, Error, Programs};
use sixfold_fuzz::Target;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time of one input, seconds: a thousand times the time that any input should take.
const INPUT_SECS: u64 = 5;

/// Largest memory of a program, mebibytes.
const MEMORY_MIB: u64 = 2048;

/// Failures after which a search gives up: the same bug is found again and again.
const MAX_FAILURES: usize = 20;

/// Result of a search.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Number of executions.
    pub executions: u64,
    /// Time of the search, seconds.
    pub secs: u64,
    /// Edges that were covered.
    pub edges: u64,
    /// Edges in the program.
    pub edges_in_all: u64,
    /// Inputs that were found: each covered something new.
    pub found: usize,
    /// Largest memory of the program, mebibytes.
    pub memory_mib: u64,
    /// Time of the slowest input that was found, microseconds.
    pub slowest_us: u128,
    /// Inputs that broke an invariant.
    pub failures: Vec<PathBuf>,
}

/// Searches for this time.
///
/// # Errors
///
/// `Error::Io`: a file or the program cannot be used. `Error::Failed`: the program ended without an input that explains it. A failing
/// input is no error, but part of the outcome.
pub fn search(programs: &Programs, target: &Target, time: Duration) -> Result<Outcome, Error> {
    let found = programs.found(target);
    for (number, seed) in (target.seeds)().into_iter().enumerate() {
        write(found.join(format!("seed-{number}")), &seed)?;
    }
    let words = programs.file(target, "words");
    let dictionary = target.dictionary();
    let lines = dictionary.iter().map(|word| format!("\"{}\"\n", escaped(word)));
    write(words.clone(), lines.collect::<String>().as_bytes())?;
    let failures = programs.failures(target);
    let before = program::inputs(&failures)?;
    for attempt in 0..MAX_FAILURES {
        // Remove the logs of an earlier search.
        drop(std::fs::remove_file(programs.file(target, &format!("log-{attempt}"))));
    }
    let start = Instant::now();
    let mut outcome = Outcome::default();
    for attempt in 0..MAX_FAILURES {
        let Some(left) = time.checked_sub(start.elapsed()).filter(|left| left.as_secs() > 0) else { break };
        eprintln!("{}: searching for {} s", target.name, left.as_secs());
        let log = programs.file(target, &format!("log-{attempt}"));
        let output = File::create(&log).map_err(|error| Error::at(&log, error))?;
        let mut command = programs.command(target);
        command.arg(format!("-max_total_time={}", left.as_secs()));
        command.arg(format!("-timeout={INPUT_SECS}")).arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        command.arg(format!("-max_len={}", target.longest_octets));
        command.arg(format!("-artifact_prefix={}/", failures.display()));
        command.args(["-print_final_stats=1", "-reload=0"]);
        if !dictionary.is_empty() {
            command.arg(format!("-dict={}", words.display()));
        }
        command.arg(&found).arg(programs.kept(target)).stderr(output);
        let status = command.status().map_err(|error| Error::at(&log, error))?;
        let text = std::fs::read(&log).map_err(|error| Error::at(&log, error))?;
        parse_log(&String::from_utf8_lossy(&text), &mut outcome);
        if status.success() {
            break;
        }
        if outcome.edges == 0 {
            return Err(Error::Failed(log));
        }
    }
    outcome.secs = start.elapsed().as_secs();
    outcome.found = program::inputs(&found)?.len();
    outcome.failures =
        program::inputs(&failures)?.into_iter().filter(|file| !before.contains(file)).collect();
    Ok(outcome)
}

/// The result of the last search, read from its logs. They lack the time of an attempt that found a failure.
///
/// # Errors
///
/// `Error::Io`: the folder of the inputs or of the failures cannot be read.
pub fn read_last(programs: &Programs, target: &Target) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    for attempt in 0..MAX_FAILURES {
        let log = programs.file(target, &format!("log-{attempt}"));
        let Ok(text) = std::fs::read(&log) else { break };
        parse_log(&String::from_utf8_lossy(&text), &mut outcome);
    }
    outcome.found = program::inputs(&programs.found(target))?.len();
    outcome.failures = program::inputs(&programs.failures(target))?;
    Ok(outcome)
}

/// Edges that the inputs of a folder cover together.
///
/// # Errors
///
/// `Error::Io`: the log or the program cannot be used. `Error::Failed`: the program has failed.
pub fn count_edges(programs: &Programs, target: &Target, folder: &Path) -> Result<u64, Error> {
    let log = programs.file(target, "log-edges");
    let output = File::create(&log).map_err(|error| Error::at(&log, error))?;
    let status = programs.command(target).arg("-runs=0").arg(folder).stderr(output).status();
    let text = std::fs::read(&log).map_err(|error| Error::at(&log, error))?;
    let mut outcome = Outcome::default();
    parse_log(&String::from_utf8_lossy(&text), &mut outcome);
    match status {
        Ok(status) if status.success() => Ok(outcome.edges),
        Ok(_) => Err(Error::Failed(log)),
        Err(error) => Err(Error::at(&log, error)),
    }
}

fn write(file: PathBuf, octets: &[u8]) -> Result<(), Error> {
    std::fs::write(&file, octets).map_err(|error| Error::at(&file, error))
}

/// A word as it is written in libFuzzer's dictionaries, one on a line.
fn escaped(word: &str) -> String {
    let octet = |octet: u8| match octet {
        b'\\' | b'"' => format!("\\{}", char::from(octet)),
        b' '..=b'~' => char::from(octet).to_string(),
        _ => format!("\\x{octet:02x}"),
    };
    word.bytes().map(octet).collect()
}

/// Parses a log of libFuzzer.
fn parse_log(log: &str, outcome: &mut Outcome) {
    for line in log.lines() {
        let number_after = |word: &str| {
            let rest = line.split_once(word)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        if let Some(edges) = number_after("cov: ") {
            outcome.edges = outcome.edges.max(edges);
        } else if line.starts_with("INFO: Loaded") && line.contains("counters)") {
            outcome.edges_in_all = number_after("modules   (").unwrap_or(0);
        } else if line.starts_with("stat::number_of_executed_units:") {
            outcome.executions += number_after("units:").unwrap_or(0);
        } else if line.starts_with("Done ") {
            outcome.secs += number_after(" runs in ").unwrap_or(0);
        } else if line.starts_with("stat::peak_rss_mb:") {
            outcome.memory_mib = outcome.memory_mib.max(number_after("mb:").unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_says_how_much_was_tried_and_seen() {
        let log = "INFO: Loaded 1 modules   (109 inline 8-bit counters): 109 [0x56, 0x57), \n\
            #2\tINITED cov: 8 ft: 8 corp: 1/1b exec/s: 0 rss: 27Mb\n\
            #1000\tDONE   cov: 9 ft: 12 corp: 2/6b lim: 11 exec/s: 0 rss: 27Mb\n\
            Done 1000 runs in 3 second(s)\nstat::number_of_executed_units: 1000\nstat::peak_rss_mb:              27\n";
        let mut outcome = Outcome::default();
        parse_log(log, &mut outcome);
        parse_log(log, &mut outcome);
        assert_eq!(
            (outcome.executions, outcome.edges, outcome.edges_in_all, outcome.memory_mib),
            (2000, 9, 109, 27)
        );
        assert_eq!(outcome.secs, 6);
    }

    #[test]
    fn words_are_escaped() {
        assert_eq!(escaped("a\"\\u"), "a\\\"\\\\u");
        // A line feed would end the word's line, and libFuzzer the program.
        assert_eq!(escaped(" DS\n\u{e9}"), " DS\\x0a\\xc3\\xa9");
    }
}
