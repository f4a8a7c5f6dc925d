//! PROXY protocol headers of version 2, compared with a reader that follows the text of section 2.2 of the protocol.

use datapath::limits::PROXY_HEADER;
use datapath::proxy_protocol::{Error, Header, strip_header};
use engine::Client;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The twelve octets with which every header begins.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Tests one input.
pub fn run(input: &[u8]) {
    let read = Header::read(input);
    assert_eq!(read, read_by_the_words(input), "{input:02x?}");
    let proxy = Client::udp(SocketAddr::new(Ipv4Addr::new(192, 0, 2, 7).into(), 4242));
    let opened = strip_header(&proxy, input);
    assert_eq!(opened.is_ok(), read.is_ok());
    let mut stream = input;
    assert_eq!(read_before_tls(&mut stream), read.as_ref().ok().copied());
    let Ok(header) = read else {
        let why = read.expect_err("no header").to_string();
        return assert!(!why.is_empty());
    };
    let (client, message) = opened.expect("it was read before");
    assert!(header.length <= PROXY_HEADER.min(input.len()));
    assert_eq!(message, &input[header.length..]);
    assert_eq!(stream, message, "TLS begins behind the header");
    assert_eq!(client.answer_to(), (proxy.address, proxy.port), "answers go to the proxy");
    match header.source {
        Some(source) => assert_eq!((client.address, client.port), source),
        None => assert_eq!(client, proxy),
    }
    // The octets behind a header do not change its meaning, and no prefix of a header is a header.
    assert_eq!(Header::read(&input[..header.length]), Ok(header));
    for length in 0..header.length {
        let Err(Error::Incomplete(more)) = Header::read(&input[..length]) else {
            panic!("{length} octets of {:02x?}", &input[..header.length])
        };
        assert!(more > length && more <= header.length.max(16));
    }
}

/// Reads a header as the server does before a TLS handshake.
fn read_before_tls(stream: &mut &[u8]) -> Option<Header> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(transport::proxy_header::read(stream)).poll(&mut context) {
        Poll::Ready(header) => header,
        Poll::Pending => panic!("octets in memory are there at once"),
    }
}

/// Reads a header by the text of the protocol, sentence by sentence.
fn read_by_the_words(octets: &[u8]) -> Result<Header, Error> {
    let begun = octets.len().min(12);
    if octets[..begun] != SIGNATURE[..begun] {
        return Err(Error::Missing);
    }
    if octets.len() < 16 {
        return Err(Error::Incomplete(16));
    }
    let (version, command) = (octets[12] >> 4, octets[12] & 15);
    let (family, protocol) = (octets[13] >> 4, octets[13] & 15);
    let length = usize::from(octets[14]) << 8 | usize::from(octets[15]);
    if 16 + length > PROXY_HEADER || version != 2 || command > 1 {
        return Err(Error::Malformed);
    }
    let is_local = command == 0;
    if !is_local && (family > 3 || protocol > 2) {
        return Err(Error::Malformed);
    }
    let is_known = !is_local && family > 0 && protocol > 0;
    let addresses = if is_known { [0, 12, 36, 216][usize::from(family)] } else { 0 };
    if length < addresses {
        return Err(Error::Malformed);
    }
    if octets.len() < 16 + length {
        return Err(Error::Incomplete(16 + length));
    }
    let octet = |at: usize| octets[16 + at];
    let port = |at: usize| u16::from_be_bytes([octet(at), octet(at + 1)]);
    let source = match (is_known, family) {
        (true, 1) => {
            let address = Ipv4Addr::new(octet(0), octet(1), octet(2), octet(3));
            Some((address.to_ipv6_mapped(), port(8)))
        }
        (true, 2) => {
            let mut address = [0; 16];
            address.copy_from_slice(&octets[16..32]);
            Some((Ipv6Addr::from(address), port(32)))
        }
        _ => None,
    };
    Ok(Header { source, length: 16 + length })
}
