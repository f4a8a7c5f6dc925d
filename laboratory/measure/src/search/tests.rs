//! The search against known devices, and against arbitrary verdicts.

use super::*;
use crate::model_devices::{Caching, Collapsing, Device, Done, Ideal, LosesAt, Lossy, Noisy, Stalling, run};
use crate::run::Summary;
use proptest::prelude::*;
use splitmix::SplitMix64;

const LIMITS: Limits = Limits {
    min_qps: 10.0,
    max_qps: 1e6,
    method: Method::Geometric { start_qps: 1_000.0, precision: 0.01 },
    steps_max: 100,
};

/// The range and width of the papers: l = 0, h = 16384, e = 1.
const PAPERS: Limits =
    Limits { min_qps: 0.0, max_qps: 16_384.0, method: Method::Bisection { width_qps: 1.0 }, steps_max: 100 };

/// Runs a search to the end; returns its result and the trials.
fn search(mut search: Search, device: &mut impl Device) -> (Found, Vec<Done>) {
    let done = run(&mut search, device, 1.0);
    match search.next() {
        Step::Done(found) => (found, done),
        Step::Try { .. } => unreachable!("the search has ended"),
    }
}

/// The loop of the papers' shell script (Lencse and Bakai, 2017, Fig. 3): the rates that it tries, and its last l.
fn script(mut low: u32, mut high: u32, width: u32, mut passes: impl FnMut(u32) -> bool) -> (Vec<u32>, u32) {
    let mut tried = Vec::new();
    while high - low > width {
        let middle = (low + high) / 2;
        tried.push(middle);
        if passes(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (tried, low)
}

#[test]
fn a_rate_doubles_until_it_fails_and_the_interval_is_halved_after_that() {
    let (found, done) = search(Search::strict(LIMITS), &mut Ideal { capacity_qps: 5_000.0 });
    let rates: Vec<f64> = done.iter().map(|(rate, _)| *rate).collect();
    assert_eq!(rates[..4], [1_000.0, 2_000.0, 4_000.0, 8_000.0]);
    // The square root of 4,000 x 8,000 is 5,656.85; a tenth of 1 % of it is 5.66, so it is rounded to whole queries.
    assert_eq!(rates[4], 5_657.0);
    assert!((4_950.0..=5_000.0).contains(&found.rate_qps), "{found:?}");
    assert_eq!(found.trials as usize, rates.len());
}

#[test]
fn when_the_start_fails_the_rate_is_halved_until_it_passes() {
    let (found, done) = search(Search::strict(LIMITS), &mut Ideal { capacity_qps: 200.0 });
    let rates: Vec<f64> = done.iter().map(|(rate, _)| *rate).collect();
    assert_eq!(rates[..4], [1_000.0, 500.0, 250.0, 125.0]);
    assert!((198.0..=200.0).contains(&found.rate_qps), "{found:?}");
}

#[test]
fn a_device_that_answers_nothing_gets_0_and_one_that_answers_everything_is_censored() {
    let (nothing, done) = search(Search::strict(LIMITS), &mut Ideal { capacity_qps: 0.0 });
    assert_eq!((nothing.rate_qps, nothing.censored), (0.0, false));
    assert_eq!(done.last(), Some(&(10.0, Verdict::Fail)));
    let (all, done) = search(Search::strict(LIMITS), &mut Ideal { capacity_qps: 1e9 });
    assert_eq!((all.rate_qps, all.censored), (1e6, true));
    assert_eq!(done.last(), Some(&(1e6, Verdict::Pass)));
}

#[test]
fn rates_are_whole_or_have_few_digits() {
    for (rate, precision, shown) in [
        (412_345.6, 0.01, "412300"),
        (412_345.6, 0.001, "412350"),
        (5_656.85, 0.01, "5657"),
        (141.421_356, 0.01, "141.4"),
        (14.142_135, 0.01, "14.14"),
        (1_000.0, 0.05, "1000"),
    ] {
        assert_eq!(rounded(rate, precision).to_string(), shown);
    }
}

#[test]
fn a_verdict_on_another_rate_is_refused() {
    let mut search = Search::strict(LIMITS);
    let before = search.clone();
    assert!(!search.record(999.0, Verdict::Pass));
    assert_eq!(search, before);
}

#[test]
fn one_early_loss_caps_a_plain_bisection_at_a_multiple_of_a_power_of_two_less_one() {
    // One loss in the first trial (at 8,192), in the second (at 12,288), in the third (at 10,240): the published
    // minima have the form k x 2^m - 1, like these.
    for (capacity_qps, lost, result) in [(12_000.0, 0, 8_191), (16_000.0, 1, 12_287), (12_000.0, 2, 10_239)] {
        let mut device = LosesAt { capacity_qps, trials: vec![lost], trial: 0 };
        assert_eq!(search(Search::strict(PAPERS), &mut device).0.rate_qps, f64::from(result));
    }
}

#[test]
fn the_bisection_tries_the_rates_of_the_papers_script() {
    for (low, high, width) in [(0, 16_384, 1), (0, 2_236_962, 1), (1_000, 5_001, 50), (7, 9, 1)] {
        let limits = Limits {
            min_qps: f64::from(low),
            max_qps: f64::from(high),
            method: Method::Bisection { width_qps: f64::from(width) },
            ..PAPERS
        };
        for capacity in [0, 1, 8, 1_000, 1_001, 4_242, 8_191, 8_192, 16_383, 900_000, 3_000_000] {
            let (tried, last) = script(low, high, width, |rate| rate <= capacity);
            let (found, done) =
                search(Search::strict(limits), &mut Ideal { capacity_qps: f64::from(capacity) });
            let rates: Vec<u32> = done.iter().map(|(rate, _)| *rate as u32).collect();
            assert_eq!(rates, tried, "{low} {high} {width} {capacity}");
            // The script prints its lower end even if no rate passed; the result of this search is then 0.
            let passed = tried.iter().any(|rate| *rate <= capacity);
            assert_eq!(found.rate_qps, if passed { f64::from(last) } else { 0.0 });
            assert_eq!(found.censored, tried.iter().all(|rate| *rate <= capacity), "h itself is not tried");
        }
    }
    assert_eq!(PAPERS.trials(8_542.0, 1), 14);
}

#[test]
fn a_failure_in_a_bisection_can_be_confirmed_too() {
    let mut device = LosesAt { capacity_qps: 12_000.0, trials: vec![0], trial: 0 };
    let mut confirmed = Search::confirmed(PAPERS, 2);
    run(&mut confirmed, &mut device, 1.0);
    assert_eq!(confirmed.strict_result().unwrap().rate_qps, 8_191.0);
    let Step::Done(found) = confirmed.next() else { panic!("the search has ended") };
    assert_eq!(found.rate_qps, 12_000.0);
}

#[test]
fn one_early_loss_caps_the_strict_result_and_the_confirmed_search_finds_the_truth_in_the_same_trials() {
    for lost in 0..6 {
        // 1,000, 2,000, 4,000, 8,000 and 16,000 pass, 32,000 does not.
        let device = || LosesAt { capacity_qps: 20_000.0, trials: vec![lost], trial: 0 };
        let (strict, _) = search(Search::strict(LIMITS), &mut device());
        let mut confirmed = Search::confirmed(LIMITS, 2);
        let done = run(&mut confirmed, &mut device(), 1.0);
        assert_eq!(confirmed.strict_result(), Some(strict));
        let Step::Done(found) = confirmed.next() else { panic!("the search has ended") };
        assert!((19_800.0..=20_000.0).contains(&found.rate_qps), "{lost}: {found:?}");
        if lost < 5 {
            let spoiled = 1_000.0 * f64::from(1 << lost);
            assert!(
                strict.rate_qps < spoiled && strict.rate_qps >= 0.99 * spoiled - 1.0,
                "{lost}: {strict:?}"
            );
            assert!(done.iter().filter(|(rate, _)| *rate == spoiled).count() == 2);
        }
    }
}

#[test]
fn a_steady_device_costs_the_confirmed_search_one_trial_more() {
    for capacity_qps in [50.0, 700.0, 4_242.0, 99_999.0] {
        let (strict, trials) = search(Search::strict(LIMITS), &mut Ideal { capacity_qps });
        let (confirmed, more) = search(Search::confirmed(LIMITS, 2), &mut Ideal { capacity_qps });
        assert_eq!(strict.rate_qps, confirmed.rate_qps);
        assert_eq!(more[..trials.len()], trials);
        assert_eq!(more.len(), trials.len() + 1);
        assert_eq!(LIMITS.trials(capacity_qps, 1) as usize, trials.len());
        assert_eq!(LIMITS.trials(capacity_qps, 2) as usize, more.len());
    }
}

#[test]
fn trials_that_confirm_are_named_so() {
    let mut search = Search::confirmed(LIMITS, 3);
    let mut confirmations = 0;
    while let Step::Try { rate_qps, purpose } = search.next() {
        confirmations += u32::from(purpose == Purpose::Confirm);
        let passes = rate_qps <= 3_000.0;
        assert!(search.record(rate_qps, if passes { Verdict::Pass } else { Verdict::Fail }));
    }
    assert_eq!(confirmations, 2);
}

#[test]
fn a_device_that_loses_a_packet_in_a_million_is_measured_better_when_failures_are_confirmed() {
    // 10 s at 20,000 queries per second are 200,000 packets: a trial near the capacity loses one in 18 of 100 cases.
    let mut strict_results = Vec::new();
    let (mut strict_error, mut confirmed_error) = (0.0, 0.0);
    let runs = 100;
    for seed in 0..runs {
        let mut device =
            Lossy { capacity_qps: 20_000.0, loss: 1e-6, seconds: 10.0, rng: SplitMix64::new(seed) };
        let (mut strict, mut confirmed) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let mut search = Search::confirmed(LIMITS, 2);
            run(&mut search, &mut device, 10.0);
            let Step::Done(found) = search.next() else { panic!("the search has ended") };
            strict.push(search.strict_result().unwrap().rate_qps);
            confirmed.push(found.rate_qps);
        }
        strict_error += 20_000.0 - Summary::of(&strict).median;
        confirmed_error += 20_000.0 - Summary::of(&confirmed).median;
        strict_results.extend(strict);
    }
    // Both errors are sums of shortfalls: no result is above the capacity.
    let precision = 0.01 * 20_000.0 * runs as f64;
    assert!(confirmed_error <= 0.75 * precision, "{confirmed_error}");
    assert!(strict_error >= 2.0 * confirmed_error, "{strict_error} {confirmed_error}");
    // And strict results cluster just below the rates of the first steps, as 8,191 does in the papers' tables. Just
    // below 16,000: no loss in the trials up to 8,000 (15,000 x 10 s), then a loss at 16,000, then no loss in the
    // bisections 8,000 x 2^(1 - 1/2^k) up to 15,828.
    let capped = strict_results.iter().filter(|rate| (15_800.0..16_000.0).contains(*rate)).count();
    let halvings: f64 = (1..=6).map(|k| 8_000.0 * 2f64.powf(1.0 - 0.5f64.powi(k))).sum();
    let chance = (-0.15f64).exp() * (1.0 - (-0.16f64).exp()) * (-1e-5 * halvings).exp();
    let ratio = capped as f64 / (strict_results.len() as f64 * chance);
    // About 107 are expected; their standard deviation is 10.
    assert!((0.6..1.4).contains(&ratio), "{capped} {ratio}");
}

#[test]
fn a_noisy_device_gets_results_around_its_capacity_and_confirmed_ones_are_not_below_the_strict_ones() {
    let mut device = Noisy { capacity_qps: 20_000.0, width: 0.02, rng: SplitMix64::new(5) };
    let (mut strict, mut confirmed) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let mut search = Search::confirmed(LIMITS, 2);
        run(&mut search, &mut device, 1.0);
        let Step::Done(found) = search.next() else { panic!("the search has ended") };
        let by_the_letter = search.strict_result().unwrap();
        assert!(found.rate_qps >= by_the_letter.rate_qps);
        strict.push(by_the_letter.rate_qps);
        confirmed.push(found.rate_qps);
    }
    // Ten widths away nothing passes or fails by chance (e^-10).
    for rates in [&strict, &confirmed] {
        let summary = Summary::of(rates);
        assert!((16_000.0..24_000.0).contains(&summary.median), "{summary:?}");
        assert!(summary.max < 24_000.0);
    }
    assert!(Summary::of(&confirmed).deviation > 0.0);
}

