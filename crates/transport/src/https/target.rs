//! The target of an HTTPS request: the path, and the query message of a GET (RFC 8484 section 4.1). The message is the value of the
//! parameter `dns` in base64url (RFC 4648 section 5), without padding. Other parameters are ignored.

/// Octets of the longest DNS message.
pub const MESSAGE_OCTETS: usize = 65_535;

/// The reason why a target has no query message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The parameter `dns` is missing or stands twice. Send it once.
    Parameter,
    /// A percent sign without two hexadecimal digits after it (RFC 3986 section 2.1).
    PercentEncoding,
    /// A character outside base64url, padding, an impossible length, or bits that belong to no octet.
    Base64,
    /// The message would be longer than [`MESSAGE_OCTETS`].
    TooLong,
}

/// The query message in the query part of a target, which is the part after the question mark.
pub fn message(query: &str) -> Result<Vec<u8>, Error> {
    let mut values = query.split('&').filter_map(|parameter| parameter.strip_prefix("dns="));
    let (Some(value), None) = (values.next(), values.next()) else { return Err(Error::Parameter) };
    // Four characters hold three octets; percent-encoded characters are three as long.
    if value.len() > 3 * MESSAGE_OCTETS.div_ceil(3) * 4 {
        return Err(Error::TooLong);
    }
    if value.contains('%') { decode(&percent_decoded(value.as_bytes())?) } else { decode(value.as_bytes()) }
}

fn percent_decoded(value: &[u8]) -> Result<Vec<u8>, Error> {
    let digit = |place: usize| {
        let digit = value.get(place).and_then(|&octet| char::from(octet).to_digit(16));
        digit.ok_or(Error::PercentEncoding)
    };
    let mut decoded = Vec::with_capacity(value.len());
    let mut place = 0;
    while place < value.len() {
        if value[place] == b'%' {
            decoded.push((digit(place + 1)? << 4 | digit(place + 2)?) as u8);
            place += 3;
        } else {
            decoded.push(value[place]);
            place += 1;
        }
    }
    Ok(decoded)
}

/// The values of the characters of base64url, and [`NO_VALUE`] for all others.
const VALUES: [u8; 256] = {
    let characters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut values = [NO_VALUE; 256];
    let mut value = 0;
    while value < characters.len() {
        values[characters[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Has bits that no value of six bits has.
const NO_VALUE: u8 = 0xff;

/// Decodes base64url without padding. Bits beyond the last octet must be 0, so that each message has one form only.
fn decode(text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut message = Vec::with_capacity(text.len().div_ceil(4) * 3);
    let mut seen = 0;
    let (groups, rest) = text.as_chunks::<4>();
    for group in groups {
        let [a, b, c, d] = group.map(|character| VALUES[usize::from(character)]);
        seen |= a | b | c | d;
        message.extend([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
    }
    let mut last = [0; 4];
    for (value, character) in last.iter_mut().zip(rest) {
        *value = VALUES[usize::from(*character)];
        seen |= *value;
    }
    let [a, b, c, _] = last;
    let octets = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6];
    // Two characters have one octet, three have two; one character alone has none.
    let whole = rest.len().saturating_sub(1);
    message.extend_from_slice(&octets[..whole]);
    let is_form = rest.len() != 1 && octets[whole..].iter().all(|&octet| octet == 0);
    if seen & 0xc0 != 0 || !is_form {
        return Err(Error::Base64);
    }
    if message.len() > MESSAGE_OCTETS { Err(Error::TooLong) } else { Ok(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The query for www.example.com A, in RFC 8484 section 4.1.1.
    const EXAMPLE: &str = "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";

    #[test]
    fn the_example_of_rfc_8484_is_read_beside_other_parameters() {
        let expected = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";
        for query in
            [format!("dns={EXAMPLE}"), format!("ct&dns={EXAMPLE}&x=y"), format!("dns=%41{}", &EXAMPLE[1..])]
        {
            assert_eq!(message(&query).unwrap(), expected);
        }
    }

    #[test]
    fn all_characters_and_lengths_of_base64url_are_read() {
        assert_eq!(message("dns=-_-_").unwrap(), [0xfb, 0xff, 0xbf]);
        assert_eq!(message("dns=").unwrap(), b"");
        assert_eq!(message("dns=_w").unwrap(), [0xff]);
        assert_eq!(message("dns=__8").unwrap(), [0xff, 0xff]);
    }

    #[test]
    fn a_target_that_is_not_as_it_should_be_is_refused_with_its_reason() {
        for (query, error) in [
            ("", Error::Parameter),
            ("DNS=AAAA", Error::Parameter),
            ("dns=AAAA&dns=AAAA", Error::Parameter),
            ("dns=AA%4", Error::PercentEncoding),
            ("dns=AA%+1", Error::PercentEncoding),
            ("dns=AA==", Error::Base64),
            ("dns=AA%3D%3D", Error::Base64),
            ("dns=A", Error::Base64),
            ("dns=AB", Error::Base64),
            ("dns=AA+/", Error::Base64),
        ] {
            assert_eq!(message(query), Err(error), "{query}");
        }
        let longest = format!("dns={}", "A".repeat(MESSAGE_OCTETS / 3 * 4));
        assert_eq!(message(&longest).unwrap().len(), MESSAGE_OCTETS);
        assert_eq!(message(&format!("{longest}AA")), Err(Error::TooLong));
    }
}
