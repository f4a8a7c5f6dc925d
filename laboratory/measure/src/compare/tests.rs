//! Comparisons of runs with a known true result.

use super::*;
use crate::outcome::{Outcome, Verdict as Passed};
use crate::run::{Device, DeviceUse, Environment, Settings, Summary, Trial};
use splitmix::SplitMix64;

/// 20 rates around a median, at most `width` (relative) apart.
fn rates(median: f64, width: f64, seed: u64) -> Vec<f64> {
    let mut rng = SplitMix64::new(seed);
    // The sum of four random numbers is close enough to the distribution of real results.
    let mut one = || (0..4).map(|_| rng.unit() - 0.5).sum::<f64>() / 2.0;
    (0..20).map(|_| median * (1.0 + width * one())).collect()
}

fn run(strict: Vec<f64>) -> Run {
    let result = CellResult { summary: Summary::of(&strict), strict, ..CellResult::default() };
    Run {
        profile: "rfc8219".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        complete: true,
        settings: Settings { trial_ms: 60_000, precision: 0.001, ..Settings::default() },
        device: Device { name: "unbound".to_owned(), version: "1.22.0".to_owned(), ..Device::default() },
        results: vec![result],
        ..Run::default()
    }
}

fn host(facts: &[(&str, &str)]) -> Environment {
    let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Environment { facts, warnings: Vec::new() }
}

#[test]
fn a_slower_run_is_found_and_fails_and_a_faster_one_passes() {
    let (fast, slow) = (run(rates(10_000.0, 0.02, 1)), run(rates(9_000.0, 0.02, 2)));
    let worse = compare(&fast, &slow);
    assert_eq!(worse.verdict, Verdict::Slower);
    assert_eq!(worse.exit_status(), 1);
    let ratio = worse.cells[0].strict.unwrap();
    assert!((0.88..0.92).contains(&ratio.ratio) && ratio.low < 0.9 && ratio.high > 0.9 && ratio.high < 0.95);
    assert!(ratio.p < 0.001, "{ratio:?}");
    let better = compare(&slow, &fast);
    assert_eq!(better.verdict, Verdict::Faster);
    assert_eq!(better.exit_status(), 0);
}

#[test]
fn runs_of_one_device_do_not_differ() {
    // One in twenty 95 % intervals misses: 2 of 40 are expected. The seeds are fixed, so the test fails always or
    // never.
    let missed = (0..40)
        .filter(|seed| {
            let pair = (rates(10_000.0, 0.05, 2 * seed), rates(10_000.0, 0.05, 2 * seed + 1));
            let compared = compare(&run(pair.0), &run(pair.1));
            compared.verdict != Verdict::NoDifference
        })
        .count();
    assert!(missed <= 5, "{missed}");
}

#[test]
fn the_same_two_runs_give_the_same_interval() {
    let pair = (run(rates(10_000.0, 0.05, 3)), run(rates(10_100.0, 0.05, 4)));
    assert_eq!(compare(&pair.0, &pair.1), compare(&pair.0, &pair.1));
}

#[test]
fn a_difference_that_the_search_cannot_see_is_none() {
    // Every search ended at the same rate, within 1 % of the true value: 9,950 and 10,000 may be equal.
    let (mut one, mut other) = (run(vec![10_000.0; 20]), run(vec![9_950.0; 20]));
    one.settings.precision = 0.01;
    other.settings.precision = 0.01;
    assert_eq!(compare(&one, &other).verdict, Verdict::NoDifference);
    one.settings.precision = 0.001;
    other.settings.precision = 0.001;
    assert_eq!(compare(&one, &other).verdict, Verdict::Slower);
}

