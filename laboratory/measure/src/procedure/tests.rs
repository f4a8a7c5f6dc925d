//! Whole runs against a device that is a formula: below its capacity it answers everything, above it half.

use super::*;
use crate::model_devices::{Device as _, Noisy};
use crate::outcome::Outcome;
use crate::plan::Draft;
use splitmix::SplitMix64;
use std::collections::BTreeMap;

const TEST_CAPACITY_QPS: f64 = 400_000.0;

pub(super) struct World {
    /// Capacities by value of the sweep.
    pub capacity_qps: fn(&str) -> f64,
    pub tester_qps: f64,
}

impl World {
    fn play(&self, task: &Task, duration_s: f64) -> Trial {
        let capacity = match task.purpose {
            Purpose::SelfTest | Purpose::CellSelfTest => self.tester_qps,
            _ => (self.capacity_qps)(task.setup.device.as_deref().unwrap()),
        };
        let sent = (task.rate_qps * duration_s) as u64;
        let passes = task.rate_qps <= capacity;
        let outcome = Outcome {
            sent,
            valid: if passes { sent } else { sent / 2 },
            names_used: sent,
            verdict: if passes { Verdict::Pass } else { Verdict::Fail },
            ..Outcome::default()
        };
        Trial {
            purpose: task.purpose,
            sweep: task.setup.device.clone().unwrap_or_default(),
            cell: task.cell,
            repetition: task.repetition,
            rate_qps: task.rate_qps,
            first_name: task.first_name,
            outcome,
            authority: BTreeMap::from([("asked_aaaa".to_owned(), sent), ("asked_a".to_owned(), sent)]),
            ..Trial::default()
        }
    }

    /// Runs to the end and returns the events.
    pub fn run(&self, procedure: &mut Procedure) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..20_000 {
            let Some(event) = self.step(procedure) else { return events };
            procedure.record(event.clone()).unwrap();
            events.push(event);
        }
        panic!("a run of this size ends");
    }

    /// Does the next action; `None` when everything is done.
    pub fn step(&self, procedure: &Procedure) -> Option<Event> {
        let duration_s = procedure.plan().trial.duration.0.as_secs_f64();
        Some(match procedure.next() {
            Action::Trial(task) => Event::Trial(self.play(&task, duration_s)),
            Action::Check(..) => {
                let names = u64::from(procedure.plan().correctness.names);
                let found = Correctness { names, valid: names, ..Correctness::default() };
                Event::Check { found, names_used: names }
            }
            Action::Done | Action::Stop(_) => return None,
        })
    }
}

pub(super) fn world() -> World {
    World { capacity_qps: |_| 23_456.0, tester_qps: TEST_CAPACITY_QPS }
}

pub(super) fn procedure(text: &str) -> Procedure {
    Procedure::new(Draft::parse(text).unwrap().finish().unwrap())
}

pub(super) const QUICK: &str = "profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n";

#[test]
fn a_run_finds_the_capacity_in_every_repetition() {
    let mut procedure = procedure(QUICK);
    world().run(&mut procedure);
    assert_eq!(procedure.next(), Action::Done);
    let results = procedure.results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].strict.len(), 4);
    for rate in results[0].strict.iter().chain(&results[0].confirmed) {
        assert!((23_456.0 * 0.94..=23_456.0).contains(rate), "{rate}");
    }
    assert!((results[0].upstream_per_query - 2.0).abs() < 1e-9);
    assert!(!results[0].censored);
    let test = procedure.self_test().unwrap();
    assert!(test.sufficient && (test.device_qps - test.certified_qps / 2.2).abs() <= 1.0, "{test:?}");
    let curve = procedure.trials().iter().filter(|trial| trial.purpose == Purpose::Curve).count();
    assert_eq!(curve, 4);
    assert_eq!(procedure.trials_left(), 0);
}

