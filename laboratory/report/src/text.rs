//! Trials as CSV and histograms as text, for other programs.

use crate::escape::csv;
use crate::groups::{purpose_name, verdict_name};
use crate::put;
use measure::outcome::{Deviation, Latency};
use measure::run::{Run, Trial};
use std::collections::BTreeSet;

/// One row per trial after a row of column names (RFC 4180). Columns for reasons of invalid replies and for kinds of
/// the authority's answers follow the fixed columns; unknown values are empty.
pub fn trials_csv(run: &Run) -> String {
    let reasons: BTreeSet<&str> =
        run.trials.iter().flat_map(|trial| trial.outcome.invalid.keys()).map(|key| &**key).collect();
    let kinds: BTreeSet<&str> =
        run.trials.iter().flat_map(|trial| trial.authority.keys()).map(|key| &**key).collect();
    let mut head: Vec<String> = COLUMNS.iter().map(|column| (*column).to_owned()).collect();
    for latency in ["intended", "actual"] {
        head.extend(
            ["min", "mean", "p50", "p90", "p99", "p999", "max"].map(|it| format!("{latency}_{it}_us")),
        );
    }
    for interval in ["10ms", "100ms", "1s", "1ms"] {
        head.extend(["max", "mean", "beyond_1_percent"].map(|it| format!("pacing_{interval}_{it}")));
    }
    head.extend(reasons.iter().map(|reason| csv(&format!("invalid_{reason}"))));
    head.extend(kinds.iter().map(|kind| csv(&format!("authority_{kind}"))));
    let mut out = head.join(",") + "\r\n";
    for trial in &run.trials {
        let mut fields = fields(trial);
        let latencies = &trial.outcome.latency_us;
        fields.extend([&latencies.intended, &latencies.actual].into_iter().flat_map(latency_fields));
        let pacing = &trial.outcome.pacing_error;
        fields.extend(
            [pacing.ms10, pacing.ms100, pacing.s1, pacing.ms1].into_iter().flat_map(deviation_fields),
        );
        let known = |map: &std::collections::BTreeMap<String, u64>, key: &str| map.get(key).copied();
        fields.extend(reasons.iter().map(|key| known(&trial.outcome.invalid, key).unwrap_or(0).to_string()));
        fields.extend(
            kinds
                .iter()
                .map(|key| known(&trial.authority, key).map_or(String::new(), |count| count.to_string())),
        );
        out.push_str(&fields.join(","));
        out.push_str("\r\n");
    }
    out
}

/// The fixed columns, in the order of [`fields`].
const COLUMNS: [&str; 41] = [
    "number",
    "purpose",
    "sweep",
    "aaaa_share",
    "cached_share",
    "repetition",
    "rate_qps",
    "started",
    "first_name",
    "verdict",
    "reason",
    "sent",
    "received",
    "valid",
    "invalid",
    "late",
    "lost",
    "connection_refused",
    "duplicates",
    "unsolicited",
    "wrong_source",
    "asked_again",
    "names_used",
    "rate_achieved_qps",
    "seconds",
    "lag_max_us",
    "tester_user_s",
    "tester_system_s",
    "tester_waited_s",
    "tester_socket_drops",
    "tester_interface_drops",
    "tester_send_errors",
    "device_user_s",
    "device_system_s",
    "device_waited_s",
    "device_resident",
    "device_resident_peak",
    "device_voluntary_switches",
    "device_involuntary_switches",
    "device_cpu_us_per_query",
    "latency_count",
];

fn fields(trial: &Trial) -> Vec<String> {
    let outcome = &trial.outcome;
    let mut fields = vec![
        trial.number.to_string(),
        purpose_name(trial.purpose).to_owned(),
        csv(&trial.sweep),
        trial.cell.aaaa_share.to_string(),
        trial.cell.cached_share.to_string(),
        trial.repetition.to_string(),
        trial.rate_qps.to_string(),
        csv(&trial.started),
        trial.first_name.to_string(),
        verdict_name(outcome.verdict).to_owned(),
        csv(&outcome.reason),
    ];
    let counts = [
        outcome.sent,
        outcome.received,
        outcome.valid,
        outcome.invalid_total(),
        outcome.late,
        outcome.lost,
        outcome.connection_refused,
        outcome.duplicates,
        outcome.unsolicited,
        outcome.wrong_source,
        outcome.asked_again,
        outcome.names_used,
    ];
    fields.extend(counts.map(|count| count.to_string()));
    let tester = &outcome.tester;
    let numbers = [
        outcome.rate_achieved,
        outcome.seconds,
        outcome.lag_max_us,
        tester.user_s,
        tester.system_s,
        tester.waited_s,
    ];
    fields.extend(numbers.map(|number| number.to_string()));
    fields.extend(
        [tester.socket_drops, tester.interface_drops, tester.send_errors].map(|count| count.to_string()),
    );
    match &trial.device {
        Some(used) => {
            fields.extend([used.user_s, used.system_s, used.waited_s].map(|number| number.to_string()));
            let counts =
                [used.resident, used.resident_peak, used.voluntary_switches, used.involuntary_switches];
            fields.extend(counts.map(|count| count.to_string()));
            fields.push(used.cpu_us_per_query.to_string());
        }
        None => fields.extend(std::iter::repeat_n(String::new(), 8)),
    }
    fields.push(outcome.latency_us.intended.count.to_string());
    fields
}

fn latency_fields(latency: &Latency) -> [String; 7] {
    [latency.min, latency.mean, latency.p50, latency.p90, latency.p99, latency.p999, latency.max]
        .map(|number| number.to_string())
}

