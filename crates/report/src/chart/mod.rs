//! Charts as inline SVG, drawn here so that a report is self-contained: scales, a plot with two axes and its marks,
//! heat tables. Colours are classes (`c1` to `c8`, `muted`, `bad`) that the style sheet defines for each theme.

mod axis;
mod heat;
mod mark;
mod plot;
mod scale;

pub use axis::Axis;
pub use heat::{HeatCell, heat_table};
pub use mark::{Mark, legend, line_legend};
pub use plot::Plot;
pub use scale::Scale;

/// Approximate width of a text in the charts' type of 12 px: digits and small letters are some 6.6 px wide in the
/// usual faces.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.6
}
