//! The results: a table, the grid, the scaling over the values of a sweep.

use super::{Figure, View, placeholder, scroll};
use crate::chart::{Axis, HeatCell, Mark, Plot, Scale, heat_table};
use crate::grid::grids_of;
use crate::groups::{cell_name, common_cell, sweep_parameter};
use crate::number;
use crate::table::Table;
use crate::verdict::{at_least, goal_name};
use measure::run::{CellResult, Summary};

/// The section.
pub(super) fn section(view: &View) -> String {
    if view.groups.is_empty() {
        return "<p>There is no result yet: no search has ended.</p>".to_owned();
    }
    let mut out = String::from(
        "<p>The highest rates at which every query got a valid answer in time. Percentiles follow RFC 2330 section 11.3: of up to 99 values the 99th is the largest, of up to 100 the 1st is the smallest. The strict result is the one of RFC 8219; in a confirmed result a failure counts only if a second trial at that rate fails too, which is an addition to the RFC, like the rates at which a given share of the queries may be lost. “Queries per CPU second” is the computing-power-relative performance: the rate divided by the number of cores that the device kept busy. Results whose standard deviation is above 10 % of their mean are called scattered: the repetitions met different conditions.</p>",
    );
    out.push_str(&table(view).html());
    out.push_str(&super::spread::figure(view));
    out.push_str(&grids(view));
    out.push_str(&scaling(view));
    out
}

/// The results as a table.
fn table(view: &View) -> Table {
    let head = [
        "Result",
        "",
        "Repetitions",
        "Median",
        "1st pct.",
        "99th pct.",
        "Mean",
        "Deviation",
        "CPU µs/query",
        "Queries per CPU second",
    ];
    let caption = match common_cell(view.run) {
        Some(cell) => format!("Queries per second without loss, {}", cell_name(cell)),
        None => "Queries per second without loss".to_owned(),
    };
    let mut table = Table::new(caption, 2, &head).id("results-table");
    for group in view.groups {
        let result = group.result;
        let cpu = result.cpu_us_per_query.map_or(number::NONE.to_owned(), number::brief);
        let power = result.replies_per_cpu_second().map_or(number::NONE.to_owned(), number::rate);
        table.row(fields(&group.name, "strict", result.censored, &result.summary, [cpu, power]));
        let none = || [String::new(), String::new()];
        if result.confirmed_summary.count > 0 {
            let summary = &result.confirmed_summary;
            table.row(fields(&group.name, "confirmed", result.censored, summary, none()));
        }
        for goal in &result.loss_goals {
            table.row(fields(&group.name, &goal_name(goal), goal.censored, &goal.summary, none()));
        }
    }
    table
}

fn fields(name: &str, kind: &str, censored: bool, summary: &Summary, cost: [String; 2]) -> Vec<String> {
    let bound = if censored { "≥ " } else { "" };
    let mut fields = vec![
        name.to_owned(),
        kind.to_owned(),
        summary.count.to_string(),
        format!("{bound}{}", number::rate(summary.median)),
        number::rate(summary.p1),
        number::rate(summary.p99),
        number::rate(summary.mean),
        deviation(summary),
    ];
    fields.extend(cost);
    fields
}

/// The standard deviation, and its share of the mean where the results are scattered.
fn deviation(summary: &Summary) -> String {
    let deviation = number::fixed(summary.deviation, 1);
    match summary.is_scattered() {
        true => format!(
            "{deviation} ({} of the mean: scattered)",
            number::measured_percent(summary.deviation / summary.mean)
        ),
        false => deviation,
    }
}

/// The grid as a heat table for each value of the sweep.
fn grids(view: &View) -> String {
    let title = "Grid of AAAA and cached shares";
    let grids = grids_of(view.run);
    if grids.is_empty() {
        let why = "Only one combination of AAAA share and cached share was measured. RFC 8219 requires the combination of 0 % and 0 %; the others are optional.";
        return placeholder(title, why);
    }
    let mut picture = String::new();
    for grid in &grids {
        let caption = match grid.sweep {
            "" => "Median, and 1st to 99th percentile, in queries/s".to_owned(),
            value => format!(
                "{} = {value}: median, and 1st to 99th percentile, in queries/s",
                sweep_parameter(view.run)
            ),
        };
        let columns: Vec<String> =
            grid.cached.iter().map(|share| format!("{} cached", number::percent(*share))).collect();
        let cell = |result: &&CellResult| HeatCell {
            value: result.summary.median,
            text: at_least(result, number::rate(result.summary.median)),
            detail: format!("{}–{}", number::rate(result.summary.p1), number::rate(result.summary.p99)),
        };
        let rows: Vec<(String, Vec<Option<HeatCell>>)> = grid
            .rows
            .iter()
            .map(|(share, results)| {
                (
                    format!("{} AAAA", number::percent(*share)),
                    results.iter().map(|it| it.as_ref().map(cell)).collect(),
                )
            })
            .collect();
        picture.push_str(&heat_table(&caption, "", &columns, &rows));
    }
    Figure {
        id: "grid",
        title,
        explanation: "Darker is faster. At 100 % cached the AAAA share makes no difference, so one cell stands for all of that column.".to_owned(),
        picture: format!("<div class=\"grids\">{picture}</div>"),
        legend: String::new(),
        tables: Vec::new(),
    }
    .html_of(&view.form())
}

