//! Domain names as text (RFC 1035 section 5.1) and in wire form, for the zones and names of a configuration.

use super::report::{Fault, proposed, quoted};
use std::fmt;

/// A domain name in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    wire: Box<[u8]>,
}

impl Name {
    /// A name that is already in wire form and lower case.
    pub(super) fn from_wire(wire: &[u8]) -> Name {
        Name { wire: wire.into() }
    }

    /// Parses a name. It is absolute, with or without the final dot; `.` is the root. `\.` and `\DDD` stand for octets
    /// that have no other notation.
    ///
    /// # Errors
    ///
    /// A label is empty or has more than 63 octets, the name has more than 255, nothing that makes sense follows a backslash, or there
    /// is a blank, a control character, or a character that is not ASCII.
    pub fn parse(text: &str) -> Result<Name, Fault> {
        let refuse = |why: &str| {
            let what = format!("{} is not a domain name: {why}", quoted(text));
            Fault::new(
                what,
                "write a name like \"corp.example\"; labels have 1 to 63 octets, a name at most 255",
            )
        };
        if text == "." {
            return Ok(Name { wire: Box::new([0]) });
        }
        let mut wire = vec![0];
        let mut label_start = 0;
        let mut rest = text.as_bytes();
        while let Some((&octet, tail)) = rest.split_first() {
            rest = tail;
            let octet = match octet {
                b'.' => {
                    close_label(&mut wire, label_start).map_err(&refuse)?;
                    label_start = wire.len();
                    wire.push(0);
                    continue;
                }
                b'\\' => {
                    let (octet, tail) = escaped(rest)
                        .ok_or_else(|| refuse("after `\\` three digits or a character must follow"))?;
                    rest = tail;
                    octet
                }
                0..=b' ' | 0x7f => return Err(refuse("it contains a blank or a control character")),
                0x80.. => return Err(refuse("characters that are not ASCII need their xn-- form")),
                other => other,
            };
            wire.push(octet.to_ascii_lowercase());
        }
        // After a final dot the root label has begun already.
        if wire.len() - label_start > 1 || label_start == 0 {
            close_label(&mut wire, label_start).map_err(&refuse)?;
            wire.push(0);
        }
        if wire.len() > 255 {
            return Err(refuse("it is longer than 255 octets"));
        }
        Ok(Name { wire: wire.into() })
    }

    /// Parses a name of the configuration.
    ///
    /// # Errors
    ///
    /// As [`Name::parse`], and for a URL or a final slash, which are probably meant for something else.
    pub fn configured(text: &str) -> Result<Name, Fault> {
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
            let what = format!("{} is a URL, not a domain name", quoted(text));
            return Err(Fault::new(what, format!("write the name alone: {}", proposed(host))));
        }
        if let Some(name) = text.strip_suffix('/') {
            let what = format!("{} is not a domain name: it ends with a slash", quoted(text));
            return Err(Fault::new(what, format!("write {}", proposed(name))));
        }
        Name::parse(text)
    }

    /// Like [`Name::configured`], for a name that stands for all names below it as well.
    ///
    /// # Errors
    ///
    /// As [`Name::configured`], and for an asterisk or a dot in front: an asterisk would match only itself.
    pub fn covering(text: &str) -> Result<Name, Fault> {
        if let Some(name) =
            text.strip_prefix("*.").or_else(|| text.strip_prefix('.').filter(|name| !name.is_empty()))
        {
            let what = format!("{} has a wildcard, which this key does not need", quoted(text));
            let help = format!("write {}: it means this name and all names below it", proposed(name));
            return Err(Fault::new(what, help));
        }
        Name::configured(text)
    }

    /// The uncompressed wire form, lower case, with the root label at its end.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

/// Writes the length of the label that began at `start` and ends here.
fn close_label(wire: &mut [u8], start: usize) -> Result<(), &'static str> {
    match wire.len() - start - 1 {
        0 => Err("a label is empty"),
        length @ 1..=63 => {
            wire[start] = length as u8;
            Ok(())
        }
        _ => Err("a label is longer than 63 octets"),
    }
}

