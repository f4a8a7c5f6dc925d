//! `sixfold check`: prints the effective configuration, or every error.

use crate::cli::Check;
use crate::config::{DEFAULT_PATH, Overrides, load};
use std::io::Write;
use std::process::ExitCode;

/// Runs the command. With exit status 0 the configuration is valid and on standard output.
pub fn run(arguments: &Check) -> ExitCode {
    let loaded = match load(arguments.config.as_deref(), &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(failure) => {
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    };
    for warning in &loaded.warnings {
        eprintln!("sixfold: warning: {warning}");
    }
    let origin = match &loaded.source {
        Some(path) => format!("from {}", path.display()),
        None => format!("the defaults: there is no {DEFAULT_PATH}"),
    };
    let text = format!("# Effective configuration, {origin}.\n\n{}", loaded.config.to_toml());
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sixfold: cannot write the configuration: {error}; look at the target of the output");
            ExitCode::FAILURE
        }
    }
}
