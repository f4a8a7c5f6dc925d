//! Encoding of `dnstap.proto` (<https://github.com/dnstap/dnstap.pb>), by hand: one message type with known fields, written at the end
//! of a buffer. A frame is the length in four octets and one `Dnstap` message (Frame Streams).
//!
//! A field begins with its number and its wire type in one octet (all numbers here are below 16): 0 is a varint, 2 a string of octets
//! with its length, 5 four octets in little-endian order.

use std::net::{IpAddr, SocketAddr};

/// Octets that a frame has beyond its DNS message, at most: length (4), identity and version (2 x 258), type and length of the
/// message (2 + 4), and its fields (3 x 2, 2 x 18, 2 x 4, 11, 5), key and length of the DNS message (4).
pub const OVERHEAD: usize = 4 + 2 * 258 + 6 + 6 + 36 + 8 + 16 + 4;

/// Longest identity and version.
const TEXT: usize = 255;

/// Kind of a message (`Message.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A query of a client.
    ClientQuery = 5,
    /// The response to a client.
    ClientResponse = 6,
    /// A query to an upstream.
    ForwarderQuery = 7,
    /// The response of an upstream.
    ForwarderResponse = 8,
}

impl Kind {
    fn is_response(self) -> bool {
        matches!(self, Kind::ClientResponse | Kind::ForwarderResponse)
    }
}

/// Transport of a message (`SocketProtocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protocol {
    /// UDP.
    Udp = 1,
    /// TCP.
    Tcp = 2,
    /// DNS over TLS.
    Tls = 3,
    /// DNS over HTTPS.
    Https = 4,
    /// DNS over QUIC.
    Quic = 7,
}

/// Circumstances of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Kind of the message.
    pub kind: Kind,
    /// Its transport.
    pub protocol: Protocol,
    /// Address and port of the side that sends the query.
    pub initiator: Option<SocketAddr>,
    /// Address and port of the side that sends the response. An address of another family than the initiator's is left out: the
    /// format has one family for both.
    pub responder: Option<SocketAddr>,
    /// Time at which the message was received or sent, in nanoseconds since 1970.
    pub unix_ns: u64,
}

/// The fields that are equal in all frames: identity, version and type.
#[derive(Clone, Debug)]
pub struct Origin(Box<[u8]>);

impl Origin {
    /// `identity` names the server, `version` its program. Both are cut off after 255 octets.
    pub fn new(identity: &str, version: &str) -> Origin {
        let mut octets = Vec::new();
        for (number, text) in [(1, identity), (2, version)] {
            let text = &text.as_bytes()[..text.len().min(TEXT)];
            put_key(&mut octets, number, 2);
            put_varint(&mut octets, text.len() as u64);
            octets.extend_from_slice(text);
        }
        put_key(&mut octets, 15, 0);
        // MESSAGE, the only type.
        put_varint(&mut octets, 1);
        Origin(octets.into())
    }

    /// Appends a frame with one DNS message.
    pub fn write_frame(&self, exchange: &Exchange, message: &[u8], into: &mut Vec<u8>) {
        let start = into.len();
        let is_response = exchange.kind.is_response();
        // The lengths are known at the end. That of the `Message` takes three octets of a varint, which may be padded: 2^21 octets
        // are more than any DNS message has.
        into.extend_from_slice(&[0; 4]);
        into.extend_from_slice(&self.0);
        put_key(into, 14, 2);
        let inner_length = into.len();
        into.extend_from_slice(&[0; 3]);
        put_circumstances(exchange, into);
        let (time, nanoseconds, body) = if is_response { (12, 13, 14) } else { (8, 9, 10) };
        put_key(into, time, 0);
        put_varint(into, exchange.unix_ns / 1_000_000_000);
        put_key(into, nanoseconds, 5);
        into.extend_from_slice(&((exchange.unix_ns % 1_000_000_000) as u32).to_le_bytes());
        put_key(into, body, 2);
        put_varint(into, message.len() as u64);
        into.extend_from_slice(message);
        let inner = (into.len() - inner_length - 3) as u32;
        let padded = [inner as u8 | 0x80, (inner >> 7) as u8 | 0x80, (inner >> 14) as u8 & 0x7f];
        into[inner_length..inner_length + 3].copy_from_slice(&padded);
        let frame = (into.len() - start - 4) as u32;
        into[start..start + 4].copy_from_slice(&frame.to_be_bytes());
    }
}

