//! Encrypted transports that a resolver offers at `_dns.resolver.arpa` (RFC 9462): DNS over TLS with a question, DNS over HTTPS as far as
//! the handshake. Certificates are not judged: which ones a client believes is the client's matter.

use super::question::{Bits, Question};
use crate::facts::Encrypted;
use crate::limits::ENCRYPTED;
use gateways::told::IPV4ONLY_ARPA;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use wire::{Message, Section, Type};

// Parameters of service bindings (RFC 9460 section 14.3.2).
const ALPN: u16 = 1;
const PORT: u16 = 3;
const IPV6_HINT: u16 = 6;

/// ALPN of DNS over TLS, and of the two versions of HTTP that go over TCP.
const DOT: &[u8] = b"dot";
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// An offer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    has_tls: bool,
    has_https: bool,
    port: Option<u16>,
    address: Option<Ipv6Addr>,
}

/// Tries what a reply offers, at the addresses of the bindings or else at that of the resolver.
pub fn of_bindings(reply: &[u8], resolver: SocketAddr, timeout: Duration) -> Vec<Encrypted> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    let records = message.records(Section::Answer).filter(|record| record.rtype == Type::SVCB);
    let mut tried: Vec<Encrypted> = Vec::new();
    for binding in records.filter_map(|record| binding(record.rdata())) {
        let ip = binding.address.map_or(resolver.ip(), Into::into);
        for (is_offered, transport, port) in
            [(binding.has_tls, "TLS", 853), (binding.has_https, "HTTPS", 443)]
        {
            let address = SocketAddr::new(ip, binding.port.unwrap_or(port));
            let is_new = !tried.iter().any(|one| one.address == address && one.transport == transport);
            if is_offered && is_new && tried.len() < ENCRYPTED {
                let failure = attempt(transport, address, timeout).err();
                tried.push(Encrypted { transport, address, failure: failure.map(|error| why(&error)) });
            }
        }
    }
    tried
}

/// Reads the RDATA of a binding. None: it is malformed, or an alias.
fn binding(rdata: &[u8]) -> Option<Binding> {
    let (priority, rest) = rdata.split_first_chunk::<2>()?;
    let mut rest = rest.get(wire::name_len(rest)?..)?;
    let mut found = Binding { has_tls: false, has_https: false, port: None, address: None };
    while !rest.is_empty() {
        let (key, after) = rest.split_first_chunk::<2>()?;
        let (length, after) = after.split_first_chunk::<2>()?;
        let (value, next) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        match u16::from_be_bytes(*key) {
            ALPN => {
                let mut protocols = value;
                while let Some((length, after)) = protocols.split_first() {
                    let (protocol, others) = after.split_at_checked(usize::from(*length))?;
                    found.has_tls |= protocol == DOT;
                    found.has_https |= HTTP.contains(&protocol);
                    protocols = others;
                }
            }
            PORT => found.port = Some(u16::from_be_bytes(*value.first_chunk()?)),
            IPV6_HINT => found.address = Some(Ipv6Addr::from(*value.first_chunk::<16>()?)),
            _ => {}
        }
        rest = next;
    }
    (*priority != [0, 0]).then_some(found)
}

/// Tries one transport.
fn attempt(transport: &str, address: SocketAddr, timeout: Duration) -> io::Result<()> {
    let is_dot = transport == "TLS";
    let provider = tls::provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let verifier = Arc::new(Anybody(provider));
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols =
        if is_dot { vec![DOT.to_vec()] } else { HTTP.iter().map(|name| name.to_vec()).collect() };
    let name = ServerName::IpAddress(address.ip().into());
    let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let socket = TcpStream::connect_timeout(&address, timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    let mut stream = StreamOwned::new(session, socket);
    if is_dot {
        return Question::new(IPV4ONLY_ARPA, Type::AAAA, Bits::default()).exchange(&mut stream).map(drop);
    }
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(())
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "no answer comes: a filter may drop the port".to_owned()
        }
        _ => format!("the connection fails ({error})"),
    }
}

/// Takes every certificate.
#[derive(Debug)]
struct Anybody(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::message::{QUESTION, query, record, reply};

    /// `1 dns.example. alpn=PROTOCOLS port=PORT` (RFC 9460 section 2.2).
    fn rdata(protocols: &[u8], port: u16) -> Vec<u8> {
        let mut rdata = b"\0\x01\x03dns\x07example\0\0\x01".to_vec();
        rdata.extend((protocols.len() as u16).to_be_bytes());
        rdata.extend(protocols);
        rdata.extend([0, 3, 0, 2]);
        rdata.extend(port.to_be_bytes());
        rdata
    }

    #[test]
    fn a_binding_is_read_with_its_protocols_port_and_address() {
        let of = binding(&rdata(b"\x03dot\x02h2", 8853)).unwrap();
        assert_eq!((of.has_tls, of.has_https, of.port, of.address), (true, true, Some(8853), None));
        let mut hinted = rdata(b"\x03doq", 853);
        hinted.extend([0, 6, 0, 16]);
        hinted.extend(Ipv6Addr::LOCALHOST.octets());
        let of = binding(&hinted).unwrap();
        assert_eq!((of.has_tls, of.has_https, of.address), (false, false, Some(Ipv6Addr::LOCALHOST)));
        for length in 0..hinted.len() - 20 {
            assert!(length == 15 || length == 23 || binding(&hinted[..length]).is_none(), "{length} octets");
        }
        assert_eq!(binding(b"\0\0\x03dns\0"), None, "an alias");
    }

    #[test]
    fn an_offer_at_a_closed_port_is_a_failure_and_so_is_one_without_tls() {
        let bare = kit::Upstream::start(|_, _| {});
        for (port, words) in
            [(kit::free_port(), "nothing listens there"), (bare.address.port(), "no answer comes")]
        {
            let records = [record(QUESTION, 64, 60, &rdata(b"\x03dot", port))];
            let asked = reply(&query(1, "_dns.resolver.arpa", 64), 0x0180, &records);
            let tried =
                of_bindings(&asked, SocketAddr::from(([127, 0, 0, 1], 53)), Duration::from_millis(200));
            assert_eq!((tried.len(), tried[0].transport, tried[0].address.port()), (1, "TLS", port));
            let failure = tried[0].failure.as_ref().unwrap();
            assert!(failure.starts_with(words), "{failure}");
        }
    }
}
