//! Commit for `--version`: from the environment variable SIXFOLD_COMMIT (packagers build from archives), else from git,
//! else `unknown`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=SIXFOLD_COMMIT");
    let commit = std::env::var("SIXFOLD_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let commit = commit.or_else(from_git).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=SIXFOLD_COMMIT={}", commit.trim());
}

fn from_git() -> Option<String> {
    // Files that a commit or a checkout changes. Only paths that exist: a missing one would cause a rebuild every time.
    let directory = git(&["rev-parse", "--absolute-git-dir"])?;
    for name in ["HEAD", "refs/heads", "packed-refs"] {
        let path = Path::new(&directory).join(name);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--verify", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
