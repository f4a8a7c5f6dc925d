//! The experiments by name.

use super::context::Context;
use super::mtd64;
use measure::experiment::{MTD64, MTD64_NG, Paper};

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
        name: "mtd64-functions",
        title: "functions, reply lengths and faults of MTD64 and mtd64-ng, and of today's servers",
        paper: MTD64,
        part: "Figures 8 to 14",
        takes: ("1 minute", "20 s"),
        needs_root: false,
        run: mtd64::functions::run,
    },
    Entry {
        name: "mtd64-speed",
        title: "time of 256 queries in a closed loop with 16 outstanding queries, and CPU time for a query",
        paper: MTD64,
        part: "Table I",
        takes: ("3 minutes", "15 s"),
        needs_root: false,
        run: mtd64::speed::run,
    },
    Entry {
        name: "mtd64ng-threads",
        title: "highest rate without loss by number of threads",
        paper: MTD64_NG,
        part: "Tables 2 and 3, Figures 4 and 5",
        takes: ("2 hours for a device", "25 s"),
        needs_root: false,
        run: mtd64::threads::run,
    },
];

/// The experiment of this name. The error lists the names.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    EXPERIMENTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        format!("there is no experiment {name}; the experiments are {}", names.join(", "))
    })
}
