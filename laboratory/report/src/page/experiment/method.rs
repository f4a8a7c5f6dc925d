//! Everything that is needed to repeat the experiment: command, seed, programs with their versions and files, host.

use crate::command_line::command_line;
use crate::escape::html;
use crate::put;
use crate::table::Table;
use measure::experiment::{Experiment, Origin};

/// The section about the method.
pub(super) fn section(experiment: &Experiment) -> String {
    let mut out = String::from("<p>");
    for (origin, sentence) in [
        (
            Origin::Measured,
            "Figures marked “measured” come from programs, packets and a clock on this host. ",
        ),
        (
            Origin::Virtual,
            "Figures marked “virtual time” come from a simulation: a clock that jumps to the next event, so hours of waiting \
             take no time and equal seeds give equal figures on every machine. ",
        ),
        (Origin::Arithmetic, "Figures marked “arithmetic” follow from a formula. "),
    ] {
        if experiment.figures.iter().any(|figure| figure.origin == origin) {
            out.push_str(sentence);
        }
    }
    out.push_str(
        "Intervals are confidence intervals of 95 %; n is the number of observations behind a figure.</p>",
    );
    let mut table = Table::new("The run", 2, &["Property", "Value"]);
    table.row(["Experiment", experiment.name.as_str()]);
    table.row(["Version", if experiment.quick { "short (--quick)" } else { "whole" }]);
    table.row(["Seed of all random numbers", &experiment.seed.to_string()]);
    table.row(["Begun", &experiment.started]);
    table.row(["Ended", &experiment.ended]);
    table.row(["Measuring program", &experiment.tool]);
    out.push_str(&table.html());
    put!(out, "<h3>Command</h3><pre><code>{}</code></pre>", html(&command_line(&experiment.command)));
    out
}

/// The section about the programs that took part.
pub(super) fn programs(experiment: &Experiment) -> String {
    if experiment.programs.is_empty() {
        return "<p>No program took part other than the measuring one.</p>".to_owned();
    }
    let mut out = String::new();
    for program in &experiment.programs {
        put!(out, "<h3>{}</h3>", html(&program.name));
        match program.version.as_str() {
            "" => out.push_str("<p>Its version is not recorded.</p>"),
            version => put!(out, "<p>It reports its version as <code>{}</code>.</p>", html(version)),
        }
        if program.command.is_empty() {
            out.push_str("<p>It is part of the measuring program.</p>");
        } else {
            put!(out, "<pre><code>{}</code></pre>", html(&command_line(&program.command)));
        }
        for (name, text) in &program.files {
            put!(
                out,
                "<details><summary>{}</summary><pre><code>{}</code></pre></details>",
                html(name),
                html(text)
            );
        }
    }
    out
}

/// The section about the host.
pub(super) fn environment(experiment: &Experiment) -> String {
    if experiment.host.facts.is_empty() {
        return "<p>The host is not recorded.</p>".to_owned();
    }
    let mut table = Table::new("The host", 2, &["Fact", "Value"]);
    for (name, value) in &experiment.host.facts {
        table.row([name, value]);
    }
    format!("<details><summary>Facts of the host</summary>{}</details>", table.html())
}
