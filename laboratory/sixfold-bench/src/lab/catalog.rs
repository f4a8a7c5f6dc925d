//! The experiments by name.

use super::authorities::recipe::RECIPES;
use super::context::{Context, LabOptions};
use super::mtd64::devices::{PAPER_PROGRAMS, TOTD_PROGRAMS};
use super::pacing::tools::TOOLS;
use crate::device::NAMES;
use measure::experiment::{AUTHORITIES, Experiment, MTD64, MTD64_NG, Paper, PaperReference, TOTD, TTCP};
use std::path::PathBuf;

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
    /// Devices and programs that the user may choose.
    pub subjects: Subjects,
    /// True if it takes `--duration`.
    pub has_duration: bool,
    /// The experiment.
    pub run: fn(&mut Context) -> Result<(), String>,
}

/// Names that `--device` and `--program` of an experiment may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Nothing: it has no device, or one of its own.
    None,
    /// `--program sixfold=PATH`.
    Sixfold,
    /// Templates.
    Templates,
    /// Templates, and TOTD as a program.
    Totd,
    /// Templates, and the programs of all papers.
    Papers,
    /// Authoritative servers.
    Authorities,
    /// Load generators.
    Testers,
}

impl Subjects {
    /// Names for `--device`.
    fn devices(self) -> Vec<&'static str> {
        match self {
            Subjects::None | Subjects::Sixfold | Subjects::Testers => Vec::new(),
            Subjects::Templates | Subjects::Totd | Subjects::Papers => NAMES.to_vec(),
            Subjects::Authorities => RECIPES.iter().map(|recipe| recipe.name).collect(),
        }
    }

    /// Names for `--program`.
    fn programs(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Subjects::None | Subjects::Templates => &[],
            Subjects::Sixfold => &["sixfold"],
            Subjects::Totd => &TOTD_PROGRAMS,
            Subjects::Papers => &PAPER_PROGRAMS,
            Subjects::Testers => &TOOLS,
            Subjects::Authorities => {
                return RECIPES.iter().filter(|it| !it.program.is_empty()).map(|it| it.name).collect();
            }
        };
        own.iter().copied().chain(self.devices()).collect()
    }
}

impl Entry {
    /// Checks that the experiment uses every option.
    ///
    /// # Errors
    ///
    /// The first option that the experiment would leave unused, and the names that it knows.
    pub fn check(&self, options: &LabOptions) -> Result<(), String> {
        let unknown = |option: &str, name: &str, known: Vec<&str>| match known.as_slice() {
            [] => format!("{option} {name}: {} takes no {option}", self.name),
            known => {
                format!("{option} {name}: {} does not know it; it knows {}", self.name, known.join(", "))
            }
        };
        for (name, _) in &options.programs {
            let known = self.subjects.programs();
            if !known.contains(&name.as_str()) {
                return Err(unknown("--program", name, known));
            }
        }
        for name in &options.devices {
            let known = self.subjects.devices();
            if !known.contains(&name.as_str()) {
                return Err(unknown("--device", name, known));
            }
        }
        if options.zone_bits.is_some() && self.subjects != Subjects::Authorities {
            return Err(format!("--zone-bits: {} has no zone of a size to choose", self.name));
        }
        match options.duration {
            Some(_) if !self.has_duration => {
                Err(format!("--duration: {} has a length of its own", self.name))
            }
            _ => Ok(()),
        }
    }

