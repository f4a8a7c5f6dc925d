//! First screen of the page: title, paper, verdict, and the warnings.

use crate::escape::html;
use crate::number;
use crate::page::frame;
use crate::put;
use measure::experiment::{Experiment, Origin};

/// The header of the page.
pub(super) fn header(experiment: &Experiment) -> String {
    let mut out = format!("<h1>{}</h1>", html(&experiment.title));
    let paper = &experiment.paper;
    let separator = if paper.part.is_empty() || paper.citation.is_empty() { "" } else { ": " };
    put!(out, "<p class=\"say\">{}{separator}{}</p>", html(&paper.citation), html(&paper.part));
    put!(out, "<p class=\"verdict\" id=\"verdict\">{}</p>", html(&verdict(experiment)));
    out.push_str(&badges(experiment));
    let of_host = experiment.host.warnings.iter().map(|text| format!("This host: {text}"));
    let warnings: Vec<String> = experiment.warnings.iter().cloned().chain(of_host).collect();
    out + &frame::warnings(&warnings)
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
    frame::badges(&badges)
}