#[test]
fn three_results_give_an_interval_that_says_how_little_it_knows() {
    let compared = compare(&run(vec![100.0, 104.0, 108.0]), &run(vec![90.0, 99.0, 120.0]));
    let cell = &compared.cells[0];
    let ratio = cell.strict.unwrap();
    // The outermost medians have a probability of (7/27)^2 = 6.7 % each, so the interval reaches them.
    assert!((ratio.low - 90.0 / 108.0 * 0.999).abs() < 1e-9, "{ratio:?}");
    assert!((ratio.high - 120.0 / 100.0 / 0.999).abs() < 1e-9, "{ratio:?}");
    assert_eq!(cell.verdict, Verdict::Incomparable);
    assert!(cell.note.contains("at best p = 0.10"), "{}", cell.note);
    assert!(compare(&run(rates(1e4, 0.1, 1)), &run(rates(1e4, 0.1, 2))).cells[0].note.is_empty());
}

#[test]
fn a_verdict_needs_a_p_value_that_its_repetitions_can_reach() {
    // As far apart as three and three can be: 2 of 20 divisions, p = 0.10, whatever the ratio.
    let (fast, slow) = (vec![100.0, 104.0, 108.0, 109.0], vec![50.0, 51.0, 52.0, 53.0]);
    let of_three = compare(&run(fast[..3].to_vec()), &run(slow[..3].to_vec()));
    assert_eq!((of_three.verdict, of_three.exit_status()), (Verdict::Incomparable, 3));
    let ratio = of_three.cells[0].strict.unwrap();
    assert!((ratio.p - 0.1).abs() < 1e-12 && ratio.p == ratio.p_least && ratio.high < 1.0, "{ratio:?}");
    assert!(of_three.cells[0].note.contains("at least 4 repetitions"), "{}", of_three.cells[0].note);
    let text = of_three.to_string();
    assert!(text.contains("no difference, however large, can be shown"), "{text}");
    assert!(text.contains("not comparable with the first; the notes give the reasons"), "{text}");
    // One repetition more: 2 of 70 divisions.
    let of_four = compare(&run(fast), &run(slow));
    assert_eq!((of_four.verdict, of_four.exit_status()), (Verdict::Slower, 1));
    assert!((of_four.cells[0].strict.unwrap().p - 2.0 / 70.0).abs() < 1e-12);
    assert!(of_four.to_string().contains("The second is slower (95 % interval without 1, and p < 0.05)."));
}

#[test]
fn one_or_two_results_on_both_sides_are_not_compared() {
    for few in [1, 2] {
        let compared = compare(&run(vec![100.0; few]), &run(vec![50.0; few]));
        assert_eq!((compared.verdict, compared.exit_status()), (Verdict::Incomparable, 3));
        assert!(compared.cells[0].note.contains("at least 4 repetitions"));
        assert_eq!(compared.cells[0].strict.unwrap().ratio, 0.5);
    }
    // Two against eight: 2 of C(10, 2) = 45 divisions, p = 0.044.
    let compared = compare(&run(vec![100.0; 2]), &run(vec![50.0; 8]));
    assert_eq!(compared.verdict, Verdict::Slower);
}

#[test]
fn each_verdict_has_its_exit_status() {
    let (fast, slow) = (run(rates(10_000.0, 0.02, 1)), run(rates(9_000.0, 0.02, 2)));
    let incomparable = run(vec![100.0; 3]);
    for (first, second, status) in
        [(&slow, &fast, 0), (&fast, &fast, 0), (&fast, &slow, 1), (&incomparable, &incomparable, 3)]
    {
        assert_eq!(compare(first, second).exit_status(), status);
    }
}

