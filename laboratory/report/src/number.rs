//! Numbers formatted for people: with thousands separators, a no-break space before the unit, and only significant
//! digits.

/// Text for an unknown number.
pub const NONE: &str = "–";

/// A count with thousands separators: `24,300`.
pub use measure::units::grouped as count;

/// A number with this many decimals and with thousands separators.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let text = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_owned(), count);
    let sign = if value < 0.0 && text.contains(|c: char| ('1'..='9').contains(&c)) { "−" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A rate in queries per second, without the unit. Rates of 100 and more are whole, because no measurement is more
/// precise.
pub fn rate(value: f64) -> String {
    fixed(value, if value.abs() >= 100.0 || value == 0.0 { 0 } else { 1 })
}

/// About three significant digits, for values of any size.
pub fn brief(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ => (2 - size.log10().floor() as i32).clamp(0, 9) as usize,
    };
    fixed(value, decimals)
}

/// A number with its own digits, at most six decimals: for numbers copied from a text.
pub fn shortest(value: f64) -> String {
    let text = fixed(value, 6);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value with the decimals that its interval justifies, as [`estimate_decimals`]. Without an interval a whole number is
/// exact and shown whole.
pub fn estimate(value: f64, interval: Option<(f64, f64)>) -> String {
    match interval.filter(|(low, high)| high > low && (high - low).is_finite()) {
        Some((low, high)) => fixed(value, estimate_decimals(value, high - low)),
        None if value == value.round() => fixed(value, 0),
        None => brief(value),
    }
}

/// Decimals of a value whose interval has this width: two digits of the width, and at least three digits of the value.
pub fn estimate_decimals(value: f64, width: f64) -> usize {
    let after_point =
        |size: f64, digits: f64| (digits - 1.0 - size.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let of_value = if value == 0.0 || !value.is_finite() { 0 } else { after_point(value, 3.0) };
    after_point(width, 2.0).clamp(of_value, of_value + 3)
}

/// The label of a tick, without trailing zeros.
pub fn tick(value: f64) -> String {
    let text = fixed(value, if value.abs() >= 1000.0 { 0 } else { 9 });
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A time in microseconds, in a suitable unit: `85 µs`, `1.25 ms`, `1.00 s`.
pub fn microseconds(value: f64) -> String {
    match value {
        _ if !value.is_finite() => NONE.to_owned(),
        _ if value.abs() < 1e3 => format!("{}\u{a0}µs", brief(value)),
        _ if value.abs() < 1e6 => format!("{}\u{a0}ms", brief(value / 1e3)),
        _ => format!("{}\u{a0}s", brief(value / 1e6)),
    }
}

/// The label of a tick on an axis of times in microseconds.
pub fn tick_microseconds(value: f64) -> String {
    match value {
        _ if value.abs() < 1e3 => format!("{}\u{a0}µs", tick(value)),
        _ if value.abs() < 1e6 => format!("{}\u{a0}ms", tick(value / 1e3)),
        _ => format!("{}\u{a0}s", tick(value / 1e6)),
    }
}

/// A size in octets: `16.4 MiB`.
pub fn octets(value: u64) -> String {
    let mut size = value as f64;
    for unit in ["octets", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return format!("{}\u{a0}{unit}", brief(size));
        }
        size /= 1024.0;
    }
    format!("{}\u{a0}TiB", brief(size))
}

/// An ordered share of 1 as a percentage: `20 %`.
pub fn percent(share: f64) -> String {
    format!("{}\u{a0}%", tick((share * 1e11).round() / 1e9))
}

/// A measured share of 1 as a percentage, with about three digits.
pub fn measured_percent(share: f64) -> String {
    if share.is_finite() { format!("{}\u{a0}%", brief(share * 100.0)) } else { NONE.to_owned() }
}

/// A time in milliseconds: `250 ms`, `60 s`.
pub fn milliseconds(value: u64) -> String {
    if value >= 1000 { format!("{}\u{a0}s", tick(value as f64 / 1000.0)) } else { format!("{value}\u{a0}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let shown: Vec<String> = [0, 999, 1_000, 24_300, 1_234_567].map(count).into();
        assert_eq!(shown, ["0", "999", "1,000", "24,300", "1,234,567"]);
        assert_eq!(fixed(-1234.56, 1), "−1,234.6");
        assert_eq!(fixed(-0.001, 1), "0.0");
        assert_eq!(fixed(f64::NAN, 1), NONE);
    }

    #[test]
    fn small_numbers_keep_three_digits() {
        assert_eq!(
            [0.001234, 0.5, 1.234, 12.34, 123.4].map(brief),
            ["0.00123", "0.500", "1.23", "12.3", "123"]
        );
    }

    #[test]
    fn an_estimate_has_the_digits_that_its_interval_justifies() {
        assert_eq!(estimate(8191.0, None), "8,191");
        assert_eq!(estimate(0.5, None), "0.500");
        // The width is 0.08: two digits of it are thousandths.
        assert_eq!(estimate(65.1234, Some((65.08, 65.16))), "65.123");
        assert_eq!(estimate(65.1234, Some((60.0, 70.0))), "65.1");
        assert_eq!(estimate(24_300.4, Some((24_000.0, 25_000.0))), "24,300");
        assert_eq!(estimate(0.0, Some((0.0, 0.2))), "0.00");
        assert_eq!(estimate(f64::NAN, Some((f64::NAN, 1.0))), NONE);
        assert_eq!([0.1 + 0.2, 117.8, 24_000.0].map(shortest), ["0.3", "117.8", "24,000"]);
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!([85.0, 1250.0, 1e6].map(microseconds), ["85.0\u{a0}µs", "1.25\u{a0}ms", "1.00\u{a0}s"]);
        assert_eq!([512, 17_196_646].map(octets), ["512\u{a0}octets", "16.4\u{a0}MiB"]);
        assert_eq!(
            [0.2, 1.0, 0.07, 1e-8].map(percent),
            ["20\u{a0}%", "100\u{a0}%", "7\u{a0}%", "0.000001\u{a0}%"]
        );
        assert_eq!([250, 60_000, 1_500].map(milliseconds), ["250\u{a0}ms", "60\u{a0}s", "1.5\u{a0}s"]);
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        assert_eq!([0.0, 0.001, 2.5, 20_000.0].map(tick), ["0", "0.001", "2.5", "20,000"]);
    }
}
