//! Score: numbers of passed, failed and not applicable cases, by RFC section and level; numbers of requirements that hold,
//! because one fault can fail many cases; and the reasons why cases did not apply.

use crate::case::{Case, Level};
use crate::citation::Citation;
use crate::report::{Outcome, Played};
use crate::requirement::{Requirement, Requirements};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of cases with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Passed cases, those with remarks among them.
    pub passed: usize,
    /// Passed cases with remarks: the upstream got other queries, or the server made the other choice of an RFC.
    pub remarked: usize,
    /// Failed cases.
    pub failed: usize,
    /// Cases that were not played.
    pub not_applicable: usize,
}

impl Tally {
    /// Number of all cases.
    pub fn total(&self) -> usize {
        self.passed + self.failed + self.not_applicable
    }

    /// Number of cases that were played.
    pub fn played(&self) -> usize {
        self.passed + self.failed
    }

    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Remarked { .. } => {
                self.passed += 1;
                self.remarked += 1;
            }
            Outcome::Failed { .. } => self.failed += 1,
            Outcome::Skipped { .. } => self.not_applicable += 1,
        }
    }
}

/// How far a requirement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// All cases that were played passed.
    Holds,
    /// Some passed, some failed.
    Partly,
    /// All failed.
    Fails,
    /// None was played.
    NotPlayed,
}

impl Tally {
    /// How far a requirement with these cases holds.
    pub fn standing(&self) -> Standing {
        match (self.passed, self.failed) {
            (0, 0) => Standing::NotPlayed,
            (_, 0) => Standing::Holds,
            (0, _) => Standing::Fails,
            _ => Standing::Partly,
        }
    }
}

/// Number of requirements by standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standings {
    /// Those that hold.
    pub hold: usize,
    /// Those that hold in some cases.
    pub partly: usize,
    /// Those that fail in all cases.
    pub fail: usize,
    /// Those without a case that was played.
    pub not_played: usize,
}

impl Standings {
    /// Number of requirements with a case that was played.
    pub fn played(&self) -> usize {
        self.hold + self.partly + self.fail
    }

    fn add(&mut self, standing: Standing) {
        match standing {
            Standing::Holds => self.hold += 1,
            Standing::Partly => self.partly += 1,
            Standing::Fails => self.fail += 1,
            Standing::NotPlayed => self.not_played += 1,
        }
    }
}

/// Tally of each level.
pub type Levels = BTreeMap<Level, Tally>;

/// Score of one server.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// By the basis of the cases, in the order of a table.
    pub sections: BTreeMap<Citation, Levels>,
    /// By requirement; cases about Sixfold's own interface belong to none.
    pub requirements: BTreeMap<Requirement, Levels>,
    /// By level.
    pub levels: Levels,
    /// All cases.
    pub all: Tally,
    /// Reasons why cases did not apply, with the number of cases for each.
    pub reasons: BTreeMap<String, usize>,
}

impl Score {
    /// Counts `results`, the results of `cases` in the same order. The level of a result is its weight for the server
    /// that was tested.
    pub fn of(cases: &[Case], results: &[Played], requirements: &Requirements) -> Score {
        let mut score = Score::default();
        for (case, played) in cases.iter().zip(results) {
            let section = score.sections.entry(Citation::of(case)).or_default();
            section.entry(played.level).or_default().add(&played.outcome);
            if let Some(requirement) = requirements.of(case) {
                let levels = score.requirements.entry(requirement).or_default();
                levels.entry(played.level).or_default().add(&played.outcome);
            }
            score.levels.entry(played.level).or_default().add(&played.outcome);
            score.all.add(&played.outcome);
            if let Outcome::Skipped { reason } = &played.outcome {
                *score.reasons.entry(reason.clone()).or_default() += 1;
            }
        }
        score
    }

    /// Requirements by standing, in the cases of a level.
    pub fn standings(&self, level: Level) -> Standings {
        let mut standings = Standings::default();
        for tally in self.requirements.values().filter_map(|levels| levels.get(&level)) {
            standings.add(tally.standing());
        }
        standings
    }