#[test]
fn the_remedy_fits_the_cause() {
    let note = |first: &Run, second: &Run| compare(first, second).cells[0].note.clone();
    let whole = run(rates(10_000.0, 0.02, 1));
    assert!(note(&whole, &run(vec![])).contains("run --resume"));
    assert!(note(&run(vec![0.0, 100.0, 100.0]), &whole).contains("says why these trials failed"));
    let censored = |settings_max: f64, permitted: f64| {
        let mut run = run(vec![10_000.0; 20]);
        run.results[0].censored = true;
        run.settings.max_qps = settings_max;
        run.self_test = Some(crate::run::SelfTest { device_qps: permitted, ..Default::default() });
        run
    };
    for (settings_max, permitted, remedy) in [
        (10_000.0, 50_000.0, "raise search.max"),
        (50_000.0, 10_000.0, "give tester and authority more cores"),
        (50_000.0, 50_000.0, "measure on an idle host"),
    ] {
        let bound = censored(settings_max, permitted);
        assert!(note(&bound, &whole).starts_with("the rates of the first run are lower bounds"));
        assert!(note(&whole, &bound).contains(remedy), "{}", note(&whole, &bound));
    }
    // All strict results on one side are 0.5 % below the others, and the search sees 1 %.
    let mut coarse = [run(vec![10_000.0; 20]), run(vec![9_950.0; 20])];
    coarse.iter_mut().for_each(|run| run.settings.precision = 0.01);
    assert!(note(&coarse[0], &coarse[1]).contains("lower search.precision"));
    let near = compare(&run(vec![100.0, 101.0, 102.0, 103.0]), &run(vec![100.5, 101.5, 102.5, 103.5]));
    assert_eq!(near.verdict, Verdict::NoDifference);
    assert!(near.cells[0].note.contains("use 20 repetitions"), "{}", near.cells[0].note);
}

#[test]
fn a_first_run_that_found_nothing_is_not_divided_by() {
    let compared = compare(&run(vec![0.0, 100.0, 100.0]), &run(vec![100.0; 3]));
    assert_eq!(compared.verdict, Verdict::Incomparable);
    assert!(compared.cells[0].strict.is_none());
    let second = compare(&run(vec![100.0; 4]), &run(vec![0.0; 4]));
    assert_eq!(second.verdict, Verdict::Slower);
}

#[test]
fn a_record_with_a_million_results_is_not_resampled_for_hours() {
    let many = run(vec![100.0; 1_000_000]);
    let compared = compare(&many, &many);
    assert_eq!(compared.verdict, Verdict::Incomparable);
    assert!(compared.cells[0].note.contains("more than 2000"), "{}", compared.cells[0].note);
}

#[test]
fn values_of_different_parameters_are_not_compared() {
    let swept = |parameter: &str| {
        let mut run = run(rates(10_000.0, 0.02, 1));
        run.device.sweep = Some((parameter.to_owned(), vec!["2".to_owned()]));
        run.results[0].sweep = "2".to_owned();
        run
    };
    assert_eq!(compare(&swept("workers"), &swept("workers")).verdict, Verdict::NoDifference);
    let compared = compare(&swept("workers"), &swept("range"));
    assert_eq!((compared.verdict, compared.cells.len()), (Verdict::Incomparable, 0));
    assert!(compared.warnings.iter().any(|it| it.contains("values of workers")), "{:?}", compared.warnings);
}

#[test]
fn a_free_port_of_the_authority_is_no_difference() {
    let at = |port: u16| {
        let mut run = run(rates(10_000.0, 0.02, 1));
        run.settings.authority = format!("[::1]:{port}");
        run
    };
    assert_eq!(compare(&at(40_001), &at(40_002)).differences, []);
}

#[test]
fn censored_results_are_bounds() {
    let (low, high) = (rates(9_000.0, 0.01, 1), rates(10_000.0, 0.01, 2));
    let compared = |first: &[f64], censored_first: bool, second: &[f64], censored_second: bool| {
        let (mut first, mut second) = (run(first.to_vec()), run(second.to_vec()));
        first.results[0].censored = censored_first;
        second.results[0].censored = censored_second;
        compare(&first, &second).verdict
    };
    // A value of at least 10,000 is more than 9,000; a value of at least 9,000 need not be less than 10,000.
    assert_eq!(compared(&low, false, &high, true), Verdict::Faster);
    assert_eq!(compared(&high, true, &low, false), Verdict::Slower);
    assert_eq!(compared(&high, false, &low, true), Verdict::Incomparable);
    assert_eq!(compared(&low, true, &high, false), Verdict::Incomparable);
    assert_eq!(compared(&low, true, &high, true), Verdict::Incomparable);
}

