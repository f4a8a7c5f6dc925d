//! Results: one for each case, and a summary by category and level.

use crate::case::Level;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Result of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum Outcome {
    /// All expectations held.
    Passed,
    /// The client got what it should, but not all expectations held: the upstream got other queries, or the server made
    /// the other choice that an RFC leaves ([`crate::choice`]).
    #[serde(rename = "passed-with-remarks")]
    Remarked {
        /// Differences in words.
        remarks: Vec<String>,
    },
    /// An expectation did not hold.
    Failed {
        /// Differences in words.
        differences: Vec<String>,
    },
    /// The case was not played.
    Skipped {
        /// Reason.
        reason: String,
    },
}

/// A case and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// ID of the case.
    pub id: String,
    /// Subject of the case.
    pub category: String,
    /// Weight of the expectation.
    pub level: Level,
    /// Result.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Duration.
    pub elapsed_ms: u64,
}

impl Played {
    /// True if an expectation did not hold.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

impl fmt::Display for Played {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Played { id, category, level, .. } = self;
        match &self.outcome {
            Outcome::Passed => write!(formatter, "passed  {id} [{category}, {level}]"),
            Outcome::Remarked { remarks } => {
                write!(formatter, "REMARK  {id} [{category}, {level}]: {}", remarks.join("; "))
            }
            Outcome::Failed { differences } => {
                write!(formatter, "FAILED  {id} [{category}, {level}]: {}", differences.join("; "))
            }
            Outcome::Skipped { reason } => write!(formatter, "skipped {id} [{category}, {level}]: {reason}"),
        }
    }
}

/// Numbers of passed, failed and skipped cases. A case with remarks counts as failed: these are the counts of Sixfold's
/// own tests, which demand all expectations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Passed cases.
    pub passed: usize,
    /// Failed cases.
    pub failed: usize,
    /// Cases that were not played.
    pub skipped: usize,
}

impl Count {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed { .. } | Outcome::Remarked { .. } => self.failed += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:>4} passed {:>4} failed {:>4} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Counted results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// All cases.
    pub all: Count,
    /// By category.
    pub categories: BTreeMap<String, Count>,
    /// By level.
    pub levels: BTreeMap<Level, Count>,
}

impl Summary {
    /// Counts `results`.
    pub fn of(results: &[Played]) -> Summary {
        let mut summary = Summary::default();
        for Played { category, level, outcome, .. } in results {
            summary.all.add(outcome);
            summary.categories.entry(category.clone()).or_default().add(outcome);
            summary.levels.entry(*level).or_default().add(outcome);
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (category, count) in &self.categories {
            writeln!(formatter, "{category:<16} {count}")?;
        }
        for (level, count) in &self.levels {
            writeln!(formatter, "{level:<16} {count}")?;
        }
        write!(formatter, "{:<16} {}", "all", self.all)
    }
}

/// Writes the results and their summary as one JSON object.
pub fn json(results: &[Played]) -> String {
    let object = serde_json::json!({ "summary": Summary::of(results), "cases": results });
    serde_json::to_string_pretty(&object).expect("strings and numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Vec<Played> {
        let played = |id: &str, level, outcome| Played {
            id: id.to_owned(),
            category: "ttl".to_owned(),
            level,
            outcome,
            elapsed_ms: 1,
        };
        vec![
            played("a", Level::Must, Outcome::Passed),
            played(
                "b",
                Level::Must,
                Outcome::Failed { differences: vec!["one".to_owned(), "two".to_owned()] },
            ),
            played("c", Level::May, Outcome::Skipped { reason: "not root".to_owned() }),
        ]
    }

    #[test]
    fn the_summary_counts_by_category_and_level() {
        let summary = Summary::of(&results());
        assert_eq!(summary.all, Count { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(summary.categories["ttl"], summary.all);
        assert_eq!(summary.levels[&Level::Must], Count { passed: 1, failed: 1, skipped: 0 });
        assert_eq!(summary.to_string().lines().count(), 4);
    }

    #[test]
    fn a_line_says_what_differed() {
        assert_eq!(results()[1].to_string(), "FAILED  b [ttl, MUST]: one; two");
    }

    #[test]
    fn the_json_has_the_summary_and_every_case() {
        let object: serde_json::Value = serde_json::from_str(&json(&results())).unwrap();
        assert_eq!(object["summary"]["levels"]["MUST"]["failed"], 1);
        assert_eq!(object["cases"][1]["outcome"], "failed");
        assert_eq!(object["cases"][1]["differences"][1], "two");
        assert_eq!(object["cases"][2]["reason"], "not root");
    }
}
