//! Time of day for records.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The current time in UTC, in the format of RFC 3339, to the second.
pub fn now_utc() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

/// Time since 1970.
pub fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
