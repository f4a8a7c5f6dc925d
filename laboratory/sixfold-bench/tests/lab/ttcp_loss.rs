//! `ttcp-loss`.

use super::command::{has_real_part, has_sixfold, run_quick};

#[test]
#[ignore = "long: the experiment takes a minute"]
fn the_failures_of_each_policy_are_shown_beside_the_arithmetic_and_the_claims_hold() {
    let record = run_quick("ttcp-loss");
    let figures = record["figures"].as_array().expect("figures");
    let failed = |table: &str, column: &str| {
        figures
            .iter()
            .find(|figure| figure["table"] == table && figure["row"] == "30 %" && figure["column"] == column)
            .and_then(|figure| figure["value"].as_f64())
            .expect("a figure with a value")
    };
    // 0.51^3 = 13.27 %. The standard error of 20,000 queries is 0.24 %; four of them are 1 %.
    let table = "Failed queries, no delay";
    assert!((failed(table, "djbdns, 3 sends") - 13.27).abs() < 1.0);
    assert!((failed("Failed queries by arithmetic, no delay", "glibc") - 26.01).abs() < 0.01);
    assert!(failed(table, "T/TCP, 1 s") < failed(table, "UDP with TCP's timer, 1 s"));
    assert!(record["charts"].as_array().expect("charts").len() >= 5);
    if has_real_part(&record) {
        let figures = record["figures"].as_array().expect("figures");
        assert!(
            figures.iter().any(|figure| figure["row"] == "UDP, 3 sends" && figure["origin"] == "measured")
        );
        if has_sixfold() {
            let of_sixfold = |column: &str| {
                let is_it = |figure: &&serde_json::Value| {
                    figure["row"] == "sixfold, 30 %"
                        && figure["column"] == column
                        && figure["origin"] == "measured"
                };
                figures.iter().find(is_it).and_then(|figure| figure["value"].as_f64()).expect(column)
            };
            let all = ["their address", "a synthesized address", "SERVFAIL", "none"].map(of_sixfold);
            assert!((all.iter().sum::<f64>() - 100.0).abs() < 1e-9, "{all:?}");
        }
    }
}
