//! `sixfold-bench lab selftest`.

use super::command::run_quick;

#[test]
#[ignore = "long: the experiment takes two minutes"]
fn the_self_test_passes_and_the_searches_end_as_computed() {
    let record = run_quick("selftest");
    let figure = |table: &str, row: &str, column: &str| {
        let figures = record["figures"].as_array().expect("figures");
        let found = figures.iter().find(|it| {
            let has = |key: &str, start: &str| it[key].as_str().is_some_and(|text| text.starts_with(start));
            has("table", table) && has("row", row) && has("column", column)
        });
        found.unwrap_or_else(|| panic!("{table}, {row}, {column}")).clone()
    };
    let results = |row: &str, column: &str| {
        figure("Results of a search", row, column)["value"].as_f64().expect("a number")
    };
    assert_eq!(results("0 % of trials fail: plain", "median"), 8500.0);
    assert_eq!(results("0 % of trials fail: plain", "trials"), 14.0, "the range is 2^14");
    assert!(results("2 % of trials fail: plain", "1st") <= 8191.0);
    assert!(results("2 % of trials fail: searches of a run, confirmed", "1st") >= 8415.0);
    assert_eq!(figure("Rate of the self-test", "r = 10000/s, δ = 0.2", "as meant")["paper"], 24_000.0);
    let highest = figure("Self-test on loopback", "highest", "rate");
    assert!(
        highest["value"].as_f64().is_some_and(|rate| rate > 0.0) && highest["origin"] == "measured",
        "{highest}"
    );
    assert_eq!(record["charts"].as_array().map(Vec::len), Some(2));
    // For each device that is installed: the rate that the RFC requires is 2 (1 + 0.1) times that of the device.
    let of_certificates = |column: &str| -> Vec<f64> {
        let figures = record["figures"].as_array().expect("figures").iter();
        let mine = figures.filter(|it| {
            it["table"].as_str().is_some_and(|table| table.starts_with("Certificate against"))
                && it["column"] == column
        });
        mine.map(|it| it["value"].as_f64().expect("a number")).collect()
    };
    let (rates, required) = (of_certificates("rate of the device"), of_certificates("required by RFC 8219"));
    assert_eq!(rates.len(), required.len());
    assert!(rates.iter().zip(&required).all(|(rate, required)| (required / rate - 2.2).abs() < 1e-6));
}
