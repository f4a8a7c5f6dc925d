//! Runs of equal servers: how often a comparison calls them different. The servers have a soft limit: a trial passes with
//! a probability that falls from 1 to 0 around their capacity (logistic), as real ones do on busy hosts. Everything is
//! seeded, without time and network.

use super::permutation::p_value;
use super::*;
use crate::model_devices::{Noisy, run};
use crate::search::{Limits, Method, Search, Step};
use splitmix::SplitMix64;

const CAPACITY_QPS: f64 = 8_500.0;

/// Pairs of runs of equal servers.
const PAIRS: u64 = 2_000;

/// Most pairs that may be called different: 5 % of them, and three standard deviations of that number.
const DIFFERENT_MAX: f64 = PAIRS as f64 * SIGNIFICANCE + 29.3;

/// Strict and confirmed results of a run, as the procedure makes them: a scout, then all searches from the rate that it
/// found.
fn results(
    repetitions: usize,
    precision: f64,
    (capacity_qps, width): (f64, f64),
    seed: u64,
) -> [Vec<f64>; 2] {
    let method = Method::Geometric { start_qps: 1_000.0, precision };
    let limits = Limits { min_qps: 1.0, max_qps: 100_000.0, method, steps_max: 120 };
    let mut device = Noisy { capacity_qps, width, rng: SplitMix64::new(seed) };
    let mut found = |limits: Limits| {
        let mut search = Search::confirmed(limits, 2);
        run(&mut search, &mut device, 0.0);
        let Step::Done(confirmed) = search.next() else { panic!("the search has ended") };
        (search.strict_result().unwrap(), confirmed)
    };
    let limits = limits.from_scout(&found(limits.scout().unwrap()).1);
    let (strict, confirmed) =
        (0..repetitions).map(|_| found(limits)).map(|(a, b)| (a.rate_qps, b.rate_qps)).unzip();
    [strict, confirmed]
}

/// A verdict needs a p-value below the level of significance, so no more pairs are called different than have one.
fn may_be_called_different(one: &[f64], other: &[f64]) -> bool {
    p_value(one, other, &mut SplitMix64::new(SEED)) < SIGNIFICANCE
}

fn equal_servers_are_called_equal(width: f64) {
    let mut different = [0; 2];
    for pair in 0..PAIRS {
        let [one, other] =
            [2 * pair, 2 * pair + 1].map(|seed| results(20, 0.01, (CAPACITY_QPS, width), seed));
        for (kind, count) in different.iter_mut().enumerate() {
            *count += u32::from(may_be_called_different(&one[kind], &other[kind]));
        }
    }
    println!("width {width}: {different:?} of {PAIRS}, strict and confirmed");
    assert!(different.iter().all(|count| f64::from(*count) <= DIFFERENT_MAX), "{different:?} of {PAIRS}");
}

#[test]
fn equal_servers_with_a_limit_of_half_a_per_cent_are_called_equal() {
    equal_servers_are_called_equal(0.005);
}

#[test]
fn equal_servers_with_a_limit_of_one_per_cent_are_called_equal() {
    equal_servers_are_called_equal(0.01);
}

#[test]
fn equal_servers_with_a_limit_of_three_per_cent_are_called_equal() {
    equal_servers_are_called_equal(0.03);
}

#[test]
fn equal_servers_with_a_limit_of_six_per_cent_are_called_equal() {
    equal_servers_are_called_equal(0.06);
}

#[test]
fn the_quick_profile_shows_a_factor_of_two_with_the_fewest_repetitions_that_can() {
    let plan = crate::plan::Draft::parse("profile = \"quick\"\n[device]\ntemplate = \"bind\"\n");
    let plan = plan.unwrap().finish().unwrap();
    let (repetitions, precision) = (plan.search.repetitions as usize, plan.search.precision);
    for width in [0.005, 0.01, 0.03, 0.06] {
        for seed in 0..50 {
            let one = |capacity_qps: f64, seed: u64| {
                let [strict, _] = results(repetitions, precision, (capacity_qps, width), seed);
                strict
            };
            let (fast, slow) = (one(CAPACITY_QPS, 2 * seed), one(CAPACITY_QPS / 2.0, 2 * seed + 1));
            let verdict = |one: &[f64], other: &[f64]| {
                Ratio::of(one, other, (precision, precision), SEED).unwrap().verdict()
            };
            assert_eq!(verdict(&fast, &slow), Verdict::Slower, "{width} {seed}");
            assert_eq!(verdict(&slow, &fast), Verdict::Faster, "{width} {seed}");
            // One repetition less on each side shows nothing, however far apart.
            assert!(!may_be_called_different(&fast[1..], &slow[1..]));
        }
    }
}
