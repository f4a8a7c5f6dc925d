//! The page as text; the tests of the command line show it in a browser.

use super::*;
use crate::sample::{self, Shape};
use splitmix::SplitMix64;

fn small() -> Run {
    sample::run(&Shape { repetitions: 3, seconds: 2, ..Shape::full() })
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = html(&small());
    for forbidden in ["http://", "https://", " src=", "@import", "url(", "<iframe", "<object", "<base"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let links = page.match_indices("href=\"").map(|(at, _)| &page[at + 6..at + 12]);
    assert!(links.into_iter().all(|target| target.starts_with('#') || target.starts_with("data:,")));
}

#[test]
fn no_text_of_a_run_becomes_markup() {
    let mut run = sample::run(&Shape {
        sweep: vec!["1".into(), "2".into()],
        repetitions: 3,
        seconds: 2,
        ..Shape::full()
    });
    let hostile = "</script><img src=x onerror=alert(1)>\"'&";
    run.tool = hostile.into();
    run.profile = hostile.into();
    run.started = hostile.into();
    run.settings.zone = hostile.into();
    run.settings.names = hostile.into();
    run.settings.prefix = hostile.into();
    run.device.name = hostile.into();
    run.device.version = hostile.into();
    run.device.command = vec![hostile.into()];
    run.device.address = hostile.into();
    run.device.cores = hostile.into();
    run.device.files = [(hostile.to_owned(), hostile.to_owned())].into();
    run.device.sweep = Some((hostile.into(), vec![hostile.into()]));
    run.warnings = vec![hostile.into()];
    for host in run.hosts.values_mut() {
        host.facts.insert(hostile.into(), hostile.into());
        host.warnings.push(hostile.into());
    }
    let host = run.hosts.values().next().cloned().unwrap_or_default();
    run.hosts.insert(hostile.into(), host);
    for rule in &mut run.checklist {
        rule.because = hostile.into();
        rule.rule = hostile.into();
        rule.level = hostile.into();
        rule.section = hostile.into();
    }
    if let Some(check) = &mut run.correctness {
        check.failed_cases = vec![hostile.into()];
        check.invalid.insert(hostile.into(), 1);
    }
    for trial in &mut run.trials {
        trial.started = hostile.into();
        trial.sweep += if trial.sweep.is_empty() { "" } else { hostile };
        trial.outcome.reason = hostile.into();
        trial.outcome.invalid.insert(hostile.into(), 1);
        trial.authority.insert(hostile.into(), 1);
        for thread in trial.device.iter_mut().flat_map(|used| &mut used.threads) {
            thread.0 = hostile.into();
        }
    }
    for result in &mut run.results {
        result.sweep += hostile;
    }
    let page = html(&run);
    assert!(page.contains("&lt;img src=x onerror"), "the texts are in the page");
    assert!(!page.contains("<img") && !page.contains("\"'&"), "and none as markup");
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn identifiers_are_unique() {
    let page = html(&small());
    let mut ids: Vec<&str> =
        page.match_indices(" id=\"").filter_map(|(at, _)| page[at + 5..].split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn the_embedded_run_is_the_run() {
    let run = sample::run(&Shape::quick());
    let page = html(&run);
    let json = page.split("id=\"run\">").nth(1).unwrap().split("</script>").next().unwrap();
    // Not assert_eq, which would print megabytes.
    assert!(serde_json::from_str::<Run>(json).unwrap() == run);
}

#[test]
fn a_large_run_is_embedded_without_its_histograms() {
    let run = sample::run(&Shape { repetitions: 4, seconds: 60, ..Shape::full() });
    let (json, left_out) = embedded(&run);
    assert!(json.len() <= limits::EMBEDDED_OCTETS, "{}", json.len());
    assert_eq!(left_out, "histograms and seconds of the trials");
    let read: Run = serde_json::from_str(&json).unwrap();
    assert!(read.results == run.results);
    assert_eq!(read.trials.len(), run.trials.len());
}

#[test]
fn a_run_that_has_only_begun_is_a_page_too() {
    for run in [Run::default(), Run { trials: small().trials[..9].to_vec(), ..Run::default() }] {
        let page = html(&run);
        assert!(page.contains("There is no result yet"));
        assert!(page.contains("<strong>Incomplete.</strong>"));
        assert!(!page.contains("NaN") && !page.contains("inf"), "no number is made of nothing");
    }
}

/// Replaces some random numbers of a run by the extremes of their types.
fn spoil(value: &mut serde_json::Value, random: &mut SplitMix64) {
    match value {
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| spoil(value, random)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|value| spoil(value, random)),
        serde_json::Value::Number(number) => {
            let choice = (random.bits() % 400) as usize;
            if number.is_f64() {
                let extremes = [0.0, -1.0, 1e300, 1e-300, -1e300, f64::MAX, 1e18];
                if let Some(extreme) = extremes.get(choice).and_then(|it| serde_json::Number::from_f64(*it)) {
                    *number = extreme;
                }
            } else if let Some(extreme) = [0, 1, 255, u64::from(u32::MAX), 1 << 53, 1 << 55].get(choice) {
                *number = (*extreme).into();
            }
        }
        _ => {}
    }
}

#[test]
fn numbers_of_any_size_make_a_page_and_tables() {
    let sound = [sample::run(&Shape::quick()), small()].map(|run| serde_json::to_value(run).unwrap());
    let mut random = SplitMix64::new(1);
    let mut shown = 0;
    for round in 0..80 {
        let mut value = sound[round % 2].clone();
        spoil(&mut value, &mut random);
        // Some fields hold smaller numbers.
        let Ok(run) = serde_json::from_value::<Run>(value) else { continue };
        shown += 1;
        let page = html(&run);
        assert!(!page.contains("NaN") && !page.contains(">inf"), "no number is made of nothing");
        assert!(page.len() < 64 << 20, "{}", page.len());
        let others = [crate::markdown(&run), crate::latex(&run, "x"), crate::trials_csv(&run)];
        assert!(others.iter().all(|text| !text.contains("NaN")));
        for trial in &run.trials {
            assert!(crate::histogram_text(&trial.outcome.latency_us.intended).len() < 16 << 20);
        }
    }
    assert!(shown >= 10, "{shown}");
}

#[test]
fn charts_without_data_are_left_out_with_a_sentence() {
    let mut run = sample::run(&Shape::quick());
    run.trials.retain(|trial| trial.purpose != measure::run::Purpose::Curve);
    for trial in &mut run.trials {
        trial.device = None;
        trial.authority.clear();
        trial.outcome.per_second.clear();
        trial.outcome.latency_us = Default::default();
    }
    let page = html(&run);
    for sentence in [
        "Only one combination of AAAA share and cached share was measured.",
        "No parameter of the device was swept",
        "No curve was measured",
        "No latencies were recorded.",
        "No trial has figures for each second.",
        "resource use is unknown",
        "counters are missing",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
}

#[test]
fn the_quick_profile_is_labelled() {
    let page = html(&sample::run(&Shape::quick()));
    assert!(page.contains("profile quick: NOT compliant with RFC 8219"));
}

#[test]
fn thinning_keeps_the_first_and_the_last() {
    assert_eq!(downsampled(&[1, 2, 3, 4, 5, 6, 7, 8], 3), [1, 4, 7, 8]);
    assert_eq!(downsampled(&[1, 2], 5), [1, 2]);
    assert_eq!(downsampled::<u8>(&[], 5), Vec::<u8>::new());
}

#[test]
fn the_results_come_before_the_rules_and_the_method_is_there() {
    let page = html(&sample::run(&Shape::quick()));
    let place = |id: &str| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let order = ["results", "searches", "method", "certificate", "rules", "environment"].map(place);
    assert!(order.is_sorted(), "{order:?}");
    assert!(
        page.contains("<strong>Procedure.</strong> The DNS64 performance of Unbound 1.22.0 was measured")
    );
}

#[test]
fn the_figure_has_its_interval_and_says_that_it_is_indicative() {
    let mut run = sample::run(&Shape::quick());
    (run.results[0].summary.p1, run.results[0].summary.p99) = (24_100.0, 24_750.0);
    let page = html(&run);
    // 24,750 / 0.99.
    assert!(page.contains("id=\"interval\">(24,100 to 25,000)</span>"));
    assert!(page.contains("indicative: 3 repetitions instead of 20, profile quick"));
    (run.profile, run.results[0].summary.count) = ("rfc8219".to_owned(), 20);
    assert!(!html(&run).contains("<span class=\"indicative\">"));
}

#[test]
fn rules_that_the_record_cannot_show_are_not_checked() {
    let mut run = sample::run(&Shape::quick());
    run.checklist[0].state = measure::run::Kept::NotChecked;
    let page = html(&run);
    assert!(page.contains("<p>3 kept, 3 not kept, 1 not applicable, 1 not checked.</p>"));
    assert!(page.contains("? not checked"));
}

#[test]
fn the_page_of_several_runs_is_whole_and_hostile_texts_stay_text() {
    let mut one = small();
    let hostile = "</script><img src=x onerror=alert(1)>\"'&";
    one.device.name = hostile.into();
    one.profile = hostile.into();
    let other = sample::run(&Shape::quick());
    let runs = [(hostile, &one), ("b", &other), ("c", &other)];
    let page = combined_html(&named(&runs));
    assert!(!page.contains("<img") && page.contains("&lt;img src=x onerror"));
    assert!(page.contains("Unbound 1.22.0 [b]") && page.contains("The runs differ in more than the device"));
    assert!(page.contains("id=\"conditions\""), "the link of the warning has a target");
    let json = page.split("id=\"run\">").nth(1).unwrap().split("</script>").next().unwrap();
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(value["runs"][1]["run"]["results"][0]["summary"]["median"], other.results[0].summary.median);
    let empty = Run::default();
    assert!(combined_html(&named(&[("a", &empty), ("b", &empty)])).contains("no result yet"));
}
