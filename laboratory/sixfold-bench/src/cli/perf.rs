//! `sixfold-bench perf`: this project beside other servers.

use crate::perf::{self, Options, part};
use clap::Args;
use std::process::ExitCode;

const HELP: &str = "\
It needs two cores: the device has core 0, and the tester core 1. Servers that are not installed are left out, and named. Without root, \
floods from many networks are left out, and the receive buffers of the servers differ.

Exit status: 0 everything was measured, whatever the goals, 1 an experiment could not run, 2 wrong usage.

Example: the CPU time of an answer of Sixfold and of Unbound, in three rounds:
  sixfold-bench perf --rounds 3 --only cost,cached,sixfold,unbound --json result.json";

/// `sixfold-bench perf`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct PerfArguments {
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
///
/// # Errors
///
/// As [`perf::run`].
pub fn run(arguments: &PerfArguments) -> Result<ExitCode, String> {
    perf::run(&arguments.options).map_err(|error| format!("perf: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// `sixfold-bench perf-part`, hidden: a part of the benchmark as a process of its own.
#[derive(Debug, Args)]
pub struct PartArguments {
    #[command(subcommand)]
    part: part::Part,
}

/// Runs the hidden command.
///
/// # Errors
///
/// As [`part::run`].
pub fn run_part(arguments: &PartArguments) -> Result<ExitCode, String> {
    part::run(&arguments.part).map_err(|error| format!("{}: {error}", perf::PART_COMMAND))?;
    Ok(ExitCode::SUCCESS)
}
