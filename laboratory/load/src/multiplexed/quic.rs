//! Connections and queries over QUIC (RFC 9250): one stream for each query (section 4.2), message ID 0 (section 4.2.1).

use crate::limits;
use crate::multiplexed::event::{Established, Event, Failure, Lost, Reply, Reporter};
use crate::multiplexed::handle::{Handle, Query};
use crate::plan::Plan;
use crate::stream::Fault;
use crate::stream_order::lines;
use crate::tls_client::TlsClient;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Connecting, Connection, ConnectionError, Endpoint, EndpointConfig, ReadError,
    ReadToEndError, TokioRuntime, TransportConfig, TransportErrorCode, WriteError, ZeroRttAccepted,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// The UDP ports of a thread, and the settings of its connections.
pub struct Endpoints {
    endpoints: Vec<Endpoint>,
    config: ClientConfig,
    name: String,
    server: SocketAddr,
}

impl Endpoints {
    /// A port for each kept connection; with a connection for each query, as many ports as queries over UDP would have.
    ///
    /// # Errors
    ///
    /// A UDP socket cannot be bound to a source address, or the settings of TLS lack TLS 1.3, which QUIC needs.
    pub fn new(plan: &Plan, tls: &TlsClient) -> io::Result<Endpoints> {
        let order = &plan.order;
        let any: IpAddr =
            if order.server.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let sources = if order.lanes.sources.is_empty() { &[any][..] } else { &order.lanes.sources };
        let count = match order.has_connection_per_query() {
            true => usize::from(order.lanes.ports) * sources.len(),
            false => lines(order).unwrap_or(1),
        };
        let endpoints = (0..count).map(|index| endpoint(sources[index % sources.len()]));
        let endpoints = endpoints.collect::<io::Result<_>>()?;
        let crypto = QuicClientConfig::try_from(Arc::clone(tls.config())).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        // DNS messages are short, so a stub resolver has no use for larger packets; their probes would count as the queries' packets.
        transport.mtu_discovery_config(None);
        config.transport_config(Arc::new(transport));
        let name = tls.name().to_str().into_owned();
        Ok(Endpoints { endpoints, config, name, server: order.server })
    }

    /// Begins a connection from the port whose turn it is.
    ///
    /// # Errors
    ///
    /// The server's address or name cannot be used for a connection, or the port has no more connection IDs. A server that does not
    /// answer is reported later.
    pub fn connect(&self, number: u64) -> io::Result<Connecting> {
        let endpoint = &self.endpoints[(number % self.endpoints.len() as u64) as usize];
        endpoint.connect_with(self.config.clone(), self.server, &self.name).map_err(io::Error::other)
    }
}

/// A port at a source address.
fn endpoint(source: IpAddr) -> io::Result<Endpoint> {
    let address = SocketAddr::new(source, 0);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // The kernel gives as much as the host allows.
    let _ = socket.set_recv_buffer_size(limits::QUIC_BUFFER);
    socket.bind(&SockAddr::from(address))?;
    Endpoint::new(EndpointConfig::default(), None, socket.into(), Arc::new(TokioRuntime))
}

/// Serves a connection without early data until it is over.
pub async fn run(connecting: Connecting, token: u64, reporter: Reporter) {
    match connecting.await {
        Ok(connection) => {
            let established = Established { connected: None, at: reporter.now(), early_data: None };
            let handle = Handle::Quic(connection.clone());
            reporter.report(Event::Established(token, established, Some(handle)));
            end(connection, token, &reporter).await;
        }
        Err(error) => reporter.report(Event::Refused(token, failure(&error))),
    }
}

/// Serves a connection whose first query left as early data until it is over.
pub async fn run_early(connection: Connection, accepted: ZeroRttAccepted, token: u64, reporter: Reporter) {
    let accepted = accepted.await;
    if let Some(error) = connection.close_reason() {
        return reporter.report(Event::Refused(token, failure(&error)));
    }
    let established = Established { connected: None, at: reporter.now(), early_data: Some(accepted) };
    reporter.report(Event::Established(token, established, None));
    end(connection, token, &reporter).await;
}

/// Waits for the end of a connection, and reports it with the packets.
async fn end(connection: Connection, token: u64, reporter: &Reporter) {
    let error = connection.closed().await;
    // The last packet tells the server. It leaves before this task runs again.
    tokio::task::yield_now().await;
    let (sent, received) = (connection.stats().udp_tx, connection.stats().udp_rx);
    reporter.report(Event::Datagrams((sent.datagrams, sent.bytes), (received.datagrams, received.bytes)));
    reporter.report(Event::Over(token, fault_of(&error)));
}

