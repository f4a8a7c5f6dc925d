//! Presentation of a run (`measure::run::Run`), or of several together, for people and for other programs: one
//! self-contained HTML page with charts, the tables and the method of a paper as Markdown and LaTeX, trials as CSV,
//! histograms as text. [`comparison`] shows two runs against each other, and [`Frame`] is what all pages share.
//!
//! This crate reads and writes no files, and computes no results: it shows numbers as they were recorded.
//!
//! Read first: `page/mod.rs` (the sections of the page), then `groups.rs` (results with their trials).
#![forbid(unsafe_code)]

mod certificates;
mod chart;
mod combined;
pub mod command_line;
pub mod comparison;
pub mod escape;
mod grid;
mod groups;
mod limits;
mod method;
mod named;
pub mod number;
mod page;
mod paper_tables;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod surroundings;
pub mod table;
mod text;
mod text_list;
mod verdict;
mod warnings;

pub use certificates::certificates_csv;
pub use chart::BarChart;
pub use combined::{latex as combined_latex, markdown as combined_markdown};
pub use named::{Named, named};
pub use page::{Frame, badges, combined_html, combined_svg, experiment_html, html};
pub use paper_tables::{latex, markdown};
pub use text::{histogram_text, trials_csv};
pub use verdict::{indicative, repeated, sentence};

/// Appends formatted text to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {{
        use std::fmt::Write;
        let _ = write!($out, $($arguments)*);
    }};
}
pub(crate) use put;
