//! The experiments on TOTD. They need no root; each checks its own claims.

use super::command::run_quick;

#[test]
#[ignore = "long: the experiment takes a minute"]
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
            figure["table"] == "Requests per second, by the number of clients"
                && figure["row"] == row
                && figure["value"].as_f64().unwrap() > 0.0
        })
    };
    assert!(measured("forwarder, fixed IDs") && measured("forwarder, permuted IDs"));
    check_tables(&record);
}

/// The tables have all quantities with the paper's numbers, and Figure 3 has the paper's lines.
fn check_tables(record: &serde_json::Value) {
    let figures = record["figures"].as_array().expect("figures");
    let cell = |table: &str, row: &str, column: &str| {
        let is_it = |figure: &&serde_json::Value| {
            figure["table"].as_str().unwrap().starts_with(table)
                && figure["row"] == row
                && figure["column"] == column
        };
        figures.iter().find(is_it).unwrap_or_else(|| panic!("{table}, {row}, {column}")).clone()
    };
    for quantity in
        ["Average experiment", "Standard deviation of the experiments", "Processor in use", "Memory"]
    {
        let measured = cell(quantity, "forwarder, fixed IDs", "4");
        assert!(measured["value"].as_f64().is_some(), "{quantity}: {measured}");
    }
    assert_eq!(cell("Processor in use in virtual time", "fixed", "1")["paper"], 18.9);
    assert_eq!(cell("Memory, by", "forwarder, permuted IDs", "1")["place"], "Table III");
    // 2 IDs for each of 1,010 requests/s.
    let (id_ns, share) = (
        cell("Price", "permuted IDs", "one ID with its share of the shuffle")["value"].as_f64(),
        cell("Price", "permuted IDs", "processor at the paper's 1,010 requests/s")["value"].as_f64(),
    );
    assert!((share.unwrap() / (2020.0 * id_ns.unwrap() * 1e-7) - 1.0).abs() < 1e-9, "{share:?} {id_ns:?}");
    let charts = record["charts"].as_array().expect("charts");
    let figure_3 = charts.iter().find(|chart| chart["id"] == "figure-3").expect("Figure 3");
    let lines = figure_3["lines"].as_array().expect("lines");
    let bind = lines.iter().find(|line| line["name"] == "BIND 9.9.1 (paper)").expect("BIND of the paper");
    // 256 names at 308 requests/s.
    assert!((bind["points"][0]["y"].as_f64().unwrap() - 256.0 / 308.0).abs() < 1e-9);
}

#[test]
#[ignore = "long: the experiment takes a minute"]
fn a_short_run_claims_nothing_about_stability() {
    let record = run_quick("totd-stability");
    assert_eq!(record["claims"].as_array().map(Vec::len), Some(0));
    assert!(record["warnings"].to_string().contains("6 s are not a night"), "{}", record["warnings"]);
    let charts = record["charts"].as_array().expect("charts");
    assert!(charts.iter().any(|chart| chart["id"] == "rate-forwarderfixedIDs"), "{charts:?}");
}
