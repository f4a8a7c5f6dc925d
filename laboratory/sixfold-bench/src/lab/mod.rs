//! Experiments of the published papers: `sixfold-bench lab`.
//!
//! `catalog.rs` lists them. Each experiment is a file or a folder: it runs in virtual time (crate `experiments`), or with real
//! programs and a real link, and enters figures, charts and claims into the record of its [`context::Context`].
//! `output.rs` writes the record and the page.

pub(crate) mod authorities;
pub mod catalog;
pub mod context;
pub(crate) mod device;
mod kernel_fast_open;
pub mod mtd64;
pub mod output;
mod own_namespace;
mod pacing;
pub mod programs;
mod selftest;
pub mod totd;
mod ttcp_attacks;
mod ttcp_blocks;
pub mod ttcp_completion;
mod ttcp_fallback;
pub mod ttcp_loss;
mod ttcp_table1;

use context::Context;
use measure::experiment::Experiment;

/// Runs an experiment and returns its record.
///
/// # Errors
///
/// The step that failed, the cause, and the remedy. A signal during the last step is an error, too: its loads end early, so their
/// figures are those of a part.
pub fn run(entry: &catalog::Entry, mut context: Context) -> Result<Experiment, String> {
    let ended = (entry.run)(&mut context).and_then(|()| context.check_stop());
    ended.map_err(|error| format!("{}: {error}", entry.name))?;
    context.differences_of(entry.name);
    Ok(context.finish())
}
