//! `ttcp-blocks` in its short version.

use super::command::{has_real_part, run_quick};

#[test]
#[ignore = "long: the experiment takes a minute"]
fn the_blocks_drain_in_two_fifteenths_of_the_time() {
    let record = run_quick("ttcp-blocks");
    let chart = &record["charts"][0];
    let lines: Vec<&str> =
        chart["lines"].as_array().expect("lines").iter().filter_map(|line| line["name"].as_str()).collect();
    assert!(lines.contains(&"TCP, 2 MSL") && lines.contains(&"T/TCP, 8 RTO"), "{lines:?}");
    if has_real_part(&record) {
        let figures = record["figures"].as_array().expect("figures");
        assert!(
            figures.iter().any(|figure| figure["row"] == "T/TCP, 8 RTO" && figure["origin"] == "measured")
        );
    }
}
