//! Circuit breaker of one upstream server: decides if the server gets queries, and probes a server that is silent or fails.
//!
//! ```text
//! closed    -- 8 attempts in a row without a reply -------------> half-open   asked last; probed at once
//!           -- 2 refusals (ICMP errors, no route) in a row --> open
//!           -- 8 failures in a row that others answer well --> failing     asked last; its failures cause no failover
//! half-open -- a reply of any kind --------------------------> closed
//!           -- a probe without a reply ----------------------> open        dead: asked when all others are dead, too
//! open      -- a reply of any kind, mostly to a probe -------> closed
//! failing   -- an answer that is no failure -----------------> closed
//! ```
//!
//! A probe is a question in flight of its own: it asks for the root every half second until the ceiling of an attempt is over. The
//! next probe begins after that, so there is one at a time, and replies of a server that has become slow count, too. While other
//! servers replace a dead one, the pause between its probes doubles up to `LONGEST_PAUSE`; where all servers of a group are dead
//! there is no pause. All pauses have jitter; otherwise all workers would query a server at the moment of its recovery.
//!
//! A server that replies with errors only (`ERRORS_ONLY` in a row) where no other server shows that there is an answer, stays
//! closed: the errors may be about the names. It is probed, too, and if that fails as well, operators hear of it.
//!
//! The state of a server that received no query for a while is unknown. So the first timeout of another server of its group
//! makes Sixfold probe such idle servers (`ForwardZones::probe_idle_servers`): a question has few attempts, and they must not go to
//! one dead server after another.

use crate::base::time::{Instant, Span};
use crate::trace::Unreachable;
use core::fmt;
use wire::Rcode;

/// Tries without a reply in a row after which a server is probed. A few names whose authoritative servers are silent look like a
/// silent upstream, and must not make all upstreams seem dead.
pub(crate) const SILENT_TRIES: u32 = 8;
/// Weight of a refused connection or an ICMP error, in silent attempts: the second one in a row decides.
const REFUSAL: u32 = 4;
/// Failures in a row of names that another server answered, after which a server is asked last. A server that refuses
/// everything, or whose own upstreams are gone, would cost every question a round trip.
const FAILURES: u32 = 8;
/// Replies with errors in a row, without an answer in between, after which a probe decides if the server answers at all. A few
/// broken names that are asked for again and again look the same.
const ERRORS_ONLY: u32 = 20;
/// Interval between the queries of a probe, and the base of the pauses between probes.
pub(crate) const PROBE_INTERVAL: Span = Span::from_millis(500);
/// The longest pause between probes.
pub(crate) const LONGEST_PAUSE: Span = Span::from_millis(4_000);
/// A server without a query for this time is probed when another server times out.
const IDLE: Span = Span::from_secs(2);

/// State and history of one server's breaker.
#[derive(Clone, Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// Open: the server counts as dead.
    dead: bool,
    /// Tries without a reply in a row; refusals count several.
    silent_tries: u32,
    /// Failures in a row to questions that another server answered.
    failures: u32,
    /// Half-open: the server is probed, because it was silent or had no query for a while.
    suspected: bool,
    /// Failing: the server fails where others do not.
    failing: bool,
    /// A probe is on its way.
    probing: bool,
    /// Probes in a row without a reply, or with nothing but failures.
    failed_probes: u32,
    /// The breaker opened because of refusals, not of silence.
    refused: bool,
    /// Time of the next probe.
    probe_at: Instant,
    /// Time of the latest query to the server.
    queried: Option<Instant>,
    /// Time at which the breaker opened last.
    opened: Instant,
    /// The breaker has opened since [`CircuitBreaker::take_has_opened`].
    has_opened: bool,
    /// The latest attempts without a reply. Their row begins with the first one after a reply.
    silence: Row,
    /// The latest replies with errors. Their row begins with the first one after an answer.
    errors: Row,
    /// Replies with errors in a row.
    errors_in_row: u32,
    /// The reply to a probe was an error, too, after `ERRORS_ONLY` errors in a row.
    only_errors: bool,
}

/// A row of failures of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    since: Instant,
    tries: u64,
    cause: Cause,
}

impl Row {
    /// Adds a failure. `is_first`: it begins a row.
    fn add(&mut self, is_first: bool, cause: Cause, now: Instant) {
        if is_first {
            (self.since, self.tries) = (now, 0);
        }
        self.tries += 1;
        self.cause = cause;
    }
}

