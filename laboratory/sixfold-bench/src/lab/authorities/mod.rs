//! Authoritative servers for the benchmark's zone: correctness, load time, memory, highest rate, CPU time. Figures 3 to 12 of
//! the paper, with the servers that are installed.
//!
//! Order: `schedule` chooses sizes and cores; `zone_file` writes the zone; `recipe` configures a server and `running` starts it;
//! `buffers` gives all servers one receive buffer; `question` checks single answers, `rate` and `results` measure; `figures`, `notes` and `differences` fill the record. Read
//! `results.rs` first.

mod buffers;
mod differences;
mod figures;
mod fit;
mod limits;
mod notes;
mod paper;
mod question;
mod rate;
pub mod recipe;
mod results;
pub(crate) mod running;
mod schedule;
pub(crate) mod zone_file;

use super::context::Context;
use crate::environment::allowed_cores;
use recipe::RECIPES;
use results::Results;
use running::Installed;
use schedule::Schedule;
use servers::WorkingFolder;

/// Runs the experiment.
///
/// # Errors
///
/// A zone does not fit into memory or on the disk, a server does not end, or the user stops the experiment. A
/// server that fails is a fault in the record, and no error.
pub fn run(context: &mut Context) -> Result<(), String> {
    let servers = installed(context)?;
    let mut results: Vec<Results> = servers.into_iter().map(Results::of).collect();
    let schedule = Schedule::of(context)?;
    let splits = schedule::core_splits(&allowed_cores());
    let folder = WorkingFolder::new().map_err(|error| error.to_string())?;
    let zone_file = folder.path().join("zone");
    for bits in &schedule.bits {
        context.progress(&format!("writes a zone of 2^{bits} names"))?;
        let _ = std::fs::remove_file(&zone_file);
        zone_file::write(&zone_file, *bits)?;
        for results in &mut results {
            results.load(context, &schedule, &splits[0], (&zone_file, *bits))?;
        }
    }
    let zone = (zone_file.as_path(), schedule.rate_bits());
    // Without searches, one number of cores shows that each server answers.
    let measured = if schedule.has_searches() { &splits[..] } else { &splits[..1] };
    for split in measured {
        for results in &mut results {
            results.measure_rates(context, &schedule, split, zone)?;
        }
    }
    for results in &results {
        results.program.iter().for_each(|program| context.program(program.clone()));
    }
    figures::enter(context, &results);
    notes::enter(context, &results, &schedule, &splits)
}

/// The servers that the user chose, or all; missing ones become warnings.
fn installed(context: &mut Context) -> Result<Vec<Installed>, String> {
    let chosen = context.options.devices.clone();
    let programs = context.options.programs.clone();
    let mut found = Vec::new();
    for recipe in
        RECIPES.iter().filter(|recipe| chosen.is_empty() || chosen.iter().any(|name| name == recipe.name))
    {
        match Installed::find(recipe, running::given_program(&programs, recipe)) {
            Ok(server) => found.push(server),
            Err(error) => context.warning(error),
        }
    }
    Ok(found)
}
