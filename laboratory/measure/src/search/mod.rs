//! Search for the highest rate without loss (RFC 8219 section 9.2: raise the rate while all queries are answered,
//! reduce it when not), without I/O: it returns the rate to try, records the verdict, and ends.
//!
//! A geometric search has two phases. First it doubles or halves the rate from its start, until one rate passed and one
//! failed; then it bisects the interval between them until that is small enough. The bisection is geometric (the square
//! root of the product): the precision is relative, so each half has the same value at any result, and the number of
//! trials does not depend on the result. The other method is the bisection of the papers ([`Method::Bisection`]).
//!
//! Repetitions of a search are independent: all begin at the same rate, whatever the others found. Doubling up to the
//! capacity would cost each of them trials, and each of these trials may lose a datagram, which ends a strict search
//! far below the capacity. So a short search before all repetitions ([`Limits::scout`]) finds the last doubling that
//! passes, and all begin there ([`Limits::from_scout`]). The rates that decide are the same wherever on the grid of
//! doublings a search begins, so results of two runs are comparable although their scouts may differ.
//!
//! By the letter of the RFC one failed trial excludes a rate ([`Search::strict`]). The result of a device that loses
//! one packet in a million at any rate then shows the step at which it happened to lose one: with lower end 0 and
//! upper end 16384, as in published measurements, results like 8191, 7167 or 5119. So [`Search::confirmed`] continues
//! where the strict search ends: it repeats the lowest rate that failed, and if that passes now, it also searches the
//! interval above. Only the lowest failure needs confirmation, because a device that fails there is even more likely
//! to fail above. This costs one more trial for a steady device, and the strict result ([`Search::strict_result`])
//! comes from the same trials.
//!
//! Equal verdicts give equal rates on every machine (only `+ - * /`, square root and rounding are used), so an
//! interrupted search is resumed by recording its trials again.

mod goals;
#[cfg(test)]
mod tests;

pub use goals::{GoalFound, GoalSearch};

use crate::outcome::Verdict;
use crate::run::Purpose;
use serde::{Deserialize, Serialize};

/// Number of trials at one rate that may end with "tester-limited" or "device starved" before the rate counts as failed. A
/// passing stall of the tester deserves a second and a third attempt; a permanent one must not cost minutes at every step.
pub const TESTER_TRIES: u32 = 3;

/// Beyond the capacity of any network: 10^12 queries of 64 octets are 512 terabits per second. Its square is far
/// within f64.
const RATE_MAX_QPS: f64 = 1e12;

/// The coarsest precision of a geometric search: a rate and its double, half of which lies between them, however both
/// are rounded.
const PRECISION_MAX: f64 = 0.6;

/// Precision to which rates are rounded at most, so that repeated doubling stays on its grid.
const ROUNDING_MAX: f64 = 0.01;

/// Rule by which the next rate follows from the verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Doubling or halving from a start, then geometric bisection.
    Geometric {
        /// The first rate, in queries per second.
        start_qps: f64,
        /// The search ends when the highest rate that passed and the lowest that failed differ by at most this share of
        /// the latter.
        precision: f64,
    },
    /// The bisection of the papers, in whole queries per second, with the ends of the range as its first interval: the
    /// middle (l + h) / 2 replaces l if it passes, and h if it fails. The ends themselves are not tried.
    Bisection {
        /// The search ends when h - l is at most this, in queries per second: the papers' e.
        width_qps: f64,
    },
}

/// Range and method of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The lower end of the range, in queries per second: no lower rate is tried.
    pub min_qps: f64,
    /// The upper end of the range: no higher rate is tried.
    pub max_qps: f64,
    /// The method.
    pub method: Method,
    /// The search ends after this many trials in any case.
    pub steps_max: u32,
}

