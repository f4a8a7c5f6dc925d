//! Times with units in master files. RFC 1035 section 5.1 has seconds only; BIND's `1h`, `1W2D` and `1h30m` have become the
//! custom, and the parser behind us reads seconds. So the fields that are times are rewritten before it reads them, and no
//! others: an owner `1h`, a text `"1h"` and a serial number stay as they are.
//!
//! The words are those of RFC 1035 section 5.1: they end at blanks, parentheses, quotes and comments, `\` escapes the next
//! octet, and an entry ends at the end of a line, unless a parenthesis is open.

use std::borrow::Cow;
use std::ops::Range;

/// Position of `refresh` among the data of an SOA record (RFC 1035 section 3.3.13); behind it stand `retry`, `expire` and
/// `minimum`.
const REFRESH: usize = 3;

/// Octets of the longest time that is read: ten digits and a unit for each of the five units.
const LONGEST_TIME: usize = 55;

/// The text of whole entries, with TTLs, the times of SOA records and those of `$TTL` in seconds. A time that is no number
/// of seconds below 2^32 stays as it is.
pub fn in_seconds(text: &[u8]) -> Cow<'_, [u8]> {
    let mut words = Words { text, at: 0, depth: 0 };
    let (mut out, mut copied) = (Vec::new(), 0);
    while words.at < text.len() {
        entry(&mut words, |time| {
            if let Some(seconds) = seconds(&text[time.clone()]) {
                out.extend_from_slice(&text[copied..time.start]);
                out.extend_from_slice(seconds.to_string().as_bytes());
                copied = time.end;
            }
        });
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}

/// The word of an entry that is a record's type. None: the entry is no record.
pub fn record_type(text: &[u8]) -> Option<&[u8]> {
    let mut words = Words { text, at: 0, depth: 0 };
    words.begin_entry().filter(|first| !first.is_directive(text))?;
    words.skip_to_type(|_| ()).map(|word| &text[word.range])
}

/// The owner that a record names itself. None: it inherits its owner, or the entry is no record.
pub fn owner(text: &[u8]) -> Option<&[u8]> {
    let first = Words { text, at: 0, depth: 0 }.begin_entry()?;
    (!first.is_indented && !first.is_directive(text)).then(|| &text[first.range])
}

/// What to write for data of a type that is known by its name and number only.
pub fn generic_form(rtype: &str, number: u16) -> String {
    let rtype = rtype.to_ascii_uppercase();
    format!(
        "data of type {rtype} have no text form here: write `TYPE{number} \\# LENGTH HEXADECIMAL` (RFC 3597 section 5)"
    )
}

/// Reads an entry, and tells the places of its times.
fn entry(words: &mut Words<'_>, mut tell: impl FnMut(Range<usize>)) {
    let Some(first) = words.begin_entry() else { return };
    if first.is_directive(words.text) {
        let is_ttl = words.text[first.range].eq_ignore_ascii_case(b"$TTL");
        words.next().filter(|_| is_ttl).into_iter().for_each(|time| tell(time.range));
    } else if let Some(rtype) = words.skip_to_type(&mut tell)
        && words.text[rtype.range].eq_ignore_ascii_case(b"SOA")
    {
        let mut place = 0;
        while let Some(word) = words.next() {
            // The generic form has no times (RFC 3597 section 5).
            if place == 0 && &words.text[word.range.clone()] == br"\#" {
                break;
            }
            if (REFRESH..REFRESH + 4).contains(&place) {
                tell(word.range);
            }
            place += 1;
        }
    }
    words.end_entry();
}

/// A word of an entry.
struct Word {
    range: Range<usize>,
    /// True if white space stands before it.
    is_indented: bool,
}

impl Word {
    /// True if the first word of an entry makes it a directive.
    fn is_directive(&self, text: &[u8]) -> bool {
        !self.is_indented && text[self.range.start] == b'$'
    }
}

/// The words of entries.
struct Words<'t> {
    text: &'t [u8],
    at: usize,
    /// Parentheses that are open.
    depth: u32,
}

