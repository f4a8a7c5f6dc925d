//! The sockets of one explanation, on the control thread: they open, send and close as the explainer asks. Each link is a
//! task; all tasks report to one queue. The tasks end with the explanation, whatever they are doing.

use crate::arithmetic;
use datapath::sources::SourceTable;
use datapath::tls_upstreams::{TlsFault, TlsUpstream, TlsUpstreams};
use engine::explain::{Explainer, Explanation, Unreachable};
use engine::{Client, Instant, Link, Outbox, SignedData, Span, Transport, VerificationId};
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Sockets of one explanation: each of eight attempts may go to another upstream, over UDP and then over TCP.
const SOCKETS: usize = 16;

/// Messages that a queue holds, in each direction.
const QUEUE: usize = 64;

/// Report of a link.
enum LinkEvent {
    Message(Vec<u8>),
    Failure(Unreachable),
}

type EventSender = Sender<(Link, LinkEvent)>;

/// The open links.
struct Sockets {
    links: HashMap<Link, (Transport, Sender<Vec<u8>>)>,
    /// Outcomes of verifications, which are done at once: an explanation may take its time.
    verified: Vec<(VerificationId, bool)>,
    /// The query that is being written.
    frame: [u8; engine::limits::UDP_SIZE],
    tasks: JoinSet<()>,
    events: EventSender,
    /// The upstreams that are asked over TLS.
    tls: Arc<TlsUpstreams>,
    /// The addresses and ports that questions leave from.
    sources: Arc<SourceTable>,
}

impl Outbox for Sockets {
    fn answer_frame(&mut self, _: &Client, _: usize) -> Option<&mut [u8]> {
        // The explainer keeps the answer.
        None
    }

    fn send_answer(&mut self, _: &Client, _: usize) -> bool {
        false
    }

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        Some(&mut self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        self.links.get(&via).is_some_and(|(_, link)| link.try_send(self.frame[..length].to_vec()).is_ok())
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        if self.links.len() >= SOCKETS {
            return false;
        }
        let (sender, questions) = channel(QUEUE);
        let events = self.events.clone();
        match transport {
            Transport::Udp => {
                let socket = self.sources.udp(upstream, port);
                let Ok(socket) = socket.and_then(|socket| UdpSocket::from_std(socket.into())) else {
                    return false;
                };
                self.tasks.spawn_local(run_udp(socket, link, questions, events));
            }
            Transport::Tcp => {
                let socket = self.sources.tcp(upstream, |_| Ok(()));
                self.tasks.spawn_local(run_tcp(socket, link, questions, events));
            }
            Transport::Tls => {
                let Some(to) = self.tls.find(upstream) else { return false };
                let socket = self.sources.tcp(upstream, |_| Ok(()));
                self.tasks.spawn_local(run_tls(socket, to, link, questions, events));
            }
        }
        self.links.insert(link, (transport, sender));
        true
    }

    fn close(&mut self, link: Link) {
        self.links.remove(&link);
    }

    fn verify(&mut self, id: VerificationId, signed: &SignedData<'_>) -> bool {
        self.verified.push((id, arithmetic::verify(signed)));
        true
    }
}

/// Time since 1970; zero on a system whose clock is before that.
fn unix_time() -> Span {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Span::ZERO, Into::into)
}

/// Runs an explainer to its end, at most for `timeout`.
pub async fn run(
    mut explainer: Explainer,
    tls: Arc<TlsUpstreams>,
    sources: Arc<SourceTable>,
    timeout: Duration,
) -> Explanation {
    let (events, mut received) = channel(QUEUE);
    let frame = [0; engine::limits::UDP_SIZE];
    let (links, verified) = (HashMap::new(), Vec::new());
    let mut sockets = Sockets { links, verified, frame, tasks: JoinSet::new(), events, tls, sources };
    let start = tokio::time::Instant::now();
    let now = || Instant(1 + start.elapsed().as_nanos() as u64);
    explainer.set_unix_time(now(), unix_time());
    explainer.begin(now(), &mut sockets);
    while !explainer.is_over() && start.elapsed() < timeout {
        while let Some((id, is_valid)) = sockets.verified.pop() {
            explainer.verified(now(), id, is_valid, &mut sockets);
        }
        let next = explainer.expire(now(), &mut sockets);
        if explainer.is_over() {
            break;
        }
        let due = next.map_or(timeout, |next| Duration::from_nanos(next.0 - 1));
        tokio::select! {
            event = received.recv() => match event {
                Some((link, LinkEvent::Message(mut bytes))) if sockets.links.contains_key(&link) => {
                    explainer.reply(now(), link, &mut bytes, &mut sockets);
                }
                Some((link, LinkEvent::Failure(reason))) => {
                    // A connection that is lost is closed; a UDP socket still receives.
                    match sockets.links.get(&link) {
                        Some((Transport::Tcp | Transport::Tls, _)) => drop(sockets.links.remove(&link)),
                        Some((Transport::Udp, _)) => {}
                        None => continue,
                    }
                    explainer.on_link_failure(now(), link, reason, &mut sockets);
                }
                _ => {}
            },
            () = tokio::time::sleep_until(start + due.min(timeout)) => {}
        }
    }
    explainer.explain()
}

