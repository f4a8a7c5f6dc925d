//! Points in time as text for operators.

use jiff::Timestamp;
use std::time::SystemTime;

/// A point in time in the form of RFC 3339, in UTC, to the second: `2026-11-26T12:00:06Z`. A time that no calendar has is the year
/// that `jiff` ends with.
pub fn utc(at: SystemTime) -> String {
    let timestamp = Timestamp::try_from(at).unwrap_or(Timestamp::MAX);
    format!("{timestamp:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_time_is_to_the_second() {
        // `date -u -d @1700000000 --rfc-3339=seconds`
        let at = UNIX_EPOCH + Duration::from_millis(1_700_000_000_999);
        assert_eq!(utc(at), "2023-11-14T22:13:20Z");
    }
}
