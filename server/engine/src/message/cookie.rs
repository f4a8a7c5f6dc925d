//! DNS server cookies (RFC 7873 section 5.2). The server gives a client a cookie; a client that returns it has proved that its
//! source address is not forged. The format is that of RFC 9018 section 4, so that servers of different vendors that share a
//! secret accept each other's cookies:
//!
//! ```text
//! client cookie, 8 octets | version 1 | reserved, 3 octets | timestamp, 4 octets | hash, 8 octets
//! hash = SipHash-2-4(secret, everything before it | the client's address)
//! ```
//!
//! A client that sends no cookie gets answers without a cookie.

use crate::counters::Counter;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;
use siphasher::sip::SipHasher24;
use wire::{OPTION_HEADER, Opt};

/// Octets of a client cookie.
pub const CLIENT: usize = 8;

/// Octets of a server cookie that we make.
const SERVER: usize = 16;

/// Octets before the hash: client cookie, version, reserved octets, timestamp.
const HASHED: usize = CLIENT + 8;

/// Octets of the option data in our answers.
pub const DATA: usize = CLIENT + SERVER;

/// Octets of the longest option data (RFC 7873 section 4).
pub const LONGEST: usize = 40;

/// Cookie version (RFC 9018 section 4.1).
const VERSION: u8 = 1;

/// Lifetime of a cookie: one hour (RFC 9018 section 4.3, SHOULD).
const LIFETIME_SECS: i32 = 3_600;

/// Accepted clock difference: a timestamp may be five minutes in the future (RFC 9018 section 4.3, SHOULD).
const MAX_AHEAD_SECS: i32 = 300;

/// Age after which a cookie is renewed: half an hour (RFC 9018 section 4.3, SHOULD).
const RENEW_AFTER_SECS: i32 = 1_800;

/// Largest number of secrets in one configuration: the current one, the previous one, the next one.
pub const SECRETS: usize = 3;

/// Secret key of server cookies. Servers that share it accept each other's cookies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl FromStr for Secret {
    type Err = NotASecret;

    fn from_str(text: &str) -> Result<Secret, NotASecret> {
        let mut octets = [0; 16];
        if text.len() != 2 * octets.len() || !text.bytes().all(|octet| octet.is_ascii_hexdigit()) {
            return Err(NotASecret);
        }
        for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).map_or(0, |value| value as u8);
            *octet = value(digits[0]) << 4 | value(digits[1]);
        }
        Ok(Secret(octets))
    }
}

/// Hides the secret, so that it does not get into logs.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Error: the text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASecret;

/// Configuration of cookies: `edns.cookies` and `edns.cookie-secret`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookies {
    /// True if cookies are given to clients and sent to upstreams.
    pub enabled: bool,
    /// Secrets: the first makes cookies, and cookies made with any of them are accepted. Empty: clients get no cookies.
    pub secrets: Vec<Secret>,
}

impl Default for Cookies {
    fn default() -> Cookies {
        Cookies { enabled: true, secrets: Vec::new() }
    }
}

/// Cookie option for the answer to a query, and the result of checking the cookie of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    data: [u8; DATA],
    state: CookieState,
}

#[cfg(debug_assertions)]
impl Cookie {
    /// A cookie that no client has sent, for freed records.
    pub(crate) const POISON: Cookie = Cookie { data: [0xff; DATA], state: CookieState::Valid };
}

/// Result of checking a client's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CookieState {
    /// The query has a client cookie without a server cookie.
    New,
    /// The server cookie is right for this address, and recent.
    Valid,
    /// The server cookie is wrong, of another address, or too old.
    Invalid,
}

/// Error: the option has a length that RFC 7873 section 4 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedCookie;

impl Cookie {
    /// Octets of the option in an OPT record.
    pub const OCTETS: usize = OPTION_HEADER + DATA;

    /// Checks the cookie of a query, and makes the cookie for the answer; `None` if the query has no cookie. If there are several,
    /// only the first counts (RFC 7873 section 5.2). `now_secs` is Unix time, modulo 2^32.
    ///
    /// # Errors
    ///
    /// `MalformedCookie`: the option has a length that RFC 7873 section 4 does not allow. A cookie that another server made, or that
    /// has expired, is no error: its state is invalid.
    #[inline]
    pub fn of_query(
        opt: &Opt<'_>,
        from: Ipv6Addr,
        secrets: &[Secret],
        now_secs: u32,
    ) -> Result<Option<Cookie>, MalformedCookie> {
        match (first(opt), secrets) {
            (None, _) | (_, []) => Ok(None),
            (Some(data), secrets) => Cookie::read(data, from, secrets, now_secs).map(Some),
        }
    }

