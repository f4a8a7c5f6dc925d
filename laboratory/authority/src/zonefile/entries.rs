//! Splits a master file into pieces of whole entries (RFC 1035 section 5.1) and reads it in chunks, so a file of any
//! size needs little memory. Each directive (`$ORIGIN` and the like) is its own piece, because some are expanded
//! here, and because an error in one then has its line.

use crate::limits;
use std::io::{self, Read};
use textfile::PlainText;

/// Some entries without a directive among them, or one directive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The text, including the end of its last line.
    pub text: &'a [u8],
    /// The number of its first line.
    pub line: u64,
    /// True if the piece is a directive.
    pub is_directive: bool,
}

/// Reason why there is no next piece.
#[derive(Debug)]
pub(crate) enum EntriesError {
    /// The file could not be read.
    Read(io::Error),
    /// The entry that begins at this line does not end within [`limits::ENTRY`] octets or before the end of the file.
    Unterminated(u64),
}

/// The pieces of a file.
pub(crate) struct Entries<R> {
    source: PlainText<R>,
    buffer: Vec<u8>,
    /// Offset of the next piece in the buffer, and its line number.
    start: usize,
    line: u64,
    has_ended: bool,
}

impl<R: Read> Entries<R> {
    pub fn new(source: R) -> Entries<R> {
        let source = PlainText::new(source);
        Entries { source, buffer: Vec::with_capacity(limits::ENTRY), start: 0, line: 1, has_ended: false }
    }

    /// The next piece; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// `EntriesError::Unterminated` with its line: an entry has no end, or is longer than `limits::ENTRY` octets. `EntriesError::Read`:
    /// the file cannot be read.
    pub fn next(&mut self) -> Result<Option<Piece<'_>>, EntriesError> {
        loop {
            let rest = &self.buffer[self.start..];
            let (length, lines, is_directive) = first_piece(rest);
            if length > 0 {
                let (start, line) = (self.start, self.line);
                self.start += length;
                self.line += lines;
                let text = &self.buffer[start..start + length];
                return Ok(Some(Piece { text, line, is_directive }));
            }
            if self.has_ended {
                return if rest.is_empty() { Ok(None) } else { Err(EntriesError::Unterminated(self.line)) };
            }
            if rest.len() >= limits::ENTRY {
                return Err(EntriesError::Unterminated(self.line));
            }
            self.fill().map_err(EntriesError::Read)?;
        }
    }

    /// Reads more, and adds a missing line end at the end of the file.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let room = (limits::ENTRY - self.buffer.len()) as u64;
        let read = self.source.by_ref().take(room).read_to_end(&mut self.buffer)? as u64;
        if read < room {
            self.has_ended = true;
            if self.buffer.last().is_some_and(|last| *last != b'\n') {
                self.buffer.push(b'\n');
            }
        }
        Ok(())
    }
}

/// Octets and lines of the first piece, and true if it is a directive. 0 octets: no entry is complete.
fn first_piece(text: &[u8]) -> (usize, u64, bool) {
    let is_directive = text.first() == Some(&b'$');
    let (mut length, mut lines) = (0, 0);
    while length < text.len() && (length == 0 || (!is_directive && text[length] != b'$')) {
        let Some((octets, more)) = entry(&text[length..]) else { break };
        length += octets;
        lines += more;
    }
    (length, lines, is_directive)
}

/// Octets and lines of the first entry, if it is complete. An empty line and a comment are entries too.
fn entry(text: &[u8]) -> Option<(usize, u64)> {
    let (mut at, mut lines, mut depth) = (0, 0, 0u32);
    let mut is_quoted = false;
    while let Some(&octet) = text.get(at) {
        at += 1;
        match octet {
            b'\n' => {
                lines += 1;
                if depth == 0 && !is_quoted {
                    return Some((at, lines));
                }
            }
            // An escaped line end still ends a line of the file.
            b'\\' if text.get(at) != Some(&b'\n') => at += 1,
            b'"' => is_quoted = !is_quoted,
            b'(' if !is_quoted => depth += 1,
            b')' if !is_quoted => depth = depth.saturating_sub(1),
            b';' if !is_quoted => at += text[at..].iter().position(|octet| *octet == b'\n')?,
            _ => {}
        }
    }
    None
}

/// The record that comes after `count` other records in a piece that begins at `line`, and its line number.
pub(crate) fn nth_record(piece: &[u8], line: u64, count: u64) -> (&[u8], u64) {
    let (mut rest, mut line, mut seen) = (piece, line, 0);
    while let Some((octets, lines)) = entry(rest) {
        if is_record(&rest[..octets]) {
            if seen == count {
                return (&rest[..octets], line);
            }
            seen += 1;
        }
        rest = &rest[octets..];
        line += lines;
    }
    (rest, line)
}

