//! Durations with a unit, as text: `60s`, `250ms`, `1.35s`, `20us`, `2m`, `1h`.

use std::time::Duration;

const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Parses a duration.
///
/// # Errors
///
/// The text is no number with a unit, has more than nine digits before or after the point, or exceeds 584 years. The error says how to
/// write one.
pub fn duration(text: &str) -> Result<Duration, String> {
    let refused = || {
        format!(
            "\"{text}\" is not a duration; write a number and a unit (ns, us, ms, s, m or h), like 250ms or 1.35s"
        )
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refused)?;
    let (number, unit) = text.split_at(end);
    let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || whole.len() > 9 || fraction.len() > 9 {
        return Err(refused());
    }
    let whole: u64 = whole.parse().map_err(|_| refused())?;
    let digits: u64 = fraction.parse().map_err(|_| refused())?;
    let scale = 10u64.pow(fraction.len() as u32);
    // 10^9 hours exceed 64 bits of nanoseconds, so this is checked. A fraction of an hour, 10^9 x 3.6 x 10^12, needs
    // 128 bits.
    let part = (u128::from(digits) * u128::from(*nanoseconds) / u128::from(scale)) as u64;
    let total =
        whole.checked_mul(*nanoseconds).and_then(|whole| whole.checked_add(part)).ok_or_else(refused)?;
    Ok(Duration::from_nanos(total))
}

/// Formats a duration for people, with at most two units: `1 h 5 min`, `2.5 s`, `250 ms`.
pub fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        3600.. => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        60.. => format!("{} min {} s", seconds / 60, seconds % 60),
        1.. => {
            let text = format!("{:.3}", duration.as_secs_f64());
            format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        0 if duration.is_zero() => "0 s".to_owned(),
        0 if duration.subsec_nanos() >= 1_000_000 => format!("{} ms", duration.subsec_millis()),
        0 => format!("{} us", duration.subsec_micros()),
    }
}

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, nanoseconds) in [
            ("60s", 60_000_000_000),
            ("1.35s", 1_350_000_000),
            ("250ms", 250_000_000),
            ("0.5us", 500),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "5", "s", ".5s", "5.s", "5 s", "-1s", "1.2.3s", "1d", "9999999999s", "999999999h"] {
            assert!(duration(text).unwrap_err().contains("like 250ms"), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_in_the_units_that_matter() {
        for (text, shown) in [
            ("7260s", "2 h 1 min"),
            ("61s", "1 min 1 s"),
            ("2.5s", "2.5 s"),
            ("3s", "3 s"),
            ("20ms", "20 ms"),
            ("9us", "9 us"),
            ("0s", "0 s"),
        ] {
            assert_eq!(show(duration(text).unwrap()), shown);
        }
    }
}
