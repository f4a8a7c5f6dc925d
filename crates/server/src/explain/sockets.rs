//! The sockets of one explanation: what the explainer wants opened, asked and closed, on the control thread. Each link is a
//! task; what they hear comes back over one queue. They end with the explanation, whatever they do.

use engine::explain::{Explainer, Explanation};
use engine::{Client, Instant, Link, Outbox, Transport};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

/// Sockets of one explanation: each of eight tries may go to another upstream, and over TCP as well.
const SOCKETS: usize = 16;

/// Messages that wait in one direction.
const QUEUE: usize = 64;

/// What a link says.
enum Heard {
    Message(Vec<u8>),
    Failure,
}

type Ear = Sender<(Link, Heard)>;

/// The open links.
struct Sockets {
    links: HashMap<Link, (Transport, Sender<Vec<u8>>)>,
    tasks: JoinSet<()>,
    ear: Ear,
}

impl Outbox for Sockets {
    fn answer(&mut self, _: &Client, _: usize, _: impl FnOnce(&mut [u8]) -> usize) -> bool {
        // The explainer keeps it.
        false
    }

    fn ask(&mut self, via: Link, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let Some((_, link)) = self.links.get(&via) else { return false };
        let mut frame = vec![0; engine::limits::UDP_SIZE];
        let length = fill(&mut frame);
        frame.truncate(length);
        link.try_send(frame).is_ok()
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        if self.links.len() >= SOCKETS {
            return false;
        }
        let (speak, questions) = channel(QUEUE);
        let ear = self.ear.clone();
        match transport {
            Transport::Udp => {
                let Ok(socket) = udp(upstream, port) else { return false };
                self.tasks.spawn_local(over_udp(socket, link, questions, ear));
            }
            Transport::Tcp => {
                self.tasks.spawn_local(over_tcp(upstream, link, questions, ear));
            }
        }
        self.links.insert(link, (transport, speak));
        true
    }

    fn close(&mut self, link: Link) {
        self.links.remove(&link);
    }
}

/// Drives an explainer to its end, or for so long.
pub async fn drive(mut explainer: Explainer, patience: Duration) -> Explanation {
    let (ear, mut heard) = channel(QUEUE);
    let mut sockets = Sockets { links: HashMap::new(), tasks: JoinSet::new(), ear };
    let start = tokio::time::Instant::now();
    let now = || Instant(1 + start.elapsed().as_nanos() as u64);
    explainer.begin(now(), &mut sockets);
    while !explainer.is_over() && start.elapsed() < patience {
        let next = explainer.expire(now(), &mut sockets);
        if explainer.is_over() {
            break;
        }
        let due = next.map_or(patience, |next| Duration::from_nanos(next.0 - 1));
        tokio::select! {
            event = heard.recv() => match event {
                Some((link, Heard::Message(bytes))) if sockets.links.contains_key(&link) => {
                    explainer.reply(now(), link, &bytes, &mut sockets);
                }
                Some((link, Heard::Failure)) => {
                    // A connection that is lost is closed by that; a datagram socket still hears.
                    match sockets.links.get(&link) {
                        Some((Transport::Tcp, _)) => drop(sockets.links.remove(&link)),
                        Some((Transport::Udp, _)) => {}
                        None => continue,
                    }
                    explainer.unreachable(now(), link, &mut sockets);
                }
                _ => {}
            },
            () = tokio::time::sleep_until(start + due.min(patience)) => {}
        }
    }
    explainer.explain()
}

fn udp(upstream: SocketAddr, port: u16) -> io::Result<UdpSocket> {
    let bind = |port| match upstream {
        SocketAddr::V4(_) => std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)),
        SocketAddr::V6(_) => std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)),
    };
    let socket = bind(port).or_else(|_| bind(0))?;
    socket.connect(upstream)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

async fn over_udp(socket: UdpSocket, link: Link, mut questions: Receiver<Vec<u8>>, ear: Ear) {
    let mut frame = vec![0; engine::limits::MESSAGE];
    loop {
        let heard = tokio::select! {
            question = questions.recv() => match question {
                Some(question) => match socket.send(&question).await {
                    Ok(_) => continue,
                    Err(_) => Heard::Failure,
                },
                None => return,
            },
            received = socket.recv(&mut frame) => match received {
                Ok(length) => Heard::Message(frame[..length].to_vec()),
                Err(_) => Heard::Failure,
            },
        };
        if ear.send((link, heard)).await.is_err() {
            return;
        }
    }
}

async fn over_tcp(upstream: SocketAddr, link: Link, questions: Receiver<Vec<u8>>, ear: Ear) {
    // However it ends: the link is gone. Nobody listens any more if the explanation is over.
    let _ = exchange(upstream, link, questions, &ear).await;
    let _ = ear.send((link, Heard::Failure)).await;
}

async fn exchange(
    upstream: SocketAddr,
    link: Link,
    mut questions: Receiver<Vec<u8>>,
    ear: &Ear,
) -> io::Result<()> {
    let (mut read, mut write) = TcpStream::connect(upstream).await?.into_split();
    let ask = async {
        while let Some(question) = questions.recv().await {
            // Length and message in one segment (RFC 7766 section 8).
            let mut framed = (question.len() as u16).to_be_bytes().to_vec();
            framed.extend(question);
            write.write_all(&framed).await?;
        }
        io::Result::Ok(())
    };
    let hear = async {
        loop {
            let length = read.read_u16().await?;
            let mut message = vec![0; usize::from(length)];
            read.read_exact(&mut message).await?;
            if ear.send((link, Heard::Message(message))).await.is_err() {
                return io::Result::Ok(());
            }
        }
    };
    tokio::select! {
        ended = ask => ended,
        ended = hear => ended,
    }
}
