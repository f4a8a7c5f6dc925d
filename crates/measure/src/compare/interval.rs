//! The ratio of two medians with a bootstrap interval (Efron, 1979; percentile method): both sets of results are drawn anew
//! from themselves, with replacement, 10,000 times, and the middle 95 % of the ratios are the interval. Nothing is assumed of
//! the distribution, which for searches is anything but normal.
//!
//! Few results stay few. The range of n values contains the true median with a probability of 1 - 2^(1-n) at most: 75 % of
//! 3 values, 93.75 % of 5. So below 6 values no interval is one of 95 %, whatever the resampling says; [`Ratio::caveat`]
//! says that in words. A permutation test of the rank sums (Mann and Whitney, 1947) is the second opinion.

use super::Verdict;
use crate::statistics::{Draws, median, percentile, sorted};
use serde::{Deserialize, Serialize};

/// How often is drawn anew. The ends of the interval are then the 250th values from either end, whose own chance error is
/// some 6 % of the tail: of no weight beside the number of repetitions.
pub const RESAMPLES: u32 = 10_000;

/// Below this many results on a side there is no verdict: two on each side are apart by chance in one case of three.
pub const VALUES_MIN: u32 = 3;

/// Above this many results on a side there is no interval: twice what a plan may ask for, and a record may come from anywhere.
const VALUES_MAX: usize = 2_000;

/// Below this many values their whole range is no interval of 95 % for the median: 1 - 2^(1-5) is 93.75 %.
const VALUES_FOR_95: u32 = 6;

/// The medians of two sets of results and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median of the first.
    pub first: f64,
    /// The median of the second.
    pub second: f64,
    /// Second / first.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many values each side has.
    pub counts: (u32, u32),
    /// How often a chance division of all values into two such sets sets them apart as far as this, either way (Mann and
    /// Whitney).
    pub chance: f64,
}

impl Ratio {
    /// The ratio and its interval. Each value may be too low by `grain` (a part of the truth; 0: it is exact), and the
    /// interval is widened by that. Nothing when a side has no values or more than 2,000, or the first has one
    /// that is not positive.
    pub fn of(first: &[f64], second: &[f64], grain: (f64, f64), seed: u64) -> Option<Ratio> {
        let (one, other) = (sorted(first), sorted(second));
        let usable = |values: &[f64]| {
            values.len() <= VALUES_MAX && values.iter().all(|value| value.is_finite() && *value >= 0.0)
        };
        if !usable(&one) || !usable(&other) || *one.first()? <= 0.0 {
            return None;
        }
        let (before, after) = (median(&one)?, median(&other)?);
        let mut draws = Draws::new(seed);
        let mut room = Vec::with_capacity(one.len().max(other.len()));
        let mut ratios = Vec::with_capacity(RESAMPLES as usize);
        for _ in 0..RESAMPLES {
            let below = drawn_median(&one, &mut draws, &mut room)?;
            let above = drawn_median(&other, &mut draws, &mut room)?;
            ratios.push(above / below);
        }
        let ratios = sorted(&ratios);
        Some(Ratio {
            first: before,
            second: after,
            ratio: after / before,
            low: percentile(&ratios, 2.5)? * (1.0 - grain.0.clamp(0.0, 0.5)),
            high: percentile(&ratios, 97.5)? / (1.0 - grain.1.clamp(0.0, 0.5)),
            counts: (one.len() as u32, other.len() as u32),
            chance: chance(&one, &other, &mut draws),
        })
    }

    /// What the interval says, for quantities of which more is better.
    pub fn verdict(&self) -> Verdict {
        if self.high < 1.0 {
            Verdict::Slower
        } else if self.low > 1.0 {
            Verdict::Faster
        } else {
            Verdict::NoDifference
        }
    }

    /// How little it is that few values say; nothing when there are enough.
    pub fn caveat(&self) -> Option<String> {
        let fewest = self.counts.0.min(self.counts.1);
        (fewest < VALUES_FOR_95).then(|| {
            let surely = 100.0 * (1.0 - 0.5f64.powi(fewest.max(1) as i32 - 1));
            format!(
                "{} and {} results: the range of {fewest} contains the true median with {surely:.0} % at most, so the interval is \
                 not one of 95 %; repeat 20 times to be sure",
                self.counts.0, self.counts.1
            )
        })
    }
}

/// The median of as many values as there are, drawn from them with replacement.
fn drawn_median(values: &[f64], draws: &mut Draws, room: &mut Vec<f64>) -> Option<f64> {
    room.clear();
    room.extend((0..values.len()).map(|_| values[draws.below(values.len())]));
    room.sort_by(f64::total_cmp);
    median(room)
}

/// The permutation test: how often the rank sum of chance sets is as far from its mean as that of the real ones.
fn chance(one: &[f64], other: &[f64], draws: &mut Draws) -> f64 {
    let mut ranks = Vec::with_capacity(one.len() + other.len());
    let rank = |value: &f64| -> f64 {
        // Equal values share the mean of their ranks; counted from 0 and doubled these are whole numbers, so sums are exact.
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
        // The first places of a shuffle are a chance set (Fisher and Yates).
        for place in 0..size {
            let from = place + draws.below(ranks.len() - place);
            ranks.swap(place, from);
        }
        // The mean may be no whole number; its error is far below the half that tells two sums apart.
        as_far += u32::from(distance(&ranks) >= real - 1e-6);
    }
    f64::from(as_far + 1) / f64::from(RESAMPLES + 1)
}
