//! Entries of a master file: an entry ends at the end of a line, unless a parenthesis is open (RFC 1035 section 5.1).
//!
//! The record parser must never get an entry whose parenthesis stays open: inside a character string it would search for
//! the end of the entry for ever.

/// Scanner that knows, at each place of a text, whether a parenthesis is open.
#[derive(Clone, Copy, Debug, Default)]
struct Scanner {
    depth: usize,
    is_quoted: bool,
    is_comment: bool,
    is_escaped: bool,
}

impl Scanner {
    /// True if a parenthesis is open.
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Takes the next octet.
    fn push(&mut self, octet: u8) {
        if octet == b'\n' {
            // The end of a line ends a word and a comment.
            *self = Scanner { depth: self.depth, ..Scanner::default() };
        } else if self.is_comment || std::mem::take(&mut self.is_escaped) {
            return;
        }
        match octet {
            b'\\' => self.is_escaped = true,
            b'"' => self.is_quoted = !self.is_quoted,
            b';' if !self.is_quoted => self.is_comment = true,
            b'(' if !self.is_quoted => self.depth += 1,
            b')' if !self.is_quoted => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// True if a text ends inside a parenthesis.
pub fn has_open_parenthesis(text: &[u8]) -> bool {
    let mut scanner = Scanner::default();
    text.iter().for_each(|&octet| scanner.push(octet));
    scanner.is_open()
}

/// A part of a master file with whole entries: usually one line.
pub struct EntryText<'t> {
    /// Number of its first line, from 1.
    pub line: usize,
    /// The text.
    pub text: &'t [u8],
    /// True if the file ends before a parenthesis is closed.
    pub is_open: bool,
}

impl<'t> EntryText<'t> {
    /// The entries behind the first line of this one, which must be the last.
    pub fn behind_first_line(&self) -> Entries<'t> {
        let end = self.text.iter().position(|&octet| octet == b'\n').map_or(self.text.len(), |at| at + 1);
        Entries { line: self.line + 1, rest: &self.text[end..] }
    }
}

/// Splits a master file into entries, so that each record has its line number.
pub struct Entries<'t> {
    line: usize,
    rest: &'t [u8],
}

impl<'t> Entries<'t> {
    /// The entries of a file.
    pub fn of(text: &'t [u8]) -> Entries<'t> {
        Entries { line: 1, rest: text }
    }
}

impl<'t> Iterator for Entries<'t> {
    type Item = EntryText<'t>;

    fn next(&mut self) -> Option<EntryText<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut scanner = Scanner::default();
        let (mut lines, mut end) = (0, self.rest.len());
        for (at, &octet) in self.rest.iter().enumerate() {
            scanner.push(octet);
            if octet == b'\n' {
                lines += 1;
                if !scanner.is_open() {
                    end = at + 1;
                    break;
                }
            }
        }
        let (text, rest) = self.rest.split_at(end);
        let entry = EntryText { line: self.line, text, is_open: scanner.is_open() };
        self.line += lines;
        self.rest = rest;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parenthesis_is_open_until_it_is_closed_outside_of_quotes_and_comments() {
        for text in ["(", "a ( b\n", "((\n)", "( ; )\n", "( \")\" ", "( \\)", "\"\n("] {
            assert!(has_open_parenthesis(text.as_bytes()), "{text:?}");
        }
        for text in ["", "a ( b\n)", "; (\n", "\"(\" a", "\\(", ")", "(\n\")\n)"] {
            assert!(!has_open_parenthesis(text.as_bytes()), "{text:?}");
        }
    }
}