/// Cause of the latest failure of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// No reply in time.
    #[default]
    Silent,
    /// The server cannot be reached.
    Unreachable(Unreachable),
    /// A reply with this RCODE, which is an error.
    Replied(Rcode),
    /// A reply that is no answer: a referral, nothing at all, or a reply that is truncated over TCP.
    Unusable,
}

impl Cause {
    /// Code of the cause for programs: those of [`Unreachable::code`], or `silent`, `servfail`, `refused`, `useless`, `error`.
    pub fn code(self) -> &'static str {
        match self {
            Cause::Silent => "silent",
            Cause::Unreachable(reason) => reason.code(),
            Cause::Replied(Rcode::SERVFAIL) => "servfail",
            Cause::Replied(Rcode::REFUSED) => "refused",
            Cause::Replied(_) => "error",
            Cause::Unusable => "unusable",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Silent => f.write_str("no reply"),
            Cause::Unreachable(reason) => write!(f, "{reason}"),
            Cause::Replied(rcode) => write!(f, "it replies {rcode}"),
            Cause::Unusable => f.write_str("its replies are no answers (it does not resolve)"),
        }
    }
}

/// Trouble with a server, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Time of the first failure after the last reply or answer.
    pub since: Instant,
    /// Tries that have failed since then.
    pub tries: u64,
    /// Cause of the latest one.
    pub cause: Cause,
}

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// The server is asked in its turn.
    Closed,
    /// The server is asked last, and is being probed.
    HalfOpen,
    /// The server is dead: while other servers are alive, it gets probes only.
    Open,
    /// The server replies with failures where other servers have answers: it is asked last, and probed.
    Failing,
    /// The server strips signatures (`signatures.rs`): it is asked last, and checked. The breaker itself is never in this state.
    Strips,
}

impl BreakerState {
    /// The state as a word for operators.
    pub fn word(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::HalfOpen => "half-open",
            BreakerState::Open => "open",
            BreakerState::Failing => "failing",
            BreakerState::Strips => "strips",
        }
    }
}

impl CircuitBreaker {
    /// The state for operators.
    pub fn state(&self) -> BreakerState {
        match () {
            () if self.dead => BreakerState::Open,
            () if self.failing => BreakerState::Failing,
            () if self.suspected => BreakerState::HalfOpen,
            () => BreakerState::Closed,
        }
    }

    /// Trouble with the server; none if it answers, or may answer.
    pub fn trouble(&self) -> Option<Trouble> {
        let row = match self.state() {
            BreakerState::Open => self.silence,
            // A server that was idle may be probed without a failure.
            BreakerState::HalfOpen if self.silent_tries > 0 => self.silence,
            BreakerState::Failing => self.errors,
            BreakerState::Closed if self.only_errors => self.errors,
            BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Strips => return None,
        };
        Some(Trouble { since: row.since, tries: row.tries, cause: row.cause })
    }

    /// True if the server counts as dead.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Handicap of the server when one is chosen, in attempts.
    #[inline]
    pub fn handicap(&self) -> u32 {
        match () {
            // A server that is alive, with one silent attempt, comes before a dead one; with two silent attempts it comes after it.
            () if self.dead => 2,
            () if self.suspected || self.failing => 1,
            () => 0,
        }
    }

    /// True if the server replies with failures where others have answers.
    pub fn is_failing(&self) -> bool {
        self.failing
    }

    /// True if the server may just be slow: no probe has failed, and no connection was refused.
    pub fn may_be_slow(&self) -> bool {
        self.failed_probes == 0 && !self.refused
    }

    /// Time at which the breaker opened last.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Records a query to the server.
    #[inline]
    pub fn on_query(&mut self, now: Instant) {
        self.queried = Some(now);
    }

    /// Records a reply. Returns true if the server was dead until now.
    #[inline]
    pub fn on_reply(&mut self) -> bool {
        self.silent_tries = 0;
        self.suspected = false;
        self.refused = false;
        core::mem::take(&mut self.dead)
    }

    /// Records an attempt without a reply in time.
    pub fn on_timeout(&mut self, now: Instant) {
        self.note_silence(Cause::Silent, now);
        self.silent_tries = self.silent_tries.saturating_add(1);
        if !self.dead && !self.suspected && self.silent_tries >= SILENT_TRIES {
            self.suspected = true;
            self.probe_at = now;
        }
    }

