//! A comparison as text for a terminal.

use super::{CellComparison, Comparison, Difference, Ratio, Verdict};
use std::fmt;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference",
            Verdict::Incomparable => "incomparable",
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "first:  {}", self.first)?;
        writeln!(f, "second: {}", self.second)?;
        writeln!(f)?;
        // The width of a column follows the longest sweep value; all other columns have fixed widths.
        let width = self.cells.iter().map(|cell| cell.sweep.chars().count()).fold(5, usize::max);
        writeln!(
            f,
            "{:width$}  {:>5} {:>6}  {:16} {:>11} {:>11} {:>6}  {:17} second is",
            "sweep", "AAAA", "cached", "", "first", "second", "ratio", "95 % interval"
        )?;
        for cell in &self.cells {
            lines(f, cell, width)?;
        }
        for Difference { what, first, second } in &self.differences {
            writeln!(f, "different: {what}: {first} and {second}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "note: {warning}")?;
        }
        writeln!(f, "The second is {}.", sentence(self.verdict))
    }
}

fn sentence(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster, and nowhere slower",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "neither faster nor slower within the measurement's precision",
        Verdict::Incomparable => "not comparable with the first",
    }
}

/// The lines of one cell: rates, confirmed rates, CPU time, and a note.
fn lines(f: &mut fmt::Formatter<'_>, cell: &CellComparison, width: usize) -> fmt::Result {
    let shares = (100.0 * cell.cell.aaaa_share, 100.0 * cell.cell.cached_share);
    write!(f, "{:width$}  {:>3.0} % {:>4.0} %  ", cell.sweep, shares.0, shares.1)?;
    match &cell.strict {
        Some(ratio) => row(f, "queries/s", ratio, 0)?,
        None => write!(f, "{:16} {:>11} {:>11} {:>6}  {:17}", "queries/s", "-", "-", "-", "-")?,
    }
    writeln!(f, " {}", cell.verdict)?;
    let further = [("confirmed", &cell.confirmed, 0), ("CPU us/query", &cell.cpu, 2)];
    for (name, ratio, digits) in further {
        if let Some(ratio) = ratio {
            write!(f, "{:width$}  {:>5} {:>6}  ", "", "", "")?;
            row(f, name, ratio, digits)?;
            writeln!(f)?;
        }
    }
    if cell.note.is_empty() { Ok(()) } else { writeln!(f, "{:width$}  ({})", "", cell.note) }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, ratio: &Ratio, digits: usize) -> fmt::Result {
    let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
    let Ratio { first, second, ratio, .. } = ratio;
    write!(f, "{name:16} {first:>11.digits$} {second:>11.digits$} {ratio:>6.3}  {interval:17}")
}
