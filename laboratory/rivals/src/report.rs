//! Report: Markdown for people, and JSON with every single measurement for programs.

use crate::chart::Chart;
use crate::statistics::Summary;
use serde_json::{Value, json};
use std::fmt;

/// A table. The first column is text, the others are figures.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// Names of the columns, with units.
    pub columns: Vec<&'static str>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// Bound that a goal sets for a ratio.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// The ratio may not be larger.
    AtMost(f64),
    /// The ratio may not be smaller.
    AtLeast(f64),
}

/// A goal of the project, with the measured value.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The ratio in words.
    pub ratio: String,
    /// Bound for its median.
    pub bound: Bound,
    /// Measured value; `None` if a part of it was left out.
    pub measured: Option<Summary>,
}

impl Goal {
    /// Returns true if the goal was reached; `None` if it was not measured.
    pub fn met(&self) -> Option<bool> {
        self.measured.map(|summary| match self.bound {
            Bound::AtMost(limit) => summary.median <= limit,
            Bound::AtLeast(limit) => summary.median >= limit,
        })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.bound {
            Bound::AtMost(limit) => format!("at most {limit:.3}"),
            Bound::AtLeast(limit) => format!("at least {limit:.3}"),
        };
        let verdict = match self.met() {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        let measured = self.measured.map_or_else(|| "-".to_owned(), |summary| format!("{summary:.3}"));
        write!(f, "- {}: {measured}, goal {bound}: {verdict}", self.ratio)
    }
}

/// Section of one experiment.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Key in the JSON object.
    pub key: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Description of the measurement and hints for the reader; one paragraph each.
    pub notes: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its charts.
    pub charts: Vec<Chart>,
    /// Its goals.
    pub goals: Vec<Goal>,
    /// Every measurement.
    pub data: Value,
}

impl Section {
    /// The section as JSON.
    pub fn json(&self) -> Value {
        let goals: Vec<Value> = self
            .goals
            .iter()
            .map(|goal| {
                let (kind, limit) = match goal.bound {
                    Bound::AtMost(limit) => ("at-most", limit),
                    Bound::AtLeast(limit) => ("at-least", limit),
                };
                let measured = goal.measured.map(|s| json!({"median": s.median, "low": s.low, "high": s.high}));
                json!({"ratio": goal.ratio, "bound": kind, "limit": limit, "measured": measured, "met": goal.met()})
            })
            .collect();
        json!({"title": self.title, "notes": self.notes, "goals": goals, "data": self.data})
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        for note in &self.notes {
            writeln!(f, "{note}\n")?;
        }
        for table in &self.tables {
            writeln!(f, "{table}")?;
        }
        for goal in &self.goals {
            writeln!(f, "{goal}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([self.columns[column].chars().count(), 3]).max().unwrap_or(3)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        writeln!(f, "### {}\n", self.title)?;
        row(f, &widths, self.columns.iter().copied())?;
        f.write_str("|")?;
        for (column, width) in widths.iter().enumerate() {
            write!(f, " {}{} |", "-".repeat(width - 1), if column == 0 { '-' } else { ':' })?;
        }
        f.write_str("\n")?;
        for cells in &self.rows {
            row(f, &widths, cells.iter().map(String::as_str))?;
        }
        Ok(())
    }
}

fn row<'a>(
    f: &mut fmt::Formatter<'_>,
    widths: &[usize],
    cells: impl Iterator<Item = &'a str>,
) -> fmt::Result {
    f.write_str("|")?;
    for (column, (cell, &width)) in cells.zip(widths).enumerate() {
        if column == 0 { write!(f, " {cell:<width$} |")? } else { write!(f, " {cell:>width$} |")? }
    }
    f.write_str("\n")
}

/// A summary for a table cell, with this number of decimals; a dash if nothing was measured.
pub fn cell(values: &[f64], decimals: usize) -> String {
    Summary::of(values).map_or_else(|| "-".to_owned(), |summary| format!("{summary:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_with_aligned_columns() {
        let table = Table {
            title: "T".into(),
            columns: vec!["device", "us"],
            rows: vec![vec!["a".into(), "12.5".into()], vec!["longer name".into(), "3".into()]],
        };
        let expected = "### T\n\n| device      |   us |\n| ----------- | ---: |\n\
                        | a           | 12.5 |\n| longer name |    3 |\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_goal_is_judged_by_the_median() {
        let measured = Summary::of(&[0.1, 0.2, 0.9]);
        let goal = |bound| Goal { ratio: "x".into(), bound, measured };
        assert_eq!(goal(Bound::AtMost(0.2)).met(), Some(true));
        assert_eq!(goal(Bound::AtLeast(0.3)).met(), Some(false));
        assert!(goal(Bound::AtLeast(0.3)).to_string().ends_with("MISSED"));
        assert_eq!(Goal { measured: None, ..goal(Bound::AtMost(1.0)) }.met(), None);
    }
}
