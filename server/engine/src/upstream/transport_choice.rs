//! Choice between UDP and TCP for one upstream: `transport = "auto"`.
//!
//! ```text
//! udp   -- the pause is over ------------------------------> trial   one question in 16 goes over TCP first
//! trial -- 64 answers over TCP in a row without a loss ----> tcp     63 questions in 64 go over TCP first
//! trial -- a loss -----------------------------------------> udp     the pause doubles, up to an hour
//! tcp   -- a loss -----------------------------------------> udp     so too; after a minute of TCP, the pause is a minute
//! ```
//!
//! A loss is a connection that was refused, ended with queries on it or stalled, an answer that is late, an upstream that
//! answers one query at a time, or answers that come later than over UDP on average: behind lost packets, or because the upstream
//! does not set TCP_NODELAY. Under load all answers come later, so both averages are kept up to date. A question that meets a loss goes
//! over UDP without the loss of an attempt. So a trial costs a few questions a round trip, and no question its answer.

use crate::base::time::{Instant, Span};

/// Answers over TCP in a row that end a trial.
const TRIAL_ANSWERS: u32 = 64;
/// One question in so many goes over TCP in a trial.
const TRIAL_SHARE: u32 = 16;
/// One question in so many goes over UDP otherwise, to compare the round trips.
const COMPARED_SHARE: u32 = 64;
/// Pause between the first reply of an upstream and the first trial. It waits for the round trip over UDP to be known.
const FIRST_PAUSE: Span = Span::from_secs(5);
/// Pause after a loss; it doubles with each further one in a trial.
const PAUSE: Span = Span::from_secs(60);
/// Longest pause.
const LONGEST_PAUSE: Span = Span::from_secs(3_600);

/// Answers over UDP over which the average round trip is taken.
const UDP_ANSWERS: u64 = 8;
/// Answers over TCP for the same time, at most.
const TCP_ANSWERS: u32 = UDP_ANSWERS as u32 * COMPARED_SHARE;
/// Least time by which TCP must be later than UDP on average to count as late. It is a quarter of the round trip over UDP
/// otherwise. Three pauses of a busy connection in the datapath, of some 0.5 ms each, are not the upstream's fault.
const LEAST_DELAY: Span = Span(1_500_000);

/// State of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// Questions go over UDP.
    #[default]
    Udp,
    /// Some questions go over TCP.
    Trial,
    /// Questions go over TCP.
    Tcp,
}

/// The choice for one upstream, and its history.
#[derive(Clone, Debug, Default)]
pub struct TransportChoice {
    choice: Choice,
    /// Begin of the next trial; none before the first question.
    trial_at: Option<Instant>,
    /// Questions since the last one over the transport that few go over: TCP in a trial, UDP otherwise.
    since_rare: u32,
    /// Answers over TCP in a trial; afterwards [`TCP_ANSWERS`].
    answers: u32,
    /// Losses in a row without a minute of TCP between them.
    losses: u32,
    /// Time of the latest promotion.
    promoted: Instant,
    /// Average round trip over UDP.
    udp_round_trip: Span,
    /// Average round trip over TCP since the trial began.
    tcp_round_trip: Span,
}

/// Effect of an answer over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// None.
    Unchanged,
    /// The upstream is asked over TCP from now on.
    Promoted,
    /// Answers over TCP are late: a loss, which the caller records.
    Late,
}

impl TransportChoice {
    /// The state of the choice.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Returns true if the next question goes over TCP. `round_trip`: the average one, of all answers.
    #[inline]
    pub(crate) fn asks_over_tcp(&mut self, round_trip: Option<Span>, now: Instant) -> bool {
        match self.choice {
            Choice::Tcp => {
                self.since_rare = (self.since_rare + 1) % COMPARED_SHARE;
                self.since_rare != 0
            }
            Choice::Udp => {
                if now >= *self.trial_at.get_or_insert(now + FIRST_PAUSE)
                    && let Some(round_trip) = round_trip
                {
                    self.choice = Choice::Trial;
                    self.answers = 0;
                    self.since_rare = 0;
                    (self.udp_round_trip, self.tcp_round_trip) = (round_trip, round_trip);
                }
                false
            }
            Choice::Trial => {
                self.since_rare = (self.since_rare + 1) % TRIAL_SHARE;
                self.since_rare == 0
            }
        }
    }

    /// Records an answer over TCP.
    #[inline]
    pub(crate) fn on_answer(&mut self, round_trip: Span, now: Instant) -> Verdict {
        if self.choice == Choice::Udp {
            return Verdict::Unchanged;
        }
        self.answers = (self.answers + 1).min(TCP_ANSWERS);
        let answers = u64::from(self.answers);
        self.tcp_round_trip = Span((self.tcp_round_trip.0 * (answers - 1) + round_trip.0) / answers);
        let most = self.udp_round_trip.0 + (self.udp_round_trip.0 / 4).max(LEAST_DELAY.0);
        if self.answers < TRIAL_ANSWERS {
            Verdict::Unchanged
        } else if self.tcp_round_trip.0 > most {
            Verdict::Late
        } else if self.choice == Choice::Trial {
            self.choice = Choice::Tcp;
            self.answers = TCP_ANSWERS;
            self.promoted = now;
            Verdict::Promoted
        } else {
            Verdict::Unchanged
        }
    }

    /// Records an answer over UDP.
    #[inline]
    pub(crate) fn on_udp_answer(&mut self, round_trip: Span) {
        if self.choice != Choice::Udp {
            self.udp_round_trip =
                Span((self.udp_round_trip.0 * (UDP_ANSWERS - 1) + round_trip.0) / UDP_ANSWERS);
        }
    }

