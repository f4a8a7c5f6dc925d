//! Table 1 of the paper on T/TCP.

use super::command::{has_real_part, has_sixfold, run_quick};

#[test]
#[ignore = "long: the experiment takes a minute"]
fn table_1_has_the_papers_rows_and_its_claims_hold() {
    let record = run_quick("ttcp-table1");
    let figures = record["figures"].as_array().expect("figures");
    let total = |table: &str, row: &str, column: &str| {
        let is_it = |figure: &&serde_json::Value| {
            figure["table"].as_str().is_some_and(|of| of.ends_with(table))
                && figure["row"] == row
                && figure["column"] == column
        };
        figures.iter().find(is_it).and_then(|figure| figure["value"].as_f64())
    };
    // 1,000 round trips of 0.4 ms, without computing time.
    for (row, seconds) in [("UDP", 0.4), ("T/TCP", 0.4), ("TCP", 0.8), ("TCP, one connection", 0.4004)] {
        let value = total("virtual time", row, "0.4 ms").expect("a figure");
        assert!((value - seconds).abs() < 1e-9, "{row}: {value}");
    }
    let paper: Vec<f64> = figures.iter().filter_map(|figure| figure["paper"].as_f64()).collect();
    for seconds in [0.22, 2.40, 67.77, 0.52, 8.70, 74.70, 0.53, 8.92, 138.80] {
        assert!(paper.contains(&seconds), "{seconds}");
    }
    if has_real_part(&record) {
        // The link delays each packet by 32.5 ms, so no query is faster than 65 ms.
        assert!(total("measured", "UDP", "65 ms").expect("a figure") >= 65.0);
        // Nor is a way faster than its round trips.
        for (table, row, round_trips) in [
            ("An answer above 512 octets", "UDP with EDNS", 1.0),
            ("An answer above 512 octets", "UDP, TC, then T/TCP", 2.0),
            ("An answer above 512 octets", "UDP, TC, then TCP", 3.0),
            ("A zone transfer of 12,694 octets", "AXFR over TCP", 2.0),
            ("A zone transfer of 12,694 octets", "AXFR over T/TCP", 1.0),
            ("A lookup that goes on to an upstream", "relay asks over T/TCP", 1.0),
            ("A lookup that goes on to an upstream", "relay asks over UDP, then TCP", 3.0),
        ] {
            let quartile = total(table, row, "lower quartile, 65 ms").expect("a figure");
            assert!(quartile >= 65.0 * round_trips, "{row}: {quartile} ms");
        }
        let cost = "Cost of a query at a round trip of 0.4 ms";
        assert!(total(cost, "UDP", "CPU time for each packet").expect("a figure") > 0.0);
        assert_eq!(
            figures
                .iter()
                .find(|it| it["table"] == cost && it["row"] == "TCP" && it["paper"] == 6.0)
                .map(|it| &it["column"]),
            Some(&serde_json::json!("packets"))
        );
        if has_sixfold() {
            // No query of three round trips is faster than 195 ms, and none of one faster than 65 ms.
            let table = "encrypted transports at a round trip of 65 ms";
            for (row, ms) in [
                ("TLS, resumed", 195.0),
                ("HTTPS, full handshake", 195.0),
                ("QUIC, full handshake", 130.0),
                ("QUIC, resumed, early data", 65.0),
                ("TLS, one connection", 65.0),
            ] {
                let median = total(table, row, "median time").expect("a figure");
                assert!(median >= ms, "{row}: {median} ms");
            }
            assert_eq!(total(table, "TLS, resumed, early data (not offered)", "round trips"), Some(2.0));
            assert_eq!(total(table, "TLS, resumed, early data (not offered)", "median time"), None);
        }
    }
}
