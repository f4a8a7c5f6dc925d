//! The checklist: a full run is compliant, a quick one is not, for the right reasons, and each rule can fail.

use super::*;
use crate::outcome::{Deviation, Outcome, Verdict};
use crate::run::{Certificate, Device, DeviceUse, Environment, Participant, SelfTest, Settings, Summary};
use std::collections::BTreeMap;

const CAPACITY_QPS: f64 = 10_000.0;

fn host(name: &str) -> Environment {
    Environment { facts: BTreeMap::from([("hostname".to_owned(), name.to_owned())]), warnings: Vec::new() }
}

/// A run of the required cell by the RFC, on three hosts: 20 repetitions of three trials.
fn full() -> Run {
    let mut run = Run {
        profile: "rfc8219".to_owned(),
        complete: true,
        settings: Settings {
            trial_ms: 60_000,
            timeout_ms: 1_000,
            pause_ms: 10_000,
            repetitions: 20,
            precision: 0.01,
            delta: 0.1,
            names: "1.0.0.0-126.255.255.255".to_owned(),
            ttl: 3_600,
            ..Settings::default()
        },
        device: Device {
            name: "unbound".to_owned(),
            address: "[2001:2::53]:53".to_owned(),
            command: vec!["unbound".to_owned(), "-d".to_owned()],
            ..Device::default()
        },
        hosts: ["tester", "authority", "device"].map(|role| (role.to_owned(), host(role))).into(),
        self_test: Some(SelfTest {
            certified_qps: 220_000.0,
            device_qps: 100_000.0,
            delta: 0.1,
            timeout_ms: 250,
            sufficient: true,
        }),
        ..Run::default()
    };
    push(&mut run, Purpose::SelfTest, 0, 220_000.0, Verdict::Pass);
    run.trials[0].cell.aaaa_share = 1.0;
    for repetition in 0..20 {
        push(&mut run, Purpose::Search, repetition, CAPACITY_QPS, Verdict::Pass);
        push(&mut run, Purpose::Search, repetition, 1.01 * CAPACITY_QPS, Verdict::Fail);
        push(&mut run, Purpose::Confirm, repetition, 1.01 * CAPACITY_QPS, Verdict::Fail);
    }
    let strict = vec![CAPACITY_QPS; 20];
    run.results.push(CellResult {
        summary: Summary::of(&strict),
        strict,
        upstream_per_query: 2.0,
        ..CellResult::default()
    });
    run
}

/// Adds a trial with the next names.
fn push(run: &mut Run, purpose: Purpose, repetition: u32, rate_qps: f64, verdict: Verdict) {
    let seconds = run.settings.trial_ms as f64 / 1e3;
    let sent = (rate_qps * seconds).round() as u64;
    let lost = if verdict == Verdict::Pass { 0 } else { 7 };
    let first_name = run.trials.last().map_or(0, |last| last.first_name + last.outcome.names_used);
    run.trials.push(Trial {
        number: run.trials.len() as u32,
        purpose,
        repetition,
        rate_qps,
        first_name,
        outcome: Outcome {
            sent,
            valid: sent - lost,
            lost,
            names_used: sent,
            rate_asked: rate_qps,
            rate_achieved: rate_qps,
            seconds: (sent - 1) as f64 / rate_qps,
            verdict,
            ..Outcome::default()
        },
        ..Trial::default()
    });
}

/// The violated rules, by section and rule.
fn broken(run: &Run) -> Vec<String> {
    let rules = checklist(run);
    let broken: Vec<String> = rules
        .iter()
        .filter(|rule| rule.state == Kept::NotKept)
        .map(|rule| format!("{}: {}", rule.section, rule.rule))
        .collect();
    assert_eq!(is_compliant(&rules), broken.is_empty());
    broken
}

