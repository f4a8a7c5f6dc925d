//! Ratio of two medians with a bootstrap confidence interval (Efron, 1979; percentile method): both sets of results
//! are resampled with replacement, 10,000 times, and the middle 95 % of the ratios are the interval. No distribution
//! is assumed; that of searches is far from normal.
//!
//! Few results stay few. The range of n values contains the true median with a probability of at most 1 - 2^(1-n): 75
//! % for 3 values, 93.75 % for 5. So below 6 values no interval has 95 %, whatever the resampling gives;
//! [`Ratio::caveat`] says that in words. So the interval alone gives no verdict: a permutation test of the rank sums
//! ([`super::permutation`]) must reject the hypothesis of equal runs at the level [`SIGNIFICANCE`].

use super::Verdict;
use super::permutation;
use crate::statistics::{median, percentile, range_coverage, sorted};
use serde::{Deserialize, Serialize};
use splitmix::SplitMix64;

/// Number of resamples. The ends of the interval are then the 250th values from either end, whose own random error is
/// some 6 % of the tail: negligible beside the number of repetitions.
pub const RESAMPLES: u32 = 10_000;

/// Level of significance: a verdict needs a p-value below it.
pub const SIGNIFICANCE: f64 = 0.05;

/// Most results on a side for an interval: twice the limit of a plan, because a record may come from any source.
pub(super) const VALUES_MAX: usize = 2_000;

/// Fewest results on both sides that can carry a verdict: of 4 and 4 the most distant division is one of 35 in one
/// direction, p = 2/70 = 0.029; of 3 and 3 it is one of 10, p = 2/20 = 0.10.
const VALUES_FOR_VERDICT: u32 = 4;

/// Below this many values their whole range is less than a 95 % interval of the median: 1 - 2^(1-5) is 93.75 %.
const VALUES_FOR_95: u32 = 6;

/// The medians of two sets of results and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median of the first set.
    pub first: f64,
    /// The median of the second set.
    pub second: f64,
    /// Second / first.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Number of values on each side.
    pub counts: (u32, u32),
    /// The p-value of the permutation test: the probability that a random division of all values into two such sets is
    /// at least as far apart, in either direction (Mann and Whitney).
    pub p: f64,
    /// The smallest p-value that sets of these sizes can have.
    pub p_least: f64,
}

impl Ratio {
    /// The ratio and its interval. Each value may be too low by `resolution` (relative; 0 if it is exact), and the
    /// interval is widened by that. `None` if a side has no values or more than 2,000, or the first side has a value
    /// that is not positive.
    pub fn of(first: &[f64], second: &[f64], resolution: (f64, f64), seed: u64) -> Option<Ratio> {
        let (one, other) = (sorted(first), sorted(second));
        let usable = |values: &[f64]| {
            values.len() <= VALUES_MAX && values.iter().all(|value| value.is_finite() && *value >= 0.0)
        };
        if !usable(&one) || !usable(&other) || *one.first()? <= 0.0 {
            return None;
        }
        let (before, after) = (median(&one)?, median(&other)?);
        let mut rng = SplitMix64::new(seed);
        let mut buffer = Vec::with_capacity(one.len().max(other.len()));
        let mut ratios = Vec::with_capacity(RESAMPLES as usize);
        for _ in 0..RESAMPLES {
            let below = resampled_median(&one, &mut rng, &mut buffer)?;
            let above = resampled_median(&other, &mut rng, &mut buffer)?;
            ratios.push(above / below);
        }
        let ratios = sorted(&ratios);
        Some(Ratio {
            first: before,
            second: after,
            ratio: after / before,
            low: percentile(&ratios, 2.5)? * (1.0 - resolution.0.clamp(0.0, 0.5)),
            high: percentile(&ratios, 97.5)? / (1.0 - resolution.1.clamp(0.0, 0.5)),
            counts: (one.len() as u32, other.len() as u32),
            p: permutation::p_value(&one, &other, &mut rng),
            p_least: permutation::least_p_value(one.len(), other.len()),
        })
    }

    /// The verdict for quantities of which more is better. Interval and p-value must both carry it.
    pub fn verdict(&self) -> Verdict {
        if self.p >= SIGNIFICANCE {
            Verdict::NoDifference
        } else if self.high < 1.0 {
            Verdict::Slower
        } else if self.low > 1.0 {
            Verdict::Faster
        } else {
            Verdict::NoDifference
        }
    }

    /// Reason why no difference, however large, could be shown, with the remedy; `None` if one could.
    pub fn too_few(&self) -> Option<String> {
        (self.p_least >= SIGNIFICANCE).then(|| {
            format!(
                "{} and {} repetitions can show at best p = {}, and a verdict needs p < {SIGNIFICANCE}: no difference, however large, \
                 can be shown; measure at least {VALUES_FOR_VERDICT} repetitions in both runs, better 20",
                self.counts.0,
                self.counts.1,
                p_text(self.p_least)
            )
        })
    }

    /// A note on the limits of a verdict, with the remedy; `None` if there are none.
    pub fn caveat(&self, verdict: Verdict) -> Option<String> {
        let (one, other) = self.counts;
        let fewest = one.min(other);
        if verdict == Verdict::NoDifference && self.p < SIGNIFICANCE {
            return Some(
                "the rates differ by less than the precision of the search: to see so small a difference, lower \
                 search.precision (search.width of a bisection)"
                    .to_owned(),
            );
        }
        (fewest < VALUES_FOR_95).then(|| {
            format!(
                "{one} and {other} results: the range of {fewest} values contains the true median with {:.0} % at most, so the \
                 interval has less than 95 %; use 20 repetitions to be sure{}",
                100.0 * range_coverage(fewest),
                if verdict == Verdict::NoDifference { " and to see smaller differences" } else { "" }
            )
        })
    }
}

/// A p-value with two significant digits: `0.10`, `0.029`, `<0.001`.
pub fn p_text(p: f64) -> String {
    match p {
        _ if p < 0.001 => "<0.001".to_owned(),
        _ if p < 0.01 => format!("{p:.4}"),
        _ if p < 0.1 - 5e-4 => format!("{p:.3}"),
        _ => format!("{p:.2}"),
    }
}

/// The median of one resample: as many values as there are, drawn with replacement.
fn resampled_median(values: &[f64], rng: &mut SplitMix64, buffer: &mut Vec<f64>) -> Option<f64> {
    buffer.clear();
    buffer.extend((0..values.len()).map(|_| values[rng.place(values.len())]));
    buffer.sort_by(f64::total_cmp);
    median(buffer)
}