impl Limits {
    /// Limits of a short search that ends as soon as one rate passed and the next doubling failed. `None` if the method
    /// has no start to look for.
    pub fn scout(self) -> Option<Limits> {
        match self.method {
            Method::Geometric { start_qps, .. } => {
                Some(Limits { method: Method::Geometric { start_qps, precision: PRECISION_MAX }, ..self })
            }
            Method::Bisection { .. } => None,
        }
    }

    /// These limits with the start that a scout found: the start of these limits times a power of two.
    pub fn from_scout(self, found: &Found) -> Limits {
        let Method::Geometric { start_qps, precision } = self.sanitized().method else { return self };
        let passed_qps = found.rate_qps.max(self.sanitized().min_qps);
        // The rates of a scout are rounded, each by up to 0.05 %, and 27 doublings by up to 1.4 %, which is 0.02 of a
        // doubling. The highest rate may lie between two doublings.
        let doublings = ((passed_qps / start_qps).log2() + 0.02).floor();
        let start_qps = start_qps * 2f64.powi(doublings as i32);
        Limits { method: Method::Geometric { start_qps, precision }, ..self }
    }

    /// Number of trials of a search with a steady device of this capacity, for an estimate of time. `failures` is 1
    /// for the strict search, otherwise as in [`Search::confirmed`].
    pub fn trials(self, capacity_qps: f64, failures: u32) -> u32 {
        Search::confirmed(self, failures).ended_by(capacity_qps).trials
    }

    /// The next rate between one that passed and one that failed; `None` if the interval is small enough or lies at a limit.
    fn between(&self, low: Option<f64>, high: Option<f64>) -> Option<f64> {
        let Limits { min_qps, max_qps, .. } = *self;
        let precision = match self.method {
            Method::Geometric { precision, .. } => precision,
            Method::Bisection { width_qps } => {
                let (low, high) = (low.unwrap_or(min_qps), high.unwrap_or(max_qps));
                return (high - low > width_qps).then(|| middle(low, high));
            }
        };
        match (low, high) {
            (None, None) => None,
            (Some(low), None) if low >= max_qps => None,
            (Some(low), None) => Some(rounded(2.0 * low, precision).min(max_qps)),
            (None, Some(high)) if high <= min_qps => None,
            (None, Some(high)) => Some(rounded(high / 2.0, precision).max(min_qps)),
            (Some(low), Some(high)) if high - low <= precision * high => None,
            (Some(low), Some(high)) => {
                let between = rounded((low * high).sqrt(), precision);
                (low < between && between < high).then_some(between)
            }
        }
    }

    /// Replaces invalid numbers, so that any input makes a search that ends.
    fn sanitized(self) -> Limits {
        let number = |value: f64, or: f64| if value.is_finite() { value } else { or };
        let min_qps = number(self.min_qps, 1.0).clamp(1e-3, RATE_MAX_QPS);
        let max_qps = number(self.max_qps, min_qps).clamp(min_qps, RATE_MAX_QPS);
        let steps_max = self.steps_max.max(1);
        match self.method {
            Method::Geometric { start_qps, precision } => {
                let start_qps = number(start_qps, min_qps).clamp(min_qps, max_qps);
                // Below 10^-9 rounding would swallow the interval; f64 has 15 digits.
                let precision = number(precision, 0.01).clamp(1e-9, PRECISION_MAX);
                Limits { min_qps, max_qps, method: Method::Geometric { start_qps, precision }, steps_max }
            }
            Method::Bisection { width_qps } => {
                let width_qps = number(width_qps, 1.0).clamp(1.0, RATE_MAX_QPS).floor();
                let min_qps = number(self.min_qps, 0.0).clamp(0.0, RATE_MAX_QPS).floor();
                // At least one rate lies between the ends.
                let max_qps = max_qps.floor().max(min_qps + width_qps + 1.0);
                Limits { min_qps, max_qps, method: Method::Bisection { width_qps }, steps_max }
            }
        }
    }
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Try this rate and record the verdict.
    Try {
        /// The rate in queries per second.
        rate_qps: f64,
        /// [`Purpose::Search`], or [`Purpose::Confirm`] for a rate that failed before.
        purpose: Purpose,
    },
    /// The search has ended.
    Done(Found),
}