/// The reason of the only rule that a run violates.
fn only(run: &Run, rule: &str) -> String {
    let all = broken(run);
    assert!(all.len() == 1 && all[0].contains(rule), "{rule}: {all:?}");
    checklist(run).into_iter().find(|it| it.state == Kept::NotKept).unwrap().because
}

fn state(run: &Run, rule: &str) -> (Kept, String) {
    let found = checklist(run).into_iter().find(|it| it.rule.contains(rule)).unwrap();
    (found.state, found.because)
}

/// A full run with a change.
fn but(change: impl FnOnce(&mut Run)) -> Run {
    let mut run = full();
    change(&mut run);
    run
}

#[test]
fn a_full_run_is_compliant() {
    assert_eq!(broken(&full()), [""; 0]);
    for rule in checklist(&full()) {
        assert!(!rule.because.is_empty() && !rule.rule.is_empty(), "{rule:?}");
    }
}

#[test]
fn a_quick_run_on_one_machine_is_not_compliant_and_says_why() {
    let mut run = full();
    run.trials.clear();
    run.settings = Settings { trial_ms: 1_500, precision: 0.05, pause_ms: 300, ..run.settings };
    run.device.address = "[::1]:5301".to_owned();
    push(&mut run, Purpose::SelfTest, 0, 220_000.0, Verdict::Pass);
    run.trials[0].cell.aaaa_share = 1.0;
    for repetition in 0..3 {
        push(&mut run, Purpose::Search, repetition, CAPACITY_QPS, Verdict::Pass);
    }
    run.results[0].strict.truncate(3);
    run.results[0].summary = Summary::of(&run.results[0].strict);
    let wrong = broken(&run);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(
        wrong[0].contains("apart") && wrong[1].contains("at least 60 s") && wrong[2].contains("At least 20")
    );
    assert_eq!(state(&run, "at least 60 s").1, "trials of 1.5 s");
    assert_eq!(state(&run, "At least 20").1, "3 repetitions");
    // On the loopback interface no packet leaves the host, and its address belongs to no other host.
    assert_eq!(state(&run, "production").0, Kept::Kept);
    assert_eq!(state(&run, "Dedicated").0, Kept::NotApplicable);
}

#[test]
fn rules_that_the_record_cannot_show_are_not_checked_and_prohibitions_read_as_such() {
    // Over a network no record shows where the cables lead.
    let (isolated, special) = (state(&full(), "production"), state(&full(), "special capabilities"));
    assert_eq!((isolated.0, special.0), (Kept::NotChecked, Kept::NotChecked));
    assert!(isolated.1.contains("cables") && special.1.contains("not visible from outside"));
    // A prohibition reads as one: "kept" beside it must not mean its opposite.
    let prohibitions = checklist(&full()).into_iter().filter(|rule| rule.level.ends_with(" NOT"));
    let prohibitions: Vec<Rule> = prohibitions.collect();
    assert_eq!(prohibitions.len(), 2);
    for rule in prohibitions {
        assert!(rule.rule.contains(&format!(" {} ", rule.level)), "{rule:?}");
    }
}

#[test]
fn nothing_at_all_is_not_compliant() {
    assert!(!is_compliant(&[]));
    assert!(broken(&Run::default()).len() > 5);
}

#[test]
fn tester_and_device_on_one_host_are_found_by_its_name() {
    let run = but(|run| run.hosts.insert("device".to_owned(), host("tester")).map_or((), drop));
    assert!(only(&run, "apart").contains("one machine"));
    let unknown = but(|run| run.hosts.remove("device").map_or((), drop));
    assert_eq!(state(&unknown, "apart").0, Kept::NotChecked);
    assert_eq!(broken(&unknown), [""; 0]);
}

#[test]
fn ipv4_between_client_and_device_is_found_mapped_addresses_too() {
    for address in ["198.18.0.1:53", "[::ffff:198.18.0.1]:53"] {
        let run = but(|run| run.device.address = address.to_owned());
        assert_eq!(only(&run, "IPv6 between"), "the queries went to 198.18.0.1");
    }
    assert!(only(&but(|run| run.device.address.clear()), "IPv6 between").contains("not recorded"));
}

