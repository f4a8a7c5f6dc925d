//! Search for the highest rates at which at most given shares of the queries get no valid reply in time: goals for the loss
//! ratio beside zero loss, as in MLRsearch (draft-ietf-bmwg-mlrsearch, "Multiple Loss Ratio Search").
//!
//! All goals share their trials: a trial with a loss of 0.3 % is below a goal of 0.5 % and above one of 0.1 %, and the trials of
//! the search without loss count as well. So a goal costs two or three trials more. Unlike MLRsearch, which weighs the duration
//! of good and bad trials, one trial above the goal excludes its rate, because all trials have the length that the plan gives.

use super::{Limits, TESTER_TRIES};
use crate::outcome::Verdict;
use serde::{Deserialize, Serialize};

/// Result of one goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalFound {
    /// The highest rate within the goal, in queries per second; 0 if there is none.
    pub rate_qps: f64,
    /// True if no higher rate was excluded by the device: the true value is at least this.
    pub censored: bool,
}

/// A search in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalSearch {
    limits: Limits,
    goals: Vec<f64>,
    tried: Vec<Tried>,
    trials: u32,
}

/// A trial: its rate and the share of queries without a valid reply; `None`: the tester was the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tried {
    rate_qps: f64,
    loss: Option<f64>,
}

/// State of a rate for one goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Within,
    /// A trial lost more.
    Above,
    /// The tester was the bottleneck too often.
    TesterLimited,
    /// The tester was the bottleneck, and the trial is to be repeated.
    Open,
}

impl GoalSearch {
    /// A search for these goals, shares from 0 to 1, with the limits of the search without loss.
    pub fn new(limits: Limits, goals: &[f64]) -> GoalSearch {
        GoalSearch { limits: limits.sanitized(), goals: goals.to_vec(), tried: Vec::new(), trials: 0 }
    }

    /// Takes over a trial of another search on the same device.
    pub fn take_over(&mut self, rate_qps: f64, verdict: Verdict, loss: f64) {
        let loss = (verdict != Verdict::TesterLimited).then_some(loss);
        self.tried.push(Tried { rate_qps, loss });
    }

    /// The next rate; `None` if all goals are decided.
    pub fn next(&self) -> Option<f64> {
        if self.trials >= self.limits.steps_max {
            return None;
        }
        self.goals.iter().find_map(|goal| {
            let (low, high) = self.bounds(*goal);
            let inside = |rate: f64| low.is_none_or(|low| rate > low) && high.is_none_or(|high| rate < high);
            let open = self.tried.iter().map(|it| it.rate_qps).filter(|rate| inside(*rate));
            let open = open.filter(|rate| self.state(*rate, *goal) == State::Open).reduce(f64::min);
            open.or_else(|| self.limits.between(low, high))
        })
    }

    /// Records a trial at the rate that [`GoalSearch::next`] returned.
    pub fn record(&mut self, rate_qps: f64, verdict: Verdict, loss: f64) {
        self.trials += 1;
        self.take_over(rate_qps, verdict, loss);
    }

    /// The results, in the order of the goals.
    pub fn found(&self) -> Vec<GoalFound> {
        let found = |goal: &f64| {
            let (low, high) = self.bounds(*goal);
            let by_device = high.is_some_and(|high| self.state(high, *goal) == State::Above);
            let is_decided = self.limits.between(low, high).is_none();
            GoalFound { rate_qps: low.unwrap_or(0.0), censored: low.is_some() && !(by_device && is_decided) }
        };
        self.goals.iter().map(found).collect()
    }

    /// The highest rate within a goal that lies below all excluded ones, and the lowest excluded one.
    fn bounds(&self, goal: f64) -> (Option<f64>, Option<f64>) {
        let rates = |wanted: fn(State) -> bool| {
            let rates = self.tried.iter().map(|it| it.rate_qps);
            rates.filter(move |rate| wanted(self.state(*rate, goal)))
        };
        let high = rates(|state| matches!(state, State::Above | State::TesterLimited)).reduce(f64::min);
        let below = |rate: &f64| high.is_none_or(|high| *rate < high);
        (rates(|state| state == State::Within).filter(below).reduce(f64::max), high)
    }

