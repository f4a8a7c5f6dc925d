//! Results: one for each case.

use crate::case::Level;
use serde::Serialize;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_differed() {
        let played = Played {
            id: "b".to_owned(),
            category: "ttl".to_owned(),
            level: Level::Must,
            outcome: Outcome::Failed { differences: vec!["one".to_owned(), "two".to_owned()] },
            elapsed_ms: 1,
        };
        assert_eq!(played.to_string(), "FAILED  b [ttl, MUST]: one; two");
    }
}