#[test]
fn all_repetitions_begin_at_one_rate_whatever_the_others_found() {
    let mut procedure = procedure(&format!("{QUICK}[search]\nrepetitions = 20\n"));
    let mut device = Noisy { capacity_qps: 23_456.0, width: 0.05, rng: SplitMix64::new(1) };
    while let Some(mut event) = world().step(&procedure) {
        if let Event::Trial(trial) = &mut event
            && !trial.purpose.is_self_test()
        {
            trial.outcome.verdict = device.trial(trial.rate_qps, 0);
        }
        procedure.record(event).unwrap();
    }
    let first = |repetition: u32| {
        let is_of = |trial: &&Trial| trial.purpose == Purpose::Search && trial.repetition == repetition;
        procedure.trials().iter().find(is_of).map(|trial| trial.rate_qps)
    };
    // The start, 2,000, times a power of two.
    assert!((0..20).all(|repetition| first(repetition) == Some(16_000.0)));
    let result = &procedure.results()[0];
    assert!(result.summary.deviation > 0.0, "the results differ: {result:?}");
    // The scout counts in no result: 2,000 to 16,000, and 32,000 twice.
    let scouted = procedure.trials().iter().filter(|trial| trial.purpose == Purpose::Scout);
    assert_eq!(scouted.map(|trial| trial.rate_qps).collect::<Vec<_>>(), [2e3, 4e3, 8e3, 16e3, 32e3, 32e3]);
}

#[test]
fn no_device_is_measured_beyond_the_testers_certificate() {
    let mut procedure = procedure(QUICK);
    World { tester_qps: 30_000.0, ..world() }.run(&mut procedure);
    let ceiling = procedure.self_test().unwrap().device_qps;
    assert!((10_000.0..=30_000.0 / 2.2).contains(&ceiling), "{ceiling}");
    assert!(procedure.trials().iter().all(|trial| trial.purpose.is_self_test() || trial.rate_qps <= ceiling));
    let results = procedure.results();
    assert!(results[0].censored);
    assert!((results[0].summary.median - ceiling).abs() <= 0.01 * ceiling, "{results:?}");
}

#[test]
fn a_strict_result_is_no_bound_because_the_confirmed_search_went_further() {
    // The device loses something once, in the first trial of the search, at 64,000, and passes every permitted rate
    // otherwise.
    let mut procedure = procedure(&format!("{QUICK}[search]\nmax = 100000\nrepetitions = 1\n"));
    let world = World { capacity_qps: |_| f64::INFINITY, ..world() };
    let mut lost = false;
    loop {
        let event = match procedure.next() {
            Action::Trial(task) => {
                let mut trial = world.play(&task, 1.5);
                if !lost && task.purpose == Purpose::Search {
                    assert_eq!(task.rate_qps, 64_000.0);
                    (lost, trial.outcome.verdict) = (true, Verdict::Fail);
                }
                Event::Trial(trial)
            }
            Action::Check(..) => Event::Check {
                found: Correctness { names: 9, valid: 9, ..Correctness::default() },
                names_used: 9,
            },
            _ => break,
        };
        procedure.record(event).unwrap();
    }
    let result = &procedure.results()[0];
    assert!(result.strict[0] < 64_000.0 && result.confirmed[0] == 100_000.0, "{result:?}");
    assert!(!result.censored, "62,xxx is what the letter gives, not a bound of it");
}

#[test]
fn an_authority_that_runs_already_is_asked_for_what_it_has() {
    let mut procedure = procedure(
        "profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n[authority]\nexternal = true\naddress = \"[::1]:53\"\n",
    );
    world().run(&mut procedure);
    assert_eq!(procedure.next(), Action::Done);
    assert!(procedure.trials().iter().all(|trial| trial.cell.aaaa_share == 0.0));
}

#[test]
fn a_tester_that_fails_everywhere_stops_the_run() {
    let mut procedure = procedure(QUICK);
    World { tester_qps: 0.0, ..world() }.run(&mut procedure);
    assert!(matches!(procedure.next(), Action::Stop(why) if why.contains("self-test")));
}

