//! Latency by percentile, and throughput second by second.

use super::{Figure, View, downsampled, placeholder, scroll};
use crate::chart::{Axis, Mark, Plot, Scale, legend};
use crate::groups::{Group, LoadKind, verdict_name};
use crate::limits;
use crate::number;
use crate::table::Table;
use measure::outcome::{Latency, Second};
use measure::run::Trial;

/// The colour of a load.
fn class(kind: LoadKind) -> &'static str {
    match kind {
        LoadKind::Half => "c3",
        LoadKind::FourFifths => "c4",
        LoadKind::Best => "c1",
        LoadKind::Overload => "c2",
    }
}

/// The section.
pub(super) fn section(view: &View) -> String {
    let Some(group) = view.principal else {
        return "<p>There is no result yet: no search has ended.</p>".to_owned();
    };
    percentiles(view, group) + &seconds(group)
}

/// Name of a load: its rate, and the rate relative to the result.
fn load_name(trial: &Trial, part: f64) -> String {
    format!("{} ({})", number::rate(trial.rate_qps), number::percent((part * 100.0).round() / 100.0))
}

/// Latency over the slowest share of queries, both logarithmic, so that each further nine has the same width.
fn percentiles(view: &View, group: &Group) -> String {
    let title = format!("Latency by percentile: {}", group.name);
    let mut loads = group.loads();
    loads.retain(|(_, trial)| trial.outcome.latency_us.intended.count > 0);
    let part = |trial: &Trial| trial.rate_qps / group.result.summary.median;
    if loads.is_empty() {
        return placeholder(&title, "No latencies were recorded.");
    }
    let curves: Vec<Vec<(f64, f64)>> =
        loads.iter().map(|(_, trial)| curve(&trial.outcome.latency_us.intended)).collect();
    let points = || curves.iter().flatten();
    let mut x =
        Axis::new(Scale::decades(points().map(|(x, _)| *x)), "slowest share of the queries", 9, number::tick);
    for (value, label) in &mut x.ticks {
        *label = number::percent(1.0 / *value);
    }
    let y = Axis::new(Scale::near(points().map(|(_, y)| *y)), "latency", 8, number::tick_microseconds);
    let mut plot = Plot::new(
        "percentiles-plot",
        &title,
        "Latency from the intended send time over the slowest share of queries, both axes logarithmic, a line for each load.",
        (860.0, 380.0),
        x,
        y,
    )
    .space_at_right(124.0);
    let timeout_us = view.run.settings.timeout_ms as f64 * 1000.0;
    if points().any(|(_, y)| *y >= timeout_us) {
        plot.rule_y(timeout_us, "timeout");
    }
    for (curve, (kind, trial)) in curves.iter().zip(&loads) {
        let class = class(*kind);
        plot.line(curve, class);
        if let Some(last) = curve.last() {
            plot.end_label(last.1, &load_name(trial, part(trial)), class);
        }
    }
    Figure {
        id: "percentiles",
        title: &title,
        explanation: "At 1 % the line shows the latency that 99 of 100 queries do not exceed. Latency counts from the due time of a query, so a stall of the tester cannot hide a stall of the device. The label of each line is its rate in queries/s, and the rate relative to the result.".to_owned(),
        picture: scroll(&plot.svg()),
        legend: String::new(),
        tables: vec![
            latencies("Latency from the intended send time", &loads, part, |trial| &trial.outcome.latency_us.intended),
            latencies("Latency from the actual send time", &loads, part, |trial| &trial.outcome.latency_us.actual),
        ],
    }
    .html_of(&view.form())
}

/// The points of a distribution: the reciprocal of the share of queries that took at least this long, and the
/// latency.
fn curve(latency: &Latency) -> Vec<(f64, f64)> {
    let total: u64 = latency.histogram.iter().map(|(_, count)| count).sum();
    if total == 0 {
        let all = latency.count.max(1000) as f64;
        let known = [
            (1.0, latency.min),
            (2.0, latency.p50),
            (10.0, latency.p90),
            (100.0, latency.p99),
            (1000.0, latency.p999),
            (all, latency.max),
        ];
        return known.into_iter().filter(|(x, y)| *x <= all && *y > 0.0).collect();
    }
    let mut below = 0;
    let mut points = Vec::with_capacity(latency.histogram.len());
    for (upper_ns, count) in latency.histogram.iter().filter(|(_, count)| *count > 0) {
        points.push((total as f64 / (total - below) as f64, *upper_ns as f64 / 1e3));
        below += count;
    }
    downsampled(&points, limits::LINE_POINTS)
}

fn latencies(
    caption: &str,
    loads: &[(LoadKind, &Trial)],
    part: impl Fn(&Trial) -> f64,
    of: fn(&Trial) -> &Latency,
) -> Table {
    let head = [
        "Load (queries/s)",
        "Verdict",
        "Replies",
        "Shortest",
        "Mean",
        "50 %",
        "90 %",
        "99 %",
        "99.9 %",
        "Longest",
    ];
    let mut table = Table::new(caption, 2, &head);
    for (_, trial) in loads {
        let latency = of(trial);
        let mut row = vec![
            load_name(trial, part(trial)),
            verdict_name(trial.outcome.verdict).to_owned(),
            number::count(latency.count),
        ];
        row.extend(
            [latency.min, latency.mean, latency.p50, latency.p90, latency.p99, latency.p999, latency.max]
                .map(number::microseconds),
        );
        table.row(row);
    }
    table
}

