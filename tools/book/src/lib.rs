//! The book: checks of the documents' links, and the source that mdBook builds.
//!
//! The documents are Markdown files that a reader may also open one by one: their links lead through the source tree. mdBook
//! knows one folder only and leaves links alone. So [`stage()`] lays out a copy: the chapters of `docs/SUMMARY.md`, with links
//! that hold in the book, and reference chapters made from the manual pages. [`links::faults`] checks the documents in the source
//! tree, [`copies::faults`] the files that pages show, [`words::faults`] words that a page must not have, and [`site::faults`] the
//! pages that mdBook built. Packages have pages without scripts, which need no mdBook: [`html::write`] makes them from the same copy.

#![forbid(unsafe_code)]

pub mod copies;
mod entries;
pub mod html;
pub mod links;
mod manual;
mod page;
pub mod site;
pub mod stage;
pub mod words;

pub use entries::{Entry, entries, keys};
pub use page::Page;
pub use stage::stage;

use std::path::{Component, Path, PathBuf};

/// Root of the source tree.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is in the workspace")
        .to_owned()
}

/// Path with its `.` and `..` carried out. `None`: it leads out of the folder that it starts from.
pub fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir if normal.pop() => {}
            _ => return None,
        }
    }
    Some(normal)
}

/// Files below a folder of `root`, relative to `root`, sorted. Folders of the build and of version control are left out.
///
/// # Errors
///
/// The error of a folder that cannot be read, such as one that does not exist.
pub fn files(root: &Path, folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let is_left_out =
                path == Path::new("target") || entry.file_name().to_string_lossy().starts_with('.');
            match entry.file_type()? {
                _ if is_left_out => {}
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// True for a Markdown file.
pub fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}
