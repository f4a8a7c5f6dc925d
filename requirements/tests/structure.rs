//! No files of a crate import each other, except those in [`ALLOWED`].

use sixfold_requirements::structure::{self, Allowed};

/// Circles that may stay, each with its reason. `cargo run -p sixfold-requirements -- circles` prints the circles that exist.
#[rustfmt::skip]
const ALLOWED: &[Allowed<'_>] = &[
    ("crates/wire", "message.rs walk.rs", "a parser and the message that it returns are one idea"),
];

#[test]
fn no_files_of_a_crate_import_each_other() {
    let circles = structure::circles(&sixfold_requirements::workspace()).expect("the workspace can be read");
    let faults = structure::faults(&circles, ALLOWED);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
