//! Errors of a configuration and their report: every problem with its file, line, column, the source line, the offending
//! text underlined, and the remedy, in the form that compilers use.

use super::source::SourceLines;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A range of octets in the configuration file.
    File(Range<usize>),
    /// A flag of the command line with its value, as typed.
    Flag(String),
    /// A file of the system that the configuration refers to.
    System(String),
    /// No place: a default.
    Default,
}

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub place: Place,
}

/// Error about a text: cause and remedy. The caller adds the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error, with the offending text.
    pub what: String,
    /// The remedy: what is allowed instead.
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

/// A fault with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place.
    pub place: Place,
    /// The fault.
    pub fault: Fault,
}

impl Problem {
    /// Key for the order of a report: the order of the file, then all others.
    pub fn order(&self) -> (bool, usize) {
        match &self.place {
            Place::File(span) => (false, span.start),
            _ => (true, 0),
        }
    }
}

/// The places of values, by key with its table: that of the value, and those of its items if it is a list.
#[derive(Clone, Debug, Default)]
pub struct Places(HashMap<String, (Place, Vec<Place>)>);

impl Places {
    /// True if the file or a flag has the key, or the table.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The place of an item of a key's list, else of the key, else of the nearest table around it.
    pub fn nearest(&self, key: &str, item: Option<usize>) -> Place {
        match self.0.get(key) {
            Some((place, items)) => item.and_then(|item| items.get(item)).unwrap_or(place).clone(),
            None => match key.rsplit_once('.') {
                Some((table, _)) => self.nearest(table, None),
                None => Place::Default,
            },
        }
    }
}

/// Collects the problems of one run, warnings, and the places of the values. All tables share it while they are read, hence the cells.
#[derive(Debug, Default)]
pub struct Problems {
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<String>>,
    /// By key with its table: the place of the value, and those of its items if it is a list.
    places: RefCell<HashMap<String, (Place, Vec<Place>)>>,
}

impl Problems {
    /// Notes where the value of a key stands, and where its items stand if it is a list.
    pub fn note(&self, key: &str, place: Place, items: Vec<Place>) {
        self.places.borrow_mut().insert(key.to_owned(), (place, items));
    }

    /// True if the file or a flag has the key.
    pub fn is_set(&self, key: &str) -> bool {
        self.places.borrow().contains_key(key)
    }

    /// The place of a key's value.
    pub fn place(&self, key: &str) -> Place {
        self.places.borrow().get(key).map_or(Place::Default, |(place, _)| place.clone())
    }

    /// The values of a list with their places.
    pub fn items<'v, T>(&self, key: &str, values: &'v [T]) -> Vec<Item<&'v T>> {
        let places = self.places.borrow();
        let place = |index| places.get(key).and_then(|(_, items)| items.get(index)).cloned();
        let item = |(index, value)| Item { value, place: place(index).unwrap_or(Place::Default) };
        values.iter().enumerate().map(item).collect()
    }

    /// Reports every item that is equal to an earlier one.
    pub fn refuse_twice<T: PartialEq>(
        &self,
        items: &[Item<T>],
        thing: &str,
        show: impl Fn(&T) -> String,
        help: &str,
    ) {
        for (index, item) in items.iter().enumerate() {
            if items[..index].iter().any(|earlier| earlier.value == item.value) {
                let what = format!("the {thing} {} is listed twice", show(&item.value));
                self.add(&item.place, Fault::new(what, help));
            }
        }
    }

    /// Number of problems so far.
    pub fn count(&self) -> usize {
        self.problems.borrow().len()
    }

    /// Adds a problem.
    pub fn add(&self, place: &Place, fault: Fault) {
        self.problems.borrow_mut().push(Problem { place: place.clone(), fault });
    }

    /// Adds a warning, if there is one.
    pub fn warn(&self, warning: Option<String>) {
        self.warnings.borrow_mut().extend(warning);
    }

    /// Takes the warnings so far.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// The value of `result`; for an error none, and a problem is added.
    pub fn check<T>(&self, place: &Place, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.add(place, fault)).ok()
    }

    /// Takes the places of all values.
    pub fn take_places(&self) -> Places {
        Places(self.places.take())
    }

    /// The problems in the order of the file; problems of the command line and of the system come last.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(Problem::order);
        problems
    }
}

