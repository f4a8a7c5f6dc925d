//! What the RFCs ask of a DNS64 server, where this project does it, and which test shows it.
//!
//! `requirements.toml` lists the requirements in our own words. The line that does what one asks has a citation above it,
//! and so has the test that shows it: `//= RFC 6147 section 5.1.2: requirement 4` in Rust ([`citation`]), `# requirement 4` in a
//! scenario. [`tree`] collects them, [`check`] compares them with the list ([`list`]), [`mod@page`] writes `docs/conformance.md`:
//!
//! ```text
//! cargo run -p sixfold-requirements
//! ```
//!
//! A test holds that the page in the repository is what the citations say. Whether a test really shows what it cites is a
//! matter of reading: nothing here can know.

#![forbid(unsafe_code)]

pub mod check;
pub mod citation;
pub mod list;
pub mod page;
pub mod source;
pub mod structure;
pub mod tree;

use std::path::{Path, PathBuf};

/// Where the page lies, from the workspace on.
pub const PAGE: &str = "docs/conformance.md";

/// The folder of the workspace.
pub fn workspace() -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    directory.expect("this package lies one folder below the workspace").to_owned()
}

/// The page as it should be, or everything that is wrong with list and citations.
pub fn page() -> Result<String, Vec<String>> {
    let list =
        list::List::read(include_str!("../requirements.toml")).map_err(|error| vec![error.to_string()])?;
    let evidence = tree::collect(&workspace()).map_err(|error| vec![error.to_string()])?;
    let faults = check::faults(&list, &evidence, &check::cases()?);
    if faults.is_empty() { Ok(page::write(&list, &evidence)) } else { Err(faults) }
}