/// Result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The highest rate that passed, in queries per second; 0 if none did.
    pub rate_qps: f64,
    /// True if no rate failed up to the upper end of the range: the true value is at least this.
    pub censored: bool,
    /// True if the rate above failed because of the tester or for want of a core: the true value may be higher.
    pub tester_limited: bool,
    /// True if the trials were used up before the precision was reached.
    pub cut_short: bool,
    /// Number of trials.
    pub trials: u32,
}

/// A search in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    limits: Limits,
    /// Number of trials at a rate that must fail.
    failures: u32,
    /// The highest rate that passed.
    low: Option<f64>,
    /// Rates above `low` that failed, the lowest last.
    high: Vec<RateTrials>,
    /// Rates to be tried.
    due: RateTrials,
    /// Number of trials so far.
    trials: u32,
    /// The result if every failure counts.
    strict: Option<Found>,
    /// The result.
    found: Option<Found>,
}

/// A rate and its trials so far.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RateTrials {
    rate_qps: f64,
    /// Number of failures of the device.
    device: u32,
    /// Number of trials that say nothing about the device: tester-limited, or device starved.
    tester: u32,
}

impl Search {
    /// The search by the letter of the RFC: one failed trial excludes a rate.
    pub fn strict(limits: Limits) -> Search {
        Search::confirmed(limits, 1)
    }

    /// The search in which a failure that bounds the result counts only after this many trials at that rate failed, 2
    /// or more. Its trials begin with those of the strict search.
    pub fn confirmed(limits: Limits, failures: u32) -> Search {
        let limits = limits.sanitized();
        let start = match limits.method {
            Method::Geometric { start_qps, precision } => {
                rounded(start_qps, precision).clamp(limits.min_qps, limits.max_qps)
            }
            Method::Bisection { .. } => middle(limits.min_qps, limits.max_qps),
        };
        Search {
            limits,
            failures: failures.max(1),
            low: None,
            high: Vec::new(),
            due: RateTrials::new(start),
            trials: 0,
            strict: None,
            found: None,
        }
    }

    /// The next step. This call changes nothing.
    pub fn next(&self) -> Step {
        match self.found {
            Some(found) => Step::Done(found),
            None => Step::Try {
                rate_qps: self.due.rate_qps,
                purpose: if self.due.device > 0 { Purpose::Confirm } else { Purpose::Search },
            },
        }
    }

    /// Records the verdict for the rate that [`Search::next`] returned. A verdict for another rate changes nothing
    /// and returns `false`: the record belongs to another search.
    #[must_use]
    pub fn record(&mut self, rate_qps: f64, verdict: Verdict) -> bool {
        match self.next() {
            // A rate that was stored as text may differ in its last digit.
            Step::Try { rate_qps: asked, .. } if (asked - rate_qps).abs() <= 1e-9 * asked => {
                self.record_pending(verdict);
                true
            }
            _ => false,
        }
    }

    /// The result if every failure counts, once that part of the search has ended.
    pub fn strict_result(&self) -> Option<Found> {
        self.strict
    }

    /// The highest rate that passed so far, and the lowest rate above it that failed and is not being repeated.
    pub fn interval(&self) -> (Option<f64>, Option<f64>) {
        (self.low, self.high.last().map(|failed| failed.rate_qps))
    }

    /// Number of trials so far.
    pub fn trials(&self) -> u32 {
        self.trials
    }

    /// Number of further trials with a steady device of about this capacity, or of the nearest one that the trials so far
    /// permit.
    pub fn trials_left(&self, capacity_qps: f64) -> u32 {
        let (low, high) = self.interval();
        // Below the rate that failed last.
        let below = high.map_or(f64::INFINITY, |high| high * (1.0 - 1e-6));
        let capacity_qps = capacity_qps.min(below).max(low.unwrap_or(0.0));
        self.clone().ended_by(capacity_qps).trials - self.trials
    }

