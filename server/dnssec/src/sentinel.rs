//! Root key trust anchor sentinel (RFC 8509): names by which anybody can find out whether the resolver trusts a key of the root.

use wire::Type;

const IS_TA: &[u8] = b"root-key-sentinel-is-ta-";
const NOT_TA: &[u8] = b"root-key-sentinel-not-ta-";

/// What a name asks (RFC 8509 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sentinel {
    /// Fails unless the key with this tag is trusted.
    IsTrusted(u16),
    /// Fails if the key with this tag is trusted.
    IsNotTrusted(u16),
}

/// What is known of an answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Type of the question.
    pub qtype: Type,
    /// True if the client set CD.
    pub checking_disabled: bool,
    /// True if the answer is secure.
    pub is_secure: bool,
    /// True if the answer has addresses that no zone signed, as synthesized ones.
    pub is_synthesized: bool,
}

impl Sentinel {
    /// Sentinel of a wire name: its first label, in any letter case, with a key tag of five decimal digits. `None` for other names.
    pub fn of(name: &[u8]) -> Option<Sentinel> {
        let (&length, rest) = name.split_first()?;
        let label = rest.get(..usize::from(length))?;
        let tag = |prefix: &[u8]| {
            let (begin, digits) = label.split_at_checked(prefix.len())?;
            begin.eq_ignore_ascii_case(prefix).then(|| key_tag(digits)).flatten()
        };
        tag(IS_TA).map(Sentinel::IsTrusted).or_else(|| tag(NOT_TA).map(Sentinel::IsNotTrusted))
    }

    /// True if the client gets SERVFAIL in place of the answer (RFC 8509 sections 3.1 and 3.2). `is_trusted` says if a key of the root with
    /// a tag is trusted.
    pub fn fails(self, answered: &Answered, is_trusted: impl FnOnce(u16) -> bool) -> bool {
        let applies = answered.is_secure
            && !answered.checking_disabled
            && !answered.is_synthesized
            && matches!(answered.qtype, Type::A | Type::AAAA);
        applies
            && match self {
                Sentinel::IsTrusted(tag) => !is_trusted(tag),
                Sentinel::IsNotTrusted(tag) => is_trusted(tag),
            }
    }
}

/// Key tag of five decimal digits, with zeros at its left.
fn key_tag(digits: &[u8]) -> Option<u16> {
    let is_tag = digits.len() == 5 && digits.iter().all(u8::is_ascii_digit);
    is_tag
        .then(|| digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))?
        .try_into()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_label_with_five_digits_is_a_sentinel() {
        for (name, expected) in [
            (&b"\x1droot-key-sentinel-is-ta-20326\x07example\0"[..], Some(Sentinel::IsTrusted(20326))),
            (b"\x1eroot-key-sentinel-not-ta-38696\x07example\0", Some(Sentinel::IsNotTrusted(38696))),
            (b"\x1dROOT-key-Sentinel-IS-TA-00001\0", Some(Sentinel::IsTrusted(1))),
            (b"\x1eroot-key-sentinel-not-ta-65535\0", Some(Sentinel::IsNotTrusted(65535))),
            (b"\x1eroot-key-sentinel-not-ta-65536\0", None),
            (b"\x1croot-key-sentinel-is-ta-2032\0", None),
            (b"\x1eroot-key-sentinel-is-ta-020326\0", None),
            (b"\x1droot-key-sentinel-is-ta-2032x\0", None),
            (b"\x18root-key-sentinel-is-ta-\0", None),
            (b"\x1droot-key-sentinel-is_ta-20326\0", None),
            (b"\x03www\x1droot-key-sentinel-is-ta-20326\0", None),
            (b"\x1droot-key-sentinel", None),
            (b"\0", None),
            (b"", None),
        ] {
            assert_eq!(Sentinel::of(name), expected, "{}", name.escape_ascii());
        }
    }

    // RFC 8509 section 3.1 has the conditions, section 3.2 the four cases.
    #[test]
    fn an_answer_is_withheld_only_if_all_conditions_hold() {
        let secure =
            Answered { qtype: Type::A, checking_disabled: false, is_secure: true, is_synthesized: false };
        let trusted = |tag: u16| tag == 20326;
        for (sentinel, expected) in [
            (Sentinel::IsTrusted(20326), false),
            (Sentinel::IsTrusted(1), true),
            (Sentinel::IsNotTrusted(20326), true),
            (Sentinel::IsNotTrusted(1), false),
        ] {
            assert_eq!(sentinel.fails(&secure, trusted), expected, "{sentinel:?}");
            assert_eq!(sentinel.fails(&Answered { qtype: Type::AAAA, ..secure }, trusted), expected);
            for other in [
                Answered { qtype: Type::TXT, ..secure },
                Answered { checking_disabled: true, ..secure },
                Answered { is_secure: false, ..secure },
                Answered { qtype: Type::AAAA, is_synthesized: true, ..secure },
            ] {
                assert!(!sentinel.fails(&other, trusted), "{sentinel:?} {other:?}");
            }
        }
    }
}
