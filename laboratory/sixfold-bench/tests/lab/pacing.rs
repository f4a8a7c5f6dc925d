//! `sixfold-bench lab pacing`.

use super::command::run_quick;

#[test]
#[ignore = "long: the experiment takes a minute"]
fn the_pace_is_told_by_the_receiver_and_by_the_tester_over_four_lengths() {
    let record = run_quick("pacing");
    let figures = record["figures"].as_array().expect("figures");
    let value = |table: &str, row: &str, column: &str| {
        let has = |figure: &&serde_json::Value| {
            figure["table"] == table && figure["row"] == row && figure["column"] == column
        };
        figures.iter().find(has).and_then(|figure| figure["value"].as_f64()).expect("a figure")
    };
    for row in ["1,000/s, single", "10,000/s, single", "10,000/s, groups of 16", "1,000/s, single, awake"] {
        for (length, intervals) in [("1 ms", 2000), ("10 ms", 200), ("100 ms", 20), ("1 s", 2)] {
            let table = format!("Deviation of queries from the schedule in {length}");
            for who in ["receiver", "tester"] {
                let largest = value(&table, row, &format!("largest, {who}"));
                let mean = value(&table, row, &format!("mean, {who}"));
                assert!(largest >= mean && mean >= 0.0, "{table}, {row}: {largest} {mean}");
            }
            let counted =
                figures.iter().find(|it| it["table"] == *table && it["row"] == row).expect("a figure");
            assert_eq!(counted["samples"], intervals, "a trial takes 2 s: {counted}");
        }
        let delay = |column: &str| value("Queries after their due time", row, column);
        assert!(delay("largest, receiver") >= delay("99th percentile, receiver"), "{row}");
        assert!(value("Time of sending", row, "longer than ordered, receiver") > -1.0, "{row}");
    }
    let claims = record["claims"].as_array().expect("claims");
    assert_eq!(claims.len(), 3, "trials of 2 s are too short for the authors' bound: {claims:?}");
}