#[test]
fn a_device_that_collapses_after_an_overload_is_found_out_when_failures_are_confirmed() {
    let device = || Collapsing { capacity_qps: 20_000.0, recovery: 3, recovering: 0 };
    let (strict, _) = search(Search::strict(LIMITS), &mut device());
    let (confirmed, _) = search(Search::confirmed(LIMITS, 2), &mut device());
    // 32,000 fails and so do the three rates after it, the lowest of which is 16,000 x 2^(1/8).
    assert!(strict.rate_qps < 17_500.0, "{strict:?}");
    assert!(confirmed.rate_qps >= strict.rate_qps);
    let ideal = search(Search::strict(LIMITS), &mut Ideal { capacity_qps: 20_000.0 }).0;
    assert!(
        (ideal.rate_qps - confirmed.rate_qps).abs() < ideal.rate_qps - strict.rate_qps,
        "{strict:?} {confirmed:?}"
    );
}

#[test]
fn a_caching_device_is_measured_truly_when_the_names_move_on_and_not_when_they_are_asked_again() {
    let caching = || Caching { capacity_qps: 5_000.0, known: 0, seconds: 1.0 };
    let mut moving = Search::strict(LIMITS);
    run(&mut moving, &mut caching(), 1.0);
    let Step::Done(found) = moving.next() else { panic!("the search has ended") };
    assert!((4_950.0..=5_000.0).contains(&found.rate_qps), "{found:?}");
    let mut again = Search::strict(LIMITS);
    run(&mut again, &mut caching(), 0.0);
    let Step::Done(found) = again.next() else { panic!("the search has ended") };
    assert!(found.rate_qps > 5_000.0, "{found:?}");
}