/// The entries of a piece after the record that comes after `count` other records, and their line. Entries that begin with
/// white space belong to the owner of that record and are skipped.
pub(crate) fn after_record(piece: &[u8], line: u64, count: u64) -> (&[u8], u64) {
    let (mut rest, mut line, mut seen) = (piece, line, 0);
    while let Some((octets, lines)) = entry(rest) {
        let has_owner = !rest[0].is_ascii_whitespace();
        if is_record(&rest[..octets]) {
            if seen > count && has_owner {
                break;
            }
            seen += 1;
        }
        rest = &rest[octets..];
        line += lines;
    }
    (rest, line)
}

/// True if an entry has more than white space and a comment.
fn is_record(entry: &[u8]) -> bool {
    entry.iter().find(|octet| !octet.is_ascii_whitespace()).is_some_and(|octet| *octet != b';')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that gives a few octets at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn pieces(text: &str) -> Vec<(String, u64, bool)> {
        let mut entries = Entries::new(Slow(text.as_bytes(), 7));
        let mut all = Vec::new();
        while let Some(piece) = entries.next().unwrap() {
            all.push((String::from_utf8(piece.text.to_vec()).unwrap(), piece.line, piece.is_directive));
        }
        all
    }

    #[test]
    fn directives_stand_alone_and_entries_keep_their_lines_together() {
        let text = "$ORIGIN a.\nx A 1.2.3.4\n\n; $TTL\ny SOA a b ( 1 ; one )\n 2 3\n$4 5)\n$TTL 60\nz TXT \"$\n;\" \\\" \\(\n $x";
        assert_eq!(
            pieces(text),
            [
                ("$ORIGIN a.\n".into(), 1, true),
                ("x A 1.2.3.4\n\n; $TTL\ny SOA a b ( 1 ; one )\n 2 3\n$4 5)\n".into(), 2, false),
                ("$TTL 60\n".into(), 8, true),
                ("z TXT \"$\n;\" \\\" \\(\n $x\n".into(), 9, false),
            ]
        );
    }

    #[test]
    fn an_empty_file_has_no_pieces() {
        assert_eq!(pieces(""), []);
        assert_eq!(pieces("\n"), [("\n".into(), 1, false)]);
    }

    #[test]
    fn an_unterminated_entry_is_an_error_with_its_line() {
        for text in ["a A 1.2.3.4\nx SOA (\n1 2", "a A 1.2.3.4\nx TXT \"abc\n"] {
            let mut entries = Entries::new(text.as_bytes());
            assert_eq!(entries.next().unwrap().unwrap().line, 1);
            assert!(matches!(entries.next(), Err(EntriesError::Unterminated(2))));
        }
        let long = format!("x TXT ({}", "\n".repeat(2 * limits::ENTRY));
        assert!(matches!(Entries::new(long.as_bytes()).next(), Err(EntriesError::Unterminated(1))));
    }

    #[test]
    fn files_beyond_a_chunk_are_read_to_their_end() {
        let text: String = (0..100_000).map(|n| format!("name-{n} 3600 IN A 192.0.2.1\n")).collect();
        assert!(text.len() > 2 * limits::ENTRY);
        let mut entries = Entries::new(text.as_bytes());
        let (mut read, mut lines) = (String::new(), 1);
        while let Some(piece) = entries.next().unwrap() {
            assert_eq!(piece.line, lines);
            lines += piece.text.iter().filter(|octet| **octet == b'\n').count() as u64;
            read.push_str(std::str::from_utf8(piece.text).unwrap());
        }
        assert!(read == text);
    }

    #[test]
    fn the_entries_after_a_record_are_those_with_an_owner_of_their_own() {
        let piece = b"\n; comment\na A 1.2.3.4\n b (\n c )\n\t \n; d\nd\n e\nf\n";
        let after = |count| after_record(piece, 10, count);
        assert_eq!(after(0), (&b"d\n e\nf\n"[..], 17));
        assert_eq!((after(1), after(2)), (after(0), (&b"f\n"[..], 19)));
        assert_eq!(after(3), after(2));
        assert_eq!((after(4), after(99)), ((&b""[..], 20), (&b""[..], 20)));
    }

    #[test]
    fn the_line_of_a_record_skips_what_is_none() {
        let piece = b"\n; comment\na A 1.2.3.4\n b (\n c )\n\t \nd\n";
        let records: Vec<_> = (0..4).map(|count| nth_record(piece, 10, count)).collect();
        assert_eq!(records, [(&b"a A 1.2.3.4\n"[..], 12), (b" b (\n c )\n", 13), (b"d\n", 16), (b"", 17)]);
    }
}
