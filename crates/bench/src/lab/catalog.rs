//! The experiments by name.

use super::context::Context;
use super::{ttcp_attacks, ttcp_blocks, ttcp_fallback};
use measure::experiment::{Paper, TTCP};

/// An experiment.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// One line: the question of the experiment.
    pub title: &'static str,
    /// The paper.
    pub paper: Paper,
    /// Repeated figures and tables, such as `Table 1`.
    pub part: &'static str,
    /// Duration on a machine with 2 cores, in words: whole, and with `--quick`.
    pub takes: (&'static str, &'static str),
    /// True if it needs root: network namespaces and TUN interfaces.
    pub needs_root: bool,
    /// The experiment.
    pub run: fn(&mut Context) -> Result<(), String>,
}

/// All experiments, by paper.
pub const EXPERIMENTS: &[Entry] = &[
    Entry {
        name: "ttcp-attacks",
        title: "Which attacks work on T/TCP, and which of them does the cookie of TCP Fast Open stop?",
        paper: TTCP,
        part: "section 4.3, claims about security",
        takes: ("2 minutes", "10 s"),
        needs_root: false,
        run: ttcp_attacks::run,
    },
    Entry {
        name: "ttcp-blocks",
        title: "How long does TIME-WAIT keep connection blocks, with TCP and with T/TCP?",
        paper: TTCP,
        part: "Figure 5",
        takes: ("3 minutes", "25 s"),
        needs_root: false,
        run: ttcp_blocks::run,
    },
    Entry {
        name: "ttcp-fallback",
        title: "How much do first contact and peers without T/TCP cost?",
        paper: TTCP,
        part: "Figure 4, sections 4.6 and 4.8",
        takes: ("10 s", "10 s"),
        needs_root: false,
        run: ttcp_fallback::run,
    },
];

/// The experiment of this name. The error lists the names.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    EXPERIMENTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        format!("there is no experiment {name}; the experiments are {}", names.join(", "))
    })
}
