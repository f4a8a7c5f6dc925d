//! Figures as people read them.

use crate::traffic::Latency;
use std::time::Duration;

/// Width and height of a chart, in its own units.
const CHART: (f64, f64) = (600.0, 60.0);

/// Distance of two points: 120 of them fill the chart.
const STEP: f64 = 5.0;

/// Items of a list that are named.
const NAMED: usize = 5;

/// A number with commas between groups of three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The first items of a list, and the number of the others.
pub fn listed(items: &[String]) -> String {
    let first = items[..items.len().min(NAMED)].join(", ");
    match items.len().saturating_sub(NAMED) {
        0 => first,
        others => format!("{first} and {others} more"),
    }
}

/// A number of events per second.
pub fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "no data yet".into(),
        Some(0.0) => "0/s".into(),
        Some(rate) if rate < 0.05 => "less than 0.1/s".into(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}/s"),
        Some(rate) => format!("{}/s", count(rate.round() as u64)),
    }
}

/// A share in percent.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "no data".into(),
        _ => format!("{:.1} %", part as f64 / whole as f64 * 100.0),
    }
}

/// Octets in MiB, without the unit.
pub fn mebibytes(octets: u64) -> String {
    let mebibytes = octets as f64 / f64::from(1 << 20);
    if mebibytes < 10.0 { format!("{mebibytes:.1}") } else { count(mebibytes.round() as u64) }
}

/// A latency.
pub fn latency(latency: Latency) -> String {
    match latency {
        Latency::Unknown => "no data".into(),
        Latency::Below(bound) => format!("{} or less", span(bound)),
        Latency::About(value) => span(value),
        Latency::Above(bound) => format!("more than {}", span(bound)),
    }
}

/// A short time with two digits or more.
fn span(span: Duration) -> String {
    let ms = span.as_secs_f64() * 1e3;
    match ms {
        0.0..0.1 => format!("{ms:.2} ms"),
        0.1..10.0 => format!("{ms:.1} ms"),
        10.0..1e3 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1e3),
    }
}

/// A long time in its two largest units.
pub fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The points of a line through values from 0 to `highest`, the last one at the right edge.
pub fn points(values: &[f64], highest: f64) -> String {
    let (width, height) = CHART;
    let point = |(place, value): (usize, &f64)| {
        let x = width - (values.len() - 1 - place) as f64 * STEP;
        let part = if highest > 0.0 { value / highest } else { 0.0 };
        // Two units at both edges for the width of the line.
        format!("{x:.0},{:.1}", height - 2.0 - part * (height - 4.0))
    };
    values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [None, Some(0.0), Some(0.01), Some(3.24), Some(1234.5)].map(rate),
            ["no data yet", "0/s", "less than 0.1/s", "3.2/s", "1,235/s"]
        );
        assert_eq!([share(1, 0), share(1, 3), share(3, 3)], ["no data", "33.3 %", "100.0 %"]);
        assert_eq!([mebibytes(0), mebibytes(1 << 19), mebibytes(2048 << 20)], ["0.0", "0.5", "2,048"]);
        let micros = |us| Latency::About(Duration::from_micros(us));
        assert_eq!(
            [micros(80), micros(1_750), micros(250_000), micros(2_500_000)].map(latency),
            ["0.08 ms", "1.8 ms", "250 ms", "2.5 s"]
        );
        assert_eq!(latency(Latency::Below(Duration::from_micros(50))), "0.05 ms or less");
        assert_eq!(latency(Latency::Above(Duration::from_secs(5))), "more than 5.0 s");
        let times = [59, 61, 7_260, 200_000].map(|seconds| uptime(Duration::from_secs(seconds)));
        assert_eq!(times, ["59 s", "1 min 1 s", "2 h 1 min", "2 d 7 h"]);
    }

    #[test]
    fn a_line_ends_at_the_right_edge_and_stays_within_the_chart() {
        assert_eq!(points(&[0.0, 5.0, 10.0], 10.0), "590,58.0 595,30.0 600,2.0");
        assert_eq!(points(&[0.0], 0.0), "600,58.0");
        assert_eq!(points(&[], 0.0), "");
    }
}