/// The tester's host stalls in these trials of the self-test, counted from 0. Returns the estimated trials that are left
/// after each trial of the self-test, and the number of its trials.
fn stalling_self_test(procedure: &mut Procedure, stalls: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut left = Vec::new();
    while let Some(mut event) = world().step(procedure) {
        let is_self_test = matches!(&event, Event::Trial(trial) if trial.purpose.is_self_test());
        if let Event::Trial(trial) = &mut event
            && is_self_test
            && (stalls(left.len()) || trial.rate_qps > TEST_CAPACITY_QPS)
        {
            trial.outcome.verdict = Verdict::TesterLimited;
        }
        procedure.record(event).unwrap();
        if is_self_test {
            left.push(procedure.trials_left());
        }
        if procedure.self_test().is_some() {
            break;
        }
    }
    left
}

#[test]
fn a_stall_of_the_host_in_the_self_test_costs_a_trial_and_changes_no_certificate() {
    let (mut steady, mut stalling) = (procedure(QUICK), procedure(QUICK));
    let without = stalling_self_test(&mut steady, |_| false).len();
    let with = stalling_self_test(&mut stalling, |trial| trial % 3 == 0).len();
    assert_eq!(stalling.self_test(), steady.self_test());
    assert!(steady.self_test().unwrap().certified_qps > 0.8 * TEST_CAPACITY_QPS);
    assert!(with > without, "{with} {without}");
}

#[test]
fn the_estimate_learns_from_the_trials_of_the_self_test() {
    // Two of three trials are lost to stalls, so each rate takes three.
    let text =
        "profile = \"rfc8219\"\n[search]\nrepetitions = 1\ncurve = []\n[device]\ntemplate = \"sixfold\"\n";
    let mut procedure = procedure(text);
    let left = stalling_self_test(&mut procedure, |trial| trial % 3 < 2);
    let after = procedure.trials_left();
    for (done, estimate) in left.iter().enumerate().skip(5) {
        let really = (left.len() - done - 1) as u32;
        // What follows the self-test is not estimated here.
        let estimate = estimate.saturating_sub(after);
        assert!(
            estimate <= 2 * really + 6 && 2 * estimate + 6 >= really,
            "after {done}: {estimate}, {really} came"
        );
    }
    let mut steady = self::procedure(text);
    let first = steady.trials_left();
    stalling_self_test(&mut steady, |_| false);
    assert!(left[5] + 6 > first, "{} after six trials, {first} before any: stalls make it longer", left[5]);
}

#[test]
fn no_name_comes_to_the_device_twice() {
    let mut procedure = procedure(QUICK);
    let events = world().run(&mut procedure);
    let mut end = 0;
    for event in events {
        match event {
            Event::Trial(trial) if trial.purpose.is_self_test() => {}
            Event::Trial(trial) => {
                assert!(trial.first_name >= end);
                end = trial.first_name + trial.outcome.names_used;
            }
            Event::Check { names_used, .. } => end += names_used,
            Event::Surroundings(_) | Event::Resumed => {}
        }
    }
    assert_eq!(procedure.rounds(), 0);
}

#[test]
fn a_window_that_is_used_up_begins_anew_and_that_is_told() {
    let mut procedure = procedure(&format!("{QUICK}[names]\nwindow = \"10.0.0.0/16\"\n"));
    let (mut end, mut rounds) = (0, 0);
    while let Some(event) = world().step(&procedure) {
        let next = procedure.next();
        procedure.record(event).unwrap();
        let Action::Trial(task) = next else { continue };
        if task.purpose.is_self_test() {
            continue;
        }
        // Names repeat only for a device that was restarted.
        assert_eq!(task.setup.fresh, task.first_name < end, "{task:?}");
        rounds += u32::from(task.setup.fresh);
        end = task.first_name + procedure.trials().last().unwrap().outcome.names_used;
    }
    assert!(rounds > 0 && procedure.rounds() == rounds);
}

