//! Results of a run from its repetitions and trials, and the estimate of the remaining work.

use super::{FAILURES, Procedure, Repetition, Stage};
use crate::outcome::Verdict;
use crate::run::{ASKED_A, ASKED_AAAA, Cell, CellResult, LossGoal, Purpose, Summary, Trial};
use crate::search::Found;
use std::collections::BTreeMap;
use std::time::Duration;

/// Rates that the estimate assumes before anything was measured: for one core of a server, and for one core of a
/// tester. The number of trials depends on their logarithm, so a factor of two is one trial.
const TYPICAL_QPS: f64 = 20_000.0;
const TYPICAL_CERTIFICATE_QPS: f64 = 250_000.0;

/// Trials of the self-test of a cell: some doublings, and three halvings of the last of them to its precision of 10 %.
const CERTIFICATE_TRIALS: u32 = 7;

/// Trials for each goal of the loss ratio: its rate lies near that without loss, and the trials up to there are known.
const GOAL_TRIALS: f64 = 3.0;

/// Extra trials of each search, because real devices are noisy.
const NOISE: f64 = 2.0;

/// One result per value of the sweep and cell.
pub(super) fn results(procedure: &Procedure) -> Vec<CellResult> {
    let places = (0..procedure.sweeps())
        .flat_map(|sweep| (0..procedure.plan.cells.len()).map(move |cell| (sweep, cell)));
    places.filter_map(|(sweep, cell)| result(procedure, sweep, cell)).collect()
}

fn repetitions(procedure: &Procedure, sweep: usize, cell: usize) -> impl Iterator<Item = &Repetition> {
    procedure.repetitions.iter().filter(move |it| it.sweep == sweep && it.cell == cell)
}

/// Strict and confirmed rates of the repetitions of a cell.
pub(super) fn rates(procedure: &Procedure, sweep: usize, cell: usize) -> impl Iterator<Item = f64> {
    let confirm = procedure.plan.search.confirm;
    repetitions(procedure, sweep, cell)
        .map(move |it| if confirm { it.strict_qps.max(it.confirmed_qps) } else { it.strict_qps })
}

fn result(procedure: &Procedure, sweep: usize, cell: usize) -> Option<CellResult> {
    let strict: Vec<f64> = repetitions(procedure, sweep, cell).map(|it| it.strict_qps).collect();
    if strict.is_empty() {
        return None;
    }
    let confirmed: Vec<f64> = if procedure.plan.search.confirm {
        repetitions(procedure, sweep, cell).map(|it| it.confirmed_qps).collect()
    } else {
        Vec::new()
    };
    let best = best_trials(procedure, sweep, cell);
    let shares = Shares::of(&best);
    let mut costs: Vec<f64> =
        best.iter().filter_map(|trial| trial.device.as_ref()).map(|used| used.cpu_us_per_query).collect();
    costs.retain(|cost| cost.is_finite());
    Some(CellResult {
        sweep: procedure.sweep_value(sweep).to_owned(),
        cell: procedure.plan.cells[cell],
        summary: Summary::of(&strict),
        confirmed_summary: Summary::of(&confirmed),
        censored: repetitions(procedure, sweep, cell).any(|it| it.censored),
        upstream_per_query: shares.upstream_per_query,
        achieved_cached_share: shares.cached,
        achieved_aaaa_share: shares.aaaa,
        tester_limited_trials: count(procedure, sweep, cell, Verdict::TesterLimited),
        starved_trials: count(procedure, sweep, cell, Verdict::DeviceStarved),
        cpu_us_per_query: (!costs.is_empty()).then(|| Summary::of(&costs).median),
        certificate: procedure.certificates.get(&(sweep, cell)).copied(),
        loss_goals: loss_goals(procedure, sweep, cell),
        strict,
        confirmed,
    })
}

