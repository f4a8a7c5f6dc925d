//! Traceability of the RFCs' requirements for a DNS64 server: where this project meets each, and which test shows it.
//!
//! `requirements.toml` lists the requirements in our own words. A citation stands above the line that meets a
//! requirement and above the test that shows it: `//= RFC 6147 section 5.1.2: requirement 4` in Rust ([`citation`]),
//! `# requirement 4` in a scenario. [`tree`] collects the citations, [`check`] compares them with the list
//! ([`list`]), [`mod@page`] writes `docs/conformance.md`. Read [`check`] first.
//!
//! ```text
//! cargo run -p sixfold-requirements
//! ```
//!
//! A test checks that the page in the repository agrees with the citations. Only a reader can decide if a test really
//! shows the requirement that it cites.
//!
//! [`structure`] is a second guard: it finds files of a crate that import each other, and decisions that are counters.

#![forbid(unsafe_code)]

pub mod check;
pub mod citation;
pub mod list;
pub mod page;
pub mod source;
pub mod structure;
pub mod tree;

use std::path::{Path, PathBuf};

/// Path of the page, relative to the workspace.
pub const PAGE: &str = "docs/conformance.md";

/// Folder of the workspace.
pub fn workspace() -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    directory.expect("this package lies one folder below the workspace").to_owned()
}

/// Writes the page.
///
/// # Errors
///
/// All faults of list and citations; or the first file that cannot be read.
pub fn page() -> Result<String, Vec<String>> {
    let list =
        list::List::read(include_str!("../requirements.toml")).map_err(|error| vec![error.to_string()])?;
    let evidence = tree::collect(&workspace()).map_err(|error| vec![error.to_string()])?;
    let faults = check::faults(&list, &evidence, &check::cases()?);
    if faults.is_empty() { Ok(page::write(&list, &evidence)) } else { Err(faults) }
}
