//! Writes `docs/conformance.md`, or prints the faults of list and citations. With the argument `circles`: prints the import
//! circles of all crates.

#![forbid(unsafe_code)]

use sixfold_requirements::{PAGE, page, structure, workspace};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write_page(),
        ["circles"] => print_circles(),
        _ => Err(vec!["unknown argument; use none, or `circles`".to_owned()]),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            for fault in faults {
                eprintln!("sixfold-requirements: {fault}");
            }
            ExitCode::FAILURE
        }
    }
}

fn write_page() -> Result<(), Vec<String>> {
    let file = workspace().join(PAGE);
    std::fs::write(&file, page()?).map_err(|error| vec![format!("{}: {error}", file.display())])
}

fn print_circles() -> Result<(), Vec<String>> {
    let circles = structure::circles(&workspace()).map_err(|error| vec![error.to_string()])?;
    for circle in &circles {
        println!("{circle}");
    }
    println!("circles: {}", circles.len());
    Ok(())
}
