//! The target of an HTTPS request: the path, and the query message of a GET (RFC 8484 section 4.1). The message is the value of the
//! parameter `dns` in base64url (RFC 4648 section 5). RFC 8484 forbids padding (section 6), but clients send it, so it is accepted. Other
//! parameters are ignored.

use data_encoding::BASE64URL_NOPAD;

/// Octets of the longest DNS message.
pub const MESSAGE_OCTETS: usize = 65_535;

/// The reason why a target has no query message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The parameter `dns` is missing or stands twice. Send it once.
    Parameter,
    /// A percent sign without two hexadecimal digits after it (RFC 3986 section 2.1).
    PercentEncoding,
    /// A character outside base64url, an impossible length, or bits that belong to no octet.
    Base64,
    /// The message would be longer than [`MESSAGE_OCTETS`].
    TooLong,
}

/// The query message in the query part of a target, which is the part after the question mark.
///
/// # Errors
///
/// `Error::Parameter`: there is no parameter `dns`, or more than one. `Error::PercentEncoding` and `Error::Base64`: its value cannot be
/// decoded. `Error::TooLong`: the message would exceed `MESSAGE_OCTETS`.
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

/// Decodes base64url. Bits beyond the last octet must be 0. Padding is not allowed, but clients send it.
fn decode(text: &[u8]) -> Result<Vec<u8>, Error> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let message = BASE64URL_NOPAD.decode(text).map_err(|_| Error::Base64)?;
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

    /// RFC 8484 section 6 forbids padding to clients. Unbound takes it, too.
    #[test]
    fn padding_is_accepted_although_it_should_not_be_sent() {
        for query in ["dns=AA==", "dns=AA%3D%3d", "dns=AA=%3d&x", "dns=AA="] {
            assert_eq!(message(query).as_deref(), Ok(&[0][..]), "{query}");
        }
        assert_eq!(message("dns=AAA=").as_deref(), Ok(&[0, 0][..]));
    }

    #[test]
    fn a_target_that_is_not_as_it_should_be_is_refused_with_its_reason() {
        for (query, error) in [
            ("", Error::Parameter),
            ("DNS=AAAA", Error::Parameter),
            ("dns=AAAA&dns=AAAA", Error::Parameter),
            ("dns=AA%4", Error::PercentEncoding),
            ("dns=AA%+1", Error::PercentEncoding),
            ("dns=AA===", Error::Base64),
            ("dns=A=A=", Error::Base64),
            ("dns=AB==", Error::Base64),
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
