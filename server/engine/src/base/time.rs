//! Engine time: nanoseconds since an origin that the driver chooses. Time is always a parameter; the engine has no clock, so a
//! simulator can advance the time in steps.

use core::ops::{Add, AddAssign, Sub};

/// Point in time, in nanoseconds since the driver's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

/// Span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

impl Span {
    /// Zero nanoseconds.
    pub const ZERO: Span = Span(0);

    /// Span of whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Span {
        Span(milliseconds * 1_000_000)
    }

    /// Span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(seconds * 1_000_000_000)
    }

    /// Microseconds of the span, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds of the span.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Span {
        Span(duration.as_nanos().min(u128::from(u64::MAX)) as u64)
    }
}

/// Conversion from engine time to Unix time, which the driver sets and corrects. Only the timestamps in cookies need Unix time;
/// no timer depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Unix time at the origin of engine time, in nanoseconds, modulo 2^64: it may be before 1970. Whole seconds would not do:
    /// the two clocks begin their seconds at different moments, so the time in seconds would jump by one.
    origin_ns: u64,
}

impl Clock {
    /// Clock that shows the Unix time `unix` at `now`.
    pub(crate) fn set(now: Instant, unix: Span) -> Clock {
        Clock { origin_ns: unix.0.wrapping_sub(now.0) }
    }

    /// Unix time at `now`.
    pub(crate) fn unix(self, now: Instant) -> Span {
        Span(self.origin_ns.wrapping_add(now.0))
    }

    /// Unix time in seconds, modulo 2^32: the timestamp of cookies (RFC 9018 section 4.3).
    pub(crate) fn unix_secs(self, now: Instant) -> u32 {
        (self.origin_ns.wrapping_add(now.0) / 1_000_000_000) as u32
    }
}

impl Add<Span> for Instant {
    type Output = Instant;
    fn add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Instant> for Instant {
    type Output = Span;
    /// Time since `earlier`; zero if `earlier` is later.
    fn sub(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_again_and_again_shows_the_time_to_the_second() {
        // Offset of the beginning of engine seconds after that of Unix seconds. The driver sets the clock ten times a second.
        for offset_ms in [0, 1, 299, 500, 999] {
            let start = Span::from_millis(1_559_731_985_000 + offset_ms);
            let mut clock = Clock::default();
            for ms in 0..5_000 {
                let now = Instant(0) + Span::from_millis(ms);
                let unix = Span(start.0 + Span::from_millis(ms).0);
                if ms % 100 == 0 {
                    clock = Clock::set(now, unix);
                }
                assert_eq!(u64::from(clock.unix_secs(now)), unix.0 / 1_000_000_000, "{offset_ms}, {ms}");
            }
        }
    }

    #[test]
    fn a_clock_may_begin_before_1970() {
        let clock = Clock::set(Instant(0) + Span::from_secs(100), Span::from_secs(7));
        assert_eq!(clock.unix_secs(Instant(0) + Span::from_secs(103)), 10);
    }
}
