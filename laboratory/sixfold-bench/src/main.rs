//! The `sixfold-bench` binary: the laboratory for DNS64 servers. Each subcommand is a file in `cli`.
#![forbid(unsafe_code)]

use clap::Parser;
use sixfold_bench::cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run(cli::Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sixfold-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
