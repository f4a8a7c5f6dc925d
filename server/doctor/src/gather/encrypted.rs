//! Encrypted transports that a resolver offers at `_dns.resolver.arpa` (RFC 9462), or that routers announce (RFC 9463): DNS over TLS,
//! over HTTPS and over QUIC with a question; HTTPS without HTTP/2 or without a path as far as the handshake. Of certificates the time and
//! the names are judged; which authority a client believes is the client's matter.

use super::question::{Bits, Question};
use super::{https, quic};
use crate::facts::Encrypted;
use crate::limits::ENCRYPTED;
use gateways::told::IPV4ONLY_ARPA;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use wire::{Message, Section, Type};

// Parameters of service bindings (RFC 9460 section 14.3.2, RFC 9461 section 5).
const ALPN: u16 = 1;
const PORT: u16 = 3;
const IPV6_HINT: u16 = 6;
const DOHPATH: u16 = 7;

/// ALPN of DNS over TLS and over QUIC, and of the two versions of HTTP that go over TCP.
const DOT: &[u8] = b"dot";
const DOQ: &[u8] = b"doq";
const HTTP: [&[u8]; 2] = [https::H2, b"http/1.1"];

const SECS_PER_DAY: u64 = 86_400;

/// An offer of encrypted transports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Name for the certificate, in wire form.
    pub name: Vec<u8>,
    /// Addresses. None: those of whoever offers it.
    pub addresses: Vec<Ipv6Addr>,
    /// Port, if it is not that of the transport.
    pub port: Option<u16>,
    /// True if it has DNS over TLS.
    pub has_tls: bool,
    /// True if it has DNS over HTTPS, over TCP.
    pub has_https: bool,
    /// True if it has DNS over QUIC.
    pub has_quic: bool,
    /// Its path for DNS over HTTPS, without the variable of the template.
    pub path: Option<String>,
}

impl Binding {
    /// Reads the RDATA of a record of type SVCB. None: it is malformed, or an alias.
    pub fn of_record(rdata: &[u8]) -> Option<Binding> {
        let (priority, rest) = rdata.split_first_chunk::<2>()?;
        let (name, parameters) = rest.split_at_checked(wire::name_len(rest)?)?;
        let binding = Binding { name: name.to_vec(), ..Binding::default() }.with(parameters)?;
        (*priority != [0, 0]).then_some(binding)
    }

    /// Reads a DNR option of a router advertisement, behind its type and length (RFC 9463 section 6.1). None: it is malformed, names no
    /// address, or has ended.
    pub fn of_option(option: &[u8]) -> Option<Binding> {
        let (priority, rest) = option.split_first_chunk::<2>()?;
        let (lifetime, rest) = rest.split_first_chunk::<4>()?;
        let (name, rest) = counted(rest)?;
        let (addresses, rest) = counted(rest)?;
        let (parameters, _padding) = counted(rest)?;
        let addresses = addresses.as_chunks::<16>().0.iter().map(|octets| Ipv6Addr::from(*octets)).collect();
        let binding = Binding { name: name.to_vec(), addresses, ..Binding::default() }.with(parameters)?;
        let is_whole = wire::name_len(&binding.name) == Some(binding.name.len());
        let is_valid = *priority != [0, 0] && *lifetime != [0; 4];
        (is_whole && is_valid && !binding.addresses.is_empty()).then_some(binding)
    }

    /// Adds parameters (RFC 9460 section 2.2).
    fn with(mut self, mut rest: &[u8]) -> Option<Binding> {
        while !rest.is_empty() {
            let (key, after) = rest.split_first_chunk::<2>()?;
            let (value, next) = counted(after)?;
            match u16::from_be_bytes(*key) {
                ALPN => self.add_protocols(value)?,
                PORT => self.port = Some(u16::from_be_bytes(*value.first_chunk()?)),
                DOHPATH => self.path = path(value),
                IPV6_HINT => self.addresses.push(Ipv6Addr::from(*value.first_chunk::<16>()?)),
                _ => {}
            }
            rest = next;
        }
        Some(self)
    }

