//! Distribution of latencies: a histogram for percentiles, which are right to three digits, and sums for mean and standard
//! deviation, which are exact.

use crate::limits;
use hdrhistogram::Histogram;
use measure::outcome::Latency;

/// Latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
    /// Sum of the latencies, and of their squares: 7 days of 10^9 latencies a second are 2^50, each squared below 2^74 (2
    /// minutes), so 128 bits suffice.
    sum: u128,
    squares: u128,
}

impl Distribution {
    /// An empty distribution.
    pub fn new() -> Distribution {
        // The bounds are constants that the library allows.
        let histogram = Histogram::new_with_bounds(1, limits::LATENCY_NS, limits::LATENCY_DIGITS);
        let histogram = histogram.unwrap_or_else(|_| unreachable!("bounds of the histogram"));
        Distribution { histogram, sum: 0, squares: 0 }
    }

    /// Records a latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
    }

    /// Adds the latencies of another thread.
    pub fn add(&mut self, other: &Distribution) {
        // Histograms of equal bounds can always be added.
        let _ = self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// One distribution of the latencies of several. Percentiles come from the sum of the histograms. Mean and deviation come from
    /// those of the parts: the sum of squared deviations from the common mean is, for each part of n latencies, (n - 1) s^2 + n (m -
    /// mean)^2.
    pub fn merged<'a>(parts: impl Iterator<Item = &'a Latency>) -> Latency {
        let parts: Vec<&Latency> = parts.filter(|part| part.count > 0).collect();
        let mut all = Distribution::new();
        for &(value, count) in parts.iter().flat_map(|part| &part.histogram) {
            all.histogram.saturating_record_n(value.max(1), count);
        }
        let count: f64 = parts.iter().map(|part| part.count as f64).sum();
        let mean = parts.iter().map(|part| part.mean * part.count as f64).sum::<f64>() / count.max(1.0);
        let squares = parts.iter().map(|part| {
            let n = part.count as f64;
            (n - 1.0) * part.standard_deviation.powi(2) + n * (part.mean - mean).powi(2)
        });
        let standard_deviation = (squares.sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
        let least = parts.iter().map(|part| part.min).reduce(f64::min).unwrap_or(0.0);
        let most = parts.iter().map(|part| part.max).reduce(f64::max).unwrap_or(0.0);
        Latency { min: least, max: most, mean, standard_deviation, ..all.latency() }
    }

    /// The distribution in microseconds.
    pub fn latency(&self) -> Latency {
        let histogram = &self.histogram;
        if histogram.is_empty() {
            return Latency::default();
        }
        let us = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let quantile = |quantile| us(histogram.value_at_quantile(quantile));
        let count = histogram.len();
        Latency {
            count,
            min: us(histogram.min()),
            mean: self.sum as f64 / count as f64 / 1e3,
            standard_deviation: self.variance(u128::from(count)).sqrt() / 1e3,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: us(histogram.max()),
            histogram: histogram
                .iter_recorded()
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
                .collect(),
        }
    }

    /// The variance of a sample, with the divisor n - 1. The sum of squared deviations is squares - sum^2 / n. With sum = q n +
    /// r, sum^2 / n is sum q + sum r / n: every step is exact in integers and below 2^128.
    fn variance(&self, count: u128) -> f64 {
        if count < 2 {
            return 0.0;
        }
        let (quotient, rest) = (self.sum / count, self.sum % count);
        let deviations = self.squares.saturating_sub(self.sum * quotient + self.sum * rest / count);
        deviations as f64 / (count - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: impl IntoIterator<Item = u64>) -> Latency {
        let mut distribution = Distribution::new();
        latencies.into_iter().for_each(|ns| distribution.record(ns));
        distribution.latency()
    }

    #[test]
    fn mean_and_deviation_are_exact_where_the_histogram_is_not() {
        // The textbook example, around a large offset in which a sum of floating-point squares would lose everything.
        let offset = 1_000_000_123_456;
        let latency = of([2, 4, 4, 4, 5, 5, 7, 9].map(|value| offset + value));
        assert_eq!(latency.mean, (offset + 5) as f64 / 1e3);
        assert_eq!(latency.standard_deviation, (32f64 / 7.0).sqrt() / 1e3);
        let latency = of(1..=1000);
        assert_eq!(latency.mean, 0.5005);
        assert!((latency.standard_deviation - (1000.0f64 * 1001.0 / 12.0).sqrt() / 1e3).abs() < 1e-12);
    }

    #[test]
    fn one_latency_has_no_deviation_and_none_has_nothing() {
        assert_eq!((of([7]).mean, of([7]).standard_deviation), (0.007, 0.0));
        assert_eq!(of([]), Latency::default());
    }

    #[test]
    fn two_parts_are_one_distribution() {
        let (mut one, mut other) = (Distribution::new(), Distribution::new());
        (0..500).for_each(|value| one.record(value * 1_000));
        (500..900).for_each(|value| other.record(value * 1_000));
        one.add(&other);
        assert_eq!(one.latency(), of((0..900).map(|value| value * 1_000)));
    }
}
