//! Two runs against each other: is the second device, version or setting faster, and how sure is that?
//!
//! For each cell that both measured: the ratio of the medians (second / first) of the strict rates, of the confirmed rates,
//! and of the CPU time per query, each with an interval ([`Ratio`]). What else was different between the runs is listed
//! ([`Difference`]): a ratio says nothing of the device when the processor was another one.

mod differences;
mod interval;
mod table;
#[cfg(test)]
mod tests;

pub use differences::Difference;
pub use interval::{RESAMPLES, Ratio, VALUES_MIN};

use crate::run::{Cell, CellResult, Purpose, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The seed of the resampling, so that the same two runs always give the same interval.
const SEED: u64 = 8219;

/// With so many cells it must be said that some intervals miss by chance: of 8 intervals of 95 % one misses downward or
/// upward in 1 of 3 comparisons.
const CELLS_MANY: usize = 8;

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The second is faster: the interval lies wholly above 1.
    Faster,
    /// The second is slower: the interval lies wholly below 1.
    Slower,
    /// The interval contains 1: what difference there is, if any, cannot be seen.
    NoDifference,
    /// Nothing can be said; the note tells why.
    Incomparable,
}

/// Two runs compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Device, profile and start of the first run.
    pub first: String,
    /// The same of the second.
    pub second: String,
    /// The cells that both runs have.
    pub cells: Vec<CellComparison>,
    /// What was different besides the device.
    pub differences: Vec<Difference>,
    /// What else a reader must know.
    pub warnings: Vec<String>,
    /// `Slower` if it is in any cell, else `Faster` if it is in any, else `NoDifference`; `Incomparable` if all cells are.
    pub verdict: Verdict,
}

/// One cell of both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellComparison {
    /// The value of the swept parameter; empty: none.
    pub sweep: String,
    /// The cell.
    pub cell: Cell,
    /// The strict rates; the verdict is theirs.
    pub strict: Option<Ratio>,
    /// The confirmed rates, if both runs have them.
    pub confirmed: Option<Ratio>,
    /// CPU time of the device per query at the highest rate that passed, if both runs have it: below 1 the second needs
    /// less.
    pub cpu: Option<Ratio>,
    /// Whether the second is faster.
    pub verdict: Verdict,
    /// Why the verdict is no better than it is; empty when there is nothing to say.
    pub note: String,
}

impl Comparison {
    /// Whether a program that is asked "is the second as good as the first?" must say no: it is slower in some cell, or
    /// nothing could be compared at all.
    pub fn exit_is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Slower | Verdict::Incomparable)
    }
}

/// Compares two runs.
pub fn compare(first: &Run, second: &Run) -> Comparison {
    let mut warnings = Vec::new();
    let mut cells = Vec::new();
    // The value 2 of one parameter is not the value 2 of another.
    let parameter = |run: &Run| run.device.sweep.as_ref().map(|(parameter, _)| parameter.clone());
    let parameters = (parameter(first), parameter(second));
    let same_parameter = match &parameters {
        (Some(one), Some(other)) if one != other => {
            warnings.push(format!(
                "the first run has values of {one}, the second of {other}: these are not compared"
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
            warnings.push(format!("the {which} run is not complete: results may be of fewer repetitions"));
        }
    }
    if cells.len() >= CELLS_MANY {
        warnings.push(format!(
            "{} cells are compared: of intervals of 95 %, one in forty lies wholly below 1 by chance, and one in forty above; look \
             at a lone cell again before believing it",
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
    // A search ends anywhere within its precision below the truth.
    let grain = (first.settings.precision, second.settings.precision);
    let strict = Ratio::of(&one.strict, &other.strict, grain, SEED);
    let (verdict, note) = judge(strict.as_ref(), one, other);
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

/// The verdict on the strict rates, and what must be said beside it.
fn judge(ratio: Option<&Ratio>, one: &CellResult, other: &CellResult) -> (Verdict, String) {
    let Some(ratio) = ratio else {
        let why =
            "a repetition of the first run found no rate at all, or there are no results, or more than 2000";
        return (Verdict::Incomparable, why.to_owned());
    };
    if ratio.counts.0.min(ratio.counts.1) < VALUES_MIN {
        let why = format!(
            "{} and {} results say nothing of their spread; measure at least {VALUES_MIN} repetitions, better 20",
            ratio.counts.0, ratio.counts.1
        );
        return (Verdict::Incomparable, why);
    }
    let verdict = ratio.verdict();
    // The rate of a censored result is a lower bound.
    let (bound, kept) = match (one.censored, other.censored) {
        (false, false) => return (verdict, ratio.caveat().unwrap_or_default()),
        (true, true) => ("both runs", None),
        (true, false) => ("the first run", Some(Verdict::Slower)),
        (false, true) => ("the second run", Some(Verdict::Faster)),
    };
    let verdict = if kept == Some(verdict) { verdict } else { Verdict::Incomparable };
    (
        verdict,
        format!(
            "{bound} reached the highest rate that was allowed, so the ratio is only a bound; allow more"
        ),
    )
}

/// Of each repetition the CPU time per query in the trial with the highest rate that passed: where the rates are that the
/// result speaks of.
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

/// Shares are written by people as decimals: nearer than this they are the same.
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
    let version = if run.device.version.is_empty() { "version unknown" } else { &run.device.version };
    format!("{} ({version}), profile {}, {}", run.device.name, run.profile, run.started)
}
