//! Record of an experiment of a published paper: `result.json`, from which the page can be made again.
//!
//! A record holds [`Figure`]s: one number each, with its unit, its interval and the paper's number beside it. Figures that
//! name a table, a row and a column are shown as that table. [`Chart`]s hold curves, ours and the paper's. A [`Claim`] is a
//! sentence that the experiment tests, with what would refute it; one that does not hold fails the experiment.

mod interval;

pub use interval::{binomial_range, mean_interval, median_interval, proportion_interval};

use crate::run::Environment;
use serde::{Deserialize, Serialize};

/// Version of the layout of `result.json`. It changes when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// The record of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// [`SCHEMA`] at the time of writing.
    pub schema: u32,
    /// Version and commit of the measuring program.
    pub tool: String,
    /// Name on the command line, such as `ttcp-table1`.
    pub name: String,
    /// One line: the question of the experiment.
    pub title: String,
    /// Paper, and the figures or tables of it that the experiment repeats.
    pub paper: PaperReference,
    /// True for the short version, with fewer repetitions.
    pub quick: bool,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Command line of this experiment.
    pub command: Vec<String>,
    /// Start and end, UTC, RFC 3339.
    pub started: String,
    /// End, UTC, RFC 3339.
    pub ended: String,
    /// The host.
    pub host: Environment,
    /// Programs that took part, with versions and command lines, in order of their first start.
    pub programs: Vec<Program>,
    /// All figures.
    pub figures: Vec<Figure>,
    /// All charts.
    pub charts: Vec<Chart>,
    /// Texts that are shown line by line as they are, such as sequences of segments.
    #[serde(default)]
    pub listings: Vec<Note>,
    /// Sentences that were tested.
    pub claims: Vec<Claim>,
    /// Differences from the paper, and their reasons.
    pub differences: Vec<Note>,
    /// Facts that a reader must know before relying on a number.
    pub warnings: Vec<String>,
}

impl Experiment {
    /// True if every claim holds.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|claim| claim.holds)
    }
}

/// Paper of an experiment, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaperReference {
    /// Authors, title, year.
    pub citation: String,
    /// Repeated parts, such as `Table 1`.
    pub part: String,
}

/// A program that took part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Name.
    pub name: String,
    /// Version as the program reports it.
    pub version: String,
    /// Command line that started it.
    pub command: Vec<String>,
    /// Configuration files: name and text.
    pub files: Vec<(String, String)>,
}

/// Origin of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured with programs, packets and a clock.
    #[default]
    Measured,
    /// Simulated in virtual time.
    Virtual,
    /// Computed from a formula.
    Arithmetic,
    /// Printed in the paper.
    Paper,
}

/// One number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Table that shows the figure, such as `Time of 1,000 queries`.
    pub table: String,
    /// Row of the table.
    pub row: String,
    /// Column of the table.
    pub column: String,
    /// Value; none if it could not be measured here.
    pub value: Option<f64>,
    /// Unit: `s`, `ms`, `us`, `1/s`, `packets`, `%`, `octets`, or empty for a count or a ratio.
    pub unit: String,
    /// 95 % confidence interval of the value.
    pub interval: Option<(f64, f64)>,
    /// Number of observations behind the value.
    pub samples: u64,
    /// Origin of the value.
    pub origin: Origin,
    /// The paper's number, in the same unit.
    pub paper: Option<f64>,
    /// Place of the paper's number, such as `Table 1`; empty without one.
    pub place: String,
}

/// A chart: curves over one axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Short name, unique in the record, of letters, digits and hyphens.
    pub id: String,
    /// Title.
    pub title: String,
    /// One or two sentences that say in words what the chart shows, for readers who do not see it.
    pub description: String,
    /// Horizontal axis.
    pub x: ChartAxis,
    /// Vertical axis.
    pub y: ChartAxis,
    /// Curves, at most [`LINES_MAX`].
    pub lines: Vec<ChartLine>,
}

/// Most curves of a chart: more cannot be told apart.
pub const LINES_MAX: usize = 8;

/// An axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartAxis {
    /// Label with the unit, such as `loss (%)`.
    pub label: String,
    /// True for a logarithmic axis.
    pub logarithmic: bool,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChartLine {
    /// Name in the legend.
    pub name: String,
    /// Origin of the points.
    pub origin: Origin,
    /// Points, in order of x.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// 95 % confidence interval of the vertical value.
    pub interval: Option<(f64, f64)>,
}

/// A sentence that the experiment tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The sentence, such as `T/TCP takes at most 1.15 times as long as UDP at 65 ms`.
    pub sentence: String,
    /// Observation that would refute the sentence. Empty in records of versions that did not ask for it.
    #[serde(default)]
    pub refuted_by: String,
    /// The observed value or values, as text.
    pub observed: String,
    /// True if the sentence holds.
    pub holds: bool,
}

/// A note for the reader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Subject, a few words.
    pub subject: String,
    /// Text.
    pub text: String,
}
