//! Connections and queries over HTTPS: HTTP/2 (RFC 9113) over TLS (RFC 8484 section 5.2).

use crate::limits;
use crate::multiplexed::event::{Established, Event, Failure, Lost, Reply, Reporter};
use crate::multiplexed::handle::{Body, Handle, Query};
use crate::multiplexed::metered::MeteredStream;
use crate::request_form::{RequestForm, has_message};
use crate::stream::Fault;
use crate::tls_client::TlsClient;
use h2::RecvStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use http::StatusCode;
use std::io::{self, Cursor};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

type Http2 = Connection<TlsStream<MeteredStream>, Body>;

/// Opens a connection from a socket that is connecting, and serves it until it is over.
pub async fn run(stream: std::net::TcpStream, tls: TlsClient, token: u64, reporter: Reporter) {
    match open(stream, &tls, &reporter).await {
        Ok((requests, connection, established)) => {
            reporter.report(Event::Established(token, established, Some(Handle::Https(requests))));
            let fault = match connection.await {
                Ok(()) => Fault::Closed,
                Err(error) => fault_of(&error),
            };
            reporter.report(Event::Over(token, fault));
        }
        Err(failure) => reporter.report(Event::Refused(token, failure)),
    }
}

async fn open(
    stream: std::net::TcpStream,
    tls: &TlsClient,
    reporter: &Reporter,
) -> Result<(SendRequest<Body>, Http2, Established), Failure> {
    let of_tcp = |error: io::Error| Failure { fault: Fault::of(&error), reason: None };
    let stream = TcpStream::from_std(stream).map_err(of_tcp)?;
    stream.writable().await.map_err(of_tcp)?;
    if let Some(error) = stream.take_error().map_err(of_tcp)? {
        return Err(of_tcp(error));
    }
    let connected = reporter.now();
    let stream = MeteredStream::new(stream, reporter.clone());
    let stream = TlsConnector::from(tls.config().clone()).connect(tls.name().clone(), stream);
    let stream = stream.await.map_err(|error| of_tls(&error))?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        let reason = Some("the server did not choose HTTP/2 (ALPN h2)".to_owned());
        return Err(Failure { fault: Fault::Tls, reason });
    }
    let at = reporter.now();
    let handshake = Builder::new()
        .initial_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .enable_push(false)
        .handshake(stream);
    let (requests, connection) = handshake
        .await
        .map_err(|error| Failure { fault: fault_of(&error), reason: Some(error.to_string()) })?;
    Ok((requests, connection, Established { connected: Some(connected), at, early_data: None }))
}

/// The failure of a handshake of TLS.
fn of_tls(error: &io::Error) -> Failure {
    let fault = match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::Closed,
        _ => Fault::of_open(error),
    };
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    Failure { fault, reason: Some(tls.map_or_else(|| fault.name().to_owned(), rustls::Error::to_string)) }
}

/// Sends a query on a stream of its own. Returns false if the connection takes no more; else a task waits for the reply, for at most
/// `limit`. Then the query is lost.
pub fn ask(
    requests: &SendRequest<Body>,
    form: &RequestForm,
    query: &Query,
    limit: Duration,
    reporter: &Reporter,
) -> bool {
    let (request, body) = form.request(query.octets.clone());
    // Each clone may have one stream that waits for its turn.
    let mut requests = requests.clone();
    let Ok((response, mut stream)) = requests.send_request(request, body.is_none()) else { return false };
    if let Some(body) = body
        && stream.send_data(Cursor::new(body), true).is_err()
    {
        return false;
    }
    let (token, k, reporter) = (query.token, query.k, reporter.clone());
    tokio::spawn(async move {
        let event = match timeout(limit, answer(response)).await {
            Ok(Ok(message)) => Event::Reply(token, Reply { k, at: reporter.now(), message }),
            Ok(Err((fault, status))) => Event::Failed(Lost { token, k, fault: Some(fault), status }),
            Err(_) => Event::Failed(Lost { token, k, fault: None, status: None }),
        };
        reporter.report(event);
    });
    true
}

/// The message of a response, or the reason why it has none.
async fn answer(response: ResponseFuture) -> Result<Vec<u8>, (Fault, Option<u16>)> {
    let lost = |error: h2::Error| (fault_of(&error), None);
    let response = response.await.map_err(lost)?;
    let status = response.status();
    let is_message = has_message(&response);
    // The body of an error is read, too: a stream that the client resets looks like an attack to some servers.
    let message = read(response.into_body()).await.map_err(lost)?;
    match status {
        StatusCode::OK if is_message => message.ok_or((Fault::Stream, None)),
        StatusCode::OK => Err((Fault::ContentType, None)),
        status => Err((Fault::Status, Some(status.as_u16()))),
    }
}

/// Reads a body; `None` if it is longer than a message can be.
async fn read(mut body: RecvStream) -> Result<Option<Vec<u8>>, h2::Error> {
    let mut message = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        if message.len() + part.len() > limits::TCP_SIZE {
            return Ok(None);
        }
        message.extend_from_slice(&part);
        // The octets are taken, so the server may send more.
        let _ = body.flow_control().release_capacity(part.len());
    }
    Ok(Some(message))
}

/// The fault of an error of HTTP/2.
fn fault_of(error: &h2::Error) -> Fault {
    match error.get_io() {
        Some(error) if error.kind() == io::ErrorKind::ConnectionReset => Fault::Reset,
        // The end of the connection with open streams.
        Some(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => {
            Fault::Closed
        }
        Some(error) => Fault::of_open(error),
        None if error.is_go_away() && error.is_remote() => Fault::Closed,
        None => Fault::Stream,
    }
}
