//! Budget of instructions: a file with a line for each step of a query, like `resolve whole 256 2304 13992`, and what it costs now.

use crate::perf::callgrind::instructions_per_step;
use std::path::Path;

/// Most that a count may differ from its budget. A lower count is a reason to lower the budget, or the next change may waste the
/// gain.
const TOLERANCE: f64 = 0.02;

/// A line of the budget.
struct Row<'t> {
    /// Part and workload.
    step: [&'t str; 2],
    /// Steps of the two runs whose difference counts.
    runs: [u64; 2],
    instructions: f64,
}

impl Row<'_> {
    fn read(text: &str) -> Result<Row<'_>, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{text}: {word}: {error}"));
        match words[..] {
            [command, workload, short, long, instructions] => Ok(Row {
                step: [command, workload],
                runs: [number(short)?, number(long)?],
                instructions: number(instructions)? as f64,
            }),
            _ => Err(format!("{text}: subcommand, workload, two lengths and the instructions are wanted")),
        }
    }
}

/// Counts the instructions of each step in the file, and prints them beside the budget.
///
/// # Errors
///
/// The file cannot be read, valgrind cannot count, or a count differs by more than 2 % from its budget. Then the error has the measured
/// counts.
pub fn check(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut wrong = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("platform:")) {
        let Row { step, runs, instructions } =
            Row::read(line).map_err(|error| format!("{}: {error}", file.display()))?;
        let measured = instructions_per_step(step, runs)?;
        let ratio = measured / instructions;
        println!("{line}: measured {measured:.0}, ratio {ratio:.3}");
        if (ratio - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{line}: measured {measured:.0}"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}\nIf the change is worth it, write the measured count into {} in the same commit, with the reason behind the #.",
            wrong.join("\n"),
            file.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_step_two_lengths_and_a_count() {
        let row = Row::read("resolve whole 256 2304 13992").unwrap();
        assert_eq!((row.step, row.runs, row.instructions), (["resolve", "whole"], [256, 2304], 13_992.0));
        assert!(Row::read("resolve whole 256 13992").is_err_and(|error| error.contains("are wanted")));
        assert!(Row::read("resolve whole a 2 3").is_err_and(|error| error.contains("a: invalid digit")));
    }
}
