//! The experiments on TOTD. They need no root; each checks its own claims.

use super::command::run_quick;

#[test]
fn totd_load_shows_the_stall_of_the_bug_and_measures_the_forwarder() {
    let record = run_quick("totd-load");
    let claims = record["claims"].as_array().expect("claims");
    let told = |text: &str| claims.iter().any(|claim| claim["sentence"].as_str().unwrap().contains(text));
    assert!(
        told("stalls for more than 30 s") && told("With sockets") && told("next 1,000 IDs"),
        "{claims:?}"
    );
    let figures = record["figures"].as_array().expect("figures");
    let measured = |row: &str| {
        figures.iter().any(|figure| {
            figure["table"].as_str().unwrap().starts_with("Requests per second, by")
                && figure["row"] == row
                && figure["value"].as_f64().unwrap() > 0.0
        })
    };
    assert!(measured("forwarder, fixed IDs") && measured("forwarder, permuted IDs"));
}

#[test]
fn totd_stability_answers_in_every_second() {
    let record = run_quick("totd-stability");
    let charts = record["charts"].as_array().expect("charts");
    assert!(charts.iter().any(|chart| chart["id"] == "rate-forwarderfixedIDs"), "{charts:?}");
}