impl Words<'_> {
    /// The first word of an entry. None: the entry has none, and is read.
    fn begin_entry(&mut self) -> Option<Word> {
        self.depth = 0;
        let (start, first) = (self.at, self.next());
        // White space in the place of the owner stands for the last owner: the next word is no owner.
        if first.as_ref().is_some_and(|word| word.is_indented) {
            (self.at, self.depth) = (start, 0);
        } else if first.is_none() {
            self.end_entry();
        }
        first
    }

    /// Reads TTL and class behind the owner, in any order, and returns the type. Tells the place of the TTL.
    fn skip_to_type(&mut self, mut tell: impl FnMut(Range<usize>)) -> Option<Word> {
        for _ in 0..3 {
            let word = self.next()?;
            let text = &self.text[word.range.clone()];
            if text[0].is_ascii_digit() {
                tell(word.range);
            } else if !is_class(text) {
                return Some(word);
            }
        }
        None
    }

    /// The next word of the entry; none at its end. A word in quotes has its quotation marks.
    fn next(&mut self) -> Option<Word> {
        let mut is_indented = false;
        loop {
            match *self.text.get(self.at)? {
                b' ' | b'\t' | b'\r' => is_indented = true,
                b'(' => self.depth += 1,
                b')' => self.depth = self.depth.saturating_sub(1),
                b'\n' if self.depth == 0 => return None,
                b'\n' => {}
                b';' => {
                    self.skip_comment();
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        let start = self.at;
        let is_quoted = self.text[start] == b'"';
        self.at += usize::from(is_quoted);
        while let Some(&octet) = self.text.get(self.at) {
            match octet {
                b'"' if is_quoted => {
                    self.at += 1;
                    break;
                }
                b'\\' => self.at += 1,
                b' ' | b'\t' | b'\r' | b'\n' | b'(' | b')' | b';' | b'"' if !is_quoted => break,
                _ => {}
            }
            self.at += 1;
        }
        // An escape may be the last octet of the text.
        self.at = self.at.min(self.text.len());
        Some(Word { range: start..self.at, is_indented })
    }

    /// Goes to the end of the line of a comment.
    fn skip_comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|octet| *octet == b'\n').unwrap_or(rest.len());
    }

    /// Goes behind the end of the entry.
    fn end_entry(&mut self) {
        while self.next().is_some() {}
        self.at = (self.at + 1).min(self.text.len());
    }
}

/// True for the mnemonic of a class.
fn is_class(word: &[u8]) -> bool {
    [&b"IN"[..], b"CH", b"HS", b"CS"].iter().any(|class| word.eq_ignore_ascii_case(class))
        || word.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case(b"CLASS"))
}