    /// The result if the device is steady from now on and has this capacity.
    fn ended_by(mut self, capacity_qps: f64) -> Found {
        loop {
            match self.next() {
                Step::Try { rate_qps, .. } => {
                    let verdict = if rate_qps <= capacity_qps { Verdict::Pass } else { Verdict::Fail };
                    self.record_pending(verdict);
                }
                Step::Done(found) => return found,
            }
        }
    }

    /// Records the verdict for the pending rate.
    fn record_pending(&mut self, verdict: Verdict) {
        self.trials += 1;
        match verdict {
            Verdict::Pass => self.low = Some(self.due.rate_qps),
            Verdict::Fail => {
                self.due.device += 1;
                self.high.push(self.due);
            }
            Verdict::TesterLimited | Verdict::DeviceStarved => {
                self.due.tester += 1;
                if self.due.tester < TESTER_TRIES && self.trials < self.limits.steps_max {
                    return;
                }
                self.high.push(self.due);
            }
        }
        self.choose_next();
    }

    /// Determines the next rate, or ends the search.
    fn choose_next(&mut self) {
        let next = self.rate_between();
        if next.is_none() && self.strict.is_none() {
            self.strict = Some(self.result(1, false));
        }
        let undecided = |failed: &RateTrials| next.is_none() && !failed.decided(self.failures);
        match (next, self.high.last().copied().filter(undecided)) {
            (None, None) => self.found = Some(self.result(self.failures, false)),
            _ if self.trials >= self.limits.steps_max => {
                self.strict.get_or_insert(self.result(1, true));
                self.found = Some(self.result(self.failures, true));
            }
            (Some(rate), _) => self.due = RateTrials::new(rate),
            (None, Some(failed)) => {
                self.high.pop();
                self.due = failed;
            }
        }
    }

    /// The next rate that was never tried; `None` if the interval is small enough or lies at a limit.
    fn rate_between(&self) -> Option<f64> {
        self.limits.between(self.low, self.interval().1)
    }

    /// The current result if `failures` failures count.
    fn result(&self, failures: u32, cut_short: bool) -> Found {
        Found {
            rate_qps: self.low.unwrap_or(0.0),
            censored: self.low.is_some() && self.high.is_empty() && !cut_short,
            tester_limited: self
                .high
                .last()
                .is_some_and(|failed| failed.device < failures && failed.tester_failed()),
            cut_short,
            trials: self.trials,
        }
    }
}

impl RateTrials {
    /// A rate without trials.
    fn new(rate_qps: f64) -> RateTrials {
        RateTrials { rate_qps, device: 0, tester: 0 }
    }

    /// True if a failed rate needs no further trial.
    fn decided(&self, failures: u32) -> bool {
        self.device >= failures || self.tester_failed()
    }

    /// True if the tester failed too often at this rate.
    fn tester_failed(&self) -> bool {
        self.tester >= TESTER_TRIES
    }
}

/// The middle of two whole rates, rounded down.
fn middle(low: f64, high: f64) -> f64 {
    ((low + high) / 2.0).floor()
}

/// Rounds a rate to a power of ten that is at most a tenth of the precision: 412,345.6 at 1 % becomes 412,300. Such
/// rates are easy to read and to repeat, and the interval of a search is always larger than the change by rounding.
fn rounded(rate: f64, precision: f64) -> f64 {
    let grain = rate * precision.min(ROUNDING_MAX) / 10.0;
    // Multiplied or divided by whole powers of ten, so that 12.3 is the double that is written 12.3.
    let mut power = 1.0;
    if grain >= 1.0 {
        while power * 10.0 <= grain {
            power *= 10.0;
        }
        (rate / power).round() * power
    } else {
        while power * grain < 1.0 && power < 1e15 {
            power *= 10.0;
        }
        (rate * power).round() / power
    }
}