    /// Records a query of a probe without a reply in time. One is enough: a server that was silent before is dead now.
    pub fn on_probe_timeout(&mut self, now: Instant) {
        if self.silent_tries > 0 {
            self.note_silence(Cause::Silent, now);
        }
        if self.suspected && self.silent_tries >= SILENT_TRIES {
            self.open(now);
        }
    }

    /// Records a probe that ended without a reply. `urgent`: no other server of the group is alive. `jitter`: 64 random bits, which
    /// move the next probe by up to a quarter of its pause.
    pub fn on_probe_failed(&mut self, now: Instant, urgent: bool, jitter: u64) {
        if self.suspected {
            // The server was probed only because it was idle.
            self.open(now);
        }
        self.probing = false;
        self.failed_probes = self.failed_probes.saturating_add(1);
        let pause = if urgent { Span(PROBE_INTERVAL.0 / 8) } else { self.doubled_pause() };
        self.probe_at = now + jittered(pause, jitter);
    }

    /// Records a reply to a probe. `is_failure`: the reply is a failure, so the server is alive, but not useful. `jitter`: as for
    /// [`CircuitBreaker::on_probe_failed`].
    pub fn on_probe_reply(&mut self, now: Instant, is_failure: bool, jitter: u64) {
        self.probing = false;
        if (self.failing || self.has_errors_only()) && is_failure {
            self.only_errors = self.has_errors_only();
            self.failed_probes = self.failed_probes.saturating_add(1);
            self.probe_at = now + jittered(self.doubled_pause(), jitter);
        } else {
            self.failed_probes = 0;
            self.on_success();
        }
    }

    /// Records that the server cannot be reached. The second time in a row it counts as dead, without a probe.
    pub fn on_refused(&mut self, reason: Unreachable, now: Instant) {
        self.note_silence(Cause::Unreachable(reason), now);
        self.silent_tries = self.silent_tries.saturating_add(REFUSAL);
        if !self.dead && self.silent_tries >= SILENT_TRIES {
            self.refused = true;
            self.open(now);
        }
    }

    /// Records a failure with a question that another server answered.
    pub fn on_failure(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if !self.failing && self.failures >= FAILURES {
            self.failing = true;
            self.probe_at = now + PROBE_INTERVAL;
        }
    }

    /// Records a reply with an error: another server may have an answer, or none.
    #[cold]
    pub fn on_error(&mut self, cause: Cause, now: Instant) {
        self.errors.add(self.errors_in_row == 0, cause, now);
        self.errors_in_row = self.errors_in_row.saturating_add(1);
        if self.errors_in_row == ERRORS_ONLY && !self.failing {
            self.probe_at = now;
        }
    }

    /// Records an answer without a failure.
    #[inline]
    pub fn on_success(&mut self) {
        self.failures = 0;
        self.errors_in_row = 0;
        self.failing = false;
        self.only_errors = false;
    }

    /// True once after the breaker has opened.
    pub fn take_has_opened(&mut self) -> bool {
        core::mem::take(&mut self.has_opened)
    }

    /// Timeout of one query of a probe. It is longer than that of any other query, so that a server that is only slow does not
    /// count as dead. No client waits for the result: a suspected server is asked last already.
    pub fn probe_wait(&self, ceiling: Span) -> Span {
        ceiling.min(PROBE_INTERVAL)
    }

    /// Returns true if a probe is due; the caller sends it.
    pub fn take_probe(&mut self, now: Instant) -> bool {
        let due = self.next_probe().is_some_and(|at| now >= at);
        self.probing |= due;
        due
    }

    /// Time of the next probe; none while one is on its way.
    pub fn next_probe(&self) -> Option<Instant> {
        let is_probed = self.dead || self.suspected || self.failing || self.has_errors_only();
        (is_probed && !self.probing).then_some(self.probe_at)
    }

    /// Suspects the server if it is alive and had no query for a while, so that it is probed at once. Returns true if so.
    pub fn suspect_if_idle(&mut self, now: Instant) -> bool {
        let is_idle = self.queried.is_none_or(|queried| now - queried >= IDLE);
        let suspects = !self.dead && !self.probing && is_idle;
        if suspects {
            self.suspected = true;
            self.probe_at = now;
            self.queried = Some(now);
        }
        suspects
    }