#[test]
fn a_tester_that_is_held_up_now_and_then_changes_nothing() {
    for every in [2, 3, 5] {
        let device = Ideal { capacity_qps: 7_777.0 };
        let mut stalling =
            Stalling { device: device.clone(), stalls: |trial, _| trial % every == 0, trial: 0 };
        let (found, _) = search(Search::confirmed(LIMITS, 2), &mut stalling);
        let (ideal, _) = search(Search::confirmed(LIMITS, 2), &mut device.clone());
        assert_eq!(found.rate_qps, ideal.rate_qps);
        assert!(!found.tester_limited);
        assert!(found.trials > ideal.trials);
    }
}

#[test]
fn a_tester_that_is_too_slow_marks_the_result() {
    let device = Ideal { capacity_qps: 50_000.0 };
    let mut slow = Stalling { device, stalls: |_, rate| rate > 10_000.0, trial: 0 };
    let (found, done) = search(Search::confirmed(LIMITS, 2), &mut slow);
    assert!((9_900.0..=10_000.0).contains(&found.rate_qps), "{found:?}");
    assert!(found.tester_limited && !found.censored);
    for (rate, _) in &done {
        let tries = done.iter().filter(|(other, _)| other == rate).count() as u32;
        assert_eq!(tries, if *rate > 10_000.0 { TESTER_TRIES } else { 1 });
    }
}

