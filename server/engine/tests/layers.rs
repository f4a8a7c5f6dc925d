//! The layers of the engine: a file uses only layers below its own, and methods of `Engine` stand only where the parts meet.
//!
//! Imports alone do not show a call upwards: `self.method()` needs no `use`. So the second rule matters more: a part that cannot
//! say `impl Engine` cannot call what other parts do. `Upstream` is one part, and its files have methods of it; so they have an order of
//! their own, and form no circle of such calls.

use std::collections::{BTreeMap, BTreeSet};
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
    &["answer", "upstream", "needs"],
    &["cache", "local", "validator"],
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
const ENGINE: &[&str] = &[
    "engine.rs",
    "cache_control.rs",
    "machine.rs",
    "resolve/driver.rs",
    "resolve/validate.rs",
    "resolve/signature_checks.rs",
    "resolve/zone_searches.rs",
];

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

/// The text of a file's blocks `impl Upstream`.
fn upstream_methods(code: &str) -> String {
    let mut is_inside = false;
    let mut is_of_block = |line: &&str| {
        is_inside = if is_inside { *line != "}" } else { *line == "impl Upstream {" };
        is_inside
    };
    code.lines().filter(|line| is_of_block(line)).collect::<Vec<_>>().join("\n")
}

/// The word at the start of a text.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Methods that the text of a block defines.
fn defined(block: &str) -> BTreeSet<&str> {
    let is_item = |line: &&str| line.starts_with("    ") && !line.starts_with("     ");
    let names = block.lines().filter(is_item).filter_map(|line| line.split_once("fn "));
    names.map(|(_, name)| word(name)).collect()
}

/// Methods that the text of a block calls through `self`.
fn called(block: &str) -> BTreeSet<String> {
    let dense: String = block.chars().filter(|c| !c.is_whitespace()).collect();
    let calls = dense.split("self.").skip(1).filter(|call| call[word(call).len()..].starts_with('('));
    calls.map(|call| word(call).to_owned()).collect()
}

/// Calls of methods of `Upstream` between files that are part of a circle, or lie between two: `from -> to: method`.
fn circle(files: &BTreeMap<String, String>) -> Vec<String> {
    let blocks: BTreeMap<&String, String> =
        files.iter().map(|(path, text)| (path, upstream_methods(&code(text)))).collect();
    let mut calls: Vec<(&String, &String, String)> = Vec::new();
    for (&from, block) in &blocks {
        for method in called(block) {
            let homes =
                blocks.iter().filter(|(to, block)| **to != from && defined(block).contains(method.as_str()));
            calls.extend(homes.map(|(&to, _)| (from, to, method.clone())));
        }
    }
    // A file that calls no other, or that no other calls, is part of no circle.
    loop {
        let callers: BTreeSet<&String> = calls.iter().map(|&(from, _, _)| from).collect();
        let callees: BTreeSet<&String> = calls.iter().map(|&(_, to, _)| to).collect();
        let before = calls.len();
        calls.retain(|(from, to, _)| callees.contains(from) && callers.contains(to));
        if calls.len() == before {
            return calls.iter().map(|(from, to, method)| format!("{from} -> {to}: {method}")).collect();
        }
    }
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

/// The files of the engine.
fn sources() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    assert!(files.len() > 60, "only {} files found", files.len());
    files
}

#[test]
fn every_file_uses_only_the_layers_below_its_own() {
    let files = sources();
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

#[test]
fn the_files_of_upstream_call_each_other_in_no_circle() {
    let found = circle(&sources());
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// A block with one method.
fn block(method: &str, calls: &str) -> String {
    format!("impl Upstream {{\n    pub fn {method}(&self) {{\n        {calls}\n    }}\n}}\n")
}

#[test]
fn a_circle_of_calls_is_found_and_a_call_in_one_direction_is_not() {
    let files = |connects: &str| {
        let blocks = [
            ("upstream/connect.rs", block("open", connects)),
            ("upstream/retry.rs", block("retry", "self.send()")),
            ("upstream/send.rs", block("send", "self\n            .open()")),
        ];
        BTreeMap::from(blocks.map(|(path, text)| (path.to_owned(), text)))
    };
    assert_eq!(circle(&files("self.links.send(); out.send() // self.send()")), [""; 0]);
    assert_eq!(
        circle(&files("self.send()")),
        ["upstream/connect.rs -> upstream/send.rs: send", "upstream/send.rs -> upstream/connect.rs: open"]
    );
    // One call more in the real files.
    let mut sources = sources();
    let lowest = sources.get_mut("upstream/connect.rs").expect("a file");
    lowest.push_str(&block("planted", "self.receive()"));
    let found = circle(&sources);
    assert!(found.iter().any(|call| call == "upstream/connect.rs -> upstream/receive.rs: receive"));
}
