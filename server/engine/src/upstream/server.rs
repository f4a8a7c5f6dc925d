//! State of one upstream server: address, round trip, timeout, circuit breaker, and support of EDNS and cookies.
//!
//! Timeouts follow the measured round trip as in RFC 6298; they are not a constant. Each attempt has its own message ID, so it is
//! known which attempt a reply belongs to, and late replies are measured like all others (the ambiguity that Karn's algorithm
//! avoids does not arise).

use crate::base::time::{Instant, Span};
use crate::counters::DURATION_BOUNDS_US;
use crate::interface::Transport;
use crate::trace::{Unreachable, Untrusted};
use crate::upstream::circuit_breaker::{BreakerState, CircuitBreaker, Trouble};
use crate::upstream::connection_policy::PeerConnectionPolicy;
use crate::upstream::cookies::ServerCookieState;
use crate::upstream::edns_support::EdnsSupport;
use crate::upstream::signatures::SignatureState;
use crate::upstream::suspicion::LetterCase;
use core::net::SocketAddr;

/// Timeout before the first measurement.
const INITIAL_WAIT: Span = Span::from_millis(250);

/// Shortest timeout. A recursive upstream that has to resolve a name takes longer than its round trip, and a retransmission
/// that is too early doubles its load.
const MIN_WAIT: Span = Span::from_millis(50);

/// Smallest margin of the timeout, as a divisor of the round trip: even with a steady round trip, a reply may be late by a
/// quarter of it. A timeout equal to the round trip would ask every question twice (RFC 6298 section 2.3 uses the clock
/// granularity for that).
const MIN_MARGIN_DIVISOR: u64 = 4;

/// Handicap of a server that strips signatures: what it says cannot be validated, so a dead one comes first, which may be alive again.
const STRIPPING_HANDICAP: u32 = 3;

/// Kind of a query to a server, for its counters.
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
    /// Label value of each kind, in the order of the enum.
    pub const LABELS: [&str; 4] = ["AAAA", "A", "other", "probe"];
}

/// One upstream server.
#[derive(Clone, Debug)]
pub struct Server {
    /// Address and port of the server.
    pub address: SocketAddr,
    /// Identity that TLS verifies; none for a server that is asked over UDP or TCP.
    pub(crate) tls: Option<u64>,
    /// Reason why the latest connection could not be authenticated; none from the next connection on.
    pub(crate) untrusted: Option<Untrusted>,
    /// Smoothed round trip time; none before the first reply.
    pub round_trip: Option<Span>,
    /// Variation of the round trip time (RTTVAR in RFC 6298).
    variance: Span,
    /// Circuit breaker.
    pub(crate) breaker: CircuitBreaker,
    /// True if the current configuration names the server.
    pub configured: bool,
    /// Slot of the UDP link for new queries.
    pub(crate) socket: Option<u16>,
    /// Slots of the connections for new queries, the newest last.
    pub(crate) connections: Vec<u16>,
    /// Open TCP and TLS links.
    pub(crate) streams: u16,
    /// Bounds of its connections.
    pub connection_policy: PeerConnectionPolicy,
    /// Cookie support.
    pub(crate) cookies: ServerCookieState,
    /// EDNS support.
    pub(crate) edns: EdnsSupport,
    /// Letters of questions.
    pub(crate) letter_case: LetterCase,
    /// Signatures in its replies.
    pub(crate) signatures: SignatureState,
    /// Number of queries sent, by [`QueryKind`].
    pub asked: [u64; 4],
    /// Number of attempts that failed: no reply in time, a reply with an error after which another server is asked, a link that
    /// failed.
    pub failures: u64,
    /// Histogram of round trips with the bounds of [`DURATION_BOUNDS_US`]; the last bucket has no bound.
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// Sum of all round trips, in nanoseconds.
    pub duration_sum_ns: u64,
}

