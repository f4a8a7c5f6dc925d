//! The page of an experiment of a published paper: claims, figures beside the paper's, charts, and everything that is
//! needed to repeat the experiment.

mod charts;
mod figures;
mod method;
mod top;

use super::frame::Frame;
use crate::escape;
use crate::put;
use measure::experiment::Experiment;

/// The whole page.
pub fn html(experiment: &Experiment) -> String {
    let mut sections = vec![
        ("result", "Result", result(experiment)),
        ("figures", "Figures", figures::section(experiment)),
        ("charts", "Charts", charts::section(experiment)),
        ("differences", "Differences from the paper", differences(experiment)),
        ("method", "Method", method::section(experiment)),
        ("programs", "Programs", method::programs(experiment)),
        ("environment", "Environment", method::environment(experiment)),
    ];
    if !experiment.listings.is_empty() {
        let before = sections.iter().position(|(id, ..)| *id == "differences").unwrap_or(sections.len());
        sections.insert(before, ("listings", "Listings", listings(experiment)));
    }
    Frame {
        title: format!("{}: {}", experiment.name, experiment.title),
        kind: "Experiment of a published paper",
        header: top::header(experiment),
        sections,
        footer: format!(
            "Made by {}. Schema {} of <code>result.json</code>, which is embedded in this page as JSON, in the element \
             <code>#run</code>.",
            escape::html(&experiment.tool),
            experiment.schema
        ),
        json: escape::script(&serde_json::to_string(experiment).unwrap_or_default()),
    }
    .html()
}

/// The claims, each with the observed values.
fn result(experiment: &Experiment) -> String {
    if experiment.claims.is_empty() {
        return "<p>The experiment tests no claim. Its figures are below.</p>".to_owned();
    }
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"claims\"><caption>The claims that the experiment tests</caption>\
         <thead><tr><th scope=\"col\">Claim</th><th scope=\"col\">Refuted by</th><th scope=\"col\">Observed</th>\
         <th scope=\"col\">Holds</th></tr></thead><tbody>",
    );
    for claim in &experiment.claims {
        let holds = if claim.holds { "yes" } else { "no" };
        put!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"{holds}\">{holds}</td></tr>\n",
            escape::html(&claim.sentence),
            escape::html(&claim.refuted_by),
            escape::html(&claim.observed)
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

/// Texts line by line as they are.
fn listings(experiment: &Experiment) -> String {
    let mut out = String::new();
    for listing in &experiment.listings {
        let (subject, text) = (escape::html(&listing.subject), escape::html(&listing.text));
        put!(out, "<h3>{subject}</h3><pre><code>{text}</code></pre>");
    }
    out
}

fn differences(experiment: &Experiment) -> String {
    if experiment.differences.is_empty() {
        return "<p>The record names no difference.</p>".to_owned();
    }
    let mut out = String::from("<dl class=\"notes\">");
    for note in &experiment.differences {
        put!(out, "<dt>{}</dt><dd>{}</dd>", escape::html(&note.subject), escape::html(&note.text));
    }
    out.push_str("</dl>");
    out
}

#[cfg(test)]
mod tests;
