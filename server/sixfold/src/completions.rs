//! `sixfold completions`: completions for a shell, from the definitions of the command line.

use crate::cli::{Cli, CompletedShell};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

/// Prints the completions.
pub fn run(shell: CompletedShell) -> ExitCode {
    let shell = match shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Zsh => Shell::Zsh,
        CompletedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sixfold", &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sixfold: cannot write the completions: {error}; look at the target of the output");
            ExitCode::FAILURE
        }
    }
}
