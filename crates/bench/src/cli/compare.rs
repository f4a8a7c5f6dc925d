//! `sixfold-bench compare`: is the second run's device faster or slower than the first one's?

use super::report::print;
use crate::bundle;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Ratios are second / first, with a bootstrap interval of 95 %. What was different between the runs besides the device is \
listed.

Exit status: 0 the second is not slower, 1 it is slower in some cell, or nothing could be compared, 2 wrong usage.

Example: in continuous integration, against the run of the last release:
  sixfold-bench compare results/release results/now";

/// `sixfold-bench compare`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct CompareArguments {
    /// Folder of the run that is compared with
    #[arg(value_name = "DIR")]
    first: PathBuf,
    /// Folder of the run that is judged
    #[arg(value_name = "DIR")]
    second: PathBuf,
    /// Print the comparison as JSON [default: a table]
    #[arg(long)]
    json: bool,
}

/// Does it.
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
