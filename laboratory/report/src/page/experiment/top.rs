//! First screen of the page: title, paper, verdict, and the warnings.

use crate::escape::html;
use crate::number;
use crate::put;
use measure::experiment::{Experiment, Origin};

/// The header of the page.
pub(super) fn header(experiment: &Experiment) -> String {
    let mut out = String::from("<header><p class=\"kind\">Experiment of a published paper");
    out.push_str("<button type=\"button\" id=\"theme\" hidden>Dark or light</button></p>");
    put!(out, "<h1>{}</h1>", html(&experiment.title));
    let paper = &experiment.paper;
    let separator = if paper.part.is_empty() || paper.citation.is_empty() { "" } else { ": " };
    put!(out, "<p class=\"say\">{}{separator}{}</p>", html(&paper.citation), html(&paper.part));
    put!(out, "<p class=\"verdict\" id=\"verdict\">{}</p>", html(&verdict(experiment)));
    out.push_str(&badges(experiment));
    out.push_str(&warnings(experiment));
    out.push_str("</header>\n");
    out
}

/// The result in a sentence: the number of claims that hold, and those that do not.
pub(super) fn verdict(experiment: &Experiment) -> String {
    let all = experiment.claims.len();
    let failed: Vec<&str> = experiment
        .claims
        .iter()
        .filter(|claim| !claim.holds)
        .map(|claim| claim.sentence.trim_end_matches('.'))
        .collect();
    match (all, failed.len()) {
        (0, _) => "The experiment tests no claim.".to_owned(),
        (1, 0) => format!("The claim holds: {}.", experiment.claims[0].sentence.trim_end_matches('.')),
        (all, 0) => format!("All {all} claims hold."),
        (all, no) => {
            let verb = if no == 1 { "does" } else { "do" };
            format!("{no} of {all} claims {verb} not hold: {}.", failed.join("; "))
        }
    }
}

fn badges(experiment: &Experiment) -> String {
    let mut badges: Vec<(&str, String)> = vec![("", experiment.name.clone())];
    let (all, holds) =
        (experiment.claims.len(), experiment.claims.iter().filter(|claim| claim.holds).count());
    if all > 0 {
        badges.push((if holds == all { "yes" } else { "no" }, format!("claims that hold: {holds} of {all}")));
    }
    badges.push(match experiment.quick {
        true => ("", "short version (--quick): fewer repetitions".to_owned()),
        false => ("", "whole version".to_owned()),
    });
    for origin in [Origin::Measured, Origin::Virtual, Origin::Arithmetic] {
        let count = experiment.figures.iter().filter(|figure| figure.origin == origin).count();
        if count > 0 {
            badges.push((
                "",
                format!("{} {}", number::count(count as u64), super::figures::origin_phrase(origin, count)),
            ));
        }
    }
    badges.push(("", format!("{} to {}", experiment.started, experiment.ended)));
    let mut out = String::from("<ul class=\"badges\">");
    for (class, text) in badges {
        put!(out, "<li class=\"{class}\">{}</li>", html(&text));
    }
    out.push_str("</ul>");
    out
}

fn warnings(experiment: &Experiment) -> String {
    if experiment.warnings.is_empty() && experiment.host.warnings.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"warnings\" role=\"note\" id=\"warnings\"><strong>Read this before relying on a number</strong><ul>",
    );
    for text in &experiment.warnings {
        put!(out, "<li>{}</li>", html(text));
    }
    for text in &experiment.host.warnings {
        put!(out, "<li>This host: {}</li>", html(text));
    }
    out.push_str("</ul></div>");
    out
}