#[test]
fn addresses_of_the_internet_are_found_and_local_ones_are_not_blamed() {
    let run = but(|run| run.device.address = "[2a00:1450::53]:53".to_owned());
    assert!(only(&run, "Dedicated").contains("2a00:1450::53"));
    for address in
        ["2001:2:0:ffff::1", "[fd00::1]:53", "[2001:db8::1]:5353", "[3fff::1]:53", "[fe80::1%2]:53"]
    {
        let run = but(|run| run.device.address = address.to_owned());
        assert_eq!(state(&run, "Dedicated").0, Kept::Kept, "{address}");
    }
    // 2001:2:1::/48 is another block.
    assert_eq!(broken(&but(|run| run.device.address = "[2001:2:1::1]:53".to_owned())).len(), 1);
}

#[test]
fn a_device_that_asks_fewer_questions_did_not_do_the_six_steps() {
    let run = but(|run| run.results[0].upstream_per_query = 1.2);
    assert!(only(&run, "Six messages").contains("1.200 queries"));
    let unknown = but(|run| run.results[0].upstream_per_query = 0.0);
    assert_eq!(state(&unknown, "Six messages").0, Kept::NotChecked);
}

#[test]
fn a_rate_that_was_not_reached_is_found() {
    let run = but(|run| run.trials[1].outcome.rate_achieved *= 0.98);
    assert!(state(&run, "specific rate").1.contains("2.000 %"));
    assert_eq!(broken(&run).len(), 2, "the rate, and the time: {:?}", broken(&run));
    // A rate that is too high takes no time too much.
    let fast = but(|run| run.trials[1].outcome.rate_achieved *= 1.02);
    assert!(only(&fast, "specific rate").contains("2.000 %"));
}

#[test]
fn the_time_of_the_slowest_passed_trial_is_judged_by_the_papers_one_per_cent() {
    let with = |longer: f64| {
        but(|run| {
            run.trials[1].outcome.rate_achieved = run.trials[1].rate_qps / (1.0 + longer);
            run.trials[1].outcome.lag_max_us = 7_654.0;
            run.trials[1].outcome.pacing_error.s1 =
                Deviation { max: 0.00476, intervals: 60, ..Deviation::default() };
            // A failed trial is not judged.
            run.trials[2].outcome.rate_achieved = 1.0;
        })
    };
    let (kept, said) = state(&with(0.0099), "1 % longer");
    assert_eq!(kept, Kept::Kept, "{said}");
    for part in
        ["trial 1 took longest: 0.990 % longer", "7.654 ms", "deviations from the schedule: 0.476 % in 1 s"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("in 1 ms"), "an older record has no such figure: {said}");
    assert_eq!(state(&with(0.0101), "1 % longer").0, Kept::NotKept);
}

#[test]
fn a_trial_that_passed_with_a_loss_is_found() {
    let run = but(|run| run.trials[4].outcome.valid -= 1);
    assert_eq!(only(&run, "valid replies"), "trial 4 passed with 599999 valid replies to 600000 queries");
}

#[test]
fn a_result_that_no_trial_shows_and_one_that_is_a_bound_are_found() {
    let invented = but(|run| {
        run.results[0].strict[3] = 10_050.0;
        run.results[0].summary = Summary::of(&run.results[0].strict);
    });
    assert!(only(&invented, "fastest").contains("no trial at 10050"));
    let censored = but(|run| run.results[0].censored = true);
    assert!(only(&censored, "fastest").contains("may be higher"));
}

