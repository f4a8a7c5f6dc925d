//! Whether a server is asked at all: a breaker for each.
//!
//! ```text
//! closed    -- 8 tries in a row without a reply -------------> half-open   asked last; probed at once
//!           -- 2 refusals (ICMP errors, no route) in a row --> open
//!           -- 8 failures in a row that others answer well --> failing     asked last; its failures are not asked about
//! half-open -- a reply of any kind --------------------------> closed
//!           -- a probe without a reply ----------------------> open        dead: asked when all others are dead, too
//! open      -- a reply of any kind, mostly to a probe -------> closed
//! failing   -- an answer that is no failure -----------------> closed
//! ```
//!
//! A probe is a flight of its own that asks for the root, half a second apart, until the ceiling of a try is over; the next
//! one begins after that. So there is one at a time, and a server that has become slow is heard, too. Between probes of a
//! server that others stand in for the pause doubles up to `LONGEST_PAUSE`; where all servers of a group are dead there is
//! none. All pauses have jitter, as the workers of a server that came back would meet otherwise.
//!
//! A server that nobody has asked for a while says nothing of itself. So the first question that another one of its group is
//! silent about makes such servers prove that they live (`Servers::muster`): the tries of a question are few, and must not
//! go to one dead server after another.

use crate::base::time::{Instant, Span};
use crate::upstream::server::Server;

/// Tries without a reply in a row after which a server is asked whether it lives: a few names whose own servers are
/// silent look the same from here, and must not make all upstreams seem dead.
pub(crate) const SILENCE: u32 = 8;
/// What a refused connection or an ICMP error weighs, in silent tries: the second one in a row decides.
const REFUSAL: u32 = 4;
/// Failures in a row of names that another server knew something of, after which a server is asked last: one that refuses
/// everything, or whose own upstreams are gone, would cost every question a round trip.
const LET_DOWN: u32 = 8;
/// A probe repeats its question so often, and the next one comes so soon while nobody stands in for the server.
pub(crate) const PROBE_INTERVAL: Span = Span::from_millis(500);
/// The longest pause between probes.
pub(crate) const LONGEST_PAUSE: Span = Span::from_millis(4_000);
/// A server that was not asked for so long has to prove that it lives when another one is silent; so many at a time.
const IDLE: Span = Span::from_secs(2);
pub(crate) const MUSTERED: usize = 8;
/// For so long after all servers of a group were dead, expired data are still given for a part of the questions.
pub(crate) const LONGEST_THAW: Span = Span::from_secs(10);

/// What is known of a server's life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breaker {
    /// Tries without a reply, and failures that others answered well, in a row.
    silent: u32,
    let_down: u32,
    /// Half-open: it was silent for so long, or not asked for so long, that it is asked whether it lives.
    pub(crate) suspected: bool,
    /// It fails where others do not.
    failing: bool,
    /// A probe is on its way.
    pub(crate) probing: bool,
    /// Probes in a row that were in vain.
    pub(crate) in_vain: u32,
    /// It died of refusals: somebody said that it is not there.
    refused: bool,
    pub(crate) probe_at: Instant,
    /// When it was asked last, and when it died.
    pub(crate) asked: Option<Instant>,
    pub(crate) died: Instant,
    /// It died since somebody looked.
    has_died: bool,
}

impl Breaker {
    /// Whether nobody has asked the server for a while, or ever.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.asked.is_none_or(|asked| now - asked >= IDLE)
    }
}

/// How a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// It is asked in its turn.
    Closed,
    /// It is asked last, and probed at this moment.
    HalfOpen,
    /// It is dead: asked only by probes, while others live.
    Open,
    /// It replies, but with failures where others have answers: asked last, and probed.
    Failing,
}

impl BreakerState {
    /// A word for each.
    pub fn word(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::HalfOpen => "half-open",
            BreakerState::Open => "open",
            BreakerState::Failing => "failing",
        }
    }
}

impl Server {
    /// How its breaker stands.
    pub fn state(&self) -> BreakerState {
        match () {
            () if self.dead => BreakerState::Open,
            () if self.breaker.failing => BreakerState::Failing,
            () if self.breaker.suspected => BreakerState::HalfOpen,
            () => BreakerState::Closed,
        }
    }

    /// How far behind others it comes when a server is chosen, in tries.
    #[inline]
    pub(crate) fn handicap(&self) -> u32 {
        match () {
            // A living server that was silent once comes before a dead one, one that was silent twice after it.
            () if self.dead => 2,
            () if self.breaker.suspected || self.breaker.failing => 1,
            () => 0,
        }
    }

