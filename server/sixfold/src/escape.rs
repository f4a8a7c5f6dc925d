//! Escapes for text that an operator sees. DNS data are octets that strangers choose: a record may hold escape sequences that
//! control a terminal, or a line feed that forges a line (CWE-150, CWE-117). Every line with DNS data passes through [`line()`],
//! and every answer of the control socket through [`text`].

/// Escapes one line: control characters (also U+0080 to U+009F, which some terminals obey) as `\DDD`, as master files write
/// octets (RFC 1035 section 5.1); invisible characters and those that change the direction of text as `\u{...}`.
pub fn line(text: &str) -> String {
    if text.bytes().all(|octet| matches!(octet, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match u32::from(character) {
            0x20..=0x7e => escaped.push(character),
            code @ (0..=0x1f | 0x7f..=0x9f) => escaped.push_str(&format!("\\{code:03}")),
            // The library knows which characters are printable.
            _ => escaped.extend(character.escape_debug()),
        }
    }
    escaped
}

/// Escapes a text of several lines, for what did not pass through [`line()`]. Line feeds stay.
pub fn text(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Escapes serialized JSON: the serializer leaves DEL and U+0080 to U+009F as they are. They stand only within strings, where
/// `\u` and four digits mean the same.
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match u32::from(character) {
            code @ 0x7f..=0x9f => escaped.push_str(&format!("\\u{code:04x}")),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The text form of a name in wire form, which escapes what is not printable.
pub fn name(wire: &[u8]) -> String {
    wire::Name::from_wire(wire).map_or_else(|| "?".into(), |name| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_other_text_stays() {
        assert_eq!(line("www.example. 60 IN A 192.0.2.1"), "www.example. 60 IN A 192.0.2.1");
        assert_eq!(line("\u{1b}]0;x\u{7}\n\r\t\u{7f}"), "\\027]0;x\\007\\010\\013\\009\\127");
        assert_eq!(line("\u{80}\u{9b}31m\u{9f}"), "\\128\\15531m\\159");
        assert_eq!(line("caf\u{e9} \"quoted\" a\\b"), "caf\u{e9} \"quoted\" a\\b");
        assert_eq!(line("\u{202e}\u{2028}"), "\\u{202e}\\u{2028}");
    }

    #[test]
    fn the_lines_of_a_text_stay_lines() {
        assert_eq!(text("a\u{1b}\nb\n\tc\n"), "a\\027\nb\n\\009c\n");
        // A second pass changes nothing that the first one escaped.
        assert_eq!(text(&line("\u{1b}\u{202e}")), "\\027\\u{202e}");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "a": "\u{1b}\u{7f}\u{9b}\n", "b": "caf\u{e9}" });
        let text = json(&format!("{value:#}"));
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
