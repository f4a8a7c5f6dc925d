//! Checklist of RFC 8219's rules for measuring DNS64 servers (sections 9, 12, 13 and 14), each judged from the record
//! of a run alone.
//!
//! Sections 1 to 8, 10 and 11 concern other devices. Statements of the RFC without a key word of RFC 2119 have the
//! level "described": they count like rules, because a run that deviates from them is not a run of that procedure.
//! Rules about facts that the record does not show (where the cables lead) are "not checked", and the text says so.
//! Rules that permit something are never violated. The last rules are not in the RFC: without them a result is not that of the
//! device.

mod conditions;
mod results;
mod setup;
mod tester;
#[cfg(test)]
mod tests;

pub use results::REPETITIONS;

use crate::run::{Cell, CellResult, Kept, Purpose, Rule, Run, Trial};

/// Judges all rules, in the order of the RFC.
pub fn checklist(run: &Run) -> Vec<Rule> {
    let mut rules = setup::section_9_1(run);
    rules.extend(results::section_9_2(run));
    rules.extend(tester::section_9_2_1(run));
    rules.extend(tester::section_12(run));
    rules.extend(setup::sections_13_and_14(run));
    rules.extend(conditions::beyond(run));
    rules
}

/// Level of rules that are not in the RFC. They do not decide on compliance.
const BEYOND: &str = "beyond the RFC";

/// True if a rule is not in the RFC.
pub fn is_beyond(rule: &Rule) -> bool {
    rule.level == BEYOND
}

/// The rules of the RFC that were not kept.
pub fn broken(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(|rule| rule.state == Kept::NotKept && !is_beyond(rule))
}

/// True if nothing shows that the run deviates from the RFC: every rule is kept, does not apply, or is not checked.
pub fn is_compliant(rules: &[Rule]) -> bool {
    !rules.is_empty() && broken(rules).next().is_none()
}

/// State of a rule, and the reason.
struct Assessment {
    state: Kept,
    because: String,
}

impl Assessment {
    fn kept(because: impl Into<String>) -> Assessment {
        Assessment { state: Kept::Kept, because: because.into() }
    }

    fn not_kept(because: impl Into<String>) -> Assessment {
        Assessment { state: Kept::NotKept, because: because.into() }
    }

    fn not_applicable(because: impl Into<String>) -> Assessment {
        Assessment { state: Kept::NotApplicable, because: because.into() }
    }

    fn not_checked(because: impl Into<String>) -> Assessment {
        Assessment { state: Kept::NotChecked, because: because.into() }
    }

    /// Kept or not kept, with the same text.
    fn when(kept: bool, because: impl Into<String>) -> Assessment {
        if kept { Assessment::kept(because) } else { Assessment::not_kept(because) }
    }

    /// The complete rule.
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

/// The trials that results are based on: searches and their confirmations, without curve and self-test.
fn counted(run: &Run) -> impl Iterator<Item = &Trial> {
    run.trials.iter().filter(|trial| matches!(trial.purpose, Purpose::Search | Purpose::Confirm))
}

/// The passed trials among them, on which the results rest.
fn passed(run: &Run) -> impl Iterator<Item = &Trial> {
    counted(run).filter(|trial| trial.passed())
}

/// Results of the required cell: nothing cached, no AAAA records. One for each value of a sweep.
fn required(run: &Run) -> impl Iterator<Item = &CellResult> {
    run.results.iter().filter(|result| result.cell == Cell::default() && !result.strict.is_empty())
}

/// A duration in milliseconds as text for people.
fn shown(milliseconds: u64) -> String {
    crate::units::show(std::time::Duration::from_millis(milliseconds))
}
