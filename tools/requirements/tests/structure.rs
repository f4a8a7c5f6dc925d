//! No files of a crate import each other, except those in [`ALLOWED`]. No decision is a counter. The documents for contributors name the crates, their
//! dependencies and the files as they are.

use sixfold_requirements::structure::{self, Allowed};
use sixfold_requirements::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Circles that may stay, each with its reason. `cargo run -p sixfold-requirements -- circles` prints the circles that exist.
const ALLOWED: &[Allowed<'_>] = &[];

#[test]
fn no_files_of_a_crate_import_each_other() {
    let circles = structure::circles(&workspace()).expect("the workspace can be read");
    let faults = structure::faults(&circles, ALLOWED);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Files that may store counters, each with its reason.
#[rustfmt::skip]
const STORING: &[(&str, &str)] = &[
    ("server/datapath/src/socket/send_batch.rs", "the counters of one socket's packets: what is counted, and no decision"),
];

#[test]
fn no_decision_of_the_server_is_a_counter() {
    let faults = structure::counters::faults(&workspace(), STORING).expect("the workspace can be read");
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn document(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The words between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Folders of the workspace's packages, by the names that their manifests use for each other.
fn packages() -> BTreeMap<String, String> {
    let mut packages = BTreeMap::new();
    for part in ["server", "laboratory", "testing", "tools"] {
        for entry in fs::read_dir(workspace().join(part)).expect("a part of the workspace") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            if !entry.path().is_dir() {
                continue;
            }
            packages.insert(name.clone(), format!("{part}/{name}"));
        }
    }
    packages
}

/// Crates of the workspace that a package depends on, tests aside.
fn dependencies(folder: &str, packages: &BTreeMap<String, String>) -> BTreeSet<String> {
    let manifest: toml::Table = document(&format!("{folder}/Cargo.toml")).parse().expect("a manifest");
    let table = manifest.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    // The package of `laboratory/sixfold-bench` has a shorter name in manifests.
    let name = |key: &String| if key == "bench" { "sixfold-bench".to_owned() } else { key.clone() };
    table.keys().map(name).filter(|name| packages.contains_key(name)).collect()
}

#[test]
fn the_table_of_crates_in_architecture_md_agrees_with_the_manifests() {
    let page = document("ARCHITECTURE.md");
    let table =
        page.split("| crate | uses |").nth(1).expect("the table of crates").split("\n\n").next().unwrap();
    let mut told = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let (crates, uses) = row.trim_matches('|').split_once(" | ").expect("two cells");
        let uses: BTreeSet<String> =
            quoted(uses).filter(|word| !word.starts_with('-')).map(str::to_owned).collect();
        told.extend(quoted(crates).map(|name| (name.to_owned(), uses.clone())));
    }
    let packages = packages();
    let real = packages.iter().map(|(name, folder)| (name.clone(), dependencies(folder, &packages)));
    assert_eq!(told, real.collect(), "left: ARCHITECTURE.md, right: the manifests");
}

#[test]
fn every_file_that_the_documents_for_contributors_name_exists() {
    for name in ["CONTRIBUTING.md", "docs/glossary.md"] {
        let text = document(name);
        let is_path = |word: &&str| {
            let ends = [".rs", ".toml", ".txt", ".md", ".jsonl", ".5", ".8", ".1", "/"];
            word.contains('/')
                && !word.contains(['*', ' ', 'X'])
                && ends.iter().any(|end| word.ends_with(end))
        };
        let paths: Vec<&str> = quoted(&text).filter(is_path).collect();
        let missing: Vec<&&str> = paths.iter().filter(|path| !workspace().join(path).exists()).collect();
        assert!(missing.is_empty(), "{name} names files that do not exist: {missing:?}");
        assert!(paths.len() > 10, "{name} names {} files", paths.len());
    }
}
