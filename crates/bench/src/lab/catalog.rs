//! The experiments by name.

use super::authorities;
use super::context::Context;
use measure::experiment::{AUTHORITIES, Paper};

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
pub const EXPERIMENTS: &[Entry] = &[Entry {
    name: "authorities",
    title: "Authoritative servers for a benchmark: rate, CPU time, memory and load time of the zone",
    paper: AUTHORITIES,
    part: "Figures 3 to 12",
    takes: ("25 minutes", "25 s"),
    needs_root: false,
    run: authorities::run,
}];

/// The experiment of this name. The error lists the names.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    EXPERIMENTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        format!("there is no experiment {name}; the experiments are {}", names.join(", "))
    })
}