#[test]
fn every_trial_finds_its_names_before_the_end_of_the_window() {
    // Rates double after a small check, cells with cached names need a warm-up, and the curve goes up to three times
    // the result: in every case, a load without enough names would be refused.
    for window in ["10.0.0.0/16", "10.0.0.0-10.1.34.56", "10.0.0.0/14"] {
        let mut procedure = procedure(&format!(
            "profile = \"quick\"\n[names]\nwindow = \"{window}\"\n[grid]\ncached = [0, 0.6]\n[search]\nstart = 200\n\
             curve = [0.5, 3]\n[device]\ntemplate = \"sixfold\"\n"
        ));
        let names = procedure.plan().names.for_trials();
        let mut end = 0;
        for event in world().run(&mut procedure) {
            let Event::Trial(trial) = event else { continue };
            let needed = procedure.plan().names_needed(trial.rate_qps, trial.cell);
            assert!(
                trial.first_name + needed <= procedure.plan().names.window.names(),
                "{window}: {trial:?}"
            );
            if !trial.purpose.is_self_test() {
                assert!(trial.first_name + needed <= names, "{window}: {trial:?}");
                assert!(trial.first_name >= end || trial.first_name == 0, "{window}: {trial:?}");
                end = trial.first_name + trial.outcome.names_used;
            }
        }
        assert_eq!(procedure.next(), Action::Done);
    }
}

#[test]
fn a_run_that_is_told_what_another_did_goes_on_where_that_stopped() {
    let mut whole = procedure(QUICK);
    let events = world().run(&mut whole);
    for cut in 0..=events.len() {
        let mut resumed = procedure(QUICK);
        for event in &events[..cut] {
            resumed.record(event.clone()).unwrap();
        }
        if cut % 7 == 0 || cut == events.len() {
            world().run(&mut resumed);
            assert_eq!(resumed.results(), whole.results(), "after {cut} of {} events", events.len());
        }
    }
}

#[test]
fn names_that_an_interrupted_trial_may_have_asked_are_not_asked_again() {
    let mut whole = procedure(QUICK);
    let events = world().run(&mut whole);
    for cut in 0..events.len() {
        let mut resumed = procedure(QUICK);
        for event in &events[..cut] {
            resumed.record(event.clone()).unwrap();
        }
        let (before, spared) = (resumed.next(), resumed.next_name);
        resumed.record(Event::Resumed).unwrap();
        match (before, resumed.next()) {
            (Action::Trial(one), Action::Trial(other)) if !one.purpose.is_self_test() => {
                let asked = resumed.plan().names_needed(one.rate_qps, one.cell);
                assert_eq!(other, Task { first_name: one.first_name + asked, ..one.clone() });
            }
            (Action::Check(_, one), Action::Check(_, other)) => {
                assert_eq!(other, one + u64::from(resumed.plan().correctness.names));
            }
            (one, other) => assert_eq!((one, resumed.next_name), (other, spared)),
        }
        if cut % 9 == 0 {
            world().run(&mut resumed);
            assert_eq!(resumed.results(), whole.results());
        }
    }
}

#[test]
fn recorded_surroundings_change_nothing_else() {
    let mut procedure = procedure(QUICK);
    let next = procedure.next();
    let known = Surroundings { authority: "[::1]:5300".to_owned(), ..Surroundings::default() };
    procedure.record(Event::Surroundings(known.clone())).unwrap();
    assert_eq!((procedure.surroundings(), procedure.next()), (&known, next));
}

#[test]
fn events_of_another_plan_are_refused() {
    let mut whole = procedure(QUICK);
    let events = world().run(&mut whole);
    let mut other = procedure(&format!("{QUICK}[search]\nstart = 3000\n"));
    let refused = events.into_iter().find_map(|event| other.record(event).err());
    assert_eq!(refused, Some(EventMismatch));
}

#[test]
fn every_value_of_the_sweep_and_every_cell_gets_a_result() {
    let text = format!(
        "{QUICK}[sweep]\nparameter = \"workers\"\nvalues = [\"1\", \"2\"]\n[grid]\naaaa = [0, 0.5]\ncached = [0, 1]\n"
    );
    let mut procedure = procedure(&text);
    World { capacity_qps: |workers| 10_000.0 * workers.parse::<f64>().unwrap(), ..world() }
        .run(&mut procedure);
    let results = procedure.results();
    assert_eq!(results.len(), 6);
    for result in &results {
        let capacity = 10_000.0 * result.sweep.parse::<f64>().unwrap();
        assert!((capacity * 0.94..=capacity).contains(&result.summary.median), "{result:?}");
    }
}

