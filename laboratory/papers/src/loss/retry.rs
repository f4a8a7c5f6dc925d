//! Retry policies of DNS clients over UDP, and the arithmetic of their failures.
//!
//! A policy is a list of waits. The client sends, waits, sends again, and has failed after the last wait. A query and its
//! answer are lost independently, each with probability p, so a send fails with q = 1 - (1 - p)^2, and a query with k sends
//! fails with q^k. Only those sends count whose answer comes early enough ([`RetryPolicy::useful_sends`]).
//!
//! Sources: djbdns 1.05, `dns_transmit.c` (timeouts of 1, 3, 11 and 45 s, of which a client with recursion desired skips the
//! first one); resolv.conf(5) (`timeout` 5 s, `attempts` 2); systemd-resolved (24 tries within 120 s); Unbound, "Timeout and
//! server selection information" and `util/rtt.c` (376 ms for an unknown server, doubled by each loss); RFC 6298 and RFC 1122
//! for TCP. Sixfold: `server/engine/src/upstream/retry.rs` and `server.rs`, with the default `upstream.timeout` of 1 s and
//! `upstream.tries` of 3.

use super::CAP;
use core::time::Duration;

/// Retry policy of a client with one server, of which it knows no round trip yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Short name, such as `glibc`.
    pub name: &'static str,
    /// Waits after the first, second and further sends, ms.
    pub waits_ms: &'static [u64],
    /// An answer to an earlier send counts after a retransmission. False: the client closed the socket of the earlier send.
    pub accepts_late: bool,
}

/// djbdns, a client that asks a cache: waits of 3, 11 and 45 s, 59 s in all, so 3 sends.
pub const DJBDNS: RetryPolicy =
    RetryPolicy { name: "djbdns, 3 sends", waits_ms: &[3000, 11_000, 45_000], accepts_late: false };

/// djbdns, a cache that asks an authoritative server: a wait of 1 s goes before the others, so 4 sends within 60 s.
pub const DJBDNS_CACHE: RetryPolicy =
    RetryPolicy { name: "djbdns, 4 sends", waits_ms: &[1000, 3000, 11_000, 45_000], accepts_late: false };

/// The resolver of glibc with its defaults: 2 attempts of 5 s.
pub const GLIBC: RetryPolicy = RetryPolicy { name: "glibc", waits_ms: &[5000, 5000], accepts_late: true };

/// systemd-resolved over UDP: 24 tries within 120 s, so one each 5 s. Each try has a socket of its own.
pub const SYSTEMD: RetryPolicy =
    RetryPolicy { name: "systemd-resolved", waits_ms: &[5000; 24], accepts_late: false };

/// Unbound and an unknown server: 376 ms, doubled by each loss; 5 attempts of 2 sends.
pub const UNBOUND: RetryPolicy = RetryPolicy {
    name: "Unbound",
    waits_ms: &[376, 752, 1504, 3008, 6016, 12_032, 24_064, 48_128, 96_256, 120_000],
    accepts_late: false,
};

/// Sixfold and an unknown server: 250 ms, doubled, and the whole `upstream.timeout` after the last of 3 tries.
pub const SIXFOLD: RetryPolicy =
    RetryPolicy { name: "Sixfold", waits_ms: &[250, 500, 1000], accepts_late: true };

/// The control: UDP with the retransmission timer of TCP after RFC 6298, 1 s at first and doubled.
pub const TCP_TIMER: RetryPolicy = RetryPolicy {
    name: "UDP with TCP's timer, 1 s",
    waits_ms: &[1000, 2000, 4000, 8000, 16_000, 32_000],
    accepts_late: true,
};

/// The control for FreeBSD 4: 3 s at first (RFC 1122) and doubled.
pub const TCP_TIMER_1122: RetryPolicy = RetryPolicy {
    name: "UDP with TCP's timer, 3 s",
    waits_ms: &[3000, 6000, 12_000, 24_000, 48_000],
    accepts_late: true,
};

/// All policies, in the order of the tables.
pub const POLICIES: [RetryPolicy; 8] =
    [DJBDNS, DJBDNS_CACHE, GLIBC, SYSTEMD, UNBOUND, SIXFOLD, TCP_TIMER, TCP_TIMER_1122];

