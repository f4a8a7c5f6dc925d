//! Citations of the whole workspace: Rust of the server, the laboratory and the tests, and the scenarios.

use crate::citation::Citation;
use crate::source;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Depth limit of folders; ours are at most six deep.
const DEPTH: usize = 12;

/// A place that cites requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the file from the workspace, with slashes.
    pub file: String,
    /// Item of a Rust file; empty for a scenario, which shows one thing as a whole.
    pub item: String,
    /// RFC in the citation; empty for a scenario.
    pub rfc: String,
    /// Number of the requirement.
    pub number: String,
    /// True for a test, which shows the requirement; false for code that meets it.
    pub is_test: bool,
}

/// Reason why the tree cannot be read.
#[derive(Debug)]
pub enum Error {
    /// A file or folder cannot be read.
    Io(PathBuf, std::io::Error),
    /// A line begins like a citation but is malformed; the text shows the right form.
    Citation(String, String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(path, error) => {
                write!(f, "{}: {error}; run this inside the repository", path.display())
            }
            Error::Citation(file, fault) => write!(f, "{file}: {fault}"),
        }
    }
}

impl std::error::Error for Error {}

/// All places, in the order of their files, each requirement at most once for an item.
///
/// # Errors
///
/// `Error::Io`: a file or folder cannot be read. `Error::Citation`: a citation is malformed, or belongs to no item.
pub fn collect(workspace: &Path) -> Result<Vec<Place>, Error> {
    let mut files = Vec::new();
    for folder in ["server", "laboratory", "testing", "scenarios"] {
        find(&workspace.join(folder), DEPTH, &mut files)?;
    }
    files.sort();
    let mut places: Vec<Place> = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|error| Error::Io(path.clone(), error))?;
        let parts = path.strip_prefix(workspace).unwrap_or(&path).components();
        let parts: Vec<String> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let file = parts.join("/");
        for place in in_file(&file, &text)? {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    let failed = |error| Error::Io(folder.to_owned(), error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            find(&path, depth, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "txt") {
            files.push(path);
        }
    }
    Ok(())
}

fn in_file(file: &str, text: &str) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    let mut add = |citation: &Citation, item: &str, is_test| {
        for number in &citation.numbers {
            let (file, item, rfc) = (file.to_owned(), item.to_owned(), citation.rfc.clone());
            places.push(Place { file, item, rfc, number: number.clone(), is_test });
        }
    };
    if file.starts_with("scenarios/") {
        for line in text.lines() {
            if let Some(citation) = Citation::in_scenario(line) {
                add(&citation, "", true);
            }
        }
        return Ok(places);
    }
    if file.ends_with(".rs") {
        let cited = source::read(text).map_err(|fault| Error::Citation(file.to_owned(), fault))?;
        for cited in cited {
            add(&cited.citation, &cited.item, cited.is_test);
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_shows_and_a_function_does() {
        let scenario =
            in_file("scenarios/real.txt", "# What.\n# requirements 3, 4\n\nclient asks\n").unwrap();
        let shown: Vec<_> = scenario.iter().map(|place| (&place.number[..], place.is_test)).collect();
        assert_eq!(shown, [("3", true), ("4", true)]);
        let text = "//= RFC 6147 section 5.1.1: requirement 3\nfn judge() {}\n";
        let code = in_file("server/engine/src/settle.rs", text).unwrap();
        assert_eq!(
            (&code[0].item[..], &code[0].rfc[..], code[0].is_test),
            ("judge", "RFC 6147 section 5.1.1", false)
        );
        assert_eq!(in_file("conformance/own/known-failures.txt", "# requirement 3\n").unwrap(), []);
    }
}
