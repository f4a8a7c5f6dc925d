//! Report: Markdown for people, and JSON with every single measurement for programs.

use measure::run::Summary;
use report::BarChart;
use report::table::Table;
use serde_json::{Value, json};
use std::fmt;

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
        let measured = self.measured.map_or_else(|| "-".to_owned(), |summary| shown(&summary, 3));
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
    pub charts: Vec<BarChart>,
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
                let measured = goal.measured.map(|s| json!({"median": s.median, "low": s.min, "high": s.max}));
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
            writeln!(f, "### {}\n\n{}", table.caption, table.aligned())?;
        }
        for goal in &self.goals {
            writeln!(f, "{goal}")?;
        }
        Ok(())
    }
}

/// A table with its heading, whose first column is text and whose others are figures.
pub fn table_of(title: impl Into<String>, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table { rows, ..Table::new(title, 1, columns) }
}

/// Summary of the finite values; `None` if there are none.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    (!finite.is_empty()).then(|| Summary::of(&finite))
}

/// Summary of the ratios `numerators[i] / denominators[i]`. The machine may have slow phases, so a ratio is taken within each round,
/// between measurements that ran seconds apart, and the median of these ratios is quoted, never the ratio of two medians.
pub fn ratios(numerators: &[f64], denominators: &[f64]) -> Option<Summary> {
    summary(&numerators.iter().zip(denominators).map(|(above, below)| above / below).collect::<Vec<_>>())
}

/// `median [low-high]`, with this number of decimals.
pub fn shown(summary: &Summary, decimals: usize) -> String {
    format!("{:.decimals$} [{:.decimals$}-{:.decimals$}]", summary.median, summary.min, summary.max)
}

/// A summary for a table cell, with this number of decimals; a dash if nothing was measured.
pub fn cell(values: &[f64], decimals: usize) -> String {
    summary(values).map_or_else(|| "-".to_owned(), |summary| shown(&summary, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_its_tables_and_goals_as_markdown() {
        let goals = vec![Goal { ratio: "x".into(), bound: Bound::AtMost(1.0), measured: None }];
        let tables = vec![table_of("T", &["device", "us"], vec![vec!["a".into(), "12.5".into()]])];
        let section =
            Section { title: "S", notes: vec!["Note.".into()], tables, goals, ..Section::default() };
        let expected = "## S\n\nNote.\n\n### T\n\n| device |   us |\n| ------ | ---: |\n| a      | 12.5 |\n\n\
                        - x: -, goal at most 1.000: not measured\n";
        assert_eq!(section.to_string(), expected);
    }

    #[test]
    fn a_goal_is_judged_by_the_median() {
        let measured = summary(&[0.1, 0.2, 0.9]);
        let goal = |bound| Goal { ratio: "x".into(), bound, measured };
        assert_eq!(goal(Bound::AtMost(0.2)).met(), Some(true));
        assert_eq!(goal(Bound::AtLeast(0.3)).met(), Some(false));
        assert!(goal(Bound::AtLeast(0.3)).to_string().ends_with("MISSED"));
        assert_eq!(Goal { measured: None, ..goal(Bound::AtMost(1.0)) }.met(), None);
    }

    #[test]
    fn values_that_are_not_numbers_do_not_count_and_ratios_are_taken_round_by_round() {
        assert_eq!(summary(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(ratios(&[2.0, 1.0], &[1.0, 0.0]).unwrap().median, 2.0);
        let halves = ratios(&[1.0, 10.0, 3.0], &[2.0, 20.0, 6.0]).unwrap();
        assert_eq!((halves.median, halves.min, halves.max), (0.5, 0.5, 0.5));
        assert_eq!((cell(&[5.0, 1.0, 9.0], 0), cell(&[], 1)), ("5 [1-9]".to_owned(), "-".to_owned()));
    }
}
