//! Names between text (RFC 1035 section 5.1) and the wire.

use std::fmt::{self, Display, Write};
use wire::MAX_NAME;

/// Octets of the longest label.
const LABEL: usize = 63;

/// Reason why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Nothing, or two dots in a row.
    EmptyLabel,
    /// A label of more than 63 octets.
    LongLabel,
    /// A name of more than 255 octets.
    LongName,
    /// A backslash without an octet or three digits up to 255 behind it.
    Escape,
    /// An octet that is no visible character of ASCII: it has to be escaped, and a name in another script to be in its ASCII form.
    NotAscii,
}

impl Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::EmptyLabel => {
                "the name has an empty label; write a name like \"example.com\", or \".\""
            }
            NameError::LongLabel => {
                "the name has a label of more than 63 octets; write a name that can exist"
            }
            NameError::LongName => "the name has more than 255 octets; write a name that can exist",
            NameError::Escape => {
                "a backslash stands before something else than an octet or three digits up to 255"
            }
            NameError::NotAscii => {
                "the name has characters that are not ASCII; write its ASCII form (xn--...)"
            }
        })
    }
}

impl std::error::Error for NameError {}

/// Wire name in lower case. A text that does not end with a dot is below `origin`, which is a wire name; `@` is the origin itself.
///
/// # Errors
///
/// The first reason why the text is no name.
pub fn from_text(text: &[u8], origin: &[u8]) -> Result<Box<[u8]>, NameError> {
    match text {
        b"." => return Ok(Box::new([0])),
        b"@" => return Ok(origin.into()),
        _ => {}
    }
    let (mut wire, mut start) = (vec![0], 0);
    let mut rest = text;
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        if octet == b'.' {
            end_label(&wire, start)?;
            start = wire.len();
            wire.push(0);
            continue;
        }
        let octet = match octet {
            b'\\' => unescape(&mut rest)?,
            b'!'..=b'~' => octet,
            _ => return Err(NameError::NotAscii),
        };
        wire.push(octet.to_ascii_lowercase());
        let length = wire.len() - start - 1;
        wire[start] = u8::try_from(length).ok().filter(|_| length <= LABEL).ok_or(NameError::LongLabel)?;
    }
    // Behind the last dot stands the root.
    if wire.len() - start > 1 {
        wire.extend_from_slice(origin);
    } else if start == 0 {
        return Err(NameError::EmptyLabel);
    }
    if wire.len() > MAX_NAME { Err(NameError::LongName) } else { Ok(wire.into()) }
}

fn end_label(wire: &[u8], start: usize) -> Result<(), NameError> {
    if wire.len() - start > 1 { Ok(()) } else { Err(NameError::EmptyLabel) }
}

/// Octet behind a backslash.
fn unescape(rest: &mut &[u8]) -> Result<u8, NameError> {
    let (octet, after) = match **rest {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] => {
            let number = u32::from(a - b'0') * 100 + u32::from(b - b'0') * 10 + u32::from(c - b'0');
            (u8::try_from(number).map_err(|_| NameError::Escape)?, 3)
        }
        [octet @ b'!'..=b'~', ..] if !octet.is_ascii_digit() => (octet, 1),
        _ => return Err(NameError::Escape),
    };
    *rest = &rest[after..];
    Ok(octet)
}

/// Text of a wire name, with the last dot, on one line and without blanks. Where it stands at the start of a line, a reader of anchor files takes
/// it for a name, and neither for XML nor for a comment of BIND.
pub fn to_text(name: &[u8]) -> String {
    let (mut text, mut rest) = (String::new(), name);
    while let Some((&length @ 1.., after)) = rest.split_first() {
        let (label, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        for &octet in label {
            match octet {
                b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' | b'<' => {
                    text.push('\\');
                    text.push(char::from(octet));
                }
                b'/' if text.is_empty() => text.push_str("\\/"),
                b'!'..=b'~' => text.push(char::from(octet)),
                // Writing into a text cannot fail.
                _ => drop(write!(text, "\\{octet:03}")),
            }
        }
        text.push('.');
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_their_text() {
        for (text, wire) in [
            (".", &b"\0"[..]),
            ("example.", b"\x07example\0"),
            ("a\\.b.c.", b"\x03a.b\x01c\0"),
            ("\\000\\255\\\\.", b"\x03\0\xff\\\0"),
            ("\\@.\\$\\;\\(\\)\\\".", b"\x01@\x05$;()\"\0"),
            ("\\<a.", b"\x02<a\0"),
            ("\\//a/b.0/25.", b"\x05//a/b\x040/25\0"),
        ] {
            assert_eq!(from_text(text.as_bytes(), b"\0").as_deref(), Ok(wire), "{text}");
            assert_eq!(to_text(wire), text);
        }
        assert_eq!(from_text(b"WWW.Example", b"\0").as_deref(), Ok(&b"\x03www\x07example\0"[..]));
        assert_eq!(from_text(b"a", b"\x01b\0").as_deref(), Ok(&b"\x01a\x01b\0"[..]));
        assert_eq!(from_text(b"a.", b"\x01b\0").as_deref(), Ok(&b"\x01a\0"[..]));
        assert_eq!(from_text(b"@", b"\x01b\0").as_deref(), Ok(&b"\x01b\0"[..]));
    }

    #[test]
    fn what_is_no_name_is_refused_with_its_reason() {
        let long = "a".repeat(64);
        let longest = format!("{}.{}.{}.{}.", &long[1..], &long[1..], &long[1..], &long[3..]);
        assert_eq!(from_text(longest.as_bytes(), b"\0").map(|name| name.len()), Ok(255));
        let longer = format!("{}.{}.{}.{}.", &long[1..], &long[1..], &long[1..], &long[2..]);
        for (text, expected) in [
            ("", NameError::EmptyLabel),
            ("a..b", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("..", NameError::EmptyLabel),
            (long.as_str(), NameError::LongLabel),
            (longer.as_str(), NameError::LongName),
            ("a\\", NameError::Escape),
            ("\\256", NameError::Escape),
            ("\\25", NameError::Escape),
            ("b\u{fc}cher.example", NameError::NotAscii),
            ("a b", NameError::NotAscii),
        ] {
            assert_eq!(from_text(text.as_bytes(), b"\0"), Err(expected), "{text:?}");
        }
    }
}
