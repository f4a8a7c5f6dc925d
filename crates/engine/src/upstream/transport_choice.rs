//! Choice between UDP and TCP for one upstream: `transport = "auto"`.
//!
//! ```text
//! udp   -- the pause is over ------------------------------> trial   one question in 16 goes over TCP first
//! trial -- 64 answers over TCP in a row without a loss ----> tcp     all questions go over TCP first
//! trial -- a loss -----------------------------------------> udp     the pause doubles, up to an hour
//! tcp   -- a loss -----------------------------------------> udp     the pause is a minute
//! ```
//!
//! A loss is a connection that was refused, ended with queries on it or stalled, an answer that is late, or an upstream that
//! answers one query at a time. A question that meets a loss goes over UDP without the loss of a try. So a trial costs a few
//! questions a round trip, and no question its answer.

use crate::base::time::{Instant, Span};

/// Answers over TCP in a row that end a trial.
const TRIAL_ANSWERS: u32 = 64;
/// One question in so many goes over TCP in a trial.
const TRIAL_SHARE: u32 = 16;
/// Pause between the first reply of an upstream and the first trial. It waits for the round trip over UDP to be known.
const FIRST_PAUSE: Span = Span::from_secs(5);
/// Pause after a loss; it doubles with each further one in a trial.
const PAUSE: Span = Span::from_secs(60);
/// Longest pause.
const LONGEST_PAUSE: Span = Span::from_secs(3_600);

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
    /// Questions since the last one over TCP, in a trial.
    since_tcp: u32,
    /// Answers over TCP in a row, in a trial.
    answers: u32,
    /// Losses in a row without a promotion between them.
    losses: u32,
}

impl TransportChoice {
    /// The state of the choice.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Returns true if the next question goes over TCP.
    #[inline]
    pub(crate) fn asks_over_tcp(&mut self, now: Instant) -> bool {
        match self.choice {
            Choice::Tcp => true,
            Choice::Udp => {
                if now >= *self.trial_at.get_or_insert(now + FIRST_PAUSE) {
                    self.choice = Choice::Trial;
                    self.answers = 0;
                    self.since_tcp = 0;
                }
                false
            }
            Choice::Trial => {
                self.since_tcp = (self.since_tcp + 1) % TRIAL_SHARE;
                self.since_tcp == 0
            }
        }
    }

    /// Records an answer over TCP. Returns true if the upstream is asked over TCP from now on.
    #[inline]
    pub(crate) fn on_answer(&mut self) -> bool {
        if self.choice != Choice::Trial {
            return false;
        }
        self.answers += 1;
        let is_good = self.answers >= TRIAL_ANSWERS;
        if is_good {
            self.choice = Choice::Tcp;
            self.losses = 0;
        }
        is_good
    }

    /// Records a loss over TCP. Returns true if questions go over UDP again.
    #[cold]
    pub(crate) fn on_loss(&mut self, now: Instant) -> bool {
        // The losses of one connection are one loss.
        if self.choice == Choice::Udp {
            return false;
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

    /// Asks until a trial has begun; returns the time.
    fn begin_trial(choice: &mut TransportChoice, from: Instant) -> Instant {
        let mut now = from;
        for _ in 0..4_000 {
            choice.asks_over_tcp(now);
            if choice.choice() == Choice::Trial {
                return now;
            }
            now += Span::from_secs(1);
        }
        panic!("no trial began");
    }

    #[test]
    fn a_trial_sends_one_question_in_sixteen_and_64_answers_promote() {
        let mut choice = TransportChoice::default();
        let now = begin_trial(&mut choice, Instant(0));
        assert_eq!(now, Instant(0) + FIRST_PAUSE);
        assert_eq!((0..160).filter(|_| choice.asks_over_tcp(now)).count(), 10);
        assert_eq!((0..TRIAL_ANSWERS).filter(|_| choice.on_answer()).count(), 1);
        assert_eq!(choice.choice(), Choice::Tcp);
        assert!((0..100).all(|_| choice.asks_over_tcp(now)));
    }

    #[test]
    fn a_loss_demotes_once_and_the_pause_doubles_up_to_an_hour() {
        let mut choice = TransportChoice::default();
        let mut now = begin_trial(&mut choice, Instant(0));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert!(choice.on_loss(now) && !choice.on_loss(now));
            assert!(!choice.asks_over_tcp(now));
            let next = begin_trial(&mut choice, now);
            assert_eq!(next - now, Span::from_secs(60 * minutes));
            now = next;
        }
        assert_eq!((0..TRIAL_ANSWERS).filter(|_| choice.on_answer()).count(), 1);
        assert!(choice.on_loss(now));
        assert_eq!(begin_trial(&mut choice, now) - now, PAUSE);
    }
}
