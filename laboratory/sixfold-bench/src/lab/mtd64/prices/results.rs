//! Figures, claims and differences.

use super::limits;
use super::setups::{
    AGAIN, AGAIN_UNCACHED, Comparison, NATIVE_PARALLEL, NATIVE_SEQUENTIAL, NATIVE_STAGGERED, PARALLEL,
    SEQUENTIAL, STAGGERED, Setup, UPSTREAM_WITHOUT_EDNS,
};
use crate::lab::context::{Context, figure, median_figure};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point, median_interval};
use measure::run::Summary;

/// Table of the setups, and of the comparisons.
const SETUPS: &str = "Each setup at 2,000 queries/s: median of the rounds";
const PRICES: &str =
    "Price of one change: ratio to the same device without it in the same round, median of the rounds";

/// Distance of a number of upstream queries from a whole number that is still that number: a busy machine repeats some queries.
const ABOUT: f64 = 0.1;

/// Share of the latency of two lookups in turn that one of the delay may have, and that one and a half may have. A server and the tester
/// add their own time to each.
const AT_ONCE: f64 = 0.65;
const STAGGERED_AT_MOST: f64 = 0.9;

/// A figure of a load.
type OfLoad = fn(&Measured) -> f64;

/// One load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// CPU time of the device for a valid answer, in microseconds.
    pub cpu_us: f64,
    /// Median latency, in milliseconds.
    pub latency_ms: f64,
    /// Upstream queries for a valid answer.
    pub upstream: f64,
    /// Queries.
    pub sent: u64,
    /// Valid answers in time.
    pub valid: u64,
    /// True if the tester was behind its schedule.
    pub is_limited: bool,
}

/// Loads of a device.
#[derive(Debug)]
pub struct Series {
    /// Its comparisons.
    pub comparisons: Vec<Comparison>,
    /// Its setups.
    pub setups: Vec<Setup>,
    /// For each setup its loads, by round.
    pub rounds: Vec<Vec<Measured>>,
}

