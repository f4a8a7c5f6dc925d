//! Run: all zones to all validators, and what differs from Sixfold.

use super::ask::ask_all;
use super::plan::{self, Group};
use super::reasons::{REASONS, Reason, reason_of};
use super::resolver::Resolver;
use super::{Difference, Given};
use crate::debian::Debian13;
use crate::installed::{Installed, RunningServer};
use conform::differential::quirk::Server;
use signed_zones::{PUBLISHED, QUESTIONS};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Validators and their versions.
    pub versions: Vec<(Server, String)>,
    /// Zones that were played.
    pub zones: usize,
    /// Questions that every validator was asked.
    pub questions: usize,
    /// Answers of Sixfold that the table of faults does not have, each a line.
    pub wrong: Vec<String>,
    /// Answers of others that differ from those of Sixfold.
    pub differences: Vec<Difference>,
    /// Answers about zones with published faults, by the number of the fault.
    pub published: BTreeMap<u8, Tally>,
    /// Ends of servers, and the like.
    pub faults: Vec<String>,
}

/// Answers about zones with a published fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Questions that every validator was asked.
    pub questions: usize,
    /// Answers of Sixfold, Unbound, BIND, PowerDNS and Knot Resolver whose RCODE or AD is not what the table of faults has.
    pub wrong: [usize; 5],
}

/// Plays zones to all validators.
pub fn compare(debian: &Debian13, zones: usize) -> Outcome {
    let versions = all().map(|server| (server, number(&Installed::of(debian, server).version()))).collect();
    let mut outcome = Outcome { versions, ..Outcome::default() };
    for group in plan::groups(zones) {
        play(debian, &group, &mut outcome);
    }
    outcome
}

/// The number in the words of a version.
fn number(version: &str) -> String {
    let is_number = |word: &&str| word.starts_with(|it: char| it.is_ascii_digit()) && word.contains('.');
    let word = version.split_whitespace().find(is_number).unwrap_or_default();
    word.split('-').next().unwrap_or_default().to_owned()
}

/// Validators of a run, in the order of their answers.
fn all() -> impl Iterator<Item = Server> {
    [Server::Sixfold].into_iter().chain(Server::OTHERS)
}

/// Plays the zones of a group.
fn play(debian: &Debian13, group: &Group, outcome: &mut Outcome) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
    let resolver = Resolver::start(group, now as u32);
    let start = |server| {
        let task = resolver.task(server == Server::Sixfold);
        (server, Installed::of(debian, server).start(&task))
    };
    let mut running: Vec<(Server, RunningServer)> = all().map(start).collect();
    let answers: Vec<Vec<Vec<Given>>> = std::thread::scope(|scope| {
        let ask = |port| {
            let questions = &resolver.questions;
            scope.spawn(move || ask_all(port, questions))
        };
        let asked: Vec<_> = running.iter().map(|(_, validator)| ask(validator.port)).collect();
        asked.into_iter().map(|thread| thread.join().expect("a client that does not panic")).collect()
    });
    for (server, validator) in &mut running {
        if !validator.is_alive() {
            outcome.faults.push(format!("{} ended, log:\n{}", server.name(), validator.log()));
        }
    }
    outcome.zones += group.planted.len();
    for zone in 0..group.planted.len() {
        for question in 0..QUESTIONS.len() {
            let given = answers.iter().map(|answers| &answers[zone][question]).collect();
            outcome.judge(group, zone, question, given);
        }
    }
}

impl Outcome {
    /// Enters the answers of all validators to a question about a zone.
    fn judge(&mut self, group: &Group, zone: usize, question: usize, given: Vec<&Given>) {
        let (kind, fault) = group.planted[zone];
        let owed = fault.owed(kind, question);
        let is_wrong = |given: &Given| {
            owed.is_some_and(|owed| {
                (Some(owed.rcode), owed.is_authentic) != (given.rcode, given.is_authentic)
            })
        };
        self.questions += 1;
        for shown in PUBLISHED.iter().filter(|shown| shown.plants.contains(&fault.plant)) {
            let tally = self.published.entry(shown.number).or_default();
            tally.questions += 1;
            for (count, given) in tally.wrong.iter_mut().zip(&given) {
                *count += usize::from(is_wrong(given));
            }
        }
        if is_wrong(given[0]) {
            self.wrong.push(format!(
                "seed {}, {kind:?}, {}{}: {}: owed {owed:?}, given {}",
                group.seed,
                plan::place(fault.plant),
                fault.what,
                QUESTIONS[question].what,
                given[0]
            ));
        }
        for (server, theirs) in Server::OTHERS.into_iter().zip(&given[1..]).filter(|pair| *pair.1 != given[0])
        {
            let (ours, theirs, seed) = (given[0].clone(), (*theirs).clone(), group.seed);
            self.differences.push(Difference { server, kind, fault, question, seed, ours, theirs });
        }
    }

