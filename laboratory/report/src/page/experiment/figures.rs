//! The figures as tables: rows and columns as the record names them, and in each cell our value with its interval, and the
//! paper's figure below it.

use crate::escape::html;
use crate::number;
use crate::put;
use measure::experiment::{Experiment, Figure, Origin};

/// The section: a table for each name of a table, in the order of the first figures.
pub(super) fn section(experiment: &Experiment) -> String {
    if experiment.figures.is_empty() {
        return "<p>The record has no figures.</p>".to_owned();
    }
    let mut out = String::new();
    for name in distinct(experiment.figures.iter().map(|figure| &*figure.table)) {
        let figures: Vec<&Figure> = experiment.figures.iter().filter(|figure| figure.table == name).collect();
        out.push_str(&table(name, &figures));
    }
    out
}

/// The values without repetitions, in the order of their first appearance.
fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for value in all {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// One table.
fn table(name: &str, figures: &[&Figure]) -> String {
    let (rows, columns) =
        (distinct(figures.iter().map(|it| &*it.row)), distinct(figures.iter().map(|it| &*it.column)));
    // A fact that all cells share stands in the caption instead of each cell.
    let origins = distinct(figures.iter().map(|figure| origin_name(figure.origin)));
    let places = distinct(figures.iter().filter(|it| it.paper.is_some()).map(|it| &*it.place));
    let samples = figures[0].samples;
    let shared = Shared {
        origin: origins.len() == 1,
        place: places.len() == 1,
        samples: samples > 1 && figures.iter().all(|figure| figure.samples == samples),
    };
    let mut caption = Vec::new();
    if shared.origin {
        caption.push(format!("Our figures: {}.", origins[0]));
    }
    if shared.samples {
        caption.push(format!("n\u{a0}=\u{a0}{} each.", number::count(samples)));
    }
    if let (true, Some(place)) = (shared.place, places.first().filter(|place| !place.is_empty())) {
        caption.push(format!("The paper's figures: {place}."));
    }
    let title = if name.is_empty() { "Figures" } else { name };
    let mut out = format!(
        "<h3>{}</h3><div class=\"scroll\" tabindex=\"0\"><table class=\"figures\"><caption>{}</caption><thead><tr><td></td>",
        html(title),
        html(&caption.join(" "))
    );
    for column in &columns {
        put!(out, "<th scope=\"col\" class=\"n\">{}</th>", html(column));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        put!(out, "<tr><th scope=\"row\">{}</th>", html(row));
        for column in &columns {
            let here: Vec<&&Figure> =
                figures.iter().filter(|it| it.row == row && it.column == *column).collect();
            match here.is_empty() {
                true => out.push_str("<td class=\"none\"></td>"),
                false => {
                    let parts: String = here.iter().map(|figure| cell(figure, shared)).collect();
                    put!(out, "<td class=\"n\">{parts}</td>");
                }
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Facts that the caption of a table states for all cells.
#[derive(Clone, Copy)]
struct Shared {
    /// The origin of our figures.
    origin: bool,
    /// The place of the paper's figures.
    place: bool,
    /// The number of observations.
    samples: bool,
}

/// The content of a cell: our value, its interval, samples and origin, the paper's value.
fn cell(figure: &Figure, shared: Shared) -> String {
    let finite = |value: &f64| value.is_finite();
    let interval = figure.interval.filter(|(low, high)| finite(low) && finite(high));
    let mut out = match figure.value.filter(finite) {
        Some(value) => {
            format!("<b>{}</b>", html(&with_unit(number::estimate(value, interval), &figure.unit)))
        }
        None => "<b>–</b><small>not measured here</small>".to_owned(),
    };
    let mut details = Vec::new();
    if let (Some(value), Some((low, high))) = (figure.value, interval) {
        details.push(range(value, low, high));
    }
    if figure.samples > 1 && !shared.samples {
        details.push(format!("n\u{a0}=\u{a0}{}", number::count(figure.samples)));
    }
    if !shared.origin {
        details.push(origin_name(figure.origin).to_owned());
    }
    for detail in details.iter().filter(|_| figure.value.is_some_and(f64::is_finite)) {
        put!(out, "<small>{}</small>", html(detail));
    }
    if let Some(paper) = figure.paper.filter(finite) {
        let place = match (&*figure.place, shared.place) {
            ("", _) | (_, true) => String::new(),
            (place, false) => format!(" ({place})"),
        };
        let text = format!("paper {}{place}", with_unit(number::shortest(paper), &figure.unit));
        put!(out, "<small class=\"paper\">{}</small>", html(&text));
    }
    out
}

/// An interval with the decimals of its value.
fn range(value: f64, low: f64, high: f64) -> String {
    let decimals = number::estimate_decimals(value, high - low);
    match high > low {
        true => format!("{} to {}", number::fixed(low, decimals), number::fixed(high, decimals)),
        false => format!("all {}", number::shortest(low)),
    }
}

/// A number with its unit, after a no-break space.
fn with_unit(number: String, unit: &str) -> String {
    match unit {
        "" => number,
        "1/s" => format!("{number}\u{a0}/s"),
        "us" => format!("{number}\u{a0}µs"),
        unit => format!("{number}\u{a0}{unit}"),
    }
}

/// Name of an origin.
pub(super) fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured",
        Origin::Virtual => "virtual time",
        Origin::Arithmetic => "arithmetic",
        Origin::Paper => "the paper",
    }
}

/// The origin of this number of figures, after the number.
pub(super) fn origin_phrase(origin: Origin, count: usize) -> String {
    let noun = if count == 1 { "figure" } else { "figures" };
    match origin {
        Origin::Measured => format!("measured {noun}"),
        Origin::Virtual => format!("{noun} in virtual time"),
        Origin::Arithmetic => format!("{noun} by arithmetic"),
        Origin::Paper => format!("{noun} of the paper"),
    }
}
