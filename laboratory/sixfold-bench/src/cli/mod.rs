//! Command line of `sixfold-bench`: options, help texts and exit status. Each subcommand is a file; the work is done
//! elsewhere. First file to read: `run.rs`.

mod agent;
mod authority;
mod compare;
mod completions;
mod conform;
mod device_choice;
mod lab;
mod link;
mod load;
mod perf;
mod report;
mod result_file;
mod run;
mod run_summary;
mod totd_forwarder;
mod turns;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Text that `--version` prints after the name. The features are the optional parts of this build: the transport of
/// loads, and zones from master files.
const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("SIXFOLD_COMMIT"), ")\nfeatures: udp zone-file");

const HELP: &str = "\
Exit status: 0 success, 1 failure or a negative result, 2 wrong usage. --help of each command has an example; \
sixfold-bench(1) describes everything.

Example: measure in minutes how many queries a second Unbound from the distribution's package answers:
  sixfold-bench run --profile quick --device unbound --out /tmp/unbound";

/// Measures DNS64 servers by RFC 8219 section 9: load, authority, self-test, search, report.
#[derive(Debug, Parser)]
#[command(name = "sixfold-bench", version = VERSION, arg_required_else_help = true, after_help = HELP)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measures a DNS64 server by RFC 8219 section 9 and writes a report.
    Run(Box<run::RunArguments>),
    /// Rebuilds the report of a run from its record.
    Report(report::ReportArguments),
    /// Compares two runs: is the second faster or slower?
    Compare(compare::CompareArguments),
    /// Plays conformance cases to a DNS64 server and scores it by RFC section and level.
    Conform(Box<conform::ConformArguments>),
    /// Sends a load to a server, checks every reply and times every query.
    Load(Box<load::LoadArguments>),
    /// Serves the zone for devices under test, with faults on request.
    Authority(Box<authority::AuthorityArguments>),
    /// Links two network namespaces, with delay, loss and other faults on request.
    Link(Box<link::LinkArguments>),
    /// Repeats an experiment of a published paper and shows its figures beside the paper's.
    Lab(Box<lab::LabArguments>),
    /// Measures Sixfold beside a bare reflector, Unbound, BIND, PowerDNS and Knot Resolver.
    Perf(Box<perf::PerfArguments>),
    /// Prints the completions of this command line for a shell.
    Completions(completions::CompletionsArguments),
    /// Carries out the orders of a run.
    #[command(hide = true)]
    Agent,
    /// Supervises a device for an agent.
    #[command(hide = true)]
    Keep,
    /// Runs the forwarder of the experiments on TOTD, on loopback.
    #[command(hide = true)]
    TotdForwarder(totd_forwarder::ForwarderArguments),
    /// Runs a part of `perf` as a process of its own.
    #[command(hide = true)]
    PerfPart(perf::PartArguments),
}

/// Carries out a command. Exit status: 0 done, 1 failed or "no", 2 wrong usage.
///
/// # Errors
///
/// The text for people if the command has failed: problem, cause and remedy.
pub fn run(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Run(arguments) => arguments.run(),
        Command::Report(arguments) => report::report(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Conform(arguments) => conform::conform(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::Authority(arguments) => authority::run(&arguments),
        Command::Link(arguments) => link::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Perf(arguments) => perf::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Agent => Ok(agent::agent()),
        Command::Keep => Ok(agent::supervise()),
        Command::TotdForwarder(arguments) => totd_forwarder::run(&arguments),
        Command::PerfPart(arguments) => perf::run_part(&arguments),
    }
}