    /// Checks the option data of a query, and makes the cookie for the answer.
    #[cold]
    fn read(
        data: &[u8],
        from: Ipv6Addr,
        secrets: &[Secret],
        now_secs: u32,
    ) -> Result<Cookie, MalformedCookie> {
        let (client, server) = split(data).ok_or(MalformedCookie)?;
        let mut answer = [0; DATA];
        answer[..CLIENT].copy_from_slice(client);
        answer[CLIENT] = VERSION;
        answer[CLIENT + 4..HASHED].copy_from_slice(&now_secs.to_be_bytes());
        let mut state = if server.is_empty() { CookieState::New } else { CookieState::Invalid };
        if let Ok(received) = <&[u8; DATA]>::try_from(data)
            && let Some(place) = secrets.iter().position(|secret| was_made_with(secret, received, from))
        {
            let timestamp = [CLIENT + 4, CLIENT + 5, CLIENT + 6, CLIENT + 7].map(|at| received[at]);
            // RFC 9018 section 4.3 requires serial number arithmetic: 32 bits of Unix time overflow in 2106.
            let age_secs = now_secs.wrapping_sub(u32::from_be_bytes(timestamp)) as i32;
            if (-MAX_AHEAD_SECS..=LIFETIME_SECS).contains(&age_secs) {
                state = CookieState::Valid;
                // The client's cookie stays valid for some time, so return it unchanged. It does not change either for a client
                // that alternates between servers with different clocks.
                if place == 0 && age_secs <= RENEW_AFTER_SECS {
                    return Ok(Cookie { data: *received, state });
                }
            }
        }
        let hash = hash(&answer, from, &secrets[0]);
        answer[HASHED..].copy_from_slice(&hash);
        Ok(Cookie { data: answer, state })
    }

    /// Option data for the answer.
    #[inline]
    pub fn data(&self) -> &[u8; DATA] {
        &self.data
    }

    /// True if the client has proved that its source address is not forged.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.state == CookieState::Valid
    }

    /// True if the query had a server cookie that is not valid.
    pub fn is_invalid(&self) -> bool {
        self.state == CookieState::Invalid
    }

    /// Counter of queries with such a cookie.
    pub fn counter(&self) -> Counter {
        match self.state {
            CookieState::New => Counter::CookieNew,
            CookieState::Valid => Counter::CookieValid,
            CookieState::Invalid => Counter::CookieInvalid,
        }
    }

    /// Adds the option to the OPT record of `octets` octets at the start of `frame`. Returns the new length of the record.
    #[cold]
    pub fn append(&self, frame: &mut [u8], octets: usize) -> usize {
        append(&self.data, frame, octets)
    }
}

/// Adds a cookie option to the OPT record of `octets` octets at the start of `frame`. Returns the new length of the record.
#[inline]
pub fn append(data: &[u8], frame: &mut [u8], octets: usize) -> usize {
    wire::add_option(frame, octets, wire::COOKIE, data)
        // The sums are in `append_opt` (responses) and `write_query` (upstream queries).
        .expect("a frame has room for a question and an OPT record")
}

/// Data of the first cookie option of an OPT record.
#[inline]
pub fn first<'a>(opt: &Opt<'a>) -> Option<&'a [u8]> {
    opt.options().find(|(code, _)| *code == wire::COOKIE).map(|(_, data)| data)
}

/// Splits option data into the client cookie and the server cookie, which may be empty. `None` if the length is not allowed (RFC
/// 7873 section 5.2.2).
#[inline]
pub fn split(data: &[u8]) -> Option<(&[u8; CLIENT], &[u8])> {
    let (client, server) = data.split_first_chunk()?;
    matches!(server.len(), 0 | 8..=32).then_some((client, server))
}

/// True if a cookie was made with this secret for this address, at any time. RFC 9018 section 4.2: the reserved octets may have
/// any value, but the hash includes them.
fn was_made_with(secret: &Secret, data: &[u8; DATA], from: Ipv6Addr) -> bool {
    let expected = u64::from_le_bytes(hash(data, from, secret));
    // As one number: the time does not depend on how many octets are right.
    data[CLIENT] == VERSION
        && data.last_chunk().is_some_and(|received| u64::from_le_bytes(*received) == expected)
}

/// Hash in the last octets of a cookie (RFC 9018 section 4.4).
fn hash(data: &[u8; DATA], from: Ipv6Addr, secret: &Secret) -> [u8; 8] {
    let mut input = [0; HASHED + 16];
    input[..HASHED].copy_from_slice(&data[..HASHED]);
    let length = match from.to_ipv4_mapped() {
        Some(address) => {
            input[HASHED..HASHED + 4].copy_from_slice(&address.octets());
            HASHED + 4
        }
        None => {
            input[HASHED..].copy_from_slice(&from.octets());
            HASHED + 16
        }
    };
    // Little-endian, as SipHash writes its result and as in the test vectors of appendix A.
    SipHasher24::new_with_key(&secret.0).hash(&input[..length]).to_le_bytes()
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
