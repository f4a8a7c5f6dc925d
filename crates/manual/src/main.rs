//! `cargo run -p sixfold-manual`: writes the generated parts of the manual pages anew, and the example with every key.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    for page in sixfold_manual::pages() {
        let path = page.path();
        let written = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| page.rewrite(&text))
            .and_then(|text| std::fs::write(&path, text).map_err(|error| error.to_string()));
        if let Err(error) = written {
            eprintln!("sixfold-manual: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    let path = sixfold_manual::example_path();
    let written = sixfold_manual::example()
        .and_then(|text| std::fs::write(&path, text).map_err(|error| error.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sixfold-manual: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
