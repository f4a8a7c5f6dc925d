//! Confidence intervals of 95 % for the figures of an experiment.

use crate::statistics::{median, sorted};
use splitmix::SplitMix64;

/// Quantile of the normal distribution for 95 % on both sides.
const Z95: f64 = 1.959_963_984_540_054;

/// Resamples for the interval of a median or a mean: the ends are the 25th and the 976th of 1,000.
const RESAMPLES: usize = 1000;

/// 95 % interval of a probability after `hits` of `trials` (Wilson's score interval, 1927). None without trials.
pub fn proportion_interval(hits: u64, trials: u64) -> Option<(f64, f64)> {
    if trials == 0 {
        return None;
    }
    let (n, share) = (trials as f64, hits as f64 / trials as f64);
    let spread = Z95 * Z95 / n;
    let middle = share + spread / 2.0;
    let half = Z95 * (share * (1.0 - share) / n + spread / (4.0 * n)).sqrt();
    Some((((middle - half) / (1.0 + spread)).max(0.0), ((middle + half) / (1.0 + spread)).min(1.0)))
}

/// 95 % interval of the mean, by resampling (percentile bootstrap). None for fewer than two values.
pub fn mean_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    bootstrap(values, seed, |sample| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// 95 % interval of the median, by resampling (percentile bootstrap). None for fewer than two values.
pub fn median_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    bootstrap(values, seed, |sample| median(&sorted(sample)).unwrap_or(f64::NAN))
}

/// The numbers of hits that an event of this probability has in `trials` trials, without the rare ones: each end leaves out at
/// most half of `rare`, a probability such as 0.05. To test several events at once with one error probability, divide it by
/// their number (Bonferroni).
pub fn binomial_range(trials: u64, probability: f64, rare: f64) -> (u64, u64) {
    if probability <= 0.0 || probability >= 1.0 {
        let hits = if probability <= 0.0 { 0 } else { trials };
        return (hits, hits);
    }
    let odds = (probability / (1.0 - probability)).ln();
    let mut log_density = trials as f64 * (1.0 - probability).ln();
    let (mut below, mut low) = (0.0, None);
    for hits in 0..=trials {
        below += log_density.exp();
        if low.is_none() && below > rare / 2.0 {
            low = Some(hits);
        }
        if below >= 1.0 - rare / 2.0 {
            return (low.unwrap_or(hits), hits);
        }
        log_density += ((trials - hits) as f64 / (hits + 1) as f64).ln() + odds;
    }
    // The sum stays below 1 by rounding.
    (low.unwrap_or(0), trials)
}

fn bootstrap(values: &[f64], seed: u64, statistic: impl Fn(&[f64]) -> f64) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let mut random = SplitMix64::new(seed);
    let mut sample = vec![0.0; values.len()];
    let mut statistics = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        sample.fill_with(|| values[random.place(values.len())]);
        statistics.push(statistic(&sample));
    }
    let statistics = sorted(&statistics);
    Some((statistics[24], statistics[RESAMPLES - 25]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_proportion_is_wilsons() {
        // Worked example in Newcombe, Two-sided confidence intervals for the single proportion, 1998: 81 of 263 and 0 of 20.
        let (low, high) = proportion_interval(81, 263).unwrap();
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5, "{low} {high}");
        let (low, high) = proportion_interval(0, 20).unwrap();
        assert!(low == 0.0 && (high - 0.1611).abs() < 5e-5, "{low} {high}");
        assert_eq!(proportion_interval(0, 0), None);
    }

    #[test]
    fn the_range_of_a_binomial_count_leaves_out_the_rare_ends() {
        // 10 fair coins: P(0 or 1 heads) = 11/1024 < 0.025, P(at most 2) = 56/1024 > 0.025; symmetric at the other end.
        assert_eq!(binomial_range(10, 0.5, 0.05), (2, 8));
        assert_eq!((binomial_range(10, 0.0, 0.05), binomial_range(10, 1.0, 0.05)), ((0, 0), (10, 10)));
        // P(0) = 0.99907^1000 = 0.39 and P(at most 3) = 0.986 with a mean of 0.93.
        assert_eq!(binomial_range(1000, 0.000_93, 0.05), (0, 3));
        // Normal approximation for 100,000 trials: 13,265 +- 1.96 * 107.3.
        let (low, high) = binomial_range(100_000, 0.132_651, 0.05);
        assert!(low.abs_diff(13_055) <= 2 && high.abs_diff(13_475) <= 2, "{low} {high}");
    }

    #[test]
    fn an_interval_by_resampling_covers_the_statistic_of_most_samples() {
        // 200 samples of 50 uniform values: the mean 0.5 is inside about 95 % of the intervals.
        let mut random = SplitMix64::new(1);
        let inside = (0..200)
            .filter(|seed| {
                let values: Vec<f64> = (0..50).map(|_| random.unit()).collect();
                let (low, high) = mean_interval(&values, *seed).unwrap();
                low <= 0.5 && 0.5 <= high
            })
            .count();
        assert!((176..=200).contains(&inside), "{inside}");
        assert_eq!(median_interval(&[1.0], 1), None);
        assert_eq!(median_interval(&[3.0, 3.0, 3.0], 1), Some((3.0, 3.0)));
    }
}
