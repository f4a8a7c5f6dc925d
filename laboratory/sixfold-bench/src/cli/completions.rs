//! `sixfold-bench completions`: completions for a shell, from the definitions of the command line.

use super::Cli;
use super::report::print;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::process::ExitCode;

const HELP: &str = "\
Exit status: 0 success, 1 the completions cannot be written, 2 wrong usage.

Example: completions for bash, for all users:
  sixfold-bench completions bash > /usr/share/bash-completion/completions/sixfold-bench";

/// `sixfold-bench completions`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: CompletedShell,
}

/// Shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompletedShell {
    /// In /usr/share/bash-completion/completions/sixfold-bench
    Bash,
    /// In /usr/share/zsh/vendor-completions/_sixfold-bench
    Zsh,
    /// In /usr/share/fish/vendor_completions.d/sixfold-bench.fish
    Fish,
}

/// Prints the completions.
///
/// # Errors
///
/// Standard output cannot be written.
pub fn run(arguments: &CompletionsArguments) -> Result<ExitCode, String> {
    let shell = match arguments.shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Zsh => Shell::Zsh,
        CompletedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sixfold-bench", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
