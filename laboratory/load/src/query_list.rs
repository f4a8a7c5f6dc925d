//! Queries from a file: one `NAME TYPE` a line, the format of dnsperf's query files. For servers that answer for real
//! names, where no reply can be predicted.
//!
//! The questions are kept in wire form, one after the other, with their letter case as in the file. A load asks them in
//! the order of the file and begins again after the last one. The number of a query in the list takes the place that the
//! address has in computed names: both are the four octets of a slot.

use crate::limits;
use crate::names::HEADER;
use crate::query_text::{self, LineError};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use textfile::PlainText;

/// The queries of a file.
pub struct QueryList {
    /// Name, type and class of each question.
    questions: Vec<u8>,
    /// End of each question in `questions`.
    ends: Vec<u32>,
}

impl QueryList {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or as [`QueryList::read`].
    pub fn load(file: &Path) -> Result<QueryList, QueryListError> {
        let source = File::open(file).map_err(|error| QueryListError {
            file: file.to_owned(),
            faults: vec![(None, Fault::Read(error))],
        })?;
        QueryList::read(source, file)
    }

    /// Reads queries from any source; errors name it `file`.
    ///
    /// # Errors
    ///
    /// All faults up to `limits::LIST_ERRORS`, each with its line: the source cannot be read, a line is too long or has no name and
    /// type, or there are too many queries, or none.
    pub fn read(source: impl Read, file: &Path) -> Result<QueryList, QueryListError> {
        let mut list = QueryList { questions: Vec::new(), ends: Vec::new() };
        let (mut source, mut line, mut faults) =
            (BufReader::new(PlainText::new(source)), Vec::new(), Vec::new());
        let mut number = 0;
        while faults.len() < limits::LIST_ERRORS {
            line.clear();
            number += 1;
            match source.by_ref().take(limits::LIST_LINE as u64 + 1).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if line.len() > limits::LIST_LINE => {
                    faults.push((Some(number), Fault::LongLine));
                    break;
                }
                Ok(_) => {}
                Err(error) => {
                    faults.push((None, Fault::Read(error)));
                    break;
                }
            }
            match query_text::question(&line, &mut list.questions) {
                Ok(true) if list.is_full() => {
                    faults.push((Some(number), Fault::TooMany));
                    break;
                }
                Ok(true) => list.ends.push(list.questions.len() as u32),
                Ok(false) => {}
                Err(error) => faults.push((Some(number), Fault::Line(error))),
            }
        }
        if faults.is_empty() && list.ends.is_empty() {
            faults.push((None, Fault::Empty));
        }
        let file = file.to_owned();
        if faults.is_empty() { Ok(list) } else { Err(QueryListError { file, faults }) }
    }

    /// True if the question just read exceeds a limit.
    fn is_full(&self) -> bool {
        self.ends.len() >= limits::LIST_QUERIES || self.questions.len() > limits::LIST_OCTETS
    }

    /// Number of queries.
    pub fn queries(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The questions, in order: name, type and class in wire form.
    pub fn questions(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len() as u32).map(|index| self.question(index.to_be_bytes()))
    }

    /// The query of a number that counts on after the last query: its index in the list, and true if it was asked before.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> ([u8; 4], bool) {
        // The list has fewer than 2^32 queries.
        let index = (number % self.queries()) as u32;
        (index.to_be_bytes(), number >= self.queries())
    }

    /// Name, type and class of a query; empty for an index beyond the list.
    #[inline]
    pub(crate) fn question(&self, index: [u8; 4]) -> &[u8] {
        let index = u32::from_be_bytes(index) as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        &self.questions[start as usize..end as usize]
    }

    /// Appends the query of an index, with an ID, to `out`; returns its length.
    #[inline]
    pub(crate) fn write(&self, index: [u8; 4], id: u16, out: &mut Vec<u8>) -> usize {
        let [high, low] = id.to_be_bytes();
        // RD, one question.
        out.extend([high, low, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        let question = self.question(index);
        out.extend(question);
        HEADER + question.len()
    }

    /// True if a message has exactly one question, equal octet for octet to that of an index.
    #[inline]
    pub(crate) fn asks(&self, message: &[u8], index: [u8; 4]) -> bool {
        let question = self.question(index);
        message.get(HEADER..HEADER + question.len()) == Some(question) && message[4..6] == [0, 1]
    }
}

impl fmt::Debug for QueryList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueryList({} queries)", self.queries())
    }
}

/// Reasons why a query file is refused: all faults, up to [`limits::LIST_ERRORS`].
#[derive(Debug)]
pub struct QueryListError {
    file: PathBuf,
    faults: Vec<(Option<u64>, Fault)>,
}

