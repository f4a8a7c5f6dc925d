//! The search traces, and loss and goodput against the rate.

use super::{Figure, View, downsampled, placeholder, scroll};
use crate::chart::{Axis, Mark, Plot, Scale, legend};
use crate::groups::{Group, purpose_name, verdict_name};
use crate::limits;
use crate::number;
use crate::put;
use crate::table::Table;
use measure::outcome::Verdict;
use measure::run::{Purpose, Trial};
use std::collections::BTreeMap;

/// The section.
pub(super) fn section(view: &View) -> String {
    let Some(principal) = view.principal else {
        return "<p>There is no result yet: no search has ended.</p>".to_owned();
    };
    let mut out = trace(principal, "trace");
    out.push_str(&loss(principal, "loss"));
    out.push_str(&goodput(principal, "goodput"));
    let others: Vec<_> = view.others().collect();
    if others.is_empty() {
        return out;
    }
    if view.run.trials.len() > limits::DRAWN_TRIALS {
        put!(
            out,
            "<p>The searches of the other {} results are not drawn, because the run has {} trials; <code>trials.csv</code> has all of them.</p>",
            others.len(),
            number::count(view.run.trials.len() as u64)
        );
        return out;
    }
    put!(
        out,
        "<details class=\"more\"><summary>Search traces and loss of the other results ({})</summary>",
        others.len()
    );
    for (at, group) in others {
        out.push_str(&trace(group, &format!("trace-{at}")));
        out.push_str(&loss(group, &format!("loss-{at}")));
    }
    out.push_str("</details>");
    out
}

/// Mark and colour of a verdict.
fn verdict_mark(verdict: Verdict) -> (Mark, &'static str) {
    match verdict {
        Verdict::Pass => (Mark::Dot, "c1"),
        Verdict::Fail => (Mark::Cross, "c2"),
        Verdict::TesterLimited => (Mark::Triangle, "c5"),
        Verdict::DeviceStarved => (Mark::Wedge, "c7"),
    }
}

/// Text shown when the pointer is on a trial.
fn tooltip(trial: &Trial) -> String {
    let outcome = &trial.outcome;
    let mut tip = format!(
        "Trial {} ({}, repetition {}): {} queries/s {}, {} of {} valid",
        trial.number,
        purpose_name(trial.purpose),
        u64::from(trial.repetition) + 1,
        number::rate(trial.rate_qps),
        verdict_name(outcome.verdict),
        number::count(outcome.valid),
        number::count(outcome.sent)
    );
    if !outcome.reason.is_empty() {
        put!(tip, ": {}", outcome.reason);
    }
    tip
}

/// Rate against step, with a line for each repetition.
fn trace(group: &Group, id: &str) -> String {
    let title = format!("Search traces: {}", group.name);
    let searches = group.searches();
    let steps = searches.values().map(Vec::len).max().unwrap_or(0);
    if steps == 0 {
        return placeholder(&title, "No trial of a search is recorded.");
    }
    let rates = searches.values().flatten().map(|trial| trial.rate_qps);
    let mut plot = Plot::new(
        &format!("{id}-plot"),
        &title,
        "The rate of each trial over the steps of the search, a line for each repetition, marked by verdict.",
        (860.0, 340.0),
        Axis::new(
            Scale::Linear { low: 0.0, high: steps as f64 + 0.5 },
            "step of the search",
            10,
            number::tick,
        ),
        Axis::new(Scale::from_zero(rates), "queries/s", 5, number::tick),
    )
    .space_at_right(128.0);
    let median = group.result.summary.median;
    for trials in searches.values() {
        let points: Vec<(f64, f64)> =
            trials.iter().enumerate().map(|(at, trial)| (at as f64 + 1.0, trial.rate_qps)).collect();
        plot.line(&points, "muted thin");
    }
    for trials in searches.values() {
        for (at, trial) in trials.iter().enumerate() {
            let (mark, class) = verdict_mark(trial.outcome.verdict);
            plot.mark(mark, (at as f64 + 1.0, trial.rate_qps), class, &tooltip(trial));
        }
    }
    plot.end_label(median, &format!("{} median", number::rate(median)), "ink");
    Figure {
        id,
        title: &title,
        explanation: format!(
            "Every trial of {} searches in order. After a failed trial its confirmation at the same rate follows, if the plan asked for it.",
            searches.len()
        ),
        picture: scroll(&plot.svg()),
        legend: legend(&[
            (Mark::Dot, "c1", "passed"),
            (Mark::Cross, "c2", "failed"),
            (Mark::Triangle, "c5", "tester-limited: says nothing about the device"),
            (Mark::Wedge, "c7", "device starved: other programs had its cores"),
            (Mark::Line, "muted thin", "one repetition"),
        ]),
        tables: vec![trace_table(group, &searches)],
    }
    .html_of(&group.form)
}