#[test]
fn the_rule_of_dns64perf_is_not_that_of_the_rfc_and_a_bisection_is_within_its_width() {
    let run = but(|run| run.settings.validity = crate::order::Validity::Answered);
    assert!(only(&run, "as many as queries").contains("the RFC demands an AAAA record"));
    let run = but(|run| {
        run.settings.bisection = Some(crate::run::Bisection { low: 0.0, high: 16_384.0, width: 1.0 });
    });
    assert!(state(&run, "fastest").1.contains("at most 1 queries/s higher"));
}

#[test]
fn short_trials_are_found_planned_or_not() {
    let planned = but(|run| run.settings.trial_ms = 59_000);
    assert_eq!(only(&planned, "at least 60 s"), "trials of 59 s");
    let cut = but(|run| run.trials[1].outcome.seconds = 30.0);
    assert_eq!(only(&cut, "at least 60 s"), "trial 1 lasted only 30.0 s");
    // A failed trial may end early.
    assert_eq!(broken(&but(|run| run.trials[2].outcome.seconds = 1.0)), [""; 0]);
}

#[test]
fn a_long_timeout_is_found() {
    let run = but(|run| run.settings.timeout_ms = 2_000);
    assert_eq!(only(&run, "timeout is at most 1 s"), "timeout 2 s");
}

#[test]
fn too_few_repetitions_are_found() {
    let run = but(|run| {
        run.results[0].strict.truncate(19);
        run.results[0].summary = Summary::of(&run.results[0].strict);
    });
    assert_eq!(only(&run, "At least 20"), "19 repetitions");
}

#[test]
fn one_repetition_is_no_iteration() {
    let run = but(|run| {
        run.results[0].strict.truncate(1);
        run.results[0].summary = Summary::of(&run.results[0].strict);
    });
    assert_eq!(broken(&run).len(), 2);
    assert_eq!(state(&run, "Several iterations").0, Kept::NotKept);
}

#[test]
fn percentiles_that_are_missing_or_by_another_definition_are_found() {
    let missing = but(|run| run.results[0].summary = Summary::default());
    assert_eq!(state(&missing, "are calculated").0, Kept::NotKept);
    assert_eq!(state(&missing, "complemented").0, Kept::NotKept);
    let interpolated = but(|run| run.results[0].summary.p1 = 9_987.0);
    assert!(only(&interpolated, "RFC 2330").contains("different"));
}

#[test]
fn the_required_cell_must_be_there() {
    let run = but(|run| {
        run.results[0].cell.aaaa_share = 0.2;
        run.results[0].achieved_aaaa_share = 0.2;
        for trial in &mut run.trials {
            trial.cell.aaaa_share = 0.2;
        }
    });
    let wrong = broken(&run);
    assert!(wrong.iter().any(|it| it.contains("0 % cached and 0 %")), "{wrong:?}");
    assert!(wrong.iter().any(|it| it.contains("no name has an AAAA")), "{wrong:?}");
}

#[test]
fn names_asked_twice_are_found_unless_their_ttl_has_passed() {
    let again = but(|run| run.trials[7].outcome.asked_again = 1);
    assert_eq!(only(&again, "all names are different"), "trial 7 repeated names");
    let overlapping = but(|run| run.trials[9].first_name = run.trials[8].first_name + 1);
    assert!(only(&overlapping, "all names are different").contains("trial 9 repeated names of trial 8"));
    let restarted = but(|run| {
        run.trials[9].first_name = run.trials[8].first_name + 1;
        run.trials[9].fresh = true;
    });
    assert_eq!(broken(&restarted), [""; 0], "a device that was started anew knows no names");
    // From the end of trial 1 to the beginning of trial 60 there are 58 x 60 s and 59 x 10 s, more than an hour. From
    // trial 9 on it is less, though not when counted from beginning to beginning.
    let barely = but(|run| {
        run.trials[60].first_name = run.trials[9].first_name;
        run.settings.ttl = 51 * 70 - 1;
    });
    assert!(only(&barely, "all names are different").contains("trial 60 repeated names of trial 9"));
    let late = but(|run| run.trials[60].first_name = run.trials[1].first_name);
    assert_eq!(broken(&late), [""; 0]);
    let early = but(|run| {
        run.trials[60].first_name = run.trials[1].first_name;
        run.settings.ttl = 86_400;
    });
    assert_eq!(broken(&early).len(), 1);
    // 600,000 names per trial are more than 2^16; the self-test's names never reach the device.
    assert_eq!(broken(&but(|run| run.settings.names = "10.0.0.0/16".to_owned())).len(), 1);
    assert_eq!(broken(&but(|run| run.trials[1].first_name = 0)), [""; 0]);
}

