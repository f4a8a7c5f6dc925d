//! `sixfold-bench report`: rebuilds the page and the tables of a run.

use crate::bundle;
use crate::run::{self, Recorded};
use clap::Args;
use measure::run::Run;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Without an option the command writes all files that are derived from DIR/run.json: report.html, trials.csv, hist/, \
environment.json and configs/. While the run is in progress it writes report.html alone, with the results so far.

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
    /// End of the labels of the LaTeX tables: letters, digits and hyphens [default: the device's name]
    #[arg(long, value_name = "NAME", requires = "latex", value_parser = parse_label)]
    label: Option<String>,
}

/// Checks the end of a label, which LaTeX must take as it is.
pub(super) fn parse_label(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if text.is_empty() || !text.chars().all(plain) {
        return Err("write letters, digits and hyphens alone, like unbound-2".to_owned());
    }
    Ok(text.to_owned())
}

/// The end of the labels of tables that show these runs.
pub(super) fn label(runs: &[&Run]) -> String {
    runs.iter().map(|run| run.device.slug()).collect::<Vec<_>>().join("-")
}

/// Rebuilds or prints the report of a run.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let Recorded { run, progress } = run::read(&arguments.folder)?;
    if arguments.markdown {
        print(&report::markdown(&run))?;
    } else if arguments.latex {
        let label = arguments.label.clone().unwrap_or_else(|| label(&[&run]));
        print(&report::latex(&run, &label))?;
    } else {
        let page = arguments.folder.join(bundle::REPORT_FILE);
        let mut said = format!("{}\n{}\n", report::sentence(&run), page.display());
        if let Some(progress) = progress {
            said.insert_str(0, &format!("{}: a run in progress, {progress}\n", arguments.folder.display()));
            bundle::write_page(&page, &report::html(&run))?;
        } else {
            bundle::write_derived(&arguments.folder, &run)?;
        }
        print(&said)?;
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
