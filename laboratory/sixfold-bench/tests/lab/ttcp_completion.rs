//! `ttcp-completion`.

use super::command::run_quick;

#[test]
fn the_times_of_successful_queries_are_shown_and_the_claims_hold() {
    let record = run_quick("ttcp-completion");
    let figures = record["figures"].as_array().expect("figures");
    let value = |table: &str, row: &str, column: &str| {
        figures
            .iter()
            .find(|figure| figure["table"] == table && figure["row"] == row && figure["column"] == column)
            .and_then(|figure| figure["value"].as_f64())
            .expect("a figure with a value")
    };
    // The second send of djbdns leaves after 3 s, and its answer comes a round trip of 1.0004 s later.
    let table = "Median time of the queries of djbdns by retransmissions";
    assert!((value(table, "30 %", "1 retries") - 4.0004).abs() < 1e-6);
    let table = "Median of the time of successful queries";
    assert!((value(table, "0 %", "TCP, 1 s") - 2.0008).abs() < 1e-6);
}
