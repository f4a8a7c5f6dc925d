//! The engine's time: nanoseconds since an origin that the driver chose. Time is always a parameter; the
//! engine has no clock of its own, so a simulator can step it by hand.

use core::ops::{Add, AddAssign, Sub};

/// A point in time, in nanoseconds since the driver's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Span {
        Span(milliseconds * 1_000_000)
    }

    /// A span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(seconds * 1_000_000_000)
    }

    /// The span in microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Span {
        Span(duration.as_nanos().min(u128::from(u64::MAX)) as u64)
    }
}

/// What the engine's time is in the world's: Unix time, which the driver tells and corrects. It is for the timestamps in
/// cookies alone; nothing waits by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Unix time at the origin of the engine's time, in seconds, modulo 2^64: it may lie before 1970.
    origin_secs: u64,
}

impl Clock {
    /// A clock that shows `unix_secs` at `now`.
    pub(crate) fn set(now: Instant, unix_secs: u64) -> Clock {
        Clock { origin_secs: unix_secs.wrapping_sub(now.0 / 1_000_000_000) }
    }

    /// Unix time, modulo 2^32: what RFC 9018 section 4.3 writes into cookies.
    pub(crate) fn unix_secs(self, now: Instant) -> u32 {
        self.origin_secs.wrapping_add(now.0 / 1_000_000_000) as u32
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
    /// The time since `earlier`; zero when `earlier` is later.
    fn sub(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