impl RetryPolicy {
    /// Times of the sends before [`CAP`].
    pub fn sends(&self) -> impl Iterator<Item = Duration> + '_ {
        let mut next = Duration::ZERO;
        self.waits_ms
            .iter()
            .map(move |&wait| {
                let send = next;
                next += Duration::from_millis(wait);
                send
            })
            .take_while(|&send| send < CAP)
    }

    /// Time at which the client gives up: after the last wait, at the latest at [`CAP`].
    pub fn end(&self) -> Duration {
        Duration::from_millis(self.waits_ms.iter().sum()).min(CAP)
    }

    /// Number of sends whose answer is accepted on a network with this round trip.
    pub fn useful_sends(&self, round_trip: Duration) -> u32 {
        let useful = |(send, &wait): (Duration, &u64)| {
            let in_time = self.accepts_late || round_trip <= Duration::from_millis(wait);
            in_time && send + round_trip <= self.end()
        };
        self.sends().zip(self.waits_ms).filter(|&pair| useful(pair)).count() as u32
    }

    /// Probability that a query fails: q^k for k useful sends.
    pub fn failure(&self, loss: f64, round_trip: Duration) -> f64 {
        exchange_loss(loss).powi(self.useful_sends(round_trip) as i32)
    }
}

/// Probability that one exchange fails: the query or its answer is lost, q = 1 - (1 - p)^2.
pub fn exchange_loss(loss: f64) -> f64 {
    1.0 - (1.0 - loss).powi(2)
}

/// Share of the successful queries that needed at most `retries` retransmissions, of `sends` useful sends with a round trip
/// shorter than each wait: (1 - q^(retries + 1)) / (1 - q^sends).
pub fn share_within_retries(loss: f64, sends: u32, retries: u32) -> f64 {
    let q = exchange_loss(loss);
    if q >= 1.0 {
        return f64::NAN;
    }
    (1.0 - q.powi((retries + 1).min(sends) as i32)) / (1.0 - q.powi(sends as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn djbdns_sends_three_times_to_a_cache_and_four_times_to_a_server_within_a_minute() {
        assert_eq!(DJBDNS.sends().collect::<Vec<_>>(), [Duration::ZERO, 3000 * MS, 14_000 * MS]);
        assert_eq!(DJBDNS.end(), Duration::from_secs(59));
        assert_eq!((DJBDNS_CACHE.sends().count(), DJBDNS_CACHE.end()), (4, CAP));
    }

    #[test]
    fn the_cap_ends_the_schedules_that_last_longer() {
        // 12 times 5 s fill the minute. 376 ms (2^n - 1) is below 60 s up to n = 7: 47.8 s.
        assert_eq!((SYSTEMD.sends().count(), SYSTEMD.end()), (12, CAP));
        assert_eq!((UNBOUND.sends().count(), UNBOUND.end()), (8, CAP));
        assert_eq!((TCP_TIMER.sends().count(), TCP_TIMER_1122.sends().count()), (6, 5));
    }

    #[test]
    fn three_and_four_sends_fail_as_the_arithmetic_of_the_paper_says() {
        // q = 1 - 0.7^2 = 0.51; 0.51^3 = 0.132651 and 0.51^4 = 0.06765201.
        assert!((DJBDNS.failure(0.3, MS) - 0.132_651).abs() < 1e-9);
        assert!((DJBDNS_CACHE.failure(0.3, MS) - 0.067_652_01).abs() < 1e-9);
        assert_eq!(DJBDNS.failure(0.0, MS), 0.0);
    }

    #[test]
    fn an_answer_that_comes_after_its_socket_is_closed_does_not_count() {
        // Waits of 376 and 752 ms are shorter than a round trip of 1 s, and so is djbdns' first one of 1 s than 1.0004 s.
        assert_eq!((UNBOUND.useful_sends(500 * MS), UNBOUND.useful_sends(1000 * MS)), (7, 6));
        assert_eq!(DJBDNS_CACHE.useful_sends(1000 * MS + Duration::from_micros(400)), 3);
        // Sixfold takes late answers until 1.75 s: that to the third query, sent at 750 ms, comes 0.4 ms later.
        assert_eq!((SIXFOLD.useful_sends(500 * MS), SIXFOLD.useful_sends(1001 * MS)), (3, 2));
    }

    #[test]
    fn most_successes_need_at_most_one_retry_while_loss_is_low() {
        // (1 - 0.51^2) / (1 - 0.51^3) = 0.7399 / 0.867349.
        assert!((share_within_retries(0.3, 3, 1) - 0.7399 / 0.867_349).abs() < 1e-9);
        assert!((share_within_retries(0.3, 3, 2) - 1.0).abs() < 1e-9);
        assert_eq!(share_within_retries(0.0, 3, 0), 1.0);
    }
}
