//! Differential run: the same names through Sixfold, Unbound, BIND, PowerDNS Recursor and Knot Resolver, as far as
//! this machine has them. Prints a table. The exit status is 1 if an answer differs from Sixfold's and no numbered
//! disagreement (docs/disagreements.md) explains it.

#![forbid(unsafe_code)]

use clap::Parser;
use conform::differential::quirk::Server;
use sixfold_interop::Installed;
use sixfold_interop::differential::compare;
use std::process::ExitCode;

/// Queries Sixfold and other DNS64 servers for the same names and explains every difference.
///
/// Example: cargo run -p sixfold-interop --bin differential -- --names 10000 --seed 7
#[derive(Parser)]
struct Options {
    /// Number of names.
    #[arg(long, default_value_t = 10_000)]
    names: usize,
    /// Seed for drawing the names: the same seed draws the same names.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Let no upstream be silent: saves the seconds that servers wait.
    #[arg(long)]
    no_silence: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    for server in [Server::Sixfold].into_iter().chain(Server::OTHERS) {
        let installed = Installed::here(server);
        if installed.missing().is_none() {
            println!("{}: {}", server.name(), installed.version());
        }
    }
    match compare(options.names, options.seed, !options.no_silence) {
        Ok(outcome) => {
            print!("{outcome}");
            ExitCode::from(u8::from(!outcome.is_explained()))
        }
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::FAILURE
        }
    }
}
