//! The retry budget: a limit on hedged queries, in tokens.
//!
//! A reply is late after the timeout of its attempt (`Server::wait`: the measured round trip and four times its deviation, RFC
//! 6298). The late try stays valid, and the question goes to another server as well; the first reply is the answer. So the
//! second query is a hedge. It helps if a message was lost or a server has died. If all servers are slow, or this one is busy,
//! it is load that makes matters worse. One late reply does not show the cause, but many do: hedges that help are answered
//! before the queries that they repeat.
//!
//! Each worker has a budget of tokens:
//!
//! - There are 64 at most, and at the start.
//! - A question that is asked for the first time earns a twentieth of a token.
//! - A hedge costs one token. A hedge that is answered before the query that it repeats earns three.
//!
//! So the budget lasts while at least a third of the hedges help: at up to 50 % loss, where 3 in 4 questions have to be asked
//! again, it does not shrink. When servers become slow, or the servers of some names are silent, there are 64 hedges, and then
//! one per 20 questions.
//!
//! Without a token, an attempt waits until half of `upstream.timeout` is over; a query at that time is no hedge any more. The last
//! try then waits longer as well, so that three attempts end after one and a half times `upstream.timeout`. While more than half of
//! all room for questions is taken, no hedge gets a token.
//!
//! Repetitions during the wait for the last attempt (`retry.rs`) come second: they take a token only while more than half of them are
//! left, so that hedges of other questions do not lack it. At 30 % loss each way, 49 of 100 repetitions help, and earn 147 tokens.
//!
//! No token is needed if the last attempt is known to be lost: its server is dead, or has reported the failure.

/// The most tokens, and the number at the start.
pub const MAX_TOKENS: u32 = 64;
/// Parts of a token. The first query of each question earns one part.
const PARTS_PER_TOKEN: u32 = 20;
/// Tokens for a hedge that helped.
const TOKENS_PER_HELPFUL_HEDGE: u32 = 3;

/// The retry budget, in parts of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBudget(u32);

impl Default for RetryBudget {
    fn default() -> RetryBudget {
        RetryBudget(MAX_TOKENS * PARTS_PER_TOKEN)
    }
}

impl RetryBudget {
    /// Earns one part: a question is asked for the first time.
    #[inline]
    pub(crate) fn earn(&mut self) {
        self.0 = (self.0 + 1).min(MAX_TOKENS * PARTS_PER_TOKEN);
    }

    /// Earns tokens: a hedge was answered before the query that it repeats.
    pub(crate) fn helped(&mut self) {
        self.0 = (self.0 + TOKENS_PER_HELPFUL_HEDGE * PARTS_PER_TOKEN).min(MAX_TOKENS * PARTS_PER_TOKEN);
    }

    /// Spends a token. Returns false if there is none.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.0.checked_sub(PARTS_PER_TOKEN);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// Spends a token if more than half of them are left. Returns false if not.
    pub(crate) fn take_spare(&mut self) -> bool {
        self.0 > MAX_TOKENS / 2 * PARTS_PER_TOKEN && self.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_for_useless_hedges_are_spent_and_come_back_one_for_twenty_questions() {
        let mut budget = RetryBudget::default();
        for _ in 0..MAX_TOKENS {
            assert!(budget.take());
        }
        assert!(!budget.take());
        for _ in 1..PARTS_PER_TOKEN {
            budget.earn();
            assert!(!budget.take());
        }
        budget.earn();
        assert!(budget.take() && !budget.take());
    }

    #[test]
    fn half_of_the_tokens_are_not_spare() {
        let mut budget = RetryBudget::default();
        assert_eq!((0..).take_while(|_| budget.take_spare()).count(), MAX_TOKENS as usize / 2);
        assert_eq!((0..).take_while(|_| budget.take()).count(), MAX_TOKENS as usize / 2);
        assert!(!budget.take_spare());
    }

    #[test]
    fn one_helpful_hedge_in_three_keeps_the_budget_and_it_never_grows_above_its_bound() {
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
        assert_eq!((0..).take_while(|_| budget.take()).count(), MAX_TOKENS as usize);
    }
}
