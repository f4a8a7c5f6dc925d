//! A server with DNS over TLS and DNS over HTTPS, its certificates, and a client of rustls.

use crate::client::{Answer, query};
use crate::daemon::{Folder, Setup, TIMEOUT, free_port};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use wire::Type;

/// The name in all certificates.
pub const NAME: &str = "dns.example";

/// A certificate that is signed by its own key.
pub struct Pair {
    pub certificate: CertificateDer<'static>,
    pem: String,
    key: String,
}

impl Pair {
    pub fn new() -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
        Pair { pem: certificate.pem(), key: key.serialize_pem(), certificate: certificate.der().clone() }
    }
}

/// The files of a server with encrypted listeners, and their addresses. The files are removed with the test.
pub struct Listeners {
    directory: Folder,
    pub dot: SocketAddr,
    pub doh: SocketAddr,
    pub doq: SocketAddr,
}

impl Listeners {
    /// Free addresses, and the files of a certificate.
    pub fn new(pair: &Pair) -> Listeners {
        let address = || SocketAddr::from(([127, 0, 0, 1], free_port()));
        let listeners =
            Listeners { directory: Folder::for_everybody(), dot: address(), doh: address(), doq: address() };
        listeners.write(pair);
        listeners
    }

    /// Writes another certificate and its key over those that are there.
    pub fn write(&self, pair: &Pair) {
        std::fs::write(self.certificate(), &pair.pem).unwrap();
        self.directory.write_with_mode("key.pem", &pair.key, 0o600);
    }

    pub fn certificate(&self) -> PathBuf {
        self.directory.file("chain.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.directory.file("key.pem")
    }

    /// Another secret beside the key.
    pub fn write_secret(&self, name: &str, octets: &[u8]) -> PathBuf {
        self.directory.write_with_mode(name, octets, 0o600)
    }

    /// Another file beside the certificate.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    /// Adds the listeners over TCP to a configuration.
    pub fn add_to(&self, setup: Setup) -> Setup {
        self.add_files_to(setup)
            .line(&format!("tls.listen-dot = [\"{}\"]", self.dot))
            .line(&format!("tls.listen-doh = [\"{}\"]", self.doh))
    }

    /// Adds the listener over QUIC to a configuration.
    pub fn add_quic_to(&self, setup: Setup) -> Setup {
        self.add_files_to(setup).line(&format!("tls.listen-doq = [\"{}\"]", self.doq))
    }

    fn add_files_to(&self, setup: Setup) -> Setup {
        setup
            .line(&format!("tls.certificate = \"{}\"", self.certificate().display()))
            .line(&format!("tls.key = \"{}\"", self.key().display()))
    }
}

/// Settings of a client that trusts these certificates.
pub fn trusting(pairs: &[&Pair], protocol: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    pairs.iter().for_each(|pair| roots.add(pair.certificate.clone()).unwrap());
    let builder = ClientConfig::builder_with_provider(tls::provider());
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(config)
}

/// A TCP connection whose reads and writes end in [`TIMEOUT`].
pub fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&server, TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// A connection over TLS.
pub struct TlsClient(StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Connects, and does the handshake.
    pub fn to(server: SocketAddr, config: &Arc<ClientConfig>) -> TlsClient {
        TlsClient::over(connect(server), config).unwrap()
    }

    /// Does the handshake over a connection.
    pub fn over(mut stream: TcpStream, config: &Arc<ClientConfig>) -> std::io::Result<TlsClient> {
        let name = ServerName::try_from(NAME).unwrap();
        let mut connection = ClientConnection::new(config.clone(), name).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(TlsClient(StreamOwned::new(connection, stream)))
    }

    /// The certificate that the server has shown.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.0.conn.peer_certificates().unwrap()[0]
    }

    /// Asks with DNS over TLS.
    pub fn ask(&mut self, name: &str) -> Answer {
        let message = query(9, name, Type::AAAA);
        self.0.write_all(&[&(message.len() as u16).to_be_bytes(), &message[..]].concat()).unwrap();
        self.0.flush().unwrap();
        let mut length = [0; 2];
        self.0.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        self.0.read_exact(&mut answer).unwrap();
        Answer::read(&answer)
    }

    /// Asks with DNS over HTTPS: a POST of HTTP/1.1.
    pub fn post(&mut self, name: &str) -> Answer {
        let message = query(0, name, Type::AAAA);
        let head = format!(
            "POST /dns-query HTTP/1.1\r\nhost: {NAME}\r\ncontent-type: application/dns-message\r\ncontent-length: {}\r\n\r\n",
            message.len()
        );
        self.0.write_all(&[head.as_bytes(), &message].concat()).unwrap();
        self.0.flush().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut octet = [0];
            self.0.read_exact(&mut octet).unwrap();
            head.extend(octet);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        let mut answer = vec![0; length.trim().parse().unwrap()];
        self.0.read_exact(&mut answer).unwrap();
        Answer::read(&answer)
    }

    /// Sends octets, ends this side, and returns all that the server sends.
    pub fn exchange(&mut self, octets: &[u8]) -> String {
        self.0.write_all(octets).unwrap();
        self.0.conn.send_close_notify();
        self.0.flush().unwrap();
        let mut answer = Vec::new();
        // The end may come without a closure alert.
        let _ = self.0.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Waits until the server ends the connection.
    pub fn wait_for_close(&mut self) {
        assert_eq!(self.0.read(&mut [0; 512]).unwrap(), 0);
    }
}
