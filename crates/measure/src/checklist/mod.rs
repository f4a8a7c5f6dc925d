//! The rules of RFC 8219 for measuring DNS64 servers (sections 9, 12, 13 and 14), each judged from the record of a run alone.
//!
//! Sections 1 to 8, 10 and 11 are about other devices. What the RFC describes without a key word of RFC 2119 has the level
//! "described": it counts like a rule, since a run that does something else is no run of that procedure. What no record can
//! show (where the cables lead) is "not applicable", and says so; rules that permit something are never broken.

mod results;
mod setup;
mod tester;
#[cfg(test)]
mod tests;

use crate::run::{Cell, CellResult, Kept, Purpose, Rule, Run, Trial};

/// Judges all rules, in the order of the RFC.
pub fn checklist(run: &Run) -> Vec<Rule> {
    let mut rules = setup::section_9_1(run);
    rules.extend(results::section_9_2(run));
    rules.extend(tester::section_9_2_1(run));
    rules.extend(tester::section_12(run));
    rules.extend(setup::sections_13_and_14(run));
    rules
}

/// Whether the run followed the RFC: every rule is kept or does not concern it.
pub fn is_compliant(rules: &[Rule]) -> bool {
    !rules.is_empty() && rules.iter().all(|rule| rule.state != Kept::NotKept)
}

/// What became of a rule.
struct Judged {
    state: Kept,
    because: String,
}

impl Judged {
    fn kept(because: impl Into<String>) -> Judged {
        Judged { state: Kept::Kept, because: because.into() }
    }

    fn not_kept(because: impl Into<String>) -> Judged {
        Judged { state: Kept::NotKept, because: because.into() }
    }

    fn not_applicable(because: impl Into<String>) -> Judged {
        Judged { state: Kept::NotApplicable, because: because.into() }
    }

    /// Kept or not, with the same words.
    fn when(kept: bool, because: impl Into<String>) -> Judged {
        if kept { Judged::kept(because) } else { Judged::not_kept(because) }
    }

    /// The rule that was judged.
    fn rule(self, section: &str, level: &str, rule: &str) -> Rule {
        Rule {
            section: section.to_owned(),
            rule: rule.to_owned(),
            level: level.to_owned(),
            state: self.state,
            because: self.because,
        }
    }
}

/// The trials that results come from: searches and their confirmations, but no curve and no self-test.
fn counted(run: &Run) -> impl Iterator<Item = &Trial> {
    run.trials.iter().filter(|trial| matches!(trial.purpose, Purpose::Search | Purpose::Confirm))
}

/// Those of them that passed: on these the results rest.
fn passed(run: &Run) -> impl Iterator<Item = &Trial> {
    counted(run).filter(|trial| trial.passed())
}

/// The results of the required cell: nothing cached, no AAAA records. One for each value of a sweep.
fn required(run: &Run) -> impl Iterator<Item = &CellResult> {
    run.results.iter().filter(|result| result.cell == Cell::default() && !result.strict.is_empty())
}

/// A length of time for people.
fn shown(milliseconds: u64) -> String {
    crate::amount::show(std::time::Duration::from_millis(milliseconds))
}
