//! Comparison of two runs: is the second device, version or setting faster, and how certain is that?
//!
//! For each cell that both runs measured: the ratio of the medians (second / first) of the strict rates, of the
//! confirmed rates, and of the CPU time per query, each with a confidence interval and a p-value ([`Ratio`]). "Slower" and
//! "faster" need both: an interval without 1, and p < [`SIGNIFICANCE`]. "No difference shown" means that a difference
//! could have been shown. Where none could, however large, the cell is incomparable, and its note gives the remedy.
//! Other differences between the runs are listed ([`Difference`]), because a ratio says nothing about the device if the
//! processor was another one.

mod differences;
#[cfg(test)]
mod equal_servers;
mod interval;
mod permutation;
mod table;
#[cfg(test)]
mod tests;

pub use differences::{Condition, Difference, conditions, is_volatile};
pub use interval::{RESAMPLES, Ratio, SIGNIFICANCE, p_text};
pub use table::conclusion;

use crate::run::{Cell, CellResult, Purpose, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Seed of the resampling, so that the same two runs always give the same interval.
const SEED: u64 = 8219;

/// Exit status if nothing could be compared: neither a "no" (1) nor wrong usage (2).
pub const EXIT_INCOMPARABLE: u8 = 3;

/// Number of cells from which a warning about chance is given: of 8 tests at the level 0.05, one or more miss in 1 of
/// 3 comparisons.
const MANY_CELLS: usize = 8;

/// Result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The second run is faster: the interval lies wholly above 1, and p is below [`SIGNIFICANCE`].
    Faster,
    /// The second run is slower: the interval lies wholly below 1, and p is below [`SIGNIFICANCE`].
    Slower,
    /// No difference is shown, although one could be: the interval contains 1, or p is too large.
    NoDifference,
    /// No statement is possible; the note gives the reason.
    Incomparable,
}

/// Comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Device, profile and start of the first run.
    pub first: String,
    /// Device, profile and start of the second run.
    pub second: String,
    /// The cells that both runs have.
    pub cells: Vec<CellComparison>,
    /// Differences other than the device.
    pub differences: Vec<Difference>,
    /// Other facts that a reader must know.
    pub warnings: Vec<String>,
    /// `Slower` if any cell is slower, otherwise `Faster` if any is faster, otherwise `NoDifference`; `Incomparable`
    /// if all cells are.
    pub verdict: Verdict,
}

/// One cell of both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellComparison {
    /// Value of the swept parameter; empty without a sweep.
    pub sweep: String,
    /// The cell.
    pub cell: Cell,
    /// The strict rates, on which the verdict is based.
    pub strict: Option<Ratio>,
    /// The confirmed rates, if both runs have them.
    pub confirmed: Option<Ratio>,
    /// The device's CPU time per query at the highest passed rate, if both runs have it: below 1 the second run needs
    /// less.
    pub cpu: Option<Ratio>,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for a restricted verdict; empty if there is none.
    pub note: String,
}

impl Comparison {
    /// Exit status of a program that compares: 0 if it is not shown that the second run is slower, 1 if it is slower in
    /// some cell, [`EXIT_INCOMPARABLE`] if nothing could be compared.
    pub fn exit_status(&self) -> u8 {
        match self.verdict {
            Verdict::Faster | Verdict::NoDifference => 0,
            Verdict::Slower => 1,
            Verdict::Incomparable => EXIT_INCOMPARABLE,
        }
    }
}

/// Compares two runs.
pub fn compare(first: &Run, second: &Run) -> Comparison {
    let mut warnings = Vec::new();
    let mut cells = Vec::new();
    // Equal values of different parameters are not comparable.
    let parameter = |run: &Run| run.device.sweep.as_ref().map(|(parameter, _)| parameter.clone());
    let parameters = (parameter(first), parameter(second));
    let same_parameter = match &parameters {
        (Some(one), Some(other)) if one != other => {
            warnings.push(format!(
                "the first run has values of {one}, the second of {other}; they are not compared"
            ));
            false
        }
        _ => true,
    };
    let same_place = |one: &CellResult, other: &CellResult| {
        same_place(one, other) && (same_parameter || one.sweep.is_empty())
    };
    for one in &first.results {
        match second.results.iter().find(|other| same_place(one, other)) {
            Some(other) => cells.push(compare_cells(first, one, second, other)),
            None => warnings.push(format!("only the first run has {}", place(one))),
        }
    }
    let missing =
        second.results.iter().filter(|other| !first.results.iter().any(|one| same_place(one, other)));
    warnings.extend(missing.map(|other| format!("only the second run has {}", place(other))));
    for (which, run) in [("first", first), ("second", second)] {
        if !run.complete {
            warnings.push(format!("the {which} run is not complete: its results may have fewer repetitions"));
        }
    }
    if cells.len() >= MANY_CELLS {
        warnings.push(format!(
            "{} cells are compared: with p < {SIGNIFICANCE} about one in forty cells is slower by chance alone, and one in forty \
             faster; repeat the measurement of a single deviating cell before relying on it",
            cells.len()
        ));
    }
    Comparison {
        first: title(first),
        second: title(second),
        verdict: overall(&cells),
        cells,
        differences: differences::between(first, second),
        warnings,
    }
}

