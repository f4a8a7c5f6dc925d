//! Checks of `docs/attacks.md`: the page names a test for every attack, and each test and file that it names exists. The tests
//! that `docs/outages.md` names exist, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Minimum number of rows of the page.
const ROWS: usize = 60;
/// Maximum number of lines between `#[test]` and the name of the function.
const ATTRIBUTES: usize = 6;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of all tables, split into cells.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let cells = lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    cells.filter(|cells| cells[0] != "attack").collect()
}

/// The texts between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Collects the names of all tests below a folder.
fn tests_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a readable file");
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for at in (0..lines.len()).filter(|&at| lines[at] == "#[test]") {
                let name = lines[at..].iter().take(ATTRIBUTES).find_map(|line| line.strip_prefix("fn "));
                let name = name.and_then(|rest| rest.split('(').next()).expect("a test has a name");
                found.insert(name.to_owned());
            }
        }
    }
}

/// The names of all tests of the project.
fn all_tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for folder in ["server", "laboratory", "testing"] {
        tests_below(&root().join(folder), &mut tests);
    }
    assert!(tests.len() > 300, "only {} tests found", tests.len());
    tests
}

/// The faults of a page, given the names of all tests.
fn faults(page: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut faults = vec![];
    for cells in rows(page) {
        let [attack, reference, _, stands, shown] = cells[..] else {
            faults.push(format!("{:?} has {} cells", cells[0], cells.len()));
            continue;
        };
        if reference.is_empty() || quoted(shown).next().is_none() {
            faults.push(format!("{attack}: without reference or test"));
        }
        let files =
            quoted(stands).chain(quoted(shown)).filter(|word| word.contains('/') && word.contains('.'));
        for file in files.filter(|file| !file.contains(':') && !root().join(file).is_file()) {
            // An address prefix has a slash and a dot too.
            if file.ends_with(".rs") || file.ends_with(".txt") || file.ends_with(".md") {
                faults.push(format!("{attack}: there is no {file}"));
            }
        }
        for name in quoted(shown).filter(|word| !word.contains('/')) {
            if !tests.contains(name) {
                faults.push(format!("{attack}: there is no test {name}"));
            }
        }
    }
    faults
}

#[test]
fn every_attack_on_the_page_has_a_test_that_exists() {
    let page = fs::read_to_string(root().join("docs/attacks.md")).expect("docs/attacks.md");
    let faults = faults(&page, &all_tests());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let rows = rows(&page);
    assert!(rows.len() >= ROWS, "{} rows", rows.len());
    let names: BTreeSet<_> = rows.iter().map(|cells| cells[0]).collect();
    assert_eq!(names.len(), rows.len(), "an attack is listed twice");
}

#[test]
fn every_kind_of_outage_on_the_page_has_a_test_that_exists() {
    let page = fs::read_to_string(root().join("docs/outages.md")).expect("docs/outages.md");
    let tests = all_tests();
    let rows = rows(&page);
    let missing: Vec<_> = rows
        .iter()
        .filter(|cells| cells[0] != "upstreams")
        .filter(|cells| {
            cells.len() != 2 || !quoted(cells[1]).all(|name| tests.contains(name)) || !cells[1].contains('`')
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(rows.len() > 12, "{} rows", rows.len());
}

#[test]
fn missing_files_and_tests_are_faults_of_the_page() {
    let tests = BTreeSet::from(["a_test".to_owned()]);
    let good = "| An attack, 2020 | CVE-2020-1 | harm | `docs/attacks.md` | `a_test` |";
    assert_eq!(faults(good, &tests), [""; 0]);
    for (from, to) in [
        ("`a_test`", "`another_test`"),
        ("`a_test`", ""),
        ("`a_test`", "`scenarios/nothing.txt`"),
        ("docs/attacks.md", "docs/nothing.md"),
        (" CVE-2020-1 ", "  "),
        ("harm", "harm | and more"),
    ] {
        assert_eq!(faults(&good.replace(from, to), &tests).len(), 1, "{from} -> {to}");
    }
}
