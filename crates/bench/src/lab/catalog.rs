//! The experiments by name.

use super::context::Context;
use measure::experiment::{Experiment, Paper, PaperReference, TTCP};

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

impl Entry {
    /// The heading of the experiment's record: name, title and paper.
    pub fn heading(&self) -> Experiment {
        Experiment {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            paper: PaperReference { citation: self.paper.citation.to_owned(), part: self.part.to_owned() },
            ..Experiment::default()
        }
    }
}

/// All experiments, by paper.
pub const EXPERIMENTS: &[Entry] = &[Entry {
    name: "ttcp-table1",
    title: "The time of 1,000 queries in a row over UDP, T/TCP, TCP and their successors",
    paper: TTCP,
    part: "Table 1",
    takes: ("10 minutes", "20 seconds"),
    needs_root: false,
    run: super::ttcp_table1::run,
}];

/// The experiment of this name. The error lists the names.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    EXPERIMENTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        format!("there is no experiment {name}; the experiments are {}", names.join(", "))
    })
}
