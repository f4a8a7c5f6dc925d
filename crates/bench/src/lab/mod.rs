//! Experiments of the published papers: `sixfold-bench lab`.
//!
//! `catalog.rs` lists them. Each experiment is a file or a folder: it runs in virtual time (crate `experiments`), or with real
//! programs and a real link, and enters figures, charts and claims into the record of its [`context::Context`].
//! `output.rs` writes the record and the page.

mod authorities;
pub mod catalog;
pub mod context;
mod kernel_fast_open;
pub mod mtd64;
pub mod output;
mod own_namespace;
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

/// Runs an experiment and returns its record. The error says which step failed, the cause, and the remedy.
pub fn run(entry: &catalog::Entry, mut context: Context) -> Result<Experiment, String> {
    (entry.run)(&mut context).map_err(|error| format!("{}: {error}", entry.name))?;
    Ok(context.finish())
}
