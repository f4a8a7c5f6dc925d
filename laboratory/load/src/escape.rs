//! Text from files and from the network, as it may be printed: it can neither control a terminal nor fill a screen.

use std::fmt::Write as _;

/// Octets that are printed at most.
const OCTETS: usize = 120;

/// Printable ASCII as it is, the quote and the backslash behind a backslash, all other octets as `\DDD` (RFC 1035 section
/// 5.1).
pub fn text(octets: &[u8]) -> String {
    let mut text = String::new();
    for octet in octets.iter().take(OCTETS) {
        match octet {
            b'"' | b'\\' => text.extend(['\\', char::from(*octet)]),
            b' '..=b'~' => text.push(char::from(*octet)),
            // Writing to a String cannot fail.
            _ => drop(write!(text, "\\{octet:03}")),
        }
    }
    if octets.len() > OCTETS {
        text.push_str("...");
    }
    text
}

/// A name in wire form as text, each label escaped, with dots between.
pub fn name(octets: &[u8]) -> String {
    let (mut text, mut rest) = (String::new(), octets);
    while let [length, labels @ ..] = rest
        && *length > 0
    {
        let (label, after) = labels.split_at(labels.len().min(usize::from(*length)));
        let plain = self::text(label).replace('.', "\\.");
        text.push_str(if text.is_empty() { "" } else { "." });
        text.push_str(&plain);
        rest = after;
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_left_and_the_length_is_bounded() {
        assert_eq!(text(b"a b~\"\\\x1b[31m\xff\n"), "a b~\\\"\\\\\\027[31m\\255\\010");
        assert_eq!(text(&[b'a'; 121]), format!("{}...", "a".repeat(120)));
        assert_eq!(name(b"\x03a.b\x02\x1bc\0"), "a\\.b.\\027c");
        assert_eq!((name(b"\0"), name(b"\x05ab")), (".".to_owned(), "ab".to_owned()));
    }
}
