//! `cargo run -p sixfold-manual`: writes the generated parts of the documents anew, those of the manual pages, the example with every key,
//! and the tables and charts of figures. `cargo run -p sixfold-manual -- constants` takes the figures of the raw tables over into the file of
//! constants before that.
#![forbid(unsafe_code)]

use sixfold_manual::{figures, pages};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write_all(),
        ["constants"] => write_constants().and_then(|()| write_all()),
        _ => Err("usage: sixfold-manual [constants]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sixfold-manual: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_all() -> Result<(), String> {
    for page in pages() {
        let path = page.path();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = page.rewrite(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        write(&path, &text)?;
    }
    let path = sixfold_manual::example_path();
    write(&path, &sixfold_manual::example().map_err(|error| format!("{}: {error}", path.display()))?)?;
    let root = book::workspace();
    for (path, text) in figures::outdated(&root)? {
        println!("{} is written anew", path.display());
        write(&root.join(path), &text)?;
    }
    let faults = figures::faults(&root)?;
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("figures that a person must change:\n{}", faults.join("\n")))
    }
}

fn write_constants() -> Result<(), String> {
    let root = book::workspace();
    write(&root.join(figures::FILE), &figures::updated(&root)?)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
