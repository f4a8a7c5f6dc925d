//! Results of a run with their trials, and representative trials: the highest passed one, one in overload, some at
//! fractions of the capacity.

use crate::number;
use measure::outcome::Verdict;
use measure::run::{Cell, CellResult, Purpose, Run, Trial};
use std::collections::BTreeMap;

/// A result and the trials of its cell and sweep value, in order.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The result.
    pub result: &'a CellResult,
    /// Its trials.
    pub trials: Vec<&'a Trial>,
    /// Its name: `threads = 4, 0 % AAAA, 0 % cached`.
    pub name: String,
    /// The form of the traffic, as [`form`] gives it.
    pub form: String,
}

/// Load of a representative trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// About half of the result.
    Half,
    /// About four fifths of the result.
    FourFifths,
    /// The highest passed rate.
    Best,
    /// Above the device's capacity.
    Overload,
}

/// All results, in the order of the run.
pub fn groups(run: &Run) -> Vec<Group<'_>> {
    let mut trials: BTreeMap<(&str, u64, u64), Vec<&Trial>> = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| !trial.purpose.is_self_test()) {
        trials.entry(key(&trial.sweep, trial.cell)).or_default().push(trial);
    }
    let group = |result| Group {
        result,
        trials: trials.get(&key(&result.sweep, result.cell)).cloned().unwrap_or_default(),
        name: name(run, result),
        form: form(run),
    };
    run.results.iter().map(group).collect()
}

fn key(sweep: &str, cell: Cell) -> (&str, u64, u64) {
    // Adding zero makes a negative zero positive, so that equal shares have equal bits.
    (sweep, (cell.aaaa_share + 0.0).to_bits(), (cell.cached_share + 0.0).to_bits())
}

/// The result of the verdict: no AAAA and nothing cached, as RFC 8219 section 9.2 requires, at the fastest value of
/// the sweep.
pub fn principal<'a, 'b>(groups: &'b [Group<'a>]) -> Option<&'b Group<'a>> {
    let required = |group: &&Group| group.result.cell == Cell::default();
    let median = |a: &&Group, b: &&Group| a.result.summary.median.total_cmp(&b.result.summary.median);
    groups.iter().filter(required).max_by(median).or(groups.first())
}

/// Sentence for a chart if queries did not leave one by one; empty otherwise.
pub fn form(run: &Run) -> String {
    match run.equipment.as_ref().map_or(1, |equipment| equipment.group) {
        0 | 1 => String::new(),
        group => format!("Queries left in groups of up to {group}, not one by one."),
    }
}

/// The name of a cell.
pub fn cell_name(cell: Cell) -> String {
    format!("{} AAAA, {} cached", number::percent(cell.aaaa_share), number::percent(cell.cached_share))
}

/// The name of the swept parameter.
pub fn sweep_parameter(run: &Run) -> &str {
    run.device.sweep.as_ref().map_or("sweep", |(name, _)| name)
}

fn name(run: &Run, result: &CellResult) -> String {
    match &*result.sweep {
        "" => cell_name(result.cell),
        // A sweep over a single cell: the cell is named once, above all results.
        value if common_cell(run).is_some() => format!("{} = {value}", sweep_parameter(run)),
        value => format!("{} = {value}, {}", sweep_parameter(run), cell_name(result.cell)),
    }
}

/// The common cell of all results, if there is one.
pub fn common_cell(run: &Run) -> Option<Cell> {
    let first = run.results.first()?.cell;
    run.results.iter().all(|result| result.cell == first).then_some(first)
}

/// Name of a verdict.
pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::TesterLimited => "tester-limited",
        Verdict::DeviceStarved => "device starved",
    }
}

/// Name of a trial's purpose.
pub fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::SelfTest => "self-test",
        Purpose::CellSelfTest => "cell-self-test",
        Purpose::Scout => "scout",
        Purpose::Search => "search",
        Purpose::Confirm => "confirm",
        Purpose::LossGoal => "loss-goal",
        Purpose::Curve => "curve",
    }
}

