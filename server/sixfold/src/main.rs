//! The `sixfold` command.
#![forbid(unsafe_code)]

use sixfold::cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::read().command {
        Command::Check(arguments) => sixfold::check::run(&arguments),
        Command::Convert(arguments) => sixfold::conversion::run(&arguments),
        Command::Plan(arguments) => sixfold::planning::run(&arguments),
        Command::Serve(arguments) => {
            sixfold::panic::end_process_on_panic();
            sixfold::serve::run(&arguments)
        }
        Command::Doctor(arguments) => sixfold::doctor::run(&arguments),
        Command::Ctl(arguments) => sixfold::ctl::run(&arguments),
        Command::Completions { shell } => sixfold::completions::run(shell),
        Command::Launcher(arguments) => {
            sixfold::upgrade::launcher::run(&arguments.program, &arguments.arguments)
        }
    }
}
