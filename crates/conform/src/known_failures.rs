//! The list of cases that need parts of the server which do not exist yet. They are played too: one that passes
//! must leave the list, so that it is held to from then on.
//!
//! One case per line, `ID: REASON`, or `ID (may-pass): REASON` for a case that may pass for another reason than
//! the part it is about. `#` begins a comment.

use crate::report::{Outcome, Played};
use std::collections::BTreeMap;

/// The list.
#[derive(Clone, Debug, Default)]
pub struct Later(BTreeMap<String, Entry>);

#[derive(Clone, Debug)]
struct Entry {
    may_pass: bool,
    reason: String,
}

/// What a result means beside the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Good,
    /// Not as it will be one day, or of no weight; the reason.
    Known(String),
    /// A fault; the reason.
    Bad(String),
}

impl Later {
    /// Reads the list. An error names the line.
    pub fn read(text: &str) -> Result<Later, String> {
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
        Ok(Later(list))
    }

    /// The cases listed.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// How to take a result.
    pub fn standing(&self, played: &Played) -> Standing {
        use crate::case::Level;
        match (&played.outcome, self.0.get(&played.id)) {
            (Outcome::Passed, Some(entry)) if !entry.may_pass => {
                Standing::Bad("it passes: remove it from the list of cases for later".to_owned())
            }
            (Outcome::Passed, _) => Standing::Good,
            (Outcome::Skipped { reason }, _) => Standing::Known(reason.clone()),
            (Outcome::Failed { .. }, Some(entry)) => Standing::Known(format!("for later: {}", entry.reason)),
            (Outcome::Failed { .. }, None) if played.level == Level::Local => {
                Standing::Known("another answer is just as good".to_owned())
            }
            (Outcome::Failed { differences }, None) => Standing::Bad(differences.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Level;

    fn standing(id: &str, level: Level, outcome: Outcome) -> Standing {
        let later =
            Later::read("# why\n\na: there is no cache\nb (may-pass): chains are not followed\n").unwrap();
        let category = "ttl".to_owned();
        later.standing(&Played { id: id.to_owned(), category, level, outcome, elapsed_ms: 0 })
    }

    fn failed() -> Outcome {
        Outcome::Failed { differences: vec!["TTL".to_owned()] }
    }

    #[test]
    fn a_listed_case_fails_for_a_known_reason() {
        assert_eq!(
            standing("a", Level::Must, failed()),
            Standing::Known("for later: there is no cache".to_owned())
        );
    }

    #[test]
    fn a_listed_case_that_passes_must_leave_the_list_unless_it_may_pass() {
        assert!(matches!(standing("a", Level::Must, Outcome::Passed), Standing::Bad(_)));
        assert_eq!(standing("b", Level::Must, Outcome::Passed), Standing::Good);
    }

    #[test]
    fn any_other_case_must_pass_unless_it_has_no_weight() {
        assert_eq!(standing("c", Level::May, failed()), Standing::Bad("TTL".to_owned()));
        assert!(matches!(standing("c", Level::Local, failed()), Standing::Known(_)));
        assert_eq!(standing("c", Level::Must, Outcome::Passed), Standing::Good);
    }

    #[test]
    fn a_line_without_a_reason_and_a_case_listed_twice_are_mistakes() {
        assert!(Later::read("a").unwrap_err().starts_with("line 1"));
        assert!(Later::read("a: one\na (may-pass): two").unwrap_err().starts_with("line 2"));
    }
}
