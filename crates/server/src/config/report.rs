//! What is wrong with a configuration, and how it is shown: every problem with its file, line, column, the
//! source line, the offending text underlined, and the remedy, in the shape that compilers use.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Octets of the configuration file.
    File(Range<usize>),
    /// A flag of the command line, with its value, as it would be typed.
    Flag(String),
    /// A file of the system, which the configuration refers to.
    System(String),
    /// Nowhere: a default.
    Default,
}

/// A value, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub place: Place,
}

/// Why a text is not a value of some kind. Where it stands is added by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, with the offending text.
    pub what: String,
    /// What is allowed instead.
    pub help: String,
}

impl Fault {
    /// A fault from its two parts.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (help: {})", self.what, self.help)
    }
}

impl std::error::Error for Fault {}

/// A fault at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What it is.
    pub fault: Fault,
}

/// Collects the problems of one reading. Shared by all tables that are being read, hence the cell.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    /// Notes a problem.
    pub fn add(&self, place: &Place, fault: Fault) {
        self.0.borrow_mut().push(Problem { place: place.clone(), fault });
    }

    /// The value of `result`, or nothing and a note.
    pub fn check<T>(&self, place: &Place, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.add(place, fault)).ok()
    }

    /// The problems in the order of the file; those of the command line and of the system last.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut problems = self.0.into_inner();
        problems.sort_by_key(|problem| match &problem.place {
            Place::File(span) => (0, span.start),
            _ => (1, 0),
        });
        problems
    }
}

/// All problems of a configuration, with the text that they point into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The name of the file, as it is shown.
    pub file: String,
    /// The text of the file; empty when there is none.
    pub text: String,
    /// What is wrong, in the order of the file.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Line and column, both counted from 1, of an octet of the text. Columns count characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line_start = before.iter().rposition(|&octet| octet == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|&&octet| octet == b'\n').count();
        (line, 1 + String::from_utf8_lossy(&before[line_start..]).chars().count())
    }

    /// Shows the line with carets below what is wrong. Returns the width of the line number.
    fn show_source(&self, f: &mut fmt::Formatter<'_>, span: &Range<usize>) -> Result<usize, fmt::Error> {
        let (line, column) = self.position(span.start);
        let source = self.text.split('\n').nth(line - 1).unwrap_or("");
        // A value may go on over several lines: only its first line is underlined.
        let marked = self.text.get(span.clone()).unwrap_or("").split('\n').next().unwrap_or("");
        let carets = marked.trim_end_matches('\r').chars().count().max(1);
        let gutter = line.to_string().len();
        writeln!(f, "{:gutter$}--> {}:{line}:{column}", "", self.file)?;
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{line} | {}", printable(source.trim_end_matches('\r')))?;
        writeln!(f, "{:gutter$} | {:indent$}{:^<carets$}", "", "", "", indent = column - 1)?;
        Ok(gutter)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "error: {}", problem.fault.what)?;
            let mut gutter = 1;
            match &problem.place {
                Place::File(span) => gutter = self.show_source(f, span)?,
                Place::Flag(typed) => writeln!(f, " --> command line: {typed}")?,
                Place::System(path) => writeln!(f, " --> {path}")?,
                Place::Default => {}
            }
            writeln!(f, "{:gutter$} = help: {}\n", "", problem.fault.help)?;
        }
        let count = self.problems.len();
        let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
        write!(f, "sixfold: cannot use {}: {errors}; correct what is shown above", self.file)
    }
}

/// One character for each character of `line`, none of which moves the cursor: carets below stay in place, and
/// a file with control characters cannot play tricks on the terminal.
fn printable(line: &str) -> String {
    line.chars()
        .map(|character| match character {
            '\t' => ' ',
            other if other.is_control() => char::REPLACEMENT_CHARACTER,
            other => other,
        })
        .collect()
}

/// A value as messages quote it: in backticks, control characters escaped, cut after 80 characters.
pub fn quoted(text: &str) -> String {
    let escaped: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    let dots = if text.chars().nth(80).is_some() { "..." } else { "" };
    // Quotation marks need no escape between backticks.
    format!("`{}{dots}`", escaped.replace("\\\"", "\"").replace("\\'", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, span: Range<usize>) -> Report {
        let problem = Problem { place: Place::File(span), fault: Fault::new("wrong", "right") };
        Report { file: "x.toml".into(), text: text.into(), problems: vec![problem] }
    }

    #[test]
    fn a_problem_is_shown_with_its_line_and_underlined() {
        let shown = report("[a]\n  b = \"ü\" # ...\n", 10..14).to_string();
        let expected = "error: wrong\n --> x.toml:2:7\n  |\n2 |   b = \"ü\" # ...\n  |       ^^^\n  = help: right\n\n\
             sixfold: cannot use x.toml: 1 error; correct what is shown above";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_value_over_several_lines_is_underlined_on_its_first() {
        let shown = report("a = [\r\n 1,\r\n]\r\n", 4..12).to_string();
        assert!(shown.contains("1 | a = [\n  |     ^\n"), "{shown}");
    }

    #[test]
    fn a_place_at_the_end_of_the_file_is_shown() {
        let shown = report("a = [\n", 6..6).to_string();
        assert!(shown.contains("--> x.toml:2:1\n  |\n2 | \n  | ^\n"), "{shown}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let shown = report("a = '\u{1b}[31m'\t\n", 4..12).to_string();
        assert!(!shown.contains('\u{1b}') && !shown.contains('\t'));
        assert_eq!(quoted("\u{1b}[31m\"x"), "`\\u{1b}[31m\"x`");
        assert_eq!(quoted(&"x".repeat(90)).len(), 85);
    }
}