/// The seconds of a time with units. None: it is none, or it has no unit, or it has 2^32 seconds or more.
fn seconds(time: &[u8]) -> Option<u32> {
    let is_time = time.len() <= LONGEST_TIME && time.first().is_some_and(u8::is_ascii_digit);
    let mut rest = time.split_last().filter(|(last, _)| is_time && !last.is_ascii_digit()).map(|_| time)?;
    let mut sum = 0u64;
    while !rest.is_empty() {
        let digits = rest.iter().position(|octet| !octet.is_ascii_digit())?;
        let (number, unit) = rest.split_at(digits);
        let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let unit = match unit[0].to_ascii_lowercase() {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        sum = number.checked_mul(unit)?.checked_add(sum)?;
        rest = &rest[digits + 1..];
    }
    sum.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        String::from_utf8(in_seconds(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn units_add_up_in_any_order_and_letter_case() {
        for (time, expected) in [
            ("1s", 1),
            ("90m", 5_400),
            ("1H", 3_600),
            ("1h30m", 5_400),
            ("1W2D", 777_600),
            ("1d1W", 691_200),
            ("0s", 0),
            ("0012h", 43_200),
            ("7101w3d6h28m15s", u32::MAX),
        ] {
            assert_eq!(seconds(time.as_bytes()), Some(expected), "{time}");
        }
        for time in [
            "",
            "1",
            "3600",
            "h",
            "1h30",
            "1y",
            "1hm",
            "-1h",
            "1.5h",
            "7102w",
            "99999999999999999999w",
            "1h;",
        ] {
            assert_eq!(seconds(time.as_bytes()), None, "{time}");
        }
    }

    /// The example of the manual of BIND, with times as RFC 1035 section 5.3 would have them in seconds.
    #[test]
    fn ttls_and_the_times_of_an_soa_record_become_seconds() {
        for (text, expected) in [
            ("$TTL 1H\n", "$TTL 3600\n"),
            ("$ttl 2h; comment 1h\n", "$ttl 7200; comment 1h\n"),
            ("@ SOA LOCALHOST. x. (1 1h 15m 30d 2h)", "@ SOA LOCALHOST. x. (1 3600 900 2592000 7200)"),
            (
                "@ 1d IN SOA a. b. (\n 1h ; 1h\n 12h\n15m 3w\n2h )\nx 1m A 192.0.2.1\n",
                "@ 86400 IN SOA a. b. (\n 1h ; 1h\n 43200\n900 1814400\n7200 )\nx 60 A 192.0.2.1\n",
            ),
            ("a 1h IN A 192.0.2.1", "a 3600 IN A 192.0.2.1"),
            ("a IN 1h A 192.0.2.1", "a IN 3600 A 192.0.2.1"),
            ("a class1 1h TYPE1 \\# 4 c0000201", "a class1 3600 TYPE1 \\# 4 c0000201"),
            (" 1h A 192.0.2.1\n\t1h IN A 192.0.2.1\n", " 3600 A 192.0.2.1\n\t3600 IN A 192.0.2.1\n"),
            (
                "a ( 1h\n IN ) A 192.0.2.1\nb 1h A 192.0.2.2",
                "a ( 3600\n IN ) A 192.0.2.1\nb 3600 A 192.0.2.2",
            ),
            (
                "a 60 TXT \"x\n 1h A\n\" ; y\nb 1h TXT z\r\nc 1h TXT z",
                "a 60 TXT \"x\n 1h A\n\" ; y\nb 3600 TXT z\r\nc 3600 TXT z",
            ),
        ] {
            assert_eq!(rewritten(text), expected);
        }
    }

    #[test]
    fn what_only_looks_like_a_time_stays() {
        for text in [
            "1h A 192.0.2.1\n",
            "1h 60 IN CNAME 1h\n",
            "a TXT 1h \"1h\" 1h\n",
            "a 60 TXT 1h\n 60 TXT 1h\n",
            "a 60 IN TXT ( 1h\n1h )\n",
            "a SOA 1h 1h 1h 1 2 3 4\n",
            "a SOA \\# 4 1h 1h 1h 1h\n",
            "a\\ 1h A 192.0.2.1\n",
            "\\$TTL 1h\\; A 192.0.2.1\n",
            "; $TTL 1h\n; a 1h A 192.0.2.1\n",
            "$ORIGIN 1h\n$INCLUDE 1h 1h\n",
            "a MX 1h 1h\n",
            "a 1x A 192.0.2.1\n",
            "a \"1h\" A 192.0.2.1\n",
            "",
            "\n \n\n(\n",
            "a\\",
            "\"",
        ] {
            assert!(
                matches!(in_seconds(text.as_bytes()), Cow::Borrowed(same) if same == text.as_bytes()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn the_type_of_a_record_stands_behind_owner_ttl_and_class() {
        for (text, expected) in [
            ("a 1h IN URI 10 1 \"ftp://a/\"\n", Some("URI")),
            (" loc 1 2 3", Some("loc")),
            ("a IN 60 SPF x", Some("SPF")),
            ("(\na\n60 ) KX 1 b.", Some("KX")),
            ("$TTL 60\n", None),
            ("; a URI\n", None),
            ("a 60 IN\n", None),
            ("", None),
        ] {
            assert_eq!(record_type(text.as_bytes()), expected.map(str::as_bytes), "{text:?}");
        }
    }
}
