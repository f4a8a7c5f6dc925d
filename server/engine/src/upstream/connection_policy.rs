//! Limits of one upstream's TCP or TLS connections, learned from the way that it ends and serves them (RFC 7766 section 6.2).
//!
//! Three habits are noticed. Each makes the connections shorter or more numerous, so that no query is written into a connection
//! that is about to end, and none waits behind another for no reason:
//!
//! - The upstream closes after N answers: a connection carries N queries.
//! - It closes a connection that is idle for a time T: an idle connection is used for three quarters of T.
//! - It answers one query at a time: a connection carries one query at a time, and there are several connections.
//!
//! One event proves nothing, as an upstream may just restart. The first two habits are believed when two connections in a row
//! end in one way, the third after 16 replies in a row. A limit is forgotten after [`STREAM_MEMORY`].

use crate::base::time::{Instant, Span};
use crate::limits::{STREAM_IDLE, STREAM_MEMORY};

/// Replies in a row that come one at a time, with [`CROWD`] queries or more on the connection, before the upstream counts as one
/// that does not pipeline.
const TURNS: u32 = 16;
/// Queries on a connection from which the time between two replies says something: four queries that are served together
/// come in a quarter of the round trip each.
const CROWD: u32 = 4;
/// Idle time below which the end of a connection belongs to its last answer.
const AT_ONCE: Span = Span::from_millis(100);
/// Shortest round trip for which the third habit is looked for. Below it, one connection is as good as many.
const SHORTEST: Span = Span::from_millis(1);

/// A habit that was learned just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedHabit {
    /// The upstream closes connections after so many answers.
    Questions,
    /// It closes idle connections early.
    Idle,
    /// It answers one query at a time.
    OneAtATime,
}

/// The end of a connection, as its upstream closed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// Replies that came over the connection: one at least.
    pub answered: u32,
    /// Queries waited on it.
    pub waited: bool,
    /// Time since its last reply.
    pub idle: Span,
}

/// A reply that came over a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyTiming {
    /// Its round trip.
    pub round_trip: Span,
    /// Time since the reply before it.
    pub since_last: Span,
    /// Queries on the connection, with the one that it answers.
    pub outstanding: u32,
}

/// Limits that were learned of the connections to one upstream.
#[derive(Clone, Debug, Default)]
pub struct PeerConnectionPolicy {
    questions: Option<u32>,
    idle: Option<Span>,
    one_at_a_time: bool,
    /// Answers of the connection that ended last.
    last_answered: Option<u32>,
    /// Idle time of the connection that was closed idle last.
    last_idle: Option<Span>,
    /// Replies in a row that came one at a time.
    turns: u32,
    shortest: Option<Span>,
    /// Time at which the limits are forgotten.
    until: Instant,
}

impl PeerConnectionPolicy {
    /// Queries that one connection carries in all; none: no limit was learned.
    #[inline]
    pub fn questions(&self) -> Option<u32> {
        self.questions
    }

    /// Time for which an idle connection is used.
    #[inline]
    pub fn idle(&self) -> Span {
        self.idle.unwrap_or(STREAM_IDLE)
    }

    /// Idle time that was learned; none: no limit was learned.
    pub fn learned_idle(&self) -> Option<Span> {
        self.idle
    }

    /// True if the upstream answers one query of a connection at a time.
    #[inline]
    pub fn is_one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    /// Forgets limits that are old.
    #[inline]
    pub(crate) fn refresh(&mut self, now: Instant) {
        if self.until != Instant(0) && now >= self.until {
            *self = PeerConnectionPolicy::default();
        }
    }