/// The results for the goals of the loss ratio.
fn loss_goals(procedure: &Procedure, sweep: usize, cell: usize) -> Vec<LossGoal> {
    let goals = procedure.plan.search.loss_goals.iter().enumerate();
    let of = |at: usize| repetitions(procedure, sweep, cell).filter_map(move |it| it.goals.get(at));
    goals
        .map(|(at, goal)| {
            let rates: Vec<f64> = of(at).map(|found| found.rate_qps).collect();
            let (summary, censored) = (Summary::of(&rates), of(at).any(|found| found.censored));
            LossGoal { goal: *goal, rates, summary, censored }
        })
        .collect()
}

/// Number of trials of the searches of a result that ended with this verdict.
fn count(procedure: &Procedure, sweep: usize, cell: usize, verdict: Verdict) -> u32 {
    let (value, shares) = (procedure.sweep_value(sweep), procedure.plan.cells[cell]);
    let is_mine =
        |trial: &&Trial| is_of_search(trial.purpose) && trial.sweep == value && trial.cell == shares;
    let mine = procedure.trials.iter().filter(is_mine);
    mine.filter(|trial| trial.outcome.verdict == verdict).count() as u32
}

/// For each repetition the passed trial with the highest rate.
pub(super) fn best_trials(procedure: &Procedure, sweep: usize, cell: usize) -> Vec<&Trial> {
    let (value, shares) = (procedure.sweep_value(sweep), procedure.plan.cells[cell]);
    let mut best: Vec<Option<&Trial>> = vec![None; procedure.plan.search.repetitions as usize];
    for trial in &procedure.trials {
        let counts =
            is_of_search(trial.purpose) && trial.sweep == value && trial.cell == shares && trial.passed();
        if counts
            && let Some(best) = best.get_mut(trial.repetition as usize)
            && best.is_none_or(|best| best.rate_qps <= trial.rate_qps)
        {
            *best = Some(trial);
        }
    }
    best.into_iter().flatten().collect()
}

/// Shares of a cell according to the authority's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shares {
    upstream_per_query: f64,
    cached: f64,
    aaaa: f64,
}

impl Shares {
    /// Every name that the device did not have cached causes an AAAA query to the authority, and an A query if it has
    /// no AAAA record. The counters include the warm-up, whose names are all new: these are subtracted.
    fn of(trials: &[&Trial]) -> Shares {
        let (mut sent, mut fresh, mut new, mut aaaa, mut a) = (0u64, 0u64, 0u64, 0u64, 0u64);
        for trial in trials.iter().filter(|trial| !trial.authority.is_empty()) {
            let outcome = &trial.outcome;
            sent = sent.saturating_add(outcome.sent);
            fresh = fresh.saturating_add(outcome.sent.saturating_sub(outcome.asked_again));
            new = new.saturating_add(outcome.names_used);
            aaaa = aaaa.saturating_add(trial.authority.get(ASKED_AAAA).copied().unwrap_or(0));
            a = a.saturating_add(trial.authority.get(ASKED_A).copied().unwrap_or(0));
        }
        if sent == 0 {
            return Shares::default();
        }
        let before = new.saturating_sub(fresh);
        let missed = aaaa.saturating_sub(before) as f64 / sent as f64;
        // Without upstream queries, the share of names with AAAA records is unknown.
        let asked_a = if aaaa == 0 { 1.0 } else { a as f64 / aaaa as f64 };
        let share = 1.0 - asked_a;
        Shares {
            upstream_per_query: missed * (1.0 + asked_a),
            cached: (1.0 - missed).clamp(0.0, 1.0),
            aaaa: share.clamp(0.0, 1.0),
        }
    }
}

/// The rate to which the curve's points refer: the confirmed median, because a single lost datagram limits the strict
/// one.
pub(super) fn base_qps(procedure: &Procedure, sweep: usize, cell: usize) -> f64 {
    let rates =
        |of: fn(&Repetition) -> f64| -> Vec<f64> { repetitions(procedure, sweep, cell).map(of).collect() };
    let strict = Summary::of(&rates(|it| it.strict_qps)).median;
    if procedure.plan.search.confirm {
        Summary::of(&rates(|it| it.confirmed_qps)).median.max(strict)
    } else {
        strict
    }
}

