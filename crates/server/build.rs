//! Commit for `--version`: from the environment variable SIXFOLD_COMMIT (packagers), else from the checkout, else from the file
//! that `git archive` fills in, else `unknown`. The program git is not needed.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Digits of the commit that are shown.
const DIGITS: usize = 12;

fn main() {
    println!("cargo:rerun-if-env-changed=SIXFOLD_COMMIT");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = std::env::var("SIXFOLD_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let commit = commit.or_else(|| of_checkout(&root.join(".git"))).or_else(|| of_archive(&root));
    println!("cargo:rustc-env=SIXFOLD_COMMIT={}", commit.as_deref().map_or("unknown", str::trim));
}

/// The commit of a checkout: HEAD has it, or names the branch that has it (gitrepository-layout(5)).
fn of_checkout(git: &Path) -> Option<String> {
    let git = directory(git)?;
    // A further work tree shares branches with the first one.
    let common = read_to_string(git.join("commondir")).map_or(git.clone(), |path| git.join(path.trim()));
    let head = watched(&git.join("HEAD"))?;
    let Some(branch) = head.strip_prefix("ref: ").map(str::trim) else { return shortened(&head) };
    let packed = watched(&common.join("packed-refs")).unwrap_or_default();
    watched(&common.join(branch)).and_then(|commit| shortened(&commit)).or_else(|| {
        packed
            .lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(_, name)| *name == branch)
            .and_then(|(commit, _)| shortened(commit))
    })
}

/// The directory with HEAD: `.git` itself, or the one that the file `.git` of a further work tree names.
fn directory(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = read_to_string(git).ok()?;
    Some(git.parent()?.join(text.trim().strip_prefix("gitdir: ")?))
}

fn of_archive(root: &Path) -> Option<String> {
    shortened(&watched(&root.join("packaging/commit"))?)
}

/// The text of a file that a commit or a checkout changes. A missing file is not watched: it would cause a rebuild every time.
fn watched(file: &Path) -> Option<String> {
    let text = read_to_string(file).ok()?;
    println!("cargo:rerun-if-changed={}", file.display());
    Some(text)
}

/// The first digits of a commit; none if the text is not one.
fn shortened(commit: &str) -> Option<String> {
    let commit = commit.trim();
    let is_commit = commit.len() >= 40 && commit.bytes().all(|octet| octet.is_ascii_hexdigit());
    is_commit.then(|| commit[..DIGITS].to_owned())
}
