//! Accounts of a conversion: for every statement of the source its place, its text and its outcome. Each dialect records one
//! outcome for each statement, so that no option vanishes silently.

/// Octets of a statement that a comment shows.
const MAX_TEXT: usize = 100;

/// Reason why a statement that no table has is not carried over.
pub(crate) const UNKNOWN: &str = "this conversion does not know it";

/// Lines of a statement, in the file itself or in one that it includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index in [`crate::Conversion::files`]; 0 is the file that is converted.
    pub file: usize,
    /// First line, from 1.
    pub first: usize,
    /// Last line.
    pub last: usize,
}

/// Statement of the source: its place and its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    pub(crate) text: String,
}

impl Spot {
    /// A statement on one line of the file that is converted.
    pub(crate) fn line(line: usize, text: &str) -> Spot {
        Spot { place: Place { file: 0, first: line, last: line }, text: text.to_owned() }
    }

    /// The first line of the statement alone, for a statement whose parts are recorded one by one.
    pub(crate) fn header(&self, text: &str) -> Spot {
        Spot { place: Place { last: self.place.first, ..self.place }, text: text.to_owned() }
    }
}

/// Result for one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Carried over, with the same effect.
    Carried,
    /// Carried over, with a different effect, which the text describes.
    Differs(String),
    /// Without a meaning for Sixfold, and nothing is lost; the text gives the reason.
    NoMeaning(&'static str),
    /// Not carried over; the text gives the reason, and a remedy if there is one.
    LeftOver(String),
}

/// Reading of a statement: carried over with the same effect, or the outcome that it has instead.
pub(crate) type Reading<T = ()> = Result<T, Outcome>;

impl Outcome {
    /// Not carried over, for this reason.
    pub(crate) fn left_over(why: &str) -> Outcome {
        Outcome::LeftOver(why.to_owned())
    }

    /// Carried over with this difference.
    pub(crate) fn differs(how: &str) -> Outcome {
        Outcome::Differs(how.to_owned())
    }
}

impl From<&str> for Outcome {
    fn from(why: &str) -> Outcome {
        Outcome::left_over(why)
    }
}

impl From<String> for Outcome {
    fn from(why: String) -> Outcome {
        Outcome::LeftOver(why)
    }
}

impl From<Reading> for Outcome {
    fn from(reading: Reading) -> Outcome {
        reading.err().unwrap_or(Outcome::Carried)
    }
}

/// Left over for this reason, unless the condition holds.
pub(crate) fn require(holds: bool, why: &str) -> Reading {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// Carried over, but with this difference if the condition holds.
pub(crate) fn differs_if(holds: bool, how: &str) -> Reading {
    if holds { Err(Outcome::differs(how)) } else { Ok(()) }
}

/// Left over without these parts, if there are any.
pub(crate) fn without(lost: &[String]) -> Reading {
    require(lost.is_empty(), &format!("without {}", lost.join(", ")))
}

/// Outcome of a statement: that of the readers, or of the table if it is none of theirs (`false`).
pub(crate) fn outcome(reading: Reading<bool>, table: &[(&str, Known)], name: &str) -> Outcome {
    match reading {
        Ok(true) => Outcome::Carried,
        Ok(false) => known(table, name),
        Err(outcome) => outcome,
    }
}

/// Reason why a statement sets no key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Nothing is lost.
    NoMeaning(&'static str),
    /// Something is lost.
    LeftOver(&'static str),
}

/// Outcome of a statement without an equivalent.
pub(crate) fn known(table: &[(&str, Known)], name: &str) -> Outcome {
    match find_row(table, name).unwrap_or(Known::LeftOver(UNKNOWN)) {
        Known::NoMeaning(why) => Outcome::NoMeaning(why),
        Known::LeftOver(why) => why.into(),
    }
}

/// Statement and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Lines of the statement.
    pub place: Place,
    /// The statement, on one line, cut if it is long.
    pub text: String,
    /// Its outcome.
    pub outcome: Outcome,
}

/// Accounts of a conversion, in the order in which they were recorded.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    /// Records the outcome of a statement.
    pub(crate) fn record(&mut self, place: Place, text: &str, outcome: Outcome) {
        self.entries.push(Entry { place, text: one_line(text), outcome });
    }

    /// All entries, in the order of the source.
    pub(crate) fn into_entries(mut self) -> Vec<Entry> {
        self.entries.sort_by_key(|entry| (entry.place.file, entry.place.first));
        self.entries
    }
}

/// The text on one line without control characters, cut if it is long.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    if line.len() <= MAX_TEXT {
        return line;
    }
    let end = (0..=MAX_TEXT).rev().find(|&end| line.is_char_boundary(end)).unwrap_or(0);
    format!("{} ...", line[..end].trim_end())
}

/// Looks up a name in a table whose rows have several names, separated by blanks.
pub(crate) fn find_row<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(names, _)| names.split_whitespace().any(|one| one == name)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_statement_is_one_line_of_limited_length() {
        assert_eq!(one_line("acl x {\n\t10/8;\x07\n};"), "acl x { 10/8; };");
        assert_eq!(one_line(&"ä".repeat(99)), format!("{} ...", "ä".repeat(50)));
    }
}
