//! Presentation of a run (`measure::run::Run`) for people and for other programs: one self-contained HTML page with
//! charts, the tables of the papers as Markdown and LaTeX, trials as CSV, histograms as text. [`conformance`] is the
//! page for the results of conformance cases.
//!
//! This crate reads and writes no files, and computes no results: it shows numbers as they were recorded.
//!
//! Read first: `page/mod.rs` (the sections of the page), then `groups.rs` (results with their trials).
#![forbid(unsafe_code)]

mod chart;
pub mod comparison;
pub mod conformance;
pub mod escape;
mod grid;
mod groups;
mod limits;
pub mod number;
mod page;
mod paper_tables;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod table;
mod text;
mod verdict;

pub use page::html;
pub use paper_tables::{latex, markdown};
pub use text::{histogram_text, trials_csv};
pub use verdict::sentence;

/// Appends formatted text to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {{
        use std::fmt::Write;
        let _ = write!($out, $($arguments)*);
    }};
}
pub(crate) use put;
