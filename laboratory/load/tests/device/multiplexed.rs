//! A scripted device over HTTPS (h2) or QUIC (quinn), with a runtime in a thread of its own: both libraries own their sockets, so it is
//! no server of the kit.

use crate::device::Query;
use crate::device::tls::settings;
use h2::server::SendResponse;
use http::{Request, Response};
use measure::order::Transport;
use quinn::crypto::rustls::QuicServerConfig;
use rustls::ServerConfig;
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// Answer of the device to a query.
pub enum Answer {
    /// This message.
    Message(Vec<u8>),
    /// An HTTP status with a text.
    Status(u16),
    /// Status 200 with this media type.
    Kind(&'static str),
    /// A reset of the stream.
    Reset,
    /// None.
    Silence,
    /// The end of the connection.
    Close,
}

/// The right reply.
pub fn right(query: &Query<'_>) -> Answer {
    Answer::Message(query.right())
}

type Script = Arc<dyn Fn(&Query<'_>) -> Answer + Send + Sync>;

/// A running device; it stops when this is dropped.
pub struct MultiplexedDevice {
    pub address: SocketAddr,
    /// PEM file of its certificate.
    pub ca: PathBuf,
    /// Requests with the method GET.
    pub gets: Arc<AtomicU64>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl MultiplexedDevice {
    /// A device whose TLS settings are changed by `change`.
    pub fn start(
        transport: Transport,
        change: impl FnOnce(&mut ServerConfig),
        script: impl Fn(&Query<'_>) -> Answer + Send + Sync + 'static,
    ) -> MultiplexedDevice {
        let protocol: &[u8] = if transport == Transport::Https { b"h2" } else { b"doq" };
        let (mut config, ca) = settings(rustls::DEFAULT_VERSIONS, protocol);
        change(&mut config);
        let (stop, gets, script) =
            (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)), Arc::new(script) as Script);
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&gets));
        let (sending, receiving) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                if transport == Transport::Https {
                    let listener = TcpListener::bind(any).await.unwrap();
                    sending.send(listener.local_addr().unwrap()).unwrap();
                    tokio::spawn(accept_https(
                        listener,
                        TlsAcceptor::from(Arc::new(config)),
                        script,
                        counted,
                    ));
                } else {
                    let crypto = QuicServerConfig::try_from(Arc::new(config)).unwrap();
                    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
                    let endpoint = quinn::Endpoint::server(config, any).unwrap();
                    sending.send(endpoint.local_addr().unwrap()).unwrap();
                    tokio::spawn(accept_quic(endpoint, script));
                }
                stopped.notified().await;
            });
        });
        MultiplexedDevice { address: receiving.recv().unwrap(), ca, gets, stop, thread: Some(thread) }
    }
}

impl Drop for MultiplexedDevice {
    fn drop(&mut self) {
        self.stop.notify_one();
        let _ = std::fs::remove_file(&self.ca);
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            assert!(std::thread::panicking() || outcome.is_ok(), "the device panicked");
        }
    }
}

/// The script's answer to a message. The ID of each query is 0.
fn answer(script: &Script, message: &[u8]) -> Answer {
    assert_eq!(message[..2], [0, 0]);
    script(&Query::of(message))
}

async fn accept_https(listener: TcpListener, acceptor: TlsAcceptor, script: Script, gets: Arc<AtomicU64>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve_https(stream, acceptor.clone(), Arc::clone(&script), Arc::clone(&gets)));
    }
}

async fn serve_https(stream: TcpStream, acceptor: TlsAcceptor, script: Script, gets: Arc<AtomicU64>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let handshake = h2::server::Builder::new().handshake::<_, Cursor<Vec<u8>>>(stream);
    let Ok(mut connection) = handshake.await else { return };
    let close = Arc::new(Notify::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = close.notified() => return,
        };
        let Some(Ok((request, respond))) = accepted else { return };
        gets.fetch_add(u64::from(request.method() == http::Method::GET), Ordering::Relaxed);
        let (script, close) = (Arc::clone(&script), Arc::clone(&close));
        tokio::spawn(async move {
            let message = query_of(request).await;
            respond_https(respond, answer(&script, &message), &close).await;
        });
    }
}

/// The query of a request. Its form is that of RFC 8484.
async fn query_of(request: Request<h2::RecvStream>) -> Vec<u8> {
    assert_eq!(request.uri().path(), "/dns-query");
    assert_eq!(request.headers()["accept"], "application/dns-message");
    if let Some(text) = request.uri().query() {
        return data_encoding::BASE64URL_NOPAD.decode(text.strip_prefix("dns=").unwrap().as_bytes()).unwrap();
    }
    assert_eq!(request.headers()["content-type"], "application/dns-message");
    let (mut body, mut message) = (request.into_body(), Vec::new());
    while let Some(Ok(part)) = body.data().await {
        message.extend_from_slice(&part);
    }
    message
}

async fn respond_https(mut respond: SendResponse<Cursor<Vec<u8>>>, answer: Answer, close: &Notify) {
    let (status, kind, body) = match answer {
        Answer::Message(message) => (200, "application/dns-message", message),
        Answer::Status(status) => (status, "text/plain", b"a text".to_vec()),
        Answer::Kind(kind) => (200, kind, b"a text".to_vec()),
        Answer::Reset => return respond.send_reset(h2::Reason::REFUSED_STREAM),
        Answer::Close => return close.notify_one(),
        Answer::Silence => return std::future::pending().await,
    };
    let response = Response::builder().status(status).header("content-type", kind).body(()).unwrap();
    if let Ok(mut stream) = respond.send_response(response, false) {
        let _ = stream.send_data(Cursor::new(body), true);
    }
}

async fn accept_quic(endpoint: quinn::Endpoint, script: Script) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connecting) = incoming.accept() else { continue };
        let script = Arc::clone(&script);
        tokio::spawn(async move {
            let connection = match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => match connecting.await {
                    Ok(connection) => connection,
                    Err(_) => return,
                },
            };
            while let Ok(stream) = connection.accept_bi().await {
                tokio::spawn(serve_quic(connection.clone(), stream, Arc::clone(&script)));
            }
        });
    }
}

async fn serve_quic(
    connection: quinn::Connection,
    (mut sending, mut receiving): (quinn::SendStream, quinn::RecvStream),
    script: Script,
) {
    let Ok(framed) = receiving.read_to_end(65_537).await else { return };
    assert_eq!(framed[..2], ((framed.len() - 2) as u16).to_be_bytes());
    match answer(&script, &framed[2..]) {
        Answer::Message(message) => {
            let _ = sending.write_all(&(message.len() as u16).to_be_bytes()).await;
            let _ = sending.write_all(&message).await;
            let _ = sending.finish();
        }
        Answer::Reset => drop(sending.reset(5u32.into())),
        Answer::Close => connection.close(1u32.into(), b""),
        _ => std::future::pending().await,
    }
}