/// Estimated number of remaining trials and their time, from the trials done so far and, for what they do not show yet,
/// from the plan.
pub(super) fn left(procedure: &Procedure) -> (u32, Duration) {
    if matches!(procedure.stage, Stage::Done | Stage::Stopped(_)) {
        return (0, Duration::ZERO);
    }
    let plan = &procedure.plan;
    let mut ended: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for repetition in &procedure.repetitions {
        *ended.entry((repetition.sweep, repetition.cell)).or_default() += 1;
    }
    let (per_scout, per_search) = (trials_per_scout(procedure), trials_per_search(procedure));
    let (mut trials, mut seconds) = (0.0, 0.0);
    let mut add = |count: f64, each: Duration| {
        trials += count;
        seconds += count * each.as_secs_f64();
    };
    for sweep in 0..procedure.sweeps() {
        for (cell, shares) in plan.cells.iter().enumerate() {
            let done = ended.get(&(sweep, cell)).copied().unwrap_or(0);
            let mut count = f64::from(plan.search.repetitions.saturating_sub(done)) * per_search;
            match &procedure.stage {
                Stage::Search { sweep: at, cell: of, search, .. } if (*at, *of) == (sweep, cell) => {
                    count -= f64::from(search.trials()).min(per_search - 1.0);
                }
                Stage::Scout { sweep: at, cell: of, search } if (*at, *of) == (sweep, cell) => {
                    count += f64::from(search.trials_left(expected_qps(procedure)));
                }
                _ if done == 0 => count += per_scout,
                _ => {}
            }
            add(count, procedure.time_of(Purpose::Search, *shares));
        }
    }
    let points = plan.search.curve.len() * procedure.sweeps();
    let shown = procedure.trials.iter().filter(|it| it.purpose == Purpose::Curve).count();
    add((points - shown.min(points)) as f64, procedure.time_of(Purpose::Curve, plan.cells[0]));
    let searches = procedure.sweeps() * plan.cells.len() * plan.search.repetitions as usize;
    let open = searches.saturating_sub(procedure.repetitions.len()) * plan.search.loss_goals.len();
    add(open as f64 * GOAL_TRIALS, procedure.time_of(Purpose::LossGoal, plan.cells[0]));
    if plan.search.certify {
        for sweep in 0..procedure.sweeps() {
            for cell in 0..plan.cells.len() {
                let count = match &procedure.stage {
                    Stage::Certify(at) if (at.sweep, at.cell) == (sweep, cell) => {
                        at.search.trials_left(certified_qps(procedure))
                    }
                    _ if procedure.certificates.contains_key(&(sweep, cell)) => 0,
                    _ => CERTIFICATE_TRIALS,
                };
                add(f64::from(count), procedure.time_of(Purpose::CellSelfTest, plan.cells[cell]));
            }
        }
    }
    if procedure.self_test.is_none() {
        let count = match &procedure.stage {
            Stage::SelfTest(search) => search.trials_left(TYPICAL_CERTIFICATE_QPS),
            _ => procedure.self_test_limits().trials(TYPICAL_CERTIFICATE_QPS, FAILURES),
        };
        let is_mine = |purpose| purpose == Purpose::SelfTest;
        add(
            f64::from(count) * attempts(procedure, is_mine),
            procedure.time_of(Purpose::SelfTest, Cell::default()),
        );
    }
    (trials.ceil() as u32, Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Trials for each verdict so far: more than 1 if inconclusive trials were repeated.
fn attempts(procedure: &Procedure, is_mine: impl Fn(Purpose) -> bool) -> f64 {
    let mine: Vec<&Trial> = procedure.trials.iter().filter(|trial| is_mine(trial.purpose)).collect();
    let is_repeat =
        |pair: &&[&Trial]| pair[0].outcome.verdict.is_inconclusive() && pair[0].rate_qps == pair[1].rate_qps;
    let repeats = mine.windows(2).filter(is_repeat).count();
    if mine.is_empty() { 1.0 } else { mine.len() as f64 / (mine.len() - repeats) as f64 }
}

/// The rate at which a self-test is expected to end.
fn certified_qps(procedure: &Procedure) -> f64 {
    procedure.self_test.as_ref().map_or(TYPICAL_CERTIFICATE_QPS, |test| test.certified_qps)
}

fn is_of_search(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Search | Purpose::Confirm)
}

/// The rate at which a search is expected to end.
fn expected_qps(procedure: &Procedure) -> f64 {
    procedure.repetitions.last().map_or(TYPICAL_QPS, |last| last.confirmed_qps)
}

fn trials_per_scout(procedure: &Procedure) -> f64 {
    let scout = procedure.search_limits().scout();
    scout.map_or(0.0, |limits| f64::from(limits.trials(expected_qps(procedure), FAILURES)))
}

/// Trials per search: those of the searches that have ended, or those of a steady device, and some more.
fn trials_per_search(procedure: &Procedure) -> f64 {
    let ended = procedure.repetitions.len();
    if ended > 0 {
        let running = match &procedure.stage {
            Stage::Search { search, .. } => search.trials(),
            _ => 0,
        };
        let all = procedure.trials.iter().filter(|trial| is_of_search(trial.purpose)).count();
        return (all - (running as usize).min(all)) as f64 / ended as f64;
    }
    let limits = match &procedure.stage {
        Stage::Search { limits, .. } => *limits,
        _ => procedure.search_limits().from_scout(&Found { rate_qps: TYPICAL_QPS, ..Found::default() }),
    };
    let device = |purpose| purpose == Purpose::Scout || is_of_search(purpose);
    (f64::from(limits.trials(TYPICAL_QPS, procedure.failures())) + NOISE) * attempts(procedure, device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn trial(sent: u64, asked_again: u64, names_used: u64, aaaa: u64, a: u64) -> Trial {
        let outcome = Outcome { sent, asked_again, names_used, ..Outcome::default() };
        let authority = [(ASKED_AAAA.to_owned(), aaaa), (ASKED_A.to_owned(), a)].into();
        Trial { outcome, authority, ..Trial::default() }
    }

    #[test]
    fn the_required_cell_asks_two_questions_upstream_per_query() {
        let shares = Shares::of(&[&trial(1_000, 0, 1_000, 1_000, 1_000)]);
        assert_eq!(shares, Shares { upstream_per_query: 2.0, cached: 0.0, aaaa: 0.0 });
    }

    #[test]
    fn shares_follow_from_the_authoritys_counters() {
        // 400 of 1,000 names repeated and cached; 300 names queried before the measured time; a fifth has AAAA
        // records.
        let shares = Shares::of(&[&trial(1_000, 400, 900, 900, 720)]);
        assert!((shares.cached - 0.4).abs() < 1e-9, "{shares:?}");
        assert!((shares.aaaa - 0.2).abs() < 1e-9, "{shares:?}");
        // (1 - 0.4) x (2 - 0.2)
        assert!((shares.upstream_per_query - 1.08).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn a_cell_that_asks_nothing_upstream_is_cached_wholly() {
        let shares = Shares::of(&[&trial(1_000, 1_000, 0, 0, 0)]);
        assert_eq!(shares, Shares { upstream_per_query: 0.0, cached: 1.0, aaaa: 0.0 });
    }

    #[test]
    fn without_counters_nothing_is_claimed() {
        let mut silent = trial(10, 0, 10, 0, 0);
        silent.authority.clear();
        assert_eq!(Shares::of(&[&silent]), Shares::default());
    }
}
