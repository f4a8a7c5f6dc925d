//! Certificates, keys and tickets of a server, as its handshakes show them: clients and servers of rustls in memory.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, HandshakeKind};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use sixfold_tls::records::{Fed, feed};
use sixfold_tls::{Error, ServerTls};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

struct Folder(kit::Folder);

impl Folder {
    fn new() -> Folder {
        Folder(kit::Folder::new())
    }

    /// Makes a certificate for a name, valid for some days from now on.
    fn pair(&self, name: &str, days: i64) -> (PathBuf, PathBuf) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["dns.example".to_owned()]).unwrap();
        let now = std::time::SystemTime::now();
        let end = if days < 0 { now - days_of(-days) } else { now + days_of(days) };
        (params.not_before, params.not_after) = ((now - days_of(100)).into(), end.into());
        let certificate = self.0.write(&format!("{name}.pem"), params.self_signed(&key).unwrap().pem());
        (certificate, self.0.write(&format!("{name}.key"), key.serialize_pem()))
    }

    fn secret(&self, octets: &[u8]) -> PathBuf {
        self.0.write(&format!("secret-{}", octets.len()), octets)
    }
}

fn days_of(days: i64) -> Duration {
    Duration::from_secs(86_400 * days.unsigned_abs())
}

fn client(certificate: &Path, versions: &[&'static rustls::SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(sixfold_tls::provider());
    let builder = builder.with_protocol_versions(versions).unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"dot".to_vec()];
    Arc::new(config)
}

/// The octets that one side has to send.
fn written<Side>(from: &mut ConnectionCommon<Side>) -> Vec<u8> {
    let mut octets = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut octets).unwrap();
    }
    octets
}

/// Hands what one side has to send to the other.
fn exchange<From, To>(
    from: &mut ConnectionCommon<From>,
    to: &mut ConnectionCommon<To>,
) -> Result<(), rustls::Error> {
    let octets = written(from);
    let mut rest = &octets[..];
    while !rest.is_empty() {
        feed(to, &mut rest)?;
    }
    Ok(())
}

