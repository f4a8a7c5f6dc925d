//! The records of a response policy zone that cannot be used. An operator wants each reason once, with the first places and a
//! number: a feed may have thousands of them.

use super::limits::{RPZ_PLACES, RPZ_REASONS};
use super::report::Fault;
use std::fmt::Write as _;
use std::path::Path;

/// A record that cannot be used.
#[derive(Clone, Debug)]
pub struct BadRecord {
    /// Line and column, from 1.
    pub line: usize,
    pub column: usize,
    /// The reason, equal for all records of the same kind.
    pub reason: String,
    /// The reason with the offending text.
    pub what: String,
    /// The remedy.
    pub help: &'static str,
}

impl BadRecord {
    /// The record as an error of the file.
    pub fn fault(&self, file: &Path) -> Fault {
        let BadRecord { line, column, what, help, .. } = self;
        Fault::new(format!("{}:{line}:{column}: {what}", file.display()), *help)
    }
}

/// Records that were left out, by their reasons.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    count: usize,
    kinds: Vec<Kind>,
    /// Records whose reason is none of `kinds`.
    others: usize,
    /// Rules that no table has room for.
    beyond_limits: usize,
}

/// Records with the same reason.
#[derive(Clone, Debug)]
struct Kind {
    first: BadRecord,
    count: usize,
    /// Lines of the records behind the first one.
    lines: Vec<usize>,
}

impl Skipped {
    /// Number of records.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a record.
    pub fn add(&mut self, bad: BadRecord) {
        self.count += 1;
        let line = bad.line;
        let is_full = self.kinds.len() == RPZ_REASONS;
        match self.kinds.iter_mut().find(|kind| kind.first.reason == bad.reason) {
            Some(kind) => {
                kind.count += 1;
                if kind.lines.len() < RPZ_PLACES {
                    kind.lines.push(line);
                }
            }
            None if is_full => self.others += 1,
            None => self.kinds.push(Kind { first: bad, count: 1, lines: Vec::new() }),
        }
    }

    /// Adds rules that no table has room for.
    pub fn add_beyond_limits(&mut self, rules: usize) {
        self.count += rules;
        self.beyond_limits += rules;
    }

    /// The first record.
    pub fn first(&self) -> Option<&BadRecord> {
        self.kinds.first().map(|kind| &kind.first)
    }

    /// A warning for each reason.
    pub fn warnings(&self, file: &Path) -> Vec<String> {
        let file = file.display();
        let mut warnings = Vec::new();
        for Kind { first, count, lines } in &self.kinds {
            let BadRecord { line, column, what, help, .. } = first;
            let mut warning = format!("{file}:{line}:{column}: left out: {what}: {help}");
            if *count > 1 {
                let places: Vec<String> = lines.iter().map(ToString::to_string).collect();
                let end = if *count > 1 + lines.len() { ", ..." } else { "" };
                // Writing into a string cannot fail.
                let _ = write!(warning, " ({count} records, also in line {}{end})", places.join(", "));
            }
            warnings.push(warning);
        }
        if self.others > 0 {
            warnings.push(format!(
                "{file}: left out: {} records for other reasons; correct those above first",
                self.others
            ));
        }
        if self.beyond_limits > 0 {
            warnings.push(format!(
                "{file}: left out: the last {} triggers: all zones together have more than the tables can hold; name fewer or \
                 smaller zones",
                self.beyond_limits
            ));
        }
        warnings
    }
}