fn overall(cells: &[CellComparison]) -> Verdict {
    let order = [Verdict::Slower, Verdict::Faster, Verdict::NoDifference];
    let found = order.into_iter().find(|verdict| cells.iter().any(|cell| cell.verdict == *verdict));
    found.unwrap_or(Verdict::Incomparable)
}

fn compare_cells(first: &Run, one: &CellResult, second: &Run, other: &CellResult) -> CellComparison {
    // A search ends at any point within its precision below the true value.
    let grain =
        (first.settings.resolution(one.summary.median), second.settings.resolution(other.summary.median));
    let strict = Ratio::of(&one.strict, &other.strict, grain, SEED);
    let (verdict, note) = judge(strict.as_ref(), (first, one), (second, other));
    CellComparison {
        sweep: one.sweep.clone(),
        cell: one.cell,
        confirmed: Ratio::of(&one.confirmed, &other.confirmed, grain, SEED),
        cpu: Ratio::of(&cpu_us_per_query(first, one), &cpu_us_per_query(second, other), (0.0, 0.0), SEED),
        strict,
        verdict,
        note,
    }
}

/// The verdict for the strict rates, and a note on its restrictions, with the remedy.
fn judge(
    ratio: Option<&Ratio>,
    first: (&Run, &CellResult),
    second: (&Run, &CellResult),
) -> (Verdict, String) {
    let Some(ratio) = ratio else {
        return (Verdict::Incomparable, no_ratio(&first.1.strict, &second.1.strict).to_owned());
    };
    if let Some(why) = ratio.too_few() {
        return (Verdict::Incomparable, why);
    }
    let verdict = ratio.verdict();
    // The rate of a censored result is a lower bound.
    let bounds: Vec<String> = [("first", first), ("second", second)]
        .into_iter()
        .filter(|(_, (_, result))| result.censored)
        .map(|(which, (run, result))| {
            format!("the rates of the {which} run are lower bounds: {}", bound(run, result))
        })
        .collect();
    let kept = match (first.1.censored, second.1.censored) {
        (false, false) => return (verdict, ratio.caveat(verdict).unwrap_or_default()),
        (true, true) => None,
        (true, false) => Some(Verdict::Slower),
        (false, true) => Some(Verdict::Faster),
    };
    (if kept == Some(verdict) { verdict } else { Verdict::Incomparable }, bounds.join("; "))
}

/// Reason why two sets of rates have no ratio, with the remedy.
fn no_ratio(first: &[f64], second: &[f64]) -> &'static str {
    if first.is_empty() || second.is_empty() {
        "one run has no result here: resume it (sixfold-bench run --resume)"
    } else if first.len().max(second.len()) > interval::VALUES_MAX {
        "more than 2000 results: compare runs with fewer repetitions"
    } else {
        "a repetition of the first run found no rate at which every query was answered, so there is no ratio: its report \
         says why these trials failed; measure it again without that cause"
    }
}

/// Reason why a result is only a lower bound, with the remedy.
fn bound(run: &Run, result: &CellResult) -> String {
    // Rates are rounded.
    let reached = |limit_qps: f64| result.summary.max >= limit_qps * (1.0 - 1e-3);
    match &run.self_test {
        _ if reached(run.settings.max_qps) => {
            format!("the search reached its highest rate, {:.0} queries/s; raise search.max", run.settings.max_qps)
        }
        Some(test) if reached(test.device_qps) => format!(
            "it reached {:.0} queries/s, the most that the self-test permits; give tester and authority more cores or hosts of \
             their own",
            test.device_qps
        ),
        _ => "a search ended where the tester, and not the device, was the limit; the report lists these trials with their \
              reasons; measure on an idle host, or give the tester cores of its own"
            .to_owned(),
    }
}

/// For each repetition the CPU time per query in the passed trial with the highest rate: these are the rates of the
/// result.
fn cpu_us_per_query(run: &Run, result: &CellResult) -> Vec<f64> {
    let mut best: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for trial in &run.trials {
        let counts = matches!(trial.purpose, Purpose::Search | Purpose::Confirm) && trial.passed();
        if !counts || trial.sweep != result.sweep || !same_cell(trial.cell, result.cell) {
            continue;
        }
        let Some(used) = &trial.device else { continue };
        let cost = (trial.rate_qps, used.cpu_us_per_query);
        let held = best.entry(trial.repetition).or_insert(cost);
        if held.0 < cost.0 {
            *held = cost;
        }
    }
    best.into_values().map(|(_, cost)| cost).filter(|cost| cost.is_finite() && *cost > 0.0).collect()
}

fn same_place(one: &CellResult, other: &CellResult) -> bool {
    one.sweep == other.sweep && same_cell(one.cell, other.cell)
}

/// Shares are written as decimals: shares closer than this are equal.
fn same_cell(one: Cell, other: Cell) -> bool {
    (one.aaaa_share - other.aaaa_share).abs() < 1e-6 && (one.cached_share - other.cached_share).abs() < 1e-6
}

fn place(result: &CellResult) -> String {
    let cell = format!(
        "the cell with {:.0} % AAAA and {:.0} % cached",
        100.0 * result.cell.aaaa_share,
        100.0 * result.cell.cached_share
    );
    if result.sweep.is_empty() { cell } else { format!("{cell} for {}", result.sweep) }
}

fn title(run: &Run) -> String {
    format!("{}, profile {}, {}", run.device.title(), run.profile, run.started)
}
