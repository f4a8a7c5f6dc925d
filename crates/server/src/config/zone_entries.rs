//! Where the entries of a master file end: at the end of a line, but not where a parenthesis is open (RFC 1035 section 5.1).
//! The reader of records must never be given an entry whose parenthesis stays open: in character strings it would look for
//! the end of the entry for ever.

/// What is open at a place of a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nesting {
    depth: usize,
    is_quoted: bool,
    is_comment: bool,
    is_escaped: bool,
}

impl Nesting {
    /// What is open at the end of a text.
    pub fn at_end_of(text: &[u8]) -> Nesting {
        let mut nesting = Nesting::default();
        text.iter().for_each(|&octet| nesting.take(octet));
        nesting
    }

    /// Whether a parenthesis is open.
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Goes on by an octet.
    pub fn take(&mut self, octet: u8) {
        if octet == b'\n' {
            // Words end with their line.
            *self = Nesting { depth: self.depth, ..Nesting::default() };
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

/// A part of a master file with whole records: mostly one line.
pub struct Chunk<'t> {
    /// Its first line, from 1.
    pub line: usize,
    pub text: &'t [u8],
    /// The file ends before a parenthesis is closed.
    pub is_open: bool,
}

/// Cuts a master file into lines, but not where a parenthesis is open, so that each record has its line.
pub struct Chunks<'t> {
    pub line: usize,
    pub rest: &'t [u8],
}

impl<'t> Iterator for Chunks<'t> {
    type Item = Chunk<'t>;

    fn next(&mut self) -> Option<Chunk<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut nesting = Nesting::default();
        let (mut lines, mut end) = (0, self.rest.len());
        for (at, &octet) in self.rest.iter().enumerate() {
            nesting.take(octet);
            if octet == b'\n' {
                lines += 1;
                if !nesting.is_open() {
                    end = at + 1;
                    break;
                }
            }
        }
        let (text, rest) = self.rest.split_at(end);
        let chunk = Chunk { line: self.line, text, is_open: nesting.is_open() };
        self.line += lines;
        self.rest = rest;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parenthesis_is_open_until_it_is_closed_outside_of_quotes_and_comments() {
        for text in ["(", "a ( b\n", "((\n)", "( ; )\n", "( \")\" ", "( \\)", "\"\n("] {
            assert!(Nesting::at_end_of(text.as_bytes()).is_open(), "{text:?}");
        }
        for text in ["", "a ( b\n)", "; (\n", "\"(\" a", "\\(", ")", "(\n\")\n)"] {
            assert!(!Nesting::at_end_of(text.as_bytes()).is_open(), "{text:?}");
        }
    }
}
