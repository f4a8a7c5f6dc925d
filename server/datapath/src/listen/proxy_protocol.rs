//! The PROXY protocol, version 2: the header by which a proxy names the client that it forwards for. HAProxy defines it in
//! "The PROXY protocol", section 2.2. Version 1, which is text, is not read. The header stands before the message in each
//! datagram, and once at the beginning of a connection. The configuration names the proxies that may send one
//! ([`TrustedProxies`]), because a header can hold any address.

use crate::limits::PROXY_HEADER;
use engine::settings::Networks;
use engine::{Client, Proxy};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The first octets of every header.
pub(crate) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Octets before the addresses: the signature, version and command, family and protocol, and the length of the rest.
pub(crate) const FIXED_OCTETS: usize = 16;

/// Octets of two IPv4 addresses with their ports.
const IPV4: usize = 2 * 4 + 2 * 2;

/// Octets of two IPv6 addresses with their ports.
const IPV6: usize = 2 * 16 + 2 * 2;

/// Octets of two addresses of Unix sockets.
const UNIX: usize = 2 * 108;

/// The proxies whose header is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Networks);

impl TrustedProxies {
    /// The proxies in these networks.
    pub fn new(networks: Networks) -> TrustedProxies {
        TrustedProxies(networks)
    }

    /// The networks of the proxies.
    pub(crate) fn networks(&self) -> &Networks {
        &self.0
    }

    /// True if no proxy is trusted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    /// True if the sender is a trusted proxy. It must then send a header.
    #[inline]
    pub fn includes(&self, sender: &Client) -> bool {
        !self.is_empty() && self.0.contains(sender.address)
    }
}

/// A PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The address and port of the client. `None`: the proxy sends for itself.
    pub source: Option<(Ipv6Addr, u16)>,
    /// Octets of the header, with all that are skipped.
    pub length: usize,
}

/// The reason why no header could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The octets begin like a header, but more are needed: this many in all, as far as is known. In a datagram, no more come.
    Incomplete(usize),
    /// The octets begin with something else. Check that the proxy sends headers, and of version 2.
    Missing,
    /// The version, command, family, protocol or length is not one that the protocol defines, or the header is too long.
    Malformed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Incomplete(_) => "the PROXY header ends too early",
            Error::Missing => "there is no PROXY header of version 2; configure the proxy to send it",
            Error::Malformed => "the PROXY header is malformed",
        })
    }
}

impl std::error::Error for Error {}

impl Header {
    /// Reads the header that `octets` begin with.
    ///
    /// # Errors
    ///
    /// `Error::Missing`: the octets do not begin like a header. `Error::Incomplete`: the header is longer than the octets.
    /// `Error::Malformed`: the version, the command or the family is unknown, the addresses do not fit into the length, or the header
    /// is longer than `PROXY_HEADER`.
    pub fn read(octets: &[u8]) -> Result<Header, Error> {
        let begun = octets.len().min(SIGNATURE.len());
        if octets[..begun] != SIGNATURE[..begun] {
            return Err(Error::Missing);
        }
        let Some(&[.., command, family, high, low]) = octets.first_chunk::<FIXED_OCTETS>() else {
            return Err(Error::Incomplete(FIXED_OCTETS));
        };
        let rest = usize::from(u16::from_be_bytes([high, low]));
        let length = FIXED_OCTETS + rest;
        if length > PROXY_HEADER {
            return Err(Error::Malformed);
        }
        // Version 2, command LOCAL (0) or PROXY (1). The transport protocol of the client (stream, datagram) changes nothing.
        let addresses = match (command, family >> 4, family & 0x0f) {
            // LOCAL: any family is ignored.
            (0x20, _, _) => 0,
            (0x21, 0, 0..=2) | (0x21, 1..=3, 0) => 0,
            (0x21, 1, 1 | 2) => IPV4,
            (0x21, 2, 1 | 2) => IPV6,
            (0x21, 3, 1 | 2) => UNIX,
            _ => return Err(Error::Malformed),
        };
        if rest < addresses {
            return Err(Error::Malformed);
        }
        let Some(block) = octets.get(FIXED_OCTETS..length) else { return Err(Error::Incomplete(length)) };
        let port = |at: usize| block.get(at..at + 2).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
        // The values after the addresses (type, length, value) are skipped: none of them is needed.
        let source = match (addresses, block.first_chunk::<4>(), block.first_chunk::<16>()) {
            (IPV4, Some(&address), _) => Some((Ipv4Addr::from(address).to_ipv6_mapped(), port(8))),
            (IPV6, _, Some(&address)) => Some((Ipv6Addr::from(address), port(32))),
            // Unknown, or a Unix socket: the protocol lets the receiver take the proxy for the client.
            _ => None,
        };
        Ok(Header { source, length })
    }

    /// The client that the proxy forwards for. Answers go to the proxy.
    pub fn client(&self, proxy: &Client) -> Client {
        match self.source {
            Some((address, port)) => Client {
                address,
                port,
                proxy: Some(Proxy { address: proxy.address, port: proxy.port }),
                ..*proxy
            },
            None => *proxy,
        }
    }
}

