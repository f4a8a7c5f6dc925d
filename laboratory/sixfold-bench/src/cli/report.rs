//! `sixfold-bench report`: rebuilds the page and the tables of a run, or makes one report of several runs.

use crate::bundle;
use crate::run::{self, Recorded, turns};
use clap::Args;
use measure::run::Run;
use report::named;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
With one DIR and without an option the command writes all files that are derived from DIR/run.json: report.html, trials.csv, \
certificates.csv, hist/, environment.json and configs/. While the run is in progress it writes report.html alone, with the results so far.

With several DIR it makes one report with all devices in one table, charts of latency, loss and CPU time against rate with all \
devices, the conditions that differ between the runs, and the method. It writes the page to devices.html in the first DIR, the charts \
beside it as devices-latency.svg, devices-loss.svg and devices-cpu.svg, and nothing else. The folder of a run of several devices \
stands for their folders.

Exit status: 0 success, 1 failure, 2 wrong usage.

Example: rebuild the page, then print the tables for a paper, then make one report of three devices:
  sixfold-bench report /tmp/unbound
  sixfold-bench report /tmp/unbound --latex > results.tex
  sixfold-bench report /tmp/unbound /tmp/bind /tmp/sixfold --out devices.html";

/// `sixfold-bench report`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ReportArguments {
    /// Folders of runs, with run.json
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Print tables, method, hosts and configuration as Markdown instead of writing the page
    #[arg(long, conflicts_with = "latex")]
    markdown: bool,
    /// Print tables, method, hosts and configuration as LaTeX (package booktabs) instead of writing the page
    #[arg(long)]
    latex: bool,
    /// Write the page, the Markdown or the LaTeX to this file, and nothing else but the charts of several devices beside a page
    /// [default: report.html in DIR; of several DIR devices.html in the first; Markdown and LaTeX go to standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// End of the labels of the LaTeX tables: letters, digits and hyphens [default: the devices' names]
    #[arg(long, value_name = "NAME", requires = "latex", value_parser = parse_label)]
    label: Option<String>,
}

/// Checks the end of a label, which LaTeX must take as it is.
///
/// # Errors
///
/// The text is empty, or has other characters than letters, digits and hyphens.
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

/// Rebuilds or prints the report of a run, or of several together.
///
/// # Errors
///
/// A folder has no run that can be read, no device has a trial yet, or a page cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let paths = paths(&arguments.folders)?;
    if paths.is_empty() {
        return Err("no device has a trial yet; the logs in the folders of the devices say why".to_owned());
    }
    let recorded: Vec<Recorded> = paths.iter().map(|folder| run::read(folder)).collect::<Result<_, _>>()?;
    let folders: Vec<String> = paths.iter().map(|folder| folder_name(folder)).collect();
    let runs: Vec<(&str, &Run)> =
        folders.iter().map(String::as_str).zip(recorded.iter().map(|it| &it.run)).collect();
    if arguments.markdown || arguments.latex {
        let text = arguments.text(&runs);
        match &arguments.out {
            Some(file) => bundle::write_text(file, &text)?,
            None => print(&text)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut said = String::new();
    for (folder, it) in paths.iter().zip(&recorded) {
        if let Some(progress) = &it.progress {
            said += &format!("{}: a run in progress, {progress}\n", folder.display());
        }
        said += &format!("{}\n", report::sentence(&it.run));
    }
    let page = arguments.write_page(&runs, &recorded)?;
    print(&format!("{said}{}\n", page.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The folders of all runs: in the place of a folder of devices that took turns, those of the devices with a trial.
fn paths(folders: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for folder in folders {
        match turns::is_folder_of_turns(folder) {
            true => paths.extend(turns::folders_with_trials(folder)?),
            false => paths.push(folder.clone()),
        }
    }
    Ok(paths)
}

impl ReportArguments {
    /// The report as Markdown or LaTeX.
    fn text(&self, runs: &[(&str, &Run)]) -> String {
        let label = || {
            let default = || label(&runs.iter().map(|(_, run)| *run).collect::<Vec<_>>());
            self.label.clone().unwrap_or_else(default)
        };
        match (runs, self.markdown) {
            ([(_, run)], true) => report::markdown(run),
            ([(_, run)], false) => report::latex(run, &label()),
            (runs, true) => report::combined_markdown(&named(runs)),
            (runs, false) => report::combined_latex(&named(runs), &label()),
        }
    }

    /// Writes the page, and all derived files of a single run that has ended. Returns the path of the page.
    fn write_page(&self, runs: &[(&str, &Run)], recorded: &[Recorded]) -> Result<PathBuf, String> {
        let (folder, run) = (&self.folders[0], &recorded[0].run);
        if runs.len() > 1 || turns::is_folder_of_turns(folder) {
            let page = self.out.clone().unwrap_or_else(|| folder.join(bundle::DEVICES_FILE));
            bundle::write_devices(&page, runs)?;
            return Ok(page);
        }
        if let ([_], None, None) = (recorded, &self.out, &recorded[0].progress) {
            bundle::write_derived(folder, run)?;
            return Ok(folder.join(bundle::REPORT_FILE));
        }
        let page = self.out.clone().unwrap_or_else(|| folder.join(bundle::REPORT_FILE));
        bundle::write_text(&page, &report::html(run))?;
        Ok(page)
    }
}

/// The last part of a folder's path, which tells runs of one device apart.
fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Writes to standard output. A reader that closes the pipe early is no error.
///
/// # Errors
///
/// The error of write(2), such as a full disk.
pub(super) fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}