    /// Brings the next probe of a dead server forward: no server of its group is alive. `jitter`: as for
    /// [`CircuitBreaker::on_probe_failed`].
    pub fn expedite_probe(&mut self, now: Instant, jitter: u64) {
        self.probe_at = self.probe_at.min(now + jittered(PROBE_INTERVAL, jitter));
    }

    /// Restarts the pauses between probes: another server of a dead group has recovered, so this one may have, too.
    pub fn reset_pause(&mut self, now: Instant) {
        self.failed_probes = 0;
        self.probe_at = self.probe_at.min(now + PROBE_INTERVAL);
    }

    /// True if the server has replied with errors only for a while.
    fn has_errors_only(&self) -> bool {
        self.errors_in_row >= ERRORS_ONLY
    }

    /// Records an attempt without a reply for operators.
    fn note_silence(&mut self, cause: Cause, now: Instant) {
        self.silence.add(self.silent_tries == 0 && !self.dead, cause, now);
    }

    /// Opens the breaker: the server counts as dead.
    fn open(&mut self, now: Instant) {
        if self.silent_tries == 0 {
            // A server that was idle: the probe is its first attempt without a reply.
            self.note_silence(Cause::Silent, now);
        }
        self.dead = true;
        self.has_opened = true;
        self.opened = now;
        self.suspected = false;
        self.failed_probes = 0;
        self.probe_at = now + PROBE_INTERVAL;
    }

    /// Pause after a failed probe: doubled with each, up to the longest.
    fn doubled_pause(&self) -> Span {
        let doubled = PROBE_INTERVAL.0 << (self.failed_probes - 1).min(8);
        Span(doubled.min(LONGEST_PAUSE.0))
    }
}