/// The octet that a backslash sequence stands for, and the rest.
fn escaped(rest: &[u8]) -> Option<(u8, &[u8])> {
    match rest {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', tail @ ..] => {
            let value = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
            Some((u8::try_from(value).ok()?, tail))
        }
        [b'0'..=b'9', ..] => None,
        [octet @ 0x21..=0x7e, tail @ ..] => Some((*octet, tail)),
        _ => None,
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.wire[..];
        if rest == [0] {
            return write!(f, ".");
        }
        // Escaped, so that it is not taken for a wildcard.
        if let Some(tail) = rest.strip_prefix(b"\x01*") {
            write!(f, "\\042.")?;
            rest = tail;
        }
        while let Some((&length, tail)) = rest.split_first().filter(|(length, _)| **length > 0) {
            let (label, tail) = tail.split_at(usize::from(length).min(tail.len()));
            for &octet in label {
                match octet {
                    b'.' | b'\\' => write!(f, "\\{}", char::from(octet))?,
                    // A colon is escaped, so that a name is not taken for a URL.
                    0x21..=0x39 | 0x3b..=0x7e => write!(f, "{}", char::from(octet))?,
                    other => write!(f, "\\{other:03}")?,
                }
            }
            write!(f, ".")?;
            rest = tail;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_absolute_and_shown_so_that_they_can_be_read_back() {
        for (text, wire, shown) in [
            ("Corp.Example", &b"\x04corp\x07example\x00"[..], "corp.example."),
            ("corp.example.", b"\x04corp\x07example\x00", "corp.example."),
            (".", b"\x00", "."),
            ("a", b"\x01a\x00", "a."),
            ("a\\.b.c", b"\x03a.b\x01c\x00", "a\\.b.c."),
            ("\\032\\255", b"\x02 \xff\x00", "\\032\\255."),
            ("_dns.x", b"\x04_dns\x01x\x00", "_dns.x."),
            ("*.x.*", b"\x01*\x01x\x01*\x00", "\\042.x.*."),
            ("a://b", b"\x05a://b\x00", "a\\058//b."),
            (
                "0/25.2.0.192.in-addr.arpa",
                b"\x040/25\x012\x010\x03192\x07in-addr\x04arpa\x00",
                "0/25.2.0.192.in-addr.arpa.",
            ),
        ] {
            let name = Name::parse(text).unwrap();
            assert_eq!(name.wire(), wire, "{text}");
            assert_eq!(name.to_string(), shown);
            assert_eq!(Name::parse(shown).unwrap(), name);
            assert_eq!(Name::covering(shown).unwrap(), name);
        }
    }

    #[test]
    fn a_wildcard_and_a_url_are_refused_with_the_name_to_write() {
        for (text, help) in [
            ("*.corp.example", "write \"corp.example\": it means this name and all names below it"),
            (".corp.example", "write \"corp.example\": it means this name and all names below it"),
            ("http://ads.example:80/x", "write the name alone: \"ads.example\""),
            ("https://ads.example", "write the name alone: \"ads.example\""),
            ("ads.example/", "write \"ads.example\""),
        ] {
            let fault = Name::covering(text).unwrap_err();
            assert!(fault.what.contains(text) && fault.help == help, "{fault}");
        }
        // A proposal shows no control character either.
        for text in ["*.\u{1b}[31m", "x://\u{1b}\n", "\n/"] {
            let fault = Name::covering(text).unwrap_err();
            assert!(!fault.to_string().contains(char::is_control), "{fault}");
        }
        assert_eq!(Name::covering("\\042.x").unwrap().wire(), b"\x01*\x01x\x00");
        assert_eq!(Name::covering(".").unwrap().wire(), b"\x00");
    }

    #[test]
    fn an_invalid_name_is_refused() {
        let long = "a".repeat(64);
        let deep = "abc.".repeat(64);
        for text in ["", "..", ".a", "a..b", "a b", "bücher.example", "a\\", "a\\25", "a\\256", &long, &deep]
        {
            assert!(Name::parse(text).is_err(), "{text}");
        }
        assert!(Name::parse(&"abc.".repeat(63)).is_ok());
    }
}
