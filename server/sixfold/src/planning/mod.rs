//! `sixfold plan`: writes the configurations of the network around the server. The crate `plan` makes the texts; here are the values from
//! the configuration, the folder, and the exit status.

mod folder;
mod input;

use crate::cli::Plan;
use crate::config::{Failure, Fault, Located, Place, Problem, Report, load_with_places};
use folder::{Change, Earlier, Kind};
use plan::{Choice, Contradiction, PlannedFile};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command. With exit status 0 the folder has the plan.
pub fn run(arguments: &Plan) -> ExitCode {
    match bring(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The files of the plan, into a folder with files of earlier ones.
fn files(arguments: &Plan, earlier: &[Earlier]) -> Result<Vec<PlannedFile>, String> {
    let located = load_with_places(&arguments.file).map_err(|failure| match failure {
        Failure::Wrong(report) => report.of_plan(),
        Failure::Unreadable { path, why } => {
            format!("sixfold: cannot read {}: {why}; name the server's configuration file", path.display())
        }
    })?;
    let name = arguments.file.display().to_string();
    if !located.places.has("network") {
        return Err(format!(
            "sixfold: cannot plan with {name}: it has no table [network]; add one with gateway, advertiser and \
             dhcpv4, and \
             [[network.interface]] for each interface: see sixfold.toml(5)"
        ));
    }
    let kept = earlier.iter().map(|(path, _)| path.clone()).collect();
    let choice = Choice { parts: arguments.parts.clone(), kept };
    plan::plan(&input::of(&located.config, &arguments.file, &arguments.out), &choice)
        .map_err(|contradictions| report(&name, located, &contradictions, arguments).of_plan())
}

/// The contradictions as errors of the file, in its order.
fn report(name: &str, located: Located, contradictions: &[Contradiction], arguments: &Plan) -> Report {
    let problem = |contradiction: &Contradiction| {
        let place = match &contradiction.place {
            Some(place) => located.places.nearest(&place.key, place.item),
            None => {
                let names: Vec<&str> = arguments.parts.iter().map(|part| part.name()).collect();
                Place::Flag(format!("--for {}", names.join(",")))
            }
        };
        Problem { place, fault: Fault::new(&contradiction.what, &contradiction.remedy) }
    };
    let mut problems: Vec<Problem> = contradictions.iter().map(problem).collect();
    problems.sort_by_key(Problem::order);
    Report { file: name.to_owned(), text: located.text, problems }
}

/// Brings the folder to the plan; if it has files of an earlier one, with `--write` only, and shows the difference.
fn bring(arguments: &Plan) -> Result<(), String> {
    let folder = &arguments.out;
    let earlier = folder::earlier(folder)?;
    let files = files(arguments, &earlier)?;
    let is_empty = earlier.is_empty();
    let goes = if arguments.parts.is_empty() { earlier } else { Vec::new() };
    let changes = folder::changes(folder, &files, goes)?;
    // Later runs show first, also if a file of the earlier one is gone and nothing else changes: somebody may have meant that.
    let is_first = is_empty && changes.iter().all(|change| change.kind == Kind::New);
    let writes = is_first || arguments.write || changes.is_empty();
    print(&shown(folder, &changes, writes, is_first))?;
    if !writes {
        let them = if changes.len() == 1 { "1 file".to_owned() } else { format!("{} files", changes.len()) };
        return Err(format!(
            "sixfold: nothing was written: the plan changes {them} in {}; look at the difference, then add --write",
            folder.display()
        ));
    }
    folder::write(folder, &changes)
}

/// The report for standard output: differences, and a line for each file.
fn shown(folder: &Path, changes: &[Change<'_>], writes: bool, is_first: bool) -> String {
    if changes.is_empty() {
        return format!("{} has this plan already\n", folder.display());
    }
    let mut text = String::new();
    for change in changes {
        let path = folder.join(&change.path);
        let path = path.display();
        // Writing to a string cannot fail.
        if !is_first {
            text.push_str(&plan::unified(&path.to_string(), &change.old, change.new));
        }
        let _ = match (change.kind, writes) {
            (Kind::Stale, true) => writeln!(text, "removed {path}"),
            (_, true) => writeln!(text, "wrote {path}"),
            (_, false) => Ok(()),
        };
    }
    text
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(|error| {
        format!("sixfold: cannot write the report: {error}; look at the target of the output")
    })
}
