//! `sixfold-bench compare`: compares the devices of two runs. Its exit status tells apart what a continuous integration
//! must: slower, not shown to be slower, not comparable.

use super::report::{label, parse_label, print};
use crate::run;
use clap::Args;
use measure::compare::EXIT_INCOMPARABLE;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Ratios are second / first, with a bootstrap confidence interval of 95 % and the p-value of a permutation test of the rank sums \
(Mann and Whitney). The second is called slower or faster only if the interval does not contain 1 and p < 0.05. Fewer than 4 \
repetitions on both sides cannot reach that: 3 and 3 show at best p = 0.10, and are not comparable. Notes give reasons and \
remedies. Differences between the runs besides the device are listed.

Exit status: 0 faster, or no difference is shown although one could be; 1 slower in some cell; 2 wrong usage; 3 nothing could be \
compared, or a record could not be read.

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
    #[arg(long, conflicts_with_all = ["markdown", "latex"])]
    json: bool,
    /// Print the comparison as Markdown [default: a table]
    #[arg(long, conflicts_with = "latex")]
    markdown: bool,
    /// Print the comparison as LaTeX tables (package booktabs) [default: a table]
    #[arg(long)]
    latex: bool,
    /// End of the labels of the LaTeX tables: letters, digits and hyphens [default: both devices' names]
    #[arg(long, value_name = "NAME", requires = "latex", value_parser = parse_label)]
    label: Option<String>,
}

/// Compares two runs.
///
/// # Errors
///
/// Standard output cannot be written. A run that cannot be read is an exit status of its own.
pub fn compare(arguments: &CompareArguments) -> Result<ExitCode, String> {
    let read =
        run::read(&arguments.first).and_then(|first| Ok((first.run, run::read(&arguments.second)?.run)));
    let (first, second) = match read {
        Ok(runs) => runs,
        Err(error) => {
            // Status 1 would say that the second is slower.
            eprintln!("sixfold-bench: {error}");
            return Ok(ExitCode::from(EXIT_INCOMPARABLE));
        }
    };
    let comparison = measure::compare::compare(&first, &second);
    if arguments.json {
        let text = serde_json::to_string_pretty(&comparison).map_err(|error| format!("as JSON: {error}"))?;
        print(&(text + "\n"))?;
    } else if arguments.markdown {
        print(&report::comparison::markdown(&comparison))?;
    } else if arguments.latex {
        let label = arguments.label.clone().unwrap_or_else(|| label(&[&first, &second]));
        print(&report::comparison::latex(&comparison, &label))?;
    } else {
        print(&format!("{}\n", comparison.to_string().trim_end()))?;
    }
    Ok(ExitCode::from(comparison.exit_status()))
}
