//! Spread of the repetitions: each one as a point, with median and percentiles.
//!
//! A single lost query early in a strict search gives it a result far below the others. Such repetitions are drawn at
//! the edge of the chart as triangles, because otherwise all others would shrink to one point.

use super::{Figure, View, placeholder, scroll};
use crate::chart::{Axis, Mark, Plot, Scale, legend};
use crate::groups::Group;
use crate::number;
use crate::table::Table;
use crate::verdict::at_least;
use measure::run::{CellResult, Summary};

const TITLE: &str = "Spread of the repetitions";

/// The chart. A single result is shown in queries per second, several as deviations from their medians, because
/// otherwise the slower ones would shrink to points.
pub(super) fn figure(view: &View) -> String {
    let groups: Vec<&Group> = view.groups.iter().filter(|group| reference(group.result) > 0.0).collect();
    if groups.is_empty() {
        return placeholder(TITLE, "No repetition ended above zero.");
    }
    let chart = Chart { absolute: groups.len() == 1 };
    let (scale, outliers) = chart.scale(&groups);
    let kind =
        if view.run.results.iter().any(|it| it.confirmed_summary.count > 0) { "confirmed" } else { "strict" };
    let axis = if chart.absolute {
        Axis::new(scale, "queries/s", 6, number::tick)
    } else {
        let signed: fn(f64) -> String =
            |value| format!("{}{}", if value > 0.0 { "+" } else { "" }, number::tick(value));
        Axis::new(scale, format!("deviation from the {kind} median (%)"), 6, signed)
    };
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    let mut plot = Plot::new(
        "spread-plot",
        TITLE,
        "For each result the rates of all repetitions as points, the median as a tall stroke, the 1st and 99th percentile as the ends of a line.",
        (860.0, 64.0 + groups.len() as f64 * if groups.len() > 8 { 36.0 } else { 50.0 }),
        axis,
        Axis::rows(&names),
    )
    .space_at_right(104.0);
    for (at, group) in groups.iter().enumerate() {
        let row = Axis::row(at, groups.len());
        for (kind, values, summary, class, up) in kinds(group.result) {
            chart.row(&mut plot, group, (kind, values, summary, class), row + up, scale);
        }
        let median = at_least(group.result, number::rate(group.result.summary.median));
        plot.end_label(row + 0.2, &median, "c1");
    }
    let mut marks = vec![(Mark::Dot, "c1", "strict, by RFC 8219")];
    if kind == "confirmed" {
        marks.push((Mark::Dot, "c4", "failures confirmed by a second trial"));
    }
    if outliers {
        marks.push((Mark::Triangle, "c1", "beyond the edge; the table has its value"));
    }
    Figure {
        id: "spread",
        title: TITLE,
        explanation: "Each point is a repetition; the tall stroke is the median, the line reaches from the 1st to the 99th percentile. The number at the right is the strict median in queries/s.".to_owned(),
        picture: scroll(&plot.svg()),
        legend: legend(&marks),
        tables: vec![table(&groups)],
    }
    .html_of(&view.form())
}

/// Reference of the deviations: the confirmed median, because single losses do not change it, otherwise the strict
/// one.
fn reference(result: &CellResult) -> f64 {
    if result.confirmed_summary.median > 0.0 {
        result.confirmed_summary.median
    } else {
        result.summary.median
    }
}

type Kind<'a> = (&'static str, &'a [f64], &'a Summary, &'static str);

/// Strict above confirmed: name, rates, statistics, colour, and the offset above the middle of the row.
fn kinds(result: &CellResult) -> impl Iterator<Item = (&'static str, &[f64], &Summary, &'static str, f64)> {
    let strict = ("strict", &*result.strict, &result.summary, "c1", 0.2);
    let confirmed = ("confirmed", &*result.confirmed, &result.confirmed_summary, "c4", -0.2);
    [strict, confirmed].into_iter().filter(|(_, values, ..)| !values.is_empty())
}

/// Form of the values.
struct Chart {
    /// True for queries per second, false for deviations in per cent.
    absolute: bool,
}

impl Chart {
    fn shown(&self, result: &CellResult, value: f64) -> f64 {
        if self.absolute { value } else { (value / reference(result) - 1.0) * 100.0 }
    }

    /// A scale around the majority of the values, and true if other values are beyond it.
    fn scale(&self, groups: &[&Group]) -> (Scale, bool) {
        let (mut all, mut inside) = (Vec::new(), Vec::new());
        for group in groups {
            let reference = reference(group.result);
            for (_, values, ..) in kinds(group.result) {
                let distance = outlier_distance(values, reference);
                let near = values.iter().filter(|value| (**value - reference).abs() <= distance);
                inside.extend(near.map(|value| self.shown(group.result, *value)));
                all.extend(values.iter().map(|value| self.shown(group.result, *value)));
            }
        }
        let (low, high) = inside
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        let margin = 0.05 * (high - low).max(0.0);
        let scale = Scale::around(inside.iter().flat_map(|value| [value - margin, value + margin]));
        let (Scale::Linear { low, high } | Scale::Log { low, high }) = scale;
        (scale, all.iter().any(|value| !(low..=high).contains(value)))
    }

    fn row(
        &self,
        plot: &mut Plot,
        group: &Group,
        (kind, values, summary, class): Kind,
        y: f64,
        scale: Scale,
    ) {
        let ends = [summary.p1, summary.median, summary.p99];
        let [p1, median, p99] = ends.map(number::rate);
        let tip = format!("{}, {kind}: median {median}, p1 {p1}, p99 {p99}", group.name);
        let [low, middle, high] = ends.map(|value| self.shown(group.result, value));
        plot.span(y, (low, middle, high), class, &tip);
        let (Scale::Linear { low, high } | Scale::Log { low, high }) = scale;
        for (repetition, value) in values.iter().enumerate() {
            // Points with equal rates are drawn apart: on three lines beside each other in the row.
            let aside = ((repetition % 3) as f64 - 1.0) * 0.06;
            let tip = format!("{kind}, repetition {}: {} queries/s", repetition + 1, number::rate(*value));
            let x = self.shown(group.result, *value);
            let mark = if (low..=high).contains(&x) { Mark::Dot } else { Mark::Triangle };
            plot.mark(mark, (x, y + aside), &format!("{class} faint"), &tip);
        }
    }
}

/// Largest distance from the reference at which a value is drawn at its place: six times the median distance of all
/// values, and at least 3 %. Of normally distributed values, one in 20,000 is beyond.
fn outlier_distance(values: &[f64], reference: f64) -> f64 {
    let mut distances: Vec<f64> = values.iter().map(|value| (value - reference).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let median = distances.get(distances.len() / 2).copied().unwrap_or(0.0);
    (6.0 * median).max(0.03 * reference)
}

fn table(groups: &[&Group]) -> Table {
    let mut table =
        Table::new("Rates of the repetitions, queries per second", 2, &["Result", "", "Repetition", "Rate"]);
    for group in groups {
        for (kind, values, ..) in kinds(group.result) {
            for (at, value) in values.iter().enumerate() {
                table.row([group.name.clone(), kind.to_owned(), (at + 1).to_string(), number::rate(*value)]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_that_an_accident_ended_does_not_squeeze_the_others() {
        let usual = [99.0, 100.0, 100.5, 101.0, 102.0];
        let reach_usual = outlier_distance(&usual, 100.5);
        assert!(usual.iter().all(|value| (value - 100.5).abs() <= reach_usual));
        let with_accident = [99.0, 3.0, 100.5, 101.0, 102.0];
        assert!((3.0f64 - 100.5).abs() > outlier_distance(&with_accident, 100.5));
    }
}
