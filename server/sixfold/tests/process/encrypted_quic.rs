//! A server with DNS over QUIC: an upgrade, and sessions within a fleet.

use crate::client::{Answer, name_of, query};
use crate::daemon::{PREFIX, Setup, TIMEOUT, wait_until};
use crate::encrypted_service::{Listeners, NAME, Pair, trusting};
use crate::service::Service;
use crate::upstream::{Behavior, Upstream};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, TransportErrorCode};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use wire::Type;

/// A client with a UDP socket and a cache of sessions.
pub struct QuicClient {
    runtime: Runtime,
    endpoint: Endpoint,
}

impl QuicClient {
    fn new(trusted: &Pair) -> QuicClient {
        QuicClient::from(Ipv4Addr::LOCALHOST.into(), trusted)
    }

    /// A client with an address of its own.
    pub fn from(own: IpAddr, trusted: &Pair) -> QuicClient {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut settings = Arc::unwrap_or_clone(trusting(&[trusted], b"doq"));
        settings.enable_early_data = true;
        let settings = QuicClientConfig::try_from(settings).unwrap();
        let mut endpoint = runtime.block_on(async { Endpoint::client((own, 0).into()).unwrap() });
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(settings)));
        QuicClient { runtime, endpoint }
    }

    /// Runs a future, with an outer bound.
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let within = async { tokio::time::timeout(TIMEOUT, future).await };
        self.runtime.block_on(within).expect("in time")
    }

    /// Sends and receives packets for a moment.
    fn go_on(&self) {
        self.run(async { tokio::time::sleep(Duration::from_millis(1)).await });
    }

    /// Closes all connections. A server that stops would wait for acknowledgements of its answers.
    pub fn end(&self) {
        self.endpoint.close(0u32.into(), b"");
        self.run(self.endpoint.wait_idle());
    }

    pub fn connect(&self, server: SocketAddr) -> Result<Connection, ConnectionError> {
        self.run(async { self.endpoint.connect(server, NAME).unwrap().await })
    }

    /// True if there is a session with which data can be sent before the handshake is completed.
    fn may_send_early(&self, server: SocketAddr) -> bool {
        self.run(async { self.endpoint.connect(server, NAME).unwrap().into_0rtt().is_ok() })
    }

    /// Sends a query for the AAAA records of a name.
    fn send(&self, connection: &Connection, name: &str) -> RecvStream {
        let message = query(0, name, Type::AAAA);
        self.run(async {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            send.write_all(&[&(message.len() as u16).to_be_bytes()[..], &message].concat()).await.unwrap();
            send.finish().unwrap();
            receive
        })
    }

    fn receive(&self, stream: &mut RecvStream) -> Answer {
        Answer::read(&self.run(stream.read_to_end(70_000)).unwrap()[2..])
    }

    pub fn ask(&self, connection: &Connection, name: &str) -> Answer {
        let mut stream = self.send(connection, name);
        self.receive(&mut stream)
    }
}

#[test]
fn an_upgrade_hands_the_quic_listener_over_and_old_connections_end_without_an_error() {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let pair = Pair::new();
    let listeners = Listeners::new(&pair);
    let setup = Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1");
    let service = Service::start(listeners.add_quic_to(setup));
    let (old, idle, new) = (QuicClient::new(&pair), QuicClient::new(&pair), QuicClient::new(&pair));
    let connection = old.connect(listeners.doq).unwrap();
    let mut held = old.send(&connection, &name_of(1));
    let idle_connection = idle.connect(listeners.doq).unwrap();
    wait_until("it is asked", || {
        old.go_on();
        upstream.asked(&name_of(1), Type::AAAA) > 0
    });
    let before = service.pid();
    assert_ne!(service.upgrade(), before);
    let closed = |client: &QuicClient, connection: &Connection| match client.run(connection.closed()) {
        ConnectionError::ApplicationClosed(close) => u64::from(close.error_code),
        other => panic!("closed by {other}"),
    };
    assert_eq!(closed(&idle, &idle_connection), 0, "DOQ_NO_ERROR");
    // The old process refuses an attempt that it has read before it knew of its successor.
    let mut late = None;
    wait_until("the new process takes a connection", || {
        late = new.connect(listeners.doq).ok();
        late.is_some()
    });
    let late = late.unwrap();
    assert_eq!(new.ask(&late, "localhost").addresses.len(), 1);
    assert_eq!(service.server.stat("queries_total{transport=\"quic\",family=\"ipv4\"}"), 1.0);
    upstream.release();
    assert_eq!(old.receive(&mut held).addresses, [crate::client::embedded(PREFIX, 1)]);
    assert_eq!(closed(&old, &connection), 0, "DOQ_NO_ERROR");
    wait_until("the old process has ended", || !service.server.process.is_running());
    let log = service.server.process.log();
    assert!(log.contains("0 connections cut, 0 queries left"), "{log}");
    assert_eq!(new.ask(&late, &name_of(2)).addresses, [crate::client::embedded(PREFIX, 2)]);
    new.end();
    service.stop();
}

#[test]
fn quic_servers_with_one_ticket_secret_resume_each_others_sessions_and_others_do_not() {
    let pair = Pair::new();
    // Only a server that resumes the session is trusted with another certificate than the first one's.
    let servers = [(&pair, Some(7)), (&Pair::new(), Some(7)), (&Pair::new(), Some(8)), (&pair, None)].map(
        |(pair, secret)| {
            let listeners = Listeners::new(pair);
            let mut setup = listeners.add_quic_to(Setup::answering());
            if let Some(octet) = secret {
                let file = listeners.write_secret("tickets", &[octet; 32]);
                setup = setup.line(&format!("tls.ticket-secret-file = \"{}\"", file.display()));
            }
            (setup.start(), listeners)
        },
    );
    let [first, second, other, alone] = [0, 1, 2, 3].map(|number: usize| servers[number].1.doq);
    let clients = [QuicClient::new(&pair), QuicClient::new(&pair)];
    let [client, later] = &clients;
    for server in [first, second, second] {
        let connection = client.connect(server).expect("the session is resumed");
        // The tickets come with the first packets after the handshake; an exchange shows that they are there.
        assert_eq!(client.ask(&connection, &name_of(1)).addresses, [crate::client::embedded(PREFIX, 1)]);
        assert!(!client.may_send_early(first), "with tickets there is no 0-RTT");
        client.ask(&client.connect(first).unwrap(), &name_of(1));
    }
    match client.connect(other) {
        // decrypt_error: a full handshake, with a certificate of the trusted name that the trusted key has not signed.
        Err(ConnectionError::TransportError(error)) => {
            assert_eq!(error.code, TransportErrorCode::crypto(51), "{error}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a server with another secret has resumed the session"),
    }
    later.ask(&later.connect(alone).unwrap(), &name_of(1));
    assert!(later.may_send_early(alone), "without a secret there is 0-RTT");
    clients.iter().for_each(QuicClient::end);
    servers.into_iter().for_each(|(server, _)| server.process.stop());
}
