//! Generated parts of documents, each from one source: the manual pages and `--help` from the definitions of the command line,
//! sixfold.toml(5) from the table of keys, figures in Markdown pages from the file of constants ([`figures`]).
//!
//! A page is written by hand, but for its version and for blocks between comments `.\" generated: ...` and `.\" end`. Such a block has the
//! synopsis of a program, the purpose of a command, the list of its options, the list of its commands, or the keys of a table. Entries of
//! lists may go on, after a comment `.\" more`, with text that is written by hand and kept. `cargo run -p sixfold-manual` writes these parts anew, and a test
//! compares them. It also writes the example configuration with every key, from sixfold.toml(5).
//!
//! `blocks.rs` finds and fills the blocks, `kept.rs` has the text by hand, `entries.rs` writes options and commands, `synopsis.rs`
//! the synopsis, `keys.rs` keys, `roff.rs` text, `title.rs` the version, `example.rs` the example configuration.
#![forbid(unsafe_code)]

mod blocks;
// Bars as in the raw tables, from the program that writes those.
#[path = "../../../laboratory/rivals/src/chart.rs"]
mod chart;
mod entries;
pub mod example;
pub mod figures;
mod kept;
mod keys;
mod roff;
mod synopsis;
mod title;

use clap::{Command, CommandFactory};
use std::path::PathBuf;

/// A manual page with generated parts.
pub struct Page {
    name: &'static str,
    /// The program whose commands the page describes; none for a page about a file.
    command: Option<Command>,
}

impl Page {
    /// The file of the page.
    pub fn path(&self) -> PathBuf {
        document("man").join(self.name)
    }

    /// The text of the page with its generated parts written anew.
    ///
    /// # Errors
    ///
    /// As `blocks::rewrite`.
    pub fn rewrite(&self, text: &str) -> Result<String, String> {
        let text = title::with_version(text, env!("CARGO_PKG_VERSION"))?;
        blocks::rewrite(&text, self.command.as_ref())
    }

    /// True if the page has the commands of a program.
    pub fn has_commands(&self) -> bool {
        self.command.is_some()
    }
}

/// The pages that have generated parts.
pub fn pages() -> [Page; 3] {
    let page = |name, mut command: Command| {
        // Options for all commands of a command are known to these commands only after this.
        command.build();
        Page { name, command: Some(command) }
    };
    [
        page("sixfold.8", sixfold::cli::Cli::command()),
        page("sixfold-bench.1", bench::cli::Cli::command()),
        Page { name: CONFIGURATION, command: None },
    ]
}

/// The page about the configuration.
const CONFIGURATION: &str = "sixfold.toml.5";

/// The file of the example with every key.
pub fn example_path() -> PathBuf {
    document("examples/server/every-key.toml")
}

/// The text of the example with every key.
///
/// # Errors
///
/// sixfold.toml(5) cannot be read, or as [`example::write`].
pub fn example() -> Result<String, String> {
    let path = document("man").join(CONFIGURATION);
    let manual = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    example::write(&manual)
}

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}
