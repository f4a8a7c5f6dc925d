//! List of known failures: cases that need parts of the server which do not exist yet. They are played too: a case
//! that passes must leave the list, so that it has to pass from then on.
//!
//! One case per line, `ID: REASON`, or `ID (may-pass): REASON` for a case that can also pass without the missing
//! part. `#` begins a comment.

use crate::report::{Outcome, Played};
use std::collections::BTreeMap;

/// List of known failures, by case.
#[derive(Clone, Debug, Default)]
pub struct KnownFailures(BTreeMap<String, Entry>);

#[derive(Clone, Debug)]
struct Entry {
    may_pass: bool,
    reason: String,
}

/// Result of a case, compared with the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultStatus {
    /// As expected.
    Good,
    /// A known failure, a skipped case, or a failed case of level `local`; the reason.
    Tolerated(String),
    /// A fault; the reason.
    Fault(String),
}

impl KnownFailures {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// The first line that has no reason, or names a case that stands before it, with its number.
    pub fn read(text: &str) -> Result<KnownFailures, String> {
        let mut list = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what: &str| format!("line {}: {line}: {what}", index + 1);
            let (id, reason) = line.split_once(": ").ok_or_else(|| bad("no reason"))?;
            let (id, may_pass) = match id.strip_suffix(" (may-pass)") {
                Some(id) => (id, true),
                None => (id, false),
            };
            let entry = Entry { may_pass, reason: reason.trim().to_owned() };
            if list.insert(id.to_owned(), entry).is_some() {
                return Err(bad("twice"));
            }
        }
        Ok(KnownFailures(list))
    }

    /// IDs of the listed cases.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Compares a result with the list.
    pub fn status(&self, played: &Played) -> ResultStatus {
        use crate::case::Level;
        match (&played.outcome, self.0.get(&played.id)) {
            (Outcome::Passed, Some(entry)) if !entry.may_pass => {
                ResultStatus::Fault("it passes: remove it from known-failures.txt".to_owned())
            }
            (Outcome::Passed, _) => ResultStatus::Good,
            (Outcome::Skipped { reason }, _) => ResultStatus::Tolerated(reason.clone()),
            (Outcome::Failed { .. } | Outcome::Remarked { .. }, Some(entry)) => {
                ResultStatus::Tolerated(format!("known failure: {}", entry.reason))
            }
            (Outcome::Failed { .. } | Outcome::Remarked { .. }, None) if played.level == Level::Local => {
                ResultStatus::Tolerated("another answer is just as good".to_owned())
            }
            // Sixfold must hold all expectations, also those about its upstream.
            (Outcome::Failed { differences: words } | Outcome::Remarked { remarks: words }, None) => {
                ResultStatus::Fault(words.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Level;

    fn status(id: &str, level: Level, outcome: Outcome) -> ResultStatus {
        let later =
            KnownFailures::read("# why\n\na: there is no cache\nb (may-pass): chains are not followed\n")
                .unwrap();
        let category = "ttl".to_owned();
        later.status(&Played { id: id.to_owned(), category, level, outcome, elapsed_ms: 0 })
    }

    fn failed() -> Outcome {
        Outcome::Failed { differences: vec!["TTL".to_owned()] }
    }

    #[test]
    fn a_listed_case_fails_for_a_known_reason() {
        assert_eq!(
            status("a", Level::Must, failed()),
            ResultStatus::Tolerated("known failure: there is no cache".to_owned())
        );
    }

    #[test]
    fn a_listed_case_that_passes_must_leave_the_list_unless_it_may_pass() {
        assert!(matches!(status("a", Level::Must, Outcome::Passed), ResultStatus::Fault(_)));
        assert_eq!(status("b", Level::Must, Outcome::Passed), ResultStatus::Good);
    }

    #[test]
    fn any_other_case_must_pass_unless_it_has_no_weight() {
        assert_eq!(status("c", Level::May, failed()), ResultStatus::Fault("TTL".to_owned()));
        let remarked = Outcome::Remarked { remarks: vec!["upstream".to_owned()] };
        assert_eq!(status("c", Level::Must, remarked), ResultStatus::Fault("upstream".to_owned()));
        assert!(matches!(status("c", Level::Local, failed()), ResultStatus::Tolerated(_)));
        assert_eq!(status("c", Level::Must, Outcome::Passed), ResultStatus::Good);
    }

    #[test]
    fn a_line_without_a_reason_and_a_case_listed_twice_are_mistakes() {
        assert!(KnownFailures::read("a").unwrap_err().starts_with("line 1"));
        assert!(KnownFailures::read("a: one\na (may-pass): two").unwrap_err().starts_with("line 2"));
    }
}
