//! Procedure of a whole run as a state machine without I/O: it returns the next action, and records the result of
//! each.
//!
//! 1. Correctness check of the device's answers, so that a misconfiguration shows within seconds.
//! 2. Self-test (RFC 8219 section 9.2.1): tester against authority, which gives the highest rate at which a device may be
//!    measured.
//! 3. For each value of the sweep: a check, from the second one on; for each cell a short search for the rate at which
//!    all repetitions begin (the scout), the repetitions, each a search for the highest rate without loss, and the self-test
//!    again with the traffic that the authority received from the device; for the required cell the curve of loss against
//!    rate.
//!
//! No repetition knows the result of another one: they are independent, as the rank test of a comparison demands.
//!
//! The next action depends only on the plan and the recorded events. So an interrupted run continues with a new
//! procedure in which the old events are recorded again.

use crate::outcome::Verdict;
use crate::plan::{Plan, Restart};
use crate::run::{
    Bisection, Cell, CellResult, Certificate, Correctness, Device, Environment, Equipment, Participant,
    Purpose, SelfTest, TrafficForm, Trial,
};
use crate::search::{GoalFound, GoalSearch, Limits, Method, Search, Step};
use certificate::Certification;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

mod certificate;
#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod goal_tests;
mod results;
#[cfg(test)]
mod tests;

/// Attempts of a correctness check that lost queries, before the loss counts.
const CHECKS: u32 = 3;

/// Largest number of steps of a search: doubling from 1 to 10^8 takes 27, bisecting to 0.01 % another 14, and as many
/// again for confirmation and for repeating trials that a stalled tester spoiled.
const STEPS_MAX: u32 = 120;

/// Failed trials at a rate before a failure counts in the confirmed variant.
const FAILURES: u32 = 2;

/// The self-test ends when its interval is at most this share of its upper end: the certificate is a bound, not a
/// result.
const SELF_TEST_PRECISION: f64 = 0.2;

/// State of device and authority that an action needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Value of the swept parameter; empty without a sweep. `None`: no device takes part.
    pub device: Option<String>,
    /// True if the device must be restarted although it is running.
    pub fresh: bool,
    /// Share of names with AAAA records that the authority must serve.
    pub aaaa_share: f64,
}

/// One load.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its purpose.
    pub purpose: Purpose,
    /// Required state of device and authority.
    pub setup: Setup,
    /// The cell.
    pub cell: Cell,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The rate in queries per second.
    pub rate_qps: f64,
    /// Number of its first name in the range.
    pub first_name: u64,
    /// The form of the tester's traffic; `None`: that of the plan.
    pub form: Option<TrafficForm>,
    /// Number of the value of the sweep that it belongs to, also if no device takes part; 0 without a sweep.
    pub sweep: usize,
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run a load and record its [`Trial`].
    Trial(Task),
    /// Query this number of names at a low rate and record the [`Correctness`].
    Check(Setup, u64),
    /// Nothing more: everything is done.
    Done,
    /// Stop: the run cannot continue. The text gives the reason and the remedy.
    Stop(String),
}

/// A recorded event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all events are trials, and there are some hundred of them"
)]
pub enum Event {
    /// A trial, including those of the self-test.
    Trial(Trial),
    /// A correctness check.
    Check {
        /// Its result.
        found: Correctness,
        /// Number of names that were queried for the first time.
        names_used: u64,
    },
    /// The participants, recorded when they become known or change. It does not influence the next action.
    Surroundings(Surroundings),
    /// The run was resumed after an interruption. The interrupted action may have queried its names already, and a
    /// device that kept running would have them cached.
    Resumed,
}

/// The participants of a run, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The device as it was started last.
    pub device: Device,
    /// The hosts by role.
    pub hosts: BTreeMap<String, Environment>,
    /// Address of the authority; empty: unknown.
    pub authority: String,
    /// Threads, ports and cores of tester and authority; `None`: unknown yet.
    #[serde(default)]
    pub equipment: Option<Equipment>,
    /// Sockets, threads and cores by role, as the kernel reports them.
    #[serde(default)]
    pub participants: BTreeMap<String, Participant>,
    /// Facts that a reader must know before relying on a number.
    pub warnings: Vec<String>,
}

