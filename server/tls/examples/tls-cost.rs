//! Costs of the server side of TLS without sockets: CPU time of handshakes and messages, and memory of idle connections.
//!
//! The server's part of each step is done for many connections in a row, and the CPU time of the thread is read around the row.
//! `cargo run --release -p sixfold-tls --example tls-cost`
#![forbid(unsafe_code)]

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm};
use rustix::time::{ClockId, clock_gettime};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection};
use rustls::{SupportedProtocolVersion, version};
use sixfold_tls as tls;
use std::io::{Read, Write};
use std::sync::Arc;
use tls::ServerTls;
use tls::anchors::ALPN_DOT;
use tls::records::feed;

/// Connections of one row of handshakes.
const HANDSHAKES: usize = 300;

/// Messages of one row.
const MESSAGES: usize = 100_000;

/// Idle connections.
const IDLE: usize = 10_000;

/// Octets of a page, which `getconf PAGESIZE` prints on x86-64.
const PAGE: usize = 4096;

/// Rows of each kind, of which the median counts.
const ROWS: usize = 5;

fn main() {
    println!("size of ServerConnection: {} octets", size_of::<ServerConnection>());
    // First, and all connections stay: memory that something else has freed would be used again, and not be counted.
    let side = Side::new(&PKCS_ECDSA_P256_SHA256);
    let mut servers = Vec::new();
    for version in [&version::TLS13, &version::TLS12] {
        for messages in [0, 10] {
            let octets = idle(&side, version, messages, &mut servers);
            println!("{:?}, idle after {messages} messages: {octets} octets", version.version);
        }
    }
    drop(servers);
    for (name, algorithm) in [("ECDSA P-256", &PKCS_ECDSA_P256_SHA256), ("RSA 2048", &PKCS_RSA_SHA256)] {
        let side = Side::new(algorithm);
        for version in [&version::TLS13, &version::TLS12] {
            let rows: Vec<[f64; 2]> = (0..ROWS).map(|_| handshakes(&side, version)).collect();
            for (place, kind) in ["full", "resumed"].into_iter().enumerate() {
                print(
                    &format!("{name}, {:?}, {kind} handshake", version.version),
                    rows.iter().map(|row| row[place]),
                    "us",
                );
            }
        }
    }
    let side = Side::new(&PKCS_ECDSA_P256_SHA256);
    for version in [&version::TLS13, &version::TLS12] {
        let name = format!("{:?}, decrypt 60 octets and encrypt 100", version.version);
        print(&name, (0..ROWS).map(|_| echo(&side, version)), "us");
    }
}

fn print(name: &str, figures: impl Iterator<Item = f64>, unit: &str) {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let (first, last) = (figures[0], figures[figures.len() - 1]);
    println!("{name}: {:.2} {unit} [{first:.2}-{last:.2}]", figures[figures.len() / 2]);
}

/// Settings of server and clients.
struct Side {
    server: Arc<ServerConfig>,
    roots: Arc<RootCertStore>,
}

impl Side {
    fn new(algorithm: &'static SignatureAlgorithm) -> Side {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let params = CertificateParams::new(["dns.example".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let folder = std::env::temp_dir().join(format!("sixfold-tls-cost-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (chain, private) = (folder.join("chain.pem"), folder.join("key.pem"));
        std::fs::write(&chain, certificate.pem()).expect("a file");
        std::fs::write(&private, key.serialize_pem()).expect("a file");
        let server = ServerTls::read(&chain, &private, None).expect("a pair");
        std::fs::remove_dir_all(&folder).expect("a folder that can be removed");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate)).expect("a trust anchor");
        let server = server.server_config(&[ALPN_DOT]).expect("settings");
        Side { server, roots: Arc::new(roots) }
    }

    /// Settings of a client with a session store of its own.
    fn client(&self, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(tls::provider());
        let builder = builder.with_protocol_versions(&[version]).expect("a version");
        let mut config = builder.with_root_certificates(Arc::clone(&self.roots)).with_no_client_auth();
        config.alpn_protocols = vec![ALPN_DOT.to_vec()];
        config.resumption = Resumption::in_memory_sessions(8);
        Arc::new(config)
    }
}

