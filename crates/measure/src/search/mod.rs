//! Search for the highest rate without loss (RFC 8219 section 9.2: raise the rate while all queries are answered,
//! reduce it when not), without I/O: it returns the rate to try, records the verdict, and ends.
//!
//! A search has two phases. First it steps outward from its start, in growing steps up to a factor of two, until one
//! rate passed and one failed; then it bisects the interval between them until that is small enough. The bisection is
//! geometric (the square root of the product): the precision is relative, so each half has the same value at any
//! result, and the number of trials does not depend on the result.
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

#[cfg(test)]
mod tests;

use crate::outcome::Verdict;
use crate::run::Purpose;
use serde::{Deserialize, Serialize};

/// Number of trials at one rate that may end with "tester-limited" before the rate counts as failed. A passing stall
/// of the tester deserves a second and a third attempt; a permanent one must not cost minutes at every step.
pub const TESTER_TRIES: u32 = 3;

/// Beyond the capacity of any network: 10^12 queries of 64 octets are 512 terabits per second. Its square is far
/// within f64.
const RATE_MAX_QPS: f64 = 1e12;

/// Range and precision of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The first rate, in queries per second.
    pub start_qps: f64,
    /// The highest rate that is tried.
    pub max_qps: f64,
    /// The lowest rate that is tried.
    pub min_qps: f64,
    /// The search ends when the highest rate that passed and the lowest that failed differ by at most this share of
    /// the latter.
    pub precision: f64,
    /// The first step away from the start, relative to it; every further step is twice as large, up to 1 (doubling).
    /// Use 1 if nothing is known, a few times `precision` if the result is expected near the start.
    pub first_step: f64,
    /// The search ends after this many trials in any case.
    pub steps_max: u32,
}

impl Limits {
    /// These limits for a search whose result is expected near a rate, that of the last repetition. It still finds
    /// results anywhere.
    pub fn near(self, rate_qps: f64) -> Limits {
        // Two precisions away: one bisection reaches the precision.
        Limits { start_qps: rate_qps, first_step: 2.0 * self.precision, ..self }
    }

    /// Number of trials of a search with a steady device of this capacity, for an estimate of time. `failures` is 1
    /// for the strict search, otherwise as in [`Search::confirmed`].
    pub fn trials(self, capacity_qps: f64, failures: u32) -> u32 {
        let mut search = Search::confirmed(self, failures);
        loop {
            match search.next() {
                Step::Try { rate_qps, .. } => {
                    let verdict = if rate_qps <= capacity_qps { Verdict::Pass } else { Verdict::Fail };
                    search.record_pending(verdict);
                }
                Step::Done(found) => return found.trials,
            }
        }
    }

    /// Replaces invalid numbers, so that any input makes a search that ends.
    fn sanitized(self) -> Limits {
        let number = |value: f64, or: f64| if value.is_finite() { value } else { or };
        let min_qps = number(self.min_qps, 1.0).clamp(1e-3, RATE_MAX_QPS);
        let max_qps = number(self.max_qps, min_qps).clamp(min_qps, RATE_MAX_QPS);
        // Below 10^-9 rounding would swallow the interval; f64 has 15 digits.
        let precision = number(self.precision, 0.01).clamp(1e-9, 0.5);
        Limits {
            start_qps: number(self.start_qps, min_qps),
            max_qps,
            min_qps,
            precision,
            first_step: number(self.first_step, 1.0).clamp(precision, 1.0),
            steps_max: self.steps_max.max(1),
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
    /// True if the highest permitted rate passed: the true value is at least this.
    pub censored: bool,
    /// True if the rate above failed because of the tester: the true value may be higher.
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
    /// The next outward step, relative to the rate.
    step: f64,
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
    /// Number of failures of the tester.
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
        let start = rounded(limits.start_qps, limits.precision).clamp(limits.min_qps, limits.max_qps);
        Search {
            limits,
            failures: failures.max(1),
            low: None,
            high: Vec::new(),
            due: RateTrials::new(start),
            step: limits.first_step,
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

    /// Records the verdict for the pending rate.
    fn record_pending(&mut self, verdict: Verdict) {
        self.trials += 1;
        match verdict {
            Verdict::Pass => self.low = Some(self.due.rate_qps),
            Verdict::Fail => {
                self.due.device += 1;
                self.high.push(self.due);
            }
            Verdict::TesterLimited => {
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
    fn rate_between(&mut self) -> Option<f64> {
        let Limits { min_qps, max_qps, precision, .. } = self.limits;
        match self.interval() {
            (None, None) => None,
            (Some(low), None) if low >= max_qps => None,
            (Some(low), None) => Some(self.outward(low, |rate, factor| rate * factor).min(max_qps)),
            (None, Some(high)) if high <= min_qps => None,
            (None, Some(high)) => Some(self.outward(high, |rate, factor| rate / factor).max(min_qps)),
            (Some(low), Some(high)) if high - low <= precision * high => None,
            (Some(low), Some(high)) => {
                let between = rounded((low * high).sqrt(), precision);
                (low < between && between < high).then_some(between)
            }
        }
    }

    /// One step away from a rate; the next one is twice as large.
    fn outward(&mut self, rate: f64, apply: impl Fn(f64, f64) -> f64) -> f64 {
        let next = rounded(apply(rate, 1.0 + self.step), self.limits.precision);
        self.step = (2.0 * self.step).min(1.0);
        next
    }

    /// The current result if `failures` failures count.
    fn result(&self, failures: u32, cut_short: bool) -> Found {
        Found {
            rate_qps: self.low.unwrap_or(0.0),
            censored: self.low.is_some_and(|low| low >= self.limits.max_qps),
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

/// Rounds a rate to a power of ten that is at most a tenth of the precision: 412,345.6 at 1 % becomes 412,300. Such
/// rates are easy to read and to repeat, and the interval of a search is always larger than the change by rounding.
fn rounded(rate: f64, precision: f64) -> f64 {
    let grain = rate * precision / 10.0;
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