    /// Adds the programs that the experiment is about to its options, but for those that `--program` gave.
    pub fn take(&self, options: &mut LabOptions, found: Vec<(String, PathBuf)>) {
        let known = self.subjects.programs();
        let is_new = |name: &str| !options.programs.iter().any(|(given, _)| given == name);
        let taken: Vec<_> =
            found.into_iter().filter(|(name, _)| known.contains(&name.as_str()) && is_new(name)).collect();
        options.programs.extend(taken);
    }

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
        name: "ttcp-table1",
        title: "How long do 1,000 queries in a row take over UDP, T/TCP, TCP and their successors?",
        paper: TTCP,
        part: "Table 1",
        takes: ("17 minutes", "45 seconds"),
        subjects: Subjects::Sixfold,
        has_duration: false,
        run: super::ttcp_table1::run,
    },
    Entry {
        name: "ttcp-blocks",
        title: "How long does TIME-WAIT keep connection blocks, with TCP and with T/TCP?",
        paper: TTCP,
        part: "Figure 5",
        takes: ("3 minutes", "25 seconds"),
        subjects: Subjects::None,
        has_duration: false,
        run: super::ttcp_blocks::run,
    },
    Entry {
        name: "ttcp-loss",
        title: "How many DNS queries fail over UDP, TCP and T/TCP where packets are lost?",
        paper: TTCP,
        part: "Figures 6 and 7",
        takes: ("12 minutes", "25 seconds"),
        subjects: Subjects::Templates,
        has_duration: false,
        run: super::ttcp_loss::run,
    },
    Entry {
        name: "ttcp-completion",
        title: "How long do successful DNS queries over UDP and T/TCP take where packets are lost?",
        paper: TTCP,
        part: "Figures 8 and 9",
        takes: ("3 minutes", "10 seconds"),
        subjects: Subjects::None,
        has_duration: false,
        run: super::ttcp_completion::run,
    },
    Entry {
        name: "ttcp-fallback",
        title: "How much do first contact and peers without T/TCP cost?",
        paper: TTCP,
        part: "Figure 4, sections 4.6 and 4.8",
        takes: ("10 seconds", "10 seconds"),
        subjects: Subjects::None,
        has_duration: false,
        run: super::ttcp_fallback::run,
    },
    Entry {
        name: "ttcp-attacks",
        title: "Which attacks work on T/TCP, and which of them does the cookie of TCP Fast Open stop?",
        paper: TTCP,
        part: "section 4.3, claims about security",
        takes: ("2 minutes", "10 seconds"),
        subjects: Subjects::None,
        has_duration: false,
        run: super::ttcp_attacks::run,
    },
    Entry {
        name: "totd-load",
        title: "How fast are TOTD, BIND and today's servers, and which IDs make TOTD stall for a minute?",
        paper: TOTD,
        part: "Tables I to IV and Figure 3",
        takes: ("30 minutes", "25 seconds"),
        subjects: Subjects::Totd,
        has_duration: false,
        run: super::totd::load,
    },
    Entry {
        name: "totd-stability",
        title: "Does a server answer in every second of a long constant load, with constant memory?",
        paper: TOTD,
        part: "the run over a night, section 4",
        takes: ("20 minutes, or as long as --duration says for each server", "20 seconds"),
        subjects: Subjects::Totd,
        has_duration: true,
        run: super::totd::stability,
    },
    Entry {
        name: "mtd64-functions",
        title: "Which functions and which faults do MTD64, mtd64-ng and today's servers have?",
        paper: MTD64,
        part: "Figures 8 to 14",
        takes: ("1 minute", "5 seconds"),
        subjects: Subjects::Papers,
        has_duration: false,
        run: super::mtd64::functions::run,
    },
    Entry {
        name: "mtd64-speed",
        title: "How long do 256 queries in a closed loop of 16 take, and how much CPU time does each?",
        paper: MTD64,
        part: "Table I",
        takes: ("3 minutes", "10 seconds"),
        subjects: Subjects::Papers,
        has_duration: false,
        run: super::mtd64::speed::run,
    },
    Entry {
        name: "mtd64-overload",
        title: "What do AAAA queries that nobody needs cost: threads, memory, and service to others?",
        paper: MTD64,
        part: "section VI, plans",
        takes: ("3 minutes", "10 seconds"),
        subjects: Subjects::Papers,
        has_duration: false,
        run: super::mtd64::overload::run,
    },
    Entry {
        name: "mtd64-prices",
        title: "How much do the order of the lookups, the cache and EDNS cost, one by one?",
        paper: MTD64,
        part: "section VI, plans",
        takes: ("15 minutes", "20 seconds"),
        subjects: Subjects::Papers,
        has_duration: false,
        run: super::mtd64::prices::run,
    },
    Entry {
        name: "mtd64ng-threads",
        title: "How does the highest rate without loss depend on the number of threads?",
        paper: MTD64_NG,
        part: "Tables 2 and 3, Figures 4 and 5",
        takes: ("2 hours for a device", "15 seconds"),
        subjects: Subjects::Papers,
        has_duration: false,
        run: super::mtd64::threads::run,
    },
    Entry {
        name: "authorities",
        title: "How fast are authoritative servers, and how much memory and time does a large zone take?",
        paper: AUTHORITIES,
        part: "Figures 3 to 12",
        takes: ("25 minutes", "20 seconds"),
        subjects: Subjects::Authorities,
        has_duration: true,
        run: super::authorities::run,
    },
    Entry {
        name: "selftest",
        title: "Is the tester fast enough, and does a search for a rate survive a transient failure?",
        paper: MTD64_NG,
        part: "section 4.3, Table 2",
        takes: ("30 minutes", "2 minutes"),
        subjects: Subjects::Templates,
        has_duration: false,
        run: super::selftest::run,
    },
    Entry {
        name: "pacing",
        title: "Does the tester keep its schedule, by the time stamps of a receiver's kernel?",
        paper: AUTHORITIES,
        part: "section 2.2: pace of dns64perf++, and the bound of 1 % of its script",
        takes: ("4 minutes", "20 seconds"),
        subjects: Subjects::Testers,
        has_duration: true,
        run: super::pacing::run,
    },
];

