//! Measured figures in documents, from one file of constants: `docs/constants.toml`.
//!
//! - The constants with a `source` are the medians of the page of raw tables ([`Constants::updated`]).
//! - A page has tables between `<!-- computed: NAME -->` and `<!-- end -->` ([`computed::rewrite`]), and charts ([`chart_files`]).
//! - A paragraph behind `<!-- quotes: PATH ... -->` has no other numbers than those of the constants that it names ([`quotes::faults`]).
//!
//! First file to read: `constants.rs`, then `quotes.rs`.

pub mod computed;
mod constants;
mod derived;
mod number;
pub mod quotes;
mod raw;
mod tables;

pub use constants::{Constants, FILE, RAW};

use report::BarChart;
use std::path::{Path, PathBuf};

/// Charts of the page for users: file, section of the constants, heading, divisor of its figures.
const CHARTS: [(&str, &str, &str, f64); 2] = [
    (
        "docs/performance-cached.svg",
        "cached.closed",
        "CPU time per answer from the cache, microseconds: shorter is better",
        1.0,
    ),
    (
        "docs/performance-lossless.svg",
        "lossless.rate",
        "Rate without loss, thousand queries/s: longer is better",
        1e3,
    ),
];

/// Pages on which every number must be quoted or computed.
const STRICT: [&str; 1] = ["docs/performance.md"];

/// The constants of the source tree.
///
/// # Errors
///
/// The file cannot be read, or is not TOML.
pub fn constants(root: &Path) -> Result<Constants, String> {
    Constants::read(&read(root, Path::new(FILE))?)
}

/// Charts with their files.
///
/// # Errors
///
/// A section of a chart has no figures.
pub fn chart_files(constants: &Constants) -> Result<Vec<(PathBuf, String)>, String> {
    let chart =
        |(file, section, title, divisor): (&str, &str, &str, f64)| -> Result<(PathBuf, String), String> {
            let bars = tables::medians(constants, section)?;
            let bars = bars.into_iter().map(|(name, value)| (name, value / divisor)).collect();
            Ok((PathBuf::from(file), BarChart { title: title.to_owned(), bars }.svg()))
        };
    CHARTS.into_iter().map(chart).collect()
}

/// Files that differ from what the constants say, with the text that they should have.
///
/// # Errors
///
/// A file cannot be read, or a table cannot be computed. The text names the file.
pub fn outdated(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let constants = constants(root)?;
    let mut outdated = Vec::new();
    for path in pages(root)? {
        let text = read(root, &path)?;
        let new =
            computed::rewrite(&text, &constants).map_err(|fault| format!("{}: {fault}", path.display()))?;
        if new != text {
            outdated.push((path, new));
        }
    }
    for (path, svg) in chart_files(&constants)? {
        if read(root, &path).ok().as_deref() != Some(svg.as_str()) {
            outdated.push((path, svg));
        }
    }
    Ok(outdated)
}

/// Numbers of the documents that are not those of the constants: file, line, fault.
///
/// # Errors
///
/// A file cannot be read, or the constants are not TOML.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let constants = constants(root)?;
    let mut faults = Vec::new();
    for path in pages(root)? {
        let text = read(root, &path)?;
        let is_strict = STRICT.iter().any(|strict| Path::new(strict) == path);
        let found = quotes::faults(&text, &constants, is_strict);
        faults.extend(found.iter().map(|(line, fault)| format!("{}:{line}: {fault}", path.display())));
    }
    Ok(faults)
}

/// The file of constants, with the figures of the raw tables.
///
/// # Errors
///
/// A file cannot be read, or as [`Constants::updated`].
pub fn updated(root: &Path) -> Result<String, String> {
    Constants::updated(&read(root, Path::new(FILE))?, &read(root, Path::new(RAW))?)
}

fn pages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let files = book::files(root, Path::new("")).map_err(|error| error.to_string())?;
    Ok(files.into_iter().filter(|path| book::is_page(path)).collect())
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|error| format!("{}: {error}", path.display()))
}
