//! `cargo run -p sixfold-book` checks the links of the documents and lays out the book in target/book, where mdBook builds it:
//! `mdbook build target/book`. `cargo run -p sixfold-book -- site DIR` checks a book that mdBook built.
//! `cargo run -p sixfold-book -- html DIR` lays out the book in DIR and makes the pages for packages in DIR/html, without mdBook.

#![forbid(unsafe_code)]

use sixfold_book::{copies, links, words};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => lay_out(),
        ["site", folder] => report(
            sixfold_book::site::faults(Path::new(folder)).map_err(|error| format!("{folder}: {error}")),
        ),
        ["html", folder] => pages(Path::new(folder)),
        _ => Err("usage: sixfold-book [site DIR | html DIR]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            eprintln!("sixfold-book: {faults}");
            ExitCode::FAILURE
        }
    }
}

fn lay_out() -> Result<(), String> {
    let root = sixfold_book::workspace();
    for faults in [links::faults, copies::faults, words::faults] {
        report(faults(&root).map_err(|error| error.to_string()))?;
    }
    let target = root.join("target/book");
    sixfold_book::stage(&root, &target)?;
    println!("the book is in {}; `mdbook build` there writes html/index.html", target.display());
    Ok(())
}

fn pages(target: &Path) -> Result<(), String> {
    sixfold_book::stage(&sixfold_book::workspace(), target)?;
    sixfold_book::html::write(target)
}

fn report(faults: Result<Vec<String>, String>) -> Result<(), String> {
    let faults = faults?;
    if faults.is_empty() { Ok(()) } else { Err(format!("faults of the documents:\n{}", faults.join("\n"))) }
}
