//! The charts of an experiment: our curves with solid lines, the paper's with dashed lines and crosses, and the figures of
//! each chart as a table.

use crate::chart::{Axis, CURVE_COLOURS, CURVE_MARKS, Mark, Plot, Scale, line_legend};
use crate::limits;
use crate::number;
use crate::page::{Figure, downsampled, scroll};
use crate::table::Table;
use measure::experiment::{Chart, ChartAxis, ChartLine, Experiment, LINES_MAX, Origin, Point};

/// Marks of the paper's curves, in order; after the last they begin again, in other colours.
const PAPER_MARKS: [Mark; 3] = [Mark::Cross, Mark::Plus, Mark::Star];

/// Points of a curve up to which each point has a mark, and each interval a bar. A longer curve has a band, and a mark at
/// every so many points.
const MARKED_POINTS: usize = 40;

/// Largest absolute value that is drawn, and the reciprocal of the smallest on a logarithmic axis: no physical quantity is
/// beyond, and the arithmetic of the axes cannot overflow.
const DRAWN_MAX: f64 = 1e30;

/// The section.
pub(super) fn section(experiment: &Experiment) -> String {
    if experiment.charts.is_empty() {
        return "<p>The record has no charts.</p>".to_owned();
    }
    experiment.charts.iter().enumerate().map(|(at, it)| chart(at, it)).collect()
}

/// A curve with its look.
struct Curve<'a> {
    line: &'a ChartLine,
    mark: Mark,
    class: &'static str,
    /// Points that the axes can show.
    points: Vec<Point>,
}

impl Curve<'_> {
    fn is_paper(&self) -> bool {
        self.line.origin == Origin::Paper
    }
}

/// A chart. Its ID has its number, because the record's own may occur twice.
fn chart(at: usize, chart: &Chart) -> String {
    let curves = curves(chart);
    let id = format!("chart-{}", at + 1);
    let mut explanation = chart.description.clone();
    let is_drawn = |curve: &&Curve| !curve.points.is_empty();
    if chart.lines.len() > LINES_MAX {
        explanation += &format!(" The chart shows the first {LINES_MAX} of {} curves.", chart.lines.len());
    }
    if curves.iter().any(|curve| curve.points.len() < curve.line.points.len()) {
        explanation += " Points that the axes cannot show are in the table only.";
    }
    let legend: Vec<(Mark, &str, bool, &str)> = curves
        .iter()
        .filter(is_drawn)
        .map(|curve| (curve.mark, curve.class, curve.is_paper(), &*curve.line.name))
        .collect();
    let picture = match curves.iter().any(|curve| is_drawn(&curve)) {
        true => scroll(&plot(&id, chart, &curves).svg()),
        false => "<p>No point can be shown.</p>".to_owned(),
    };
    Figure {
        id: &id,
        title: &chart.title,
        explanation,
        picture,
        legend: line_legend(&legend),
        tables: vec![table(chart, &curves)],
    }
    .html()
}

/// The curves with marks and colours. A curve of the paper has the colour of that curve of ours whose name is in its name.
fn curves(chart: &Chart) -> Vec<Curve<'_>> {
    let lines = || chart.lines.iter().take(LINES_MAX);
    let ours: Vec<&ChartLine> = lines().filter(|line| line.origin != Origin::Paper).collect();
    let (mut next, mut papers, mut own) = (ours.len(), 0, 0);
    lines()
        .map(|line| {
            let (mark, colour) = if line.origin == Origin::Paper {
                papers += 1;
                let twin = (0..ours.len())
                    .filter(|at| !ours[*at].name.is_empty() && line.name.contains(&*ours[*at].name))
                    .max_by_key(|at| ours[*at].name.len());
                let colour = twin.unwrap_or_else(|| {
                    next += 1;
                    next - 1
                });
                (PAPER_MARKS[(papers - 1) % PAPER_MARKS.len()], colour)
            } else {
                own += 1;
                (CURVE_MARKS[own - 1], own - 1)
            };
            let points = line.points.iter().copied().filter(|point| is_shown(chart, point)).collect();
            Curve { line, mark, class: CURVE_COLOURS[colour % CURVE_COLOURS.len()], points }
        })
        .collect()
}

/// True for a point that the axes can show.
fn is_shown(chart: &Chart, point: &Point) -> bool {
    fits(&chart.x, point.x) && fits(&chart.y, point.y)
}

