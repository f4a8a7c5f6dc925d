//! Retransmission timer (RFC 6298).

use crate::limits::LONGEST_RTO;
use core::time::Duration;

/// Estimate of the round trip, and the timer that follows from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rto {
    smoothed: Option<Duration>,
    variation: Duration,
    rto: Duration,
    shortest: Duration,
}

impl Rto {
    /// A timer without a measurement: `first` until there is one, never below `shortest`.
    pub fn new(first: Duration, shortest: Duration) -> Rto {
        Rto { smoothed: None, variation: Duration::ZERO, rto: first, shortest }
    }

    /// Takes a round trip of a segment that was sent once (Karn's algorithm; RFC 6298 section 3).
    pub fn measured(&mut self, round_trip: Duration) {
        let smoothed = match self.smoothed {
            // RFC 6298 section 2.2.
            None => {
                self.variation = round_trip / 2;
                round_trip
            }
            // RFC 6298 section 2.3: beta 1/4, alpha 1/8.
            Some(smoothed) => {
                self.variation = self.variation * 3 / 4 + smoothed.abs_diff(round_trip) / 4;
                smoothed * 7 / 8 + round_trip / 8
            }
        };
        self.smoothed = Some(smoothed);
        self.rto = (smoothed + 4 * self.variation).max(self.shortest).min(LONGEST_RTO);
    }

    /// The timer for a segment that was retransmitted this many times: it doubles each time (RFC 6298 section 5.5).
    pub fn timeout(&self, retransmissions: u32) -> Duration {
        self.rto.saturating_mul(1 << retransmissions.min(16)).min(LONGEST_RTO)
    }

    /// The timer without back-off: T/TCP's TIME-WAIT is 8 of it.
    pub fn current(&self) -> Duration {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_rfc_6298() {
        let ms = Duration::from_millis;
        let mut rto = Rto::new(ms(1000), ms(10));
        assert_eq!((rto.timeout(0), rto.timeout(2), rto.timeout(9)), (ms(1000), ms(4000), LONGEST_RTO));
        rto.measured(ms(100));
        // 100 + 4 * 50.
        assert_eq!(rto.current(), ms(300));
        rto.measured(ms(180));
        // Variation 3/4 * 50 + 1/4 * 80 = 57.5; smoothed 7/8 * 100 + 1/8 * 180 = 110; 110 + 4 * 57.5 = 340.
        assert_eq!(rto.current(), ms(340));
        for _ in 0..200 {
            rto.measured(Duration::from_micros(40));
        }
        assert_eq!(rto.current(), ms(10));
    }
}
