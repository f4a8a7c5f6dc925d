//! Due time of query n: a pure function of n from an absolute start, in nanoseconds. Nothing accumulates, so nothing
//! drifts: a late query does not make later queries late.

/// Fractional bits of a period. The error of query n is at most n x 2^-29 ns: 2 ns after a billion queries.
const FRACTION: u32 = 28;

/// A constant rate, or bursts at a constant rate. The warm-up before the measured time may have another rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Nanoseconds between queries, times 2^[`FRACTION`].
    period: u64,
    /// Number of queries that are due together.
    burst: u64,
    /// Number of warm-up queries, which come first.
    warm: u64,
    /// Nanoseconds between warm-up queries, times 2^[`FRACTION`].
    warm_period: u64,
    /// Start of the measured time, in nanoseconds after the start of the load.
    measured: u64,
}

impl Schedule {
    /// A schedule for a rate within [`RATES_QPS`](crate::limits::RATES_QPS), in queries per second; others are taken as they are.
    /// `burst`: queries that are due together, at least 1.
    pub fn new(rate_qps: f64, burst: u32) -> Schedule {
        let period = period(rate_qps);
        Schedule { period, burst: u64::from(burst.max(1)), warm: 0, warm_period: period, measured: 0 }
    }

    /// Adds a warm-up of `warm` queries at their own rate before this schedule. The measured time begins when the
    /// next query of an even warm-up would be due, so that a burst that the warm-up does not fill is not followed by
    /// another one at once.
    pub fn after(self, warm: u64, rate_qps: f64) -> Schedule {
        let even = Schedule::new(rate_qps, 1);
        Schedule { warm, warm_period: even.period, measured: even.due(warm), ..self }
    }

    /// Due time of query `n`, in nanoseconds after the start.
    #[inline]
    pub fn due(&self, n: u64) -> u64 {
        let (from, n, period) = if n < self.warm {
            (0, n, self.warm_period)
        } else {
            (self.measured, n - self.warm, self.period)
        };
        let first = if self.burst == 1 { n } else { n - n % self.burst };
        from + ((u128::from(first) * u128::from(period)) >> FRACTION) as u64
    }

    /// Number of queries that are due before an instant, in nanoseconds after the start.
    pub fn due_before(&self, instant: u64) -> u64 {
        let count = |instant: u64, period: u64| {
            // The whole part of n x period is below the instant if and only if n x period is below instant x
            // 2^FRACTION.
            let first_after = (u128::from(instant) << FRACTION).div_ceil(u128::from(period)) as u64;
            first_after.div_ceil(self.burst) * self.burst
        };
        match instant.checked_sub(self.measured) {
            Some(measured) => self.warm + count(measured, self.period),
            None => count(instant, self.warm_period).min(self.warm),
        }
    }

    /// Time that `count` queries of the measured time take, in seconds.
    pub fn seconds(&self, count: u64) -> f64 {
        (u128::from(count) * u128::from(self.period)) as f64 / f64::from(1u32 << FRACTION) / 1e9
    }
}

fn period(rate_qps: f64) -> u64 {
    ((1e9 * f64::from(1u32 << FRACTION) / rate_qps).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_queries_is_exact_for_hours() {
        let schedule = Schedule::new(100_000.0, 1);
        for n in [0, 1, 7, 100_000, 360_000_000, 1 << 33] {
            assert_eq!(schedule.due(n), n * 10_000);
        }
        // A third of a nanosecond does not accumulate: 3 x 10^8 queries at 3 x 10^6 per second take 100 s.
        let schedule = Schedule::new(3_000_000.0, 1);
        assert!(schedule.due(300_000_000).abs_diff(100_000_000_000) <= 1);
    }

    #[test]
    fn a_burst_is_due_together() {
        let schedule = Schedule::new(1000.0, 4);
        let due: Vec<u64> = (0..9).map(|n| schedule.due(n)).collect();
        assert_eq!(due, [0, 0, 0, 0, 4_000_000, 4_000_000, 4_000_000, 4_000_000, 8_000_000]);
    }

    #[test]
    fn the_queries_due_before_an_instant_are_counted() {
        for schedule in [
            Schedule::new(1000.0, 1),
            Schedule::new(333.3, 1),
            Schedule::new(1000.0, 7),
            Schedule::new(0.5, 3),
            Schedule::new(7e6, 1),
            Schedule::new(1000.0, 1).after(3, 2000.0),
            Schedule::new(1000.0, 7).after(14, 3e6),
            Schedule::new(1000.0, 7).after(16, 3000.0),
        ] {
            for instant in [0, 1, 999_999, 1_000_000, 1_000_001, 6_999_999, 7_000_000, 10_000_000_000] {
                let count = schedule.due_before(instant);
                assert!(count == 0 || schedule.due(count - 1) < instant, "{schedule:?} {instant}");
                assert!(schedule.due(count) >= instant, "{schedule:?} {instant}");
            }
        }
    }

    #[test]
    fn a_warm_up_has_a_pace_of_its_own() {
        let schedule = Schedule::new(1000.0, 1).after(3, 500.0);
        let due: Vec<u64> = (0..6).map(|n| schedule.due(n) / 1_000_000).collect();
        assert_eq!(due, [0, 2, 4, 6, 7, 8]);
        assert_eq!(schedule.due_before(6_000_000), 3);
        assert_eq!(schedule.due_before(6_000_001), 4);
        assert_eq!(
            Schedule::new(1000.0, 1).after(0, 5.0),
            Schedule { warm_period: period(5.0), ..Schedule::new(1000.0, 1) }
        );
    }

    #[test]
    fn a_burst_that_the_warm_up_does_not_fill_is_not_followed_by_another_at_once() {
        let schedule = Schedule::new(1000.0, 4).after(6, 500.0);
        let due: Vec<u64> = (0..11).map(|n| schedule.due(n) / 1_000_000).collect();
        assert_eq!(due, [0, 0, 0, 0, 8, 8, 12, 12, 12, 12, 16]);
    }

    #[test]
    fn a_number_of_queries_takes_its_time() {
        assert!((Schedule::new(100_000.0, 1).seconds(6_000_000) - 60.0).abs() < 1e-9);
    }
}
