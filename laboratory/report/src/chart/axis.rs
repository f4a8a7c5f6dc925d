//! An axis: a scale, its ticks, its name and unit.

use super::Scale;

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Conversion from values to positions.
    pub scale: Scale,
    /// Name and unit of the values.
    pub label: String,
    /// Values with a label.
    pub ticks: Vec<(f64, String)>,
    /// True if a line crosses the plot at each tick.
    pub grid: bool,
}

impl Axis {
    /// An axis with about this number of ticks.
    pub fn new(scale: Scale, label: impl Into<String>, wanted: usize, show: fn(f64) -> String) -> Axis {
        let ticks = scale.ticks(wanted).into_iter().map(|value| (value, show(value))).collect();
        Axis { scale, label: label.into(), ticks, grid: true }
    }

    /// An axis of names from left to right: the one with index `i` takes the space from `i` to `i + 1`.
    pub fn names(names: &[String], label: impl Into<String>) -> Axis {
        let scale = Scale::Linear { low: 0.0, high: names.len().max(1) as f64 };
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64 + 0.5, name.clone())).collect();
        Axis { scale, label: label.into(), ticks, grid: false }
    }

    /// An axis of names from top to bottom: the one with index `i` has its middle at [`Axis::row`].
    pub fn rows(names: &[String]) -> Axis {
        let mut axis = Axis::names(names, "");
        for (at, tick) in axis.ticks.iter_mut().enumerate() {
            tick.0 = Axis::row(at, names.len());
        }
        axis
    }

    /// The middle of a row of an axis of names from top to bottom.
    pub fn row(at: usize, rows: usize) -> f64 {
        rows as f64 - at as f64 - 0.5
    }
}