/// The finished search of one repetition.
#[derive(Clone, Debug)]
struct Repetition {
    sweep: usize,
    cell: usize,
    strict_qps: f64,
    confirmed_qps: f64,
    /// True if the strict rate is only a lower bound of the true value.
    censored: bool,
    /// Results for the goals of the loss ratio.
    goals: Vec<GoalFound>,
}

#[derive(Clone, Debug)]
enum Stage {
    SelfTest(Search),
    Check { sweep: usize, tries: u32 },
    Scout { sweep: usize, cell: usize, search: Search },
    Search { sweep: usize, cell: usize, repetition: u32, limits: Limits, search: Search },
    Goals { sweep: usize, cell: usize, repetition: u32, limits: Limits, search: GoalSearch },
    Certify(Certification),
    Curve { sweep: usize, point: usize },
    Done,
    Stopped(String),
}

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Procedure {
    plan: Plan,
    stage: Stage,
    /// The next name that the device was not queried for in this round.
    next_name: u64,
    /// Number of times that the name range was used up.
    rounds: u32,
    /// True if the device must be restarted before the next trial.
    needs_restart: bool,
    self_test: Option<SelfTest>,
    correctness: Option<Correctness>,
    surroundings: Surroundings,
    trials: Vec<Trial>,
    repetitions: Vec<Repetition>,
    /// Certificates by value of the sweep and cell.
    certificates: BTreeMap<(usize, usize), Certificate>,
}

