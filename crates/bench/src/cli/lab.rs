//! `sixfold-bench lab`: the experiments of the published papers.

use crate::lab::catalog::{self, EXPERIMENTS, Entry};
use crate::lab::context::{Context, LabOptions};
use crate::lab::{self, output};
use clap::Args;
use measure::amount;
use measure::experiment::Experiment;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
DIR gets result.json, with every figure, the paper's figure beside it, and the commands, versions and seed; and report.html, the \
same as a page with charts. Experiments that need root make network namespaces of their own and remove them.

Exit status: 0 every claim of the experiment holds, 1 one does not or the experiment could not run, 2 wrong usage.

Example: Table 1 of the paper on T/TCP, in the short version:
  sixfold-bench lab ttcp-table1 --quick --out /tmp/table1";

/// `sixfold-bench lab`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct LabArguments {
    /// Experiment; --list shows the names
    #[arg(value_name = "EXPERIMENT", required_unless_present = "list")]
    experiment: Option<String>,
    /// Folder for the results; it is made if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    out: Option<PathBuf>,
    /// Short version, at most 3 minutes
    #[arg(long)]
    quick: bool,
    /// List the experiments: name, paper, figure or table, duration
    #[arg(long)]
    list: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Length of an experiment that runs as long as you want (totd-stability)
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    duration: Option<Duration>,
    /// Device under test, by the name of its template; may be repeated [default: those of the experiment that are installed]
    #[arg(long = "device", value_name = "NAME")]
    devices: Vec<String>,
    /// Program of a server that no package has, such as mtd64-ng; may be repeated
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    programs: Vec<(String, PathBuf)>,
}

fn program(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(path)))
        }
        _ => Err("expected NAME=PATH, such as mtd64-ng=/opt/mtd64-ng/mtd64-ng".to_owned()),
    }
}

/// Runs the command.
pub fn run(arguments: &LabArguments) -> Result<ExitCode, String> {
    if arguments.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    let (Some(name), Some(out)) = (&arguments.experiment, &arguments.out) else {
        return Ok(ExitCode::from(2));
    };
    let entry = match catalog::find(name) {
        Ok(entry) => entry,
        Err(error) => {
            eprintln!("sixfold-bench: lab: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    fs::create_dir_all(out)
        .map_err(|error| format!("lab: {}: {error}; give a folder that can be written", out.display()))?;
    let options = LabOptions {
        quick: arguments.quick,
        seed: arguments.seed,
        duration: arguments.duration,
        devices: arguments.devices.clone(),
        programs: arguments.programs.clone(),
    };
    let context = Context::new(entry.heading(), options, out, std::env::args().collect())?;
    let record = lab::run(entry, context).map_err(|error| format!("lab: {error}"))?;
    output::write(out, &record).map_err(|error| format!("lab: {error}"))?;
    summarize(&record);
    println!("{}", out.join(output::REPORT_FILE).display());
    Ok(if record.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the experiments.
fn list() {
    for Entry { name, title, paper, part, takes: (whole, quick), needs_root, .. } in EXPERIMENTS {
        let root = if *needs_root { "; needs root" } else { "" };
        println!(
            "{name}\n    {title}\n    {} paper, {part}; {whole}, {quick} with --quick{root}",
            paper.short
        );
    }
}

/// Prints the claims and the warnings.
fn summarize(record: &Experiment) {
    for claim in &record.claims {
        println!("{} {}: {}", if claim.holds { "yes" } else { "NO " }, claim.sentence, claim.observed);
    }
    for warning in &record.warnings {
        println!("warning: {warning}");
    }
}
