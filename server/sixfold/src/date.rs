//! Points in time as text for operators.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time from 1970 to the end of the year 9999: RFC 3339 has four digits for a year.
pub const CALENDAR: Duration = Duration::from_secs(253_402_300_800);

/// A point in time in the form of RFC 3339, in UTC, to the second: `2026-11-26T12:00:06Z`. A time before 1970 is shown as 1970, one after
/// the year 9999 as its end.
pub fn utc(at: SystemTime) -> String {
    let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default().min(CALENDAR - Duration::from_secs(1));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since_1970).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_to_the_second() {
        // `date -u -d @1700000000 --rfc-3339=seconds`
        let at = UNIX_EPOCH + Duration::from_millis(1_700_000_000_999);
        assert_eq!(utc(at), "2023-11-14T22:13:20Z");
        assert_eq!(utc(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
        assert_eq!(utc(UNIX_EPOCH + 2 * CALENDAR), "9999-12-31T23:59:59Z");
    }
}