/// A client and its server, and the octets on the way.
struct Pair {
    client: ClientConnection,
    server: ServerConnection,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Pair {
    fn new(side: &Side, client: &Arc<ClientConfig>) -> Pair {
        let name = ServerName::try_from("dns.example").expect("a name");
        Pair {
            client: ClientConnection::new(Arc::clone(client), name).expect("a client"),
            server: ServerConnection::new(Arc::clone(&side.server)).expect("a server"),
            to_server: Vec::with_capacity(4096),
            to_client: Vec::with_capacity(4096),
        }
    }

    fn client_step(&mut self) {
        let mut rest = &self.to_client[..];
        while !rest.is_empty() {
            feed(&mut self.client, &mut rest).expect("a flight of the server");
        }
        self.to_client.clear();
        while self.client.wants_write() {
            self.client.write_tls(&mut self.to_server).expect("room");
        }
    }

    fn server_step(&mut self) {
        let mut rest = &self.to_server[..];
        while !rest.is_empty() {
            feed(&mut self.server, &mut rest).expect("a flight of the client");
        }
        self.to_server.clear();
        while self.server.wants_write() {
            self.server.write_tls(&mut self.to_client).expect("room");
        }
    }

    fn shake(&mut self) {
        for _ in 0..4 {
            self.client_step();
            self.server_step();
        }
        assert!(!self.client.is_handshaking() && !self.server.is_handshaking());
    }
}

/// CPU time of this thread in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Server's CPU time for a full and for a resumed handshake, tickets included.
fn handshakes(side: &Side, version: &'static SupportedProtocolVersion) -> [f64; 2] {
    let clients: Vec<_> = (0..HANDSHAKES).map(|_| side.client(version)).collect();
    [HandshakeKind::Full, HandshakeKind::Resumed].map(|kind| {
        let mut pairs: Vec<Pair> = clients.iter().map(|client| Pair::new(side, client)).collect();
        let mut spent = 0.0;
        for _ in 0..4 {
            pairs.iter_mut().for_each(Pair::client_step);
            let begin = cpu_us();
            pairs.iter_mut().for_each(Pair::server_step);
            spent += cpu_us() - begin;
        }
        assert!(
            pairs
                .iter()
                .all(|pair| !pair.server.is_handshaking() && pair.server.handshake_kind() == Some(kind))
        );
        spent / HANDSHAKES as f64
    })
}

/// Server's CPU time to decrypt a question of 60 octets and to encrypt an answer of 100.
fn echo(side: &Side, version: &'static SupportedProtocolVersion) -> f64 {
    let mut pair = Pair::new(side, &side.client(version));
    pair.shake();
    let questions: Vec<Vec<u8>> = (0..MESSAGES)
        .map(|_| {
            let mut record = Vec::with_capacity(100);
            pair.client.writer().write_all(&[1; 60]).expect("room");
            pair.client.write_tls(&mut record).expect("room");
            record
        })
        .collect();
    let (mut read, mut out) = ([0; 512], Vec::with_capacity(256));
    let begin = cpu_us();
    for record in &questions {
        feed(&mut pair.server, &mut &record[..]).expect("a record");
        assert_eq!(pair.server.reader().read(&mut read).expect("a question"), 60);
        pair.server.writer().write_all(&[2; 100]).expect("room");
        out.clear();
        pair.server.write_tls(&mut out).expect("room");
    }
    (cpu_us() - begin) / MESSAGES as f64
}

/// Resident memory of one connection that is idle after some messages.
fn idle(
    side: &Side,
    version: &'static SupportedProtocolVersion,
    messages: usize,
    kept: &mut Vec<Vec<ServerConnection>>,
) -> usize {
    let config = side.client(version);
    let mut servers = Vec::with_capacity(IDLE + 100);
    let connect = || {
        let mut pair = Pair::new(side, &config);
        pair.shake();
        for _ in 0..messages {
            pair.client.writer().write_all(&[1; 60]).expect("room");
            pair.client_step();
            pair.server_step();
            assert_eq!(pair.server.reader().read(&mut [0; 512]).expect("a question"), 60);
            pair.server.writer().write_all(&[2; 100]).expect("room");
            pair.server_step();
        }
        pair.server
    };
    // What the client and the first connections leave behind is reused by the others.
    for _ in 0..100 {
        servers.push(connect());
    }
    let before = resident_octets();
    for _ in 0..IDLE {
        servers.push(connect());
    }
    let octets = (resident_octets() - before) / IDLE;
    kept.push(servers);
    octets
}

fn resident_octets() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("/proc/self/statm");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages");
    pages * PAGE
}
