//! Parts of the benchmark that run as processes of their own: valgrind counts some, and others are measured from outside.

use crate::perf::messages::{self, Step};
use crate::perf::resolve::{self, Workload};
use crate::perf::{budget, echo, mappings, reflect};
use clap::Subcommand;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A part of the benchmark.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum Part {
    /// Resolutions in memory, counted by valgrind
    Resolve { workload: Workload, count: u64 },
    /// Single steps on messages, counted by valgrind
    Messages { step: Step, count: u64 },
    /// Times of explicit address mappings: reading them, and a lookup in each direction
    Mappings {
        #[arg(default_value_t = 100_000)]
        lines: u32,
        #[arg(default_value_t = 10_000_000)]
        lookups: u32,
    },
    /// Compares the instructions of each step with a file of budgets (valgrind)
    Budget { file: PathBuf },
    /// The bare echo, measured from outside
    Echo { listen: SocketAddr },
    /// The bare reflector, measured from outside
    Reflect { listen: SocketAddr, upstream: SocketAddr },
}

/// Runs a part.
///
/// # Errors
///
/// A count differs from its budget, the file of budgets cannot be read, an address cannot be bound, or as [`mappings::measure`].
pub fn run(part: &Part) -> Result<(), String> {
    match part {
        Part::Resolve { workload, count } => println!("{}", resolve::run(*workload, *count, false)),
        Part::Messages { step, count } => println!("{}", messages::run(*step, *count)),
        Part::Mappings { lines, lookups } => {
            println!("{lines} mappings: {}", mappings::measure(*lines, *lookups)?);
        }
        Part::Budget { file } => budget::check(file)?,
        Part::Echo { listen } => echo::serve(*listen)?,
        Part::Reflect { listen, upstream } => reflect::serve(*listen, *upstream)?,
    }
    Ok(())
}