/// Limits for the repetitions, from a scout on this device.
fn scouted(limits: Limits, device: &mut impl Device) -> Limits {
    let mut scout = Search::confirmed(limits.scout().expect("a geometric search has a start"), 2);
    run(&mut scout, device, 1.0);
    let Step::Done(found) = scout.next() else { panic!("the search has ended") };
    limits.from_scout(&found)
}

#[test]
fn searches_begin_at_the_last_doubling_that_a_scout_saw_pass() {
    for (capacity_qps, start_qps) in [
        (20_000.0, 16_000.0),
        (16_000.0, 16_000.0),
        (15_999.0, 8_000.0),
        (1_500.0, 1_000.0),
        (300.0, 250.0),
        (1e9, 512_000.0),
    ] {
        let mut device = Ideal { capacity_qps };
        let limits = scouted(LIMITS, &mut device);
        assert_eq!(limits.method, Method::Geometric { start_qps, precision: 0.01 }, "{capacity_qps}");
        let far = search(Search::strict(LIMITS), &mut device);
        let near = search(Search::strict(limits), &mut device);
        assert_eq!(near.0.rate_qps, far.0.rate_qps, "the rates that decide are the same");
        assert!(near.1.len() <= far.1.len());
    }
    // 6 doublings and the failed one twice; then 2 instead of 6 trials before the bisection.
    let scout = LIMITS.scout().unwrap();
    assert_eq!(scout.trials(50_000.0, 2), 8);
    assert_eq!(PAPERS.scout(), None);
    // A device that answers nothing is not searched from above again.
    let silent = scouted(LIMITS, &mut Ideal { capacity_qps: 0.0 });
    assert_eq!(silent.trials(0.0, 1), 1);
}