/// Strips the header of a proxy's datagram. Returns the client and the message.
///
/// # Errors
///
/// As [`Header::read`]. `Error::Incomplete` is final here: a datagram has no rest that could come.
#[inline]
pub fn strip_header<'d>(proxy: &Client, datagram: &'d [u8]) -> Result<(Client, &'d [u8]), Error> {
    let header = Header::read(datagram)?;
    Ok((header.client(proxy), &datagram[header.length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with this command and family, followed by `rest`.
    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    const FOUR: &[u8] = &[198, 51, 100, 9, 192, 0, 2, 53, 0x12, 0x34, 0, 53];

    fn six() -> Vec<u8> {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        [&address("2001:db8:c::9")[..], &address("2001:db8:1::53"), &[0x12, 0x34, 0, 53]].concat()
    }

    fn source(text: &str) -> Option<(Ipv6Addr, u16)> {
        Some((text.parse().unwrap(), 0x1234))
    }

    #[test]
    fn both_families_and_both_protocols_name_the_source() {
        for (family, rest, expected) in [
            (0x11, FOUR.to_vec(), source("::ffff:198.51.100.9")),
            (0x12, FOUR.to_vec(), source("::ffff:198.51.100.9")),
            (0x21, six(), source("2001:db8:c::9")),
            (0x22, six(), source("2001:db8:c::9")),
        ] {
            let mut octets = header(0x21, family, &rest);
            let length = octets.len();
            octets.extend(b"the message");
            assert_eq!(Header::read(&octets), Ok(Header { source: expected, length }));
        }
    }

    #[test]
    fn octets_after_the_addresses_are_skipped_up_to_a_bound() {
        for more in [1, 3, 200, PROXY_HEADER - FIXED_OCTETS - IPV4] {
            let octets = header(0x21, 0x12, &[FOUR, &vec![0xff; more]].concat());
            let expected = Header { source: source("::ffff:198.51.100.9"), length: octets.len() };
            assert_eq!(Header::read(&octets), Ok(expected));
        }
        let octets = header(0x21, 0x12, &[FOUR, &vec![0; PROXY_HEADER - FIXED_OCTETS - IPV4 + 1]].concat());
        assert_eq!(Header::read(&octets), Err(Error::Malformed));
    }

    #[test]
    fn a_proxy_that_speaks_for_itself_or_for_nobody_known_is_the_client() {
        let cases = [
            (0x20, 0x00, &[][..]),
            (0x20, 0x12, FOUR),
            (0x20, 0xff, b"xyz"),
            (0x21, 0x00, &[]),
            (0x21, 0x02, b"x"),
        ];
        for (command, family, rest) in cases {
            let octets = header(command, family, rest);
            assert_eq!(Header::read(&octets), Ok(Header { source: None, length: octets.len() }));
        }
        let unix = header(0x21, 0x32, &[b'/'; UNIX]);
        assert_eq!(Header::read(&unix), Ok(Header { source: None, length: FIXED_OCTETS + UNIX }));
    }

    #[test]
    fn a_malformed_header_is_none() {
        let cases: &[(u8, u8, &[u8])] = &[
            (0x11, 0x12, FOUR),
            (0x31, 0x12, FOUR),
            (0x01, 0x12, FOUR),
            (0x22, 0x12, FOUR),
            (0x2f, 0x12, FOUR),
            (0x21, 0x13, FOUR),
            (0x21, 0x42, FOUR),
            (0x21, 0xf2, FOUR),
            (0x21, 0x03, FOUR),
            (0x21, 0x12, &FOUR[..11]),
            (0x21, 0x22, FOUR),
            (0x21, 0x31, FOUR),
            (0x21, 0x12, &[]),
        ];
        for (command, family, rest) in cases {
            let octets = header(*command, *family, rest);
            assert_eq!(Header::read(&octets), Err(Error::Malformed), "{command:#x} {family:#x} {rest:?}");
        }
    }

    #[test]
    fn every_header_that_is_cut_off_is_incomplete_and_says_how_much_is_missing() {
        for (family, rest) in [(0x12, FOUR.to_vec()), (0x21, six()), (0x21, [six(), vec![1; 40]].concat())] {
            let whole = header(0x21, family, &rest);
            for cut in 0..whole.len() {
                let needed = if cut < FIXED_OCTETS { FIXED_OCTETS } else { whole.len() };
                assert_eq!(Header::read(&whole[..cut]), Err(Error::Incomplete(needed)), "{cut}");
            }
        }
    }

    #[test]
    fn octets_that_begin_with_something_else_have_no_header() {
        let whole = header(0x21, 0x12, FOUR);
        for place in 0..SIGNATURE.len() {
            let mut other = whole.clone();
            other[place] ^= 1;
            for cut in place + 1..=other.len() {
                assert_eq!(Header::read(&other[..cut]), Err(Error::Missing));
            }
        }
        assert_eq!(Header::read(b"PROXY TCP4 198.51.100.9 192.0.2.53 4660 53\r\n"), Err(Error::Missing));
    }

    #[test]
    fn octets_of_any_kind_are_read_without_a_panic_and_never_beyond_their_end() {
        let mut random = kit::Random::new(7);
        let mut found = 0;
        for _ in 0..200_000 {
            let mut octets = header(0x21, 0x12, FOUR);
            octets.extend(six());
            for _ in 0..random.below(4) {
                let place = random.place(octets.len());
                octets[place] = random.bits() as u8;
            }
            octets.truncate(random.place(octets.len() + 1));
            if let Ok(read) = Header::read(&octets) {
                assert!((FIXED_OCTETS..=octets.len()).contains(&read.length));
                found += 1;
            }
        }
        assert!(found > 1000);
    }

    #[test]
    fn the_client_is_whom_the_proxy_speaks_for_and_the_answer_goes_to_the_proxy() {
        let proxy = Client::udp("192.0.2.1:4000".parse().unwrap());
        let read = Header::read(&header(0x21, 0x22, &six())).unwrap();
        let client = read.client(&proxy);
        assert_eq!((client.address, client.port), ("2001:db8:c::9".parse().unwrap(), 0x1234));
        assert_eq!(client.answer_to(), (proxy.address, 4000));
        assert!(!client.is_ipv4());
        assert_eq!(Header::read(&header(0x20, 0, &[])).unwrap().client(&proxy), proxy);
    }
}
