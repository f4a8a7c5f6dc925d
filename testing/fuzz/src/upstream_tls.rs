//! Octets that come over a connection to an upstream with TLS, in pieces of any size: records of the upstream, the end of its session,
//! and anything else, also behind the end. Reading ends, and what is decrypted is what the upstream wrote, from its beginning on.
//!
//! Keys are drawn at random, as in the server: an input is a sequence of steps, and its octets differ from run to run.

use crate::input::InputReader;
use datapath::limits::TLS_READ_OCTETS;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig, ServerConnection,
};
use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};
use tls::records::{Fed, decrypt, feed};

/// Steps of an input at most.
const STEPS: usize = 40;

/// Octets that rustls reads of a piece at once.
const READ: usize = 4096;

type Settings = (Arc<ClientConfig>, Arc<ServerConfig>);

/// Settings of both sides, for TLS 1.3 and 1.2.
static SETTINGS: LazyLock<[Settings; 2]> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["dns.example".to_owned()]).expect("a certificate");
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    [&TLS13, &TLS12].map(|version| {
        let client = ClientConfig::builder_with_provider(tls::provider()).with_protocol_versions(&[version]);
        let client = client.expect("a version").with_root_certificates(roots.clone()).with_no_client_auth();
        let server = ServerConfig::builder_with_provider(tls::provider()).with_protocol_versions(&[version]);
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let server = server.expect("a version").with_no_client_auth();
        let server = server.with_single_cert(vec![certificate.clone()], key).expect("a pair");
        (Arc::new(client), Arc::new(server))
    })
});

/// Tests one input.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let kind = reader.octet();
    let (client, server) = &SETTINGS[usize::from(kind & 1)];
    let name = ServerName::try_from("dns.example").expect("a name");
    let mut client = ClientConnection::new(client.clone(), name).expect("a client");
    let mut server = ServerConnection::new(server.clone()).expect("a server");
    let is_connected = kind & 2 == 0;
    if is_connected {
        shake(&mut client, &mut server);
    }
    let cuts: Vec<usize> =
        reader.length_prefixed().iter().map(|&octet| 1 + usize::from(octet) * 16).collect();
    let (stream, written) = script(&mut server, &mut reader);
    let read = receive(&mut client, &stream, &cuts, kind & 4 == 0);
    assert!(written.starts_with(&read), "octets that the upstream has not written");
    assert!(is_connected || read.is_empty(), "octets before the end of the handshake");
}

/// The handshake, with the tickets that follow it.
fn shake(client: &mut ClientConnection, server: &mut ServerConnection) {
    fn pass<From, To>(from: &mut ConnectionCommon<From>, to: &mut ConnectionCommon<To>) {
        let octets = records(from);
        let mut rest = &octets[..];
        while !rest.is_empty() {
            feed(to, &mut rest).expect("a handshake without faults");
        }
    }
    for _ in 0..4 {
        pass(client, server);
        pass(server, client);
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
}

fn records<Side>(from: &mut ConnectionCommon<Side>) -> Vec<u8> {
    let mut octets = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut octets).expect("room");
    }
    octets
}

/// What comes over the connection, and what the upstream has written in its session.
fn script(server: &mut ServerConnection, reader: &mut InputReader<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mut stream, mut written) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        if reader.is_empty() {
            break;
        }
        match reader.octet() % 8 {
            0..3 => {
                // Without a session it keeps them.
                let octets = reader.length_prefixed();
                let taken = server.writer().write(octets).unwrap_or(0);
                written.extend_from_slice(&octets[..taken]);
            }
            3 => {
                let octets = vec![reader.octet(); usize::from(reader.next_u16()) % 20_000];
                let taken = server.writer().write(&octets).unwrap_or(0);
                written.extend_from_slice(&octets[..taken]);
            }
            4 => server.send_close_notify(),
            5 => stream.extend_from_slice(reader.length_prefixed()),
            6 => stream.extend(vec![reader.octet(); usize::from(reader.next_u16()) % 20_000]),
            _ => {
                let at = usize::from(reader.next_u16()) % stream.len().max(1);
                if let Some(octet) = stream.get_mut(at) {
                    *octet ^= reader.octet();
                }
            }
        }
        stream.extend(records(server));
    }
    (stream, written)
}

/// Reads a stream in pieces, as an upstream's link does or step by step. Returns the decrypted octets.
fn receive(client: &mut ClientConnection, stream: &[u8], cuts: &[usize], as_link: bool) -> Vec<u8> {
    let mut read = Vec::new();
    let mut room = vec![0; TLS_READ_OCTETS + (18 << 10)];
    let mut cuts = cuts.iter().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let octets = cuts.next().copied().unwrap_or(TLS_READ_OCTETS).min(TLS_READ_OCTETS).min(rest.len());
        let (piece, others) = rest.split_at(octets);
        rest = others;
        let fed = if as_link {
            decrypt(client, piece, &mut room).map(|(filled, fed)| {
                read.extend_from_slice(&room[..filled]);
                fed
            })
        } else {
            step_by_step(client, piece, &mut read)
        };
        if !matches!(fed, Ok(Fed::Some)) {
            break;
        }
    }
    read
}

fn step_by_step(
    client: &mut ClientConnection,
    mut piece: &[u8],
    read: &mut Vec<u8>,
) -> Result<Fed, rustls::Error> {
    let most = piece.len() / READ + 2;
    for _ in 0..most {
        if piece.is_empty() {
            return Ok(Fed::Some);
        }
        let before = piece.len();
        let fed = feed(client, &mut piece)?;
        assert!(piece.len() < before);
        // The end of the data that are there now is an error.
        let _ = client.reader().read_to_end(read);
        if fed == Fed::Over {
            return Ok(fed);
        }
    }
    assert!(piece.is_empty(), "more than {most} steps");
    Ok(Fed::Some)
}
