//! The list of bugs: `testing/sim/mutants.txt`.

use std::path::{Path, PathBuf};

/// A bug.
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// Arguments of `cargo` for the tests that must fail. None: the simulator, then the tests of the engine and what it stands on.
    pub(crate) tests: Option<String>,
    pub(crate) changes: Vec<Change>,
}

/// A change of the source.
pub(crate) struct Change {
    /// The file, or a folder above it.
    pub(crate) place: String,
    /// The text that stands there once.
    pub(crate) old: String,
    pub(crate) new: String,
}

/// Parses the list of bugs.
pub(crate) fn parse_list(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = vec![];
    for (line, number) in text.lines().zip(1..) {
        let wrong = || format!("mutants.txt: line {number}: {line:?} is out of place");
        let mutant = mutants.last_mut();
        match line.split_at_checked(2) {
            _ if line.is_empty() || line.starts_with('#') => {}
            Some(("@ ", place)) => {
                let change = Change { place: place.to_owned(), old: String::new(), new: String::new() };
                mutant.ok_or_else(wrong)?.changes.push(change);
            }
            Some(("- ", old)) => {
                mutant.and_then(|mutant| mutant.changes.last_mut()).ok_or_else(wrong)?.old = old.to_owned();
            }
            Some(("+ ", new)) => {
                mutant.and_then(|mutant| mutant.changes.last_mut()).ok_or_else(wrong)?.new = new.to_owned();
            }
            Some(("$ ", command)) => {
                let tests = command.strip_prefix("cargo ").filter(|words| words.starts_with("test "));
                mutant.ok_or_else(wrong)?.tests = Some(tests.ok_or_else(wrong)?.to_owned());
            }
            _ => {
                let (name, _) = line.split_once(": ").ok_or_else(wrong)?;
                mutants.push(Mutant { name: name.to_owned(), tests: None, changes: vec![] });
            }
        }
    }
    Ok(mutants)
}

/// The source files at or below `place`, with their texts.
fn sources(place: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    if place.is_file() {
        return Ok(vec![(place.to_owned(), read_file(place)?)]);
    }
    let entries = std::fs::read_dir(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut files = vec![];
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            files.extend(sources(&path)?);
        }
    }
    Ok(files)
}

/// The one file at or below the place of a change that contains its old text exactly once, and where the text begins. The old text must be
/// in no other file there.
pub(crate) fn find(root: &Path, change: &Change) -> Result<(PathBuf, usize), String> {
    let mut found = vec![];
    for (path, text) in sources(&root.join(&change.place))? {
        found.extend(text.match_indices(&change.old).map(|(start, _)| (path.clone(), start)));
    }
    match found.pop() {
        Some(place) if found.is_empty() => Ok(place),
        last => {
            let count = found.len() + usize::from(last.is_some());
            Err(format!("{:?} is {count} times in {}", change.old, change.place))
        }
    }
}

pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_may_name_the_tests_that_find_it_and_nothing_but_tests() {
        let entry = |command| format!("much: too much\n$ {command}\n@ server\n- 1\n+ 2\n");
        let mutants = parse_list(&entry("cargo test -p sixfold-datapath --lib overload")).unwrap();
        assert_eq!(mutants[0].tests.as_deref(), Some("test -p sixfold-datapath --lib overload"));
        for command in ["cargo build", "rm -r /"] {
            assert!(parse_list(&entry(command)).is_err_and(|error| error.contains("line 2")), "{command}");
        }
    }

    #[test]
    fn the_text_of_every_mutant_stands_once_where_it_is_looked_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutants = parse_list(&read_file(&root.join("testing/sim/mutants.txt")).unwrap()).unwrap();
        assert!(mutants.len() >= 114, "{} bugs", mutants.len());
        let errors: Vec<String> = mutants
            .iter()
            .flat_map(|mutant| &mutant.changes)
            .filter_map(|change| find(&root, change).err())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
