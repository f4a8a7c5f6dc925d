//! `ttcp-attacks` in its short version.

use super::command::{has_real_part, run_quick};

#[test]
fn the_attacks_work_on_t_tcp_and_the_cookie_stops_them() {
    let record = run_quick("ttcp-attacks");
    let value = |row: &str, column: &str| {
        let figures = record["figures"].as_array().expect("figures");
        let figure = figures.iter().find(|figure| figure["row"] == row && figure["column"] == column);
        figure.and_then(|figure| figure["value"].as_f64()).expect("a figure")
    };
    let share = value("T/TCP", "one guess");
    assert!((40.0..60.0).contains(&share), "{share}");
    assert_eq!(value("TCP Fast Open", "one guess"), 0.0);
    if has_real_part(&record) {
        let figures = record["figures"].as_array().expect("figures");
        assert!(
            figures
                .iter()
                .any(|figure| figure["row"] == "kernel as client" && figure["origin"] == "measured")
        );
    }
}
