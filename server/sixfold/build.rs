//! Commit for `--version`: from the environment variable SIXFOLD_COMMIT (packagers), else from the checkout, else from the file
//! that `git archive` fills in, else `unknown`. The program git is not needed.

#[path = "build/commit.rs"]
mod commit;

use commit::Reader;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-env-changed=SIXFOLD_COMMIT");
    // At run time: a target folder that several checkouts share has one build script.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let root = Path::new(&package).join("../..");
    let given = std::env::var("SIXFOLD_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let mut reader = Reader::default();
    let commit =
        given.or_else(|| reader.of_checkout(&root.join(".git"))).or_else(|| reader.of_archive(&root));
    for path in &reader.watched {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=SIXFOLD_COMMIT={}", commit.as_deref().map_or("unknown", str::trim));
}
