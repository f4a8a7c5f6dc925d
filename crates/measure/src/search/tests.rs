//! The search against verdicts.

use super::*;

const LIMITS: Limits = Limits {
    start_qps: 1_000.0,
    max_qps: 1e6,
    min_qps: 10.0,
    precision: 0.01,
    first_step: 1.0,
    steps_max: 100,
};

#[test]
fn a_rate_doubles_until_it_fails_and_the_interval_is_halved_after_that() {
    let mut search = Search::strict(LIMITS);
    let mut tried = Vec::new();
    let found = loop {
        match search.next() {
            Step::Try { rate_qps, purpose } => {
                assert_eq!(purpose, Purpose::Search);
                tried.push(rate_qps);
                assert!(
                    search.record(rate_qps, if rate_qps <= 5_000.0 { Verdict::Pass } else { Verdict::Fail })
                );
            }
            Step::Done(found) => break found,
        }
    };
    assert_eq!(tried[..4], [1_000.0, 2_000.0, 4_000.0, 8_000.0]);
    // The square root of 4,000 x 8,000 is 5,656.85; a tenth of 1 % of it is 5.66, so it is rounded to whole queries.
    assert_eq!(tried[4], 5_657.0);
    assert!((4_950.0..=5_000.0).contains(&found.rate_qps), "{found:?}");
    assert_eq!(found.trials as usize, tried.len());
}

#[test]
fn a_verdict_on_another_rate_is_refused() {
    let mut search = Search::strict(LIMITS);
    let before = search.clone();
    assert!(!search.record(999.0, Verdict::Pass));
    assert_eq!(search, before);
}