/// True for a value that an axis can show: finite, and above 0 on a logarithmic axis.
fn fits(axis: &ChartAxis, value: f64) -> bool {
    value.abs() <= DRAWN_MAX && (!axis.logarithmic || value >= 1.0 / DRAWN_MAX)
}

/// The drawing.
fn plot(id: &str, chart: &Chart, curves: &[Curve]) -> Plot {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x = axis(&chart.x, &points().map(|point| point.x).collect::<Vec<_>>(), &[], 9);
    let ends = points().filter_map(|point| point.interval).flat_map(|(low, high)| [low, high]);
    let ends: Vec<f64> = ends.filter(|value| fits(&chart.y, *value)).collect();
    let y = axis(&chart.y, &points().map(|point| point.y).collect::<Vec<_>>(), &ends, 6);
    let size = (860.0, 400.0);
    let mut plot =
        Plot::new(&format!("{id}-plot"), &chart.title, &chart.description, size, x, y).space_at_right(24.0);
    for curve in curves {
        draw_intervals(&mut plot, curve);
    }
    for curve in curves {
        let shown = downsampled(&curve.points, limits::LINE_POINTS);
        let line: Vec<(f64, f64)> = shown.iter().map(|point| (point.x, point.y)).collect();
        let style = if curve.is_paper() { " dashed" } else { "" };
        plot.line(&line, &format!("{}{style}", curve.class));
        let marked = if shown.len() > MARKED_POINTS { downsampled(&shown, MARKED_POINTS / 2) } else { shown };
        for point in marked {
            let tip = format!("{}: {} at {}", curve.line.name, value(&point), number::shortest(point.x));
            plot.mark(curve.mark, (point.x, point.y), curve.class, &tip);
        }
    }
    plot
}

/// Bars, or a band for a long curve.
fn draw_intervals(plot: &mut Plot, curve: &Curve) {
    let edges: Vec<(f64, f64, f64)> = curve
        .points
        .iter()
        .filter_map(|point| point.interval.map(|(low, high)| (point.x, low, high)))
        .collect();
    if edges.len() > MARKED_POINTS {
        return plot.band(&downsampled(&edges, limits::LINE_POINTS), curve.class);
    }
    for (x, low, high) in edges {
        plot.error_bar(x, (low, high), &format!("thin {}", curve.class));
    }
}

/// An axis around the values and the ends of their intervals. A linear axis begins at zero unless the values are far from
/// it; an interval that reaches below is then cut off.
fn axis(axis: &ChartAxis, values: &[f64], ends: &[f64], wanted: usize) -> Axis {
    let (low, high) =
        values.iter().fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(*it), high.max(*it)));
    let all = values.iter().chain(ends).copied();
    let scale = match axis.logarithmic {
        true => Scale::near(all),
        false if low >= 0.0 && low < 0.7 * high => Scale::from_zero(all),
        false => Scale::around(all),
    };
    Axis::new(scale, axis.label.clone(), wanted, number::tick)
}

/// The vertical value of a point, with its interval.
fn value(point: &Point) -> String {
    match point.interval.filter(|(low, high)| (high - low).is_finite()) {
        Some((low, high)) => {
            let decimals = number::estimate_decimals(point.y, high - low);
            format!(
                "{} ({} to {})",
                number::estimate(point.y, Some((low, high))),
                number::fixed(low, decimals),
                number::fixed(high, decimals)
            )
        }
        None => number::shortest(point.y),
    }
}

/// The points as a table: a row for each horizontal value, a column for each curve.
fn table(chart: &Chart, curves: &[Curve]) -> Table {
    let mut head = vec![&*chart.x.label];
    head.extend(curves.iter().map(|curve| &*curve.line.name));
    let mut table = Table::new(format!("{}: {}", chart.title, chart.y.label), 1, &head);
    let mut horizontal: Vec<f64> =
        curves.iter().flat_map(|curve| &curve.line.points).map(|point| point.x).collect();
    horizontal.sort_by(f64::total_cmp);
    horizontal.dedup_by(|a, b| a.total_cmp(b).is_eq());
    // One row more than the page shows, so that the page says that rows are left out.
    for x in horizontal.into_iter().take(limits::TABLE_ROWS + 1) {
        let cells = curves.iter().map(|curve| {
            let here = curve.line.points.iter().filter(|point| point.x.total_cmp(&x).is_eq());
            here.map(value).collect::<Vec<_>>().join("; ")
        });
        let row: Vec<String> = std::iter::once(number::shortest(x)).chain(cells).collect();
        table.row(row);
    }
    table
}
