//! The search for the highest rate without loss (RFC 8219 section 9.2: raise the rate while all queries are answered, reduce
//! it when not), without I/O: it says which rate to try, is told the verdict, and ends.
//!
//! A search has two parts. It steps outward from its start, in growing steps up to a factor of two, until one rate passed
//! and one failed; then it halves the interval between them until that is small enough. Halving is geometric (the square
//! root of the product): the precision is relative, so each half is worth the same wherever the result lies, and the number
//! of trials does not depend on it.
//!
//! By the letter of the RFC one failed trial is the end of a rate ([`Search::strict`]). A device that loses one packet in a
//! million at any rate then gets a result that says at which step it happened to lose it: with lower end 0 and upper end
//! 16384, as in published measurements, results like 8191, 7167 or 5119. So [`Search::confirmed`] goes on where the strict
//! search ends: the lowest rate that failed is tried again, and if it passes now, the interval above it is searched too. Only
//! the lowest failure needs confirmation, since a device that fails there fails above it all the more; that costs one trial
//! more for a steady device, and the strict result ([`Search::strict_result`]) comes from the same trials.
//!
//! The same verdicts give the same rates on every machine (only `+ - * /`, square root and rounding are used), so an
//! interrupted search is taken up by recording what was done already.

#[cfg(test)]
mod tests;

use crate::outcome::Verdict;
use crate::run::Purpose;
use serde::{Deserialize, Serialize};

/// So many trials at one rate may end with "tester-limited" before the rate counts as failed: a stall of the tester that
/// passes is worth a second and a third try, one that stays does not deserve minutes of every step.
pub const TESTER_TRIES: u32 = 3;

/// Beyond what any network carries: 10^12 queries of 64 octets are 512 terabits a second. The square of it is far inside f64.
const RATE_MAX_QPS: f64 = 1e12;

/// Where a search looks and how closely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The first rate, queries a second.
    pub start_qps: f64,
    /// No rate above this is tried.
    pub max_qps: f64,
    /// No rate below this is tried.
    pub min_qps: f64,
    /// The search ends when the highest rate that passed and the lowest that failed differ by at most this part of the
    /// latter.
    pub precision: f64,
    /// The first step away from the start, as a part of it; every further one is twice as large, 1 (doubling) at most. 1 when
    /// nothing is known, a few times `precision` when the result is expected near the start.
    pub first_step: f64,
    /// The search ends after this many trials, whatever it knows then.
    pub steps_max: u32,
}

impl Limits {
    /// The same limits for a search whose result is expected near a rate, the last repetition's. It still finds results
    /// anywhere.
    pub fn near(self, rate_qps: f64) -> Limits {
        // Two precisions away: one halving reaches the precision.
        Limits { start_qps: rate_qps, first_step: 2.0 * self.precision, ..self }
    }

    /// How many trials a search takes for a steady device of this capacity, for an estimate of time. `failures`: 1 for the
    /// strict search, else as for [`Search::confirmed`].
    pub fn trials(self, capacity_qps: f64, failures: u32) -> u32 {
        let mut search = Search::confirmed(self, failures);
        loop {
            match search.next() {
                Step::Try { rate_qps, .. } => {
                    let verdict = if rate_qps <= capacity_qps { Verdict::Pass } else { Verdict::Fail };
                    search.settle(verdict);
                }
                Step::Done(found) => return found.trials,
            }
        }
    }

    /// What cannot be meant is replaced: any numbers make a search that ends.
    fn sane(self) -> Limits {
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

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Try this rate and record the verdict.
    Try {
        /// The rate, queries a second.
        rate_qps: f64,
        /// [`Purpose::Search`], or [`Purpose::Confirm`] for a rate that failed before.
        purpose: Purpose,
    },
    /// The search has ended.
    Done(Found),
}

/// What a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The highest rate that passed, queries a second; 0: none did.
    pub rate_qps: f64,
    /// It passed at the highest rate that was allowed: the truth is that or more.
    pub censored: bool,
    /// The rate above it failed because of the tester, so the truth may be more.
    pub tester_limited: bool,
    /// The number of trials was used up before the precision was reached.
    pub cut_short: bool,
    /// How many trials it took.
    pub trials: u32,
}

/// A search under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    limits: Limits,
    /// So many trials at a rate must fail.
    failures: u32,
    /// The highest rate that passed.
    low: Option<f64>,
    /// Rates above `low` that failed, the lowest last.
    high: Vec<Attempt>,
    /// What is to be tried.
    due: Attempt,
    /// The next step outward, as a part of the rate.
    step: f64,
    /// Trials so far.
    trials: u32,
    /// The result when every failure counts.
    strict: Option<Found>,
    /// The result.
    found: Option<Found>,
}