#[test]
fn results_do_not_depend_on_where_on_the_grid_of_doublings_a_search_begins() {
    // A capacity beside a doubling, where two scouts may differ: all rates that decide are near it.
    let sample = |start_qps: f64, seed: u64| -> Vec<f64> {
        let mut device = Noisy { capacity_qps: 16_100.0, width: 0.02, rng: SplitMix64::new(seed) };
        let limits = Limits { method: Method::Geometric { start_qps, precision: 0.01 }, ..LIMITS };
        let one = |_| search(Search::strict(limits), &mut device).0.rate_qps;
        crate::statistics::sorted(&(0..4_000).map(one).collect::<Vec<_>>())
    };
    let (one, other) = (sample(8_000.0, 1), sample(16_000.0, 2));
    // The largest distance of the two distributions (Kolmogorov and Smirnov): 1.95 sqrt(2 / 4000) at p = 0.001.
    let below = |values: &[f64], rate: f64| values.partition_point(|it| *it <= rate) as f64 / 4_000.0;
    let far = one.iter().map(|rate| (below(&one, *rate) - below(&other, *rate)).abs()).fold(0.0, f64::max);
    assert!(far < 1.95 * (2.0f64 / 4_000.0).sqrt(), "{far}");
}

#[test]
fn a_search_that_may_not_go_on_says_so() {
    let short = Limits { steps_max: 4, ..LIMITS };
    let (found, done) = search(Search::confirmed(short, 2), &mut Ideal { capacity_qps: 9e5 });
    assert_eq!(done.len(), 4);
    assert!(found.cut_short);
    assert_eq!(found.rate_qps, 8_000.0);
    // Cut short during the confirmation of a failure: the strict result was complete.
    let trials = LIMITS.trials(5_000.0, 1);
    let mut search = Search::confirmed(Limits { steps_max: trials, ..LIMITS }, 2);
    run(&mut search, &mut Ideal { capacity_qps: 5_000.0 }, 1.0);
    let Step::Done(found) = search.next() else { panic!("the search has ended") };
    assert!(found.cut_short && !search.strict_result().unwrap().cut_short);
}

#[test]
fn a_search_survives_json() {
    let text = serde_json::to_string(&LIMITS).unwrap();
    assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), LIMITS);
}

fn limits() -> impl Strategy<Value = Limits> {
    let decimal = |from: f64, to: f64| (from.ln()..to.ln()).prop_map(f64::exp);
    (decimal(1.0, 100.0), decimal(1_000.0, 1e7), 0.0..=1.0f64, decimal(0.0005, 0.2)).prop_map(
        |(min_qps, max_qps, share, precision)| {
            let start_qps = min_qps * (max_qps / min_qps).powf(share);
            Limits { min_qps, max_qps, method: Method::Geometric { start_qps, precision }, steps_max: 500 }
        },
    )
}

/// Limits of either method.
fn any_limits() -> impl Strategy<Value = Limits> {
    let bisection = (limits(), 1.0..800.0f64)
        .prop_map(|(limits, width_qps)| Limits { method: Method::Bisection { width_qps }, ..limits });
    prop_oneof![limits(), bisection]
}

/// The precision of a geometric search.
fn precision(limits: Limits) -> f64 {
    let Method::Geometric { precision, .. } = limits.method else { panic!("a geometric search") };
    precision
}

fn verdicts(count: usize) -> impl Strategy<Value = Vec<Verdict>> {
    let verdict = prop::sample::select(vec![Verdict::Pass, Verdict::Fail, Verdict::TesterLimited]);
    prop::collection::vec(verdict, count)
}

/// Records verdicts until the search ends; the list repeats when it is used up.
fn feed(search: &mut Search, verdicts: &[Verdict]) -> Vec<Done> {
    let mut done = Vec::new();
    while let Step::Try { rate_qps, .. } = search.next() {
        let verdict = verdicts[done.len() % verdicts.len()];
        assert!(search.record(rate_qps, verdict));
        done.push((rate_qps, verdict));
    }
    done
}

