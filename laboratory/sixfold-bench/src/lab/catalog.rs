//! The experiments by name.

use super::authorities::recipe::RECIPES;
use super::context::{Context, LabOptions};
use super::mtd64::devices::{PAPER_PROGRAMS, TOTD_PROGRAMS};
use super::pacing::tools::TOOLS;
use measure::experiment::{Experiment, PaperReference};
use serde::Deserialize;
use servers::NAMES;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The description of an experiment.
type Function = fn(&mut Context) -> Result<(), String>;

/// An experiment.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// The experiment.
    pub run: Function,
    /// Authors, title and year of the paper.
    citation: String,
    /// Its entry in `experiments.toml`.
    pub about: About,
}

/// An experiment in `experiments.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// One line: the question of the experiment.
    pub title: String,
    /// Short name of the paper.
    pub paper: String,
    /// Repeated figures and tables, such as `Table 1`.
    pub part: String,
    /// Duration on a machine with 2 cores, in words: whole, and with `--quick`.
    pub takes: (String, String),
    /// Devices and programs that the user may choose.
    #[serde(default)]
    subjects: Subjects,
    /// True if it takes `--duration`.
    #[serde(default)]
    has_duration: bool,
}

/// `experiments.toml`.
#[derive(Deserialize)]
struct Described {
    /// Citations of the papers by short name.
    papers: BTreeMap<String, String>,
    experiments: BTreeMap<String, About>,
}

impl Described {
    fn read() -> Described {
        toml::from_str(include_str!("experiments.toml")).expect("a test reads this file")
    }
}

/// Names that `--device` and `--program` of an experiment may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Subjects {
    /// Nothing: it has no device, or one of its own.
    #[default]
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
            let known = self.about.subjects.programs();
            if !known.contains(&name.as_str()) {
                return Err(unknown("--program", name, known));
            }
        }
        for name in &options.devices {
            let known = self.about.subjects.devices();
            if !known.contains(&name.as_str()) {
                return Err(unknown("--device", name, known));
            }
        }
        if options.zone_bits.is_some() && self.about.subjects != Subjects::Authorities {
            return Err(format!("--zone-bits: {} has no zone of a size to choose", self.name));
        }
        match options.duration {
            Some(_) if !self.about.has_duration => {
                Err(format!("--duration: {} has a length of its own", self.name))
            }
            _ => Ok(()),
        }
    }

    /// Adds the programs that the experiment is about to its options, but for those that `--program` gave.
    pub fn take(&self, options: &mut LabOptions, found: Vec<(String, PathBuf)>) {
        let known = self.about.subjects.programs();
        let is_new = |name: &str| !options.programs.iter().any(|(given, _)| given == name);
        let taken: Vec<_> =
            found.into_iter().filter(|(name, _)| known.contains(&name.as_str()) && is_new(name)).collect();
        options.programs.extend(taken);
    }

    /// The heading of the experiment's record: name, title and paper.
    pub fn heading(&self) -> Experiment {
        Experiment {
            name: self.name.to_owned(),
            title: self.about.title.clone(),
            paper: PaperReference { citation: self.citation.clone(), part: self.about.part.clone() },
            ..Experiment::default()
        }
    }
}

/// The functions of the experiments, by paper.
const FUNCTIONS: [(&str, Function); 16] = [
    ("ttcp-table1", super::ttcp_table1::run),
    ("ttcp-blocks", super::ttcp_blocks::run),
    ("ttcp-loss", super::ttcp_loss::run),
    ("ttcp-completion", super::ttcp_completion::run),
    ("ttcp-fallback", super::ttcp_fallback::run),
    ("ttcp-attacks", super::ttcp_attacks::run),
    ("totd-load", super::totd::load),
    ("totd-stability", super::totd::stability),
    ("mtd64-functions", super::mtd64::functions::run),
    ("mtd64-speed", super::mtd64::speed::run),
    ("mtd64-overload", super::mtd64::overload::run),
    ("mtd64-prices", super::mtd64::prices::run),
    ("mtd64ng-threads", super::mtd64::threads::run),
    ("authorities", super::authorities::run),
    ("selftest", super::selftest::run),
    ("pacing", super::pacing::run),
];

/// All experiments, by paper.
pub static EXPERIMENTS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let Described { papers, mut experiments } = Described::read();
    let entry = |(name, run)| {
        let about: About = experiments.remove(name).expect("a test finds every experiment");
        Entry { name, run, citation: papers[&about.paper].clone(), about }
    };
    FUNCTIONS.map(entry).into()
});

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

    #[test]
    fn every_described_experiment_has_a_function() {
        let described: Vec<String> = Described::read().experiments.into_keys().collect();
        let mut names: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert_eq!(names, described);
    }

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
