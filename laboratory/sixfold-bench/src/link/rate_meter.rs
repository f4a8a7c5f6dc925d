//! Rate of the packets that come out of a link, in the busiest second: a line is busy only while there is enough to send.

use std::time::Duration;

/// Length of a window.
const WINDOW: Duration = Duration::from_secs(1);

/// Octets in windows of one second, from the first packet on.
#[derive(Clone, Debug, Default)]
pub struct RateMeter {
    first: Option<Duration>,
    last: Duration,
    all_octets: u64,
    window_start: Duration,
    window_octets: u64,
    busiest_octets: Option<u64>,
}

impl RateMeter {
    /// Counts a packet that came out at `now`.
    pub fn count(&mut self, now: Duration, octets: usize) {
        let first = *self.first.get_or_insert_with(|| {
            self.window_start = now;
            now
        });
        if now.saturating_sub(self.window_start) >= WINDOW {
            self.busiest_octets = self.busiest_octets.max(Some(self.window_octets));
            // The next windows begin at whole seconds after the first packet; those without a packet count nothing.
            let whole = now.saturating_sub(first).as_secs();
            (self.window_start, self.window_octets) = (first + WINDOW * whole as u32, 0);
        }
        self.window_octets += octets as u64;
        self.all_octets += octets as u64;
        self.last = now;
    }

    /// The rate in the busiest whole second, in bits/s; of all packets if they did not last for a second; none for fewer than two
    /// packets.
    pub fn bits_per_second(&self) -> Option<f64> {
        let span = self.last.saturating_sub(self.first?).as_secs_f64();
        match self.busiest_octets {
            Some(octets) => Some(octets as f64 * 8.0 / WINDOW.as_secs_f64()),
            None => (span > 0.0).then(|| self.all_octets as f64 * 8.0 / span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_pause_does_not_lower_the_rate() {
        let mut meter = RateMeter::default();
        meter.count(300 * MS, 40);
        // 125 octets each millisecond are 1 Mbit/s, from 2.3 to 5.3 s: whole windows of the meter.
        for ms in 2300..5300 {
            meter.count(ms * MS, 125);
        }
        assert_eq!(meter.bits_per_second(), Some(1e6));
    }

    #[test]
    fn packets_of_less_than_a_second_have_the_rate_of_their_time() {
        let mut meter = RateMeter::default();
        assert_eq!(meter.bits_per_second(), None);
        meter.count(MS, 1000);
        assert_eq!(meter.bits_per_second(), None);
        meter.count(501 * MS, 1000);
        assert_eq!(meter.bits_per_second(), Some(32_000.0));
    }
}
