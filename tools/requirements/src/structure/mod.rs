//! Import circles: files of one crate that need each other, so that none of them can be read or tested alone.
//!
//! An edge leads from file to file for each path, in a `use` line or elsewhere, that begins with `crate`, `super`, `self`, a child
//! module or an imported name. A path to a re-export leads to the file that the name comes from. Comments, literals and items
//! under `#[cfg(test)]` do not count. Neither do paths between a module and the modules below it: a `mod.rs` lists its children,
//! and they may use its types. A glob import leads to the module that it names; macros are not expanded, and a method call is
//! not seen.
//!
//! Read [`circles_in`] first. [`modules`] follows paths, [`lexer`] splits a file into words. [`counters`] is another check of the same
//! files: no decision is a counter.

pub mod counters;
pub mod lexer;
pub mod modules;
#[cfg(test)]
mod tests;

use modules::{Module, Modules};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fmt, fs, io};

/// Ways to end a circle.
const REMEDY: &str = "move the shared type into a leaf file below both, pass a parameter, or return a value instead of \
                      calling up";

/// Files that need each other.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// Folder of the crate: `server/wire`.
    pub folder: String,
    /// Files below `src` with a space between them: `message.rs walk.rs`.
    pub files: String,
    /// One line for each edge: `message.rs -> walk.rs (crate::walk::Records)`.
    pub edges: Vec<String>,
}

/// A circle that stays: folder, files, reason.
pub type Allowed<'a> = (&'a str, &'a str, &'a str);

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    {}", self.folder, self.files, self.edges.join("\n    "))
    }
}

/// Finds the circles of all crates of the workspace.
///
/// # Errors
///
/// The error of a folder or file that cannot be read.
pub fn circles(workspace: &Path) -> io::Result<Vec<Circle>> {
    let mut found = Vec::new();
    for parent in ["server", "laboratory", "testing", "tools"] {
        for (folder, files) in crates(workspace, parent)? {
            found.extend(circles_in(&folder, &files));
        }
    }
    found.sort_by(|one, other| (&one.folder, &one.files).cmp(&(&other.folder, &other.files)));
    Ok(found)
}

/// Folders of the crates of a part of the workspace, with the texts of the files below their `src`.
fn crates(workspace: &Path, part: &str) -> io::Result<Vec<(String, BTreeMap<String, String>)>> {
    let mut crates = Vec::new();
    let folders = fs::read_dir(workspace.join(part))?.collect::<io::Result<Vec<_>>>()?;
    for folder in folders.iter().filter(|folder| folder.path().join("Cargo.toml").exists()) {
        let mut files = BTreeMap::new();
        let source = folder.path().join("src");
        if source.is_dir() {
            read(&source, "", &mut files)?;
        }
        crates.push((format!("{part}/{}", folder.file_name().display()), files));
    }
    Ok(crates)
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = format!("{prefix}{}", path.file_name().unwrap_or_default().display());
        if path.is_dir() {
            read(&path, &format!("{name}/"), files)?;
        } else if name.ends_with(".rs") {
            files.insert(name, fs::read_to_string(path)?);
        }
    }
    Ok(())
}

/// Compares the circles with the allowed ones: a message for each new circle, and for each entry without a circle.
pub fn faults(circles: &[Circle], allowed: &[Allowed<'_>]) -> Vec<String> {
    let fits = |circle: &Circle, (folder, files, _): &Allowed<'_>| {
        circle.folder == *folder && circle.files == *files
    };
    let new = circles.iter().filter(|circle| !allowed.iter().any(|entry| fits(circle, entry)));
    let gone = allowed.iter().filter(|entry| !circles.iter().any(|circle| fits(circle, entry)));
    let new =
        new.map(|circle| format!("these files import each other: {circle}\n  To end the circle, {REMEDY}."));
    let gone = gone
        .map(|(folder, files, _)| format!("{folder}: {files} is no circle now; delete its entry in ALLOWED"));
    new.chain(gone).collect()
}

/// Finds the circles of one crate; `files` has the text of every file below its `src`.
pub fn circles_in(folder: &str, files: &BTreeMap<String, String>) -> Vec<Circle> {
    let mut circles = Vec::new();
    for root in files.keys() {
        let parts: Vec<&str> = root.split('/').collect();
        if !matches!(parts[..], ["lib.rs" | "main.rs"] | ["bin", _] | ["bin", _, "main.rs"]) {
            continue;
        }
        let modules = Modules::read(root, files);
        let edges = edges(&modules);
        circles.extend(groups(&edges).iter().map(|members| describe(folder, &modules, &edges, members)));
    }
    circles
}

fn describe(folder: &str, modules: &Modules, edges: &Edges, members: &BTreeSet<&Module>) -> Circle {
    let files: Vec<&str> = members.iter().map(|module| modules.files[*module].as_str()).collect();
    let mut lines = Vec::new();
    for from in members {
        for (to, paths) in edges[*from].iter().filter(|(to, _)| members.contains(to)) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            lines.push(format!("{} -> {} ({})", modules.files[*from], modules.files[to], paths.join(", ")));
        }
    }
    Circle { folder: folder.to_owned(), files: files.join(" "), edges: lines }
}

/// From module to module, with the paths that lead there.
type Edges = BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>;

fn edges(modules: &Modules) -> Edges {
    let mut edges = Edges::new();
    for (module, paths) in &modules.paths {
        let targets = edges.entry(module.clone()).or_default();
        for path in paths {
            let target = modules.resolve(module, path);
            if let Some(target) = target.filter(|it| !it.starts_with(module) && !module.starts_with(it)) {
                targets.entry(target).or_default().insert(path.join("::"));
            }
        }
    }
    edges
}

/// Modules that reach each other; a module that does not reach itself is in no group.
fn groups(edges: &Edges) -> BTreeSet<BTreeSet<&Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        edges.keys().map(|from| (from, reached(edges, from))).collect();
    let mut groups = BTreeSet::new();
    for (from, targets) in &reached {
        groups.insert(targets.iter().copied().filter(|target| reached[*target].contains(*from)).collect());
    }
    groups.remove(&BTreeSet::new());
    groups
}

fn reached<'e>(edges: &'e Edges, from: &'e Module) -> BTreeSet<&'e Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(edges[module].keys().filter(|target| reached.insert(*target)));
    }
    reached
}
