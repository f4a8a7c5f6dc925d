//! Server cookies: what a client gets from us and brings back, so that we know that its address is not forged (RFC 7873
//! section 5.2). They are made as RFC 9018 section 4 says, so servers of any make that share a secret know each other's:
//!
//! ```text
//! client cookie, 8 octets | version 1 | reserved, 3 octets | timestamp, 4 octets | hash, 8 octets
//! hash = SipHash-2-4(secret, everything before it | the client's address)
//! ```
//!
//! A client that sends no cookie is served as ever.

use crate::base::siphash::siphash;
use crate::counters::Counter;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;
use wire::{OPTION_HEADER, Opt};

/// Octets of a client cookie.
pub const CLIENT: usize = 8;

/// Octets of a server cookie of ours.
const SERVER: usize = 16;

/// Octets before the hash: client cookie, version, reserved octets, timestamp.
const HASHED: usize = CLIENT + 8;

/// Octets of the option's data in our answers.
pub const DATA: usize = CLIENT + SERVER;

/// Octets of the longest option's data (RFC 7873 section 4).
pub const LONGEST: usize = 40;

/// The version of RFC 9018 section 4.1.
const VERSION: u8 = 1;

/// RFC 9018 section 4.3: a cookie SHOULD count for an hour, and for five minutes before its time, as clocks differ; and
/// SHOULD be renewed after half an hour.
const LIFE_SECS: i32 = 3_600;
const AHEAD_SECS: i32 = 300;
const RENEWED_AFTER_SECS: i32 = 1_800;

/// Secrets in one configuration: the one that is used, the one before it, the one after it.
pub const SECRETS: usize = 3;

/// What server cookies are made with. Servers that share it know each other's cookies.
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

/// A secret has no place where somebody else may read it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASecret;

/// `edns.cookies` and `edns.cookie-secret`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookies {
    /// Clients get cookies, and upstreams are sent some.
    pub enabled: bool,
    /// The first makes cookies, all of them are known. None: clients get no cookies.
    pub secrets: Vec<Secret>,
}

impl Default for Cookies {
    fn default() -> Cookies {
        Cookies { enabled: true, secrets: Vec::new() }
    }
}

/// What the answer to a question with a cookie carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    data: [u8; DATA],
    state: CookieState,
}

/// What a client's cookie was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CookieState {
    /// It brought no server cookie yet.
    New,
    /// It has been told this cookie at this address not long ago.
    Valid,
    /// What it brought is wrong, of another address, or too old.
    Invalid,
}

/// The option is not as long as RFC 7873 section 4 allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedCookie;

impl Cookie {
    /// Octets that the option takes in an OPT record.
    pub const OCTETS: usize = OPTION_HEADER + DATA;

    /// Looks at the cookie of a query, and makes the one for the answer; None when the query has none. Of several only
    /// the first counts (RFC 7873 section 5.2). `now_secs`: Unix time, modulo 2^32.
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
        if let Ok(brought) = <&[u8; DATA]>::try_from(data)
            && let Some(place) = secrets.iter().position(|secret| is_ours(brought, from, secret))
        {
            let made = [CLIENT + 4, CLIENT + 5, CLIENT + 6, CLIENT + 7].map(|at| brought[at]);
            // RFC 9018 section 4.3 asks for serial number arithmetic, for the year 2106.
            let age_secs = now_secs.wrapping_sub(u32::from_be_bytes(made)) as i32;
            if (-AHEAD_SECS..=LIFE_SECS).contains(&age_secs) {
                state = CookieState::Valid;
                // The one that it has is good for a while yet, and the client need not change anything: neither when it goes to
                // and fro between servers whose clocks differ.
                if place == 0 && age_secs <= RENEWED_AFTER_SECS {
                    return Ok(Cookie { data: *brought, state });
                }
            }
        }
        let hash = hash(&answer, from, &secrets[0]);
        answer[HASHED..].copy_from_slice(&hash);
        Ok(Cookie { data: answer, state })
    }

    /// The option's data in an answer.
    #[inline]
    pub fn data(&self) -> &[u8; DATA] {
        &self.data
    }

    /// Whether the client has shown that it is where it seems to be.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.state == CookieState::Valid
    }

    /// Whether the client brought a server cookie that is not worth anything.
    pub fn is_invalid(&self) -> bool {
        self.state == CookieState::Invalid
    }

    /// What a query with this cookie counts as.
    pub fn counter(&self) -> Counter {
        match self.state {
            CookieState::New => Counter::CookieNew,
            CookieState::Valid => Counter::CookieValid,
            CookieState::Invalid => Counter::CookieInvalid,
        }
    }

    /// Adds the option to the OPT record of `octets` octets at the start of `frame`. Returns the octets it has then.
    #[cold]
    pub fn append(&self, frame: &mut [u8], octets: usize) -> usize {
        append(&self.data, frame, octets)
    }
}

/// Adds a cookie to the OPT record of `octets` octets at the start of `frame`. Returns the octets it has then.
#[inline]
pub fn append(data: &[u8], frame: &mut [u8], octets: usize) -> usize {
    wire::add_option(frame, octets, wire::COOKIE, data)
        .expect("a frame has room for a question and an OPT record")
}

/// The data of the first cookie of an OPT record.
#[inline]
pub fn first<'a>(opt: &Opt<'a>) -> Option<&'a [u8]> {
    opt.options().find(|(code, _)| *code == wire::COOKIE).map(|(_, data)| data)
}

/// The client cookie and the server cookie, which may be empty. None: the length is not allowed (RFC 7873 section 5.2.2).
#[inline]
pub fn split(data: &[u8]) -> Option<(&[u8; CLIENT], &[u8])> {
    let (client, server) = data.split_first_chunk()?;
    matches!(server.len(), 0 | 8..=32).then_some((client, server))
}

/// Whether somebody with this secret has made a cookie for this address, whenever that was. RFC 9018 section 4.2: what is
/// in the reserved octets does not matter, but is hashed.
fn is_ours(data: &[u8; DATA], from: Ipv6Addr, secret: &Secret) -> bool {
    data[CLIENT] == VERSION && data[HASHED..] == hash(data, from, secret)
}

/// The hash that belongs into the last octets (RFC 9018 section 4.4).
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
    // As the vectors of appendix A have it: the octets of the hash as SipHash writes them, lowest first.
    siphash(&secret.0, &input[..length]).to_le_bytes()
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
