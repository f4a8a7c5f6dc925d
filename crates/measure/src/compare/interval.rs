//! Ratio of two medians with a bootstrap confidence interval (Efron, 1979; percentile method): both sets of results
//! are resampled with replacement, 10,000 times, and the middle 95 % of the ratios are the interval. No distribution
//! is assumed; that of searches is far from normal.
//!
//! Few results stay few. The range of n values contains the true median with a probability of at most 1 - 2^(1-n): 75
//! % for 3 values, 93.75 % for 5. So below 6 values no interval has 95 %, whatever the resampling gives;
//! [`Ratio::caveat`] says that in words. A permutation test of the rank sums (Mann and Whitney, 1947) is the second
//! opinion.

use super::Verdict;
use crate::statistics::{SplitMix64, median, percentile, sorted};
use serde::{Deserialize, Serialize};

/// Number of resamples. The ends of the interval are then the 250th values from either end, whose own random error is
/// some 6 % of the tail: negligible beside the number of repetitions.
pub const RESAMPLES: u32 = 10_000;

/// Fewest results on a side for a verdict: with two on each side, the sets are disjoint by chance in one case of
/// three.
pub const VALUES_MIN: u32 = 3;

/// Most results on a side for an interval: twice the limit of a plan, because a record may come from any source.
const VALUES_MAX: usize = 2_000;

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
    /// Probability that a random division of all values into two such sets is at least as far apart, in either
    /// direction (Mann and Whitney).
    pub chance: f64,
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
            chance: permutation_p_value(&one, &other, &mut rng),
        })
    }

    /// The verdict for quantities of which more is better.
    pub fn verdict(&self) -> Verdict {
        if self.high < 1.0 {
            Verdict::Slower
        } else if self.low > 1.0 {
            Verdict::Faster
        } else {
            Verdict::NoDifference
        }
    }

    /// A note on the low significance of few values; `None` if there are enough.
    pub fn caveat(&self) -> Option<String> {
        let fewest = self.counts.0.min(self.counts.1);
        (fewest < VALUES_FOR_95).then(|| {
            let surely = 100.0 * (1.0 - 0.5f64.powi(fewest.max(1) as i32 - 1));
            format!(
                "{} and {} results: the range of {fewest} values contains the true median with {surely:.0} % at most, so the interval has \
                 less than 95 %; use 20 repetitions to be sure",
                self.counts.0, self.counts.1
            )
        })
    }
}

/// The median of one resample: as many values as there are, drawn with replacement.
fn resampled_median(values: &[f64], rng: &mut SplitMix64, buffer: &mut Vec<f64>) -> Option<f64> {
    buffer.clear();
    buffer.extend((0..values.len()).map(|_| values[rng.below(values.len())]));
    buffer.sort_by(f64::total_cmp);
    median(buffer)
}

/// The permutation test: the share of random sets whose rank sum is at least as far from the mean as the real one.
fn permutation_p_value(one: &[f64], other: &[f64], rng: &mut SplitMix64) -> f64 {
    let mut ranks = Vec::with_capacity(one.len() + other.len());
    let rank = |value: &f64| -> f64 {
        // Equal values share the mean of their ranks. Ranks count from 0 and are doubled, so they are whole numbers
        // and sums are exact.
        let below = one.iter().chain(other).filter(|it| *it < value).count();
        let equal = one.iter().chain(other).filter(|it| *it == value).count();
        (2 * below + equal) as f64
    };
    ranks.extend(one.iter().chain(other).map(rank));
    let size = one.len();
    let mean = ranks.iter().sum::<f64>() * size as f64 / ranks.len() as f64;
    let distance = |ranks: &[f64]| (ranks[..size].iter().sum::<f64>() - mean).abs();
    let real = distance(&ranks);
    let mut as_far = 0u32;
    for _ in 0..RESAMPLES {
        // The first places of a shuffle are a random set (Fisher and Yates).
        for place in 0..size {
            let from = place + rng.below(ranks.len() - place);
            ranks.swap(place, from);
        }
        // The mean may be fractional; its error is far below the half that separates two sums.
        as_far += u32::from(distance(&ranks) >= real - 1e-6);
    }
    f64::from(as_far + 1) / f64::from(RESAMPLES + 1)
}