    fn add_protocols(&mut self, mut protocols: &[u8]) -> Option<()> {
        while let Some((length, after)) = protocols.split_first() {
            let (protocol, others) = after.split_at_checked(usize::from(*length))?;
            self.has_tls |= protocol == DOT;
            self.has_quic |= protocol == DOQ;
            self.has_https |= HTTP.contains(&protocol);
            protocols = others;
        }
        Some(())
    }

    /// The name as text, if it is one of a host.
    pub fn server_name(&self) -> Option<ServerName<'static>> {
        let (mut text, mut rest) = (String::new(), &self.name[..]);
        while let Some((length, after)) = rest.split_first()
            && *length > 0
        {
            let (label, others) = after.split_at_checked(usize::from(*length))?;
            let dot = if text.is_empty() { "" } else { "." };
            text = text + dot + str::from_utf8(label).ok()?;
            rest = others;
        }
        ServerName::try_from(text).ok()
    }
}

/// The path of a URI template (RFC 6570) whose variable `dns` a POST leaves empty (RFC 8484 section 4.1).
fn path(template: &[u8]) -> Option<String> {
    let path = str::from_utf8(template).ok()?.split('{').next()?;
    path.starts_with('/').then(|| path.to_owned())
}

/// Takes octets behind their number in two octets.
fn counted(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, after) = octets.split_first_chunk::<2>()?;
    after.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// The offers of a reply.
pub fn of_reply(reply: &[u8]) -> Vec<Binding> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    let records = message.records(Section::Answer).filter(|record| record.rtype == Type::SVCB);
    records.filter_map(|record| Binding::of_record(record.rdata())).collect()
}

/// Tries offers. `own`: address of a resolver that offers them itself, whose certificate may have that instead of the name (RFC 9462
/// section 4.2). `scope`: number of the interface for link-local addresses.
pub fn attempt_all(
    bindings: &[Binding],
    own: Option<IpAddr>,
    scope: u32,
    timeout: Duration,
) -> Vec<Encrypted> {
    let mut tried: Vec<Encrypted> = Vec::new();
    for binding in bindings {
        let given = binding.addresses.first().copied().map(IpAddr::from);
        let Some(ip) = given.or(own) else { continue };
        for (is_offered, transport, port) in [
            (binding.has_tls, "TLS", 853),
            (binding.has_https, "HTTPS", 443),
            (binding.has_quic, "QUIC", 853),
        ] {
            let address = with_scope(ip, binding.port.unwrap_or(port), scope);
            let is_new = !tried.iter().any(|one| one.address == address && one.transport == transport);
            if is_offered && is_new && tried.len() < ENCRYPTED {
                tried.push(attempt(transport, address, binding, own, timeout));
            }
        }
    }
    tried
}

fn with_scope(ip: IpAddr, port: u16, scope: u32) -> SocketAddr {
    match ip {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => SocketAddrV6::new(v6, port, 0, scope).into(),
        _ => SocketAddr::new(ip, port),
    }
}

/// Tries one transport.
fn attempt(
    transport: &'static str,
    address: SocketAddr,
    binding: &Binding,
    own: Option<IpAddr>,
    timeout: Duration,
) -> Encrypted {
    let name = binding.server_name();
    let path = binding.path.as_deref();
    let (failure, certificate) = match exchange(transport, address, name.as_ref(), path, timeout) {
        Ok(certificate) => {
            (None, certificate.and_then(|one| fault(&one, name.as_ref(), own, SystemTime::now())))
        }
        Err(error) => (Some(why(&error)), None),
    };
    Encrypted { transport, address, failure, certificate }
}