#[test]
fn names_that_run_over_the_end_of_the_window_meet_those_at_its_beginning() {
    let run = but(|run| {
        // 2^20 names; the second trial begins 100 names before the end.
        run.settings.names = "10.0.0.0/12".to_owned();
        run.trials.truncate(3);
        run.trials[1].first_name = 0;
        run.trials[2].first_name = (1 << 20) - 100;
        run.results[0].strict = vec![CAPACITY_QPS; 20];
    });
    assert!(only(&run, "all names are different").contains("trial 2 repeated names of trial 1"));
}

#[test]
fn records_that_exist_although_they_should_not_are_found() {
    let run = but(|run| run.results[0].achieved_aaaa_share = 0.2);
    assert_eq!(only(&run, "no name has an AAAA"), "20.0 % of the names had AAAA records");
}

/// A full run with one more cell.
fn with_cell(cell: Cell, achieved: Cell, upstream: f64) -> Run {
    but(|run| {
        let before = run.trials.len();
        for repetition in 0..20 {
            push(run, Purpose::Search, repetition, 9_000.0, Verdict::Pass);
        }
        run.trials[before..].iter_mut().for_each(|trial| trial.cell = cell);
        let strict = vec![9_000.0; 20];
        run.results.push(CellResult {
            cell,
            summary: Summary::of(&strict),
            strict,
            upstream_per_query: upstream,
            achieved_cached_share: achieved.cached_share,
            achieved_aaaa_share: achieved.aaaa_share,
            ..CellResult::default()
        });
    })
}

#[test]
fn shares_are_judged_by_what_the_authority_counted() {
    let cell = Cell { aaaa_share: 0.4, cached_share: 0.6 };
    let good = with_cell(cell, cell, 0.64);
    assert_eq!(broken(&good), [""; 0]);
    assert_eq!(state(&good, "of the names are cached"), (Kept::Kept, "tested: 60 %".to_owned()));
    assert_eq!(state(&good, "names have AAAA records").1, "tested: 40 %");
    assert_eq!(state(&good, "share that is fixed").0, Kept::Kept);
    let uncached = with_cell(cell, Cell { cached_share: 0.3, ..cell }, 1.12);
    assert!(only(&uncached, "late enough").contains("30.0 % where 60 %"));
    let flipped = with_cell(cell, Cell { aaaa_share: 0.5, ..cell }, 0.6);
    assert!(only(&flipped, "is what it was meant").contains("50.0 % where 40 %"));
    let unknown = with_cell(cell, Cell::default(), 0.0);
    assert_eq!(state(&unknown, "late enough").0, Kept::NotChecked);
    assert_eq!(state(&full(), "late enough"), (Kept::NotApplicable, "optional, and not tested".to_owned()));
}

#[test]
fn a_missing_or_unproven_self_test_is_found() {
    let none = but(|run| run.self_test = None);
    let wrong = broken(&none);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    let unproven = but(|run| run.trials[0].outcome.verdict = Verdict::Fail);
    assert_eq!(only(&unproven, "passed a self-test"), "no trial shows 220000 queries/s");
    let of_another_zone = but(|run| run.trials[0].cell.aaaa_share = 0.0);
    assert!(only(&of_another_zone, "passed a self-test").contains("answers all with AAAA"));
    let insufficient = but(|run| run.self_test.as_mut().map_or((), |test| test.sufficient = false));
    assert_eq!(broken(&insufficient).len(), 1);
}