    fn state(&self, rate_qps: f64, goal: f64) -> State {
        let same = |it: &&Tried| (it.rate_qps - rate_qps).abs() <= 1e-9 * rate_qps;
        let mine = || self.tried.iter().filter(same);
        let losses = || mine().filter_map(|it| it.loss);
        match losses().reduce(f64::max) {
            Some(worst) if worst > goal => State::Above,
            Some(_) => State::Within,
            None if mine().count() >= TESTER_TRIES as usize => State::TesterLimited,
            None => State::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Method;
    use super::*;

    fn limits(max_qps: f64) -> Limits {
        let method = Method::Geometric { start_qps: 1_000.0, precision: 0.01 };
        Limits { min_qps: 1.0, max_qps, method, steps_max: 100 }
    }

    /// Share of lost queries of a server that answers as many as its capacity.
    fn loss(rate_qps: f64, capacity_qps: f64) -> f64 {
        (1.0 - capacity_qps / rate_qps).max(0.0)
    }

    fn search_to_end(search: &mut GoalSearch, capacity_qps: f64) -> u32 {
        for trials in 0.. {
            let Some(rate) = search.next() else { return trials };
            let lost = loss(rate, capacity_qps);
            search.record(rate, if lost > 0.0 { Verdict::Fail } else { Verdict::Pass }, lost);
        }
        unreachable!("the loop ends with the search")
    }

    #[test]
    fn each_goal_ends_at_its_own_rate_and_the_goals_share_their_trials() {
        // A server of 10,000/s loses 1 % at 10,000 / 0.99 = 10,101/s, and 10 % at 11,111/s.
        let goals = [0.01, 0.1];
        let mut both = GoalSearch::new(limits(1e6), &goals);
        both.take_over(8_000.0, Verdict::Pass, 0.0);
        both.take_over(16_000.0, Verdict::Fail, loss(16_000.0, 10_000.0));
        let start = both.clone();
        let trials = search_to_end(&mut both, 10_000.0);
        for (found, limit) in both.found().iter().zip([10_000.0 / 0.99, 10_000.0 / 0.9]) {
            assert!((0.99 * limit..=limit).contains(&found.rate_qps) && !found.censored, "{found:?} {limit}");
        }
        let alone: u32 = goals
            .iter()
            .map(|goal| search_to_end(&mut GoalSearch { goals: vec![*goal], ..start.clone() }, 10_000.0))
            .sum();
        assert!(trials < alone, "{trials} together, {alone} one by one");
    }

    #[test]
    fn one_trial_above_the_goal_excludes_its_rate_whatever_passes_above_it() {
        let mut search = GoalSearch::new(limits(4_000.0), &[0.01]);
        for (rate, lost) in [(1_000.0, 0.0), (2_000.0, 0.02), (2_000.0, 0.0), (4_000.0, 0.0)] {
            search.take_over(rate, if lost > 0.0 { Verdict::Fail } else { Verdict::Pass }, lost);
        }
        assert_eq!(search.bounds(0.01), (Some(1_000.0), Some(2_000.0)));
    }

    #[test]
    fn a_server_that_never_loses_so_much_is_bounded_by_the_range() {
        let mut search = GoalSearch::new(limits(50_000.0), &[0.5]);
        search.take_over(1_000.0, Verdict::Pass, 0.0);
        search_to_end(&mut search, 40_000.0);
        assert_eq!(search.found(), [GoalFound { rate_qps: 50_000.0, censored: true }]);
    }

    #[test]
    fn a_trial_that_the_tester_limited_is_repeated_and_says_nothing_about_the_server() {
        let mut search = GoalSearch::new(limits(1e6), &[0.01]);
        search.take_over(1_000.0, Verdict::Pass, 0.0);
        for _ in 0..TESTER_TRIES {
            assert_eq!(search.next(), Some(2_000.0));
            search.record(2_000.0, Verdict::TesterLimited, 0.7);
        }
        // It counts as excluded then, and the result as a lower bound.
        let next = search.next().unwrap();
        assert!(1_000.0 < next && next < 2_000.0);
        search_to_end(&mut search, 1e9);
        assert!(search.found()[0].censored && search.found()[0].rate_qps >= 0.99 * 2_000.0 * 0.99);
    }
}
