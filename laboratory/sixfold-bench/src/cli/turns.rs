//! `sixfold-bench run` with several devices: estimate and summary.

use super::report::print;
use super::run_summary::summary;
use crate::bundle;
use crate::run::Ended;
use crate::run::turns::Device;
use measure::compare::compare;
use measure::plan::Plan;
use measure::procedure::Procedure;
use measure::run::Run;
use measure::units;
use report::named;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Prints the plans as one JSON object by the devices' names, and an estimate of each and of their sum.
///
/// # Errors
///
/// Standard output cannot be written.
pub(super) fn show_estimates(plans: Vec<(String, Plan)>) -> Result<ExitCode, String> {
    let names: Vec<String> = plans.iter().map(|(name, _)| name.clone()).collect();
    let (mut objects, mut trials, mut time) = (serde_json::Map::new(), 0, Duration::ZERO);
    let mut lines = String::new();
    for (name, plan) in plans {
        let plan = plan.in_turns(&names);
        let value = serde_json::to_value(&plan).map_err(|error| error.to_string())?;
        let procedure = Procedure::new(plan);
        let (count, left) = (procedure.trials_left(), procedure.time_left());
        lines += &format!("{name}: about {count} trials, {}\n", units::show(left));
        trials += count;
        time += left;
        objects.insert(name, value);
    }
    let text = serde_json::to_string_pretty(&objects).map_err(|error| error.to_string())?;
    print(&(text + "\n"))?;
    eprint!("{lines}");
    eprintln!("in turns: about {trials} trials, {}", units::show(time));
    Ok(ExitCode::SUCCESS)
}

/// Tells how the runs ended: the results of each device, every other device against the first, and what failed.
///
/// # Errors
///
/// Standard output cannot be written. Runs that failed or were interrupted are exit status 1.
pub(super) fn conclude(devices: &[Device], out: &Path) -> Result<ExitCode, String> {
    let complete = devices.iter().filter_map(|device| match &device.ended {
        Ok(Ended::Complete(run)) => Some((device, &**run)),
        _ => None,
    });
    let complete: Vec<(&Device, &Run)> = complete.collect();
    let pairs: Vec<(&str, &Run)> = complete.iter().map(|(device, run)| (&*device.name, *run)).collect();
    let mut text = String::new();
    for (named, (device, run)) in named(&pairs).iter().zip(&complete) {
        text += &summary(&named.name, run, &device.folder);
    }
    if let Some(((first, one), others)) = pairs.split_first() {
        for (name, other) in others {
            text += &format!("\n{name} against {first}\n{}\n", compare(one, other).to_string().trim_end());
        }
    }
    let page = out.join(bundle::DEVICES_FILE);
    if page.exists() {
        let space = if text.is_empty() { "" } else { "\n" };
        text += &format!("{space}report of all devices: {}\n", page.display());
    }
    print(&text)?;
    let mut status = ExitCode::SUCCESS;
    for device in devices {
        let why = match &device.ended {
            Ok(Ended::Complete(_)) => continue,
            Ok(Ended::Interrupted) => "interrupted",
            Ok(Ended::Stopped(why)) | Err(why) => why,
        };
        eprintln!("sixfold-bench: {}: {why}", device.name);
        status = ExitCode::FAILURE;
    }
    if devices.iter().any(|device| device.ended == Ok(Ended::Interrupted)) {
        let out = out.display();
        eprintln!("interrupted; resume all devices with: sixfold-bench run --resume --out {out}");
    }
    Ok(status)
}
