//! The page of several runs: the results of all devices in one chart and one table.

use super::{Figure, Frame, KIND, View, environment, frame, overlay, scroll};
use crate::chart::{Axis, Mark, Plot, Scale, legend};
use crate::combined::{objections, shown, tables, warning};
use crate::escape;
use crate::groups::groups;
use crate::limits;
use crate::method;
use crate::named::Named;
use crate::number;
use crate::put;
use crate::text_list::and;
use crate::verdict::{self, at_least};
use measure::run::{CellResult, Run, SCHEMA, Summary};
use serde_json::json;

/// The whole page.
pub fn html(runs: &[Named]) -> String {
    let sections = vec![
        ("results", "Results", results(runs)),
        ("method", "Method", method::html(runs)),
        ("environment", "Environment, command lines, configuration", environments(runs)),
    ];
    let (json, left_out) = embedded(runs);
    let footer = format!(
        "Made from the records of {} runs, which are embedded in this page as JSON, in the element <code>#run</code>, without {left_out}.",
        runs.len()
    );
    let names: Vec<&str> = runs.iter().map(|named| &*named.name).collect();
    let title = format!("DNS64 benchmark by RFC 8219: {}", and(&names));
    Frame { title, kind: KIND, header: header(runs), sections, footer, json }.html()
}

fn header(runs: &[Named]) -> String {
    let mut out = format!("<h1>{} devices</h1><ul class=\"verdicts\">", runs.len());
    for named in runs {
        put!(
            out,
            "<li class=\"verdict\">{}</li>",
            escape::html(&verdict::sentence_about(&named.name, named.run))
        );
    }
    out.push_str("</ul>");
    if let Some(warning) = warning(runs) {
        put!(
            out,
            "<div class=\"banner\" role=\"note\" id=\"differences\">{} <a href=\"#conditions\">The conditions</a></div>",
            escape::html(&warning)
        );
    }
    out + &frame::warnings(&objections(runs))
}

fn results(runs: &[Named]) -> String {
    let mut out = String::from(
        "<p>The highest rates at which every query got a valid answer in time. The strict result is the one of RFC 8219; in a confirmed result a failure counts only if a second trial at that rate fails too, which is an addition to the RFC. Percentiles follow RFC 2330 section 11.3: of up to 99 values the 99th is the largest, of up to 100 the 1st is the smallest.</p>",
    );
    out.push_str(&chart(runs));
    out.push_str(&overlay::figures(runs));
    out.extend(tables(runs).iter().map(|table| table.html()));
    out
}

/// Bars of the medians with their intervals.
fn chart(runs: &[Named]) -> String {
    let rows: Vec<(&Named, &CellResult)> = runs
        .iter()
        .flat_map(|named| shown(named.run).into_iter().map(move |result| (named, result)))
        .collect();
    if rows.is_empty() {
        return "<p>There is no result yet: no search has ended.</p>".to_owned();
    }
    let name = |(named, result): &(&Named, &CellResult)| match &*result.sweep {
        "" => named.name.clone(),
        value => format!("{}, {value}", named.name),
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let ends = rows.iter().flat_map(|(named, result)| {
        kinds(result).into_iter().map(|(_, summary, ..)| verdict::interval(named.run, result, summary).1)
    });
    let mut plot = Plot::new(
        "devices-plot",
        "Results of the devices",
        "For each device a bar up to the median, with a line over the interval of the repetitions.",
        (860.0, 64.0 + rows.len() as f64 * 50.0),
        Axis::new(Scale::from_zero(ends), "queries/s", 6, number::tick),
        Axis::rows(&names),
    )
    .space_at_right(104.0);
    let mut has_confirmed = false;
    for (at, (named, result)) in rows.iter().enumerate() {
        let row = Axis::row(at, rows.len());
        for (kind, summary, class, up) in kinds(result) {
            has_confirmed |= kind == "confirmed";
            let (low, high) = verdict::interval(named.run, result, summary);
            let tip = format!(
                "{}, {kind}: median {} of {}, {}",
                names[at],
                at_least(result, number::rate(summary.median)),
                summary.count,
                verdict::interval_text(named.run, result, summary)
            );
            plot.bar(
                (0.0, summary.median),
                (row + up - 0.13, row + up + 0.13),
                &format!("{class} faint"),
                &tip,
            );
            plot.span(row + up, (low, summary.median, high), "ink", &tip);
        }
        plot.end_label(row + 0.2, &at_least(result, number::rate(result.summary.median)), "c1");
    }
    let mut marks = vec![(Mark::Dot, "c1", "strict, by RFC 8219")];
    if has_confirmed {
        marks.push((Mark::Dot, "c4", "failures confirmed by a second trial"));
    }
    Figure {
        id: "chart",
        title: "Medians and intervals",
        explanation: "A bar ends at the median. The line over it reaches from the 1st percentile of the repetitions to the 99th, and beyond it by the precision of the search. The number at the right is the strict median in queries/s.".to_owned(),
        picture: scroll(&plot.svg()),
        legend: legend(&marks),
        tables: Vec::new(),
    }
    .html()
}

/// Name, statistics, colour and place of the results that exist.
fn kinds(result: &CellResult) -> Vec<(&'static str, &Summary, &'static str, f64)> {
    let mut kinds =
        vec![("strict", &result.summary, "c1", 0.2), ("confirmed", &result.confirmed_summary, "c4", -0.2)];
    kinds.retain(|(_, summary, ..)| summary.count > 0);
    kinds
}

fn environments(runs: &[Named]) -> String {
    let mut out = String::new();
    for named in runs {
        let groups = groups(named.run);
        let view = View { run: named.run, principal: None, groups: &groups };
        put!(out, "<h3>{}</h3>{}", escape::html(&named.name), environment::section(&view));
    }
    out
}

/// The runs as JSON for a script element, and the name of the parts that were left out.
fn embedded(runs: &[Named]) -> (String, &'static str) {
    let json = |with_files: bool| {
        let record = |named: &Named| {
            let mut run = Run { trials: Vec::new(), ..named.run.clone() };
            if !with_files {
                run.device.files.clear();
                run.hosts.clear();
            }
            json!({ "name": named.name, "run": run })
        };
        let runs: Vec<serde_json::Value> = runs.iter().map(record).collect();
        escape::script(&json!({ "schema": SCHEMA, "runs": runs }).to_string())
    };
    let whole = json(true);
    if whole.len() <= limits::EMBEDDED_OCTETS {
        return (whole, "their trials");
    }
    (json(false), "their trials, hosts and configurations")
}