    /// Learns from a connection that its upstream closed after at least one reply.
    #[cold]
    pub(crate) fn on_ending(&mut self, ending: Ending, now: Instant) -> Option<LearnedHabit> {
        if ending.waited || ending.idle < AT_ONCE {
            let is_repeated = self.last_answered.replace(ending.answered) == Some(ending.answered);
            // A connection at its limit ends as expected.
            if !is_repeated || self.questions.is_some_and(|limit| limit <= ending.answered) {
                return None;
            }
            self.questions = Some(ending.answered.max(1));
            return self.learned(LearnedHabit::Questions, now);
        }
        let last = self.last_idle.replace(ending.idle)?;
        if last.0.abs_diff(ending.idle.0) > ending.idle.0 / 4 || ending.idle >= self.idle() {
            return None;
        }
        self.idle = Some(Span(last.0.min(ending.idle.0) / 4 * 3));
        self.learned(LearnedHabit::Idle, now)
    }

    /// Learns from a reply.
    #[inline]
    pub(crate) fn on_reply(&mut self, reply: ReplyTiming, now: Instant) -> Option<LearnedHabit> {
        let shortest = self.shortest.map_or(reply.round_trip, |shortest| shortest.min(reply.round_trip));
        self.shortest = Some(shortest);
        // Served together, CROWD replies come within one round trip.
        let waited_its_turn = reply.outstanding >= CROWD
            && shortest >= SHORTEST
            && reply.since_last.0 >= shortest.0 / 4 * 3
            && reply.round_trip.0 >= 2 * shortest.0;
        self.turns = if waited_its_turn { self.turns + 1 } else { 0 };
        if self.one_at_a_time || self.turns < TURNS {
            return None;
        }
        self.one_at_a_time = true;
        self.learned(LearnedHabit::OneAtATime, now)
    }

    fn learned(&mut self, what: LearnedHabit, now: Instant) -> Option<LearnedHabit> {
        self.until = now + STREAM_MEMORY;
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_answers(answered: u32) -> Ending {
        Ending { answered, waited: true, idle: Span::ZERO }
    }

    #[test]
    fn two_connections_that_end_after_as_many_answers_set_a_limit_and_two_others_do_not() {
        let mut limits = PeerConnectionPolicy::default();
        assert_eq!(limits.on_ending(after_answers(100), Instant(0)), None);
        assert_eq!(limits.on_ending(after_answers(7), Instant(0)), None);
        assert_eq!(limits.questions(), None);
        assert_eq!(limits.on_ending(after_answers(7), Instant(0)), Some(LearnedHabit::Questions));
        assert_eq!(limits.questions(), Some(7));
        // The connections that are open end in the same way: nothing new.
        assert_eq!(limits.on_ending(after_answers(7), Instant(0)), None);
        limits.refresh(Instant(0) + STREAM_MEMORY);
        assert_eq!(limits.questions(), None);
    }

    #[test]
    fn an_idle_time_is_learned_from_two_connections_and_undercut() {
        let mut limits = PeerConnectionPolicy::default();
        let idle = |millis| Ending { answered: 3, waited: false, idle: Span::from_millis(millis) };
        assert_eq!(limits.on_ending(idle(2_000), Instant(0)), None);
        assert_eq!(limits.idle(), STREAM_IDLE);
        assert_eq!(limits.on_ending(idle(2_100), Instant(0)), Some(LearnedHabit::Idle));
        assert_eq!(limits.idle(), Span::from_millis(1_500));
    }

    #[test]
    fn replies_a_round_trip_apart_under_load_show_a_peer_that_does_not_pipeline() {
        let reply = |outstanding: u32, apart| ReplyTiming {
            round_trip: Span::from_millis(5 * u64::from(outstanding)),
            since_last: Span::from_millis(apart),
            outstanding,
        };
        let mut limits = PeerConnectionPolicy::default();
        limits.on_reply(reply(1, 5), Instant(0));
        let learned: Vec<_> = (0..20).filter_map(|_| limits.on_reply(reply(8, 5), Instant(0))).collect();
        assert_eq!(learned, [LearnedHabit::OneAtATime]);
        let mut limits = PeerConnectionPolicy::default();
        limits.on_reply(reply(1, 5), Instant(0));
        assert!((0..100).all(|_| limits.on_reply(reply(8, 1), Instant(0)).is_none()));
        assert!(!limits.is_one_at_a_time());
    }
}
