//! `sixfold-bench report`: rebuilds the page and the tables of a run.

use crate::bundle;
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Without an option the command writes all files that are derived from DIR/run.json: report.html, trials.csv, hist/, \
environment.json and configs/.

Exit status: 0 success, 1 failure, 2 wrong usage.

Example: rebuild the page, then print the tables for a paper:
  sixfold-bench report /tmp/unbound
  sixfold-bench report /tmp/unbound --latex > results.tex";

/// `sixfold-bench report`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ReportArguments {
    /// Folder of a run, with run.json
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print the tables as Markdown and write nothing
    #[arg(long, conflicts_with = "latex")]
    markdown: bool,
    /// Print the tables as LaTeX (package booktabs) and write nothing
    #[arg(long)]
    latex: bool,
}

/// Rebuilds or prints the report of a run.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let run = bundle::read(&arguments.folder)?;
    if arguments.markdown {
        print(&report::markdown(&run))?;
    } else if arguments.latex {
        print(&report::latex(&run))?;
    } else {
        bundle::write_derived(&arguments.folder, &run)?;
        print(&format!(
            "{}\n{}\n",
            report::sentence(&run),
            arguments.folder.join(bundle::REPORT_FILE).display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output. A reader that closes the pipe early is no error.
pub(super) fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}