#[derive(Debug)]
enum Fault {
    Read(io::Error),
    Empty,
    LongLine,
    TooMany,
    Line(LineError),
}

impl fmt::Display for QueryListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        for (place, (line, fault)) in self.faults.iter().enumerate() {
            let (end, line) = (if place > 0 { "\n" } else { "" }, line.map(|line| format!(":{line}")));
            write!(f, "{end}{file}{}: {fault}", line.unwrap_or_default())?;
        }
        if self.faults.len() >= limits::LIST_ERRORS {
            write!(f, "\n{file}: these are the first {} faults; there may be more", limits::LIST_ERRORS)?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Read(error) => write!(f, "cannot be read: {error}; name a file with one NAME TYPE a line"),
            Fault::Empty => {
                f.write_str("has no queries; write one NAME TYPE a line, such as www.example.com AAAA")
            }
            Fault::LongLine => write!(
                f,
                "the line has more than {} octets; write one NAME TYPE a line, such as www.example.com AAAA",
                limits::LIST_LINE
            ),
            Fault::TooMany => write!(
                f,
                "more than {} queries, or more than {} MiB of them; split the file here",
                limits::LIST_QUERIES,
                limits::LIST_OCTETS >> 20
            ),
            Fault::Line(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for QueryListError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<QueryList, String> {
        QueryList::read(text, Path::new("names")).map_err(|error| error.to_string())
    }

    #[test]
    fn queries_come_in_the_order_of_the_file_and_then_again_with_their_letter_case() {
        let list =
            read(b"\xef\xbb\xbf; comment\nwww.Example AAAA\n\n# comment\n\ta. TYPE65 ; HTTPS\r\n. ns\r")
                .unwrap();
        assert_eq!(list.queries(), 3);
        let questions: [&[u8]; 3] =
            [b"\x03www\x07Example\0\0\x1c\0\x01", b"\x01a\0\0\x41\0\x01", b"\0\0\x02\0\x01"];
        for number in 0..7 {
            let (index, again) = list.at(number);
            assert_eq!((list.question(index), again), (questions[number as usize % 3], number >= 3));
        }
        let mut out = b"before".to_vec();
        assert_eq!(list.write(list.at(1).0, 0x1234, &mut out), 19);
        assert_eq!(out, b"before\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x41\0\x01");
        assert!(list.asks(&out[6..], list.at(1).0));
        assert!(!list.asks(&out[6..], list.at(0).0) && !list.asks(&out[6..24], list.at(1).0));
        for at in (10..12).chain(18..25) {
            let mut other = out.clone();
            other[at] ^= 0x20;
            assert!(!list.asks(&other[6..], list.at(1).0), "octet {at}");
        }
        assert_eq!(list.question([255; 4]), b"");
    }

    #[test]
    fn every_fault_is_told_with_file_line_and_remedy_up_to_a_limit() {
        let said = read(b"a AAAA\nb\nc. BBBB\n").unwrap_err();
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines[0].starts_with("names:2: ") && lines[0].contains("NAME TYPE"), "{said}");
        assert!(lines[1].starts_with("names:3: ") && lines[1].contains("\"BBBB\""), "{said}");
        let said = read(&b"b\n".repeat(1000)).unwrap_err();
        assert_eq!(said.lines().count(), limits::LIST_ERRORS + 1);
        assert!(said.ends_with("names: these are the first 20 faults; there may be more"), "{said}");
    }

    #[test]
    fn a_file_that_is_missing_or_has_no_queries_is_an_error() {
        for text in [&b""[..], b"\n\n", b"; none\n#\n"] {
            let said = read(text).unwrap_err();
            assert_eq!(
                said,
                "names: has no queries; write one NAME TYPE a line, such as www.example.com AAAA"
            );
        }
        let said = QueryList::load(Path::new("/nowhere/names")).unwrap_err().to_string();
        assert!(said.starts_with("/nowhere/names: cannot be read: No such file"), "{said}");
        let said = QueryList::load(Path::new("/tmp")).unwrap_err().to_string();
        assert!(said.contains("cannot be read: Is a directory"), "{said}");
    }

    #[test]
    fn a_line_without_an_end_takes_bounded_memory() {
        let said = QueryList::read(io::repeat(b'a'), Path::new("endless")).unwrap_err().to_string();
        assert!(said.starts_with("endless:1: the line has more than 4096 octets"), "{said}");
    }

    #[test]
    fn a_list_beyond_its_limit_is_refused_at_the_line_where_it_is() {
        let mut list = QueryList { questions: Vec::new(), ends: vec![0; limits::LIST_QUERIES - 1] };
        assert!(!list.is_full());
        list.ends.push(0);
        assert!(list.is_full());
    }
}
