//! The bounds of an upstream's TCP or TLS connections (RFC 7766 section 6.2): what the last connections have shown the upstream to bear is
//! what the next ones ask of it, so that no query is written into a connection that is about to end, or waits behind another for no
//! reason. One event proves nothing, as an upstream may just restart; and what was learned is forgotten after [`STREAM_MEMORY`].
//!
//! - Two in a row end after N answers: a connection carries N queries.
//! - Two in a row are closed when idle for a time T: an idle connection is used for three quarters of T.
//! - 16 replies in a row come one at a time: a connection carries one query at a time, and there are several.

use crate::base::time::{Instant, Span};
use crate::limits::{STREAM_IDLE, STREAM_MEMORY, STREAM_QUESTIONS};
use crate::upstream::links::Usage;

/// Replies in a row that come one at a time, with [`CROWD`] queries or more outstanding, before the upstream counts as one that does not
/// pipeline. Four queries that are served together come in a quarter of the round trip each.
const TURNS: u32 = 16;
const CROWD: u32 = 4;
/// Idle time below which the end of a connection belongs to its last answer.
const AT_ONCE: Span = Span::from_millis(100);
/// Shortest round trip for which the third bound is looked for. Below it, one connection is as good as many.
const SHORTEST: Span = Span::from_millis(1);

/// A bound that was learned just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedHabit {
    /// The upstream closes connections after so many answers.
    Questions,
    /// It closes idle connections early.
    Idle,
    /// It answers one query at a time.
    OneAtATime,
}

/// Room of a connection for one more query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It takes the query.
    Free,
    /// It takes the query if no other connection may be opened.
    Busy,
    /// It takes no more queries.
    Spent,
}

/// The bounds of the connections to one upstream.
#[derive(Clone, Debug, Default)]
pub struct PeerConnectionPolicy {
    questions: Option<u32>,
    idle: Option<Span>,
    one_at_a_time: bool,
    /// Answers of the connection that ended last, and idle time of the one that was closed idle last.
    last_answered: Option<u32>,
    last_idle: Option<Span>,
    /// Replies in a row that came one at a time, and the shortest round trip.
    turns: u32,
    shortest: Option<Span>,
    /// Time at which the bounds are forgotten.
    until: Instant,
}

impl PeerConnectionPolicy {
    /// Queries that one connection carries in all; none: no bound was learned.
    pub fn questions(&self) -> Option<u32> {
        self.questions
    }

    /// Time for which an idle connection is used; none: no bound was learned.
    pub fn learned_idle(&self) -> Option<Span> {
        self.idle
    }

    /// True if the upstream answers one query of a connection at a time.
    pub fn is_one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    /// True if one connection may not carry all queries.
    pub(crate) fn is_bounded(&self) -> bool {
        self.questions.is_some() || self.one_at_a_time
    }

    /// Forgets bounds that are old.
    #[inline]
    pub(crate) fn refresh(&mut self, now: Instant) {
        if self.until != Instant(0) && now >= self.until {
            *self = PeerConnectionPolicy::default();
        }
    }

    /// Room of a connection for one more query.
    #[inline]
    pub(crate) fn room(&self, usage: &Usage, now: Instant) -> Room {
        let most = self.questions.map_or(STREAM_QUESTIONS, |bound| bound as usize);
        // An upstream closes an idle connection at its own time; a query that is under way then would be lost.
        if usage.issued >= most || self.idle_end(usage).is_some_and(|end| end <= now) {
            return Room::Spent;
        }
        if self.one_at_a_time && usage.outstanding > 0 { Room::Busy } else { Room::Free }
    }

    /// Time from which a connection is closed if it carries no further query; none while a question waits on it.
    #[inline]
    pub(crate) fn idle_end(&self, usage: &Usage) -> Option<Instant> {
        (usage.outstanding == 0).then(|| usage.last_activity + self.idle.unwrap_or(STREAM_IDLE))
    }

    /// Learns from a connection that its upstream closed after at least one reply.
    #[cold]
    pub(crate) fn on_ending(&mut self, usage: &Usage, now: Instant) -> Option<LearnedHabit> {
        let (answered, idle) = (usage.answered, now - usage.last_activity);
        if usage.outstanding > 0 || idle < AT_ONCE {
            let is_repeated = self.last_answered.replace(answered) == Some(answered);
            // A connection at its bound ends as expected.
            if !is_repeated || self.questions.is_some_and(|bound| bound <= answered) {
                return None;
            }
            self.questions = Some(answered.max(1));
            return self.learned(LearnedHabit::Questions, now);
        }
        let last = self.last_idle.replace(idle)?;
        if last.0.abs_diff(idle.0) > idle.0 / 4 || idle >= self.idle.unwrap_or(STREAM_IDLE) {
            return None;
        }
        self.idle = Some(Span(last.0.min(idle.0) / 4 * 3));
        self.learned(LearnedHabit::Idle, now)
    }

