//! Goals of the loss ratio in a whole run.

use super::tests::{QUICK, procedure, world};
use super::*;

/// Queries a second that the device answers.
const CAPACITY_QPS: f64 = 10_000.0;

#[test]
fn each_repetition_ends_with_the_rates_at_which_a_share_is_lost() {
    let mut procedure = procedure(&format!(
        "{QUICK}restart = \"repetition\"\n[search]\nloss-goals = [0.1, 0.01]\ncurve = []\n"
    ));
    let (mut restarts, mut of_goals) = (0, 0);
    while let Some(mut event) = world().step(&procedure) {
        if let (Action::Trial(task), Event::Trial(trial)) = (procedure.next(), &mut event)
            && !task.purpose.is_self_test()
        {
            let outcome = &mut trial.outcome;
            let loss = (1.0 - CAPACITY_QPS / task.rate_qps).max(0.0);
            outcome.valid = (outcome.sent as f64 * (1.0 - loss)).floor() as u64;
            outcome.verdict = if loss > 0.0 { Verdict::Fail } else { Verdict::Pass };
            restarts += usize::from(task.setup.fresh);
            of_goals += usize::from(task.purpose == Purpose::LossGoal);
            if task.purpose == Purpose::LossGoal {
                assert!(
                    task.rate_qps > 0.94 * CAPACITY_QPS && task.rate_qps < 1.6 * CAPACITY_QPS,
                    "{task:?}"
                );
            }
        }
        procedure.record(event).unwrap();
    }
    let result = &procedure.results()[0];
    assert_eq!(result.loss_goals.iter().map(|goal| goal.goal).collect::<Vec<_>>(), [0.01, 0.1], "ascending");
    for (goal, limit) in result.loss_goals.iter().zip([CAPACITY_QPS / 0.99, CAPACITY_QPS / 0.9]) {
        assert_eq!((goal.rates.len(), goal.summary.count, goal.censored), (4, 4, false));
        assert!(goal.rates.iter().all(|rate| (0.94 * limit..=limit).contains(rate)), "{goal:?} {limit}");
    }
    assert!(result.summary.median <= CAPACITY_QPS && result.loss_goals[1].summary.median > CAPACITY_QPS);
    // The restart of a repetition comes before its first trial, and not before its goals: before 3 of the 4 at least.
    assert!((3..=4).contains(&restarts), "{restarts}");
    assert!((4..=4 * 2 * 4).contains(&of_goals), "{of_goals} trials for two goals in four repetitions");
}

#[test]
fn without_goals_there_are_no_such_trials() {
    let mut procedure = procedure(QUICK);
    world().run(&mut procedure);
    assert!(procedure.trials().iter().all(|trial| trial.purpose != Purpose::LossGoal));
    assert!(procedure.results()[0].loss_goals.is_empty());
}