/// Medians over the values of the sweep, for the cell of the principal result, and their efficiency if the values are
/// numbers.
fn scaling(view: &View) -> String {
    let title = "Scaling";
    let Some(cell) = view.principal.map(|group| group.result.cell) else { return String::new() };
    let results: Vec<&CellResult> = view.run.results.iter().filter(|result| result.cell == cell).collect();
    if results.len() < 2 || results.iter().any(|result| result.sweep.is_empty()) {
        return placeholder(title, "No parameter of the device was swept.");
    }
    let parameter = sweep_parameter(view.run);
    let names: Vec<String> = results.iter().map(|result| result.sweep.clone()).collect();
    let highest = results.iter().map(|result| result.summary.p99.max(result.summary.median));
    let mut plot = Plot::new(
        "scaling-plot",
        "Median rate over the sweep",
        "A bar for each value of the sweep: the median rate without loss, with the 1st and 99th percentile as error bars.",
        (520.0, 300.0),
        Axis::names(&names, parameter),
        Axis::new(Scale::from_zero(highest.map(|value| value * 1.06)), "queries/s", 5, number::tick),
    );
    for (at, result) in results.iter().enumerate() {
        let (middle, summary) = (at as f64 + 0.5, &result.summary);
        let tip = format!(
            "{parameter} = {}: median {}, p1 {}, p99 {}",
            result.sweep,
            number::rate(summary.median),
            number::rate(summary.p1),
            number::rate(summary.p99)
        );
        plot.bar((middle - 0.32, middle + 0.32), (0.0, summary.median), "c1", &tip);
        plot.error_bar(middle, (summary.p1, summary.p99), "ink");
        plot.text(
            (middle, summary.p99),
            (0.0, -6.0),
            "middle",
            &at_least(result, number::rate(summary.median)),
        );
    }
    let efficiency = efficiencies(&results);
    let second = efficiency_plot(parameter, &names, &efficiency);
    Figure {
        id: "scaling",
        title,
        explanation: format!(
            "Bars are medians with the 1st and 99th percentile, over {parameter}, for {}.{}",
            cell_name(cell),
            if second.is_empty() {
                ""
            } else {
                " Efficiency is the rate per unit of the value, relative to the first value."
            }
        ),
        picture: format!("<div class=\"pair\">{}{second}</div>", scroll(&plot.svg())),
        legend: String::new(),
        tables: vec![scaling_table(parameter, &results, &efficiency)],
    }
    .html_of(&view.form())
}

fn scaling_table(parameter: &str, results: &[&CellResult], efficiency: &[(f64, f64)]) -> Table {
    let mut table = Table::new(
        "Scaling",
        1,
        &[parameter, "Median (queries/s)", "1st pct.", "99th pct.", "Per unit", "Efficiency"],
    );
    for (at, result) in results.iter().enumerate() {
        let of = efficiency.get(at);
        let mut row = vec![result.sweep.clone()];
        row.extend([result.summary.median, result.summary.p1, result.summary.p99].map(number::rate));
        row.push(of.map_or(number::NONE.to_owned(), |(per_unit, _)| number::rate(*per_unit)));
        row.push(of.map_or(number::NONE.to_owned(), |(_, part)| number::measured_percent(*part)));
        table.row(row);
    }
    table
}

/// For numeric values of the sweep: the rate per unit, and its ratio to the first one.
fn efficiencies(results: &[&CellResult]) -> Vec<(f64, f64)> {
    let per_unit: Option<Vec<f64>> = results
        .iter()
        .map(|result| match result.sweep.trim().parse::<f64>() {
            Ok(units) if units > 0.0 && units.is_finite() => Some(result.summary.median / units),
            _ => None,
        })
        .collect();
    match per_unit {
        Some(rates) if rates[0] > 0.0 => rates.iter().map(|rate| (*rate, rate / rates[0])).collect(),
        _ => Vec::new(),
    }
}

fn efficiency_plot(parameter: &str, names: &[String], efficiency: &[(f64, f64)]) -> String {
    if efficiency.is_empty() {
        return String::new();
    }
    let mut plot = Plot::new(
        "efficiency-plot",
        "Efficiency over the sweep",
        "The median rate per unit of the value, relative to that of the first value.",
        (520.0, 300.0),
        Axis::names(names, parameter),
        Axis::new(
            Scale::from_zero(efficiency.iter().map(|(_, part)| part * 100.0).chain([100.0])),
            "efficiency (%)",
            5,
            number::tick,
        ),
    );
    let points: Vec<(f64, f64)> =
        efficiency.iter().enumerate().map(|(at, (_, part))| (at as f64 + 0.5, part * 100.0)).collect();
    plot.line(&points, "c3");
    for (point, (per_unit, part)) in points.iter().zip(efficiency) {
        let tip = format!("{} queries/s per unit", number::rate(*per_unit));
        plot.mark(Mark::Dot, *point, "c3", &tip);
        let below = if point.1 > 90.0 { 18.0 } else { -9.0 };
        plot.text(*point, (0.0, below), "middle", &number::measured_percent(*part));
    }
    scroll(&plot.svg())
}