    /// Records a loss over TCP. Returns true if questions go over UDP again.
    #[cold]
    pub(crate) fn on_loss(&mut self, now: Instant) -> bool {
        // The losses of one connection are one loss.
        if self.choice == Choice::Udp {
            return false;
        }
        if self.choice == Choice::Tcp && now - self.promoted >= PAUSE {
            self.losses = 0;
        }
        let pause = Span(PAUSE.0 << self.losses.min(6)).min(LONGEST_PAUSE);
        self.losses = self.losses.saturating_add(1);
        self.trial_at = Some(now + pause);
        self.choice = Choice::Udp;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Span = Span::from_millis(10);

    /// Asks until a trial has begun; returns the time.
    fn begin_trial(choice: &mut TransportChoice, from: Instant) -> Instant {
        let mut now = from;
        for _ in 0..4_000 {
            choice.asks_over_tcp(Some(ROUND_TRIP), now);
            if choice.choice() == Choice::Trial {
                return now;
            }
            now += Span::from_secs(1);
        }
        panic!("no trial began");
    }

    /// The last effect of so many answers.
    fn answers(choice: &mut TransportChoice, count: u32, round_trip: Span, now: Instant) -> Verdict {
        (0..count).map(|_| choice.on_answer(round_trip, now)).last().unwrap()
    }

    #[test]
    fn a_trial_sends_one_question_in_sixteen_and_64_answers_promote() {
        let mut choice = TransportChoice::default();
        assert!((0..100).all(|second| !choice.asks_over_tcp(None, Instant(0) + Span::from_secs(second))));
        assert_eq!(choice.choice(), Choice::Udp, "no round trip is known");
        let mut choice = TransportChoice::default();
        let now = begin_trial(&mut choice, Instant(0));
        assert_eq!(now, Instant(0) + FIRST_PAUSE);
        let mut asks = || choice.asks_over_tcp(Some(ROUND_TRIP), now);
        assert_eq!((0..160).filter(|_| asks()).count(), 10);
        assert_eq!(answers(&mut choice, TRIAL_ANSWERS - 1, ROUND_TRIP, now), Verdict::Unchanged);
        assert_eq!(answers(&mut choice, 1, ROUND_TRIP, now), Verdict::Promoted);
        assert_eq!(answers(&mut choice, 1, ROUND_TRIP, now), Verdict::Unchanged);
        let mut asks = || choice.asks_over_tcp(Some(ROUND_TRIP), now);
        assert_eq!((0..640).filter(|_| asks()).count(), 630);
    }

    #[test]
    fn answers_that_are_as_late_over_udp_are_no_loss() {
        let mut choice = TransportChoice::default();
        let now = begin_trial(&mut choice, Instant(0));
        assert_eq!(answers(&mut choice, TRIAL_ANSWERS, ROUND_TRIP, now), Verdict::Promoted);
        // The load rises, and with it all round trips.
        for _ in 0..20 {
            choice.on_udp_answer(Span::from_millis(30));
            assert_eq!(answers(&mut choice, 63, Span::from_millis(31), now), Verdict::Unchanged);
        }
        // It falls again, but over TCP answers stay late.
        (0..40).for_each(|_| choice.on_udp_answer(ROUND_TRIP));
        assert_eq!(answers(&mut choice, 1, Span::from_millis(31), now), Verdict::Late);
    }

    #[test]
    fn a_loss_demotes_once_and_the_pause_doubles_up_to_an_hour() {
        let mut choice = TransportChoice::default();
        let mut now = begin_trial(&mut choice, Instant(0));
        for (place, minutes) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            if place % 2 == 1 {
                // A short time over TCP is no success.
                assert_eq!(answers(&mut choice, TRIAL_ANSWERS, ROUND_TRIP, now), Verdict::Promoted);
            }
            assert!(choice.on_loss(now) && !choice.on_loss(now));
            assert!(!choice.asks_over_tcp(Some(ROUND_TRIP), now));
            let next = begin_trial(&mut choice, now);
            assert_eq!(next - now, Span::from_secs(60 * minutes));
            now = next;
        }
        assert_eq!(answers(&mut choice, TRIAL_ANSWERS, ROUND_TRIP, now), Verdict::Promoted);
        now += PAUSE;
        assert!(choice.on_loss(now));
        assert_eq!(begin_trial(&mut choice, now) - now, PAUSE);
    }

    #[test]
    fn answers_that_are_later_than_over_udp_end_a_trial_and_tcp() {
        let late = Span::from_millis(14);
        let mut choice = TransportChoice::default();
        let now = begin_trial(&mut choice, Instant(0));
        assert_eq!(answers(&mut choice, TRIAL_ANSWERS, late, now), Verdict::Late);
        assert_eq!(choice.choice(), Choice::Trial, "the caller records the loss");
        let mut choice = TransportChoice::default();
        let now = begin_trial(&mut choice, Instant(0));
        assert_eq!(answers(&mut choice, TRIAL_ANSWERS, Span::from_millis(12), now), Verdict::Promoted);
        // One late answer is none, many are.
        assert_eq!(answers(&mut choice, 1, late, now), Verdict::Unchanged);
        assert_eq!(answers(&mut choice, 200, late, now), Verdict::Late);
        assert!(choice.on_loss(now));
        assert_eq!(answers(&mut choice, 1, late, now), Verdict::Unchanged, "questions go over UDP");
    }
}
