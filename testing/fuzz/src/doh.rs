//! The query part of a DNS over HTTPS request. A message that is accepted has one form in base64url, which the parameter holds, percent-decoded and
//! without padding; and every message is read from that form.

use transport::https::target::{MESSAGE_OCTETS, message};

const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Tests one input, as a query part and as a message.
pub fn run(input: &[u8]) {
    if input.len() <= MESSAGE_OCTETS {
        let text = base64url(input);
        assert_eq!(message(&format!("dns={text}")).as_deref(), Ok(input));
        let encoded: String = text.bytes().map(|octet| format!("%{octet:02x}")).collect();
        assert_eq!(message(&format!("a=b&dns={encoded}&c")).as_deref(), Ok(input));
    }
    let Ok(query) = std::str::from_utf8(input) else { return };
    if let Ok(message) = message(query) {
        let values: Vec<&str> = query.split('&').filter_map(|part| part.strip_prefix("dns=")).collect();
        assert_eq!(values.len(), 1);
        let mut text = percent_decoded(values[0]);
        // Padding may follow, of one or two characters.
        let padding = text.iter().rev().take_while(|&&character| character == b'=').count();
        assert!(padding <= 2, "{query}");
        text.truncate(text.len() - padding);
        assert_eq!(text, base64url(&message).into_bytes());
    }
}

/// Decodes percent-encoding, of which every percent sign is known to begin a whole one.
fn percent_decoded(value: &str) -> Vec<u8> {
    let mut parts = value.split('%');
    let mut decoded = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        decoded.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        decoded.extend_from_slice(rest.as_bytes());
    }
    decoded
}

/// base64url without padding, by bits.
fn base64url(octets: &[u8]) -> String {
    let bit = |place: usize| octets.get(place / 8).map_or(0, |octet| octet >> (7 - place % 8) & 1);
    let character =
        |first: usize| (first..first + 6).fold(0, |value, place| value << 1 | usize::from(bit(place)));
    (0..octets.len() * 8).step_by(6).map(|first| char::from(CHARACTERS[character(first)])).collect()
}