    /// Whether it replies with failures where others have answers.
    pub(crate) fn is_failing(&self) -> bool {
        self.breaker.failing
    }

    /// It is asked.
    #[inline]
    pub(crate) fn is_asked(&mut self, now: Instant) {
        self.breaker.asked = Some(now);
    }

    /// It has replied. True: it was dead until now.
    #[inline]
    pub(crate) fn lives(&mut self) -> bool {
        self.breaker.silent = 0;
        self.breaker.suspected = false;
        self.breaker.refused = false;
        core::mem::take(&mut self.dead)
    }

    /// A try was not answered in time.
    pub fn silent(&mut self, now: Instant) {
        let breaker = &mut self.breaker;
        breaker.silent = breaker.silent.saturating_add(1);
        if !self.dead && !breaker.suspected && breaker.silent >= SILENCE {
            breaker.suspected = true;
            breaker.probe_at = now;
        }
    }

    /// A question of a probe was not answered in time. One is enough for a server that has been silent: it counts as dead
    /// from now on.
    pub fn probe_unanswered(&mut self, now: Instant) {
        if self.breaker.suspected && self.breaker.silent >= SILENCE {
            self.die(now);
        }
    }

    /// A probe has ended without a reply. `urgent`: nobody stands in for this server. `jitter`: a random number.
    pub(crate) fn probed_in_vain(&mut self, now: Instant, urgent: bool, jitter: u64) {
        if self.breaker.suspected {
            // It was only asked because it had been idle.
            self.die(now);
        }
        let breaker = &mut self.breaker;
        breaker.probing = false;
        breaker.in_vain = breaker.in_vain.saturating_add(1);
        let pause = match urgent {
            true => Span(PROBE_INTERVAL.0 / 8),
            false => {
                let doubled = PROBE_INTERVAL.0 << (breaker.in_vain - 1).min(8);
                Span(doubled.min(LONGEST_PAUSE.0))
            }
        };
        breaker.probe_at = now + jittered(pause, jitter);
    }

    /// A probe was replied to. `is_failure`: with nothing better than a failure, which is life, but no help.
    pub(crate) fn probed(&mut self, now: Instant, is_failure: bool, jitter: u64) {
        let breaker = &mut self.breaker;
        breaker.probing = false;
        match breaker.failing && is_failure {
            true => {
                breaker.in_vain = breaker.in_vain.saturating_add(1);
                let doubled = PROBE_INTERVAL.0 << (breaker.in_vain - 1).min(8);
                breaker.probe_at = now + jittered(Span(doubled.min(LONGEST_PAUSE.0)), jitter);
            }
            false => {
                breaker.in_vain = 0;
                self.helps();
            }
        }
    }

    /// The server cannot be reached. The second time in a row it counts as dead: that needs no probe.
    pub fn refused(&mut self, now: Instant) {
        self.breaker.silent = self.breaker.silent.saturating_add(REFUSAL);
        if !self.dead && self.breaker.silent >= SILENCE {
            self.breaker.refused = true;
            self.die(now);
        }
    }

    /// It has failed with what another server had an answer to.
    pub(crate) fn lets_down(&mut self, now: Instant) {
        let breaker = &mut self.breaker;
        breaker.let_down = breaker.let_down.saturating_add(1);
        if !breaker.failing && breaker.let_down >= LET_DOWN {
            breaker.failing = true;
            breaker.probe_at = now + PROBE_INTERVAL;
        }
    }

    /// It has answered a question, and not with a failure.
    #[inline]
    pub(crate) fn helps(&mut self) {
        self.breaker.let_down = 0;
        self.breaker.failing = false;
    }

    fn die(&mut self, now: Instant) {
        self.dead = true;
        let breaker = &mut self.breaker;
        breaker.has_died = true;
        breaker.died = now;
        breaker.suspected = false;
        breaker.in_vain = 0;
        breaker.probe_at = now + PROBE_INTERVAL;
    }

    /// It died since somebody looked.
    pub(crate) fn take_has_died(&mut self) -> bool {
        core::mem::take(&mut self.breaker.has_died)
    }

    /// How long a question of a probe waits: longer than any question in use, as a server that has only become slow must not
    /// die of it. Nobody waits for the verdict: a suspected server is asked last already.
    pub fn probe_wait(&self, ceiling: Span) -> Span {
        ceiling.min(PROBE_INTERVAL)
    }