fn trace_table(group: &Group, searches: &BTreeMap<u32, Vec<&Trial>>) -> Table {
    let mut table = Table::new(
        format!("Trials of the searches: {}", group.name),
        2,
        &["Trial", "Verdict", "Repetition", "Step", "Rate (queries/s)", "Sent", "Valid", "Loss", "Purpose"],
    );
    for (repetition, trials) in searches {
        for (at, trial) in trials.iter().enumerate() {
            table.row([
                trial.number.to_string(),
                verdict_name(trial.outcome.verdict).to_owned(),
                (u64::from(*repetition) + 1).to_string(),
                (at + 1).to_string(),
                number::rate(trial.rate_qps),
                number::count(trial.outcome.sent),
                number::count(trial.outcome.valid),
                number::measured_percent(trial.outcome.loss()),
                purpose_name(trial.purpose).to_owned(),
            ]);
        }
    }
    table
}

/// Loss against rate, logarithmic, all trials of the result. Trials without loss are drawn on a separate floor.
fn loss(group: &Group, id: &str) -> String {
    let title = format!("Loss against rate: {}", group.name);
    let trials: Vec<&Trial> = group.trials.iter().filter(|trial| trial.outcome.sent > 0).copied().collect();
    if trials.is_empty() {
        return placeholder(&title, "No trial is recorded.");
    }
    let (y, floor) = loss_axis(trials.iter().map(|trial| trial.outcome.loss()));
    let mut plot = Plot::new(
        &format!("{id}-plot"),
        &title,
        "The share of queries without a valid reply in time over the rate, on a logarithmic scale; trials without loss at the bottom.",
        (860.0, 340.0),
        Axis::new(Scale::from_zero(trials.iter().map(|trial| trial.rate_qps)), "queries/s", 8, number::tick),
        y,
    );
    let median = group.result.summary.median;
    plot.rule_x(median, &format!("strict median {}", number::rate(median)));
    for trial in downsampled(&trials, limits::CHART_POINTS) {
        let (mark, class) = match trial.purpose {
            Purpose::Curve if !trial.outcome.verdict.is_inconclusive() => (Mark::Square, "c4"),
            _ => verdict_mark(trial.outcome.verdict),
        };
        let shown = if trial.outcome.loss() > 0.0 { trial.outcome.loss() } else { floor };
        plot.mark(mark, (trial.rate_qps, shown), class, &tooltip(trial));
    }
    Figure {
        id,
        title: &title,
        explanation: "A single lost query fails a trial. Isolated crosses at low rates are single losses that limit a strict search; the steep rise of the crosses at the right is the device's capacity. Triangles say nothing about it: the tester was the limit, or other programs had the cores of the device.".to_owned(),
        picture: scroll(&plot.svg()),
        legend: legend(&[
            (Mark::Dot, "c1", "search: no loss"),
            (Mark::Cross, "c2", "search: loss"),
            (Mark::Square, "c4", "curve"),
            (Mark::Triangle, "c5", "tester-limited"),
            (Mark::Wedge, "c7", "device starved"),
        ]),
        tables: vec![rates_table(group, &trials)],
    }
    .html_of(&group.form)
}

/// A logarithmic axis of losses, and its lowest value, the floor: the place of trials without loss, which a logarithmic scale
/// cannot show, a decade below the smallest loss.
pub(super) fn loss_axis(losses: impl Iterator<Item = f64>) -> (Axis, f64) {
    let (low, high) = match Scale::decades(losses.chain([1.0])) {
        Scale::Log { low, high } | Scale::Linear { low, high } => (low, high),
    };
    let floor = low / 10.0;
    let mut axis = Axis::new(
        Scale::Log { low: floor, high },
        "queries without a valid reply in time",
        9,
        number::percent,
    );
    axis.ticks.retain(|(value, _)| *value >= low * 0.99);
    axis.ticks.push((floor, "none".to_owned()));
    (axis, floor)
}

fn rates_table(group: &Group, trials: &[&Trial]) -> Table {
    let mut sorted = trials.to_vec();
    sorted.sort_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps));
    let mut table = Table::new(
        format!("Loss by rate: {}", group.name),
        1,
        &["Purpose", "Rate (queries/s)", "Sent", "Valid", "Invalid", "Late", "Lost or refused", "Loss"],
    );
    for trial in sorted {
        let outcome = &trial.outcome;
        table.row([
            purpose_name(trial.purpose).to_owned(),
            number::rate(trial.rate_qps),
            number::count(outcome.sent),
            number::count(outcome.valid),
            number::count(outcome.invalid_total()),
            number::count(outcome.late),
            number::count(outcome.lost + outcome.connection_refused),
            number::measured_percent(outcome.loss()),
        ]);
    }
    table
}

