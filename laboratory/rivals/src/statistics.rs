//! Medians and ranges. The machine may have slow phases, so a ratio is taken within each round, between measurements
//! that ran seconds apart, and the median of those ratios is quoted, never the ratio of two medians.

use std::fmt;

/// Median and range of a few values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle value; the mean of the two middle ones of an even count.
    pub median: f64,
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

impl Summary {
    /// Summary of the finite values; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Summary { median, low, high })
    }

    /// Summary of the ratios `numerators[i] / denominators[i]`, round by round.
    pub fn of_ratios(numerators: &[f64], denominators: &[f64]) -> Option<Summary> {
        let ratios: Vec<f64> =
            numerators.iter().zip(denominators).map(|(above, below)| above / below).collect();
        Summary::of(&ratios)
    }
}

/// `median [low-high]`, in the precision asked for (`{:.2}`; one decimal by default).
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(f, "{:.digits$} [{:.digits$}-{:.digits$}]", self.median, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_count_is_the_middle_value() {
        let summary = Summary::of(&[5.0, 1.0, 9.0]).unwrap();
        assert_eq!((summary.median, summary.low, summary.high), (5.0, 1.0, 9.0));
        assert_eq!(format!("{summary:.0}"), "5 [1-9]");
    }

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 8.0]).unwrap().median, 3.0);
    }

    #[test]
    fn values_that_are_not_numbers_do_not_count() {
        assert_eq!(Summary::of(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(Summary::of_ratios(&[2.0, 1.0], &[1.0, 0.0]).unwrap().median, 2.0);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let ratios = Summary::of_ratios(&[1.0, 10.0, 3.0], &[2.0, 20.0, 6.0]).unwrap();
        assert_eq!((ratios.median, ratios.low, ratios.high), (0.5, 0.5, 0.5));
    }
}