/// Sent queries and valid replies second by second, of the highest passed trial and of one in overload.
fn seconds(group: &Group) -> String {
    let title = format!("Throughput by second: {}", group.name);
    let trials = [("The highest rate that passed", group.best()), ("Overload", group.overload())];
    let trials: Vec<(&str, &Trial)> = trials
        .into_iter()
        .filter_map(|(name, trial)| Some((name, trial?)))
        .filter(|(_, trial)| !trial.outcome.per_second.is_empty())
        .collect();
    if trials.is_empty() {
        return placeholder(&title, "No trial has figures for each second.");
    }
    let mut picture = String::from("<div class=\"pair\">");
    let mut tables = Vec::new();
    for (at, (name, trial)) in trials.iter().enumerate() {
        let name = format!("{name}: {} queries/s", number::rate(trial.rate_qps));
        picture.push_str(&format!("<div><h4>{name}</h4>{}</div>", scroll(&second_plot(at, &name, trial))));
        let mut table = Table::new(name, 0, &["Second", "Sent", "Valid", "Invalid", "Late"]);
        for (second, counts) in trial.outcome.per_second.iter().enumerate() {
            let row = [counts.sent, counts.valid, counts.invalid, counts.late].map(number::count);
            table.row([(second + 1).to_string()].into_iter().chain(row));
        }
        tables.push(table);
    }
    picture.push_str("</div>");
    Figure {
        id: "seconds",
        title: &title,
        explanation: "By the due time of the queries. Where the lines of sent and valid separate, queries got no valid reply in time.".to_owned(),
        picture,
        legend: legend(&[
            (Mark::Line, "muted dashed", "sent"),
            (Mark::Line, "c1", "valid in time"),
            (Mark::Line, "c2", "late"),
            (Mark::Line, "c4", "invalid"),
        ]),
        tables,
    }
    .html_of(&group.form)
}

fn second_plot(at: usize, name: &str, trial: &Trial) -> String {
    let seconds = &trial.outcome.per_second;
    let length = seconds.len().max(1) as f64;
    let line = |of: fn(&Second) -> u64| downsampled(&steps(trial, of), 2 * limits::LINE_POINTS);
    let (sent, valid) = (line(|second| second.sent), line(|second| second.valid));
    let highest = sent.iter().chain(&valid).map(|(_, rate)| rate * 1.02);
    let mut plot = Plot::new(
        &format!("seconds-{at}-plot"),
        name,
        "Queries sent, valid replies, late and invalid replies for each second of the trial.",
        (520.0, 280.0),
        Axis::new(
            Scale::Linear { low: 0.0, high: length },
            "seconds",
            seconds.len().clamp(1, 6),
            number::tick,
        ),
        Axis::new(Scale::from_zero(highest), "per second", 5, number::tick),
    );
    plot.area(&valid, "c1");
    for (points, style, needed) in [
        (line(|second| second.late), "c2", trial.outcome.late > 0),
        (line(|second| second.invalid), "c4", trial.outcome.invalid_total() > 0),
        (valid, "c1", true),
        (sent, "muted dashed", true),
    ] {
        if needed {
            plot.line(&points, style);
        }
    }
    plot.svg()
}

/// A rate for each second, as steps. For a last second that the trial did not fill, the rate is that of the filled
/// part.
fn steps(trial: &Trial, of: fn(&Second) -> u64) -> Vec<(f64, f64)> {
    let seconds = &trial.outcome.per_second;
    let step = |(at, second): (usize, &Second)| {
        let start = at as f64;
        let filled = trial.outcome.seconds - start;
        // The time from the first to the last query is one interval shorter than the trial; that difference is not a
        // partial second.
        let filled = if (0.01..0.98).contains(&filled) { filled } else { 1.0 };
        let rate = of(second) as f64 / filled;
        [(start, rate), (start + filled, rate)]
    };
    seconds.iter().enumerate().flat_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::outcome::Outcome;

    #[test]
    fn a_second_that_was_not_filled_is_shown_by_its_rate() {
        let second = |sent| Second { sent, ..Second::default() };
        let outcome =
            Outcome { seconds: 1.5, per_second: vec![second(8_000), second(4_000)], ..Outcome::default() };
        let trial = Trial { outcome, ..Trial::default() };
        let steps = steps(&trial, |second| second.sent);
        assert_eq!(steps, [(0.0, 8_000.0), (1.0, 8_000.0), (1.0, 8_000.0), (1.5, 8_000.0)]);
    }

    #[test]
    fn a_latency_stands_where_the_slowest_part_begins() {
        let latency = Latency { histogram: vec![(1_000, 90), (2_000, 9), (50_000, 1)], ..Latency::default() };
        let curve = curve(&latency);
        let expected = [(1.0, 1.0), (10.0, 2.0), (100.0, 50.0)];
        assert_eq!(curve, expected);
    }

    #[test]
    fn without_a_histogram_the_percentiles_make_the_line() {
        let latency = Latency {
            count: 5_000,
            min: 1.0,
            p50: 2.0,
            p90: 3.0,
            p99: 4.0,
            p999: 5.0,
            max: 9.0,
            ..Latency::default()
        };
        assert_eq!(curve(&latency).last(), Some(&(5_000.0, 9.0)));
        assert_eq!(curve(&latency).len(), 6);
    }
}