#[test]
fn cells_are_matched_by_sweep_and_shares_and_one_slower_cell_is_enough() {
    let mut one = run(rates(10_000.0, 0.02, 1));
    let cached = Cell { aaaa_share: 0.0, cached_share: 0.1 + 0.2 };
    let of = |sweep: &str, cell: Cell, rate: f64| {
        let strict = rates(rate, 0.02, 9);
        CellResult {
            sweep: sweep.to_owned(),
            cell,
            summary: Summary::of(&strict),
            strict,
            ..CellResult::default()
        }
    };
    let mut other = one.clone();
    one.results.push(of("", cached, 30_000.0));
    other.results.push(of("", Cell { cached_share: 0.3, ..cached }, 20_000.0));
    one.results.push(of("4", cached, 30_000.0));
    other.results.push(of("8", cached, 30_000.0));
    let compared = compare(&one, &other);
    assert_eq!(compared.cells.len(), 2);
    assert_eq!(compared.cells[0].verdict, Verdict::NoDifference);
    assert_eq!(compared.cells[1].verdict, Verdict::Slower);
    assert_eq!(compared.verdict, Verdict::Slower);
    assert!(
        compared.warnings.iter().any(|it| it.contains("only the first run has") && it.ends_with("for 4"))
    );
    assert!(
        compared.warnings.iter().any(|it| it.contains("only the second run has") && it.ends_with("for 8"))
    );
}

#[test]
fn runs_without_a_common_cell_are_incomparable() {
    let (one, mut other) = (run(rates(10_000.0, 0.02, 1)), run(rates(10_000.0, 0.02, 1)));
    other.results[0].sweep = "2".to_owned();
    let compared = compare(&one, &other);
    assert!(compared.cells.is_empty() && compared.exit_status() == 3);
    assert!(compared.to_string().contains("they have no cell in common"));
}

#[test]
fn cpu_per_query_is_that_of_the_highest_rate_that_passed_in_each_repetition() {
    let with_cost = |cost: f64| {
        let mut run = run(rates(10_000.0, 0.02, 1));
        for repetition in 0..20 {
            let trials = [
                (5_000.0, Passed::Pass, 3.0 * cost, Purpose::Search),
                (10_000.0, Passed::Pass, cost + 0.01 * f64::from(repetition), Purpose::Confirm),
                (11_000.0, Passed::Fail, 9.0 * cost, Purpose::Search),
                (20_000.0, Passed::Pass, 5.0 * cost, Purpose::Curve),
            ];
            for (rate_qps, verdict, cpu_us_per_query, purpose) in trials {
                run.trials.push(Trial {
                    purpose,
                    repetition,
                    rate_qps,
                    outcome: Outcome { verdict, ..Outcome::default() },
                    device: Some(DeviceUse { cpu_us_per_query, ..DeviceUse::default() }),
                    ..Trial::default()
                });
            }
        }
        run
    };
    let compared = compare(&with_cost(40.0), &with_cost(50.0));
    let cpu = compared.cells[0].cpu.unwrap();
    assert!((cpu.first - 40.095).abs() < 1e-9 && (cpu.second - 50.095).abs() < 1e-9, "{cpu:?}");
    assert!(cpu.low > 1.2 && cpu.high < 1.3);
    assert_eq!(compared.verdict, Verdict::NoDifference);
    assert!(compare(&run(rates(1e4, 0.02, 1)), &with_cost(1.0)).cells[0].cpu.is_none());
}

