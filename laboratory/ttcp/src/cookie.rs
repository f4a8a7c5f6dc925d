//! Cookies of TCP Fast Open (RFC 7413): the secret that a connection count is not.
//!
//! A server gives a client that asks for it a cookie: a message authentication code of the client's address, under a key that
//! only the server has. The client shows it with data on a later SYN. An attacker that forges the client's address and does
//! not see its packets must guess 64 bits.

use core::hash::Hasher;
use siphasher::sip::SipHasher24;
use std::net::IpAddr;

/// Octets of the cookies of this server: those of a SipHash. RFC 7413 section 4.1.1 allows 4 to 16.
const COOKIE_OCTETS: usize = 8;

/// A cookie, 4 to 16 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie {
    octets: [u8; 16],
    length: u8,
}

impl Cookie {
    /// A cookie of an even number of octets from 4 to 16; none for another number (RFC 7413 section 4.1.1).
    pub fn new(octets: &[u8]) -> Option<Cookie> {
        if !(4..=16).contains(&octets.len()) || !octets.len().is_multiple_of(2) {
            return None;
        }
        let mut cookie = Cookie { octets: [0; 16], length: octets.len() as u8 };
        cookie.octets[..octets.len()].copy_from_slice(octets);
        Some(cookie)
    }

    /// The octets.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

/// The option of TCP Fast Open, kind 34.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenOption {
    /// The client asks for a cookie.
    Request,
    /// The client shows its cookie, or the server gives one.
    Cookie(Cookie),
}

impl FastOpenOption {
    /// Reads the value of an option. None for a length that RFC 7413 does not allow.
    pub(crate) fn parse(value: &[u8]) -> Option<FastOpenOption> {
        if value.is_empty() {
            Some(FastOpenOption::Request)
        } else {
            Cookie::new(value).map(FastOpenOption::Cookie)
        }
    }

    /// The cookie.
    pub(crate) fn cookie(&self) -> Option<&Cookie> {
        match self {
            FastOpenOption::Request => None,
            FastOpenOption::Cookie(cookie) => Some(cookie),
        }
    }

    /// Octets of the option without padding.
    pub(crate) fn octets(&self) -> usize {
        2 + self.cookie().map_or(0, |cookie| cookie.octets().len())
    }
}

/// TCP Fast Open of a host, as client and as server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpen {
    /// Key of the server's cookies, random.
    pub key: [u8; 16],
    /// Key before the last change. Its cookies are still valid, and the answer brings a new one (RFC 7413 section 4.1.2).
    pub previous_key: Option<[u8; 16]>,
    /// Connections of the server that were opened with a cookie and whose handshake is not complete (RFC 7413 section 5.1,
    /// PendingFastOpenRequests). Beyond, a SYN with a cookie makes a handshake.
    pub pending: usize,
}

impl FastOpen {
    /// The server's cookie for a client: SipHash-2-4 of its address, as Linux makes it.
    pub fn cookie(&self, client: IpAddr) -> Cookie {
        make(&self.key, client)
    }

    /// True if the server has given this cookie to this client.
    pub fn is_valid(&self, client: IpAddr, cookie: &Cookie) -> bool {
        *cookie == self.cookie(client) || self.previous_key.is_some_and(|key| *cookie == make(&key, client))
    }
}

fn make(key: &[u8; 16], client: IpAddr) -> Cookie {
    let mut hasher = SipHasher24::new_with_key(key);
    match client {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        IpAddr::V6(address) => hasher.write(&address.octets()),
    }
    let mut cookie = Cookie { octets: [0; 16], length: COOKIE_OCTETS as u8 };
    cookie.octets[..COOKIE_OCTETS].copy_from_slice(&hasher.finish().to_le_bytes());
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> IpAddr {
        IpAddr::from([198, 18, 0, n])
    }

    #[test]
    fn a_cookie_belongs_to_one_client_and_one_key() {
        let now = FastOpen { key: [1; 16], previous_key: None, pending: 1 };
        let cookie = now.cookie(host(1));
        assert!(now.is_valid(host(1), &cookie) && !now.is_valid(host(2), &cookie));
        let later = FastOpen { key: [2; 16], previous_key: Some([1; 16]), pending: 1 };
        assert!(later.is_valid(host(1), &cookie));
        assert_ne!(later.cookie(host(1)), cookie);
        assert!(!FastOpen { previous_key: None, ..later }.is_valid(host(1), &cookie));
    }

    #[test]
    fn the_cookie_is_the_siphash_of_the_address() {
        // Aumasson and Bernstein, SipHash, 2012, appendix A: key 00..0f, message 00..0e gives a129ca6149be45e5.
        let mut hasher = SipHasher24::new_with_key(&core::array::from_fn(|i| i as u8));
        hasher.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn a_cookie_has_an_even_number_of_octets_from_4_to_16() {
        for length in 0..20 {
            let allowed = [4, 6, 8, 10, 12, 14, 16].contains(&length);
            assert_eq!(Cookie::new(&vec![7; length]).is_some(), allowed, "{length}");
        }
        assert_eq!(FastOpenOption::parse(&[]), Some(FastOpenOption::Request));
        assert_eq!(FastOpenOption::parse(&[1; 5]), None);
    }
}
