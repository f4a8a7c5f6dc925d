//! Charts as inline SVG, drawn here so that a report is self-contained: scales, a plot with two axes and its marks,
//! heat tables, bars. Colours are classes (`c1` to `c8`, `muted`, `bad`) that the style sheet defines for each theme.

mod axis;
mod bars;
mod heat;
mod mark;
mod plot;
mod scale;
mod style;

pub use axis::Axis;
pub use bars::BarChart;
pub use heat::{HeatCell, heat_table};
pub use mark::{Mark, legend, line_legend};
pub use plot::Plot;
pub use scale::Scale;

use measure::experiment::LINES_MAX;

/// Marks of curves, in order.
pub const CURVE_MARKS: [Mark; LINES_MAX] = [
    Mark::Dot,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::Ring,
    Mark::Frame,
    Mark::Wedge,
    Mark::Tent,
];

/// Classes of the curves' colours, in order: neighbours differ for colour-blind readers, too.
pub const CURVE_COLOURS: [&str; LINES_MAX] = ["c1", "c2", "c3", "c4", "c5", "c7", "c8", "c6"];

/// Approximate width of a text in the charts' type of 12 px: digits and small letters are some 6.6 px wide in the
/// usual faces.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.6
}
