//! The layers of the engine: a file uses only layers below its own, and methods of `Engine` stand only where the parts meet.
//!
//! Imports alone do not show a call upwards: `self.method()` needs no `use`. So the second rule matters more: a part that cannot
//! say `impl Engine` cannot call what other parts do.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The layers from the ground up: files and folders below `src` that may use all layers before their own.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["limits", "counters"],
    &["reasons"],
    &["message"],
    &["dns64"],
    &["trace"],
    &["interface"],
    &["context"],
    &["answer", "upstream"],
    &["cache", "local"],
    &["rpz"],
    &["client", "settings"],
    &["packet_cache"],
    &["engine"],
    &["resolve", "cache_control"],
    &["query"],
    &["machine"],
    &["explain"],
    &["observed"],
];

/// Files that may have methods of `Engine`, or of `Resolver`, the parts of it: a reader finds the way of a query there, and nowhere else.
const ENGINE: &[&str] = &["engine.rs", "cache_control.rs", "machine.rs", "resolve/driver.rs"];

/// The layer of a file or folder directly below `src`.
fn layer(part: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&part))
}

/// The code of a file: without comments, and without what follows the first `#[cfg(test)]`.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Violations of the layers. `files`: paths below `src` with their texts.
fn violations(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        let part = path.split(['/', '.']).next().unwrap_or_default();
        let Some(own) = layer(part) else {
            found.push(format!("{path}: `{part}` has no layer; give it one in LAYERS (tests/layers.rs)"));
            continue;
        };
        let code = code(text);
        for target in code.split("crate::").skip(1) {
            let target: String = target.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
            match layer(&target) {
                Some(other) if other < own || target == part => {}
                Some(_) => found.push(format!(
                    "{path} uses crate::{target}, which is not below it; move the shared type down, pass a parameter, or return \
                     a value that the caller acts on"
                )),
                None => found.push(format!(
                    "{path} uses crate::{target}; name the file that defines it, one path for each `use`"
                )),
            }
        }
        if code.contains("super::super") {
            found.push(format!("{path} uses super::super; write the path from `crate`"));
        }
        let has_methods = ["impl Engine", "impl Resolver"].iter().any(|text| code.contains(text));
        if has_methods && !ENGINE.contains(&path.as_str()) {
            found.push(format!(
                "{path} has methods of Engine; make them functions on the parts that they need, and call them from resolve/driver.rs"
            ));
        }
    }
    found
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{path}/"), files);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && path != "lib.rs" {
            files.insert(path, fs::read_to_string(entry.path()).expect("a readable file"));
        }
    }
}

#[test]
fn every_file_uses_only_the_layers_below_its_own() {
    let mut files = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    assert!(files.len() > 60, "only {} files found", files.len());
    let found = violations(&files);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn each_kind_of_violation_is_found_and_what_is_allowed_is_not() {
    let file = |path: &str, text: &str| BTreeMap::from([(path.to_owned(), text.to_owned())]);
    for (path, text, expected) in [
        ("upstream/send.rs", "use crate::cache::Cache;\n", "not below it"),
        ("cache/mod.rs", "fn f(w: crate::client::PendingQuery) {}\n", "not below it"),
        ("client/quota.rs", "use crate::settings::Settings;\n", "not below it"),
        ("upstream/send.rs", "use crate::Counters;\n", "name the file"),
        ("rpz/table.rs", "use crate::{dns64, message};\n", "name the file"),
        ("local/record.rs", "use super::super::rpz::Rule;\n", "super::super"),
        ("upstream/retry.rs", "impl Engine {}\n", "methods of Engine"),
        ("resolve/rpz.rs", "impl Resolver {}\n", "methods of Engine"),
        ("helpers.rs", "\n", "has no layer"),
    ] {
        let found = violations(&file(path, text));
        assert!(found.len() == 1 && found[0].contains(expected), "{path}: {found:?}");
    }
    for (path, text) in [
        (
            "resolve/driver.rs",
            "use crate::upstream::Upstream;\nuse crate::resolve::join;\nimpl Resolver {}\n",
        ),
        ("upstream/send.rs", "// crate::client\nuse crate::base::time::Instant;\n"),
        ("base/slab.rs", "\n#[cfg(test)]\nmod tests {\n    use crate::upstream::links::Links;\n}\n"),
    ] {
        assert_eq!(violations(&file(path, text)), [""; 0]);
    }
}