/// The experiment of this name.
///
/// # Errors
///
/// There is no experiment of this name; the error lists the names.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    EXPERIMENTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        format!(
            "there is no experiment {name}; the experiments are: {}; --list describes them",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn refusal(experiment: &str, options: LabOptions) -> Option<String> {
        find(experiment).unwrap().check(&options).err()
    }

    #[test]
    fn an_experiment_takes_from_a_folder_what_it_is_about_and_leaves_the_rest() {
        let found =
            || ["totd-1.5.2", "mtd64", "fakedns"].map(|name| (name.to_owned(), "/built".into())).to_vec();
        for (experiment, taken) in [
            ("totd-load", &["totd-1.5.2"][..]),
            ("mtd64-speed", &["totd-1.5.2", "mtd64"]),
            ("ttcp-loss", &[]),
        ] {
            let mut options = LabOptions::default();
            find(experiment).unwrap().take(&mut options, found());
            let names: Vec<&str> = options.programs.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, taken, "{experiment}");
        }
        let given = ("mtd64".to_owned(), PathBuf::from("/given"));
        let mut options = LabOptions { programs: vec![given.clone()], ..LabOptions::default() };
        find("mtd64-functions").unwrap().take(&mut options, vec![("mtd64".to_owned(), "/built".into())]);
        assert_eq!(options.programs, [given], "--program goes before --programs");
    }

    #[test]
    fn options_that_an_experiment_would_leave_unused_are_refused() {
        let program = |name: &str| LabOptions {
            programs: vec![(name.to_owned(), "/nowhere/program".into())],
            ..LabOptions::default()
        };
        for (experiment, name, is_taken) in [
            ("ttcp-blocks", "sixfold", false),
            ("ttcp-loss", "sixfold", true),
            ("ttcp-loss", "mtd64", false),
            ("ttcp-table1", "sixfold", true),
            ("ttcp-table1", "unbound", false),
            ("totd-load", "totd-1.5.2", true),
            ("totd-load", "unbound", true),
            ("totd-load", "mtd64", false),
            ("mtd64-speed", "mtd64", true),
            ("mtd64-speed", "nsd", false),
            ("authorities", "nsd", true),
            ("authorities", "totd", false),
            ("authorities", "fakedns", true),
            ("pacing", "dns64perf++", true),
            ("pacing", "unbound", false),
        ] {
            let error = refusal(experiment, program(name));
            assert_eq!(error.is_none(), is_taken, "{experiment} {name}: {error:?}");
            if let Some(error) = error {
                assert!(error.contains(experiment) && error.contains(name), "{error}");
            }
        }
        let device = |name: &str| LabOptions { devices: vec![name.to_owned()], ..LabOptions::default() };
        assert!(refusal("ttcp-blocks", device("unbound")).unwrap().contains("takes no --device"));
        assert!(refusal("mtd64-functions", device("unbund")).unwrap().contains("it knows sixfold"));
        assert_eq!(refusal("authorities", device("knot")), None);
        let zone = LabOptions { zone_bits: Some(18), ..LabOptions::default() };
        assert!(refusal("selftest", zone.clone()).unwrap().contains("--zone-bits"));
        assert_eq!(refusal("authorities", zone), None);
        let duration = LabOptions { duration: Some(Duration::from_secs(9)), ..LabOptions::default() };
        assert!(refusal("selftest", duration.clone()).unwrap().contains("--duration"));
        assert_eq!(refusal("totd-stability", duration), None);
    }
}
