//! A service for DNS over QUIC, and a client for it: quinn, driven from the test's thread.

use crate::fixture::*;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig, VarInt,
};
use rustls::pki_types::CertificateDer;
use sixfold_transport::{BoundStreams, Limits, Options, quic};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Running streams with a socket for QUIC.
pub struct QuicService {
    service: Service,
    pub quic: SocketAddr,
    certificate: CertificateDer<'static>,
}

impl Deref for QuicService {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl QuicService {
    pub fn new(limits: Limits) -> QuicService {
        let workers = Arc::new(FakeWorkers::default());
        let (certificate, settings) = server_settings(&[]);
        let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let bound =
            BoundStreams::bind(&[listen], Vec::new(), Options { limits, ..Options::default() }).unwrap();
        let bound = bound.with_quic(&[listen], Vec::new(), quic::Service::new(Arc::new(settings))).unwrap();
        let (address, quic) = (bound.local_addresses().unwrap()[0], bound.quic_addresses().unwrap()[0]);
        let streams = bound.start(workers.clone(), 1).unwrap();
        QuicService { service: Service { workers, streams, address }, quic, certificate }
    }

    /// A service that answers each query with itself and QR set.
    pub fn echo(limits: Limits) -> QuicService {
        let QuicService { service, quic, certificate } = QuicService::new(limits);
        QuicService { service: service.echo(), quic, certificate }
    }

    pub fn client(&self) -> Client {
        Client::new(self.quic, &self.certificate, quic::ALPN)
    }

    /// A client that lets the server send so many octets ahead in each stream.
    pub fn client_with_window(&self, octets: u32) -> Client {
        Client::with_window(self.quic, &self.certificate, quic::ALPN, octets)
    }

    /// A client that offers another protocol.
    pub fn client_of(&self, protocol: &[u8]) -> Client {
        Client::new(self.quic, &self.certificate, protocol)
    }
}

/// A client with a UDP socket and a TLS session cache of its own. It has no idle timeout but that of the server.
pub struct Client {
    pub runtime: Runtime,
    pub endpoint: Endpoint,
    server: SocketAddr,
}

impl Client {
    pub fn new(server: SocketAddr, certificate: &CertificateDer<'static>, protocol: &[u8]) -> Client {
        Client::with_window(server, certificate, protocol, 70_000)
    }

    fn with_window(
        server: SocketAddr,
        certificate: &CertificateDer<'static>,
        protocol: &[u8],
        window: u32,
    ) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut settings = client_settings(certificate, &[protocol]);
        settings.enable_early_data = true;
        let settings = Arc::new(QuicClientConfig::try_from(settings).unwrap());
        let mut endpoint = {
            let _within = runtime.enter();
            Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
        };
        let mut settings = ClientConfig::new(settings);
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(None).stream_receive_window(window.into());
        settings.transport_config(Arc::new(transport));
        endpoint.set_default_client_config(settings);
        Client { runtime, endpoint, server }
    }

    /// Runs a future, with an outer bound.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let within = async { tokio::time::timeout(TEST_TIMEOUT, future).await };
        self.runtime.block_on(within).expect("in time")
    }

    /// Waits until a condition holds. The packets of the client leave meanwhile.
    pub fn eventually(&self, mut holds: impl FnMut() -> bool) {
        self.run(async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }

    /// Begins to connect to an address.
    pub fn connecting(&self, server: SocketAddr) -> quinn::Connecting {
        let _within = self.runtime.enter();
        self.endpoint.connect(server, "dns.example").unwrap()
    }

    pub fn try_connect(&self) -> Result<Connection, ConnectionError> {
        let connecting = self.connecting(self.server);
        self.run(connecting)
    }

    pub fn connect(&self) -> Connection {
        self.try_connect().unwrap()
    }

    /// Opens a stream and sends these octets.
    pub fn open(&self, connection: &Connection, octets: &[u8]) -> (SendStream, RecvStream) {
        self.run(async {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            send.write_all(octets).await.unwrap();
            (send, receive)
        })
    }

    /// Opens a stream with a query, and ends its sending side.
    pub fn ask(&self, connection: &Connection, query: &[u8]) -> (SendStream, RecvStream) {
        let (mut send, receive) = self.open(connection, &framed(query));
        send.finish().unwrap();
        (send, receive)
    }

    /// Like [`Client::ask`], unless the connection has ended.
    pub fn try_ask(&self, connection: &Connection, query: &[u8]) -> Option<RecvStream> {
        self.run(async {
            let (mut send, receive) = connection.open_bi().await.ok()?;
            send.write_all(&framed(query)).await.ok()?;
            send.finish().ok()?;
            Some(receive)
        })
    }

    /// Reads an answer and the end of its stream.
    pub fn answer(&self, receive: &mut RecvStream) -> Vec<u8> {
        let octets = self.run(receive.read_to_end(70_000)).unwrap();
        assert_eq!(usize::from(u16::from_be_bytes([octets[0], octets[1]])), octets.len() - 2);
        octets[2..].to_vec()
    }

    /// The error code with which the server closes a connection.
    pub fn close_code(&self, connection: &Connection) -> VarInt {
        match self.run(connection.closed()) {
            ConnectionError::ApplicationClosed(close) => close.error_code,
            other => panic!("closed by {other}"),
        }
    }
}
