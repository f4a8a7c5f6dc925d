//! A reader that takes away what editors and old systems add to a text.

use std::io::{Read, Result};

/// U+FEFF in UTF-8, which some editors put before a text (RFC 3629 section 6).
const MARK: [u8; 3] = *b"\xef\xbb\xbf";

/// The text of a source without a byte order mark at its begin. A carriage return without a line feed behind it ends a line,
/// too, and is read as a line feed; other octets are unchanged.
pub struct PlainText<R> {
    source: R,
    /// Octets that were read from the source in order to decide about those before them.
    held: [u8; MARK.len()],
    holds: usize,
    is_at_start: bool,
}

impl<R: Read> PlainText<R> {
    /// The text of a source that has not been read yet.
    pub fn new(source: R) -> PlainText<R> {
        PlainText { source, held: MARK, holds: 0, is_at_start: true }
    }

    /// Reads the first octets, and forgets them if they are the mark.
    fn begin(&mut self) -> Result<()> {
        while self.holds < MARK.len() {
            match self.source.read(&mut self.held[self.holds..])? {
                0 => break,
                octets => self.holds += octets,
            }
        }
        if self.held[..self.holds] == MARK {
            self.holds = 0;
        }
        self.is_at_start = false;
        Ok(())
    }

    /// Octets that are held, then those of the source.
    fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.holds == 0 {
            return self.source.read(out);
        }
        let octets = self.holds.min(out.len());
        out[..octets].copy_from_slice(&self.held[..octets]);
        self.held.copy_within(octets..self.holds, 0);
        self.holds -= octets;
        Ok(octets)
    }
}

impl<R: Read> Read for PlainText<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.is_at_start {
            self.begin()?;
        }
        let octets = self.fill(out)?;
        let text = &mut out[..octets];
        // What a carriage return at the end means depends on the next octet.
        if text.last() == Some(&b'\r') && self.holds == 0 {
            self.holds = self.source.read(&mut self.held[..1])?;
        }
        let next = if self.holds > 0 { self.held[0] } else { 0 };
        let mut from = 0;
        while let Some(found) = text[from..].iter().position(|octet| *octet == b'\r') {
            from += found + 1;
            if *text.get(from).unwrap_or(&next) != b'\n' {
                text[from - 1] = b'\n';
            }
        }
        Ok(octets)
    }
}

/// The whole text of a source that has not been read yet.
///
/// # Errors
///
/// The error of the source. `InvalidData`: the text is not UTF-8.
pub fn read_to_string(source: impl Read) -> Result<String> {
    let mut text = String::new();
    PlainText::new(source).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that gives a few octets at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[test]
    fn a_mark_is_skipped_and_a_carriage_return_alone_ends_a_line() {
        for (text, plain) in [
            (&b""[..], &b""[..]),
            (b"\xef\xbb\xbf", b""),
            (b"\xef\xbb\xbfa", b"a"),
            (b"\xef\xbb\xbf\xef\xbb\xbfa", b"\xef\xbb\xbfa"),
            (b"\xef\xbb", b"\xef\xbb"),
            (b"ab", b"ab"),
            (b"a\xef\xbb\xbf\n", b"a\xef\xbb\xbf\n"),
            (b"a\rb\r", b"a\nb\n"),
            (b"a\r\nb\r\n", b"a\r\nb\r\n"),
            (b"a\n\rb\r\r\n\r\r", b"a\n\nb\n\r\n\n\n"),
            (b"\r", b"\n"),
            (b"\r\na", b"\r\na"),
            (b"\xef\xbb\xbf\ra", b"\na"),
        ] {
            for (at_once, room) in [(1, 1), (1, 9), (2, 1), (2, 3), (3, 2), (99, 99)] {
                let mut read = Vec::new();
                let mut source = PlainText::new(Slow(text, at_once));
                let mut out = vec![0; room];
                loop {
                    match source.read(&mut out).unwrap() {
                        0 => break,
                        octets => read.extend_from_slice(&out[..octets]),
                    }
                }
                assert_eq!(read, plain, "{text:?}, {at_once} at once into {room}");
            }
        }
    }
    #[test]
    fn the_whole_text_has_no_mark_and_must_be_utf_8() {
        assert_eq!(read_to_string(&b"\xef\xbb\xbfa\rb\xc3\xa9\r\n"[..]).unwrap(), "a\nb\u{e9}\r\n");
        assert!(read_to_string(&b"a\xff"[..]).is_err());
    }
}