/// Waits until a connection is established.
async fn established(socket: io::Result<Socket>) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(socket?.into())?;
    stream.writable().await?;
    stream.take_error()?.map_or(Ok(stream), Err)
}

/// The reason why an upstream cannot be reached, from the error of its socket.
fn reason(error: &io::Error) -> Unreachable {
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    if let Some(untrusted) = tls.and_then(|error| TlsFault::of(error).untrusted()) {
        return Unreachable::Untrusted(untrusted);
    }
    datapath::failure_reason(error)
}

async fn run_udp(socket: UdpSocket, link: Link, mut questions: Receiver<Vec<u8>>, events: EventSender) {
    let mut frame = vec![0; engine::limits::MESSAGE];
    loop {
        let event = tokio::select! {
            question = questions.recv() => match question {
                Some(question) => match socket.send(&question).await {
                    Ok(_) => continue,
                    Err(error) => LinkEvent::Failure(reason(&error)),
                },
                None => return,
            },
            received = socket.recv(&mut frame) => match received {
                Ok(length) => LinkEvent::Message(frame[..length].to_vec()),
                Err(error) => LinkEvent::Failure(reason(&error)),
            },
        };
        if events.send((link, event)).await.is_err() {
            return;
        }
    }
}

async fn run_tcp(socket: io::Result<Socket>, link: Link, questions: Receiver<Vec<u8>>, events: EventSender) {
    // The link is lost, however the exchange ends. The queue is closed if the explanation is over.
    let ended = match established(socket).await {
        Ok(stream) => exchange(stream, link, questions, &events).await,
        Err(error) => Err(error),
    };
    let reason = ended.map_or_else(|error| reason(&error), |()| Unreachable::Closed);
    let _ = events.send((link, LinkEvent::Failure(reason))).await;
}

async fn run_tls(
    socket: io::Result<Socket>,
    to: TlsUpstream,
    link: Link,
    questions: Receiver<Vec<u8>>,
    events: EventSender,
) {
    let stream = async { TlsConnector::from(to.config).connect(to.name, established(socket).await?).await };
    let ended = match stream.await {
        Ok(stream) => exchange(stream, link, questions, &events).await,
        Err(error) => Err(error),
    };
    let reason = ended.map_or_else(|error| reason(&error), |()| Unreachable::Closed);
    let _ = events.send((link, LinkEvent::Failure(reason))).await;
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite,
    link: Link,
    mut questions: Receiver<Vec<u8>>,
    events: &EventSender,
) -> io::Result<()> {
    let (mut read, mut write) = tokio::io::split(stream);
    let send = async {
        while let Some(question) = questions.recv().await {
            // Length and message in one segment (RFC 7766 section 8).
            let mut framed = (question.len() as u16).to_be_bytes().to_vec();
            framed.extend(question);
            write.write_all(&framed).await?;
            write.flush().await?;
        }
        io::Result::Ok(())
    };
    let receive = async {
        loop {
            let length = read.read_u16().await?;
            let mut message = vec![0; usize::from(length)];
            read.read_exact(&mut message).await?;
            if events.send((link, LinkEvent::Message(message))).await.is_err() {
                return io::Result::Ok(());
            }
        }
    };
    tokio::select! {
        ended = send => ended,
        ended = receive => ended,
    }
}
