//! `ttcp-fallback` in its short version.

use super::command::{has_real_part, run_quick};

#[test]
#[ignore = "long: the experiment takes a minute"]
fn every_way_back_to_tcp_costs_what_its_timers_say() {
    let record = run_quick("ttcp-fallback");
    let listings = record["listings"].as_array().expect("listings");
    let first = listings[0]["text"].as_str().expect("text");
    assert!(first.contains("> SYN FIN 0 len 19 CC.NEW 101"), "{first}");
    if has_real_part(&record) {
        let figures = record["figures"].as_array().expect("figures");
        assert!(
            figures.iter().any(|figure| figure["row"] == "T/TCP, improved" && figure["origin"] == "measured")
        );
    }
}