/// A handshake, with the tickets that follow it.
fn connect(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<HandshakeKind, rustls::Error> {
    let name = ServerName::try_from("dns.example").unwrap();
    let mut client = ClientConnection::new(client.clone(), name).unwrap();
    let mut server = ServerConnection::new(server.clone()).unwrap();
    for _ in 0..6 {
        exchange(&mut client, &mut server)?;
        exchange(&mut server, &mut client)?;
    }
    Ok(server.handshake_kind().unwrap())
}

/// A client and a server after their handshake.
fn connected(folder: &Folder) -> (ClientConnection, ServerConnection) {
    let (certificate, key) = folder.pair("connected", 30);
    let config = ServerTls::read(&certificate, &key, None).unwrap().server_config(&[b"dot"]).unwrap();
    let name = ServerName::try_from("dns.example").unwrap();
    let mut client = ClientConnection::new(client(&certificate, rustls::ALL_VERSIONS), name).unwrap();
    let mut server = ServerConnection::new(config).unwrap();
    for _ in 0..4 {
        exchange(&mut client, &mut server).unwrap();
        exchange(&mut server, &mut client).unwrap();
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    (client, server)
}

#[test]
fn octets_behind_the_end_of_a_session_are_left_out_in_a_bounded_number_of_steps() {
    let folder = Folder::new();
    for piece in [1, 24, 4096, 100_000] {
        let (mut client, mut server) = connected(&folder);
        server.writer().write_all(b"the last").unwrap();
        server.send_close_notify();
        let mut octets = written(&mut server);
        let end = octets.len();
        octets.extend([0; 20_000]);
        let (mut steps, mut last) = (0, Fed::Some);
        for mut records in octets.chunks(piece) {
            while !records.is_empty() {
                let before = records.len();
                last = feed(&mut client, &mut records).unwrap();
                assert!(records.len() < before);
                steps += 1;
            }
        }
        // A step for each piece, or for each 4 KiB that rustls reads of one.
        assert!(steps <= octets.len() / piece + 2 && last == Fed::Over, "{steps} steps, of {end} octets");
        let mut text = String::new();
        client.reader().read_to_string(&mut text).unwrap();
        assert_eq!(text, "the last");
    }
}

#[test]
fn what_is_not_a_record_ends_the_session_with_an_error() {
    let folder = Folder::new();
    let (mut client, _) = connected(&folder);
    assert_eq!(feed(&mut client, &mut &[][..]), Ok(Fed::Some), "nothing is not the end");
    let mut rest = &[0; 100][..];
    assert!(feed(&mut client, &mut rest).is_err());
}

#[test]
fn a_byte_order_mark_before_certificate_and_key_is_skipped() {
    let folder = Folder::new();
    let (certificate, key) = folder.pair("marked", 30);
    for file in [&certificate, &key] {
        let text = std::fs::read(file).unwrap();
        std::fs::write(file, [b"\xef\xbb\xbf", &text[..]].concat()).unwrap();
    }
    assert!(ServerTls::read(&certificate, &key, None).is_ok());
}

#[test]
fn a_bad_pair_is_refused_by_file_with_the_remedy() {
    let folder = Folder::new();
    let (first, second) = (folder.pair("first", 30), folder.pair("second", 30));
    let read = |certificate: &Path, key: &Path| ServerTls::read(certificate, key, None).unwrap_err();
    let mixed = read(&second.0, &first.1);
    assert!(matches!(mixed, Error::Pair(..)) && mixed.to_string().contains("first.key"), "{mixed}");
    let keyless = read(&second.0, &second.0);
    assert!(
        matches!(keyless, Error::Key(..)) && keyless.to_string().ends_with("the file has none"),
        "{keyless}"
    );
    let empty = read(&second.1, &second.1);
    assert!(matches!(empty, Error::Certificate(..)), "{empty}");
    let absent = read(&folder.0.join("absent.pem"), &second.1);
    assert!(absent.to_string().contains("absent.pem: No such file"), "{absent}");
    for error in [mixed, keyless, empty, absent] {
        assert!(!error.remedy().is_empty());
    }
    let short = ServerTls::read(&first.0, &first.1, Some(&folder.secret(&[1; 31]))).unwrap_err();
    assert!(short.to_string().contains("has 31 octets and needs 32"), "{short}");
}

#[test]
fn new_handshakes_show_the_new_certificate() {
    let folder = Folder::new();
    let (first, second) = (folder.pair("first", 30), folder.pair("second", 30));
    let running = ServerTls::read(&first.0, &first.1, None).unwrap();
    let server = running.server_config(&[b"dot"]).unwrap();
    let versions = [&rustls::version::TLS13];
    assert!(connect(&client(&first.0, &versions), &server).is_ok());
    assert!(connect(&client(&second.0, &versions), &server).is_err());
    let read = ServerTls::read(&second.0, &second.1, None).unwrap();
    assert_ne!(running, read);
    running.replace(&read);
    assert_eq!(running, read);
    assert!(connect(&client(&first.0, &versions), &server).is_err());
    assert!(connect(&client(&second.0, &versions), &server).is_ok());
}

//= RFC 7858 section 3.4: requirement 76
#[test]
fn servers_with_one_secret_resume_each_others_sessions_and_others_do_not() {
    let folder = Folder::new();
    let pair = folder.pair("shared", 30);
    let server = |secret: Option<&[u8]>| {
        let secret = secret.map(|octets| folder.secret(octets));
        let tls = ServerTls::read(&pair.0, &pair.1, secret.as_deref()).unwrap();
        tls.server_config(&[b"dot"]).unwrap()
    };
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let (one, two) = (server(Some(&[7; 64])), server(Some(&[7; 64])));
        let (other, random) = (server(Some(&[8; 40])), server(None));
        let client = client(&pair.0, &[version]);
        assert_eq!(connect(&client, &one), Ok(HandshakeKind::Full));
        assert_eq!(connect(&client, &two), Ok(HandshakeKind::Resumed), "{version:?}");
        assert_eq!(connect(&client, &other), Ok(HandshakeKind::Full), "{version:?}");
        assert_eq!(connect(&client, &random), Ok(HandshakeKind::Full), "{version:?}");
        assert_eq!(connect(&client, &random), Ok(HandshakeKind::Resumed), "{version:?}");
    }
}

#[test]
fn a_session_that_is_resumed_takes_no_early_data() {
    let folder = Folder::new();
    let pair = folder.pair("early", 30);
    let server = ServerTls::read(&pair.0, &pair.1, None).unwrap().server_config(&[b"dot"]).unwrap();
    let mut config = Arc::unwrap_or_clone(client(&pair.0, &[&rustls::version::TLS13]));
    config.enable_early_data = true;
    let config = Arc::new(config);
    assert_eq!(connect(&config, &server), Ok(HandshakeKind::Full));
    assert_eq!(connect(&config, &server), Ok(HandshakeKind::Resumed));
    let name = ServerName::try_from("dns.example").unwrap();
    let mut resuming = ClientConnection::new(config.clone(), name).unwrap();
    assert!(resuming.early_data().is_none(), "the ticket allows no early data");
}

#[test]
fn a_certificate_near_its_end_gives_a_warning() {
    let folder = Folder::new();
    let warning = |name: &str, days: i64| {
        let pair = folder.pair(name, days);
        ServerTls::read(&pair.0, &pair.1, None).unwrap().warning()
    };
    assert_eq!(warning("long", 30), None);
    assert!(warning("soon", 1).unwrap().starts_with("expires in 23 hours"));
    assert!(warning("days", 13).unwrap().starts_with("expires in 12 days"));
    assert!(warning("past", -2).unwrap().starts_with("has expired"));
}

#[test]
fn a_certificate_is_for_the_names_that_it_has() {
    let folder = Folder::new();
    let pair = folder.pair("names", 30);
    let tls = ServerTls::read(&pair.0, &pair.1, None).unwrap();
    assert!(tls.is_for(&ServerName::try_from("dns.example").unwrap()));
    assert!(!tls.is_for(&ServerName::try_from("other.example").unwrap()));
}
