//! The page of an experiment of a published paper.

use super::frame::Frame;
use crate::escape;
use crate::table::Table;
use measure::experiment::Experiment;

/// The whole page.
pub fn html(experiment: &Experiment) -> String {
    let mut claims = Table::new("Claims", 2, &["Claim", "Observed", "Holds"]);
    for claim in &experiment.claims {
        claims.row([claim.sentence.as_str(), &claim.observed, if claim.holds { "yes" } else { "no" }]);
    }
    let header = format!("<header><h1>{}</h1></header>\n", escape::html(&experiment.title));
    Frame {
        title: format!("{}: {}", experiment.name, experiment.title),
        header,
        sections: vec![("claims", "Claims", claims.html())],
        footer: format!("Made by {}.", escape::html(&experiment.tool)),
        json: escape::script(&serde_json::to_string(experiment).unwrap_or_default()),
    }
    .html()
}
