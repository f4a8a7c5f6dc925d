//! The experiments by name.

use super::context::Context;
use super::totd;
use measure::experiment::{Experiment, Paper, PaperReference, TOTD};

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
pub const EXPERIMENTS: &[Entry] = &[
    Entry {
        name: "totd-load",
        title: "How fast are TOTD with its three kinds of IDs, BIND and today's servers, and what makes TOTD stall for a minute?",
        paper: TOTD,
        part: "Tables I to IV and Figure 3",
        takes: ("about 30 minutes", "25 s"),
        needs_root: false,
        run: totd::load,
    },
    Entry {
        name: "totd-stability",
        title: "Does a server answer in every second of a long constant load, with constant memory?",
        paper: TOTD,
        part: "the run over a night, section 4",
        takes: ("20 minutes, or as long as --duration says for each server", "20 s"),
        needs_root: false,
        run: totd::stability,
    },
];

/// The experiment of this name. The error lists the names.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    EXPERIMENTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        format!("there is no experiment {name}; the experiments are {}", names.join(", "))
    })
}
