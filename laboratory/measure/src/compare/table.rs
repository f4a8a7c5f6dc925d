//! A comparison as text for a terminal.

use super::{CellComparison, Comparison, Difference, Ratio, SIGNIFICANCE, Verdict, p_text};
use std::fmt;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference shown",
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
            "{:width$}  {:>5} {:>6}  {:16} {:>11} {:>11} {:>6}  {:17} {:>6}  second is",
            "sweep", "AAAA", "cached", "", "first", "second", "ratio", "95 % interval", "p"
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
        writeln!(f, "{}", conclusion(self))
    }
}

/// The result of a comparison in one or two sentences.
pub fn conclusion(comparison: &Comparison) -> String {
    let level = format!("(95 % interval without 1, and p < {SIGNIFICANCE})");
    let ratios: Vec<&Ratio> = comparison.cells.iter().filter_map(|cell| cell.strict.as_ref()).collect();
    match comparison.verdict {
        Verdict::Faster => format!("The second is faster {level}, and nowhere slower."),
        Verdict::Slower if comparison.cells.len() > 1 => {
            format!("The second is slower in at least one cell {level}.")
        }
        Verdict::Slower => format!("The second is slower {level}."),
        Verdict::Incomparable if comparison.cells.is_empty() => {
            "The second is not comparable with the first: they have no cell in common.".to_owned()
        }
        Verdict::Incomparable => {
            "The second is not comparable with the first; the notes give the reasons and remedies.".to_owned()
        }
        Verdict::NoDifference => match ratios.as_slice() {
            [ratio] => format!(
                "No difference is shown (p = {}; {} and {} repetitions can show at best p = {}).",
                p_text(ratio.p),
                ratio.counts.0,
                ratio.counts.1,
                p_text(ratio.p_least)
            ),
            _ => format!("No difference is shown in any cell {level}."),
        },
    }
}

/// The lines of one cell: rates, confirmed rates, CPU time, and a note.
fn lines(f: &mut fmt::Formatter<'_>, cell: &CellComparison, width: usize) -> fmt::Result {
    let shares = (100.0 * cell.cell.aaaa_share, 100.0 * cell.cell.cached_share);
    write!(f, "{:width$}  {:>3.0} % {:>4.0} %  ", cell.sweep, shares.0, shares.1)?;
    match &cell.strict {
        Some(ratio) => row(f, "queries/s", ratio, 0)?,
        None => write!(f, "{:16} {:>11} {:>11} {:>6}  {:17} {:>6} ", "queries/s", "-", "-", "-", "-", "-")?,
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
    let p = p_text(ratio.p);
    let Ratio { first, second, ratio, .. } = ratio;
    write!(f, "{name:16} {first:>11.digits$} {second:>11.digits$} {ratio:>6.3}  {interval:17} {p:>6} ")
}