impl<'a> Group<'a> {
    /// The passed trial with the highest rate.
    pub fn best(&self) -> Option<&'a Trial> {
        let passed = self.trials.iter().filter(|trial| trial.passed());
        passed.max_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps)).copied()
    }

    /// A trial in overload: the trial nearest to 1.25 times the result, among the failed ones above the highest
    /// passed rate.
    pub fn overload(&self) -> Option<&'a Trial> {
        let floor = self.best().map_or(0.0, |best| best.rate_qps);
        let wanted = 1.25 * self.result.summary.median;
        let failed =
            self.trials.iter().filter(|it| it.outcome.verdict == Verdict::Fail && it.rate_qps > floor);
        failed.min_by(|a, b| distance(a.rate_qps, wanted).total_cmp(&distance(b.rate_qps, wanted))).copied()
    }

    /// Trials at about half and four fifths of the result, at the result and in overload, as far as they exist.
    pub fn loads(&self) -> Vec<(LoadKind, &'a Trial)> {
        let median = self.result.summary.median;
        let near = |part: f64| {
            let wanted = part * median;
            let close = self.trials.iter().filter(|trial| distance(trial.rate_qps, wanted) < 1.15);
            let passed = close.filter(|trial| trial.passed());
            passed
                .min_by(|a, b| distance(a.rate_qps, wanted).total_cmp(&distance(b.rate_qps, wanted)))
                .copied()
        };
        let wanted = [
            (LoadKind::Half, near(0.5)),
            (LoadKind::FourFifths, near(0.8)),
            (LoadKind::Best, self.best()),
            (LoadKind::Overload, self.overload()),
        ];
        let mut loads: Vec<(LoadKind, &Trial)> = Vec::new();
        // In the order of importance, because one trial may have two of these loads.
        for (kind, trial) in wanted.into_iter().rev().filter_map(|(kind, trial)| Some((kind, trial?))) {
            if loads.iter().all(|(_, other)| other.number != trial.number) {
                loads.push((kind, trial));
            }
        }
        loads.reverse();
        loads
    }

    /// The trials of the searches, by repetition.
    pub fn searches(&self) -> BTreeMap<u32, Vec<&'a Trial>> {
        let mut searches: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
        for trial in &self.trials {
            if matches!(trial.purpose, Purpose::Search | Purpose::Confirm) {
                searches.entry(trial.repetition).or_default().push(trial);
            }
        }
        searches
    }
}

/// Distance of two rates, as the larger ratio.
fn distance(a: f64, b: f64) -> f64 {
    if a > 0.0 && b > 0.0 { (a / b).max(b / a) } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Shape, run};

    #[test]
    fn every_trial_but_those_of_the_self_test_belongs_to_a_result() {
        let run = run(&Shape { repetitions: 4, ..Shape::full() });
        let groups = groups(&run);
        assert_eq!(groups.len(), 24);
        let grouped: usize = groups.iter().map(|group| group.trials.len()).sum();
        let self_test = run.trials.iter().filter(|trial| trial.purpose.is_self_test()).count();
        assert_eq!(grouped + self_test, run.trials.len());
        assert_eq!(principal(&groups).unwrap().name, "threads = 8, 0\u{a0}% AAAA, 0\u{a0}% cached");
    }

    #[test]
    fn the_trial_in_overload_is_beyond_the_best_that_passed() {
        let run = run(&Shape::quick());
        let groups = groups(&run);
        let (best, overload) = (groups[0].best().unwrap(), groups[0].overload().unwrap());
        assert!(best.passed() && !overload.passed() && overload.rate_qps > best.rate_qps);
        let loads = groups[0].loads();
        assert!(loads.len() >= 3, "{}", loads.len());
        assert!(loads.windows(2).all(|pair| pair[0].1.rate_qps < pair[1].1.rate_qps));
    }
}
