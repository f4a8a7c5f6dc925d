//! Statistics of RFC 8219 section 12: the median, and the 1st and 99th percentile, "calculated" as in RFC 2330
//! section 11.3; in addition mean, standard deviation, and a note about outliers.
//!
//! RFC 2330 section 11.3 defines the percentile as "the smallest value of x for which F(x) >= a given percentage",
//! where F is the share of measurements that are <= x. Its example contradicts the definition in one place: for -5,
//! -2, 4, 7, 7, 18 it gives minus infinity as the 15th percentile, although F(-5) = 1/6 is above 15 %. This module
//! follows the definition, as the papers on DNS64 do when they say that the 1st percentile of 20 results is the
//! smallest one.

use crate::run::Summary;

impl Summary {
    /// Summarizes values. Without values, all fields are zero.
    pub fn of(values: &[f64]) -> Summary {
        let sorted = sorted(values);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Summary::default() };
        let count = sorted.len() as f64;
        // Rounding may put the mean of equal values slightly outside their range.
        let mean = (sorted.iter().sum::<f64>() / count).clamp(*min, *max);
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        Summary {
            count: sorted.len() as u32,
            median: median(&sorted).unwrap_or_default(),
            p1: percentile(&sorted, 1.0).unwrap_or_default(),
            p99: percentile(&sorted, 99.0).unwrap_or_default(),
            mean,
            deviation: if sorted.len() < 2 { 0.0 } else { (squares / (count - 1.0)).sqrt() },
            min: *min,
            max: *max,
        }
    }

    /// True if the standard deviation is above 10 % of the mean, which Lencse and Bakai (mtd64-ng, 2017, section 4.3) call scattered
    /// results: the repetitions have met different conditions, and their median is no property of the device alone.
    pub fn is_scattered(&self) -> bool {
        self.deviation > 0.1 * self.mean
    }

    /// The interval of the true rate: from the 1st percentile of the repetitions to the 99th, and beyond it by the
    /// precision of the search (a share of 1). A search ends at a passed rate r with a failed rate of at most r / (1 -
    /// precision) above it, and the true limit lies between the two.
    pub fn interval(&self, precision: f64) -> (f64, f64) {
        (self.p1, self.p99 / (1.0 - precision.clamp(0.0, 0.5)))
    }
}

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The percentile (`percent` from 0 to 100) of values in ascending order: the smallest value x such that at least
/// that share of all values is <= x (RFC 2330 section 11.3). At 0 this is minus infinity, as the RFC says. `None`
/// without values.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    if percent <= 0.0 {
        return sorted.first().map(|_| f64::NEG_INFINITY);
    }
    // The k-th smallest value has F >= k/n, so the rank is the smallest k with k/n >= percent/100. Multiplying before
    // dividing keeps whole percentages of whole numbers exact.
    let rank = (percent * sorted.len() as f64 / 100.0).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The median of values in ascending order: the middle value, or the mean of the middle two (RFC 2330 section 11.3).
pub fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        0 => Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0),
        _ => Some(upper),
    }
}

/// Probability, at most, that the range of so many values contains the true median: all values are above it with
/// probability 2^-n, and all below it with the same, so it is 1 - 2^(1-n). 0 for no value or one.
pub fn range_coverage(values: u32) -> f64 {
    1.0 - 0.5f64.powi(values.clamp(1, 1_000) as i32 - 1)
}

/// Outliers: values so far from the median that another cause than the device is likely. They are more than 3.5
/// robust standard deviations away (1.4826 times the median absolute deviation; the limit is that of Iglewicz and
/// Hoaglin, 1993), and more than `resolution` times the median, below which a search cannot distinguish two rates.
pub fn outliers(values: &[f64], resolution: f64) -> Vec<f64> {
    let ordered = sorted(values);
    let Some(middle) = median(&ordered) else { return Vec::new() };
    let distances = sorted(&ordered.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>());
    let spread = 1.4826 * median(&distances).unwrap_or_default();
    let bound = (3.5 * spread).max(resolution * middle.abs());
    ordered.into_iter().filter(|value| (value - middle).abs() > bound).collect()
}