    /// True if Sixfold answers as the table says, and every difference has a reason.
    pub fn is_explained(&self) -> bool {
        self.faults.is_empty() && self.wrong.is_empty() && self.unexplained().next().is_none()
    }

    /// Differences without a reason.
    pub fn unexplained(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| reason_of(difference).is_none())
    }

    fn count(&self, server: Server, reason: Option<&Reason>) -> usize {
        let number = |reason: Option<&Reason>| reason.map(|reason| reason.number);
        let has_it = |difference: &&Difference| {
            difference.server == server && number(reason_of(difference)) == number(reason)
        };
        self.differences.iter().filter(has_it).count()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.faults.iter().chain(&self.wrong) {
            writeln!(formatter, "{line}")?;
        }
        write_groups(formatter, self.unexplained())?;
        let versions: Vec<String> =
            self.versions.iter().map(|(server, version)| format!("{} {version}", server.name())).collect();
        writeln!(formatter, "{} zones, {} questions: {}", self.zones, self.questions, versions.join(", "))?;
        let names: Vec<&str> = Server::OTHERS.iter().map(|server| server.name()).collect();
        writeln!(formatter, "| | {} |\n| --- |{}", names.join(" | "), " ---: |".repeat(names.len()))?;
        let row = |formatter: &mut fmt::Formatter<'_>, title: &str, cell: &dyn Fn(Server) -> usize| {
            write!(formatter, "| {title} |")?;
            Server::OTHERS.iter().try_for_each(|&server| write!(formatter, " {} |", cell(server)))?;
            writeln!(formatter)
        };
        let different = |server| self.differences.iter().filter(|it| it.server == server).count();
        row(formatter, "same as Sixfold", &|server| self.questions - different(server))?;
        for reason in REASONS {
            let title = format!("by {}: {}", reason.number, reason.source);
            row(formatter, &title, &|server| self.count(server, Some(reason)))?;
        }
        row(formatter, "different, unexplained", &|server| self.count(server, None))?;
        writeln!(formatter, "| published fault | questions | Sixfold | {} |", names.join(" | "))?;
        writeln!(formatter, "| --- | ---: | ---: |{}", " ---: |".repeat(names.len()))?;
        for shown in PUBLISHED {
            let Some(tally) = self.published.get(&shown.number) else { continue };
            let counts: Vec<String> = tally.wrong.iter().map(usize::to_string).collect();
            let (number, what, questions) = (shown.number, shown.what, tally.questions);
            writeln!(formatter, "| {number}: {what} | {questions} | {} |", counts.join(" | "))?;
        }
        Ok(())
    }
}

/// Differences of one fault and one outcome.
#[derive(Default)]
struct Alike {
    count: usize,
    kinds: BTreeSet<String>,
    questions: BTreeSet<String>,
    seeds: BTreeSet<u64>,
}

/// Writes differences, those of one fault and one outcome together.
fn write_groups<'d>(
    formatter: &mut fmt::Formatter<'_>,
    differences: impl Iterator<Item = &'d Difference>,
) -> fmt::Result {
    let mut groups: BTreeMap<[String; 3], Alike> = BTreeMap::new();
    for it in differences {
        let fault = format!("{}{} [{:?}]", plan::place(it.fault.plant), it.fault.what, it.fault.plant);
        let change = format!("{} instead of {}", it.theirs, it.ours);
        let group = groups.entry([it.server.name().to_owned(), fault, change]).or_default();
        group.count += 1;
        group.kinds.insert(format!("{:?}", it.kind));
        group.questions.insert(QUESTIONS[it.question].labels.to_owned());
        group.seeds.insert(it.seed);
    }
    for ([server, fault, change], Alike { count, kinds, questions, seeds }) in groups {
        let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" ");
        let (kinds, questions) = (list(kinds), list(questions));
        writeln!(formatter, "{server}: {fault}: {change}: {count} ({kinds}; {questions}; seeds {seeds:?})")?;
    }
    Ok(())
}