#[test]
fn the_margin_of_the_self_test_is_checked_and_the_misprint_is_told() {
    let because = state(&full(), "2 * (1 + delta)").1;
    assert!(because.contains("21.78 times") && because.contains("2.20 is needed"), "{because}");
    assert!(because.contains("2*(r+delta), which is a misprint"), "{because}");
    let test = |change: fn(&mut SelfTest)| but(|run| run.self_test.as_mut().map_or((), change));
    only(&test(|it| it.delta = 0.05), "2 * (1 + delta)");
    only(&test(|it| it.timeout_ms = 300), "2 * (1 + delta)");
    // 2.2 x 10,100 are 22,220.
    only(&test(|it| it.certified_qps = 22_219.0), "2 * (1 + delta)");
    assert_eq!(broken(&test(|it| it.certified_qps = 22_220.0)), [""; 0]);
}

#[test]
fn an_authority_that_is_too_slow_for_the_traffic_of_a_device_is_found() {
    const RULE: &str = "within half of the timeout";
    assert_eq!(state(&full(), RULE).0, Kept::NotChecked);
    let certificate = |certified_qps| Certificate {
        device_qps: 10_000.0,
        required_qps: 22_000.0,
        certified_qps,
        sufficient: certified_qps >= 22_000.0,
        timeout_ms: 250,
        ..Certificate::default()
    };
    let fast = but(|run| run.results[0].certificate = Some(certificate(25_000.0)));
    assert_eq!((state(&fast, RULE).0, broken(&fast)), (Kept::Kept, vec![]));
    let slow = but(|run| run.results[0].certificate = Some(certificate(21_000.0)));
    assert!(only(&slow, RULE).contains("21000 queries/s within 250 ms, where 22000 are required"));
}

#[test]
fn rules_that_permit_are_never_broken_and_every_other_one_can_be() {
    // Facts that no record can show.
    const NEVER: [&str; 3] = ["production or management", "Black box", "special capabilities"];
    let runs = [
        Run::default(),
        but(|run| run.trials[1].outcome.valid = 0),
        but(|run| run.trials[1].outcome.rate_achieved = 0.0),
        but(|run| run.results[0].upstream_per_query = 1.0),
        but(|run| run.device.address = "[::1]:53".to_owned()),
        but(|run| run.device.address = "8.8.8.8".to_owned()),
        but(|run| run.results[0].summary.p1 = 1.0),
        but(|run| run.results[0].summary.count = 0),
        with_cell(Cell { aaaa_share: 0.5, cached_share: 0.5 }, Cell::default(), 2.0),
        but(|run| run.results[0].certificate = Some(Certificate::default())),
        but(|run| {
            let starved = Trial {
                outcome: Outcome { verdict: Verdict::DeviceStarved, ..Outcome::default() },
                device: Some(DeviceUse { others_s: Some(9.0), ..DeviceUse::default() }),
                ..Trial::default()
            };
            run.trials.extend(std::iter::repeat_n(starved, 3));
            run.settings.receive_buffer = 12_582_912;
            let device =
                Participant { sockets: 1, receive_buffer: (212_992, 212_992), ..Participant::default() };
            run.participants.insert("device".to_owned(), device);
        }),
    ];
    for rule in checklist(&full()) {
        let can_fail = runs
            .iter()
            .any(|run| checklist(run).iter().any(|it| it.rule == rule.rule && it.state == Kept::NotKept));
        // A run whose results state no shares cannot be recorded.
        let never = rule.level == "MAY"
            || NEVER.iter().any(|it| rule.rule.contains(it))
            || rule.rule.contains("Excerpts");
        assert_eq!(can_fail, !never, "{}", rule.rule);
    }
}
