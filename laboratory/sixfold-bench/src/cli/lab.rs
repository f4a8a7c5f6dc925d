//! `sixfold-bench lab`: the experiments of the published papers.

use crate::lab::catalog::{self, About, EXPERIMENTS, Entry};
use crate::lab::context::{Context, LabOptions};
use crate::lab::{self, output, programs};
use clap::Args;
use measure::experiment::Experiment;
use measure::units;
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
    /// List the experiments, or the named one: name, question, paper, figure or table, duration
    #[arg(long)]
    list: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Length of an experiment that runs as long as you want (totd-stability), or of its trials (authorities, pacing)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,
    /// Names of the largest zone, as a power of two (authorities) [default: as many as the trials need and the memory holds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(14..=24))]
    zone_bits: Option<u32>,
    /// Device under test, by the name of its template; may be repeated [default: those of the experiment that are installed]
    #[arg(long = "device", value_name = "NAME")]
    devices: Vec<String>,
    /// Program of a server that no package has, such as mtd64-ng; may be repeated
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    programs: Vec<(String, PathBuf)>,
    /// Folder with programs of the papers, built by you and named as for --program; the experiment takes those that it is about
    #[arg(long = "programs", value_name = "DIR")]
    program_folder: Option<PathBuf>,
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
///
/// # Errors
///
/// A step of the experiment fails, or its folder cannot be written. An unknown experiment or an unused option is exit status 2.
pub fn run(arguments: &LabArguments) -> Result<ExitCode, String> {
    let entry = match arguments.experiment.as_deref().map(catalog::find).transpose() {
        Ok(entry) => entry,
        Err(error) => {
            eprintln!("sixfold-bench: lab: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let (entry, out) = match (entry, &arguments.out) {
        (Some(entry), Some(out)) if !arguments.list => (entry, out),
        // Without --list, the command line has both.
        (entry, _) => {
            print!("{}", list(entry.map_or(&EXPERIMENTS[..], std::slice::from_ref)));
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut options = LabOptions {
        quick: arguments.quick,
        seed: arguments.seed,
        duration: arguments.duration,
        zone_bits: arguments.zone_bits,
        devices: arguments.devices.clone(),
        programs: arguments.programs.clone(),
    };
    let checked = entry.check(&options).and_then(|()| match &arguments.program_folder {
        Some(folder) => programs::in_folder(folder).map(|found| entry.take(&mut options, found)),
        None => Ok(()),
    });
    if let Err(error) = checked {
        eprintln!("sixfold-bench: lab: {error}");
        return Ok(ExitCode::from(2));
    }
    fs::create_dir_all(out)
        .map_err(|error| format!("lab: {}: {error}; give a folder that can be written", out.display()))?;
    let context = Context::new(entry.heading(), options, out, std::env::args().collect())?;
    let record = lab::run(entry, context).map_err(|error| format!("lab: {error}"))?;
    output::write(out, &record).map_err(|error| format!("lab: {error}"))?;
    summarize(&record);
    println!("{}", out.join(output::REPORT_FILE).display());
    Ok(if record.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The experiments as text: name, question, paper and part, durations.
fn list(entries: &[Entry]) -> String {
    let mut text = String::new();
    for Entry { name, about: About { title, paper, part, takes: (whole, quick), .. }, .. } in entries {
        text +=
            &format!("{name}\n    {title}\n    {paper} paper, {part}\n    {whole}; {quick} with --quick\n");
    }
    text
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