proptest! {
    #[test]
    fn an_ideal_device_is_measured_within_the_precision(limits in limits(), share in -0.2..1.2f64) {
        let capacity_qps = limits.min_qps * (limits.max_qps / limits.min_qps).powf(share);
        let (found, done) = search(Search::strict(limits), &mut Ideal { capacity_qps });
        prop_assert!(!found.cut_short && !found.tester_limited);
        if capacity_qps >= limits.max_qps {
            prop_assert!(found.censored && found.rate_qps == limits.max_qps);
        } else if capacity_qps < limits.min_qps {
            prop_assert!(!found.censored && found.rate_qps == 0.0);
        } else {
            prop_assert!(!found.censored && found.rate_qps <= capacity_qps);
            // The failed rate is above the capacity, and the passed rate is within the precision of the failed one.
            prop_assert!(found.rate_qps >= (1.0 - precision(limits)) * capacity_qps * (1.0 - 1e-12));
        }
        // Doublings, then bisections of an interval of a factor of two, which rounding may widen by a tenth of the
        // precision.
        let growth = (limits.max_qps / limits.min_qps).log2();
        let halvings = (std::f64::consts::LN_2 / -(1.0 - precision(limits)).ln()).log2().max(0.0);
        prop_assert!(f64::from(found.trials) <= growth.ceil() + halvings.ceil() + 4.0, "{:?} {:?}", found, done);
    }

    #[test]
    fn any_verdicts_end_a_search_in_the_trials_that_it_may_take(
        limits in any_limits(), steps_max in 1u32..200, failures in 0u32..4, verdicts in verdicts(200),
    ) {
        let limits = Limits { steps_max, ..limits };
        let mut search = Search::confirmed(limits, failures);
        let done = feed(&mut search, &verdicts);
        prop_assert!(done.len() as u32 <= steps_max);
        let Step::Done(found) = search.next() else { panic!("the search has ended") };
        prop_assert_eq!(found.trials as usize, done.len());
        let passed = |rate: f64| done.contains(&(rate, Verdict::Pass));
        prop_assert!(found.rate_qps == 0.0 || passed(found.rate_qps));
        prop_assert!(done.iter().all(|(rate, verdict)| *verdict != Verdict::Pass || *rate <= found.rate_qps));
        prop_assert!(done.iter().all(|(rate, _)| (limits.min_qps..=limits.max_qps).contains(rate)));
        prop_assert!(search.strict_result().is_some_and(|strict| strict.rate_qps <= found.rate_qps));
    }

    #[test]
    fn the_confirmed_search_begins_with_the_strict_one(limits in any_limits(), verdicts in verdicts(500)) {
        let mut strict = Search::strict(limits);
        let mut confirmed = Search::confirmed(limits, 2);
        let first = feed(&mut strict, &verdicts);
        let all = feed(&mut confirmed, &verdicts);
        prop_assert_eq!(&all[..first.len()], &first[..]);
        prop_assert_eq!(Step::Done(confirmed.strict_result().unwrap()), strict.next());
    }

    #[test]
    fn recorded_verdicts_take_a_search_to_where_it_was(
        limits in any_limits(), verdicts in verdicts(100), share in 0.0..1.0f64,
    ) {
        let mut search = Search::confirmed(limits, 2);
        let done = feed(&mut search, &verdicts);
        let interrupted = (done.len() as f64 * share) as usize;
        let mut resumed = Search::confirmed(limits, 2);
        for (rate, verdict) in &done[..interrupted] {
            // The record is stored as text.
            let text = serde_json::to_string(rate).unwrap();
            prop_assert!(resumed.record(serde_json::from_str(&text).unwrap(), *verdict));
        }
        for (rate, verdict) in &done[interrupted..] {
            let Step::Try { rate_qps, .. } = resumed.next() else { panic!("there was a trial more") };
            prop_assert_eq!(rate_qps, *rate);
            prop_assert!(resumed.record(rate_qps, *verdict));
        }
        prop_assert_eq!(resumed, search);
    }

    #[test]
    fn any_limits_make_a_search_that_ends(
        numbers in prop::array::uniform5(prop::num::f64::ANY), steps_max in 0u32..300, verdicts in verdicts(50),
    ) {
        let [start_qps, max_qps, min_qps, precision, width_qps] = numbers;
        for method in [Method::Geometric { start_qps, precision }, Method::Bisection { width_qps }] {
            let limits = Limits { min_qps, max_qps, method, steps_max };
            let mut search = Search::confirmed(limits, 2);
            let done = feed(&mut search, &verdicts);
            prop_assert!(done.len() as u32 <= steps_max.max(1));
            prop_assert!(done.iter().all(|(rate, _)| rate.is_finite() && *rate > 0.0));
            let limits = limits.from_scout(&Found { rate_qps: width_qps, ..Found::default() });
            feed(&mut Search::confirmed(limits, 2), &verdicts);
        }
    }
}
