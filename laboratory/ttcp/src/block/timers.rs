//! Deadlines of a block: retransmission, delayed acknowledgment, the end of TIME-WAIT and of a silent connection.

use super::{Block, State, TimeWait};
use crate::limits::{IDLE, RETRANSMISSIONS};
use core::time::Duration;

/// The end of a block at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The block goes on.
    GoesOn,
    /// TIME-WAIT is over.
    Over,
    /// The peer has not acknowledged anything through all retransmissions, or has been silent for too long.
    TimedOut,
}

impl Block {
    /// The next deadline.
    pub fn next_deadline(&self) -> Option<Duration> {
        [self.retransmit_due, self.ack_due, self.end_due].into_iter().flatten().min()
    }

    /// Does what is due at `now`. Segments to send follow from [`Block::next_segment`].
    pub fn on_time(&mut self, now: Duration) -> Expiry {
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        if is_due(self.end_due) {
            let is_silent = self.state != State::TimeWait;
            self.state = State::Closed;
            return if is_silent { Expiry::TimedOut } else { Expiry::Over };
        }
        if is_due(self.ack_due) {
            self.ack_due = None;
            self.ack_now = true;
        }
        if is_due(self.retransmit_due) {
            self.retransmissions += 1;
            if self.retransmissions > RETRANSMISSIONS {
                self.state = State::Closed;
                return Expiry::TimedOut;
            }
            if self.una == self.nxt && self.una != self.iss {
                // Nothing is in flight: the peer's window is closed.
                self.probe_window = true;
            } else {
                self.go_back();
            }
            self.retransmit_due = Some(now + self.rto.timeout(self.retransmissions));
        }
        Expiry::GoesOn
    }

    /// Sends again from the first unacknowledged number on, with a congestion window of one segment (RFC 5681 section 3.1).
    pub(super) fn go_back(&mut self) {
        let in_flight = self.max.minus(self.una).max(0) as usize;
        self.slow_start_threshold = (in_flight / 2).max(2 * self.mss);
        self.congestion_window = self.mss;
        self.nxt = self.una;
        self.measured = None;
    }

    /// Enters TIME-WAIT, or begins its time anew.
    pub(super) fn enter_time_wait(&mut self, now: Duration, msl: Duration) {
        self.state = State::TimeWait;
        self.retransmit_due = None;
        let wait = match self.time_wait(now, msl) {
            TimeWait::EightRto => 8 * self.rto.current(),
            TimeWait::TwoMsl => 2 * msl,
        };
        self.end_due = Some(now + wait);
    }

    /// Begins the time anew after which a silent connection is given up.
    pub(super) fn heard(&mut self, now: Duration) {
        if self.state != State::TimeWait {
            self.end_due = Some(now + IDLE);
        }
    }

    /// The rule for the length of TIME-WAIT (RFC 1644 section 3.4): a connection count tells old duplicates of a short
    /// connection from a new one.
    pub fn time_wait(&self, now: Duration, msl: Duration) -> TimeWait {
        if self.speaks_counts() && now.saturating_sub(self.started) < msl {
            TimeWait::EightRto
        } else {
            TimeWait::TwoMsl
        }
    }
}
