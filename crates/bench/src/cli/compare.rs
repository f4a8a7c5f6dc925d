//! `sixfold-bench compare`: compares the devices of two runs, and fails if the second is slower.

use super::report::print;
use crate::bundle;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Ratios are second / first, with a bootstrap confidence interval of 95 %. Differences between the runs besides the device \
are listed.

Exit status: 0 the second is not slower, 1 it is slower in some cell, or nothing could be compared, 2 wrong usage.

Example: in continuous integration, against the run of the last release:
  sixfold-bench compare results/release results/now";

/// `sixfold-bench compare`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct CompareArguments {
    /// Folder of the run to compare with
    #[arg(value_name = "DIR")]
    first: PathBuf,
    /// Folder of the run to judge
    #[arg(value_name = "DIR")]
    second: PathBuf,
    /// Print the comparison as JSON [default: a table]
    #[arg(long)]
    json: bool,
}

/// Compares two runs.
pub fn compare(arguments: &CompareArguments) -> Result<ExitCode, String> {
    let (first, second) = (bundle::read(&arguments.first)?, bundle::read(&arguments.second)?);
    let comparison = measure::compare::compare(&first, &second);
    if arguments.json {
        let text = serde_json::to_string_pretty(&comparison).map_err(|error| format!("as JSON: {error}"))?;
        print(&(text + "\n"))?;
    } else {
        print(&format!("{}\n", comparison.to_string().trim_end()))?;
    }
    Ok(if comparison.exit_is_failure() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