/// A rate and what came of it so far.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Attempt {
    rate_qps: f64,
    /// How often the device failed.
    device: u32,
    /// How often the tester did.
    tester: u32,
}

impl Search {
    /// The search by the letter: a rate whose trial fails has failed.
    pub fn strict(limits: Limits) -> Search {
        Search::confirmed(limits, 1)
    }

    /// The search in which a failure that bounds the result counts when this many trials at that rate failed, 2 or more.
    /// Its trials begin with those of the strict search.
    pub fn confirmed(limits: Limits, failures: u32) -> Search {
        let limits = limits.sane();
        let start = rounded(limits.start_qps, limits.precision).clamp(limits.min_qps, limits.max_qps);
        Search {
            limits,
            failures: failures.max(1),
            low: None,
            high: Vec::new(),
            due: Attempt::new(start),
            step: limits.first_step,
            trials: 0,
            strict: None,
            found: None,
        }
    }

    /// What to do next. Asking changes nothing.
    pub fn next(&self) -> Step {
        match self.found {
            Some(found) => Step::Done(found),
            None => Step::Try {
                rate_qps: self.due.rate_qps,
                purpose: if self.due.device > 0 { Purpose::Confirm } else { Purpose::Search },
            },
        }
    }

    /// Takes the verdict on the rate that [`Search::next`] named. A verdict on another rate changes nothing and gives
    /// `false`: the record does not belong to this search.
    #[must_use]
    pub fn record(&mut self, rate_qps: f64, verdict: Verdict) -> bool {
        match self.next() {
            // A rate that went through text may differ in its last digit.
            Step::Try { rate_qps: asked, .. } if (asked - rate_qps).abs() <= 1e-9 * asked => {
                self.settle(verdict);
                true
            }
            _ => false,
        }
    }

    /// The result when every failure counts, once that part of the search has ended.
    pub fn strict_result(&self) -> Option<Found> {
        self.strict
    }

    /// The highest rate that passed so far, and the lowest above it that failed and is not being tried again.
    pub fn interval(&self) -> (Option<f64>, Option<f64>) {
        (self.low, self.high.last().map(|failed| failed.rate_qps))
    }

    /// Takes the verdict on the rate that is due.
    fn settle(&mut self, verdict: Verdict) {
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
        self.plan();
    }

    /// Finds what to try next, or the end.
    fn plan(&mut self) {
        let next = self.rate_between();
        if next.is_none() && self.strict.is_none() {
            self.strict = Some(self.result(1, false));
        }
        let undecided = |failed: &Attempt| next.is_none() && !failed.decided(self.failures);
        match (next, self.high.last().copied().filter(undecided)) {
            (None, None) => self.found = Some(self.result(self.failures, false)),
            _ if self.trials >= self.limits.steps_max => {
                self.strict.get_or_insert(self.result(1, true));
                self.found = Some(self.result(self.failures, true));
            }
            (Some(rate), _) => self.due = Attempt::new(rate),
            (None, Some(failed)) => {
                self.high.pop();
                self.due = failed;
            }
        }
    }

    /// The next rate that was never tried; nothing when the interval is small enough or lies at the edge of what is allowed.
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

    /// One step away from a rate; the next is twice as large.
    fn outward(&mut self, rate: f64, apply: impl Fn(f64, f64) -> f64) -> f64 {
        let next = rounded(apply(rate, 1.0 + self.step), self.limits.precision);
        self.step = (2.0 * self.step).min(1.0);
        next
    }

    /// What is known now, when so many failures count.
    fn result(&self, failures: u32, cut_short: bool) -> Found {
        Found {
            rate_qps: self.low.unwrap_or(0.0),
            censored: self.low.is_some_and(|low| low >= self.limits.max_qps),
            tester_limited: self
                .high
                .last()
                .is_some_and(|failed| failed.device < failures && failed.gave_up()),
            cut_short,
            trials: self.trials,
        }
    }
}

impl Attempt {
    /// A rate that was not tried yet.
    fn new(rate_qps: f64) -> Attempt {
        Attempt { rate_qps, device: 0, tester: 0 }
    }

    /// Whether it need not be tried again after a failure.
    fn decided(&self, failures: u32) -> bool {
        self.device >= failures || self.gave_up()
    }

    /// Whether the tester failed too often at it.
    fn gave_up(&self) -> bool {
        self.tester >= TESTER_TRIES
    }
}

/// A rate rounded to a power of ten that is at most a tenth of the precision: 412,345.6 at 1 % becomes 412,300. People can
/// read and repeat such rates, and the interval of a search is never as small as what rounding moves.
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
