//! First screen of the page: the verdict, the objections against it, and the profile.

use super::{View, frame};
use crate::escape::html;
use crate::number;
use crate::put;
use crate::verdict::{self, Compliance};
use crate::warnings::gathered;

/// The header of the page.
pub(super) fn header(view: &View) -> String {
    let run = view.run;
    let mut out = format!("<h1>{}</h1>", html(&run.device.title()));
    if let Some(group) = view.principal {
        let summary = &group.result.summary;
        put!(
            out,
            "<p class=\"figure\"><strong id=\"median\">{}</strong> queries/s <span class=\"interval\" id=\"interval\">({})</span>{}</p><p class=\"say\">{}</p>",
            html(&verdict::at_least(group.result, number::rate(summary.median))),
            html(&verdict::interval_text(view.run, group.result, summary)),
            verdict::indicative(view.run, summary).map_or(String::new(), |why| format!(
                " <span class=\"indicative\">indicative: {}</span>",
                html(&why)
            )),
            html(&verdict::interval_note(view.run, summary))
        );
    }
    put!(out, "<p class=\"verdict\" id=\"verdict\">{}</p>", html(&verdict::sentence(run)));
    out.push_str(&badges(view));
    for (heading, text) in verdict::objections(run) {
        put!(
            out,
            "<div class=\"banner\" role=\"note\"><strong>{}.</strong> {}</div>",
            html(heading),
            html(&text)
        );
    }
    if view.principal.is_some_and(|group| group.result.censored) {
        out.push_str(
            "<div class=\"banner\" role=\"note\"><strong>A lower bound.</strong> A search ended at the highest permitted rate, or where no trial said anything about the device, so the true value is at least this figure.</div>",
        );
    }
    out + &frame::warnings(&gathered(run))
}

fn badges(view: &View) -> String {
    let run = view.run;
    let mut badges: Vec<(&str, String)> = Vec::new();
    badges.push(match &*run.profile {
        "quick" => ("no", "profile quick: NOT compliant with RFC 8219".to_owned()),
        "" => ("", "profile not named".to_owned()),
        profile => ("", format!("profile {profile}")),
    });
    let compliance = verdict::compliance(run);
    let class = if compliance == Compliance::Yes { "yes" } else { "no" };
    badges.push((class, format!("RFC 8219 compliant: {}", compliance.words())));
    match &run.self_test {
        Some(test) if test.sufficient => {
            badges
                .push(("yes", format!("tester certified up to {} queries/s", number::rate(test.device_qps))));
        }
        Some(_) => badges.push(("no", "tester's certificate is not sufficient".to_owned())),
        None => badges.push(("no", "tester not certified".to_owned())),
    }
    let certificates = || run.results.iter().filter_map(|result| result.certificate.as_ref());
    match certificates().filter(|certificate| !certificate.sufficient).count() {
        0 if certificates().next().is_none() => {}
        0 => badges.push(("yes", "authority certified with the device's traffic".to_owned())),
        failed => badges
            .push(("no", format!("authority not certified with the device's traffic: {failed} results"))),
    }
    if let Some((passed, failed, skipped)) = run.correctness.as_ref().and_then(|check| check.conformance) {
        let class = if failed == 0 { "yes" } else { "no" };
        badges.push((class, format!("conformance: {passed} passed, {failed} failed, {skipped} skipped")));
    }
    let time = match &*run.ended {
        "" => format!("begun {}", run.started),
        ended => format!("{} to {ended}", run.started),
    };
    badges.push(("", time));
    frame::badges(&badges)
}