/// All problems of a configuration, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The name of the file, for display.
    pub file: String,
    /// The text of the file; empty without a file.
    pub text: String,
    /// The problems, in the order of the file.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Line and column, both counted from 1, of an octet of the text. Columns count characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        SourceLines::of(&self.text).position(offset)
    }

    /// Writes the source line with carets below the offending text. Returns the width of the line number.
    fn write_source(
        &self,
        f: &mut impl fmt::Write,
        lines: &SourceLines<'_>,
        span: &Range<usize>,
    ) -> Result<usize, fmt::Error> {
        let (line, column) = lines.position(span.start);
        // Of a value on several lines only the first line is underlined.
        let marked = self.text.get(span.clone()).unwrap_or("").split('\n').next().unwrap_or("");
        let carets = marked.trim_end_matches('\r').chars().count().max(1);
        let gutter = line.to_string().len();
        writeln!(f, "{:gutter$}--> {}:{line}:{column}", "", self.file)?;
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{line} | {}", lines.shown(line))?;
        writeln!(f, "{:gutter$} | {:indent$}{:^<carets$}", "", "", "", indent = column - 1)?;
        Ok(gutter)
    }

    /// Writes all problems.
    fn write_problems(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let lines = SourceLines::of(&self.text);
        for problem in &self.problems {
            writeln!(f, "error: {}", problem.fault.what)?;
            let mut gutter = 1;
            match &problem.place {
                Place::File(span) => gutter = self.write_source(f, &lines, span)?,
                Place::Flag(typed) => writeln!(f, " --> command line: {typed}")?,
                Place::System(path) => writeln!(f, " --> {path}")?,
                Place::Default => {}
            }
            writeln!(f, "{:gutter$} = help: {}\n", "", problem.fault.help)?;
        }
        Ok(())
    }

    /// The number of errors in words, and the word that stands for them.
    fn counted(&self) -> (String, &'static str) {
        match self.problems.len() {
            1 => ("1 error".to_owned(), "it"),
            count => (format!("{count} errors"), "them"),
        }
    }

    /// The problems for a user of `sixfold plan`.
    pub fn of_plan(&self) -> String {
        let (mut text, (errors, them)) = (String::new(), self.counted());
        // Writing to a string cannot fail.
        let _ = self.write_problems(&mut text);
        text + &format!(
            "sixfold: cannot plan with {}: {errors}; correct {them}, then run it again",
            self.file
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_problems(f)?;
        let (errors, them) = self.counted();
        write!(f, "sixfold: cannot use {}: {errors}; correct {them}, then run `sixfold check`", self.file)
    }
}

/// A value quoted for messages: in backticks, with control characters escaped, cut after 80 characters.
pub fn quoted(text: &str) -> String {
    // Quotation marks need no escape between backticks.
    format!("`{}`", escaped(text).replace("\\\"", "\"").replace("\\'", "'"))
}

/// A value as the operator is to write it: between quotation marks, with control characters escaped, cut after 80 characters.
pub fn proposed(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace("\\'", "'"))
}

fn escaped(text: &str) -> String {
    let dots = if text.chars().nth(80).is_some() { "..." } else { "" };
    text.chars().take(80).flat_map(char::escape_debug).collect::<String>() + dots
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
             sixfold: cannot use x.toml: 1 error; correct it, then run `sixfold check`";
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
        assert_eq!(proposed("\u{1b}\n\"'x"), "\"\\u{1b}\\n\\\"'x\"");
        assert_eq!(quoted(&"x".repeat(90)).len(), 85);
    }
}