impl Procedure {
    /// The beginning of a run.
    pub fn new(plan: Plan) -> Procedure {
        Procedure {
            plan,
            stage: Stage::Check { sweep: 0, tries: 0 },
            next_name: 0,
            rounds: 0,
            needs_restart: false,
            self_test: None,
            correctness: None,
            surroundings: Surroundings::default(),
            trials: Vec::new(),
            repetitions: Vec::new(),
            certificates: BTreeMap::new(),
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All trials so far.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The tester's certificate, if it is known yet.
    pub fn self_test(&self) -> Option<&SelfTest> {
        self.self_test.as_ref()
    }

    /// Result of the latest correctness check.
    pub fn correctness(&self) -> Option<&Correctness> {
        self.correctness.as_ref()
    }

    /// The participants, as recorded last.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Number of times that all names of the range were used up and the range began again.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// One result per value of the sweep and cell, from the finished repetitions.
    pub fn results(&self) -> Vec<CellResult> {
        results::results(self)
    }

    /// The next action.
    pub fn next(&self) -> Action {
        match &self.stage {
            Stage::SelfTest(search) => match search.next() {
                Step::Try { rate_qps, .. } => Action::Trial(Task {
                    purpose: Purpose::SelfTest,
                    setup: Setup { device: None, fresh: false, aaaa_share: self.self_test_share() },
                    cell: Cell { aaaa_share: self.self_test_share(), cached_share: 0.0 },
                    repetition: 0,
                    rate_qps,
                    // No device sees these names, so later trials may use them.
                    first_name: 0,
                    form: None,
                    sweep: 0,
                }),
                Step::Done(_) => Action::Done,
            },
            Stage::Certify(Certification { sweep, cell, known, search, .. }) => match search.next() {
                Step::Try { rate_qps, .. } => Action::Trial(Task {
                    purpose: Purpose::CellSelfTest,
                    setup: Setup { device: None, fresh: false, aaaa_share: known.with_address },
                    cell: self.plan.cells[*cell],
                    repetition: 0,
                    rate_qps,
                    first_name: 0,
                    form: Some(known.form),
                    sweep: *sweep,
                }),
                Step::Done(_) => Action::Done,
            },
            Stage::Check { sweep, .. } => {
                // Half of the names have AAAA records, so that both ways are checked.
                let aaaa_share = if self.plan.authority.external { 0.0 } else { 0.5 };
                let first_name = self.first_name(self.check_names());
                Action::Check(self.setup(*sweep, aaaa_share, first_name), first_name)
            }
            Stage::Scout { sweep, cell, search } => match search.next() {
                Step::Try { rate_qps, .. } => self.task(Purpose::Scout, *sweep, *cell, 0, rate_qps),
                Step::Done(_) => Action::Done,
            },
            Stage::Search { sweep, cell, repetition, search, .. } => match search.next() {
                Step::Try { rate_qps, purpose } => self.task(purpose, *sweep, *cell, *repetition, rate_qps),
                Step::Done(_) => Action::Done,
            },
            Stage::Goals { sweep, cell, repetition, search, .. } => match search.next() {
                Some(rate_qps) => self.task(Purpose::LossGoal, *sweep, *cell, *repetition, rate_qps),
                None => Action::Done,
            },
            Stage::Curve { sweep, point } => {
                self.task(Purpose::Curve, *sweep, 0, 0, self.curve(*sweep)[*point])
            }
            Stage::Done => Action::Done,
            Stage::Stopped(why) => Action::Stop(why.clone()),
        }
    }

    /// Records an event.
    ///
    /// # Errors
    ///
    /// [`EventMismatch`]: it is not the event of the next action. The procedure stays as it was.
    pub fn record(&mut self, event: Event) -> Result<(), EventMismatch> {
        match (self.next(), event) {
            (Action::Trial(task), Event::Trial(trial)) => {
                let fits = task.purpose == trial.purpose
                    && task.rate_qps == trial.rate_qps
                    && task.cell == trial.cell
                    && task.repetition == trial.repetition
                    && task.first_name == trial.first_name
                    && task.setup.device.unwrap_or_default() == trial.sweep;
                if !fits {
                    return Err(EventMismatch);
                }
                if !trial.purpose.is_self_test() {
                    self.use_names(trial.first_name, trial.outcome.names_used);
                }
                let (verdict, loss) = (trial.outcome.verdict, trial.outcome.loss());
                self.trials.push(trial);
                self.advance(task.rate_qps, verdict, loss);
            }
            (Action::Check(_, first_name), Event::Check { found, names_used }) => {
                self.use_names(first_name, names_used);
                self.record_check(found);
            }
            (_, Event::Surroundings(surroundings)) => self.surroundings = surroundings,
            (Action::Check(_, first_name), Event::Resumed) => {
                self.use_names(first_name, self.check_names());
            }
            (Action::Trial(task), Event::Resumed) if !task.purpose.is_self_test() => {
                self.use_names(task.first_name, self.plan.names_needed(task.rate_qps, task.cell));
            }
            (_, Event::Resumed) => {}
            _ => return Err(EventMismatch),
        }
        Ok(())
    }

    /// Estimated number of remaining trials.
    pub fn trials_left(&self) -> u32 {
        results::left(self).0
    }

    /// Estimated remaining time.
    pub fn time_left(&self) -> Duration {
        results::left(self).1
    }

    /// Estimated time of the recorded trials from this number on: compared with a clock, it shows the quality of the
    /// estimate.
    pub fn time_planned(&self, from: usize) -> Duration {
        self.trials.iter().skip(from).map(|trial| self.time_of(trial.purpose, trial.cell)).sum()
    }

    /// Estimated time of a trial.
    fn time_of(&self, purpose: Purpose, cell: Cell) -> Duration {
        let trial = &self.plan.trial;
        let warm_up_ms = if purpose.is_self_test() { 0 } else { self.plan.warm_up_ms(cell) };
        // A trial with a loss waits for the timeout; about half of the trials have one.
        trial.duration.0 + Duration::from_millis(warm_up_ms) + trial.pause.0 + trial.timeout.0 / 2
    }

    fn sweeps(&self) -> usize {
        self.plan.sweep.as_ref().map_or(1, |sweep| sweep.values.len())
    }

    fn sweep_value(&self, sweep: usize) -> &str {
        self.plan.sweep.as_ref().map_or("", |it| it.values[sweep].as_str())
    }

    fn setup(&self, sweep: usize, aaaa_share: f64, first_name: u64) -> Setup {
        // Repeated names must no longer be in the device's cache.
        let come_again = first_name < self.next_name && self.plan.device.is_started_by_us();
        Setup {
            device: Some(self.sweep_value(sweep).to_owned()),
            fresh: self.needs_restart || come_again,
            aaaa_share,
        }
    }

    fn task(&self, purpose: Purpose, sweep: usize, cell: usize, repetition: u32, rate_qps: f64) -> Action {
        let cell = self.plan.cells[cell];
        let first_name = self.first_name(self.plan.names_needed(rate_qps, cell));
        let setup = self.setup(sweep, cell.aaaa_share, first_name);
        Action::Trial(Task { purpose, setup, cell, repetition, rate_qps, first_name, form: None, sweep })
    }

    /// First of `needed` names that were not queried yet; if they are used up, the range begins again.
    fn first_name(&self, needed: u64) -> u64 {
        if self.next_name.saturating_add(needed) <= self.plan.names.for_trials() { self.next_name } else { 0 }
    }

    fn check_names(&self) -> u64 {
        u64::from(self.plan.correctness.names)
    }

    /// Advances in the name range.
    fn use_names(&mut self, first_name: u64, count: u64) {
        self.rounds += u32::from(first_name < self.next_name);
        self.next_name = first_name.saturating_add(count);
    }

    /// The highest rate that the plan allows: its own limit, and the limits by names and memory.
    fn planned_qps(&self) -> f64 {
        let plan = &self.plan;
        plan.search.max.min(plan.names_qps()).min(plan.memory_qps(plan.trial.timeout.ms()))
    }

    /// The highest permitted rate for a device.
    fn ceiling_qps(&self) -> f64 {
        self.self_test.as_ref().map_or(0.0, |test| test.device_qps).min(self.planned_qps())
    }

    /// Rate of the self-test relative to the device's rate (RFC 8219 section 9.2.1, where "2*(r+delta)" is printed
    /// for 2 * (1 + delta) * r: a rate and a number without unit cannot be added).
    fn factor(&self) -> f64 {
        2.0 * (1.0 + self.plan.search.delta)
    }

    /// Share of names with AAAA records in the self-test: all (RFC 8219 section 9.2.1). An authority that the run did not
    /// start keeps its own share, which is none for the required cell. Then the valid reply is the negative answer, and the
    /// checklist says so.
    fn self_test_share(&self) -> f64 {
        if self.plan.authority.external { 0.0 } else { 1.0 }
    }

    fn self_test_limits(&self) -> Limits {
        let start_qps = self.plan.search.start * self.factor();
        Limits {
            min_qps: self.factor(),
            max_qps: (self.plan.search.max * self.factor())
                .min(self.plan.names_qps())
                .min(self.plan.memory_qps(self.plan.trial.timeout.ms() / 4)),
            method: Method::Geometric { start_qps, precision: SELF_TEST_PRECISION },
            steps_max: STEPS_MAX,
        }
    }

    fn search_limits(&self) -> Limits {
        let plan = &self.plan.search;
        let (min_qps, method) = match plan.bisection {
            None => (1.0, Method::Geometric { start_qps: plan.start, precision: plan.precision }),
            Some(Bisection { low, width, .. }) => (low, Method::Bisection { width_qps: width }),
        };
        let max_qps = if self.self_test.is_some() { self.ceiling_qps() } else { self.planned_qps() };
        Limits { min_qps, max_qps, method, steps_max: STEPS_MAX }
    }

    fn failures(&self) -> u32 {
        if self.plan.search.confirm { FAILURES } else { 1 }
    }

    /// The searches of a cell, from the scout on, or from the first repetition if there is nothing to scout.
    fn searches(&self, sweep: usize, cell: usize) -> Stage {
        let limits = self.search_limits();
        match limits.scout() {
            Some(coarse) => Stage::Scout { sweep, cell, search: Search::confirmed(coarse, FAILURES) },
            None => self.repetition(sweep, cell, 0, limits),
        }
    }

    /// The search of a repetition. All repetitions of a cell have the same limits.
    fn repetition(&self, sweep: usize, cell: usize, repetition: u32, limits: Limits) -> Stage {
        let search = Search::confirmed(limits, self.failures());
        Stage::Search { sweep, cell, repetition, limits, search }
    }

    /// The rates of the curve: multiples of the required cell's result, up to the tester's certificate.
    fn curve(&self, sweep: usize) -> Vec<f64> {
        let base = results::base_qps(self, sweep, 0);
        let rates = self.plan.search.curve.iter().map(|factor| (base * factor).round());
        rates.filter(|rate| *rate >= 1.0 && *rate <= self.ceiling_qps()).collect()
    }

    fn record_check(&mut self, found: Correctness) {
        let Stage::Check { sweep, tries } = self.stage else { return };
        let wrong: u64 = found
            .invalid
            .iter()
            .filter(|(reason, _)| !matches!(reason.as_str(), "lost" | "late"))
            .fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        let complete = found.names > 0 && found.valid == found.names;
        let enough = found.names > 0 && found.valid as f64 >= 0.9 * found.names as f64;
        let reasons: Vec<String> =
            found.invalid.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let summary =
            format!("{} of {} answers are right ({})", found.valid, found.names, reasons.join(", "));
        self.correctness = Some(found);
        self.stage = if wrong == 0 && (complete || (tries + 1 >= CHECKS && enough)) {
            match self.self_test {
                // One certificate is enough: the tester does not change.
                None => Stage::SelfTest(Search::confirmed(self.self_test_limits(), FAILURES)),
                Some(_) => self.searches(sweep, 0),
            }
        } else if wrong == 0 && tries + 1 < CHECKS {
            Stage::Check { sweep, tries: tries + 1 }
        } else {
            Stage::Stopped(format!(
                "the device does not answer as expected: {summary}; check its answers with dig, and check that its prefix and \
                 upstream are those of the plan"
            ))
        };
        self.skip_finished_stages();
    }

    /// Records the verdict of a trial, and the share of its queries that got no valid reply.
    fn advance(&mut self, rate_qps: f64, verdict: Verdict, loss: f64) {
        // A self-test has no device, so a restart that is due before it is due after it.
        let still_due = self.needs_restart && matches!(self.stage, Stage::SelfTest(_) | Stage::Certify(_));
        self.needs_restart = still_due || self.plan.device.restart == Restart::Trial;
        // In the self-test, too, a trial that the tester limited is repeated: the tester's lasting limit is the quantity to
        // be measured, and not a stall of its host.
        match &mut self.stage {
            Stage::SelfTest(search)
            | Stage::Scout { search, .. }
            | Stage::Search { search, .. }
            | Stage::Certify(Certification { search, .. }) => {
                let fits = search.record(rate_qps, verdict);
                debug_assert!(fits, "the rate is the one that the search named");
            }
            Stage::Goals { search, .. } => search.record(rate_qps, verdict, loss),
            Stage::Curve { point, .. } => *point += 1,
            _ => {}
        }
        self.skip_finished_stages();
    }

    /// Leaves stages that have nothing left to do.
    fn skip_finished_stages(&mut self) {
        loop {
            let next = match &self.stage {
                Stage::SelfTest(search) => match search.next() {
                    Step::Try { .. } => return,
                    Step::Done(found) => {
                        let factor = self.factor();
                        let certified_qps = found.rate_qps;
                        self.self_test = Some(SelfTest {
                            certified_qps,
                            device_qps: (certified_qps / factor + 1e-6).floor(),
                            delta: self.plan.search.delta,
                            timeout_ms: self.plan.trial.timeout.ms() / 4,
                            sufficient: certified_qps >= factor,
                        });
                        let ceiling_qps = self.ceiling_qps();
                        if self.plan.search.bisection.is_some_and(|it| ceiling_qps < it.high) {
                            // Another upper end would give other rates, and so results that are not comparable.
                            Stage::Stopped(format!(
                                "a bisection needs its upper end, and the self-test, the names or the tester's memory permit at most \
                                 {ceiling_qps:.0} queries/s: lower search.max to that, or give tester and authority more cores"
                            ))
                        } else if certified_qps < factor {
                            Stage::Stopped(
                                "the tester passes its self-test at no rate: see the reasons of its trials, and give it cores \
                                 of its own"
                                    .to_owned(),
                            )
                        } else {
                            self.searches(0, 0)
                        }
                    }
                },
                Stage::Scout { sweep, cell, search } => match search.next() {
                    Step::Try { .. } => return,
                    Step::Done(found) => {
                        let (sweep, cell) = (*sweep, *cell);
                        self.needs_restart |= self.plan.device.restart == Restart::Repetition;
                        self.repetition(sweep, cell, 0, self.search_limits().from_scout(&found))
                    }
                },
                Stage::Search { sweep, cell, repetition, limits, search } => match search.next() {
                    Step::Try { .. } => return,
                    Step::Done(found) => {
                        let (sweep, cell, repetition, limits) = (*sweep, *cell, *repetition, *limits);
                        let strict = search.strict_result().unwrap_or(found);
                        self.repetitions.push(Repetition {
                            sweep,
                            cell,
                            strict_qps: strict.rate_qps,
                            confirmed_qps: found.rate_qps,
                            censored: strict.censored || strict.tester_limited || strict.cut_short,
                            goals: Vec::new(),
                        });
                        Stage::Goals {
                            sweep,
                            cell,
                            repetition,
                            limits,
                            search: self.goals(sweep, cell, repetition, limits),
                        }
                    }
                },
                Stage::Goals { sweep, cell, repetition, limits, search } => {
                    if search.next().is_some() {
                        return;
                    }
                    let (sweep, cell, repetition, limits) = (*sweep, *cell, *repetition, *limits);
                    let goals = search.found();
                    if let Some(last) = self.repetitions.last_mut() {
                        last.goals = goals;
                    }
                    self.needs_restart |= self.plan.device.restart == Restart::Repetition;
                    self.after_search(sweep, cell, repetition, limits)
                }
                Stage::Certify(certification) => match certification.search.next() {
                    Step::Try { .. } => return,
                    Step::Done(_) => {
                        let (sweep, cell) = (certification.sweep, certification.cell);
                        let certificate = certificate::end(self, certification);
                        self.certificates.insert((sweep, cell), certificate);
                        self.after_cell(sweep, cell)
                    }
                },
                Stage::Curve { sweep, point } => {
                    if *point < self.curve(*sweep).len() {
                        return;
                    }
                    self.next_cell(*sweep, 0)
                }
                Stage::Check { .. } | Stage::Done | Stage::Stopped(_) => return,
            };
            self.stage = next;
        }
    }

    /// The search for the goals of the loss ratio, with the trials of the repetition's search without loss.
    fn goals(&self, sweep: usize, cell: usize, repetition: u32, limits: Limits) -> GoalSearch {
        let mut search = GoalSearch::new(limits, &self.plan.search.loss_goals);
        let (value, shares) = (self.sweep_value(sweep), self.plan.cells[cell]);
        let trials = self.trials.iter().filter(|it| {
            let of_search = matches!(it.purpose, Purpose::Search | Purpose::Confirm);
            of_search && it.repetition == repetition && it.sweep == value && it.cell == shares
        });
        trials.for_each(|it| search.take_over(it.rate_qps, it.outcome.verdict, it.outcome.loss()));
        search
    }

    fn after_search(&self, sweep: usize, cell: usize, repetition: u32, limits: Limits) -> Stage {
        if repetition + 1 < self.plan.search.repetitions {
            return self.repetition(sweep, cell, repetition + 1, limits);
        }
        match certificate::begin(self, sweep, cell) {
            Some(certification) => Stage::Certify(certification),
            None => self.after_cell(sweep, cell),
        }
    }

    fn after_cell(&self, sweep: usize, cell: usize) -> Stage {
        if cell == 0 { Stage::Curve { sweep, point: 0 } } else { self.next_cell(sweep, cell) }
    }

    fn next_cell(&self, sweep: usize, cell: usize) -> Stage {
        if cell + 1 < self.plan.cells.len() {
            return self.searches(sweep, cell + 1);
        }
        if sweep + 1 < self.sweeps() { Stage::Check { sweep: sweep + 1, tries: 0 } } else { Stage::Done }
    }
}

/// An event that does not belong to this plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMismatch;

impl std::fmt::Display for EventMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the recorded events do not match this plan: resume with the run's original plan, or begin a new run")
    }
}

impl std::error::Error for EventMismatch {}