fn deviation_fields(deviation: Deviation) -> [String; 3] {
    [deviation.max, deviation.mean, deviation.beyond_1_percent].map(|number| number.to_string())
}

/// Lines for each halving of the distance to 100 %, as in HdrHistogram's output.
const STEPS_PER_HALVING: f64 = 5.0;

/// Limit of the percentile levels: 2^-45 below 100 %, one value of 35 trillion. A float, which has 53 bits, can still
/// represent the steps there.
const MAX_LEVEL: f64 = 1.0 - 1.0 / (1u64 << 45) as f64;

/// The percentile distribution in the text format of HdrHistogram (`.hgrm`), values in microseconds.
pub fn histogram_text(latency: &Latency) -> String {
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let total: u64 = latency.histogram.iter().map(|(_, count)| count).sum();
    let (mut seen, mut level) = (0u64, 0.0f64);
    for (upper_ns, count) in latency.histogram.iter().filter(|(_, count)| *count > 0) {
        seen += count;
        let us = *upper_ns as f64 / 1e3;
        let part = seen as f64 / total as f64;
        while seen < total && part >= level && level < MAX_LEVEL {
            let distance = 1.0 / (1.0 - level);
            put!(out, "{us:12.3} {level:2.12} {seen:10} {distance:14.2}\n");
            // When the distance to 1 halves, the step halves too: five steps in every half.
            level += 1.0 / (STEPS_PER_HALVING * 2f64.powi(distance.log2().floor() as i32 + 1));
        }
        if seen == total {
            put!(out, "{us:12.3} {:2.12} {seen:10}\n", 1.0);
        }
    }
    put!(out, "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n", latency.mean, deviation(latency, total));
    put!(out, "#[Max     = {:12.3}, Total count    = {total:12}]\n", latency.max);
    out
}

/// The standard deviation of all values, each approximated by the upper end of its bucket.
fn deviation(latency: &Latency, total: u64) -> f64 {
    let square = |(upper_ns, count): &(u64, u64)| {
        let difference = *upper_ns as f64 / 1e3 - latency.mean;
        difference * difference * *count as f64
    };
    if total == 0 { 0.0 } else { (latency.histogram.iter().map(square).sum::<f64>() / total as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};

    #[test]
    fn there_is_a_row_for_each_trial_and_all_rows_are_as_long_as_the_head() {
        let mut run = sample::run(&Shape::quick());
        run.trials[1].sweep = "a,\"b\"\nc".to_owned();
        let csv = trials_csv(&run);
        assert!(csv.contains(",\"a,\"\"b\"\"\nc\","), "the hostile field is quoted");
        run.trials[1].sweep.clear();
        run.trials.iter_mut().for_each(|trial| trial.outcome.reason = trial.outcome.reason.replace(',', ""));
        let csv = trials_csv(&run);
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), run.trials.len() + 1);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        let column = |name: &str| rows[0].iter().position(|it| *it == name).unwrap();
        for (trial, row) in run.trials.iter().zip(&rows[1..]) {
            assert_eq!(row[column("rate_qps")].parse::<f64>().unwrap(), trial.rate_qps);
            assert_eq!(row[column("valid")], trial.outcome.valid.to_string());
            assert_eq!(row[column("latency_count")], trial.outcome.latency_us.intended.count.to_string());
            assert_eq!(
                row[column("intended_p99_us")].parse::<f64>().unwrap(),
                trial.outcome.latency_us.intended.p99
            );
            let waited = trial.device.as_ref().map_or(String::new(), |used| used.waited_s.to_string());
            assert_eq!(row[column("device_waited_s")], waited);
            let servfail = trial.outcome.invalid.get("servfail").copied().unwrap_or(0);
            assert_eq!(row[column("invalid_servfail")], servfail.to_string());
        }
    }

    #[test]
    fn a_histogram_halves_its_distance_to_the_end() {
        let latency = Latency {
            count: 100,
            mean: 2.0,
            max: 10.0,
            histogram: vec![(1_000, 90), (10_000, 10)],
            ..Latency::default()
        };
        let text = histogram_text(&latency);
        let lines: Vec<Vec<f64>> = text
            .lines()
            .filter(|line| !line.contains(['#', 'V']) && !line.is_empty())
            .map(|line| line.split_whitespace().map(|field| field.parse().unwrap()).collect())
            .collect();
        assert_eq!(lines[0], [1.0, 0.0, 90.0, 1.0]);
        // Five steps of 0.1 up to one half, then of 0.05 up to three quarters.
        assert_eq!(lines[5], [1.0, 0.5, 90.0, 2.0]);
        assert_eq!(lines[6][1], 0.55);
        assert!(lines.iter().all(|line| (line[0] == 1.0) == (line[1] <= 0.9)), "{text}");
        assert_eq!(lines.last().unwrap(), &[10.0, 1.0, 100.0]);
        assert!(text.ends_with("Total count    =          100]\n"), "{text}");
    }

    #[test]
    fn a_histogram_of_more_values_than_a_float_tells_apart_ends() {
        let latency = Latency { histogram: vec![(1_000, 1 << 60), (2_000, 1)], ..Latency::default() };
        let text = histogram_text(&latency);
        assert!(text.lines().count() < 1000 && text.contains("1152921504606846977"), "{text}");
    }

    #[test]
    fn a_histogram_of_nothing_is_only_its_frame() {
        assert_eq!(histogram_text(&Latency::default()).lines().count(), 4);
    }
}