    /// Learns from a reply that came over a connection after this round trip. Its query is still one of those outstanding.
    #[inline]
    pub(crate) fn on_reply(&mut self, usage: &Usage, round_trip: Span, now: Instant) -> Option<LearnedHabit> {
        let shortest = self.shortest.map_or(round_trip, |shortest| shortest.min(round_trip));
        self.shortest = Some(shortest);
        // Served together, CROWD replies come within one round trip.
        let waited_its_turn = usage.outstanding >= CROWD
            && shortest >= SHORTEST
            && usage.latest_gap.0 >= shortest.0 / 4 * 3
            && round_trip.0 >= 2 * shortest.0;
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

    fn after_answers(answered: u32) -> Usage {
        Usage { answered, outstanding: 1, ..Usage::new(Instant(0)) }
    }

    #[test]
    fn two_connections_that_end_after_as_many_answers_set_a_bound_and_two_others_do_not() {
        let mut policy = PeerConnectionPolicy::default();
        assert_eq!(policy.on_ending(&after_answers(100), Instant(0)), None);
        assert_eq!(policy.on_ending(&after_answers(7), Instant(0)), None);
        assert_eq!(policy.questions(), None);
        assert_eq!(policy.on_ending(&after_answers(7), Instant(0)), Some(LearnedHabit::Questions));
        assert_eq!(policy.questions(), Some(7));
        let carried = |issued| Usage { issued, ..after_answers(0) };
        assert_eq!(policy.room(&carried(6), Instant(0)), Room::Free);
        assert_eq!(policy.room(&carried(7), Instant(0)), Room::Spent);
        // The connections that are open end in the same way: nothing new.
        assert_eq!(policy.on_ending(&after_answers(7), Instant(0)), None);
        policy.refresh(Instant(0) + STREAM_MEMORY);
        assert_eq!(policy.questions(), None);
        assert_eq!(policy.room(&carried(7), Instant(0)), Room::Free);
    }

    #[test]
    fn an_idle_time_is_learned_from_two_connections_and_undercut() {
        let mut policy = PeerConnectionPolicy::default();
        let (unused, after) = (Usage::new(Instant(0)), |millis| Instant(0) + Span::from_millis(millis));
        assert_eq!(policy.on_ending(&unused, after(2_000)), None);
        assert_eq!(policy.idle_end(&unused), Some(Instant(0) + STREAM_IDLE));
        assert_eq!(policy.on_ending(&unused, after(2_100)), Some(LearnedHabit::Idle));
        assert_eq!(policy.idle_end(&unused), Some(after(1_500)));
        assert_eq!(policy.room(&unused, after(1_499)), Room::Free);
        assert_eq!(policy.room(&unused, after(1_500)), Room::Spent);
        assert_eq!(policy.room(&after_answers(3), after(1_500)), Room::Free, "a question waits on it");
    }

    #[test]
    fn replies_a_round_trip_apart_under_load_show_a_peer_that_does_not_pipeline() {
        let reply = |policy: &mut PeerConnectionPolicy, outstanding: u32, apart| {
            let latest_gap = Span::from_millis(apart);
            let usage = Usage { outstanding, latest_gap, ..Usage::new(Instant(0)) };
            policy.on_reply(&usage, Span::from_millis(5 * u64::from(outstanding)), Instant(0))
        };
        let mut policy = PeerConnectionPolicy::default();
        reply(&mut policy, 1, 5);
        let learned: Vec<_> = (0..20).filter_map(|_| reply(&mut policy, 8, 5)).collect();
        assert_eq!(learned, [LearnedHabit::OneAtATime]);
        assert_eq!(policy.room(&after_answers(3), Instant(0)), Room::Busy);
        assert_eq!(policy.room(&Usage::new(Instant(0)), Instant(0)), Room::Free);
        let mut policy = PeerConnectionPolicy::default();
        reply(&mut policy, 1, 5);
        assert!((0..100).all(|_| reply(&mut policy, 8, 1).is_none()));
        assert!(!policy.is_one_at_a_time());
    }
}