impl Server {
    /// Creates the state of a server that was never asked.
    pub(crate) fn new(address: SocketAddr, tls: Option<u64>) -> Server {
        Server {
            address,
            tls,
            untrusted: None,
            round_trip: None,
            variance: Span::ZERO,
            breaker: CircuitBreaker::default(),
            configured: true,
            socket: None,
            connections: Vec::new(),
            streams: 0,
            connection_policy: PeerConnectionPolicy::default(),
            cookies: ServerCookieState::default(),
            edns: EdnsSupport::default(),
            letter_case: LetterCase::default(),
            signatures: SignatureState::default(),
            asked: [0; 4],
            failures: 0,
            durations: [0; DURATION_BOUNDS_US.len() + 1],
            duration_sum_ns: 0,
        }
    }

    /// Records a reply and its round trip `sample` (RFC 6298 section 2). Returns true if the server was dead until now.
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

    /// Records an attempt without a reply in time.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.failures += 1;
        self.breaker.on_timeout(now);
    }

    /// Records a link that failed: an ICMP error, a refused or reset connection.
    pub(crate) fn on_refused(&mut self, reason: Unreachable, now: Instant) {
        self.failures += 1;
        self.breaker.on_refused(reason, now);
    }

    /// Records a reply with an error, after which another server answered.
    pub(crate) fn on_failure(&mut self, now: Instant) {
        self.failures += 1;
        self.breaker.on_failure(now);
    }

    /// Transport of a query to the server in place of `transport`. A server with TLS is asked in no other way, and no other server
    /// is asked over TLS.
    #[inline]
    pub(crate) fn transport(&self, transport: Transport) -> Transport {
        match (self.tls, transport) {
            (Some(_), _) => Transport::Tls,
            (None, Transport::Udp) => Transport::Udp,
            (None, Transport::Tcp | Transport::Tls) => Transport::Tcp,
        }
    }

    /// True if the server is asked over TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// True if the server gets questions in lower case, because it changes letters (`suspicion.rs`).
    pub fn is_asked_in_lower_case(&self, now: Instant) -> bool {
        self.letter_case.is_lower(now)
    }

    /// State of the circuit breaker; of a server that is alive, [`BreakerState::Strips`] if it strips signatures.
    pub fn state(&self) -> BreakerState {
        match self.breaker.state() {
            BreakerState::Open => BreakerState::Open,
            _ if self.signatures.strips() => BreakerState::Strips,
            state => state,
        }
    }

    /// Handicap of the server when one is chosen, in attempts.
    #[inline]
    pub(crate) fn handicap(&self) -> u32 {
        let of_signatures = if self.signatures.strips() { STRIPPING_HANDICAP } else { 0 };
        self.breaker.handicap() + of_signatures
    }

    /// Trouble with the server: since when, and why. None: it answers.
    pub fn trouble(&self) -> Option<Trouble> {
        self.breaker.trouble()
    }

    /// Number of replies of any kind so far.
    pub fn replies(&self) -> u64 {
        self.durations.iter().sum()
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

    /// Timeout of the only query to a dead server whose whole group is dead. A silent server may just be slow until a probe
    /// has waited for the whole ceiling.
    pub(crate) fn last_wait(&self, ceiling: Span) -> Span {
        if self.breaker.may_be_slow() { ceiling } else { self.wait(1, ceiling) }
    }

    /// Timeout of attempt number `attempt` (from 0) over UDP: the estimate, doubled with every attempt, up to the ceiling. The caller
    /// gives the last attempt the whole ceiling, since late replies to earlier attempts count too.
    pub fn wait(&self, attempt: u32, ceiling: Span) -> Span {
        let estimate = match self.round_trip {
            None => INITIAL_WAIT,
            Some(round_trip) => Span(
                (round_trip.0 + (4 * self.variance.0).max(round_trip.0 / MIN_MARGIN_DIVISOR)).max(MIN_WAIT.0),
            ),
        };
        Span((estimate.0 << attempt.min(8)).min(ceiling.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::new("[::1]:53".parse().unwrap(), None)
    }

    #[test]
    fn the_wait_follows_the_round_trip_and_doubles_with_every_try() {
        let mut server = server();
        let ceiling = Span::from_secs(1);
        assert_eq!(server.wait(0, ceiling), INITIAL_WAIT);
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