/// Valid replies per second against queries per second: the device's behaviour in overload.
fn goodput(group: &Group, id: &str) -> String {
    let title = format!("Valid replies against rate: {}", group.name);
    let mut curve: Vec<&Trial> =
        group.trials.iter().filter(|trial| trial.purpose == Purpose::Curve).copied().collect();
    if curve.len() < 2 {
        return placeholder(
            &title,
            "No curve was measured, so there is too little data to show the behaviour in overload.",
        );
    }
    curve.sort_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps));
    let highest = curve.iter().map(|trial| trial.rate_qps).fold(0.0, f64::max);
    let scale = Scale::from_zero([highest]);
    let mut plot = Plot::new(
        &format!("{id}-plot"),
        &title,
        "Valid replies in time per second over queries per second, with the line on which every query gets one.",
        (860.0, 320.0),
        Axis::new(scale, "queries/s sent", 8, number::tick),
        Axis::new(scale, "valid replies/s", 5, number::tick),
    )
    .space_at_right(100.0);
    plot.line(&[(0.0, 0.0), (highest, highest)], "muted dashed");
    plot.end_label(highest, "every query", "muted");
    let points: Vec<(f64, f64)> =
        curve.iter().map(|trial| (trial.rate_qps, trial.outcome.goodput_qps())).collect();
    plot.line(&points, "c4");
    for (trial, point) in curve.iter().zip(&points) {
        plot.mark(
            Mark::Square,
            *point,
            "c4",
            &format!("{}; {} valid replies/s", tooltip(trial), number::rate(point.1)),
        );
    }
    if let Some(last) = points.last() {
        plot.end_label(last.1, "valid in time", "c4");
    }
    Figure {
        id,
        title: &title,
        explanation:
            "A device that degrades gracefully keeps its level in overload; the line of a device that collapses falls. Xpd is the degradation of RFC 8219 section 10, (X1 - Xn) / X1: X1 are the valid replies per second at the highest passed rate, and Xn those at n times that rate. The RFC defines it for n network flows of its other tests; here n is the overload."
                .to_owned(),
        picture: scroll(&plot.svg()),
        legend: String::new(),
        tables: vec![goodput_table(&curve, group.best())],
    }
    .html_of(&group.form)
}

/// `best`: the passed trial with the highest rate.
fn goodput_table(curve: &[&Trial], best: Option<&Trial>) -> Table {
    let mut table = Table::new(
        "Valid replies by rate",
        0,
        &["Rate (queries/s)", "n", "Valid replies/s", "Degradation Xpd", "Loss", "99th percentile"],
    );
    for trial in curve {
        let (n, degradation) = match best.and_then(|best| overload(trial, best)) {
            Some((n, degradation)) => {
                (number::fixed(n, 2), format!("{} %", number::fixed(100.0 * degradation, 1)))
            }
            None => (number::NONE.to_owned(), number::NONE.to_owned()),
        };
        table.row([
            number::rate(trial.rate_qps),
            n,
            number::rate(trial.outcome.goodput_qps()),
            degradation,
            number::measured_percent(trial.outcome.loss()),
            number::microseconds(trial.outcome.latency_us.intended.p99),
        ]);
    }
    table
}

/// Overload n of a trial, as a multiple of the highest passed rate, and the degradation Xpd = (X1 - Xn) / X1 of the valid replies
/// per second, for which higher is better (RFC 8219 section 10.1). `None` below that rate.
fn overload(trial: &Trial, best: &Trial) -> Option<(f64, f64)> {
    let (n, x1) = (trial.rate_qps / best.rate_qps, best.outcome.goodput_qps());
    (n >= 1.0 && x1 > 0.0).then(|| (n, (x1 - trial.outcome.goodput_qps()) / x1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::outcome::Outcome;

    #[test]
    fn degradation_is_relative_to_the_highest_passed_rate() {
        let trial = |rate_qps: f64, valid: u64| Trial {
            rate_qps,
            outcome: Outcome { sent: rate_qps as u64, valid, seconds: 1.0, ..Outcome::default() },
            ..Trial::default()
        };
        let best = trial(1_000.0, 1_000);
        // At 1.5 times the rate three quarters of the replies are left.
        assert_eq!(overload(&trial(1_500.0, 750), &best), Some((1.5, 0.25)));
        assert_eq!(overload(&trial(2_000.0, 1_100), &best), Some((2.0, -0.1)), "a device may answer more");
        assert_eq!(overload(&trial(900.0, 900), &best), None);
    }
}