#[test]
fn a_device_that_answers_wrongly_is_not_timed() {
    let mut procedure = procedure(QUICK);
    assert!(matches!(procedure.next(), Action::Check(..)), "before the self-test, which may take an hour");
    let found = Correctness {
        names: 200,
        valid: 199,
        invalid: [("address".to_owned(), 1)].into(),
        ..Correctness::default()
    };
    procedure.record(Event::Check { found, names_used: 200 }).unwrap();
    assert!(matches!(procedure.next(), Action::Stop(why) if why.contains("1 address")));
}

#[test]
fn a_check_that_asked_nothing_shows_nothing() {
    let mut procedure = procedure(QUICK);
    for _ in 0..3 {
        procedure.record(Event::Check { found: Correctness::default(), names_used: 0 }).unwrap();
    }
    assert!(matches!(procedure.next(), Action::Stop(_)));
}

#[test]
fn a_check_that_lost_a_query_is_done_again() {
    let mut procedure = procedure(QUICK);
    let found = Correctness {
        names: 200,
        valid: 199,
        invalid: [("lost".to_owned(), 1)].into(),
        ..Correctness::default()
    };
    for _ in 0..2 {
        procedure.record(Event::Check { found: found.clone(), names_used: 200 }).unwrap();
        assert!(matches!(procedure.next(), Action::Check(..)));
    }
    procedure.record(Event::Check { found, names_used: 200 }).unwrap();
    assert!(
        matches!(procedure.next(), Action::Trial(_)),
        "199 of 200 three times: a lossy way, not a wrong server"
    );
}

#[test]
fn the_procedure_of_the_papers_bisects_from_zero_and_restarts_the_device_at_each_step() {
    let text = "profile = \"quick\"\nprocedure = \"lencse2017\"\n[device]\ntemplate = \"bind\"\n";
    let mut procedure = procedure(text);
    // The paper's median with 8 threads.
    let world = World { capacity_qps: |_| 8_542.0, ..world() };
    let mut rates = Vec::new();
    while let Some(event) = world.step(&procedure) {
        if let Action::Trial(task) = procedure.next()
            && !task.purpose.is_self_test()
        {
            assert!(task.setup.fresh && task.purpose == Purpose::Search, "{task:?}");
            rates.push(task.rate_qps);
        }
        procedure.record(event).unwrap();
    }
    assert_eq!(rates[..6], [8_192.0, 12_288.0, 10_240.0, 9_216.0, 8_704.0, 8_448.0]);
    assert_eq!(rates.len(), 4 * 14);
    let result = &procedure.results()[0];
    assert_eq!((&*result.strict, result.censored), (&[8_542.0; 4][..], false));
    assert!(result.confirmed.is_empty());
    assert_eq!(procedure.self_test().unwrap().device_qps, 16_384.0);
}

#[test]
fn a_bisection_whose_upper_end_is_not_certified_is_not_begun() {
    let text = "profile = \"quick\"\nprocedure = \"lencse2017\"\n[device]\ntemplate = \"bind\"\n";
    let mut procedure = procedure(text);
    World { tester_qps: 20_000.0, ..world() }.run(&mut procedure);
    assert!(procedure.trials().iter().all(|trial| trial.purpose.is_self_test()));
    let Action::Stop(why) = procedure.next() else { panic!("it stops") };
    assert!(why.contains("lower search.max"), "{why}");
}