    /// How long the only question to a dead server waits, where all are dead. One that is silent may be slow, until a probe
    /// has waited for the whole ceiling.
    pub(crate) fn last_wait(&self, ceiling: Span) -> Span {
        let may_be_slow = self.breaker.in_vain == 0 && !self.breaker.refused;
        if may_be_slow { ceiling } else { self.wait(1, ceiling) }
    }

    /// Whether a probe is due; it has then to be sent.
    pub fn probe_due(&mut self, now: Instant) -> bool {
        let due = self.next_probe().is_some_and(|at| now >= at);
        self.breaker.probing |= due;
        due
    }

    /// When the next probe is due; none while one is on its way.
    pub fn next_probe(&self) -> Option<Instant> {
        let Breaker { suspected, failing, probing, probe_at, .. } = self.breaker;
        ((self.dead || suspected || failing) && self.configured && !probing).then_some(probe_at)
    }
}

/// Between three and five quarters of a span.
pub(crate) fn jittered(span: Span, jitter: u64) -> Span {
    Span(span.0 * 3 / 4 + jitter % (span.0 / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000_000_000);

    fn server() -> Server {
        Server::new("[::1]:53".parse().unwrap())
    }

    fn fall_silent(server: &mut Server) {
        for _ in 0..SILENCE {
            server.silent(NOW);
        }
    }

    #[test]
    fn silence_kills_and_one_reply_revives() {
        let mut server = server();
        for _ in 1..SILENCE {
            server.silent(NOW);
        }
        assert_eq!((server.state(), server.next_probe()), (BreakerState::Closed, None));
        server.silent(NOW);
        assert_eq!(server.state(), BreakerState::HalfOpen);
        assert!(server.probe_due(NOW), "it is asked whether it lives");
        server.probe_unanswered(NOW);
        assert_eq!(server.state(), BreakerState::Open);
        assert!(server.lives());
        assert_eq!(server.state(), BreakerState::Closed);
    }

    #[test]
    fn a_reply_in_between_keeps_a_lossy_server_alive() {
        let mut server = server();
        for _ in 0..100 {
            for _ in 0..SILENCE - 1 {
                server.silent(NOW);
            }
            server.lives();
        }
        assert_eq!((server.dead, server.next_probe()), (false, None));
    }

    #[test]
    fn a_probe_that_is_answered_clears_the_suspicion() {
        let mut server = server();
        fall_silent(&mut server);
        assert!(server.probe_due(NOW));
        server.lives();
        server.probe_unanswered(NOW);
        assert_eq!((server.dead, server.next_probe()), (false, None));
    }

    #[test]
    fn there_is_one_probe_at_a_time_and_the_pauses_grow_to_a_bound_with_jitter() {
        let mut server = server();
        fall_silent(&mut server);
        let mut now = NOW;
        assert!(server.probe_due(now) && !server.probe_due(now + Span::from_secs(3_600)));
        server.probe_unanswered(now);
        let mut pauses = Vec::new();
        for round in 0..8u64 {
            assert!(!server.probe_due(now + Span::from_secs(3_600)), "the last one has not ended");
            server.probed_in_vain(now, false, round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let next = server.next_probe().expect("it is dead");
            pauses.push((next - now).0 / 1_000_000);
            assert!(!server.probe_due(Instant(next.0 - 1)));
            now = next;
            assert!(server.probe_due(now));
        }
        for (pause, middle) in pauses.iter().zip([500, 1_000, 2_000, 4_000, 4_000, 4_000, 4_000, 4_000]) {
            assert!((middle * 3 / 4..=middle * 5 / 4).contains(pause), "{pauses:?}");
        }
        assert!(pauses[3..].windows(2).any(|two| two[0] != two[1]), "no jitter: {pauses:?}");
        server.probed_in_vain(now, true, 7);
        assert!(server.next_probe().expect("it is dead") - now <= PROBE_INTERVAL, "nobody stands in for it");
    }

    #[test]
    fn a_server_that_only_fails_is_asked_last_until_it_has_an_answer() {
        let mut server = server();
        for _ in 1..LET_DOWN {
            server.lets_down(NOW);
        }
        server.helps();
        for _ in 1..LET_DOWN {
            server.lets_down(NOW);
        }
        assert_eq!((server.state(), server.handicap()), (BreakerState::Closed, 0));
        server.lets_down(NOW);
        assert_eq!((server.state(), server.handicap(), server.dead), (BreakerState::Failing, 1, false));
        assert!(server.probe_due(NOW + PROBE_INTERVAL));
        server.probed(NOW, true, 0);
        assert_eq!(server.state(), BreakerState::Failing);
        server.probed(NOW, false, 0);
        assert_eq!(server.state(), BreakerState::Closed);
    }
}
