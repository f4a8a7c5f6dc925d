//! Writes `docs/conformance.md`, or says what is wrong with the citations.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let page = match sixfold_requirements::page() {
        Ok(page) => page,
        Err(faults) => {
            for fault in faults {
                eprintln!("sixfold-requirements: {fault}");
            }
            return ExitCode::FAILURE;
        }
    };
    let file = sixfold_requirements::workspace().join(sixfold_requirements::PAGE);
    match std::fs::write(&file, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sixfold-requirements: {}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