/// Appends type, family, protocol, addresses and ports.
fn put_circumstances(exchange: &Exchange, into: &mut Vec<u8>) {
    into.extend_from_slice(&[1 << 3, exchange.kind as u8]);
    let first = exchange.initiator.or(exchange.responder);
    if let Some(first) = first {
        let family = if first.is_ipv4() { 1 } else { 2 };
        into.extend_from_slice(&[2 << 3, family]);
    }
    into.extend_from_slice(&[3 << 3, exchange.protocol as u8]);
    let is_of_family = |address: &SocketAddr| first.is_some_and(|first| first.is_ipv4() == address.is_ipv4());
    for (address_field, port_field, address) in [(4, 6, exchange.initiator), (5, 7, exchange.responder)] {
        let Some(address) = address.filter(is_of_family) else { continue };
        put_key(into, address_field, 2);
        match address.ip() {
            IpAddr::V4(v4) => {
                into.push(4);
                into.extend_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                into.push(16);
                into.extend_from_slice(&v6.octets());
            }
        }
        put_key(into, port_field, 0);
        put_varint(into, u64::from(address.port()));
    }
}

fn put_key(into: &mut Vec<u8>, number: u8, wire_type: u8) {
    into.push(number << 3 | wire_type);
}

fn put_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange() -> Exchange {
        Exchange {
            kind: Kind::ClientQuery,
            protocol: Protocol::Udp,
            initiator: Some("192.0.2.1:5353".parse().unwrap()),
            responder: Some("192.0.2.53:53".parse().unwrap()),
            unix_ns: 1_700_000_000_000_000_005,
        }
    }

    #[test]
    fn a_frame_is_the_protobuf_that_the_specification_gives() {
        let mut octets = vec![0xee];
        Origin::new("ns1", "v").write_frame(&exchange(), b"question", &mut octets);
        let expected: &[&[u8]] = &[
            b"\xee",
            // 5 + 3 + 2 octets of the origin, 1 + 3 before the `Message`.
            &[0, 0, 0, 10 + 4 + 44],
            b"\x0a\x03ns1\x12\x01v\x78\x01",
            // The `Message`: 6 + 9 + 8 + 6 + 5 + 10 octets, the length padded to three.
            &[0x72, 44 | 0x80, 0x80, 0],
            &[0x08, 5, 0x10, 1, 0x18, 1],
            // 5353 = 41 x 128 + 105
            &[0x22, 4, 192, 0, 2, 1, 0x30, 105 | 0x80, 41],
            &[0x2a, 4, 192, 0, 2, 53, 0x38, 53],
            // 1,700,000,000 as a varint, and 5 ns.
            &[0x40, 0x80, 0xe2, 0xcf, 0xaa, 0x06, 0x4d, 5, 0, 0, 0],
            b"\x52\x08question",
        ];
        assert_eq!(octets, expected.concat());
    }

    #[test]
    fn a_response_has_its_own_fields_and_addresses_of_one_family() {
        let exchange = Exchange {
            kind: Kind::ForwarderResponse,
            protocol: Protocol::Tcp,
            initiator: Some("192.0.2.1:5353".parse().unwrap()),
            responder: Some("[2001:db8::53]:53".parse().unwrap()),
            unix_ns: 7,
        };
        let mut octets = Vec::new();
        Origin::new("", "").write_frame(&exchange, b"", &mut octets);
        let message = [
            &[0x08, 8, 0x10, 1, 0x18, 2][..],
            &[0x22, 4, 192, 0, 2, 1, 0x30, 105 | 0x80, 41],
            &[0x60, 0, 0x6d, 7, 0, 0, 0],
            &[0x72, 0],
        ]
        .concat();
        assert!(octets.ends_with(&message), "{octets:02x?}");
        let of_responder = Exchange { initiator: None, ..exchange };
        octets.clear();
        Origin::new("", "").write_frame(&of_responder, b"", &mut octets);
        let address: Vec<u8> =
            octets.windows(2).any(|pair| pair == [0x10, 2]).then_some(16).into_iter().collect();
        assert_eq!(address, [16], "the family of the responder");
    }

    #[test]
    fn the_overhead_of_a_frame_is_bounded() {
        let long = "x".repeat(1_000);
        let origin = Origin::new(&long, &long);
        let exchange = Exchange {
            initiator: Some("[2001:db8::1]:65535".parse().unwrap()),
            responder: Some("[2001:db8::2]:65535".parse().unwrap()),
            unix_ns: u64::MAX,
            ..exchange()
        };
        let (mut octets, message) = (Vec::new(), vec![1; 65_535]);
        origin.write_frame(&exchange, &message, &mut octets);
        assert!(octets.len() <= message.len() + OVERHEAD, "{}", octets.len() - message.len());
        assert_eq!(octets[..4], ((octets.len() - 4) as u32).to_be_bytes());
    }
}