/// A span between three and five quarters of `span`.
fn jittered(span: Span, jitter: u64) -> Span {
    Span(span.0 * 3 / 4 + jitter % (span.0 / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000_000_000);

    fn breaker() -> CircuitBreaker {
        CircuitBreaker::default()
    }

    fn fall_silent(breaker: &mut CircuitBreaker) {
        for _ in 0..SILENT_TRIES {
            breaker.on_timeout(NOW);
        }
    }

    #[test]
    fn silence_kills_and_one_reply_revives() {
        let mut breaker = breaker();
        for _ in 1..SILENT_TRIES {
            breaker.on_timeout(NOW);
        }
        assert_eq!((breaker.state(), breaker.next_probe()), (BreakerState::Closed, None));
        breaker.on_timeout(NOW);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.take_probe(NOW), "the server is probed");
        breaker.on_probe_timeout(NOW);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.on_reply());
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_reply_in_between_keeps_a_lossy_server_alive() {
        let mut breaker = breaker();
        for _ in 0..100 {
            for _ in 0..SILENT_TRIES - 1 {
                breaker.on_timeout(NOW);
            }
            breaker.on_reply();
        }
        assert_eq!((breaker.is_dead(), breaker.next_probe()), (false, None));
    }

    #[test]
    fn a_probe_that_is_answered_clears_the_suspicion() {
        let mut breaker = breaker();
        fall_silent(&mut breaker);
        assert!(breaker.take_probe(NOW));
        breaker.on_reply();
        breaker.on_probe_timeout(NOW);
        assert_eq!((breaker.is_dead(), breaker.next_probe()), (false, None));
    }

    #[test]
    fn there_is_one_probe_at_a_time_and_the_pauses_grow_to_a_bound_with_jitter() {
        let mut breaker = breaker();
        fall_silent(&mut breaker);
        let mut now = NOW;
        assert!(breaker.take_probe(now) && !breaker.take_probe(now + Span::from_secs(3_600)));
        breaker.on_probe_timeout(now);
        let mut pauses = Vec::new();
        for round in 0..8u64 {
            assert!(!breaker.take_probe(now + Span::from_secs(3_600)), "the last one has not ended");
            breaker.on_probe_failed(now, false, round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let next = breaker.next_probe().expect("it is dead");
            pauses.push((next - now).0 / 1_000_000);
            assert!(!breaker.take_probe(Instant(next.0 - 1)));
            now = next;
            assert!(breaker.take_probe(now));
        }
        for (pause, middle) in pauses.iter().zip([500, 1_000, 2_000, 4_000, 4_000, 4_000, 4_000, 4_000]) {
            assert!((middle * 3 / 4..=middle * 5 / 4).contains(pause), "{pauses:?}");
        }
        assert!(pauses[3..].windows(2).any(|two| two[0] != two[1]), "no jitter: {pauses:?}");
        breaker.on_probe_failed(now, true, 7);
        assert!(
            breaker.next_probe().expect("it is dead") - now <= PROBE_INTERVAL,
            "no other server is alive"
        );
    }

    #[test]
    fn a_server_that_only_fails_is_asked_last_until_it_has_an_answer() {
        let mut breaker = breaker();
        for _ in 1..FAILURES {
            breaker.on_failure(NOW);
        }
        breaker.on_success();
        for _ in 1..FAILURES {
            breaker.on_failure(NOW);
        }
        assert_eq!((breaker.state(), breaker.handicap()), (BreakerState::Closed, 0));
        breaker.on_failure(NOW);
        assert_eq!(
            (breaker.state(), breaker.handicap(), breaker.is_dead()),
            (BreakerState::Failing, 1, false)
        );
        assert!(breaker.take_probe(NOW + PROBE_INTERVAL));
        breaker.on_probe_reply(NOW, true, 0);
        assert_eq!(breaker.state(), BreakerState::Failing);
        breaker.on_probe_reply(NOW, false, 0);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn trouble_begins_with_the_first_failure_after_a_reply_and_has_the_latest_cause() {
        let at = |seconds| NOW + Span::from_secs(seconds);
        let mut breaker = breaker();
        breaker.on_timeout(at(0));
        breaker.on_reply();
        for second in 1..SILENT_TRIES.into() {
            breaker.on_timeout(at(second));
        }
        assert_eq!(breaker.trouble(), None, "a lossy server");
        breaker.on_timeout(at(9));
        let trouble = Trouble { since: at(1), tries: 8, cause: Cause::Silent };
        assert_eq!(breaker.trouble(), Some(trouble));
        // The host is there again, but the program is not.
        breaker.on_refused(Unreachable::PortRefused, at(10));
        assert_eq!(breaker.state(), BreakerState::Open);
        let cause = Cause::Unreachable(Unreachable::PortRefused);
        assert_eq!(breaker.trouble(), Some(Trouble { tries: 9, cause, ..trouble }));
        breaker.on_reply();
        assert_eq!(breaker.trouble(), None);
    }

    #[test]
    fn an_idle_server_is_in_trouble_from_its_failed_probe_on() {
        let mut breaker = breaker();
        assert!(breaker.suspect_if_idle(NOW) && breaker.take_probe(NOW));
        assert_eq!((breaker.state(), breaker.trouble()), (BreakerState::HalfOpen, None));
        breaker.on_probe_failed(NOW + PROBE_INTERVAL, false, 0);
        let trouble = Trouble { since: NOW + PROBE_INTERVAL, tries: 1, cause: Cause::Silent };
        assert_eq!(breaker.trouble(), Some(trouble));
    }

    #[test]
    fn errors_without_an_answer_in_between_are_trouble_once_a_probe_has_failed_too() {
        let refused = Cause::Replied(Rcode::REFUSED);
        let mut breaker = breaker();
        for _ in 1..ERRORS_ONLY {
            breaker.on_error(refused, NOW);
        }
        assert_eq!(breaker.next_probe(), None);
        breaker.on_error(refused, NOW + PROBE_INTERVAL);
        assert_eq!((breaker.next_probe(), breaker.trouble()), (Some(NOW + PROBE_INTERVAL), None));
        // The names were broken, not the server.
        assert!(breaker.take_probe(NOW + PROBE_INTERVAL));
        breaker.on_probe_reply(NOW, false, 0);
        assert_eq!((breaker.next_probe(), breaker.trouble()), (None, None));
        for _ in 0..ERRORS_ONLY {
            breaker.on_error(refused, NOW);
        }
        assert!(breaker.take_probe(NOW));
        breaker.on_error(refused, NOW);
        breaker.on_probe_reply(NOW, true, 0);
        let trouble = Trouble { since: NOW, tries: u64::from(ERRORS_ONLY) + 1, cause: refused };
        assert_eq!((breaker.state(), breaker.handicap()), (BreakerState::Closed, 0));
        assert_eq!(breaker.trouble(), Some(trouble));
        assert!(breaker.next_probe().is_some_and(|next| next > NOW), "the end is noticed without clients");
        breaker.on_success();
        assert_eq!((breaker.next_probe(), breaker.trouble()), (None, None));
    }
}