#[test]
fn restarts_come_as_often_as_planned() {
    for (restart, expected) in [("never", 0), ("repetition", 5), ("trial", usize::MAX)] {
        let mut procedure = procedure(&format!("{QUICK}restart = \"{restart}\"\n"));
        let (mut fresh, mut trials) = (0, 0);
        for _ in 0..1_000 {
            match procedure.next() {
                Action::Trial(task) => {
                    if task.setup.device.is_some() {
                        trials += 1;
                        fresh += usize::from(task.setup.fresh);
                    }
                    procedure.record(Event::Trial(world().play(&task, 1.5))).unwrap();
                }
                Action::Check(..) => {
                    let found = Correctness { names: 200, valid: 200, ..Correctness::default() };
                    procedure.record(Event::Check { found, names_used: 200 }).unwrap();
                }
                _ => break,
            }
        }
        // Before each of the 4 searches and before the curve. The first trial after the check uses the device that was checked; with `trial`, all others use a restarted
        // one.
        let expected = if expected == usize::MAX { trials } else { expected };
        assert!(fresh == expected || fresh + 1 == expected, "{restart}: {fresh} of {trials}");
    }
}

#[test]
fn the_estimate_is_near_what_was_needed() {
    let mut procedure = procedure("profile = \"rfc8219\"\n[device]\ntemplate = \"sixfold\"\n");
    let estimate = procedure.trials_left();
    let events = world().run(&mut procedure);
    let needed = events.iter().filter(|event| matches!(event, Event::Trial(_))).count() as u32;
    assert!((needed / 2..=needed * 2).contains(&estimate), "{estimate} estimated, {needed} needed");
}

#[test]
fn the_time_of_cells_with_cached_names_counts_their_warm_up() {
    // Of 4 cells 3 are warmed up for 3 s, before trials of 1.5 s.
    let mut procedure = procedure(&format!("{QUICK}[grid]\ncached = [0, 0.2, 0.6, 1]\n"));
    let (trials, time) = (f64::from(procedure.trials_left()), procedure.time_left().as_secs_f64());
    let one = 1.5 + 0.3 + 0.5;
    assert!((trials * one..=trials * (one + 3.0)).contains(&time), "{time} s for {trials} trials");
    assert!(time > 1.5 * trials * one, "{time} s for {trials} trials");
    world().run(&mut procedure);
    assert_eq!((procedure.trials_left(), procedure.time_left()), (0, Duration::ZERO));
    let at_device = procedure.trials().iter().filter(|trial| !trial.purpose.is_self_test());
    let cached = at_device.filter(|trial| trial.cell.cached_share > 0.0).count() as f64;
    let planned = procedure.time_planned(0).as_secs_f64();
    assert!((planned - procedure.trials().len() as f64 * one - 3.0 * cached).abs() < 1e-6, "{planned}");
}

#[test]
fn no_rate_is_tried_whose_queries_the_tester_cannot_remember() {
    let mut procedure = procedure(&format!("{QUICK}[trial]\ntimeout = \"60s\"\n"));
    let world = World { capacity_qps: |_| f64::INFINITY, tester_qps: f64::INFINITY };
    world.run(&mut procedure);
    for trial in procedure.trials() {
        let timeout_s = if trial.purpose.is_self_test() { 15.0 } else { 60.0 };
        assert!(trial.rate_qps * 3.0 * timeout_s <= f64::from(1 << 25), "{trial:?}");
    }
}

#[test]
fn numbers_of_a_damaged_journal_do_no_harm() {
    let mut procedure = procedure(QUICK);
    let most = Correctness {
        names: u64::MAX,
        valid: u64::MAX - 7,
        invalid: [("lost".to_owned(), u64::MAX), ("address".to_owned(), u64::MAX), ("flags".to_owned(), 9)]
            .into(),
        ..Correctness::default()
    };
    let before = procedure.clone();
    procedure.record(Event::Check { found: most, names_used: u64::MAX }).unwrap();
    assert!(matches!(procedure.next(), Action::Stop(_)));
    let mut procedure = before;
    for _ in 0..60 {
        let Some(mut event) = world().step(&procedure) else { break };
        if let Event::Trial(trial) = &mut event {
            trial.outcome.sent = u64::MAX;
            trial.outcome.names_used = u64::MAX;
            trial.authority.values_mut().for_each(|count| *count = u64::MAX);
        }
        procedure.record(event).unwrap();
        procedure.results();
    }
}
