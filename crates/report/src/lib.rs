//! Shows a run (`measure::run::Run`) to people and to other programs: one self-contained HTML page with charts, the tables of
//! the papers as Markdown and LaTeX, trials as CSV, histograms as text. [`conformance`] is the page of another record: what
//! came of conformance cases.
//!
//! Nothing here reads or writes files, nor computes what the run should have said: numbers are shown as they were recorded.
#![forbid(unsafe_code)]

mod chart;
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