/// Connects, asks, and gives the certificate of the server.
fn exchange(
    transport: &str,
    address: SocketAddr,
    name: Option<&ServerName<'static>>,
    path: Option<&str>,
    timeout: Duration,
) -> io::Result<Option<CertificateDer<'static>>> {
    let question = Question::new(IPV4ONLY_ARPA, Type::AAAA, Bits::default());
    // A server with several certificates chooses by the name.
    let wanted = name.cloned().unwrap_or_else(|| ServerName::IpAddress(address.ip().into()));
    if transport == "QUIC" {
        return quic::ask(settings(&[DOQ])?, address, &wanted.to_str(), &question, timeout);
    }
    let is_dot = transport == "TLS";
    let settings = settings(if is_dot { &[DOT] } else { &HTTP })?;
    let session = ClientConnection::new(Arc::new(settings), wanted).map_err(io::Error::other)?;
    let socket = TcpStream::connect_timeout(&address, timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    let mut stream = StreamOwned::new(session, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    if is_dot {
        question.exchange(&mut stream)?;
    } else if let Some(path) = path
        && stream.conn.alpn_protocol() == Some(https::H2)
    {
        let authority =
            name.map_or_else(|| address.to_string(), |name| format!("{}:{}", name.to_str(), address.port()));
        https::ask(&mut stream, &authority, path, &question)?;
    }
    let certificates = stream.conn.peer_certificates().unwrap_or_default();
    Ok(certificates.first().map(|certificate| certificate.clone().into_owned()))
}

/// TLS with any certificate, and one of these protocols.
fn settings(protocols: &[&[u8]]) -> io::Result<ClientConfig> {
    let provider = tls::provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let verifier = Arc::new(Anybody(provider));
    let mut settings = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    settings.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(settings)
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

/// The fault of a certificate, whoever signed it. `name` and `own`: it must have one of them.
pub fn fault(
    certificate: &CertificateDer<'_>,
    name: Option<&ServerName<'_>>,
    own: Option<IpAddr>,
    now: SystemTime,
) -> Option<String> {
    let (begin, end) = tls::validity(certificate)?;
    let days = |longer: SystemTime, shorter| {
        longer.duration_since(shorter).unwrap_or_default().as_secs().div_ceil(SECS_PER_DAY)
    };
    if now > end {
        return Some(format!("the certificate ended {} days ago", days(now, end)));
    }
    if now < begin {
        return Some(format!("the certificate begins in {} days", days(begin, now)));
    }
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let own = own.map(|address| ServerName::IpAddress(address.into()));
    let mut wanted = name.into_iter().chain(own.as_ref());
    match name {
        Some(name) if wanted.all(|name| verify_server_name(&parsed, name).is_err()) => {
            Some(format!("the certificate does not have the name {}", name.to_str()))
        }
        _ => None,
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
        let of = Binding::of_record(&rdata(b"\x03dot\x02h2", 8853)).unwrap();
        assert_eq!((of.has_tls, of.has_https, of.port, of.addresses.len()), (true, true, Some(8853), 0));
        assert_eq!(of.server_name().unwrap().to_str(), "dns.example");
        assert!(!of.has_quic);
        let mut hinted = rdata(b"\x03doq", 853);
        hinted.extend([0, 6, 0, 16]);
        hinted.extend(Ipv6Addr::LOCALHOST.octets());
        let of = Binding::of_record(&hinted).unwrap();
        assert_eq!((of.has_tls, of.has_https, of.has_quic), (false, false, true));
        assert_eq!(of.addresses, [Ipv6Addr::LOCALHOST]);
        for length in 0..hinted.len() - 20 {
            let is_whole = length == 15 || length == 23;
            assert!(is_whole || Binding::of_record(&hinted[..length]).is_none(), "{length} octets");
        }
        assert_eq!(Binding::of_record(b"\0\0\x03dns\0"), None, "an alias");
        // RFC 9461 section 5: the template has the variable `dns`.
        for (template, expected) in
            [("/dns-query{?dns}", Some("/dns-query")), ("/q{?dns}", Some("/q")), ("dns-query{?dns}", None)]
        {
            let mut rdata = rdata(b"\x02h2", 443);
            rdata.extend([0, 7, 0, template.len() as u8]);
            rdata.extend(template.as_bytes());
            assert_eq!(Binding::of_record(&rdata).unwrap().path.as_deref(), expected);
        }
    }

    /// By hand from the figure in RFC 9463 section 6.1: priority, lifetime, length and name, length and addresses, length and parameters,
    /// zeros.
    const OPTION: &[u8] =
        b"\0\x01\0\0\x07\x08\0\x0d\x03dns\x07example\0\0\x10\x20\x01\x0d\xb8\0\x0c\0\0\0\0\0\0\0\0\0\x01\
                            \0\x0e\0\x01\0\x04\x03dot\0\x03\0\x02\x22\x95\0\0\0\0\0\0\0";

    #[test]
    fn an_option_of_a_router_is_read_up_to_its_padding() {
        let of = Binding::of_option(OPTION).unwrap();
        assert_eq!((of.has_tls, of.has_https, of.port), (true, false, Some(8853)));
        assert_eq!(of.addresses, ["2001:db8:c::1".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(of.server_name().unwrap().to_str(), "dns.example");
        for length in 0..OPTION.len() - 7 {
            assert_eq!(Binding::of_option(&OPTION[..length]), None, "{length} octets");
        }
        let changed = |place: usize, octets: &[u8]| {
            let mut option = OPTION.to_vec();
            option[place..][..octets.len()].copy_from_slice(octets);
            Binding::of_option(&option)
        };
        assert_eq!(changed(0, &[0, 0]), None, "without transports");
        assert_eq!(changed(2, &[0; 4]), None, "a lifetime that has ended");
        assert_eq!(changed(8, &[2]), None, "a name that is shorter than its length says");
    }

    /// A certificate of this validity in days from the beginning of 1970, for `dns.example` and 2001:db8:c::1.
    fn certificate(begin_days: u64, end_days: u64) -> CertificateDer<'static> {
        let at = |days| SystemTime::UNIX_EPOCH + Duration::from_secs(days * SECS_PER_DAY);
        let key = rcgen::KeyPair::generate().unwrap();
        let names = ["dns.example".to_owned(), "2001:db8:c::1".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        (params.not_before, params.not_after) = (at(begin_days).into(), at(end_days).into());
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_certificate_is_judged_by_its_time_and_its_names() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * SECS_PER_DAY);
        let names = ["dns.example", "other.example"].map(|name| ServerName::try_from(name).unwrap());
        let [right, wrong] = names.each_ref().map(Some);
        let own: Option<IpAddr> = Some("2001:db8:c::1".parse().unwrap());
        let other: Option<IpAddr> = Some("2001:db8:c::2".parse().unwrap());
        for (begin, end, name, own, expected) in [
            (19_999, 20_001, right, None, None),
            (19_999, 20_001, right, other, None),
            // RFC 9462 section 4.2: the address of the resolver is what a client looks for.
            (19_999, 20_001, wrong, own, None),
            (19_999, 20_001, None, None, None),
            (19_999, 20_001, wrong, None, Some("the certificate does not have the name other.example")),
            (19_999, 20_001, wrong, other, Some("the certificate does not have the name other.example")),
            (19_990, 19_997, right, own, Some("the certificate ended 3 days ago")),
            (20_002, 20_010, right, own, Some("the certificate begins in 2 days")),
        ] {
            assert_eq!(fault(&certificate(begin, end), name, own, now).as_deref(), expected);
        }
        assert_eq!(fault(&CertificateDer::from(&b"no certificate"[..]), right, own, now), None);
    }

    #[test]
    fn an_offer_at_a_closed_port_is_a_failure_and_so_is_one_without_tls() {
        let bare = kit::Upstream::start(|_, _| {});
        for (port, words) in
            [(kit::free_port(), "nothing listens there"), (bare.address.port(), "no answer comes")]
        {
            let records = [record(QUESTION, 64, 60, &rdata(b"\x03dot", port))];
            let asked = reply(&query(1, "_dns.resolver.arpa", 64), 0x0180, &records);
            let own = Some(IpAddr::from([127, 0, 0, 1]));
            let tried = attempt_all(&of_reply(&asked), own, 0, Duration::from_millis(200));
            assert_eq!((tried.len(), tried[0].transport, tried[0].address.port()), (1, "TLS", port));
            let failure = tried[0].failure.as_ref().unwrap();
            assert!(failure.starts_with(words), "{failure}");
        }
    }
}