#[test]
fn differences_between_the_runs_are_listed_and_facts_that_always_differ_are_not() {
    let mut one = run(rates(10_000.0, 0.02, 1));
    let mut other = one.clone();
    assert_eq!(compare(&one, &other).differences, []);
    one.hosts.insert(
        "device".to_owned(),
        host(&[
            ("kernel", "6.1.0"),
            ("governor", "performance"),
            ("load average", "0.10"),
            ("boot parameters", "nosmt"),
        ]),
    );
    other.hosts.insert(
        "device".to_owned(),
        host(&[("kernel", "6.12.1"), ("governor", "performance"), ("load average", "0.90")]),
    );
    other.hosts.insert("tester".to_owned(), host(&[]));
    other.settings.timeout_ms = 500;
    other.settings.start_qps = 5.0;
    other.settings.prefix = "64:ff9b::/96".to_owned();
    other.tool = "0.2.0".to_owned();
    other.started = "later".to_owned();
    other.complete = false;
    let compared = compare(&one, &other);
    let shown: Vec<String> =
        compared.differences.iter().map(|it| format!("{}: {} / {}", it.what, it.first, it.second)).collect();
    assert_eq!(
        shown,
        [
            "version of the tool: not known / 0.2.0",
            "setting prefix: not known / 64:ff9b::/96",
            "setting start_qps: 0.0 / 5.0",
            "setting timeout_ms: 0 / 500",
            "device: boot parameters: nosmt / not known",
            "device: kernel: 6.1.0 / 6.12.1",
            "host of the tester: not known / known",
        ]
    );
    assert!(compared.warnings[0].contains("second run is not complete"));
}

#[test]
fn the_table_has_the_figures_the_notes_and_the_verdict() {
    let mut one = run(vec![10_000.0; 4]);
    one.results[0].sweep = "8".to_owned();
    one.results[0].confirmed = vec![10_500.0; 4];
    let mut other = one.clone();
    other.results[0].strict = vec![9_000.0; 4];
    other.device.version = "1.23.0".to_owned();
    other.settings.trial_ms = 5_000;
    let text = compare(&one, &other).to_string();
    for part in [
        "first:  Unbound 1.22.0, profile rfc8219, 2026-01-02T03:04:05Z",
        "second: Unbound 1.23.0",
        "queries/s              10000        9000  0.900  0.899 to 0.901     0.029  slower",
        "confirmed              10500       10500  1.000  0.999 to 1.001      1.00",
        "(4 and 4 results: the range of 4 values contains the true median with 88 % at most",
        "different: setting trial_ms: 60000 and 5000",
        "The second is slower (",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_comparison_survives_json() {
    let compared = compare(&run(rates(10_000.0, 0.02, 1)), &run(rates(9_000.0, 0.02, 2)));
    let text = serde_json::to_string(&compared).unwrap();
    let back: Comparison = serde_json::from_str(&text).unwrap();
    assert_eq!((back.verdict, &back.differences), (compared.verdict, &compared.differences));
    assert!(text.contains("\"verdict\":\"slower\""));
}

#[test]
fn conditions_of_several_runs_have_a_value_for_each() {
    let mut runs = [1, 2, 3].map(|_| run(rates(10_000.0, 0.02, 1)));
    runs[1].settings.trial_ms = 1_500;
    runs[2].settings.prefix = "64:ff9b::/96".to_owned();
    runs[2].settings.trial_ms = 1_500;
    let shown = conditions(&runs.iter().collect::<Vec<_>>());
    let of = |what: &str| shown.iter().find(|it| it.what == what).unwrap().values.join(" | ");
    assert_eq!(shown.len(), 2);
    assert_eq!(of("setting trial_ms"), "60000 | 1500 | 1500");
    assert_eq!(of("setting prefix"), "not known | not known | 64:ff9b::/96");
    assert_eq!(conditions(&[&runs[0]]), []);
    assert_eq!(conditions(&[]), []);
}
