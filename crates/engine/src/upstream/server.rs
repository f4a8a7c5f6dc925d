//! One upstream server: address, round trip, timeout, and what is known of its EDNS and cookies.

use crate::base::time::{Instant, Span};
use crate::counters::DURATION_BOUNDS_US;
use crate::upstream::circuit_breaker::{BreakerState, CircuitBreaker};
use crate::upstream::cookies::ServerCookieState;
use crate::upstream::edns_support::EdnsSupport;
use core::net::SocketAddr;

/// The wait before anything was measured.
const FIRST_WAIT: Span = Span::from_millis(250);

/// No wait is shorter: a recursive upstream that has to work takes longer than its round trip, and asking again
/// too early doubles its load.
const SHORTEST_WAIT: Span = Span::from_millis(50);

/// However steady the round trip is, a reply may be later by this part of it: a wait that ends with the round trip itself
/// asks every question twice (RFC 6298 section 2.3 has the granularity of the clock for that).
const MARGIN: u64 = 4;

/// What kind of question went to a server, for its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum QueryKind {
    /// AAAA.
    Aaaa,
    /// A.
    A,
    /// Any other type.
    Other,
    /// A probe of a dead server.
    Probe,
}

impl QueryKind {
    /// The label of each kind, in the order of their numbers.
    pub const LABELS: [&str; 4] = ["AAAA", "A", "other", "probe"];
}

/// One upstream server.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Smoothed round trip; none before the first reply.
    pub round_trip: Option<Span>,
    variance: Span,
    /// What else is known of its life.
    pub(crate) breaker: CircuitBreaker,
    /// Whether the current configuration names it.
    pub configured: bool,
    /// The link that new questions take, by transport (UDP, TCP).
    pub(crate) current: [Option<u16>; 2],
    /// What is known of its cookies, and of its EDNS.
    pub(crate) cookies: ServerCookieState,
    pub(crate) edns: EdnsSupport,
    /// Questions sent, by [`QueryKind`].
    pub asked: [u64; 4],
    /// Round trips by duration, with the bounds of [`DURATION_BOUNDS_US`]; the last has no bound.
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// Sum of all round trips, in nanoseconds.
    pub duration_sum_ns: u64,
}

impl Server {
    pub(crate) fn new(address: SocketAddr) -> Server {
        Server {
            address,
            round_trip: None,
            variance: Span::ZERO,
            breaker: CircuitBreaker::default(),
            configured: true,
            current: [None; 2],
            cookies: ServerCookieState::default(),
            edns: EdnsSupport::default(),
            asked: [0; 4],
            durations: [0; DURATION_BOUNDS_US.len() + 1],
            duration_sum_ns: 0,
        }
    }

    /// A reply came after `sample` (RFC 6298 section 2). True: the server was dead until now.
    pub fn on_reply(&mut self, sample: Span) -> bool {
        (self.round_trip, self.variance) = match self.round_trip {
            None => (Some(sample), Span(sample.0 / 2)),
            Some(Span(smooth)) => {
                let deviation = smooth.abs_diff(sample.0);
                (Some(Span((smooth * 7 + sample.0) / 8)), Span((self.variance.0 * 3 + deviation) / 4))
            }
        };
        let us = sample.as_micros();
        let bucket =
            DURATION_BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(DURATION_BOUNDS_US.len());
        self.durations[bucket] += 1;
        self.duration_sum_ns += sample.0;
        self.breaker.on_reply()
    }

    /// The state of its breaker.
    pub fn state(&self) -> BreakerState {
        self.breaker.state()
    }

    /// True if the server counts as dead.
    pub fn is_dead(&self) -> bool {
        self.breaker.is_dead()
    }

    /// Time of the next probe; none while one is on its way, and for a server that the configuration no longer names.
    pub(crate) fn next_probe(&self) -> Option<Instant> {
        self.breaker.next_probe().filter(|_| self.configured)
    }

    /// Returns true if a probe of the server is due; the caller sends it.
    pub(crate) fn take_probe(&mut self, now: Instant) -> bool {
        self.configured && self.breaker.take_probe(now)
    }

    /// Wait for the reply to the only query to a dead server, where all are dead. A silent server may be slow until a probe has
    /// waited for the whole ceiling.
    pub(crate) fn last_wait(&self, ceiling: Span) -> Span {
        if self.breaker.may_be_slow() { ceiling } else { self.wait(1, ceiling) }
    }

    /// How long try number `attempt` (from 0) over UDP waits: the estimate, doubled with every try, under the
    /// ceiling. The caller gives the last try the whole ceiling, since late replies to earlier tries count too.
    pub fn wait(&self, attempt: u32, ceiling: Span) -> Span {
        let estimate = match self.round_trip {
            None => FIRST_WAIT,
            Some(round_trip) => {
                Span((round_trip.0 + (4 * self.variance.0).max(round_trip.0 / MARGIN)).max(SHORTEST_WAIT.0))
            }
        };
        Span((estimate.0 << attempt.min(8)).min(ceiling.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::new("[::1]:53".parse().unwrap())
    }

    #[test]
    fn the_wait_follows_the_round_trip_and_doubles_with_every_try() {
        let mut server = server();
        let ceiling = Span::from_secs(1);
        assert_eq!(server.wait(0, ceiling), FIRST_WAIT);
        for _ in 0..100 {
            server.on_reply(Span::from_millis(80));
        }
        let wait = server.wait(0, ceiling);
        assert!(wait >= Span::from_millis(99) && wait < Span::from_millis(102), "{wait:?}");
        assert_eq!(server.wait(1, ceiling), Span(wait.0 * 2));
        assert_eq!(server.wait(7, ceiling), ceiling);
        server.on_reply(Span::from_millis(400));
        assert!(server.wait(0, ceiling) > Span::from_millis(400));
    }
}
