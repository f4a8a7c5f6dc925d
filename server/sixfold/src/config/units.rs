//! Durations (`"1.35s"`) and sizes (`"64MiB"`): a decimal number and a unit, in exact integer arithmetic.

use super::report::{Fault, quoted};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Units of time in nanoseconds, the largest first.
const TIMES: [(&str, u128); 5] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// Units of size in octets, the largest first.
const SIZES: [(&str, u128); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Parses a duration with its unit: ms, s, m, h or d.
///
/// # Errors
///
/// The text is no number with one of these units, or the duration is outside `range`. The remedy names the range.
pub fn duration(text: &str, range: RangeInclusive<Duration>) -> Result<Duration, Fault> {
    let (low, high) = (show_duration(*range.start()), show_duration(*range.end()));
    let help = format!(
        "write a number and a unit (ms, s, m, h or d), like \"250ms\" or \"1.35s\"; from \"{low}\" to \"{high}\""
    );
    let refuse = |why: &str| Fault::new(format!("{} {why}", quoted(text)), help.clone());
    let nanoseconds = amount(text, &TIMES).map_err(|why| refuse(&format!("is not a duration: {why}")))?;
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).map_err(|_| refuse("is out of range"))?;
    let duration = Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32);
    if range.contains(&duration) { Ok(duration) } else { Err(refuse("is out of range")) }
}

/// Parses a size with its unit, B, KiB, MiB or GiB, into octets.
///
/// # Errors
///
/// The text is no number with one of these units, or means more than a petabyte.
pub fn size(text: &str) -> Result<u64, Fault> {
    let refuse = |why: &str| {
        let what = format!("{} is not a size: {why}", quoted(text));
        Fault::new(what, "write a number and a unit (B, KiB, MiB or GiB), like \"64MiB\"")
    };
    let octets = amount(text, &SIZES).map_err(&refuse)?;
    // A petabyte: far more than any machine has, and far below an overflow.
    u64::try_from(octets).ok().filter(|&octets| octets <= 1 << 50).ok_or_else(|| refuse("it is too large"))
}

/// The duration in the largest unit that shows it exactly; [`duration`] reads it back.
pub fn show_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    for (unit, size) in TIMES {
        if nanoseconds.is_multiple_of(size) {
            return format!("{}{unit}", nanoseconds / size);
        }
    }
    let fraction = format!("{:06}", nanoseconds % 1_000_000);
    format!("{}.{}ms", nanoseconds / 1_000_000, fraction.trim_end_matches('0'))
}

/// The size in the largest unit that shows it exactly; [`size`] reads it back.
pub fn show_size(octets: u64) -> String {
    if octets == 0 {
        return "0MiB".to_owned();
    }
    let exact = SIZES.iter().find(|(_, size)| u128::from(octets).is_multiple_of(*size));
    exact.map_or_else(|| format!("{octets}B"), |(unit, size)| format!("{}{unit}", u128::from(octets) / size))
}

/// Parses digits, at most one point with digits after it, then one of the units.
fn amount(text: &str, units: &[(&str, u128)]) -> Result<u128, &'static str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err("digits are missing after the point"),
        Some((whole, fraction)) => (whole, fraction),
        None => (number, ""),
    };
    if whole.is_empty() {
        return Err("it does not begin with a number");
    }
    if unit.is_empty() {
        return Err("the unit is missing");
    }
    // 12 digits of days in nanoseconds stay below 2^87; with 9 more digits for the fraction below 2^117.
    if whole.len() > 12 || fraction.len() > 9 || fraction.contains('.') {
        return Err("the number has too many digits or points");
    }
    let Some(&(_, size)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err("the unit is unknown");
    };
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| "the number cannot be read")?;
    let scale = 10u128.pow(fraction.len() as u32);
    if !(digits * size).is_multiple_of(scale) {
        return Err("it has more decimal places than its smallest unit, the nanosecond or the byte");
    }
    Ok(digits * size / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Duration, Fault> {
        duration(text, Duration::ZERO..=Duration::from_secs(86_400_000))
    }

    #[test]
    fn durations_are_exact_and_are_shown_so_that_they_can_be_read_back() {
        for (text, nanoseconds, shown) in [
            ("1.35s", 1_350_000_000, "1350ms"),
            ("250ms", 250_000_000, "250ms"),
            ("0.5ms", 500_000, "0.5ms"),
            ("0.000001ms", 1, "0.000001ms"),
            ("1.5ms", 1_500_000, "1.5ms"),
            ("60s", 60_000_000_000, "1m"),
            ("1d", 86_400_000_000_000, "1d"),
            ("1.5h", 5_400_000_000_000, "90m"),
            ("0s", 0, "0s"),
        ] {
            let duration = read(text).unwrap();
            assert_eq!(duration.as_nanos(), nanoseconds, "{text}");
            assert_eq!(show_duration(duration), shown);
            assert_eq!(read(shown).unwrap(), duration);
        }
    }

    #[test]
    fn an_invalid_duration_is_refused_with_the_reason() {
        for (text, why) in [
            ("5", "the unit is missing"),
            ("", "begin with a number"),
            ("s", "begin with a number"),
            ("-1s", "begin with a number"),
            ("1.s", "after the point"),
            (".5s", "begin with a number"),
            ("1.2.3s", "too many"),
            ("1 s", "the unit is unknown"),
            ("1h30m", "the unit is unknown"),
            ("1S", "the unit is unknown"),
            ("9999999999999d", "too many"),
            ("0.0000001ms", "more decimal places than"),
            ("99999999999d", "out of range"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.what.contains(why), "{text}: {}", fault.what);
        }
        let fault = duration("2h", Duration::from_millis(10)..=Duration::from_secs(60)).unwrap_err();
        assert_eq!(fault.what, "`2h` is out of range");
        assert!(fault.help.ends_with("from \"10ms\" to \"1m\""));
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("64MiB").unwrap(), 64 << 20);
        assert_eq!(size("0MiB").unwrap(), 0);
        assert_eq!(size("1.5KiB").unwrap(), 1536);
        for text in ["64", "64MB", "64 MiB", "1.0001B", "99999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