/// A warning for a report if there are [`outliers`].
pub fn outlier_note(values: &[f64], resolution: f64) -> Option<String> {
    let far = outliers(values, resolution);
    let shown: Vec<String> = far.iter().take(5).map(|value| format!("{value:.0}")).collect();
    let more = if far.len() > shown.len() { ", ..." } else { "" };
    (!far.is_empty()).then(|| {
        format!(
            "{} of {} results are far from the median ({}{more}): another program may have used the machine, or the device \
             sometimes loses a query at any rate; compare with the confirmed results",
            far.len(),
            values.len(),
            shown.join(", "),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 2330 section 11.3.
    const EXAMPLE: [f64; 6] = [-2.0, 7.0, 7.0, 4.0, 18.0, -5.0];

    /// The definition, word for word: the smallest measured x with F(x) >= p.
    fn by_definition(values: &[f64], percent: f64) -> f64 {
        let share = |x: f64| values.iter().filter(|value| **value <= x).count() as f64 * 100.0;
        let reached =
            values.iter().copied().filter(|x| share(*x) >= percent * values.len() as f64).reduce(f64::min);
        reached.unwrap()
    }

    #[test]
    fn the_example_of_rfc_2330_has_the_percentiles_that_it_says() {
        let sorted = sorted(&EXAMPLE);
        for (percent, value) in [(25.0, -2.0), (50.0, 4.0), (100.0, 18.0), (0.0, f64::NEG_INFINITY)] {
            assert_eq!(percentile(&sorted, percent), Some(value), "{percent}");
        }
        // Even number of values: the mean of the third and the fourth.
        assert_eq!(median(&sorted), Some(5.5));
    }

    #[test]
    fn where_the_rfc_s_example_contradicts_its_definition_the_definition_is_followed() {
        assert_eq!(percentile(&sorted(&EXAMPLE), 15.0), Some(-5.0));
        assert_eq!(by_definition(&EXAMPLE, 15.0), -5.0);
    }

    #[test]
    fn of_20_results_the_outer_percentiles_are_the_smallest_and_the_largest() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let summary = Summary::of(&values);
        assert_eq!((summary.p1, summary.p99), (1.0, 20.0));
        assert_eq!((summary.min, summary.max), (1.0, 20.0));
        assert_eq!((summary.median, summary.mean, summary.count), (10.5, 10.5, 20));
        // The sum of squares of -9.5..=9.5 is 665.
        assert_eq!(summary.deviation, (665.0f64 / 19.0).sqrt());
    }

    #[test]
    fn the_percentiles_leave_the_ends_where_the_number_of_values_allows_it() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 1.0), Some(2.0));
        assert_eq!(percentile(&values, 99.0), Some(198.0));
        assert_eq!(percentile(&values[..100], 1.0), Some(1.0));
        assert_eq!(percentile(&values[..100], 99.0), Some(99.0));
        assert_eq!(percentile(&values[..101], 1.0), Some(2.0));
    }

    #[test]
    fn nothing_and_a_single_value_are_summed_up_too() {
        assert_eq!(Summary::of(&[]), Summary::default());
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(median(&[]), None);
        let one = Summary::of(&[7.0]);
        assert_eq!((one.median, one.p1, one.p99, one.mean, one.deviation), (7.0, 7.0, 7.0, 7.0, 0.0));
        assert!(!one.is_scattered() && !Summary::default().is_scattered());
        // Mean 100, standard deviations 10 and 10.1.
        assert!(!Summary::of(&[90.0, 100.0, 110.0]).is_scattered());
        assert!(Summary::of(&[89.9, 100.0, 110.1]).is_scattered());
    }

    #[test]
    fn the_interval_of_a_rate_has_the_precision_of_the_search_in_it() {
        let summary = Summary { p1: 6_440.0, p99: 6_650.0, ..Summary::default() };
        // 6,650 / 0.95.
        assert_eq!(summary.interval(0.05), (6_440.0, 7_000.0));
        assert_eq!(summary.interval(0.0), (6_440.0, 6_650.0));
        assert_eq!(summary.interval(f64::INFINITY), (6_440.0, 13_300.0));
    }

    #[test]
    fn the_range_of_three_values_has_the_median_in_three_cases_of_four() {
        assert_eq!([0, 1, 2, 3, 5].map(range_coverage), [0.0, 0.0, 0.5, 0.75, 0.9375]);
        assert_eq!(range_coverage(u32::MAX), 1.0);
    }

    #[test]
    fn a_result_far_off_is_noted_and_the_grain_of_the_search_is_not() {
        let mut values = vec![10_000.0; 18];
        values.push(10_080.0);
        assert_eq!(outlier_note(&values, 0.01), None);
        values.push(5_119.0);
        assert_eq!(outliers(&values, 0.01), [5_119.0]);
        assert!(
            outlier_note(&values, 0.01)
                .unwrap()
                .starts_with("1 of 20 results are far from the median (5119)")
        );
    }

    proptest! {
        #[test]
        fn percentiles_are_what_the_definition_says(
            values in prop::collection::vec(-1e6..1e6f64, 1..120), percent in 1u32..=100,
        ) {
            let percent = f64::from(percent);
            prop_assert_eq!(percentile(&sorted(&values), percent), Some(by_definition(&values, percent)));
        }

        #[test]
        fn a_summary_is_in_order(values in prop::collection::vec(-1e6..1e6f64, 1..120)) {
            let s = Summary::of(&values);
            prop_assert!(s.min <= s.p1 && s.p1 <= s.median && s.median <= s.p99 && s.p99 <= s.max);
            prop_assert!(s.min <= s.mean && s.mean <= s.max && s.deviation >= 0.0);
            let half = values.iter().filter(|value| **value <= s.median).count();
            prop_assert!(2 * half >= values.len());
        }
    }
}
