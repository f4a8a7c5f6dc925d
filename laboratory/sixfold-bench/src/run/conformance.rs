//! Conformance cases of a plan, played before the measurement.

use super::progress::RunDisplay;
use crate::file_error::file_error;
use conform::{Outcome, Program, Runner};
use measure::plan::Plan;
use measure::run::{Correctness, Device};
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;

/// Plays the cases that the plan names and notes the result. Their configurations are Sixfold's, so only Sixfold on
/// this host can play them yet; for other devices a line says that they are left out.
///
/// # Errors
///
/// The file of cases cannot be read, or has a line that is no case. Failed cases are part of the result.
pub fn play_cases(
    plan: &Plan,
    device: &Device,
    found: &mut Correctness,
    display: &RunDisplay,
) -> Result<(), String> {
    let file = plan.correctness.conformance.as_str();
    if file.is_empty() {
        return Ok(());
    }
    if plan.device.template != "sixfold" || !plan.device.host.is_empty() {
        display
            .print_line("conformance cases are left out: their configurations are for Sixfold on this host");
        return Ok(());
    }
    let text = File::open(file).and_then(textfile::read_to_string);
    let text = text.map_err(|error| file_error(file, &error))?;
    let cases = conform::case::Case::read_all(&text).map_err(|error| format!("{file}: {error}"))?;
    let program = device.command.first().ok_or("the device was not started")?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let runner = Runner::new(Program::sixfold(Path::new(program)), threads)
        .without_namespace("clients with addresses of their own need a network namespace".to_owned());
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for played in runner.run(&cases, |_| {}) {
        match played.outcome {
            Outcome::Passed => passed += 1,
            Outcome::Failed { .. } | Outcome::Remarked { .. } => {
                failed += 1;
                found.failed_cases.push(played.id.clone());
            }
            Outcome::Skipped { .. } => skipped += 1,
        }
    }
    display.print_line(&format!("conformance cases: {passed} passed, {failed} failed, {skipped} skipped"));
    found.conformance = Some((passed, failed, skipped));
    Ok(())
}
