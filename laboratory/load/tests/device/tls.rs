//! A scripted device over TLS, with a certificate of its own for `dns.test`.

use crate::device::stream::Act;
use crate::device::{self, Query, one_at_a_time, order};
use kit::listening::{Connection, Listening};
use kit::message::take_frame;
use measure::order::{Load, Transport};
use measure::outcome::{Connections, Outcome, TlsConnections};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::StoresServerSessions;
use rustls::{ServerConfig, ServerConnection};
use sixfold_load::{LoadError, LoadOptions, TlsOptions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tls::records::{Fed, feed};

/// Number of the next device, for the names of the files.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Settings of a server with a new certificate, and the PEM file of it.
pub fn settings(
    versions: &[&'static rustls::SupportedProtocolVersion],
    protocol: &[u8],
) -> (ServerConfig, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec!["dns.test".to_owned()]).unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let ca = std::env::temp_dir().join(format!("sixfold-load-{}-{number}.pem", std::process::id()));
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    (config, ca)
}

/// Runs a load of 100 queries in a quarter of a second.
pub fn run(
    address: SocketAddr,
    transport: Transport,
    is_cold: bool,
    options: LoadOptions,
) -> Result<Outcome, LoadError> {
    let mut order = Load { transport, timeout_ms: 10_000, ..order(address, 400.0, 250) };
    order.lanes.connection_per_query = is_cold;
    device::run(&order, &options).map(|(outcome, _)| outcome)
}

/// Runs a load of one query at a time.
pub fn resuming(address: SocketAddr, transport: Transport, tls: TlsOptions) -> Outcome {
    let order = Load { transport, ..order(address, 400.0, 250) };
    one_at_a_time(order, &LoadOptions { tls, ..LoadOptions::default() })
}

/// Settings that trust the certificate of a device.
pub fn trusting(ca: &Path) -> TlsOptions {
    TlsOptions { ca: Some(ca.to_owned()), name: Some("dns.test".into()), ..TlsOptions::default() }
}

/// Connections and handshakes of an outcome.
pub fn parts(outcome: &Outcome) -> (&Connections, &TlsConnections) {
    let connections = outcome.connections.as_ref().unwrap();
    (connections, connections.tls.as_ref().unwrap())
}

/// A memory of sessions that has forgotten each of them: tickets are given out, and none is accepted.
#[derive(Debug)]
pub struct Forgetful;

impl StoresServerSessions for Forgetful {
    fn put(&self, _: Vec<u8>, _: Vec<u8>) -> bool {
        true
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// A running device; it stops when this is dropped.
pub struct TlsDevice {
    pub address: SocketAddr,
    /// PEM file of its certificate.
    pub ca: PathBuf,
    _listening: Listening,
}

impl TlsDevice {
    /// A device whose TLS settings are changed by `change`.
    pub fn start(
        change: impl FnOnce(&mut ServerConfig),
        script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static,
    ) -> TlsDevice {
        let (mut config, ca) = settings(rustls::DEFAULT_VERSIONS, b"dot");
        change(&mut config);
        TlsDevice::start_with(config, ca, script)
    }

    /// A device with these settings and the file of its certificate, which is removed in the end.
    pub fn start_with(
        config: ServerConfig,
        ca: PathBuf,
        script: impl Fn(&Query<'_>) -> Vec<Act> + Send + Sync + 'static,
    ) -> TlsDevice {
        let config = Arc::new(config);
        let listening = Listening::start(move |connection| {
            serve(connection, ServerConnection::new(Arc::clone(&config)).unwrap(), &script);
        });
        TlsDevice { address: listening.address, ca, _listening: listening }
    }
}

impl Drop for TlsDevice {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.ca);
    }
}

/// Serves a connection until the client or the script closes it.
fn serve(mut connection: Connection, mut tls: ServerConnection, script: impl Fn(&Query<'_>) -> Vec<Act>) {
    let (mut waiting, mut buffer) = (Vec::new(), [0; 16_384]);
    while let Ok(octets @ 1..) = connection.read(&mut buffer) {
        let mut records = &buffer[..octets];
        let mut checked = Ok(Fed::Some);
        while !records.is_empty() && checked.is_ok() {
            checked = feed(&mut tls, &mut records);
        }
        if let Some(octets) = tls.early_data().and_then(|mut early| early.read(&mut buffer).ok()) {
            waiting.extend(&buffer[..octets]);
        }
        while let Ok(octets) = tls.reader().read(&mut buffer)
            && octets > 0
        {
            waiting.extend(&buffer[..octets]);
        }
        let goes_on = answer(&mut waiting, &mut tls, &script);
        while tls.wants_write() {
            if tls.write_tls(&mut connection).is_err() {
                return;
            }
        }
        if checked.is_err() || !goes_on {
            return;
        }
    }
}

/// Answers the whole queries that wait. Returns false if the script closes the connection.
fn answer(
    waiting: &mut Vec<u8>,
    tls: &mut ServerConnection,
    script: impl Fn(&Query<'_>) -> Vec<Act>,
) -> bool {
    while let Some(message) = take_frame(waiting) {
        for act in script(&Query::of(&message)) {
            match act {
                Act::Octets(octets) => tls.writer().write_all(&octets).unwrap(),
                Act::Wait(time) => std::thread::sleep(time),
                Act::Keep(..) | Act::Close | Act::Reset => return false,
            }
        }
    }
    true
}