impl Series {
    /// Loads of a setup.
    fn of(&self, setup: &Setup) -> &[Measured] {
        let at = self.setups.iter().position(|other| other == setup);
        at.and_then(|at| self.rounds.get(at)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Median of the upstream queries for an answer.
    fn upstream(&self, setup: &Setup) -> f64 {
        median(&self.of(setup).iter().map(|load| load.upstream).collect::<Vec<_>>())
    }

    /// Ratios of a comparison, round by round.
    fn ratios(&self, comparison: &Comparison, of: OfLoad) -> Vec<f64> {
        let pairs = self.of(&comparison.base).iter().zip(self.of(&comparison.changed));
        pairs.map(|(base, changed)| of(changed) / of(base)).filter(|ratio| ratio.is_finite()).collect()
    }

    /// Ratios of the pair with this changed setup.
    fn ratios_of(&self, changed: &Setup, of: OfLoad) -> Vec<f64> {
        let found = self.comparisons.iter().find(|comparison| comparison.changed == *changed);
        found.map(|comparison| self.ratios(comparison, of)).unwrap_or_default()
    }
}

fn median(values: &[f64]) -> f64 {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.is_empty() { f64::NAN } else { Summary::of(&finite).median }
}

/// Enters the figures of a device, and of Sixfold the claims.
pub fn enter(context: &mut Context, device: &str, series: &Series) {
    for (setup, loads) in series.setups.iter().zip(&series.rounds) {
        enter_setup(context, device, setup, loads);
    }
    for comparison in &series.comparisons {
        enter_comparison(context, device, comparison, series);
    }
    let loads = series.rounds.iter().flatten();
    let (count, limited) = (loads.clone().count(), loads.filter(|load| load.is_limited).count());
    if limited > 0 {
        context.warning(format!(
            "{device}: in {limited} of {count} loads the tester was behind its schedule, so their latencies are not the device's alone"
        ));
    }
    let unchanged = series.upstream(&AGAIN_UNCACHED);
    if unchanged < 2.0 - ABOUT {
        context.warning(format!(
            "{device}: its setting for no cache leaves a part of it: {unchanged:.2} upstream queries for an answer, not 2"
        ));
    }
    if device == "sixfold" {
        claim_counts(context, series);
        if !context.options.quick {
            claim_times(context, series);
        }
    }
    chart(context, device, series);
}

fn enter_setup(context: &mut Context, device: &str, setup: &Setup, loads: &[Measured]) {
    let row = format!("{device}: {}", setup.name);
    let columns: [(&str, &str, OfLoad); 4] = [
        ("CPU time for an answer", "us", |load| load.cpu_us),
        ("median latency", "ms", |load| load.latency_ms),
        ("upstream queries for an answer", "", |load| load.upstream),
        ("valid answers", "%", |load| 100.0 * load.valid as f64 / load.sent.max(1) as f64),
    ];
    for (column, unit, of) in columns {
        let values: Vec<f64> = loads.iter().map(of).filter(|value| value.is_finite()).collect();
        context.figure(median_figure(SETUPS, &row, column, &values, unit, context.seed(2)));
    }
}

fn enter_comparison(context: &mut Context, device: &str, comparison: &Comparison, series: &Series) {
    let row = format!("{device}: {}", comparison.name);
    let columns: [(&str, OfLoad); 2] =
        [("CPU time for an answer", |load| load.cpu_us), ("median latency", |load| load.latency_ms)];
    for (column, of) in columns {
        let ratios = series.ratios(comparison, of);
        context.figure(median_figure(PRICES, &row, column, &ratios, "", context.seed(3)));
    }
    let more = series.upstream(&comparison.changed) - series.upstream(&comparison.base);
    let entry = figure(PRICES, &row, "further upstream queries for an answer", more, "", Origin::Measured);
    context.figure(Figure { samples: series.of(&comparison.base).len() as u64, ..entry });
}

/// Claims on counts, which a slow machine does not change.
fn claim_counts(context: &mut Context, series: &Series) {
    let asked = |setup: &Setup| series.upstream(setup);
    let is_about = |value: f64, number: f64| (value - number).abs() <= ABOUT;
    let [sequential, parallel, staggered] =
        [NATIVE_SEQUENTIAL, NATIVE_PARALLEL, NATIVE_STAGGERED].map(|setup| asked(&setup));
    context.claim(
        "Sixfold, names with AAAA records: lookups in turn ask 1 upstream query for an answer, and lookups at once 2",
        "another number of queries, by more than 0.1, in the median of the rounds",
        format!("{sequential:.2} and {parallel:.2}"),
        is_about(sequential, 1.0) && is_about(parallel, 2.0),
    );
    context.claim(
        "Sixfold, names with AAAA records: a second lookup after 5 ms of 10 asks 2 upstream queries for an answer, too",
        "fewer than 1.5 or more than 2.1 queries in the median of the rounds",
        format!("{staggered:.2}"),
        (1.5..=2.0 + ABOUT).contains(&staggered),
    );
    let orders = [SEQUENTIAL, PARALLEL, STAGGERED].map(|setup| asked(&setup));
    context.claim(
        "Sixfold, names without AAAA records: 2 upstream queries for an answer, in whatever order",
        "another number of queries, by more than 0.1, in one of the orders",
        orders.map(|value| format!("{value:.2}")).join(", "),
        orders.into_iter().all(|value| is_about(value, 2.0)),
    );
    let (cached, uncached) = (asked(&AGAIN), asked(&AGAIN_UNCACHED));
    context.claim(
        "Sixfold, names asked again: no upstream query with a cache, and 2 for each answer without one",
        "more than 0.1 queries for an answer with the cache, or a number other than 2 without it",
        format!("{cached:.2} and {uncached:.2}"),
        is_about(cached, 0.0) && is_about(uncached, 2.0),
    );
    let without_edns = asked(&UPSTREAM_WITHOUT_EDNS);
    context.claim(
        "Sixfold at an upstream without EDNS: after its first questions it asks without an OPT record, 2 queries for an answer",
        "more than 2.1 queries for an answer: questions are still refused before they are answered",
        format!("{without_edns:.2}"),
        is_about(without_edns, 2.0),
    );
    let loads = || series.rounds.iter().flatten();
    let (sent, valid) =
        (loads().map(|load| load.sent).sum::<u64>(), loads().map(|load| load.valid).sum::<u64>());
    context.claim(
        "Sixfold: at least 99 of 100 queries of all setups have a valid answer within 1 s",
        "more than 1 of 100 lost, late or wrong",
        format!("{valid} of {sent}"),
        sent > 0 && valid * 100 >= sent * 99,
    );
}

/// Claims on times, of the whole version alone.
fn claim_times(context: &mut Context, series: &Series) {
    let seed = context.seed(3);
    let interval = |changed: &Setup, of: OfLoad| {
        median_interval(&series.ratios_of(changed, of), seed).unwrap_or((f64::NAN, f64::NAN))
    };
    let latency: OfLoad = |load| load.latency_ms;
    let said = |(low, high): (f64, f64)| format!("ratio {low:.3} to {high:.3}");
    let at_once = interval(&PARALLEL, latency);
    context.claim(
        "Sixfold, names without AAAA records, an upstream of 10 ms: lookups at once take at most 0.65 times as long as lookups in turn",
        "an interval of the paired ratio that reaches above 0.65",
        said(at_once),
        at_once.1 <= AT_ONCE,
    );
    let after_a_moment = interval(&STAGGERED, latency);
    context.claim(
        "Sixfold, the same names: a second lookup after 5 ms is between the two, at most 0.9 times as long as lookups in turn",
        "an interval of the paired ratio that reaches above 0.9, or is not above that of lookups at once",
        said(after_a_moment),
        after_a_moment.1 <= STAGGERED_AT_MOST && after_a_moment.0 > at_once.1,
    );
    let uncached = interval(&AGAIN_UNCACHED, |load| load.cpu_us);
    context.claim(
        "Sixfold, names asked again: an answer without the cache costs more CPU time than one with it",
        "an interval of the paired ratio that holds 1 or lies below it",
        said(uncached),
        uncached.0 > 1.0,
    );
}

/// Ratios of the CPU time, round by round.
fn chart(context: &mut Context, device: &str, series: &Series) {
    let line = |comparison: &Comparison| {
        let ratios = series.ratios(comparison, |load| load.cpu_us);
        let point = |(round, y): (usize, f64)| Point { x: (round + 1) as f64, y, interval: None };
        ChartLine {
            name: comparison.name.to_owned(),
            origin: Origin::Measured,
            points: ratios.into_iter().enumerate().map(point).collect(),
        }
    };
    context.chart(Chart {
        id: format!("prices-{}", device.replace('.', "-")),
        title: format!("{device}: CPU time for an answer, as a ratio to the same without the change"),
        description: "Each point is a pair of loads of one round. A line near 1 is a change without a price; its spread is that of the \
                      machine."
            .to_owned(),
        x: ChartAxis { label: "round".to_owned(), logarithmic: false },
        y: ChartAxis { label: "ratio".to_owned(), logarithmic: false },
        lines: series.comparisons.iter().map(line).collect(),
    });
}

/// Differences from the paper, and what the figures are of.
pub fn differences(context: &mut Context) {
    context.difference(
        "Rate",
        format!(
            "All loads are open, with {} queries/s. So CPU times hold the wake-ups of a server that waits for most of the time, and say \
             nothing about its highest rate.",
            limits::RATE_QPS
        ),
    );
    context.difference(
        "Lookups",
        format!(
            "Upstreams of these setups answer after {} ms, and the staggered lookup waits for {} ms. The other setups have an upstream that \
             answers at once. Unbound's module for DNS64 has no setting for the order.",
            limits::DELAY.as_millis(),
            limits::STAGGER.as_millis()
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::mtd64::prices::setups::{COMPARISONS, NEW, NEW_UNCACHED};

    fn series(loads: &[(Setup, [f64; 3])]) -> Series {
        let load = |cpu_us| Measured { cpu_us, sent: 1, valid: 1, ..Measured::default() };
        Series {
            comparisons: COMPARISONS.to_vec(),
            setups: loads.iter().map(|(setup, _)| *setup).collect(),
            rounds: loads.iter().map(|(_, costs)| costs.map(load).to_vec()).collect(),
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine is twice as slow in the second round, for both.
        let series = series(&[(NEW, [10.0, 20.0, 10.0]), (NEW_UNCACHED, [11.0, 22.0, 12.0])]);
        assert_eq!(series.ratios_of(&NEW_UNCACHED, |load| load.cpu_us), [1.1, 1.1, 1.2]);
        assert_eq!(series.ratios_of(&PARALLEL, |load| load.cpu_us).len(), 0, "it was not measured");
    }

    #[test]
    fn a_round_without_answers_has_no_ratio() {
        let series = series(&[(NEW, [0.0, 20.0, 10.0]), (NEW_UNCACHED, [11.0, 22.0, f64::NAN])]);
        assert_eq!(series.ratios_of(&NEW_UNCACHED, |load| load.cpu_us), [1.1]);
        assert!(median(&[f64::NAN]).is_nan());
    }
}
