//! Citations of a Rust file, each with the item below it or around it, and a mark if the item is a test.
//!
//! This is no parser of Rust. It uses the layout of `rustfmt`: an item begins its line, and its contents have more
//! indentation.

use crate::citation::Citation;

/// A citation and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cited {
    /// The citation.
    pub citation: Citation,
    /// Function, constant or type.
    pub item: String,
    /// True if the item is a test.
    pub is_test: bool,
}

/// Words that may stand before the keyword of an item.
const BEFORE: [&str; 5] = ["pub", "pub(crate)", "pub(super)", "const", "async"];

/// Reads a file.
///
/// # Errors
///
/// A citation is malformed, or belongs to no item, with the number of its line.
pub fn read(text: &str) -> Result<Vec<Cited>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(citation) = Citation::in_rust(line) else { continue };
        let citation = citation.map_err(|fault| format!("line {}: {fault}", at + 1))?;
        let Some((item, start)) = below(&lines, at).or_else(|| around(&lines, at)) else {
            return Err(format!("line {}: nothing stands around this citation; put it into an item", at + 1));
        };
        let is_test = attributes(&lines, start).any(|line| line.contains("test]"));
        found.push(Cited { citation, item, is_test });
    }
    Ok(found)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_comment_or_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("#[")
}

/// Finds the item that begins right below a citation.
fn below(lines: &[&str], at: usize) -> Option<(String, usize)> {
    let next = (at + 1..lines.len()).find(|&next| !is_comment_or_attribute(lines[next]))?;
    item(lines[next]).map(|name| (name, next))
}

/// Finds the innermost item around a line.
fn around(lines: &[&str], at: usize) -> Option<(String, usize)> {
    let mut depth = indentation(lines[at]);
    for start in (0..at).rev() {
        let line = lines[start];
        if line.trim().is_empty() || is_comment_or_attribute(line) || indentation(line) >= depth {
            continue;
        }
        if let Some(name) = item(line) {
            return Some((name, start));
        }
        // The end of a parameter list has the indentation of its function.
        if !line.trim_start().starts_with(')') {
            depth = indentation(line);
        }
    }
    None
}

/// Name of the item that begins at a line.
fn item(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().peekable();
    let mut last = "";
    while let Some(word) = words.next_if(|word| BEFORE.contains(word)) {
        last = word;
    }
    let next = words.next()?;
    let name = match next {
        "fn" | "static" | "struct" | "enum" | "trait" | "type" => words.next()?,
        _ if last == "const" => next,
        _ => return None,
    };
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| name[..end].to_owned())
}

/// Lines with attributes and comments right above an item.
fn attributes<'l>(lines: &'l [&str], start: usize) -> impl Iterator<Item = &'l str> {
    lines[..start].iter().rev().copied().take_while(|line| is_comment_or_attribute(line)).filter(|line| {
        let line = line.trim_start();
        line.starts_with("#[")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
/// Seconds.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) const TTL: u32 = 600;

impl Engine {
    /// Judges.
    pub fn judge(
        &self,
        outcome: &Outcome,
    ) -> Verdict {
        match outcome {
            //= RFC 6147 section 5.1.2: requirement 4
            Rcode::NXDOMAIN => return,
        }
        if this {
            that();
        }
        //= RFC 6147 section 5.1.1: requirement 3
        last()
    }
}

pub enum Fate {
    //= RFC 6052 section 3.1: requirement 36
    NonGlobal,
}

#[cfg(test)]
mod tests {
    #[test]
    //= RFC 6147 section 5.1.2: requirement 4
    fn above_the_name() {}

    //= RFC 6147 section 5.1.2: requirement 4
    #[test]
    fn above_the_attribute() {}

    #[test]
    fn inside() {
        //= RFC 6147 section 5.1.2: requirement 4
        assert!(true);
    }
}
";

    #[test]
    fn a_citation_is_of_the_item_below_it_or_around_it() {
        let found = read(FILE).unwrap();
        let shown: Vec<(&str, bool)> = found.iter().map(|cited| (&cited.item[..], cited.is_test)).collect();
        assert_eq!(
            shown,
            [
                ("TTL", false),
                ("judge", false),
                ("judge", false),
                ("Fate", false),
                ("above_the_name", true),
                ("above_the_attribute", true),
                ("inside", true),
            ]
        );
    }

    #[test]
    fn a_citation_that_cannot_be_read_and_one_outside_of_everything_are_told_with_their_line() {
        assert!(read("\n//= RFC 6147: requirement\n").unwrap_err().starts_with("line 2: "));
        assert!(read("//= RFC 6147: requirement 1\nuse std::fmt;\n").unwrap_err().starts_with("line 1: "));
    }
}
