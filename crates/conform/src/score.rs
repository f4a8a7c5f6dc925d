//! Score: numbers of passed, failed and not applicable cases, by RFC section and level, and the reasons why cases did
//! not apply.

use crate::case::{Case, Level};
use crate::citation::Citation;
use crate::report::{Outcome, Played};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of cases with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Passed cases.
    pub passed: usize,
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
            Outcome::Failed { .. } => self.failed += 1,
            Outcome::Skipped { .. } => self.not_applicable += 1,
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
    /// By level.
    pub levels: Levels,
    /// All cases.
    pub all: Tally,
    /// Reasons why cases did not apply, with the number of cases for each.
    pub reasons: BTreeMap<String, usize>,
}

impl Score {
    /// Counts `results`, the results of `cases` in the same order.
    pub fn of(cases: &[Case], results: &[Played]) -> Score {
        let mut score = Score::default();
        for (case, played) in cases.iter().zip(results) {
            let section = score.sections.entry(Citation::of(case)).or_default();
            section.entry(case.level).or_default().add(&played.outcome);
            score.levels.entry(case.level).or_default().add(&played.outcome);
            score.all.add(&played.outcome);
            if let Outcome::Skipped { reason } = &played.outcome {
                *score.reasons.entry(reason.clone()).or_default() += 1;
            }
        }
        score
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
        Score::of(&cases, &results)
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
        assert_eq!(section[&Level::Must], Tally { passed: 1, failed: 1, not_applicable: 0 });
        assert_eq!(section[&Level::May], Tally { passed: 0, failed: 0, not_applicable: 1 });
        let sum: usize = score.sections.values().flat_map(BTreeMap::values).map(Tally::total).sum();
        assert_eq!((sum, score.all.total(), score.all.played()), (4, 4, 2));
        assert_eq!(score.reasons["no option for x"], 2);
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
