//! Context of an experiment: its options, its working folder, and the record that it fills.

use crate::{clock, environment, signals};
use measure::experiment::{
    Chart, Claim, Experiment, Figure, Note, Origin, Program, SCHEMA, median_interval, proportion_interval,
};
use measure::statistics::{median, sorted};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of an experiment.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// Short version: fewer repetitions, at most 3 minutes.
    pub quick: bool,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Length of experiments that run as long as the user wants.
    pub duration: Option<std::time::Duration>,
    /// Size of the largest zone as a power of two; none: the experiment's own.
    pub zone_bits: Option<u32>,
    /// Devices under test: template names, of `--device`; empty: those of the experiment that are installed.
    pub devices: Vec<String>,
    /// Programs by name, of `--program NAME=PATH`.
    pub programs: Vec<(String, PathBuf)>,
}

/// Context of a running experiment.
pub struct Context {
    /// Options of the user.
    pub options: LabOptions,
    /// Folder of the results; an experiment may leave raw data there.
    pub out: PathBuf,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
    record: Experiment,
}

impl Context {
    /// Context of an experiment that begins now. `heading`: the record with name, title and paper.
    ///
    /// # Errors
    ///
    /// The handlers of SIGINT and SIGTERM cannot be set.
    pub fn new(
        heading: Experiment,
        options: LabOptions,
        out: &Path,
        command: Vec<String>,
    ) -> Result<Context, String> {
        let record = Experiment {
            schema: SCHEMA,
            tool: format!("sixfold-bench {} (commit {})", env!("CARGO_PKG_VERSION"), env!("SIXFOLD_COMMIT")),
            quick: options.quick,
            seed: options.seed,
            command,
            started: clock::now_utc(),
            host: environment::read(&[]),
            ..heading
        };
        let stop = signals::stop_flag()?;
        Ok(Context { options, out: out.to_owned(), stop, record })
    }

    /// One of two values: that of the short version, or that of the whole one.
    pub fn choose<T>(&self, quick: T, whole: T) -> T {
        if self.options.quick { quick } else { whole }
    }

    /// Seed of a part of the experiment, different for each number.
    pub fn seed(&self, part: u64) -> u64 {
        self.options.seed.wrapping_add(part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Prints a line of progress.
    ///
    /// # Errors
    ///
    /// The user wants to stop.
    pub fn progress(&self, line: &str) -> Result<(), String> {
        eprintln!("{}: {line}", self.record.name);
        self.check_stop()
    }

    /// Checks that the experiment may go on.
    ///
    /// # Errors
    ///
    /// The user wants to stop: SIGINT or SIGTERM has come.
    pub fn check_stop(&self) -> Result<(), String> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err("stopped by a signal; nothing was written".to_owned()),
            false => Ok(()),
        }
    }

    /// Adds a figure. A value or an interval that is not finite becomes none, because JSON has no such numbers.
    pub fn figure(&mut self, figure: Figure) {
        let value = figure.value.filter(|value| value.is_finite());
        let interval = figure.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        self.record.figures.push(Figure { value, interval, ..figure });
    }

    /// Adds a chart, without points that are not finite, because JSON has no such numbers.
    pub fn chart(&mut self, mut chart: Chart) {
        for line in &mut chart.lines {
            line.points.retain(|point| point.x.is_finite() && point.y.is_finite());
            for point in &mut line.points {
                point.interval = point.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
            }
        }
        self.record.charts.push(chart);
    }

    /// Adds a sentence that was tested, with the observation that would refute it, and the observed values. A sentence that no
    /// observation can refute, such as arithmetic on constants of the paper, is no claim: it is a difference or a figure.
    pub fn claim(
        &mut self,
        sentence: impl Into<String>,
        refuted_by: impl Into<String>,
        observed: impl Into<String>,
        holds: bool,
    ) {
        self.record.claims.push(Claim {
            sentence: sentence.into(),
            refuted_by: refuted_by.into(),
            observed: observed.into(),
            holds,
        });
    }

