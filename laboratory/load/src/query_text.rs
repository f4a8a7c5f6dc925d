//! A line of a query file as a question in wire form: a name by RFC 1035 section 5.1, a type by its mnemonic or as TYPEnn
//! (RFC 3597 section 5), class IN.

use crate::escape;
use std::fmt;

/// Octets of the longest name, and of the longest label (RFC 1035 section 2.3.4).
const NAME: usize = 255;
const LABEL: usize = 63;

/// Mnemonics of the types that can be asked over UDP, from the IANA registry of DNS parameters. AXFR and IXFR are left out:
/// zone transfers use TCP.
const TYPES: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("NULL", 10),
    ("WKS", 11),
    ("PTR", 12),
    ("HINFO", 13),
    ("MINFO", 14),
    ("MX", 15),
    ("TXT", 16),
    ("RP", 17),
    ("AFSDB", 18),
    ("X25", 19),
    ("ISDN", 20),
    ("RT", 21),
    ("NSAP", 22),
    ("SIG", 24),
    ("KEY", 25),
    ("PX", 26),
    ("GPOS", 27),
    ("AAAA", 28),
    ("LOC", 29),
    ("NXT", 30),
    ("SRV", 33),
    ("NAPTR", 35),
    ("KX", 36),
    ("CERT", 37),
    ("A6", 38),
    ("DNAME", 39),
    ("APL", 42),
    ("DS", 43),
    ("SSHFP", 44),
    ("IPSECKEY", 45),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("DHCID", 49),
    ("NSEC3", 50),
    ("NSEC3PARAM", 51),
    ("TLSA", 52),
    ("SMIMEA", 53),
    ("HIP", 55),
    ("CDS", 59),
    ("CDNSKEY", 60),
    ("OPENPGPKEY", 61),
    ("CSYNC", 62),
    ("ZONEMD", 63),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("SPF", 99),
    ("NID", 104),
    ("L32", 105),
    ("L64", 106),
    ("LP", 107),
    ("EUI48", 108),
    ("EUI64", 109),
    ("ANY", 255),
    ("URI", 256),
    ("CAA", 257),
    ("AVC", 258),
    ("DOA", 259),
    ("AMTRELAY", 260),
    ("TA", 32768),
    ("DLV", 32769),
];

/// Fault of a line. The text from the file is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// No type after this name.
    NoType(String),
    /// Not a type.
    Type(String),
    /// A third word.
    Extra(String),
    /// Not a name, with the reason and the remedy.
    Name(String, &'static str),
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
            LineError::Name(name, why) => write!(f, "\"{name}\" is not a domain name: {why}"),
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
    let start = out.len();
    if let Err(why) = append_name(name, out) {
        out.truncate(start);
        return Err(LineError::Name(escape::text(name), why));
    }
    out.extend(kind.to_be_bytes());
    out.extend([0, 1]);
    Ok(true)
}

/// A type by its mnemonic or as TYPEnn, in any letter case.
fn query_type(word: &[u8]) -> Option<u16> {
    let word = std::str::from_utf8(word).ok()?;
    if let Some((_, number)) = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Some(*number);
    }
    let digits = word.get(..4).filter(|start| start.eq_ignore_ascii_case("TYPE")).map(|_| &word[4..])?;
    if digits.bytes().all(|digit| digit.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Appends a name in wire form. Every name is absolute; the final dot may be left out.
fn append_name(text: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let start = out.len();
    if text == b"." {
        out.push(0);
        return Ok(());
    }
    let mut rest = text;
    while !rest.is_empty() {
        let at = out.len();
        out.push(0);
        rest = append_label(rest, out)?;
        match out.len() - at - 1 {
            0 => return Err("it has an empty label; remove a dot"),
            length @ 1..=LABEL => out[at] = length as u8,
            _ => return Err("a label has more than 63 octets (RFC 1035 section 2.3.4); shorten it"),
        }
    }
    out.push(0);
    if out.len() - start > NAME {
        return Err("it has more than 255 octets (RFC 1035 section 2.3.4); shorten it");
    }
    Ok(())
}

/// Appends the octets of the first label, and returns the text after its dot.
fn append_label<'a>(mut text: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    const ESCAPE: &str = "a backslash must stand before one character or three digits up to 255";
    loop {
        let (octet, rest) = match text {
            [] => return Ok(text),
            [b'.', rest @ ..] => return Ok(rest),
            [b'\\', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => {
                let (digits, rest) = digits.split_at_checked(3).ok_or(ESCAPE)?;
                let digits = std::str::from_utf8(digits).map_err(|_| ESCAPE)?;
                (digits.parse().map_err(|_| ESCAPE)?, rest)
            }
            [b'\\', octet @ b'!'..=b'~', rest @ ..] => (*octet, rest),
            [b'\\', ..] => return Err(ESCAPE),
            [octet @ b'!'..=b'~', rest @ ..] => (*octet, rest),
            _ => {
                return Err(
                    "it has an octet outside ASCII; write an internationalized name as xn--, any other octet as \\DDD",
                );
            }
        };
        out.push(octet);
        text = rest;
    }
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
        for (line, part) in [
            (&b"www.example.com"[..], "no type stands after \"www.example.com\"; write NAME TYPE"),
            (b"a ; A", "no type stands after \"a\""),
            (b"a AAAAA", "\"AAAAA\" is not a type"),
            (b"a AXFR", "not a type that can be asked over UDP"),
            (b"a TYPE65536", "TYPE0 to TYPE65535"),
            (b"a TYPE", "\"TYPE\" is not a type"),
            (b"a TYPE+1", "is not a type"),
            (b"a A 1.2.3.4", "\"1.2.3.4\" stands after the type; remove it"),
            (b"a..b A", "empty label; remove a dot"),
            (b".a A", "empty label"),
            (b"a\\25 A", "three digits"),
            (b"a\\256 A", "three digits up to 255"),
            (b"a\\ A", "a backslash"),
            (
                b"\xc3\xbc\x1b[2J A",
                "\"\\195\\188\\027[2J\" is not a domain name: it has an octet outside ASCII",
            ),
            (long.as_bytes(), "more than 255 octets"),
            (format!("{} A", "a".repeat(64)).as_bytes(), "more than 63 octets"),
        ] {
            let said = read(line).unwrap_err();
            assert!(said.contains(part), "{said}");
            assert!(said.bytes().all(|octet| (b' '..=b'~').contains(&octet)), "{said}");
        }
    }

    #[test]
    fn no_mnemonic_and_no_number_stands_twice() {
        for (place, (name, number)) in TYPES.iter().enumerate() {
            assert!(TYPES[..place].iter().all(|(other, same)| other != name && same < number), "{name}");
            assert_eq!(query_type(name.to_lowercase().as_bytes()), Some(*number));
        }
    }
}
