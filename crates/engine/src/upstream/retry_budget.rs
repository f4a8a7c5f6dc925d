//! When a question that is late may be asked once more. A reply is late after the wait of its try (`Server::wait`: the
//! measured round trip and four times its deviation, RFC 6298); the try stays good, and the question goes to another server
//! as well. Whichever reply comes first is the answer. So a repetition is a hedge, and helps when a message was lost or a
//! server has died; when all servers are slow, or this one is busy, it is load that makes matters worse. From one reply that
//! is late nobody can tell. From many one can: repetitions that help are answered before what they repeat.
//!
//! A budget per worker, as tokens:
//!
//! - 64 at most, and at start;
//! - a question that is asked for the first time brings a twentieth of one;
//! - a repetition costs one; one that is answered before what it repeats brings three.
//!
//! So it lasts while at least a third of the repetitions help: at up to 50 % loss, where 3 in 4 questions have to be asked
//! again, it stays as it is. When servers become slow, or names have servers that say nothing, there are 64 repetitions and
//! then one for 20 questions. A try without a token waits on until half of `upstream.timeout` is over: by then nobody would
//! call it a hedge; and so does the last one, so that three tries end after one and a half times that. While more than half of all room for
//! questions is taken, no token is given at all.
//!
//! No token is needed when the last try is known to be lost: its server is dead, or said so.

/// The most tokens there are.
pub const MOST: u32 = 64;
/// Parts of a token; each first question brings one.
const PARTS: u32 = 20;
/// Tokens for a repetition that helped.
const HELPED: u32 = 3;

/// The tokens, in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBudget(u32);

impl Default for RetryBudget {
    fn default() -> RetryBudget {
        RetryBudget(MOST * PARTS)
    }
}

impl RetryBudget {
    /// A question is asked for the first time.
    #[inline]
    pub(crate) fn earn(&mut self) {
        self.0 = (self.0 + 1).min(MOST * PARTS);
    }

    pub(crate) fn helped(&mut self) {
        self.0 = (self.0 + HELPED * PARTS).min(MOST * PARTS);
    }

    pub(crate) fn take(&mut self) -> bool {
        let left = self.0.checked_sub(PARTS);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_help_nobody_are_spent_and_come_back_one_for_twenty_questions() {
        let mut budget = RetryBudget::default();
        for _ in 0..MOST {
            assert!(budget.take());
        }
        assert!(!budget.take());
        for _ in 1..PARTS {
            budget.earn();
            assert!(!budget.take());
        }
        budget.earn();
        assert!(budget.take() && !budget.take());
    }

    #[test]
    fn a_third_of_helpful_repetitions_keeps_the_budget_and_nothing_lets_it_grow_beyond_its_bound() {
        let mut budget = RetryBudget::default();
        for round in 0..10_000 {
            assert!(budget.take(), "round {round}");
            if round % 3 == 0 {
                budget.helped();
            }
        }
        for _ in 0..10_000 {
            budget.helped();
            budget.earn();
        }
        assert_eq!((0..).take_while(|_| budget.take()).count(), MOST as usize);
    }
}
