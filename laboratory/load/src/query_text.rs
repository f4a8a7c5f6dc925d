//! A line of a query file as a question in wire form: a name by RFC 1035 section 5.1, a type by its mnemonic or as TYPEnn
//! (RFC 3597 section 5), class IN.

use crate::escape;
use domain::base::Name;
use domain::base::iana::Rtype;
use domain::base::name::{FromStrError, PushError};
use std::fmt;
use std::str::FromStr;

/// Types that are not asked over UDP: zone transfers, and types that only belong to a message.
const NOT_ASKED: [Rtype; 5] = [Rtype::AXFR, Rtype::IXFR, Rtype::OPT, Rtype::TKEY, Rtype::TSIG];

/// Fault of a line. The text from the file is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// No type after this name.
    NoType(String),
    /// Not a type.
    Type(String),
    /// A third word.
    Extra(String),
    /// Not a name, with the reason.
    Name(String, FromStrError),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NoType(name) => {
                write!(f, "no type stands after \"{name}\"; write NAME TYPE, such as www.example.com AAAA")
            }
            LineError::Type(text) => write!(
                f,
                "\"{text}\" is not a type that can be asked over UDP; write a mnemonic such as AAAA, or TYPE0 to TYPE65535"
            ),
            LineError::Extra(text) => {
                write!(f, "\"{text}\" stands after the type; remove it, or begin a comment with ; or #")
            }
            LineError::Name(name, why) => write!(
                f,
                "\"{name}\" is not a domain name: {why}; a label has 1 to 63 octets, a name at most 255 (RFC 1035 section 2.3.4); write an \
                 internationalized name as xn--, any other octet outside ASCII as \\DDD"
            ),
        }
    }
}

/// Appends the question of a line to `out`. False: the line is empty or a comment.
///
/// # Errors
///
/// `LineError::NoType`: nothing follows the name. `LineError::Type`: the type is unknown. `LineError::Extra`: a third word.
/// `LineError::Name`: the name is malformed. Nothing is appended then.
pub fn question(line: &[u8], out: &mut Vec<u8>) -> Result<bool, LineError> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || words.next().filter(|word| !matches!(word[0], b';' | b'#'));
    let Some(name) = word() else { return Ok(false) };
    let kind = word().ok_or_else(|| LineError::NoType(escape::text(name)))?;
    let kind = query_type(kind).ok_or_else(|| LineError::Type(escape::text(kind)))?;
    if let Some(extra) = word() {
        return Err(LineError::Extra(escape::text(extra)));
    }
    // Every name is absolute; the final dot may be left out. Octets that are not UTF-8 are outside ASCII, too.
    let wire = Name::<Vec<u8>>::from_str(&String::from_utf8_lossy(name));
    // The library lets one name through that has an octet too many: its last label has one octet and begins at the end.
    let is_long = wire.as_ref().is_ok_and(|wire| wire.len() > Name::MAX_LEN);
    let wire = if is_long { Err(PushError::LongName.into()) } else { wire };
    out.extend(wire.map_err(|why| LineError::Name(escape::text(name), why))?.as_slice());
    out.extend(kind.to_int().to_be_bytes());
    out.extend([0, 1]);
    Ok(true)
}

/// A type by its mnemonic or as TYPEnn, in any letter case.
fn query_type(word: &[u8]) -> Option<Rtype> {
    Rtype::from_bytes(word).filter(|kind| !NOT_ASKED.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        match question(line, &mut out) {
            Ok(true) => Ok(out),
            other => {
                assert!(out.is_empty());
                other.map(|_| Vec::new()).map_err(|error| error.to_string())
            }
        }
    }

    #[test]
    fn names_are_absolute_and_may_have_escapes() {
        let expected: [(&[u8], &[u8]); 5] = [
            (b"a.b. A", b"\x01a\x01b\0\0\x01\0\x01"),
            (b"a\\.b any", b"\x03a.b\0\0\xff\0\x01"),
            (b"\\000\\255x TYPE0", b"\x03\0\xffx\0\0\0\0\x01"),
            (b"_x;y.#z type65535 ;", b"\x04_x;y\x02#z\0\xff\xff\0\x01"),
            (b" ; a A", b""),
        ];
        for (line, question) in expected {
            assert_eq!(read(line).unwrap(), question, "{}", line.escape_ascii());
        }
        let longest = format!("{}{} A", format!("{}.", "a".repeat(63)).repeat(3), "a".repeat(61));
        assert_eq!(read(longest.as_bytes()).unwrap().len(), 255 + 4);
    }

    #[test]
    fn faults_say_what_to_write_and_text_from_the_file_is_escaped() {
        let long = format!("{}{} A", format!("{}.", "a".repeat(63)).repeat(3), "a".repeat(62));
        let longer = format!("{}{}.a A", format!("{}.", "a".repeat(63)).repeat(3), "a".repeat(60));
        for (line, part) in [
            (&b"www.example.com"[..], "no type stands after \"www.example.com\"; write NAME TYPE"),
            (b"a ; A", "no type stands after \"a\""),
            (b"a AAAAA", "\"AAAAA\" is not a type"),
            (b"a AXFR", "not a type that can be asked over UDP"),
            (b"a TYPE65536", "TYPE0 to TYPE65535"),
            (b"a TYPE", "\"TYPE\" is not a type"),
            (b"a A 1.2.3.4", "\"1.2.3.4\" stands after the type; remove it"),
            (b"a..b A", "empty label"),
            (b".a A", "empty label"),
            (b"a\\25 A", "is not a domain name"),
            (b"a\\256 A", "is not a domain name"),
            (b"a\\ A", "is not a domain name"),
            (b"\xc3\xbc\x1b[2J A", "\"\\195\\188\\027[2J\" is not a domain name"),
            (b"\xfc A", "\"\\252\" is not a domain name"),
            (long.as_bytes(), "long domain name"),
            (longer.as_bytes(), "long domain name"),
            (format!("{} A", "a".repeat(64)).as_bytes(), "label length limit exceeded"),
        ] {
            let said = read(line).unwrap_err();
            assert!(said.contains(part), "{said}");
            assert!(said.bytes().all(|octet| (b' '..=b'~').contains(&octet)), "{said}");
        }
    }
}
