//! Files of the documents, mostly of the recipes in `docs/recipes`, which the tests use as they stand.

use crate::scratch::Scratch;
use std::path::{Path, PathBuf};

/// Root of the source tree.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in the workspace")
}

/// Path of a recipe's file, like `nat64/tayga.conf`.
pub fn recipe(file: &str) -> String {
    document(&format!("recipes/{file}"))
}

/// Path of a document's file, like `troubleshooting/shop.zone`.
pub fn document(file: &str) -> String {
    existing(&workspace().join("docs").join(file))
}

/// Path of a packaged file, like `anycast/sixfold-anycast`.
pub fn packaged(file: &str) -> String {
    existing(&workspace().join("packaging").join(file))
}

fn existing(path: &Path) -> String {
    assert!(path.is_file(), "there is no {}", path.display());
    path.to_string_lossy().into_owned()
}

/// Copies a recipe's file into a folder of the scratch directory, under this name.
pub fn copy_recipe(scratch: &Scratch, file: &str, to: &str) -> PathBuf {
    let path = scratch.path().join(to);
    std::fs::create_dir_all(path.parent().expect("a file is in a folder"))
        .and_then(|()| std::fs::copy(recipe(file), &path))
        .unwrap_or_else(|error| panic!("cannot copy {file} to {}: {error}", path.display()));
    path
}