    /// Adds a text that is shown line by line as it is.
    pub fn listing(&mut self, subject: impl Into<String>, text: impl Into<String>) {
        self.record.listings.push(Note { subject: subject.into(), text: text.into() });
    }

    /// Adds a difference from the paper, with its reason, if it depends on the run; the others are in `differences.toml`.
    pub fn difference(&mut self, subject: impl Into<String>, text: impl Into<String>) {
        self.record.differences.push(Note { subject: subject.into(), text: text.into() });
    }

    /// Adds the differences of an experiment, or of one of its parts, that no option changes.
    pub fn differences_of(&mut self, part: &str) {
        self.record.differences.extend(fixed_differences().remove(part).unwrap_or_default());
    }

    /// Adds a warning, once: a part that could not be measured here, or a doubtful number.
    pub fn warning(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.record.warnings.contains(&text) {
            self.record.warnings.push(text);
        }
    }

    /// Adds a program that takes part, once.
    pub fn program(&mut self, program: Program) {
        if !self.record.programs.contains(&program) {
            self.record.programs.push(program);
        }
    }

    /// The figures so far, for comparisons.
    pub fn figures(&self) -> &[Figure] {
        &self.record.figures
    }

    /// The record, complete.
    pub fn finish(self) -> Experiment {
        Experiment { ended: clock::now_utc(), ..self.record }
    }
}

/// The differences of `differences.toml`, by experiment or part.
fn fixed_differences() -> BTreeMap<String, Vec<Note>> {
    let mut all: BTreeMap<String, Vec<Note>> =
        toml::from_str(include_str!("differences.toml")).expect("a test reads this file");
    for note in all.values_mut().flatten() {
        note.text = note.text.replace('\n', " ");
    }
    all
}

/// Lets a load go on until the user wants to stop.
pub fn until_stopped(stop: &AtomicBool) -> impl Fn(&load::Progress) -> ControlFlow<()> {
    move |_| match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// A figure of a table, without the paper's number.
pub fn figure(table: &str, row: &str, column: &str, value: f64, unit: &str, origin: Origin) -> Figure {
    Figure {
        table: table.to_owned(),
        row: row.to_owned(),
        column: column.to_owned(),
        value: Some(value),
        unit: unit.to_owned(),
        samples: 1,
        origin,
        ..Figure::default()
    }
}

/// A share of trials in percent, with its interval.
pub fn percent((hits, trials): (u64, u64)) -> (f64, Option<(f64, f64)>) {
    let interval = proportion_interval(hits, trials).map(|(low, high)| (100.0 * low, 100.0 * high));
    (100.0 * hits as f64 / trials.max(1) as f64, interval)
}

/// A figure of a share of trials (hits, trials), without the paper's number.
pub fn share(table: &str, row: &str, column: &str, trials: (u64, u64), origin: Origin) -> Figure {
    let (value, interval) = percent(trials);
    Figure { interval, samples: trials.1, ..figure(table, row, column, value, "%", origin) }
}

/// A figure of the median of measured values, without the paper's number. `seed`: of the resampling for its interval.
pub fn median_figure(table: &str, row: &str, column: &str, values: &[f64], unit: &str, seed: u64) -> Figure {
    let value = median(&sorted(values)).unwrap_or(f64::NAN);
    let figure = figure(table, row, column, value, unit, Origin::Measured);
    Figure { interval: median_interval(values, seed), samples: values.len() as u64, ..figure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::catalog::EXPERIMENTS;

    #[test]
    fn every_difference_belongs_to_an_experiment() {
        let all = fixed_differences();
        for part in all.keys() {
            let name = part.split('.').next();
            assert!(EXPERIMENTS.iter().any(|entry| Some(entry.name) == name), "{part}");
        }
        assert!(all.values().flatten().all(|note| !note.text.is_empty() && !note.text.contains('\n')));
    }
}
