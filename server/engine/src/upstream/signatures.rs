//! Signatures in the replies of one upstream server: a forwarder that strips them is of no use for validation, and is asked last.
//!
//! A zone that publishes no signatures looks like a forwarder that strips them. The keys of a zone with a trust anchor tell them apart
//! (RFC 4035 section 4.4): whoever configures the anchor knows that they are signed. So a reply without signatures only raises a doubt, and
//! the reply to the question for those keys decides.

use crate::base::time::{Instant, Span};

/// Pause between two checks of a server whose replies have raised a doubt, or that strips: doubled with each check that finds so, up to
/// [`LONGEST_PAUSE`].
const PAUSE: Span = Span::from_secs(5);
/// The longest pause between checks of a server that strips.
const LONGEST_PAUSE: Span = Span::from_secs(60);

/// State of the signatures of one server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SignatureState {
    /// Replies in a row with the keys of a zone with a trust anchor that had no signatures.
    stripped: u32,
    /// Time before which no doubt leads to a check.
    checked_until: Instant,
}

impl SignatureState {
    /// True if the server strips signatures.
    #[inline]
    pub fn strips(&self) -> bool {
        self.stripped > 0
    }

    /// Records the keys of a zone with a trust anchor without signatures. Returns true if the server did not strip until now.
    pub fn on_stripped(&mut self) -> bool {
        self.stripped = self.stripped.saturating_add(1);
        self.stripped == 1
    }

    /// Records a reply with signatures.
    pub fn on_signed(&mut self) {
        self.stripped = 0;
    }

    /// True if a doubt leads to a check now. The next one does so after a pause.
    pub fn takes_check(&mut self, now: Instant) -> bool {
        let takes = !self.strips() && now >= self.checked_until;
        if takes {
            self.checked_until = now + PAUSE;
        }
        takes
    }

    /// Pause before the next check of a server that strips.
    pub fn pause(&self) -> Span {
        Span((PAUSE.0 << self.stripped.saturating_sub(1).min(8)).min(LONGEST_PAUSE.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_strips_is_checked_after_pauses_that_double_until_signatures_come() {
        let mut state = SignatureState::default();
        let now = Instant(1_000_000_000);
        let mut pauses = vec![];
        for round in 0..6 {
            assert_eq!(state.on_stripped(), round == 0);
            assert!(state.strips() && !state.takes_check(now));
            pauses.push(state.pause());
        }
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60].map(Span::from_secs));
        state.on_signed();
        assert!(!state.strips() && state.on_stripped());
        assert_eq!(state.pause(), PAUSE);
    }

    #[test]
    fn doubts_lead_to_one_check_in_each_pause() {
        let mut state = SignatureState::default();
        let now = Instant(1_000_000_000);
        assert!(state.takes_check(now) && !state.takes_check(now));
        assert!(!state.takes_check(Instant(now.0 + PAUSE.0 - 1)) && state.takes_check(now + PAUSE));
    }
}
