//! Charts as inline SVG, made here so that a report needs nothing from elsewhere: scales, a plot with two axes and what is
//! drawn in it, heat tables. Colours are classes (`c1` to `c6`, `muted`, `bad`) that the style sheet fills in by theme.

mod axis;
mod heat;
mod plot;
mod scale;

pub use axis::Axis;
pub use heat::{HeatCell, heat_table};
pub use plot::{Mark, Plot, legend};
pub use scale::Scale;

/// Width of a text in the charts' type of 12 px, about: digits and small letters are some 6.6 px wide in the usual faces.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.6
}