    /// Tally of a level.
    pub fn level(&self, level: Level) -> Tally {
        self.levels.get(&level).copied().unwrap_or_default()
    }

    /// True if at least one case was played, and no case of level MUST or SHOULD failed.
    pub fn holds(&self) -> bool {
        self.all.played() > 0 && self.level(Level::Must).failed == 0 && self.level(Level::Should).failed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(outcomes: &[(&str, &str, Outcome)]) -> Score {
        let (mut cases, mut results) = (Vec::new(), Vec::new());
        for (index, (rfc, level, outcome)) in outcomes.iter().enumerate() {
            let line = format!(
                r#"{{"id": "s{index}", "category": "c", "rfc": "{rfc}", "source": "", "level": "{level}", "config": {{}},
                    "query": {{"name": "a.", "type": "A"}}, "expect": {{}}}}"#
            );
            let case = Case::read(&line).unwrap();
            let Case { id, category, level, .. } = case.clone();
            results.push(Played { id, category, level, outcome: outcome.clone(), elapsed_ms: 0 });
            cases.push(case);
        }
        Score::of(&cases, &results, &Requirements::default())
    }

    fn failed() -> Outcome {
        Outcome::Failed { differences: vec!["x".to_owned()] }
    }

    fn skipped() -> Outcome {
        Outcome::Skipped { reason: "no option for x".to_owned() }
    }

    #[test]
    fn the_table_adds_up() {
        let score = scored(&[
            ("RFC 6147 5.1.2", "MUST", Outcome::Passed),
            ("RFC 6147 5.1.2 (RCODE 3)", "MUST", failed()),
            ("RFC 6147 5.1.2", "MAY", skipped()),
            ("-", "SHOULD", skipped()),
        ]);
        let section = &score.sections[&Citation::read("RFC 6147 5.1.2")];
        assert_eq!(section[&Level::Must], Tally { passed: 1, failed: 1, ..Tally::default() });
        assert_eq!(section[&Level::May], Tally { not_applicable: 1, ..Tally::default() });
        let sum: usize = score.sections.values().flat_map(BTreeMap::values).map(Tally::total).sum();
        assert_eq!((sum, score.all.total(), score.all.played()), (4, 4, 2));
        assert_eq!(score.reasons["no option for x"], 2);
    }

    #[test]
    fn a_requirement_counts_once_however_many_cases_show_its_fault() {
        let remarked = Outcome::Remarked { remarks: vec!["the upstream saw more".to_owned()] };
        let score = scored(&[
            ("RFC 6147 5.1.2", "MUST", Outcome::Passed),
            ("RFC 6147 5.1.3", "MUST", remarked),
            ("RFC 8880 7.1", "MUST", failed()),
            ("RFC 8880 7.1", "MUST", failed()),
            ("RFC 8880 7.1", "MUST", failed()),
            ("RFC 6052 3.1", "MUST", failed()),
            ("RFC 6052 3.1", "MUST", Outcome::Passed),
            ("RFC 6052 3.1", "SHOULD", Outcome::Passed),
            ("RFC 6147 5.5", "MUST", skipped()),
            ("contract allow", "MUST", failed()),
        ]);
        let must = score.standings(Level::Must);
        assert_eq!(must, Standings { hold: 2, partly: 1, fail: 1, not_played: 1 });
        assert_eq!((must.played(), score.standings(Level::Should).hold), (4, 1));
        assert_eq!((score.level(Level::Must).passed, score.level(Level::Must).remarked), (3, 1));
    }

    #[test]
    fn must_and_should_decide_and_something_must_have_been_played() {
        assert!(
            scored(&[("-", "MUST", Outcome::Passed), ("-", "MAY", failed()), ("-", "local", failed())])
                .holds()
        );
        assert!(!scored(&[("-", "MUST", Outcome::Passed), ("-", "SHOULD", failed())]).holds());
        assert!(!scored(&[("-", "MUST", failed())]).holds());
        assert!(!scored(&[("-", "MUST", skipped())]).holds());
    }
}
