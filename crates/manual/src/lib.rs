//! Generated parts of documents, each from one source: the manual pages and `--help` from the definitions of the command line, figures
//! in Markdown pages from the file of constants ([`figures`]).
//!
//! A manual page is written by hand, but for blocks between comments `.\" generated: ...` and `.\" end`. Such a block has the synopsis of a
//! program, the purpose of a command, the list of its options, or the list of its commands. Entries of lists may go on, after a
//! comment `.\" more`, with text that is written by hand and kept. `cargo run -p sixfold-manual` writes the blocks anew, and a test
//! compares them.
//!
//! `blocks.rs` finds and fills the blocks, `kept.rs` has the text by hand, `entries.rs` writes options and commands, `synopsis.rs`
//! the synopsis, `roff.rs` text.
#![forbid(unsafe_code)]

mod blocks;
// Bars as in the raw tables, from the program that writes those.
#[path = "../../../rivals/src/chart.rs"]
mod chart;
mod entries;
pub mod figures;
mod kept;
mod roff;
mod synopsis;

use clap::{Command, CommandFactory};
use std::path::PathBuf;

/// A manual page with generated parts.
pub struct Page {
    name: &'static str,
    command: Command,
}

impl Page {
    /// The file of the page.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/man").join(self.name)
    }

    /// The text of the page with its generated parts written anew.
    ///
    /// # Errors
    ///
    /// As [`blocks::rewrite`].
    pub fn rewrite(&self, text: &str) -> Result<String, String> {
        blocks::rewrite(text, &self.command)
    }
}

/// The pages that have generated parts.
pub fn pages() -> [Page; 2] {
    let page = |name, mut command: Command| {
        // Options for all commands of a command are known to these commands only after this.
        command.build();
        Page { name, command }
    };
    [page("sixfold.8", sixfold::cli::Cli::command()), page("sixfold-bench.1", bench::cli::Cli::command())]
}
