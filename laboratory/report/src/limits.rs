//! Limits of the page's size.

/// Size up to which the whole run is embedded in the page. Beyond it the page leaves out the histograms, then the
/// trials. Browsers parse 4 MiB of JSON in some 50 ms, and a page of this size can still be mailed.
pub const EMBEDDED_OCTETS: usize = 5 << 20;

/// Rows of the table below a chart. Twenty searches of at most 22 steps, each failure confirmed, are some 660 trials.
pub const TABLE_ROWS: usize = 700;

/// Trials of a run up to which every result has its own chart of searches. A mark and its row take some 300 octets,
/// so the charts stay below 3 MB. In larger runs only the principal result has a chart.
pub const DRAWN_TRIALS: usize = 10_000;

/// Points of a line: more than a screen has pixels for them.
pub const LINE_POINTS: usize = 400;

/// Points of a chart that shows every trial of a result.
pub const CHART_POINTS: usize = 2_000;
