//! Straight line through points by least squares, with the 95 % confidence interval of its slope.

use measure::experiment::Point;

/// Quantiles of Student's t distribution for 95 % on both sides, for 1 to 12 degrees of freedom; the last one also stands for
/// more, which makes the interval at most 11 % too wide (1.960 for infinitely many).
const T95: [f64; 12] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];

/// A line `y = intercept + slope * x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Value at 0.
    pub intercept: f64,
    /// Growth for 1 of x.
    pub slope: f64,
    /// Half of the 95 % confidence interval of the slope.
    pub half_width: f64,
    /// Number of points.
    pub points: u64,
}

impl Line {
    /// The line through points. None for fewer than three points, or if all have one x.
    pub fn through(points: &[Point]) -> Option<Line> {
        let count = points.len() as f64;
        let t = T95.get(points.len().checked_sub(3)?.min(T95.len() - 1))?;
        let mean = |value: fn(&Point) -> f64| points.iter().map(value).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.x), mean(|point| point.y));
        let spread: f64 = points.iter().map(|point| (point.x - x).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|point| (point.x - x) * (point.y - y)).sum::<f64>() / spread;
        let intercept = y - slope * x;
        let residuals: f64 = points.iter().map(|point| (point.y - intercept - slope * point.x).powi(2)).sum();
        let half_width = t * (residuals / (count - 2.0) / spread).sqrt();
        Some(Line { intercept, slope, half_width, points: points.len() as u64 })
    }

    /// Value at x, with the interval that the slope's leaves.
    pub fn at(&self, x: f64) -> (f64, (f64, f64)) {
        let value = self.intercept + self.slope * x;
        (value, (value - self.half_width * x, value + self.half_width * x))
    }

    /// The 95 % confidence interval of the slope.
    pub fn slope_interval(&self) -> (f64, f64) {
        (self.slope - self.half_width, self.slope + self.half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(f64, f64)]) -> Vec<Point> {
        values.iter().map(|(x, y)| Point { x: *x, y: *y, interval: None }).collect()
    }

    #[test]
    fn points_on_a_line_give_the_line_and_no_interval() {
        let line = Line::through(&points(&[(0.0, 3.0), (1.0, 5.0), (4.0, 11.0)])).unwrap();
        assert!((line.intercept - 3.0).abs() < 1e-12 && (line.slope - 2.0).abs() < 1e-12, "{line:?}");
        assert!(line.half_width < 1e-12, "{line:?}");
        let (value, (low, high)) = line.at(100.0);
        assert!((value - 203.0).abs() < 1e-9 && low <= value && value <= high);
    }

    #[test]
    fn the_interval_is_that_of_the_formula() {
        // Means 2 and 3; slope 3/2; residuals 1/2, -1, 1/2: their squares sum up to 3/2; standard error sqrt(3/2/1/2).
        let line = Line::through(&points(&[(1.0, 2.0), (2.0, 2.0), (3.0, 5.0)])).unwrap();
        assert!((line.slope - 1.5).abs() < 1e-12 && line.intercept.abs() < 1e-12, "{line:?}");
        assert!((line.half_width - 12.706 * 0.75f64.sqrt()).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn too_few_points_or_one_size_give_no_line() {
        assert_eq!(Line::through(&points(&[(1.0, 2.0), (2.0, 3.0)])), None);
        assert_eq!(Line::through(&points(&[(1.0, 2.0), (1.0, 3.0), (1.0, 4.0)])), None);
        assert_eq!(Line::through(&[]), None);
    }
}
