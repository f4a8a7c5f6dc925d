//! A prefix that drains: it leaves new answers, at once or over a time.

use engine::dns64::gateways::PrefixState;
use engine::{Instant, Span};

/// Begin of a drain, and the time in which the client networks leave the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// Begin.
    pub since: Instant,
    /// Time until all client networks have left; zero: at once.
    pub over: Span,
}

impl Drain {
    /// State of the prefix at a time.
    pub fn state(&self, now: Instant) -> PrefixState {
        let elapsed = now - self.since;
        if elapsed >= self.over {
            return PrefixState::Draining;
        }
        let share = (u128::from(elapsed.0) << 32) / u128::from(self.over.0);
        // Less than 2^32, as less than all of the time has passed.
        PrefixState::Leaving(u32::try_from(share).unwrap_or(u32::MAX))
    }

    /// True until all client networks have left.
    pub fn is_under_way(&self, now: Instant) -> bool {
        now - self.since < self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_has_left_grows_evenly() {
        let start = Instant(0) + Span::from_secs(5);
        let drain = Drain { since: start, over: Span::from_secs(600) };
        let at = |seconds| drain.state(start + Span::from_secs(seconds));
        assert_eq!(at(0), PrefixState::Leaving(0));
        assert_eq!(at(150), PrefixState::Leaving(1 << 30));
        assert_eq!(at(300), PrefixState::Leaving(1 << 31));
        assert_eq!(at(600), PrefixState::Draining);
        assert_eq!((drain.is_under_way(start), drain.is_under_way(start + drain.over)), (true, false));
        let at_once = Drain { since: start, over: Span::ZERO };
        assert_eq!(at_once.state(start), PrefixState::Draining);
    }
}
