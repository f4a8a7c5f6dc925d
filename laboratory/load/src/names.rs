//! Questions of the load: `AAA-BBB-CCC-DDD.<zone>`, AAAA, IN. All queries of a load have the same length. So a
//! template with twelve digits patched in makes each query, and the kernel can cut one large send into them.

use crate::limits;
use std::fmt;

/// Octets of a message header (RFC 1035 section 4.1.1).
pub const HEADER: usize = 12;

/// Offsets of the three digits of each octet: after the header and the label's length, with a hyphen between.
const DIGITS: [usize; 4] = [13, 17, 21, 25];

/// Offset of the zone name.
const ZONE: usize = 28;

/// Decimal digits of every octet.
const DECIMAL: [[u8; 3]; 256] = {
    let mut table = [[b'0'; 3]; 256];
    let mut value = 0;
    while value < 256 {
        let number = value as u8;
        table[value] = [b'0' + number / 100, b'0' + number / 10 % 10, b'0' + number % 10];
        value += 1;
    }
    table
};

/// Template of a load's queries.
#[derive(Clone, Debug)]
pub struct Template {
    query: Vec<u8>,
    /// End of the question.
    end: usize,
}

impl Template {
    /// Queries for names in a zone. If large answers are expected, the query has an OPT record (RFC 6891) that allows
    /// [`limits::UDP_SIZE`] octets.
    ///
    /// # Errors
    ///
    /// [`ZoneError`]: a label is empty, has more than 63 octets, or other characters than letters, digits, hyphens and underscores; or
    /// the zone's name has more than [`limits::ZONE_NAME`] octets.
    pub fn new(zone: &str, large: bool) -> Result<Template, ZoneError> {
        // ID 0, RD, one question.
        let mut query = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(large)];
        query.extend(b"\x0f000-000-000-000");
        let text = zone.strip_suffix('.').unwrap_or(zone);
        for label in text.split('.') {
            let plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
            if label.is_empty() || label.len() > 63 || !label.bytes().all(plain) {
                return Err(ZoneError(zone.to_owned()));
            }
            query.push(label.len() as u8);
            query.extend(label.bytes());
        }
        query.push(0);
        if query.len() - ZONE > limits::ZONE_NAME {
            return Err(ZoneError(zone.to_owned()));
        }
        query.extend([0, 28, 0, 1]);
        let end = query.len();
        if large {
            let [high, low] = limits::UDP_SIZE.to_be_bytes();
            query.extend([0, 0, 41, high, low, 0, 0, 0, 0, 0, 0]);
        }
        Ok(Template { query, end })
    }

    /// Octets of a query.
    pub fn length(&self) -> usize {
        self.query.len()
    }

    /// End of the question in a query or in its reply.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Fills `out`, which has [`Template::length`] octets, with the template.
    pub fn prepare(&self, out: &mut [u8]) {
        out.copy_from_slice(&self.query);
    }

    /// Sets the ID and the address in a query that was filled with the template.
    #[inline]
    pub fn patch(query: &mut [u8], id: u16, address: [u8; 4]) {
        query[..2].copy_from_slice(&id.to_be_bytes());
        for (at, octet) in DIGITS.into_iter().zip(address) {
            query[at..at + 3].copy_from_slice(&DECIMAL[usize::from(octet)]);
        }
    }

    /// True if a message has exactly one question, equal octet for octet to the question for this address.
    #[inline]
    pub fn asks(&self, message: &[u8], address: [u8; 4]) -> bool {
        if message.len() < self.end || message[4..6] != [0, 1] {
            return false;
        }
        let digits = DIGITS.into_iter().zip(address);
        digits.fold(true, |same, (at, octet)| same & (message[at..at + 3] == DECIMAL[usize::from(octet)]))
            && message[12] == 15
            && message[16] == b'-'
            && message[20] == b'-'
            && message[24] == b'-'
            && message[ZONE..self.end] == self.query[ZONE..self.end]
    }

    /// The address in a message's question, if the question is one of this load.
    pub fn asked(&self, message: &[u8]) -> Option<[u8; 4]> {
        let mut address = [0; 4];
        for (octet, at) in address.iter_mut().zip(DIGITS) {
            let digits = message.get(at..at + 3)?;
            let value = DECIMAL.iter().position(|candidate| candidate == digits)?;
            *octet = value as u8;
        }
        self.asks(message, address).then_some(address)
    }
}

/// An invalid zone name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError(String);

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is not a valid zone name; write labels of 1 to 63 letters, digits, hyphens and underscores with dots between, {} \
             characters at most, like dns64perf.test",
            self.0,
            limits::ZONE_NAME - 2
        )
    }
}

impl std::error::Error for ZoneError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(template: &Template, id: u16, address: [u8; 4]) -> Vec<u8> {
        let mut query = vec![0; template.length()];
        template.prepare(&mut query);
        Template::patch(&mut query, id, address);
        query
    }

    #[test]
    fn a_question_spells_the_address_with_three_digits_per_octet() {
        let template = Template::new("dns64perf.test", false).unwrap();
        let query = query(&template, 0x1234, [1, 20, 255, 0]);
        let expected: &[u8] =
            b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x0f001-020-255-000\x09dns64perf\x04test\0\0\x1c\0\x01";
        assert_eq!(query, expected);
        assert_eq!(template.end(), expected.len());
    }

    #[test]
    fn a_large_answer_is_asked_for_with_an_opt_record() {
        let template = Template::new("test.", true).unwrap();
        let query = query(&template, 0, [0; 4]);
        assert_eq!(query.len(), template.end() + 11);
        assert_eq!(query[10..12], [0, 1]);
        assert_eq!(query[template.end()..], [0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_question_is_known_octet_for_octet() {
        let template = Template::new("dns64perf.test", false).unwrap();
        let address = [10, 0, 99, 200];
        let reply = query(&template, 7, address);
        assert!(template.asks(&reply, address));
        assert_eq!(template.asked(&reply), Some(address));
        for at in (4..6).chain(12..template.end()) {
            let mut other = reply.clone();
            other[at] ^= 0x21;
            assert!(!template.asks(&other, address), "octet {at}");
        }
        assert!(!template.asks(&reply[..template.end() - 1], address));
        assert!(!template.asks(&reply, [10, 0, 99, 201]));
        for length in 0..template.end() {
            assert_eq!(template.asked(&reply[..length]), None);
        }
    }

    #[test]
    fn zone_names_are_checked() {
        for zone in ["", ".", "a..b", "sp ace.test", &"a".repeat(64), &"abc.".repeat(59)] {
            assert!(Template::new(zone, false).unwrap_err().to_string().contains("dns64perf.test"), "{zone}");
        }
        assert!(Template::new(&"abc.".repeat(58), false).is_ok());
    }
}