/// Sends a query on a stream of its own, and waits for the reply in a task, for at most `limit`. Then the query is lost.
pub fn ask(connection: &Connection, query: Query, limit: Duration, reporter: &Reporter) {
    let (connection, reporter) = (connection.clone(), reporter.clone());
    let Query { token, k, octets } = query;
    tokio::spawn(async move {
        let event = match timeout(limit, answer(&connection, &octets, &reporter)).await {
            Ok(Ok(message)) => Event::Reply(token, Reply { k, at: reporter.now(), message }),
            Ok(Err(fault)) => Event::Failed(Lost { token, k, fault: Some(fault), status: None }),
            Err(_) => Event::Failed(Lost { token, k, fault: None, status: None }),
        };
        reporter.report(event);
    });
}

/// The reply to a query. Early data that the server refused is sent again.
async fn answer(connection: &Connection, query: &[u8], reporter: &Reporter) -> Result<Vec<u8>, Fault> {
    let mut framed = Vec::with_capacity(2 + query.len());
    framed.extend((query.len() as u16).to_be_bytes());
    framed.extend(query);
    let stream = match exchange(connection, &framed, reporter).await {
        Err(Refusal::EarlyData) => exchange(connection, &framed, reporter).await,
        stream => stream,
    };
    let stream = stream.map_err(|refusal| match refusal {
        Refusal::EarlyData => Fault::Stream,
        Refusal::Fault(fault) => fault,
    })?;
    match stream.split_first_chunk::<2>() {
        Some((length, message)) if usize::from(u16::from_be_bytes(*length)) == message.len() => {
            Ok(message.to_vec())
        }
        _ => Err(Fault::Stream),
    }
}

/// Reason why a stream has no reply.
enum Refusal {
    /// The stream was early data that the server refused.
    EarlyData,
    /// Another fault.
    Fault(Fault),
}

impl From<ConnectionError> for Refusal {
    fn from(error: ConnectionError) -> Refusal {
        Refusal::Fault(fault_of(&error))
    }
}

/// Sends octets on a new stream and reads all octets of the server.
async fn exchange(connection: &Connection, octets: &[u8], reporter: &Reporter) -> Result<Vec<u8>, Refusal> {
    let mut opening = pin!(connection.open_bi());
    let opened = match poll_fn(|context| Poll::Ready(opening.as_mut().poll(context))).await {
        Poll::Ready(opened) => opened?,
        Poll::Pending => {
            reporter.report(Event::Waited(1));
            opening.await?
        }
    };
    let (mut sending, mut receiving) = opened;
    match sending.write_all(octets).await {
        Ok(()) => {}
        Err(WriteError::ZeroRttRejected) => return Err(Refusal::EarlyData),
        Err(WriteError::ConnectionLost(error)) => return Err(error.into()),
        // A server that wants no more of the query may have answered it.
        Err(_) => {}
    }
    // The stream may be stopped already, which the read shows.
    let _ = sending.finish();
    receiving.read_to_end(2 + limits::TCP_SIZE).await.map_err(|error| match error {
        ReadToEndError::Read(ReadError::ZeroRttRejected) => Refusal::EarlyData,
        ReadToEndError::Read(ReadError::ConnectionLost(error)) => error.into(),
        _ => Refusal::Fault(Fault::Stream),
    })
}

/// The failure of a handshake.
fn failure(error: &ConnectionError) -> Failure {
    match error {
        ConnectionError::TimedOut => Failure { fault: Fault::Handshake, reason: None },
        error => Failure { fault: fault_of(error), reason: Some(error.to_string()) },
    }
}

/// The fault of a connection that is over.
fn fault_of(error: &ConnectionError) -> Fault {
    // Errors of TLS are 256 and its alert (RFC 9001 section 4.8).
    let is_tls = |code: TransportErrorCode| (256..512).contains(&u64::from(code));
    match error {
        ConnectionError::TransportError(error) if is_tls(error.code) => Fault::Tls,
        ConnectionError::ConnectionClosed(close) if is_tls(close.error_code) => Fault::Tls,
        ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => Fault::Closed,
        ConnectionError::Reset => Fault::Reset,
        _ => Fault::Unreachable,
    }
}
